package redact

// hints finds in one look at a text which finders could find something in it, where
// a search for each one's hints would cost more than all else. A hint has at least
// two bytes; its first two lead to it.
type hints struct {
	pairs [1 << 10]uint64 // a bit for each two bytes that some hint begins with
	by    map[uint16][]hint
	all   uint64 // the finders that have hints
	none  uint64 // those without, which always could
}

// hint is a text of which the finder with that bit needs one.
type hint struct {
	text   string
	finder uint64
}

func pair(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

// add takes in the hints of the finder with a number; none: it always could.
func (h *hints) add(number int, texts []string) {
	bit := uint64(1) << number
	if len(texts) == 0 {
		h.none |= bit
		return
	}
	h.all |= bit
	if h.by == nil {
		h.by = map[uint16][]hint{}
	}
	for _, t := range texts {
		p := pair(t[0], t[1])
		h.pairs[p>>6] |= 1 << (p & 63)
		h.by[p] = append(h.by[p], hint{t, bit})
	}
}

// in are the bits of the finders that could find something in the text.
func (h *hints) in(text string) uint64 {
	found := uint64(0)
	for i := 0; i+1 < len(text) && found != h.all; i++ {
		p := pair(text[i], text[i+1])
		if h.pairs[p>>6]&(1<<(p&63)) == 0 {
			continue
		}
		for _, hint := range h.by[p] {
			if end := i + len(hint.text); end <= len(text) && text[i:end] == hint.text {
				found |= hint.finder
			}
		}
	}
	return found | h.none
}
