package nearest

import "testing"

// A word that is the beginning of one legal word alone is taken for it.
func TestDidYouMean(t *testing.T) {
	legal := []string{"claude-code", "codex", "gemini-cli", "copilot", "qwen-code", "qwen-max"}
	for word, want := range map[string]string{
		"claude": `; did you mean "claude-code"?`, "claudecode": `; did you mean "claude-code"?`, "Gemini": `; did you mean "gemini-cli"?`,
		"copliot": `; did you mean "copilot"?`, "qwen": "", "co": "", "": "", "emacs": "",
	} {
		if got := DidYouMean(word, legal); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
