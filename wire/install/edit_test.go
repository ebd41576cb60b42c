package install

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What cannot be read, or is no host's, is left alone: the error says where.
func TestBrokenFilesAreRefused(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"not JSON", "{\n  \"hooks\": {,}\n}", "2:13: invalid character ','"},
		{"cut off", "{\"hooks\": {\n", "2:1: parsing value: unexpected EOF"},
		{"no object", "[]", "1:1: not a JSON object"},
		{"text", "hooks: none", "1:1: invalid literal: hooks"},
		{"a NUL byte", "{\"a\": \x00}", "1:7: invalid character '\\u0000' at start of value"},
		{"hooks is a list", "{\n\"hooks\": []}", `2:1: "hooks" is not an object`},
		{"hooks twice", `{"hooks": {}, "hooks": {}}`, `1:1: "hooks" is there twice`},
		{"an event twice", "{\"hooks\": {\"Stop\": [],\n\"Stop\": []}}", `"Stop" is there twice`},
		{"an event is no list", `{"hooks": {"Stop": true}}`, `"Stop" is not what a host reads as hooks: want [`},
		{"deep lists", strings.Repeat("[", 20_001), "1:1: too large"},
		{"deep objects", strings.Repeat(`{"a":`, 20_001), "1:1: too large"},
		{"large", strings.Repeat(" ", 1<<20+1), "1:1: too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := Find("claude-code")
			got, err := h.Add([]byte(c.content), h.Entries(target))
			if err == nil || !strings.Contains(err.Error(), c.want) || got != nil {
				t.Errorf("%v, %q; want %s", err, got, c.want)
			}
		})
	}
}

// Remove(Add(x)) is x for every layout that people have.
func TestRemoveRestoresTheBytes(t *testing.T) {
	for _, content := range []string{
		`{"a": 1}`, `{"a":1,"b":[2]}`, "{\"a\": 1 /* one */}", "{\n\t\"a\": 1\n}\n", "{\r\n    \"a\": 1\r\n}\r\n",
		"{\n  \"a\": 1, // one\n}\n", "{\n  \"a\": 1,\n  // last words\n}\n", "{\n  \"a\": 1 // one\n}", "// head\n{\n  \"a\": {}\n}\n// tail\n",
		"{\"hooks\": {\"Notification\": []}, \"a\": 1}", "{\n  \"hooks\": {\n    \"Stop\": [ {\"hooks\": []}, ]\n  }\n}\n",
		"{\n  \"hooks\": {\n    // mine\n    \"Stop\": [\n      // first\n      {\"hooks\": [{\"command\": \"x\"}]} // second\n    ]\n  }\n}\n",
		`{"url":"http://x"}`,
		"{\n  \"a\": \"\\u003c\\/\", \"b\": 1.0e5\n}",
	} {
		for _, h := range All() {
			if h.layout.version || h.layout.flat && strings.Contains(content, `"hooks": {`) {
				continue // "version" is added and stays where something else is; and there "hooks" is a list
			}
			added := mustAdd(t, h, []byte(content))
			removed, alone, err := h.Remove(added)
			if err != nil || alone || string(removed) != content {
				t.Errorf("%s: %v alone %t\n%s", h.Name, err, alone, cmp.Diff(content, string(removed)))
			}
		}
	}
}

// A file keeps its line ends: an editor shows one with both kinds as changed
// from end to end.
func TestLineEndsStay(t *testing.T) {
	for _, h := range All() {
		for _, content := range []string{"\r\n", "{\r\n}\r\n", "{\r\n  \"a\": 1\r\n}\r\n", "{\r\n  \"a\": 1 // one\r\n}"} {
			added := string(mustAdd(t, h, []byte(content)))
			if whole := strings.ReplaceAll(added, "\r\n", ""); strings.ContainsAny(whole, "\r\n") || whole == added {
				t.Errorf("%s: %q became %q", h.Name, content, added)
			}
		}
	}
}

