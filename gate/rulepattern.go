package gate

import (
	"regexp"
	"strings"
)

// pathPattern compiles a path pattern, relative to where it is anchored.
func pathPattern(glob string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString(`(?i)\A`)
	for rest := strings.TrimSuffix(glob, "/"); rest != ""; {
		switch {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString(`(?s:.*/)?`)
			rest = rest[3:]
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`(?s:.*)`)
			rest = rest[2:]
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
			rest = rest[1:]
		case rest[0] == '?':
			b.WriteString(`[^/]`)
			rest = rest[1:]
		default:
			n := strings.IndexAny(rest[1:]+"*", "*?") + 1
			b.WriteString(regexp.QuoteMeta(rest[:n]))
			rest = rest[n:]
		}
	}
	b.WriteString(`(?s:/.*)?\z`)
	return regexp.Compile(b.String())
}

// wild reports whether a text is what a pattern says, in which * stands for
// anything. It takes time in proportion to both.
func wild(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	text, ok := strings.CutPrefix(text, parts[0])
	last := len(parts) - 1
	if last == 0 {
		return ok && text == ""
	}
	for i := 1; ok && i < last; i++ {
		_, text, ok = strings.Cut(text, parts[i])
	}
	return ok && strings.HasSuffix(text, parts[last])
}
