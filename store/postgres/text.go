package postgres

// text is a caller's text in a column that takes any bytes (BYTEA).
type text string

// ScanBytes makes it what a column holds; NULL is "".
func (t *text) ScanBytes(b []byte) error {
	*t = text(b)
	return nil
}

// bytesOf is a text as an argument, never NULL.
func bytesOf(s string) []byte { return []byte(s) }