// The caller's bytes are never written to.
func TestAddLeavesItsInputAlone(t *testing.T) {
	h, _ := Find("claude-code")
	content := []byte("{\"hooks\": {\"Stop\": []}}")
	kept := string(content)
	mustAdd(t, h, content)
	if string(content) != kept {
		t.Errorf("%s", content)
	}
}

// What Add writes a strict reader reads, if it read the file before.
func TestStrictStaysStrict(t *testing.T) {
	h, _ := Find("codex")
	for _, content := range []string{"", "{}", `{"a": 1}`, "{\n}"} {
		var v map[string]any
		if err := json.Unmarshal(mustAdd(t, h, []byte(content)), &v); err != nil {
			t.Errorf("%q: %v", content, err)
		}
	}
}

func FuzzAddAndRemove(f *testing.F) {
	for _, s := range []string{"", "{}", "\v", `{"hooks": {"Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "a"}]},]}}`,
		"{ // c\n}", "{}//", "{}\r\n// c", `{"a":1/**/,/**/}`, `{"hooks":{"Stop":[/*x*/]}}`, `{"hooks":{"Stop":[{"hooks":[{"type":"http","url":"http://x/v1/hooks/qwen-code"}]},{}]}}`} {
		f.Add(s)
	}
	h, _ := Find("qwen-code")
	f.Fuzz(func(t *testing.T, content string) {
		added, err := h.Add([]byte(content), h.Entries(target))
		if err != nil {
			return
		}
		if again, err := h.Add(added, h.Entries(target)); err != nil || string(again) != string(added) {
			t.Fatalf("%v: a second Add makes of %q %q", err, added, again)
		}
		entries, _, err := h.Found(added)
		if err != nil || len(entries) != len(h.events()) {
			t.Fatalf("%v: %d entries in %q", err, len(entries), added)
		}
		removed, _, err := h.Remove(added)
		if err != nil {
			t.Fatalf("%v: %q", err, added)
		}
		if entries, _, err := h.Found(removed); err != nil || len(entries) != 0 {
			t.Fatalf("%v: left in %q: %v", err, removed, entries)
		}
		// Without hooks of ours before, nothing but blanks and empty hooks may differ.
		if before, _, _ := h.Found([]byte(content)); len(before) == 0 {
			if a, b := comments(t, content), comments(t, string(removed)); a != b {
				t.Fatalf("comments of %q: %q, then %q", content, a, b)
			}
		}
	})
}

// comments is a file's text without blanks and commas, the empty hooks that
// Remove takes away left out.
func comments(t *testing.T, content string) string {
	t.Helper()
	if _, err := parse([]byte(content)); err != nil {
		t.Fatal(err)
	}
	text := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\r\n,", r) {
			return -1
		}
		return r
	}, content)
	for _, empty := range []string{`"Stop":[]`, `"SessionStart":[]`, `"UserPromptSubmit":[]`, `"PreToolUse":[]`, `"PostToolUse":[]`, `"PostToolUseFailure":[]`, `"SubagentStop":[]`, `"hooks":{}`} {
		text = strings.ReplaceAll(text, empty, "")
	}
	if text == "" {
		return "{}"
	}
	return text
}

// Comments inside what goes with our entry stay, as those beside it do.
func TestCommentsInsideGroupsStay(t *testing.T) {
	h, _ := Find("claude-code")
	const ours = `{"type": "command", "command": "stopgate hook --protocol claude-code"}`
	for name, content := range map[string]string{
		"before the entry": "{\"hooks\": {\"Stop\": [{\"hooks\": [\n  // security: keep, see ticket 12\n  " + ours + "\n]}]}}",
		"after the entry":  "{\"hooks\": {\"Stop\": [{\"hooks\": [\n  " + ours + " // security: keep, see ticket 12\n]}]}}",
		"in the group":     "{\"hooks\": {\"Stop\": [{\n  // security: keep, see ticket 12\n  \"hooks\": [" + ours + "]}]}}",
		"before a member":  "{\"hooks\": {\n  /* security: keep, see ticket 12 */ \"Stop\": [{\"hooks\": [" + ours + "]}]}}",
	} {
		t.Run(name, func(t *testing.T) {
			rest, _, err := h.Remove([]byte(content))
			if err != nil || !strings.Contains(string(rest), "ticket 12") {
				t.Errorf("Remove: %v: %s", err, rest)
			}
			if added := mustAdd(t, h, []byte(content)); !strings.Contains(string(added), "ticket 12") {
				t.Errorf("Add: %s", added)
			}
		})
	}
}

