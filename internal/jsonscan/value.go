package jsonscan

// Value is what valid JSON stands for, as [encoding/json.Unmarshal] reads it into an
// any, but for its numbers, which are what number makes of their digits. ok is false
// where it has more than most values, or nests them deeper than deep.
func Value(doc []byte, most, deep int, number func(digits string) any) (v any, ok bool) {
	b := builder{reader{doc: doc}, most, deep, number}
	return b.value(0)
}

type builder struct {
	reader
	most, deep int // how many values are left, and how deep they may be
	number     func(digits string) any
}

func (b *builder) value(depth int) (any, bool) {
	if b.most--; b.most < 0 || depth > b.deep {
		return nil, false
	}
	switch from := b.next(); b.doc[from] {
	case '"':
		return b.text(), true
	case '[':
		return b.list(depth)
	case '{':
		return b.object(depth)
	case 't':
		return true, b.word("true")
	case 'f':
		return false, b.word("false")
	case 'n':
		return nil, b.word("null")
	default:
		ok := b.reader.number()
		return b.number(string(b.doc[from:b.at])), ok
	}
}

func (b *builder) text() string {
	from := b.at
	b.at = StringEnd(b.doc, from)
	return Text(b.doc[from:b.at])
}

func (b *builder) list(depth int) (any, bool) {
	list := []any{}
	for b.at++; b.peek() != ']'; b.skip(",") {
		v, ok := b.value(depth + 1)
		if !ok {
			return nil, false
		}
		list = append(list, v)
		b.peek()
	}
	b.at++
	return list, true
}

func (b *builder) object(depth int) (any, bool) {
	members := map[string]any{}
	for b.at++; b.peek() != '}'; b.skip(",") {
		name := b.text()
		b.peek()
		b.at++ // the colon
		v, ok := b.value(depth + 1)
		if !ok {
			return nil, false
		}
		members[name] = v
		b.peek()
	}
	b.at++
	return members, true
}
