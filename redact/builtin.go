package redact

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// builtIn is a kind of secret that is known without being told: by tokens, by an
// expression, and as find says.
type builtIn struct {
	name   string
	tokens []token
	// hints are texts of which a secret has one, beside the tokens' beginnings; none: each
	// text is looked at.
	hints []string
	expr  string
	// is, if there is one, says of what expr has found whether it is a secret.
	is func(secret string) bool
	// find finds what expr does not.
	find func(text string, found []span) []span
}

// value is what may stand between a field's name and what it holds, in JSON, JSON
// inside JSON, YAML, a shell and a header.
const value = `["'\s:=\\]{1,40}`

// builtIns are the kinds, the ones that take most of a text first. Their texts are
// of ASCII, which both engines read alike whatever stands round them.
var builtIns = []builtIn{
	{name: "private_key", hints: []string{"PRIVATE KEY"}, find: privateKeys},
	{name: "url_userinfo", hints: []string{"://"}, expr: `[A-Za-z][A-Za-z0-9+.-]*://([^\s/?#"'<>\[\]\\]+)@`},
	{name: "jwt", hints: []string{"eyJ"}, expr: begin + `(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)`},
	{name: "bearer", hints: []string{"earer", "EARER", "uthorization", "UTHORIZATION"},
		expr: `(?i)(?:\bbearer\s+|\bauthorization` + value + `(?:basic|token|digest|bearer)\s+)([A-Za-z0-9._~+/-]{16,}=*)`,
		find: matches("bearer", `(?i)\bauthorization`+value+`basic\s+([A-Za-z0-9+/*]{4,}=*)`, basic)},
	{name: "stopgate_key", tokens: []token{{begins: []string{"sg_"}, least: leastOfOwnKey}}},
	{name: "aws_key", hints: []string{"AKIA", "ASIA", "ABIA", "ACCA"}, expr: begin + `((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})(?:\b|_)`},
	{name: "aws_secret", hints: []string{"ecret", "ECRET"},
		expr: `(?i)secret_?(?:access)?_?key` + value + `([A-Za-z0-9/+]{40})`},
	{name: "azure_key", hints: []string{"tKey", "sKey", "t_key", "s_key", "T_KEY", "S_KEY"},
		expr: `(?i)(?:account|access)_?key` + value + `([A-Za-z0-9/+]{40,}=+)`},
	{name: "github_token", tokens: []token{
		{begins: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, least: 36},
		{begins: []string{"github_pat_"}, also: "_", least: 22},
	}},
	{name: "gitlab_token", tokens: []token{{begins: []string{"glpat-", "glrt-", "glptt-", "gldt-", "glcbt-", "glft-", "glsoat-", "glagent-",
		"gloas-", "glimt-", "glffct-"}, also: "_-.", least: 20}}},
	{name: "slack_token", hints: []string{"hooks.slack.com"}, expr: `hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}`, tokens: []token{
		{begins: []string{"xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xoxt-"}, also: "-%", least: 10},
		{begins: []string{"xapp-"}, also: "-", least: 10, alone: true},
	}},
	{name: "webhook", hints: []string{"/api/webhooks/", ".webhook.office.com/"},
		expr: `(?:discord|discordapp)\.com/api/webhooks/[0-9]+/[A-Za-z0-9_-]{20,}|\.webhook\.office\.com/webhookb?[0-9]*/[A-Za-z0-9@/_-]{20,}`},
	{name: "signed_url", hints: []string{"?sig=", "&sig=", ";sig=", "6sig=", "-Signature="},
		expr: `(?:[?&;6]sig|X-(?:Amz|Goog)-Signature)=([A-Za-z0-9%/+_-]{43,}=?)`},
	{name: "api_key", tokens: []token{
		{begins: []string{"sk-"}, also: "_-", least: 20, alone: true},
		{begins: []string{"AIza"}, also: "_-", least: 35, alone: true},
		{begins: []string{"sk_live_", "sk_test_", "rk_live_", "rk_test_"}, least: 16, alone: true},
		{begins: []string{"hf_", "gsk_", "xai-"}, least: 30, alone: true},
		{begins: []string{"SG."}, also: "_-.", least: 33, alone: true}, // SendGrid's
		{begins: []string{"ya29."}, also: "_-.", least: 20, alone: true},
		{begins: []string{"GOCSPX-"}, also: "_-", least: 20},
		{begins: []string{"npm_"}, least: 36},
		{begins: []string{"pypi-AgE"}, also: "_-", least: 20},
		{begins: []string{"shpat_", "shpca_", "shppa_", "shpss_"}, least: 32},
		{begins: []string{"dop_v1_", "doo_v1_", "dor_v1_"}, least: 40},
	}},
	{name: "api_key_field", hints: []string{"api", "API", "Api"},
		expr: `(?i)\bapi[-_]?key` + value + `([A-Za-z0-9._~+/-]{16,}=*)`},
	{name: "token_field", hints: tokenHints(), is: notNamed,
		expr: `(?i)(?:(?:access|refresh|session|security|auth|id)[-_]?token|client[-_]?secret)` + value + `([A-Za-z0-9._~+/%-]{16,}=*)`},
	{name: "cookie", hints: []string{"kie", "KIE"}, find: cookies},
	{name: "email", hints: emailHints(), expr: `[A-Za-z0-9._%+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}`},
	{name: "card", find: cards},
}

// leastOfOwnKey is how many letters and digits of the 64 of a key of stopgate's own
// (access/key.go) are taken for one: fewer give away less than half of its secret's bits.
const leastOfOwnKey = 40

// tokenHints are the ends of the words before "token" and "secret", with these in
// each way that a name is written.
func tokenHints() (all []string) {
	for _, word := range []string{"s_token", "h_token", "n_token", "y_token", "d_token", "t_secret"} {
		all = append(all, word, strings.ToUpper(word), word[:1]+"-"+word[2:], word[:1]+strings.ToUpper(word[2:3])+word[3:])
	}
	return all
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
	var finds []func(string, []span) []span
	for _, t := range b.tokens {
		finds = append(finds, func(text string, found []span) []span { return t.find(b.name, text, found) })
	}
	if b.expr != "" {
		finds = append(finds, matches(b.name, b.expr, b.is))
	}
	if b.find != nil {
		finds = append(finds, b.find)
	}
	return finder{name: b.name, find: func(text string, found []span) []span {
		for _, find := range finds {
			found = find(text, found)
		}
		return found
	}}
}

// allHints are the hints of the kind, those of its tokens too.
func (b builtIn) allHints() []string {
	all := slices.Clone(b.hints)
	for _, t := range b.tokens {
		all = append(all, t.begins...)
	}
	return all
}

// asked is an expression that is compiled when it is first needed: whoever links
// this package starts without it.
func asked(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
