package install

import (
	"strings"
	"testing"

	"stopgate/gate"
)

// axEntry is a file with one entry of ours that has these members too.
func axEntry(members string) []byte {
	return []byte(`{"hooks": [{` + members + `"command": "stopgate hook --protocol ax-code"}]}`)
}

func TestAXCode24Entries(t *testing.T) {
	h, _ := Find("ax-code")
	for _, e := range h.Entries(Target{Server: "http://127.0.0.1:8790", Program: "/opt/stopgate"}) {
		if e.HTTP() || e.Command != "/opt/stopgate hook --protocol ax-code --agent default --server http://127.0.0.1:8790" {
			t.Errorf("%s: %q %q", e.Event, e.URL, e.Command)
		}
		answers := e.Event == "PreToolUse" || e.Event == "UserPromptSubmit" || e.Event == "PostToolUse"
		if protocol := h.answersBy(e.Event); (protocol == "claude-code") != answers || !answers && protocol != "" {
			t.Errorf("%s: protocol %q", e.Event, protocol)
		}
	}
	if h.Has(User) || !h.Has(Project) {
		t.Error("AX Code has hooks of the user's, or none of the project's")
	}
}

func TestAXCode24Found(t *testing.T) {
	h, _ := Find("ax-code")
	for _, tt := range []struct {
		name, content, want string
	}{
		{"in order", string(axEntry(`"event": "PreToolUse", "protocol": "claude-code", `)), ""},
		{"its answer is not read", string(axEntry(`"event": "PreToolUse", `)), `AX Code reads no answer of the entry on PreToolUse: "protocol": "claude-code" is missing`},
		{"no answer is read there anyway", string(axEntry(`"event": "Stop", `)), ""},
		{"a misspelt event", string(axEntry(`"event": "Stopp", `)), `AX Code asks no gate on "Stopp"`},
		{"twice", `{"hooks": [{"event": "Stop", "command": "stopgate hook --protocol ax-code"}, {"event": "Stop", "command": "stopgate hook --protocol ax-code"}]}`, "the gate is asked twice on Stop"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			entries, problems, err := h.Found([]byte(tt.content))
			if err != nil || len(entries) == 0 {
				t.Fatalf("%v, %v", entries, err)
			}
			if tt.want == "" && len(problems) > 0 || tt.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Text, tt.want)) {
				t.Errorf("problems %+v, want %q", problems, tt.want)
			}
		})
	}
	if _, _, err := h.Found([]byte(`{"hooks": {}}`)); err == nil || !strings.Contains(err.Error(), `1:1: "hooks" is not a list, so AX Code reads no hook in it`) {
		t.Errorf("hooks that are an object: %v", err)
	}
	if _, err := h.Add([]byte(`{"hooks": 7}`), h.Entries(target)); err == nil {
		t.Error("hooks that are a number are written over")
	}
}

func TestAXCode24Runs(t *testing.T) {
	h, _ := Find("ax-code")
	for matcher, want := range map[string]bool{"": true, "*": true, "bash": true, "ba*|edit": true, "ba.h": false, "Bash": false} {
		if got := h.Runs(Entry{Event: "PreToolUse", Matcher: matcher}, "bash"); got != want {
			t.Errorf("matcher %q: %v", matcher, got)
		}
	}
}

func TestAXCode24Off(t *testing.T) {
	h, _ := Find("ax-code")
	entries := h.Entries(target)
	for _, tt := range []struct {
		name      string
		variables map[string]string
		errors    string // the beginning of each, joined
	}{
		{"trusted", map[string]string{"AX_CODE_TRUST_PROJECT_CONFIG": "1"}, ""},
		{"not trusted", nil, "AX Code ignores"},
		{"not trusted by another word", map[string]string{"AX_CODE_TRUST_PROJECT_CONFIG": "true"}, "AX Code ignores"},
		{"a key that is kept from hooks", map[string]string{"AX_CODE_TRUST_PROJECT_CONFIG": "1", "STOPGATE_API_KEY": "k"}, "AX Code keeps STOPGATE_API_KEY"},
		{"a key that is not", map[string]string{"AX_CODE_TRUST_PROJECT_CONFIG": "1", "STOPGATE_API_KEY": "k", "AX_CODE_HOOKS_FULL_ENV": "Yes"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			problems := h.Off(Places{Project: "/p", Home: "/h", Getenv: func(name string) string { return tt.variables[name] }}, nil, entries)
			watched := 0
			var errs []string
			for _, p := range problems {
				if p.Severity == gate.SeverityWarning && strings.HasPrefix(p.Text, "AX Code only watches Stop") {
					watched++
					continue
				}
				errs = append(errs, p.Text)
			}
			if got := strings.Join(errs, "|"); watched != 1 || !strings.HasPrefix(got, tt.errors) || tt.errors == "" && got != "" || len(errs) > 1 {
				t.Errorf("%q, and Stop said %d times", errs, watched)
			}
		})
	}
	if got := h.Off(Places{Getenv: func(string) string { return "" }}, nil, nil); len(got) > 0 {
		t.Errorf("without entries: %+v", got)
	}
}
