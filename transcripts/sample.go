package transcripts

// sampleBytes tell well enough what is rare in a text.
const sampleBytes = 64 << 10

// frequencies is how often each byte stands in a sample.
type frequencies [256]int32

func frequenciesOf(sample []byte) (f frequencies) {
	for _, b := range sample {
		f[b]++
	}
	return f
}

// rarest is the choice of needles that costs least to look for in texts that
// begin like this one, each by the byte that is rarest there.
func (p *pattern) rarest(text []byte) []needle {
	if len(p.choices) == 0 {
		return nil
	}
	sample := text[:min(len(text), sampleBytes)]
	seen := frequenciesOf(sample)
	var found []needle
	least := 0
	for _, set := range p.choices {
		fitted, cost := make([]needle, len(set)), 0
		for i, n := range set {
			fitted[i] = n.fittedTo(&seen)
			cost += fitted[i].costIn(sample, &seen)
		}
		if found == nil || cost < least {
			found, least = fitted, cost
		}
	}
	return found
}

// fittedTo is the needle with the byte to look for that is rarest by what was
// seen and, among those that are equally rare there, by what is common elsewhere.
func (n needle) fittedTo(seen *frequencies) needle {
	for i := range n.text {
		if n.often(i, seen) < n.often(n.rare, seen) {
			n.rare = i
		}
	}
	return n
}

// often is how often the needle's i-th byte was seen, in either case if case
// does not count.
func (n *needle) often(i int, seen *frequencies) int {
	c := n.text[i]
	if n.fold && 'a' <= c && c <= 'z' {
		return int(seen[c]) + int(seen[c-('a'-'A')])
	}
	return int(seen[c])
}

// costIn is what looking for the needle costs in a sample, about in
// nanoseconds: a pass, a stop at every byte that looks like it, and the asking
// of a line that holds it.
func (n *needle) costIn(sample []byte, seen *frequencies) int {
	const stop, ask = 4, 100
	cost := len(sample)/16 + stop*n.often(n.rare, seen)
	for at := 0; at < len(sample); {
		c := cursor{needle: n, low: -1, up: -1}
		c.move(sample, at)
		if c.next == len(sample) {
			break
		}
		cost += ask
		at = c.next + len(n.text)
	}
	return cost
}
