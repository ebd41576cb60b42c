package config

import (
	"regexp"
	"regexp/syntax"
	"slices"
)

// Redaction says what is taken out of what is stored and shown.
type Redaction struct {
	BuiltIn    []string // names of built-in patterns that are used
	Patterns   []RedactionPattern
	ModelInput bool // judges do not see it either
	// Conversations: it is taken out of conversations too, before anything of one is
	// written. Then nobody sees it there, scripts neither.
	Conversations bool
}

// RedactionPattern is an own pattern: a name and an expression in RE2's syntax.
type RedactionPattern struct{ Name, Expr string }

// BuiltInRedactions are the names of the built-in patterns, all of which are used
// unless the file says otherwise.
var BuiltInRedactions = []string{"private_key", "url_userinfo", "jwt", "bearer", "stopgate_key", "aws_key", "aws_secret", "azure_key",
	"github_token", "gitlab_token", "slack_token", "webhook", "signed_url", "api_key", "api_key_field", "token_field", "cookie", "email", "card"}

// What is kept of conversations. Where the file does not say it, it is the original
// as long as judges are to see that.
const (
	keptOriginal = "original"
	keptRedacted = "redacted"
)

const maxRedactionPatterns = 50 // each is tried on every text

const redactionNames = `^[a-z][a-z0-9_]{0,39}$`

var redactionName = regexp.MustCompile(redactionNames)

func readRedaction(o *object) Redaction {
	defer o.unknown(true)
	r := Redaction{BuiltIn: slices.Clone(BuiltInRedactions), ModelInput: o.flag("redact_model_input")}
	kept := o.oneOf("conversations", keptOriginal, keptRedacted)
	r.Conversations = kept == keptRedacted || kept == "" && r.ModelInput
	if n := o.value("built_in"); n != nil {
		r.BuiltIn = o.texts("built_in")
		for _, name := range r.BuiltIn {
			if !slices.Contains(BuiltInRedactions, name) {
				o.errorf(o.child("built_in"), n.pos, "built_in has no pattern %q%s", cut(name), DidYouMean(name, BuiltInRedactions))
			}
		}
	}
	patterns := o.object("patterns")
	if patterns == nil {
		return r
	}
	if n := len(patterns.node.fields); n > maxRedactionPatterns {
		o.errorf(patterns.path, patterns.node.pos, "patterns has %d patterns, want at most %d", n, maxRedactionPatterns)
		return r
	}
	for _, f := range patterns.node.fields {
		expr := patterns.text(f.name)
		_, err := syntax.Parse(expr, syntax.Perl)
		switch {
		case !redactionName.MatchString(f.name):
			o.errorf(patterns.child(f.name), f.pos, "pattern name %q has other characters than a-z, 0-9 and _, or more than 40", cut(f.name))
		case expr == "":
			o.errorf(patterns.child(f.name), f.pos, "pattern %s is empty", f.name)
		case err != nil:
			o.errorf(patterns.child(f.name), f.pos, "pattern %s is not RE2: %s", f.name, err)
		default:
			r.Patterns = append(r.Patterns, RedactionPattern{f.name, expr})
		}
	}
	return r
}
