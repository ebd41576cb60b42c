package redact

// hints finds in one look at a text which finders could find something in it, where
// a search for each one's hints would cost more than all else. A hint has at least
// two bytes; two of them lead to it.
type hints struct {
	pairs [1 << 10]uint64 // a bit for each two bytes that lead to some hint
	by    map[uint16][]hint
	all   uint64 // the finders that have hints
}

// hint is a text of which the finder with that bit needs one.
type hint struct {
	text   string
	lead   int // where in it the two bytes are
	finder uint64
}

func pair(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

// add takes in the hints of one more finder, and is its bit.
func (h *hints) add(texts []string) (bit uint64) {
	bit = h.all + 1
	h.all |= bit
	if h.by == nil {
		h.by = map[uint16][]hint{}
	}
	for _, t := range texts {
		lead := rarest(t)
		p := pair(t[lead], t[lead+1])
		h.pairs[p>>6] |= 1 << (p & 63)
		h.by[p] = append(h.by[p], hint{t, lead, bit})
	}
	return bit
}

// rarest is where two bytes of a hint are that few texts have: the first ones that
// are not both small letters, which all prose is of.
func rarest(text string) int {
	for i := range len(text) - 1 {
		if !small(text[i]) || !small(text[i+1]) {
			return i
		}
	}
	return 0
}

func small(c byte) bool { return c >= 'a' && c <= 'z' }

// in are the bits of the finders that could find something in the text.
func (h *hints) in(text string) uint64 {
	found := uint64(0)
	for i := 0; i+1 < len(text) && found != h.all; i++ {
		p := pair(text[i], text[i+1])
		if h.pairs[p>>6]&(1<<(p&63)) == 0 {
			continue
		}
		for _, hint := range h.by[p] {
			from := i - hint.lead
			if end := from + len(hint.text); from >= 0 && end <= len(text) && text[from:end] == hint.text {
				found |= hint.finder
			}
		}
	}
	return found
}
