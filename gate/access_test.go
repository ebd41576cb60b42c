package gate

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestMatchName(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"build", "build", true},
		{"build", "build-1", false},
		{"build", "Build", false},
		{"build-*", "build-", true},
		{"build-*", "build-1/x", true},
		{"build-*", "xbuild-1", false},
		{"*", "", true},
		{"*", "anything", true},
		{"", "", true},
		{"", "x", false},
		{"?", "", false},
		{"?", "ü", true},
		{"?", "üü", false},
		{"*-prod", "a-prod-prod", true},
		{"*-prod", "a-prod-prods", false},
		{"a*b*c", "a-b-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"**a**", "xax", true},
		{"[ab]", "a", false},
		{"[ab]", "[ab]", true},
		{`\*`, "*", false},
		{"%", "x", false},
		{"a", "a\x00b", false},
		{"\xff?", "\xff\xfe", true},
	} {
		if got := MatchName(c.pattern, c.name); got != c.want {
			t.Errorf("MatchName(%q, %q) is %t", c.pattern, c.name, got)
		}
	}
}

// However many stars a pattern has, it is not tried in every way there is.
func TestMatchNameIsBounded(t *testing.T) {
	pattern, name := strings.Repeat("a*", 200)+"b", strings.Repeat("a", 512)
	if MatchName(pattern, name) {
		t.Error("matched")
	}
}

func FuzzMatchName(f *testing.F) {
	for _, s := range [][2]string{{"a*b?c", "a-b-c"}, {"**", "x"}, {"?*?", "ü"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 40 || !utf8.ValidString(pattern) || !utf8.ValidString(name) {
			return // what the regular expression reads otherwise
		}
		quoted := strings.NewReplacer(`\*`, `(?s:.*)`, `\?`, `(?s:.)`).Replace(regexp.QuoteMeta(pattern))
		if want := regexp.MustCompile(`\A` + quoted + `\z`).MatchString(name); MatchName(pattern, name) != want {
			t.Errorf("MatchName(%q, %q) is %t", pattern, name, !want)
		}
	})
}

func TestCallers(t *testing.T) {
	nobody, admin, limited := Caller{}, Anonymous(), Caller{Scopes: []Scope{EvaluateScope}, Agents: []string{"a", "b-*"}}
	for _, s := range Scopes {
		if nobody.May(s) || !admin.May(s) || limited.May(s) != (s == EvaluateScope) {
			t.Errorf("scope %s: %t, %t, %t", s, nobody.May(s), admin.May(s), limited.May(s))
		}
	}
	if nobody.May("") || nobody.Owns("a") || !nobody.Limited() {
		t.Error("the zero value may do something")
	}
	if admin.Limited() || !admin.Owns("anything") || !admin.OwnsAll([]string{"a", "z"}) {
		t.Error("where there is no login somebody is limited")
	}
	if !limited.Limited() || !limited.Owns("b-1") || limited.Owns("c") || !limited.OwnsAll([]string{"a", "b-2"}) || limited.OwnsAll([]string{"a", "c"}) {
		t.Error("a limited caller owns what it does not, or the other way round")
	}
	for _, c := range []struct {
		agents []string
		want   string
	}{{[]string{"a"}, "a"}, {[]string{"a*"}, ""}, {[]string{"a?"}, ""}, {[]string{"a", "b"}, ""}, {nil, ""}} {
		if got, ok := (Caller{Agents: c.agents}).OnlyAgent(); got != c.want || ok != (c.want != "") {
			t.Errorf("the only agent of %q is %q, %t", c.agents, got, ok)
		}
	}
}

func TestKeyCheck(t *testing.T) {
	now := time.Now()
	good := Key{Name: "ci of team ü", Scopes: []Scope{ReadScope}, Agents: []string{EveryAgent}, Expires: now.Add(time.Second)}
	if err := good.Check(now); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Key){
		"no name":           func(k *Key) { k.Name = "" },
		"long name":         func(k *Key) { k.Name = strings.Repeat("x", maxKeyName+1) },
		"newline":           func(k *Key) { k.Name = "a\nb" },
		"escape":            func(k *Key) { k.Name = "a\x1b[31m" },
		"space round it":    func(k *Key) { k.Name = " a" },
		"not UTF-8":         func(k *Key) { k.Name = "\xff" },
		"no scopes":         func(k *Key) { k.Scopes = nil },
		"unknown scope":     func(k *Key) { k.Scopes = []Scope{"Admin"} },
		"scope twice":       func(k *Key) { k.Scopes = []Scope{ReadScope, ReadScope} },
		"no agents":         func(k *Key) { k.Agents = nil },
		"too many agents":   func(k *Key) { k.Agents = make([]string, maxPatterns+1) },
		"empty agent":       func(k *Key) { k.Agents = []string{""} },
		"agent with a NUL":  func(k *Key) { k.Agents = []string{"a\x00"} },
		"long agent":        func(k *Key) { k.Agents = []string{strings.Repeat("x", maxPattern+1)} },
		"expired":           func(k *Key) { k.Expires = now },
		"agent with spaces": func(k *Key) { k.Agents = []string{" a"} },
	} {
		k := good
		spoil(&k)
		if err := k.Check(now); CodeOf(err) != CodeValidation || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
