package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"stopgate/config"
	"stopgate/gate"
)

// hookFailure is one line of hook.log: a call of `stopgate hook` that could
// not ask, of which its host hears nothing.
type hookFailure struct {
	Time     time.Time      `json:"time"`
	Protocol string         `json:"protocol"`
	Agent    string         `json:"agent"`
	Event    gate.EventName `json:"event,omitempty"`
	Answer   string         `json:"answer"` // allow or block
	Cause    string         `json:"cause"`
}

// visible keeps what others wrote into a cause from steering the terminal.
func visible(r rune) rune {
	if unicode.IsControl(r) && r != '\n' {
		return '�'
	}
	return r
}

// maxHookLog is the size at which hook.log becomes hook.log.1.
const maxHookLog = 1 << 20

// hookLog is the file that calls without an answer leave a line in; empty if
// there is no place for it.
func hookLog(data string, getenv func(string) string) string {
	if data == "" {
		data = config.DefaultData(getenv)
	}
	if data == "" {
		return ""
	}
	return filepath.Join(data, "hook.log")
}

// failed leaves a line, where that is possible: a full disk is no reason to
// answer otherwise. On a terminal it says the cause: no host reads it there.
func (h *hookCall) failed(cause error) {
	if h.byHand {
		fmt.Fprintf(h.stderr, "stopgate: %s\n", strings.Map(visible, cause.Error()))
	}
	path := hookLog(h.Data, h.getenv)
	if path == "" || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	if about, err := os.Stat(path); err == nil && about.Size() > maxHookLog {
		_ = os.Rename(path, path+".1")
	}
	line, err := json.Marshal(hookFailure{time.Now().UTC(), h.Protocol, h.options.Agent, h.event.Name, h.OnUnreachable, gate.CutEvidence(cause.Error())})
	if err != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.Write(append(line, '\n'))
}
