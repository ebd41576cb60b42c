package postgres

import (
	"fmt"
	"strings"

	"stopgate/gate"
)

// anyCharacter is one character of UTF-8 whose bytes are read as LATIN1.
const anyCharacter = `(?:[\u0001-\u007f]|[\u00c2-\u00f4][\u0080-\u00bf]*)`

// ofAgents is the condition that an agent's column matches one of the patterns, and
// its arguments, numbered from first: the sums of those that are whole names, which
// an index finds, and one expression for the others.
//
// The column takes any bytes, and no operator for bytes knows characters: it is
// read as LATIN1, which has a character for each byte. Names with a NUL, which
// no caller can send and no text can hold, match none but [gate.EveryAgent].
func ofAgents(column string, patterns []string, first int) (condition string, args []any) {
	names := [][]byte{}
	var wild []string
	for _, p := range patterns {
		switch {
		case p == gate.EveryAgent:
			return `TRUE`, nil
		case strings.ContainsAny(p, "*?"):
			wild = append(wild, expression(p))
		default:
			names = append(names, sumOf(p))
		}
	}
	condition = fmt.Sprintf(`sha256(%s) = ANY ($%d::bytea[])`, column, first)
	if wild == nil {
		return condition, []any{names}
	}
	return `(` + condition + fmt.Sprintf(` OR CASE WHEN position('\x00'::bytea IN %[1]s) > 0 THEN FALSE
		ELSE convert_from(%[1]s, 'LATIN1') ~ $%[2]d END)`, column, first+1), []any{names, `^(?:` + strings.Join(wild, "|") + `)$`}
}

// expression is a pattern as a regular expression: of the caller's text it holds
// letters and digits as they are, every other byte by its number.
func expression(pattern string) string {
	var b strings.Builder
	for i := range len(pattern) {
		switch c := pattern[i]; {
		case c == '*':
			b.WriteString(`.*`)
		case c == '?':
			b.WriteString(anyCharacter)
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\u00%02x`, c)
		}
	}
	return b.String()
}
