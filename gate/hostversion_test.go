package gate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlainVersion(t *testing.T) {
	long := strings.Repeat("9", maxVersion)
	for text, want := range map[string]string{
		"2.1.328": "2.1.328", "0.62.0-preview.1+build_7": "0.62.0-preview.1+build_7", "v1.0": "v1.0", "2.0-RC1": "2.0-RC1", long: long,
		"": "", long + "9": "", "2.1.328 (Claude Code)": "", "1.0\n": "", "1.0\x00": "", "1.0\x1b[2J": "", "1.0é": "", `1"`: "", "<b>": "", "1@2": "", "1[2": "", "1`2": "", "1{2": "",
	} {
		if got := PlainVersion(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := PlainVersion([]byte(text)); got != want {
			t.Errorf("bytes %q: %q, want %q", text, got, want)
		}
	}
}

// written is a transcript of a host's own.
type written struct {
	plainTranscript
	host, version string
}

func (w written) WrittenBy() (host, version string) { return w.host, w.version }

// plainTranscript is nobody's in particular.
type plainTranscript struct{ Transcript }

func (plainTranscript) Path() string    { return "" }
func (plainTranscript) RawPath() string { return "" }
func (plainTranscript) Close() error    { return nil }

// The record says which version of a host asked, and that it was not tried.
func TestRecordNamesTheHostsVersion(t *testing.T) {
	host := Event{Name: Stop, Protocol: "codex", Agent: "a", Session: "s", FinalOutput: "done", TranscriptPath: "/t"}
	named := host
	named.HostVersion = "3.0"
	native := host
	native.Protocol = Native
	for _, c := range []struct {
		name       string
		ev         Event
		transcript Transcript
		hooks      []Hook
		version    string
		untried    string
		attached   bool
	}{
		{"its transcript says so", host, written{host: "codex", version: "2.0"}, []Hook{{Name: "h"}}, "2.0", "codex 2.0 was not tried", true},
		{"a version that was tried", host, written{host: "codex", version: "1.0"}, []Hook{{Name: "h"}}, "1.0", "", true},
		{"what the request says itself wins", named, written{host: "codex", version: "2.0"}, []Hook{{Name: "h"}}, "3.0", "codex 3.0 was not tried", true},
		{"a transcript that names none", host, written{host: "codex"}, []Hook{{Name: "h"}}, "", "", true},
		{"a transcript of no host", host, plainTranscript{}, []Hook{{Name: "h"}}, "", "", true},
		{"another host's transcript", host, written{host: "qwen-code", version: "2.0"}, []Hook{{Name: "h"}}, "", "", true},
		{"a caller of the API that has a host's transcript", native, written{host: "codex", version: "2.0"}, []Hook{{Name: "h"}}, "", "", true},
		{"no transcript", host, nil, []Hook{{Name: "h"}}, "", "", true},
		{"no hook: no file is opened for the version", host, written{host: "codex", version: "2.0"}, nil, "", "", false},
		{"no hook, but a caller of the API is told what is wrong with its file", native, nil, nil, "", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMemory()
			g := newGate(m, answers{}, agent(c.hooks...))
			attached := false
			g.Transcripts = transcriptsFunc(func(*Event) (Transcript, error) { attached = true; return c.transcript, nil })
			g.Untried = func(protocol, version string) string {
				if version == "1.0" {
					return ""
				}
				return protocol + " " + version + " was not tried"
			}
			decide(t, g, c.ev)
			r := m.records[0]
			if r.HostVersion != c.version || r.HostUntried != c.untried || attached != c.attached {
				t.Errorf("version %q, %q, attached %t", r.HostVersion, r.HostUntried, attached)
			}
			if s := r.Summary(); s.HostVersion != c.version || s.HostUntried != c.untried {
				t.Errorf("the list says %q, %q", s.HostVersion, s.HostUntried)
			}
		})
	}
}

// A failure of the gate's own has the version that the request named, and a gate
// that has nobody to ask remarks nothing.
func TestFailureNamesTheHostsVersion(t *testing.T) {
	m := newMemory()
	ev := stop("s")
	ev.HostVersion = "2.0"
	newGate(m, answers{}).Fail(t.Context(), ev, &Failure{Code: Overloaded})
	text, err := json.Marshal(m.records[0].Summary())
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]any{"2.0", nil}, []any{got["host_version"], got["host_untried"]}); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
