package exchange

// maxTokens is more than any request has. Counts are a server's word, and sums
// of them must not come round to less.
const maxTokens = 1 << 30

// Tokens is a count as a server gives it, held between nothing and a billion.
func Tokens(n int64) int { return int(min(max(n, 0), maxTokens)) }
