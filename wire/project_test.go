package wire

import "testing"

// The project that a URL names is where the agent works, if nothing else says it: of
// antigravity no payload ever does.
func TestProjectStandsForCwd(t *testing.T) {
	for _, tt := range []struct {
		name, protocol, payload string
		opt                     Options
		want                    string
	}{
		{"antigravity", "antigravity", `{"tool_call":{"name":"code_execution","args":{}}}`, Options{Event: "pre_tool_execution", Project: "/p"}, "/p"},
		{"antigravity with a directory", "antigravity", `{}`, Options{Event: "pre_tool_execution", Project: "/p", Cwd: "/p/sub"}, "/p/sub"},
		{"a payload that says it", "claude-code", `{"hook_event_name":"Stop","cwd":"/p/sub"}`, Options{Project: "/p"}, "/p/sub"},
		{"a payload that does not", "claude-code", `{"hook_event_name":"Stop"}`, Options{Project: "/p"}, "/p"},
		{"nobody", "codex", `{"hook_event_name":"Stop"}`, Options{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := Find(tt.protocol)
			if ev, err := p.Decode([]byte(tt.payload), tt.opt); err != nil || ev.Cwd != tt.want {
				t.Errorf("%v: cwd %q, want %q", err, ev.Cwd, tt.want)
			}
		})
	}
}
