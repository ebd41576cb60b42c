package jsonscan

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// texts are what a reader of JSON may get wrong.
var texts = []string{
	``, ` `, `{}`, ` { } `, `[]`, `[ ]`, `null`, `nul`, `nulll`, `true`, `false`, `truefalse`, `0`, `-0`, `-`, `01`, `1.`, `.5`, `1.5`, `1e`, `1e+`, `1E-7`, `+1`, `1 2`,
	`"`, `""`, `"a"`, `"\`, `"\"`, `"\""`, `"\\"`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\u12aF"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ud83d\u0041"`, `"\ud83d\n"`, `"\ud83dx"`, `"\ude00\ud83d"`, `"a\/\b\f\n\r\t\u00e9\uFFFD\u0000é\\u"`, "\"a\nb\"", "\"\x1f\"", "\"\x20\x7f\"", "\"a\x00b\"", "\"\xff\xfe\"", "\xef\xbb\xbf{}",
	`{"a":1}`, `{"a" : 1 , "b":[ 2,{"c":null}] }`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1 "b":2}`, `{"a":1]`, `[1,2}`, `[1,]`, `[,1]`, `[1 2]`, `{"a":1}}`, `{"a":1} x`, "{\"a\":1}\x00", "{\"a\":1\x00}",
	`{"a":1,"a":2}`, `{"\u0061":1,"a":2}`, "{\"\xff\":1}", `{"a\"b":"c\\"}`, `{"":""}`,
	`{"long":"` + strings.Repeat("0123456", 9) + `"}`, `"1234567\"`, `"1234567\""`, `"123456\\"`, `"é€😀 1234567 é"`,
	"{\"eight\":\"1234567\x01\"}", "{\"eight\":\"12345678\x1f2345678\"}", strings.Repeat("!", 8) + `"`,
	strings.Repeat("[", deepest) + strings.Repeat("]", deepest), strings.Repeat("[", deepest+1) + strings.Repeat("]", deepest+1),
	`{"a":` + strings.Repeat("[", deepest-1) + strings.Repeat("]", deepest-1) + `}`, `{"a":` + strings.Repeat("[", deepest) + strings.Repeat("]", deepest) + `}`,
}

func TestReadsAsEncodingJSONDoes(t *testing.T) {
	for _, text := range texts {
		asEncodingJSON(t, []byte(text))
	}
}

func FuzzReadsAsEncodingJSONDoes(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(asEncodingJSON)
}

func asEncodingJSON(t *testing.T, doc []byte) {
	if got, want := Valid(doc), json.Valid(doc); got != want {
		t.Fatalf("Valid of %.80q is %v, want %v", doc, got, want)
	}
	var want map[string]json.RawMessage
	err := json.Unmarshal(doc, &want)
	got, ok := Members(doc)
	if ok != (err == nil && want != nil) {
		t.Fatalf("Members of %.80q: %v, want %v", doc, ok, err)
	}
	if ok && !maps.EqualFunc(want, got, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		t.Fatalf("Members of %.80q are %.200q, want %.200q", doc, got, want)
	}
	var wantList []json.RawMessage
	err = json.Unmarshal(doc, &wantList)
	list, ok := Elements(doc, len(doc))
	if ok != (err == nil && wantList != nil) || ok && !slices.EqualFunc(wantList, list, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		t.Fatalf("Elements of %.80q: %.200q, %v, want %.200q, %v", doc, list, ok, wantList, err)
	}
	if few, ok := Elements(doc, len(list)-1); ok && len(list) > 0 {
		t.Fatalf("Elements of %.80q are %d where %d are too many", doc, len(few), len(list))
	}
	ok = got != nil
	if begun, whole := Members(Beginning(doc)); !whole || ok && !maps.EqualFunc(begun, got, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		t.Fatalf("Beginning of %.80q is %.200q", doc, Beginning(doc))
	}
	if want, err := decoded(doc); err == nil && json.Valid(doc) {
		got, ok := Value(doc, len(doc), len(doc), func(digits string) any { return json.Number(digits) })
		if !ok || !reflect.DeepEqual(got, want) {
			t.Fatalf("Value of %.80q is %.200v, %v, want %.200v", doc, got, ok, want)
		}
	}
	var text string
	if json.Unmarshal(doc, &text) == nil && doc[0] == '"' && doc[len(doc)-1] == '"' {
		if got := Text(doc); got != text {
			t.Fatalf("Text of %.80q is %q, want %q", doc, got, text)
		}
		if end := StringEnd(doc, 0); end != len(doc) {
			t.Fatalf("StringEnd of %.80q is %d, want %d", doc, end, len(doc))
		}
	}
}

func decoded(doc []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

func TestValueIsBounded(t *testing.T) {
	const doc = ` {"a":[1,{"b":"c"}]} ` // five values, the last of them three deep
	number := func(string) any { return 0 }
	for _, c := range []struct {
		most, deep int
		ok         bool
	}{{5, 3, true}, {4, 3, false}, {5, 2, false}, {0, 0, false}} {
		if _, ok := Value([]byte(doc), c.most, c.deep, number); ok != c.ok {
			t.Errorf("at most %d values, %d deep: %v", c.most, c.deep, ok)
		}
	}
}

// A member is taken from the beginning of an object when nothing that may follow
// makes it another.
func TestBeginning(t *testing.T) {
	for doc, want := range map[string]string{
		"":                            `{}`,
		`["a"]`:                       `{}`,
		` {`:                          `{}`,
		`{"a"`:                        `{}`,
		`{"a":"b`:                     `{}`,
		`{"a":"b"`:                    `{}`,
		`{"a":12`:                     `{}`,
		`{"a":12,`:                    `{"a":12}`,
		`{"a":{"b":[1]}, "c":"d\"`:    `{"a":{"b":[1]}}`,
		`{"a":"b","c":nul`:            `{"a":"b"}`,
		`{"a":"b",,"c":"d"}`:          `{"a":"b"}`,
		` {"a":"b","c":"d" } {"e":1}`: ` {"a":"b","c":"d" }`,
	} {
		if got := Beginning([]byte(doc)); strings.TrimSpace(string(got)) != strings.TrimSpace(want) {
			t.Errorf("of %s it is %s, want %s", doc, got, want)
		}
	}
}

// What is read after must not grow into what was read before.
func TestMembersKeepToThemselves(t *testing.T) {
	doc := []byte(`{"a":[1],"b":2}`)
	m, _ := Members(doc)
	_ = append(m["a"], "!!"...)
	if string(doc) != `{"a":[1],"b":2}` {
		t.Fatalf("appending to a member wrote over the next: %s", doc)
	}
	doc = []byte(`[[1],2]`)
	list, _ := Elements(doc, 2)
	_ = append(list[0], "!!"...)
	if string(doc) != `[[1],2]` {
		t.Fatalf("appending to an element wrote over the next: %s", doc)
	}
}
