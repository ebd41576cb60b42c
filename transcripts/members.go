package transcripts

import "bytes"

// members goes through the members of a JSON object and reports whether it is a
// whole one. Values are passed over by their quotes and brackets alone, at the
// speed of memory, since nearly all of a session file is of no use here. What
// is used of a value is decoded later, and so checked. Keys come without
// quotes, values as they stand, both as parts of object.
func members(object []byte, visit func(key, value []byte)) bool {
	i := blanks(object, 0)
	if i == len(object) || object[i] != '{' {
		return false
	}
	i = blanks(object, i+1)
	if i < len(object) && object[i] == '}' {
		return blanks(object, i+1) == len(object)
	}
	for i < len(object) && object[i] == '"' {
		end := pastString(object, i)
		if end < 0 {
			return false
		}
		key := object[i+1 : end-1]
		if i = blanks(object, end); i == len(object) || object[i] != ':' {
			return false
		}
		i = blanks(object, i+1)
		if end = pastValue(object, i); end < 0 {
			return false
		}
		visit(key, object[i:end])
		if i = blanks(object, end); i == len(object) {
			return false
		}
		switch object[i] {
		case '}':
			return blanks(object, i+1) == len(object)
		case ',':
			i = blanks(object, i+1)
		default:
			return false
		}
	}
	return false
}

// member is the value of an object's member, nil if it is not there.
func member(object []byte, name string) (found []byte) {
	members(object, func(key, value []byte) {
		if string(key) == name {
			found = value
		}
	})
	return found
}

// elements goes through the elements of a JSON array, as members does.
func elements(array []byte, visit func(value []byte)) bool {
	if len(array) == 0 || array[0] != '[' {
		return false
	}
	i := blanks(array, 1)
	if i < len(array) && array[i] == ']' {
		return true
	}
	for {
		end := pastValue(array, i)
		if end < 0 {
			return false
		}
		visit(array[i:end])
		if i = blanks(array, end); i == len(array) || array[i] != ',' {
			return i < len(array) && array[i] == ']'
		}
		i = blanks(array, i+1)
	}
}

// offsetIn is where a part of text that was sliced from it begins.
func offsetIn(text, part []byte) int64 { return int64(cap(text) - cap(part)) }

func blanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// pastValue is where the value that begins at i ends; -1 if it does not.
func pastValue(b []byte, i int) int {
	if i == len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return pastString(b, i)
	case '{', '[':
		return pastBrackets(b, i)
	}
	start := i
	for i < len(b) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(b[i])) {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

func pastBrackets(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = pastString(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// pastString is where the string whose quote is at i ends; -1 if it does not.
// Where quotes are escaped they stand close together, as in JSON inside JSON:
// after one of these the next bytes are looked at one by one.
func pastString(b []byte, i int) int {
	const close = 128
	for i++; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		back := i
		for b[back-1] == '\\' { // the opening quote ends this at the latest
			back--
		}
		i++
		if (i-1-back)%2 == 0 {
			return i
		}
		for until := min(i+close, len(b)); i < until; i++ {
			switch b[i] {
			case '"':
				return i + 1
			case '\\':
				i++
			}
		}
		if i > len(b) { // the last byte escapes what is not there
			return -1
		}
	}
}

// crowded reports whether a line holds so many values that decoding it would
// take many times its own size: 130,000 where real ones have some hundreds.
func crowded(line []byte) bool {
	const most = 1 << 17
	n := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '"':
			end := pastString(line, i)
			if end < 0 {
				return false
			}
			i = end - 1
		case ',':
			n++
		}
	}
	return n > most
}
