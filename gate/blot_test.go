package gate

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestBlot(t *testing.T) {
	const key = "sk-abcd/efgh"
	once, _ := json.Marshal(map[string]string{"pattern": key + "\n"})
	twice, _ := json.Marshal(string(once))
	tests := []struct{ name, text, want string }{
		{"as it is", "a " + key + key + " b", "a [key][key] b"},
		{"an escaped slash", `"sk-abcd\/efgh"`, `"[key]"`},
		{"in hexadecimal", `"\u0073k-abcd\u002Fefg\u0068"`, `"[key]"`},
		{"JSON in JSON", `"{\"p\":\"sk-abcd\\/efgh\"}"`, `"{\"p\":\"[key]\"}"`},
		{"hexadecimal in JSON in JSON", `"{\"p\":\"sk-abcd\\u002fefgh\"}"`, `"{\"p\":\"[key]\"}"`},
		{"as Go writes it", string(once), `{"pattern":"[key]\n"}`},
		{"and writes that", string(twice), `"{\"pattern\":\"[key]\\n\"}"`},
		{"after a newline's escape", `"\nsk-abcd/efgh"`, `"\n[key]"`},
		{"after backslashes", `"\\sk-abcd/efgh"`, `"\\[key]"`},
		{"in a URL", "?k=sk-abcd%2fefgh&l=sk%2Dabcd%2Fefgh", "?k=[key]&l=[key]"},
		{"wholly in percents", "%73%6B%2D%61%62%63%64%2F%65%66%67%68", "[key]"},
		{"in a page", "<b>sk-abcd&#47;efgh</b> sk&#x2D;abcd&sol;efgh", "<b>[key]</b> [key]"},
		{"in a page in JSON", `"sk-abcd\u0026#47;efgh"`, `"[key]"`},
		{"another percent", "sk-abcd%2eefgh sk-abcd%2", "sk-abcd%2eefgh sk-abcd%2"},
		{"another entity", "sk-abcd&amp;efgh sk-abcd&#47", "sk-abcd&amp;efgh sk-abcd&#47"},
		{"cut off", "sk-abcd/efg", "sk-abcd/efg"},
		{"another character's escape", `"sk-abcd\u002eefgh"`, `"sk-abcd\u002eefgh"`},
		{"a broken escape", `"sk-abcd\u00`, `"sk-abcd\u00`},
		{"a word that is none", "none", "none"},
		{"empty", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text := []byte(test.text)
			if got := string(Blot(text, []string{"none", key, ""}, 8)); got != test.want || string(text) != test.text {
				t.Errorf("got %s, want %s; the text is now %s", got, test.want, text)
			}
		})
	}
	t.Run("the longest first", func(t *testing.T) {
		if got := string(Blot([]byte("sk-project-4f1c77aa, sk-project"), []string{"sk-project", "sk-project-4f1c77aa"}, 8)); got != "[key], [key]" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("a key with quotes, backslashes and letters of any script", func(t *testing.T) {
		const odd = `"key\schlüssel"`
		for _, spelt := range []string{odd, `\"key\\schl\u00FCssel\"`} {
			if got := string(Blot([]byte(spelt), []string{odd}, 8)); got != "[key]" {
				t.Errorf("got %s", got)
			}
		}
	})
	t.Run("a key with escapes and spaces in it", func(t *testing.T) {
		const odd = `a b%41&amp;c`
		for _, spelt := range []string{odd, "a+b%2541%26amp%3Bc", "a%20b%2541%26amp;c", "a b%41&amp;amp;c"} {
			if got := string(Blot([]byte(spelt), []string{odd}, 8)); got != "[key]" {
				t.Errorf("%s: %s", spelt, got)
			}
		}
	})
	t.Run("backslashes without end", func(t *testing.T) { // time squared would be an hour
		Blot([]byte(strings.Repeat(`\`, 4<<20)), []string{key, `\\\\\\\\`}, 8)
	})
}

// What was JSON still is.
func FuzzBlot(f *testing.F) {
	f.Add(`{"a":"\\\"sk-abcd\u002fefgh\\"}`)
	f.Add(`{"a":"\u0026#115;k-abcd\u00252fefgh"}`)
	f.Fuzz(func(t *testing.T, text string) {
		got := Blot([]byte(text), []string{"sk-abcd/efgh"}, 8)
		if json.Valid([]byte(text)) && !json.Valid(got) {
			t.Errorf("%s became %s", text, got)
		}
	})
}
