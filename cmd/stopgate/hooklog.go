package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/redact"
)

// hookFailure is one line of hook.log: a call of `stopgate hook` that could
// not ask, of which its host hears nothing.
type hookFailure struct {
	Time     time.Time      `json:"time"`
	Protocol string         `json:"protocol"`
	Agent    string         `json:"agent"`
	Event    gate.EventName `json:"event,omitempty"`
	// Answer is what the host was told, allow or block; empty: what the gate
	// decided without what failed.
	Answer string `json:"answer,omitempty"`
	Cause  string `json:"cause"`
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
func (h *hookCall) failed(cause error, answer string) {
	if h.byHand {
		fmt.Fprintf(visible{h.stderr}, "stopgate: %s\n", cause)
	}
	path := hookLog(h.Data, h.getenv)
	if path == "" || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	if about, err := os.Stat(path); err == nil && about.Size() > maxHookLog {
		_ = os.Rename(path, path+".1")
	}
	line, err := json.Marshal(hookFailure{time.Now().UTC(), h.Protocol, h.options.Agent, h.event.Name, answer, gate.CutEvidence(cause.Error())})
	if err != nil {
		return
	}
	redactor, err := redact.New(redact.BuiltIn(), nil, nil)
	if err != nil {
		return
	}
	line = redactor.JSON(line)
	// A named pipe without a reader is an error then, and no wait.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.Write(append(line, '\n'))
}