// An entry that does more than call stopgate is its user's: what it does beside
// is not taken away, neither by a newer init nor by --remove.
func TestForeignPartsOfACommandStay(t *testing.T) {
	h, _ := Find("claude-code")
	for _, command := range []string{
		"./scripts/format.sh && stopgate hook --protocol claude-code",
		"stopgate hook --protocol claude-code; ./scripts/format.sh",
		"tee ./scripts/format.sh | stopgate hook --protocol claude-code",
		"logger -f ./scripts/format.sh hook --protocol claude-code",
		"./scripts/format.sh stopgate-hook --protocol claude-code",
	} {
		t.Run(command, func(t *testing.T) {
			content := []byte(`{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "` + command + `"}]}]}}`)
			rest, _, err := h.Remove(content)
			if err == nil && !strings.Contains(string(rest), "format.sh") {
				t.Errorf("Remove leaves %s", rest)
			}
			added, err := h.Add(content, h.Entries(target))
			if err == nil && !strings.Contains(string(added), "format.sh") {
				t.Errorf("Add lost it")
			}
		})
	}
}

// What keeps an entry from gating is not kept: init mends it.
func TestAddTakesOutWhatBendsAnEntry(t *testing.T) {
	h, _ := Find("claude-code")
	good := mustAdd(t, h, nil)
	bent := strings.Replace(string(good), `"type": "http"`, `"async": true, "type": "http"`, 1)
	if bent == string(good) {
		t.Fatalf("%s", good)
	}
	if got := string(mustAdd(t, h, []byte(bent))); strings.Contains(got, "async") {
		t.Errorf("%s", got)
	}
}

// What a user has set on an entry of ours is not undone by running init again:
// without --on-unreachable block a gate that was closed is open.
func TestSettingsOfAnEntryStay(t *testing.T) {
	h, _ := Find("claude-code")
	content := []byte(`{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "stopgate hook --protocol claude-code --agent marker --on-unreachable block --deadline 200", "timeout": 300}]}]}}`)
	added := string(mustAdd(t, h, content))
	for _, want := range []string{"--on-unreachable block", "--deadline 200", `"timeout": 300`} {
		if !strings.Contains(added, want) {
			t.Errorf("%s is gone", want)
		}
	}
}

// A client that comes, or goes, is written into the entries that are there.
func TestAddFollowsTheClient(t *testing.T) {
	h, _ := Find("codex")
	small := target
	small.Client = "/opt/stopgate/bin/stopgate-hook"
	before := mustAdd(t, h, nil)
	after, err := h.Add(before, h.Entries(small))
	if err != nil || !strings.Contains(string(after), `"/opt/stopgate/bin/stopgate-hook --protocol codex`) || strings.Contains(string(after), "stopgate hook") {
		t.Errorf("%v\n%s", err, after)
	}
	back, err := h.Add(after, h.Entries(target))
	if diff := cmp.Diff(string(before), string(back)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if rest, alone, err := h.Remove(after); err != nil || !alone {
		t.Errorf("%v, Remove leaves %s", err, rest)
	}
}

// What a URL cannot say stays with the program that it was said to.
func TestAddKeepsTheClientOfItsSettings(t *testing.T) {
	h, _ := Find("claude-code")
	content := []byte(`{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/opt/stopgate-hook --protocol claude-code --on-unreachable block"}]}]}}`)
	added, err := h.Add(content, h.Entries(target))
	if err != nil || !strings.Contains(string(added), `"/opt/stopgate-hook --protocol claude-code --agent marker --server http://127.0.0.1:8790 --on-unreachable block"`) {
		t.Errorf("%v\n%s", err, added)
	}
}
