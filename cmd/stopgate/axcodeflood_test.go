package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestAXCodeDenialsInAFlood: of more calls at once than AX Code's four places take
// in the time that their host leaves, none gets past a hook that denies.
func TestAXCodeDenialsInAFlood(t *testing.T) {
	for name, hooks := range map[string]string{
		"answers":             `{"event":"PreToolUse","protocol":"claude-code","command":"sleep 1; echo no >&2; exit 2"}`,
		"blocks on failure":   `{"event":"PreToolUse","blockOnFailure":true,"command":"sleep 1; exit 1"}`,
		"answers after a log": `{"event":"PreToolUse","command":"sleep 1"},{"event":"PreToolUse","protocol":"claude-code","command":"echo no >&2; exit 2"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.want(202, "PUT", "/v1/agents/a/hooks?dialect=ax-code", `{"hooks":[`+hooks+`]}`)
			var all sync.WaitGroup
			for i := range 16 {
				all.Go(func() {
					_, answer := s.do(http.MethodPost, "/v1/hooks/claude-code?agent=a&deadline=3", "application/json",
						fmt.Appendf(nil, `{"session_id":"s%d","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`, i))
					if !strings.Contains(string(answer), `"permissionDecision":"deny"`) {
						t.Errorf("call %d passed: %s", i, answer)
					}
				})
			}
			all.Wait()
		})
	}
}
