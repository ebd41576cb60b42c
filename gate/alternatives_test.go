package gate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAlternatives(t *testing.T) {
	for _, c := range []struct {
		pattern string
		want    []string
	}{
		{"Bash", []string{"Bash"}},
		{"*", []string{"*"}},
		{"Bash|Write", []string{"Bash", "Write"}},
		{"mcp__.*|Ba[s|h]h", []string{"mcp__.*", "Ba[s|h]h"}},
		{`a\|b.|c`, []string{`a\|b.`, "c"}},
		{`\Qa|b\E.|c`, []string{`\Qa|b\E.`, "c"}},
		{"[]|].|[[:alpha:]|]c.", []string{"[]|].", "[[:alpha:]|]c."}},
		{"(?i)bash|write", []string{"(?i)bash", "(?i)write"}},
		{"(?i).*(deploy|delete).*", []string{"(?i).*(deploy).*", "(?i).*(delete).*"}},
		{"a(?:b|c)(d|e).", []string{"a(?:b)(d).", "a(?:b)(e).", "a(?:c)(d).", "a(?:c)(e)."}},
		{"x(a|(b|c)).", []string{"x(a).", "x((b)).", "x((c))."}},
		{"(a|b)+", []string{"(a|b)+"}}, // ab is neither a nor b
		{"a(?i)b|c.", []string{"a(?i)b|c."}},
		{"(a|b|c|d)(a|b|c|d)(a|b|c|d)(a|b|c|d).", []string{"(a|b|c|d)(a|b|c|d)(a|b|c|d)(a|b|c|d)."}},
	} {
		m, err := CompileMatcher(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range m.Alternatives() {
			got = append(got, a.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.pattern, diff)
		}
	}
}

func TestAlternativesOfNamesAndBeginnings(t *testing.T) {
	m := Matcher{source: "Bash|mcp*", exact: []string{"Bash"}, starts: []string{"mcp"}}
	all := m.Alternatives()
	if len(all) != 2 || !all[0].Match("Bash") || all[0].Match("mcp_x") || !all[1].Match("mcp_x") || all[1].Match("Bash") {
		t.Errorf("alternatives are %v", all)
	}
}

func TestMatcherExample(t *testing.T) {
	for pattern, want := range map[string]string{
		"*": "AnyTool", "Bash|Write": "Bash", "": "", "mcp__.+": "mcp__x",
		"[A-C]{2}[0-9]?": "AA", `\d`: "0", "a{1000}": "", "[^a]b": "xb",
	} {
		m, err := CompileMatcher(pattern)
		if err != nil {
			t.Fatal(err)
		}
		got := m.Example()
		if got != "" && !m.Match(got) {
			t.Errorf("%q: example %q does not match", pattern, got)
		}
		if got != want {
			t.Errorf("%q: example is %q, want %q", pattern, got, want)
		}
	}
}

// What the alternatives match is what the whole matches.
func FuzzAlternatives(f *testing.F) {
	for _, seed := range []string{"Bash|Write", "(?i)a(b|c|)d", "[a|b]|c.", "a(b|c)*|d", `\Q|\E|x`} {
		f.Add(seed, "ab")
	}
	f.Fuzz(func(t *testing.T, pattern, tool string) {
		m, err := CompileMatcher(pattern)
		if err != nil || tool == "" {
			return
		}
		any := false
		for _, a := range m.Alternatives() {
			any = any || a.Match(tool)
		}
		if any != m.Match(tool) {
			t.Errorf("%q on %q: the whole says %v, the alternatives %v", pattern, tool, !any, any)
		}
		if e := m.Example(); e != "" && !m.Match(e) {
			t.Errorf("%q: example %q does not match", pattern, e)
		}
	})
}
