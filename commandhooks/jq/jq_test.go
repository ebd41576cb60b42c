package jq

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJQ(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	two := file("two.json", "1 [2]")
	filter := file("filter.jq", ".a + 1 # the next\n")
	type result struct {
		Out  string
		Code int
	}
	tests := []struct {
		name  string
		args  []string
		stdin string
		want  result
		err   string // part of standard error
	}{
		{"pretty by default", []string{"."}, `{"b":[1,{}],"a":"ü"}`, result{"{\n  \"a\": \"ü\",\n  \"b\": [\n    1,\n    {}\n  ]\n}\n", 0}, ""},
		{"compact raw, letters joined", []string{"-rc", ".a,.b"}, `{"a":"x\ny","b":{"c":null}}`, result{"x\ny\n{\"c\":null}\n", 0}, ""},
		{"options after the filter", []string{".a", "-r"}, `{"a":"x"}`, result{"x\n", 0}, ""},
		{"a missing field is null", []string{"-r", ".tool_input.command // empty"}, `{}`, result{"", 0}, ""},
		{"numbers keep their digits", []string{"."}, `100000000000000000001`, result{"100000000000000000001\n", 0}, ""},
		{"arguments", []string{"-nc", "--arg", "r", "why \"so\"", "--argjson", "n", "[1]", `{ok:false,reason:$r,$n}`}, ``, result{`{"n":[1],"ok":false,"reason":"why \"so\""}` + "\n", 0}, ""},
		{"named arguments as an object", []string{"-nc", "--arg", "a", "1", "$ARGS.named"}, ``, result{"{\"a\":\"1\"}\n", 0}, ""},
		{"positional arguments", []string{"-nc", "$ARGS.positional", "--args", "a", "--", "-b"}, ``, result{"[\"a\",\"-b\"]\n", 0}, ""},
		{"positional JSON", []string{"-nc", "[$ARGS.positional[]]", "--jsonargs", "1", "{}"}, ``, result{"[1,{}]\n", 0}, ""},
		{"files", []string{"-c", ".", two}, `9`, result{"1\n[2]\n", 0}, ""},
		{"slurp", []string{"-sc", ".", two}, ``, result{"[1,[2]]\n", 0}, ""},
		{"slurpfile", []string{"-nc", "--slurpfile", "f", two, "$f"}, ``, result{"[1,[2]]\n", 0}, ""},
		{"rawfile", []string{"-n", "--rawfile", "f", two, "$f"}, ``, result{"\"1 [2]\"\n", 0}, ""},
		{"filter in a file", []string{"-f", filter}, `{"a":1}`, result{"2\n", 0}, ""},
		{"raw input", []string{"-R", "."}, "a\nb", result{"\"a\"\n\"b\"\n", 0}, ""},
		{"raw input slurped", []string{"-Rs", "."}, "a\nb\n", result{"\"a\\nb\\n\"\n", 0}, ""},
		{"raw input of bad bytes", []string{"-R", "."}, "a\xff", result{"\"a\uFFFD\"\n", 0}, ""},
		{"join", []string{"-j", ".[]"}, `["a","b"]`, result{"ab", 0}, ""},
		{"NUL", []string{"--raw-output0", ".[]"}, `["a","b"]`, result{"a\x00b\x00", 0}, ""},
		{"ascii", []string{"-a", "."}, `"ü😀"`, result{`"\u00fc\ud83d\ude00"` + "\n", 0}, ""},
		{"tab", []string{"--tab", "."}, `[1]`, result{"[\n\t1\n]\n", 0}, ""},
		{"indent 1", []string{"--indent", "1", "."}, `[1]`, result{"[\n 1\n]\n", 0}, ""},
		{"inputs", []string{"-n", "[inputs]|length"}, "1 2 3", result{"3\n", 0}, ""},
		{"no input", []string{"."}, ``, result{"", 0}, ""},
		{"exit status true", []string{"-e", ".ok"}, `{"ok":true}`, result{"true\n", 0}, ""},
		{"exit status false", []string{"-e", ".ok"}, `{"ok":false}`, result{"false\n", 1}, ""},
		{"exit status null", []string{"-e", ".ok"}, `{}`, result{"null\n", 1}, ""},
		{"exit status nothing", []string{"-e", "empty"}, `{}`, result{"", 4}, ""},
		{"error of the filter", []string{".a"}, `[1] {"a":2}`, result{"2\n", 5}, "expected an object"},
		{"halt_error", []string{`"bye\n"|halt_error(3)`}, `1`, result{"", 3}, "bye\n"},
		{"compile error", []string{".a | | b"}, `{}`, result{"", 3}, "compile error"},
		{"unknown variable", []string{"$nope"}, `{}`, result{"", 3}, "compile error"},
		{"broken input", []string{"."}, `1 {"a"`, result{"1\n", 2}, "(stdin)"},
		{"missing file", []string{".", filepath.Join(dir, "none")}, ``, result{"", 2}, "could not open"},
		{"unknown option", []string{"--nope", "."}, `{}`, result{"", 2}, "--nope"},
		{"unknown letter", []string{"-rz", "."}, `{}`, result{"", 2}, "-z"},
		{"no filter", nil, `{}`, result{"", 2}, "filter is missing"},
		{"half an --arg", []string{".", "--arg", "x"}, `{}`, result{"", 2}, "--arg takes"},
		{"bad --argjson", []string{".", "--argjson", "x", "{"}, `{}`, result{"", 2}, "no JSON"},
		{"version", []string{"--version"}, ``, result{"jq-1.7 (gojq)\n", 0}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := JQ(tt.args, strings.NewReader(tt.stdin), &out, &errs)
			if diff := cmp.Diff(tt.want, result{out.String(), code}); diff != "" {
				t.Errorf("(-want +got)\n%s\nstderr: %s", diff, &errs)
			}
			if !strings.Contains(errs.String(), tt.err) || tt.err == "" && errs.Len() > 0 {
				t.Errorf("stderr = %q, want %q in it", &errs, tt.err)
			}
		})
	}
}

func TestHelpNamesEveryOption(t *testing.T) {
	var out bytes.Buffer
	if code := JQ([]string{"-h"}, strings.NewReader(""), &out, &out); code != 0 {
		t.Fatalf("exit %d", code)
	}
	for _, option := range []string{"--null-input", "--raw-output0", "--argjson", "--slurpfile", "--exit-status", "--indent"} {
		if !strings.Contains(out.String(), option) {
			t.Errorf("help does not name %s", option)
		}
	}
}
