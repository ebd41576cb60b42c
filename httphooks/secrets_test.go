package httphooks

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"stopgate/gate"
)

// A server that says a part of a header which is a secret by itself, or the
// whole in the writing of a URL or a page.
func TestAntigravity16PartsOfSecrets(t *testing.T) {
	const odd = "5ec2e7 <+>/&=ü"
	for name, c := range map[string]struct{ value, echo string }{
		"a parameter":               {"AWS4-HMAC-SHA256 Credential=AKIA0000/x, SignedHeaders=host, Signature=5ec2e75ec2e7", "bad signature 5ec2e75ec2e7"},
		"a quoted parameter":        {`Digest username="me", response="5ec2e7response"`, "5ec2e7response is wrong"},
		"a cookie's value":          {"theme=dark; session=5ec2e7session", "no session 5ec2e7session"},
		"a cookie's, unescaped":     {"theme=dark; session=5ec2e7%20%2Fsession", "no session 5ec2e7 /session"},
		"a name's password":         {"ApiKey me:5ec2e7password", "5ec2e7password is wrong"},
		"a password without scheme": {"me:5ec2e7password", "5ec2e7password is wrong"},
		"of two words the second":   {"Token me 5ec2e7word", "5ec2e7word is wrong"},
		"in JSON":                   {`{"me":"x","key":"5ec2e7key"}`, "5ec2e7key is wrong"},
		"in a form":                 {odd, "see /x?key=" + url.QueryEscape(odd)},
		"in a path":                 {odd, "see /" + url.PathEscape(odd)},
		"in a page":                 {odd, "<b>" + html.EscapeString(odd) + "</b>"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				_ = json.NewEncoder(rw).Encode(map[string]string{"decision": "deny", "reason": c.echo})
			})
			in := hook("https://hooks.example.com/")
			in.Network = &gate.Network{Allow: []gate.Destination{{Domain: "*", Transform: []gate.Header{{Name: "X-Auth", Value: c.value}}}}}
			v := ask(t, w.caller(t), in)
			said, _ := json.Marshal(v)
			if v.Outcome != gate.Block || !strings.Contains(v.Reason, "[key]") || strings.Contains(string(said), "5ec") {
				t.Errorf("%s", said)
			}
		})
	}
}

// A part that is a word of answers takes nothing of what an answer means.
func TestHiddenWordsKeepTheOutcome(t *testing.T) {
	w := newWorld(t, says(`{"decision":"deny","reason":"no"}`))
	in := hook("https://hooks.example.com/")
	in.Network = &gate.Network{Allow: []gate.Destination{{Domain: "*", Transform: []gate.Header{{Name: "Cookie", Value: "mode=deny; with=decision"}}}}}
	if v := ask(t, w.caller(t), in); v.Outcome != gate.Block || v.Reason != "no" {
		t.Errorf("verdict %q, reason %q, %v", v.Outcome, v.Reason, v.Failure)
	}
}
