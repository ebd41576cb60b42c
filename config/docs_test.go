package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// page is a document's text and its fenced blocks, by what the fence says.
func page(t *testing.T, name string) (text string, blocks map[string][]string) {
	t.Helper()
	data, err := os.ReadFile("../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	blocks = map[string][]string{}
	for _, m := range regexp.MustCompile("(?s)```([a-z ]+)\n(.*?)```\n").FindAllStringSubmatch(string(data), -1) {
		blocks[m[1]] = append(blocks[m[1]], m[2])
	}
	return string(data), blocks
}

func TestServerFilePage(t *testing.T) {
	text, blocks := page(t, "server-file.md")
	if len(blocks["yaml"]) != 1 {
		t.Fatalf("the page has %d YAML blocks", len(blocks["yaml"]))
	}
	env := environment(map[string]string{"HOME": "/home/dev", "GEMINI_API_KEY": "k"})
	t.Run("the whole file is the defaults", func(t *testing.T) {
		want, err := LoadServer("", env, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, load(t, blocks["yaml"][0], env)); diff != "" {
			t.Error(diff)
		}
	})
	known := regexp.MustCompile(`key "zzzzzzzzzz" is unknown; known here: (.*)`)
	for name, file := range map[string]string{
		"top": "zzzzzzzzzz: 1", "http": "http: {zzzzzzzzzz: 1}", "http_hooks": "http_hooks: {zzzzzzzzzz: 1}", "models": "models: {zzzzzzzzzz: 1}", "gemini": "models: {providers: {gemini: {zzzzzzzzzz: 1}}}",
		"anthropic": "models: {providers: {anthropic: {zzzzzzzzzz: 1}}}", "openai": "models: {providers: {openai: {zzzzzzzzzz: 1}}}",
		"azure-openai": "models: {providers: {azure-openai: {zzzzzzzzzz: 1}}}", "vertex": "models: {providers: {vertex: {zzzzzzzzzz: 1}}}",
		"ollama":         "models: {providers: {ollama: {zzzzzzzzzz: 1}}}",
		"sandbox":        "sandbox: {zzzzzzzzzz: 1}",
		"sandbox limits": "sandbox: {limits: {zzzzzzzzzz: 1}}", "transcripts": "transcripts: {zzzzzzzzzz: 1}", "limits": "limits: {zzzzzzzzzz: 1}",
		"retention": "retention: {zzzzzzzzzz: 1}", "auth": "auth: {zzzzzzzzzz: 1}", "oidc": "auth: {oidc: {zzzzzzzzzz: 1}}", "tls": "auth: {tls: {zzzzzzzzzz: 1}}",
		"rules": "auth: {oidc: {rules: [{zzzzzzzzzz: 1}]}}", "clients": "auth: {tls: {clients: [{zzzzzzzzzz: 1}]}}", "telemetry": "telemetry: {zzzzzzzzzz: 1}",
		"redaction": "redaction: {zzzzzzzzzz: 1}",
		"export":    "export: {zzzzzzzzzz: 1}", "file": "export: {sinks: {a: {kind: file, path: x, zzzzzzzzzz: 1}}}",
		"otlp": "export: {sinks: {a: {kind: otlp, url: 'https://x', zzzzzzzzzz: 1}}}",
	} {
		t.Run("every key of "+name, func(t *testing.T) {
			_, err := LoadServer(serverFile(t, file), env, nil)
			if err == nil {
				t.Fatal("the unknown key was accepted")
			}
			found := known.FindStringSubmatch(err.Error())
			if found == nil {
				t.Fatalf("error is %v", err)
			}
			for key := range strings.SplitSeq(found[1], ", ") {
				if !strings.Contains(text, "`"+key+"`") && !strings.Contains(text, key+": ") {
					t.Errorf("the page does not mention %s", key)
				}
			}
		})
	}
	t.Run("every kind of provider and its models", func(t *testing.T) {
		for _, s := range services {
			if !strings.Contains(text, "| `"+s.name+"` |") {
				t.Errorf("the page has no line for %s", s.name)
			}
			for _, word := range slices.Concat(s.keyVars, s.urlVars, slices.Collect(maps.Values(s.tiers))) {
				if !strings.Contains(text, word) {
					t.Errorf("the page does not mention %s", word)
				}
			}
		}
	})
	for _, reserved := range BuiltInRedactions {
		if !strings.Contains(text, reserved) {
			t.Errorf("the page does not mention %s", reserved)
		}
	}
}

// The server file on the page about access is one.
func TestAccessPage(t *testing.T) {
	text, blocks := page(t, "access.md")
	if len(blocks["yaml"]) != 1 {
		t.Fatalf("the page has %d YAML blocks", len(blocks["yaml"]))
	}
	s := load(t, blocks["yaml"][0], environment(map[string]string{"HOME": "/home/dev"}))
	if !s.Auth.Keys || s.Auth.OIDC == nil || len(s.Auth.OIDC.Rules) == 0 || s.Auth.TLS == nil || len(s.Auth.TLS.Clients) == 0 {
		t.Errorf("it does not show every login: %+v", s.Auth)
	}
	for _, action := range gate.Actions {
		if !strings.Contains(text, "`"+string(action)+"`") {
			t.Errorf("the page does not mention %s", action)
		}
	}
}

func TestWritingHooksPage(t *testing.T) {
	text, blocks := page(t, "writing-hooks.md")
	var scripts []string
	for _, block := range blocks["yaml"] {
		specs, findings := ReadSpecFile("page.yaml", []byte(block))
		if len(specs) == 0 || len(findings) > 0 {
			t.Errorf("%d specs, findings:\n%s\nof:\n%s", len(specs), textOf(findings), block)
		}
		for _, s := range specs {
			for _, h := range s.Hooks {
				if h.Script != "" {
					scripts = append(scripts, h.Script)
				}
			}
		}
	}
	if len(scripts) != 2 {
		t.Fatalf("the page has %d scripts", len(scripts))
	}
	for _, answer := range blocks["json answer"] {
		if _, err := gate.ReadAnswer(gate.PostToolUse, []byte(answer)); err != nil {
			t.Errorf("%v: %s", err, answer)
		}
	}
	for _, context := range blocks["json context"] {
		if !json.Valid([]byte(context)) {
			t.Errorf("not JSON: %s", context)
		}
	}
	if len(blocks["json answer"]) != 4 || len(blocks["json context"]) != 1 {
		t.Errorf("the page has %d answers and %d contexts", len(blocks["json answer"]), len(blocks["json context"]))
	}
	for _, name := range hookFields {
		if !strings.Contains(text, "| `"+name+"` |") {
			t.Errorf("the table of fields lacks %s", name)
		}
	}
	t.Run("scripts", func(t *testing.T) {
		if _, err := exec.LookPath("jq"); err != nil {
			t.Skip("jq is not installed; the sandbox has its own")
		}
		for _, c := range []struct {
			script, context string
			code            int
		}{
			{scripts[0], `{"tool_input":{"command":"kubectl delete pod x"}}`, 2},
			{scripts[0], `{"tool_input":{"command":"kubectl get pods"}}`, 0},
			{scripts[0], `{"tool_input":{}}`, 0},
			{scripts[1], stopContext("Done.", 0), 2},
			{scripts[1], stopContext("Done.", 5), 0},
			{scripts[1], stopContext("Tests: all pass", 0), 0},
		} {
			if code, _, stderr := run(t, c.script, c.context); code != c.code {
				t.Errorf("exit %d, want %d on %s; stderr %q", code, c.code, c.context, stderr)
			}
		}
	})
}

// hookFields are the fields that readHook asks for, and name.
var hookFields = []string{"type", "prompt", "command", "script", "matcher", "timeout", "model", "failMode", "maxRejections", "name"}

// docs/dialects.md has the four systems side by side: what of it is a constant,
// a list or a law of this package's stands there as it is.
func TestDialectsPage(t *testing.T) {
	text, _ := page(t, "dialects.md")
	_, table, _ := strings.Cut(text, "\n## The four, side by side\n\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]map[gate.Dialect]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i, d := range gate.Dialects {
			if len(cells) != 1+len(gate.Dialects) {
				t.Fatalf("%d cells in %s", len(cells), line)
			}
			name := strings.TrimSpace(cells[0])
			if rows[name] == nil {
				rows[name] = map[gate.Dialect]string{}
			}
			rows[name][d] = strings.TrimSpace(cells[1+i])
		}
	}
	has := func(row string, d gate.Dialect, words ...string) {
		t.Helper()
		for _, word := range words {
			if !strings.Contains(rows[row][d], word) {
				t.Errorf("%s of %s is %q and lacks %q", row, d, rows[row][d], word)
			}
		}
	}
	for _, d := range gate.Dialects {
		if got := rows[""][d]; got != string(d) {
			t.Errorf("the column of %s is called %q", d, got)
		}
		if got := rows["order"][d]; got != orderOf(d) {
			t.Errorf("the order of %s is %q, want %q", d, got, orderOf(d))
		}
		for _, e := range eventsOf(d) {
			if d != gate.ClaudeCode || e.Known() { // the gate is not asked about the others
				has("events", d, EventName(d, e))
			}
		}
		if d != gate.ClaudeCode {
			has("time", d, fmt.Sprintf("%g s", gate.DefaultTimeout.Seconds()))
		}
	}
	for _, p := range places {
		has("file", p.dialect, "`"+p.path+"`")
	}
	for kind, usual := range claudeCodeTimeouts {
		has("time", gate.ClaudeCode, fmt.Sprintf("%s %g s", kind, usual.Seconds()))
		has("types", gate.ClaudeCode, kind)
	}
	thousands := func(n int) string {
		if n < 1000 {
			return fmt.Sprint(n)
		}
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	}
	has("Stop", gate.Azure, fmt.Sprintf("reject %d times", gate.DefaultMaxRejections))
	has("limits", gate.Azure, fmt.Sprintf("%d hooks an event", maxHooks), thousands(gate.MaxScriptBytes)+" bytes")
	has("limits", gate.Antigravity, thousands(maxAttached)+" handlers")
	has("limits", gate.AXCode, fmt.Sprintf("%d hooks, %[1]d packs", axCodeEntries), thousands(axCodeCommandChars)+" characters", fmt.Sprintf("a matcher of %d", axCodeMatcherChars))
	has("limits", gate.ClaudeCode, thousands(maxAttached)+" hooks", thousands(gate.ClaudeCodeCharacters)+" characters a text")
	for _, name := range packNames() {
		if !strings.Contains(text, "\n| "+name+" | ") {
			t.Errorf("the table of packs lacks %s", name)
		}
	}
	for _, name := range gate.AntigravityTools {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("the tools of antigravity lack %s", name)
		}
	}
	var order []string
	for _, d := range gate.Dialects {
		order = append(order, string(d))
	}
	if !strings.Contains(text, "stands in the order "+strings.Join(order, ", ")) {
		t.Error("the order of the dialects is another")
	}
}
