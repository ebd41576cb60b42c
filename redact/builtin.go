package redact

import (
	"regexp"
	"strings"
	"sync"
)

// builtIn is a kind of secret that is known without being told.
type builtIn struct {
	name string
	// hints are texts of which a secret has one; none: each text is looked at.
	hints []string
	expr  string
	find  func(text string, found []span) []span // in place of expr
}

// value is what may stand between a field's name and what it holds, in JSON, JSON
// inside JSON, YAML, a shell and a header.
const value = `["'\s:=\\]{1,40}`

// builtIns are the kinds, the ones that take most of a text first. Their texts are
// of ASCII, which both engines read alike whatever stands round them.
var builtIns = []builtIn{
	{name: "private_key", hints: []string{"PRIVATE KEY"}, find: privateKeys},
	{name: "url_userinfo", hints: []string{"://"}, expr: `[A-Za-z][A-Za-z0-9+.-]*://([^\s/?#"'<>\[\]\\]+)@`},
	{name: "jwt", hints: []string{"eyJ"}, expr: `\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`},
	{name: "bearer", hints: []string{"earer", "EARER", "uthorization", "UTHORIZATION"},
		expr: `(?i)(?:\bbearer\s+|\bauthorization` + value + `(?:basic|token|digest|bearer)\s+)([A-Za-z0-9._~+/-]{16,}=*)`},
	{name: "aws_key", hints: []string{"AKIA", "ASIA", "ABIA", "ACCA"}, expr: `\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`},
	{name: "aws_secret", hints: []string{"ecret", "ECRET"},
		expr: `(?i)secret_?(?:access)?_?key` + value + `([A-Za-z0-9/+]{40})`},
	{name: "github_token", hints: []string{"gh", "github_pat_"}, expr: `\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})`},
	{name: "gitlab_token", hints: []string{"glpat-"}, expr: `\bglpat-[A-Za-z0-9_-]{20,}`},
	{name: "slack_token", hints: []string{"xox", "xapp-", "hooks.slack.com"},
		expr: `\bxox[a-z]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}|hooks\.slack\.com/services/[A-Za-z0-9/_-]{20,}`},
	{name: "api_key", hints: []string{"sk-", "AIza", "k_live_", "k_test_", "hf_", "npm_", "gsk_", "xai-", "SG."},
		expr: `\bsk-[A-Za-z0-9_-]{20,}|\bAIza[A-Za-z0-9_-]{35}|\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|\bhf_[A-Za-z0-9]{30,}` +
			`|\bnpm_[A-Za-z0-9]{36}|\bgsk_[A-Za-z0-9]{30,}|\bxai-[A-Za-z0-9]{30,}|\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`},
	{name: "api_key_field", hints: []string{"api", "API", "Api"},
		expr: `(?i)\bapi[-_]?key` + value + `([A-Za-z0-9._~+/-]{16,}=*)`},
	{name: "email", hints: emailHints(), expr: `[A-Za-z0-9._%+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}`},
	{name: "card", find: cards},
}

// emailHints are the sign and what may follow it: a hint has two bytes.
func emailHints() (all []string) {
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-" {
		all = append(all, "@"+string(c))
	}
	return all
}

// BuiltIn are the names of the built-in patterns.
func BuiltIn() []string {
	all := make([]string, len(builtIns))
	for i, b := range builtIns {
		all[i] = b.name
	}
	return all
}

func (b builtIn) finder() finder {
	f := finder{name: b.name, find: b.find}
	if f.find == nil {
		f.find = matches(b.name, b.expr)
	}
	return f
}

var (
	keyBegins = asked(`-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----`)
	keyEnds   = asked(`-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----`)
)

// privateKeys finds PEM blocks; of one that is cut off all that could belong to it.
// One expression for begin and end would look for the end anew from each begin.
func privateKeys(text string, found []span) []span {
	ends := keyEnds().FindAllStringIndex(text, -1)
	at := 0
	for _, begin := range keyBegins().FindAllStringIndex(text, -1) {
		if begin[0] < at {
			continue
		}
		for len(ends) > 0 && ends[0][0] < begin[1] {
			ends = ends[1:]
		}
		if len(ends) > 0 && ends[0][1]-begin[0] <= overlap {
			at = ends[0][1]
		} else {
			at = len(text)
			if n := strings.IndexFunc(text[begin[1]:], notOfKey); n >= 0 {
				at = begin[1] + n
			}
		}
		found = append(found, spanOf("private_key", begin[0], at))
	}
	return found
}

// notOfKey reports a character that is no base64, nor the end of a line of it,
// escaped or not.
func notOfKey(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("+/=\\\r\n", r)
}

// asked is an expression that is compiled when it is first needed: whoever links
// this package starts without it.
func asked(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
