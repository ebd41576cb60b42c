package hookclient

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"stopgate/gate"
	"stopgate/internal/datadir"
	"stopgate/internal/terminal"
	"stopgate/redact"
)

// failure is one line of hook.log: a call that could not ask, of which its host
// hears nothing.
type failure struct {
	Time     time.Time      `json:"time"`
	Protocol string         `json:"protocol"`
	Agent    string         `json:"agent"`
	Event    gate.EventName `json:"event,omitempty"`
	// Answer is what the host was told, allow or block; empty: what the gate
	// decided without what failed.
	Answer string `json:"answer,omitempty"`
	Cause  string `json:"cause"`
}

// maxLog is the size at which hook.log becomes hook.log.1.
const maxLog = 1 << 20

// dir is the data directory; empty if there is no place for one.
func (c *call) dir() string { return cmp.Or(c.Data, datadir.Default(c.Getenv)) }

// failed leaves a line, where that is possible: a full disk is no reason to
// answer otherwise. On a terminal it says the cause: no host reads it there.
func (c *call) failed(cause error, answer string) {
	if c.byHand {
		fmt.Fprintf(c.Stderr, "stopgate: %s\n", terminal.Visible(cause.Error()))
	}
	dir := c.dir()
	if dir == "" || os.MkdirAll(dir, 0o700) != nil {
		return
	}
	path := filepath.Join(dir, "hook.log")
	if about, err := os.Stat(path); err == nil && about.Size() > maxLog {
		_ = os.Rename(path, path+".1")
	}
	line, err := json.Marshal(failure{time.Now().UTC(), c.Protocol, c.options.Agent, c.event.Name, answer, gate.CutEvidence(cause.Error())})
	if err != nil {
		return
	}
	redactor, err := redact.New(redact.BuiltIn(), nil, nil)
	if err != nil {
		return
	}
	line = terminal.InJSON(redactor.JSON(line))
	// A named pipe without a reader is an error then, and no wait.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.Write(append(line, '\n'))
}
