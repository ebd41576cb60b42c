//go:build unix && !linux

package commandhooks

import (
	"context"
	"runtime"
)

func (r *Runner) enterBubblewrap(context.Context) {
	r.status.Reason = "there is no bubblewrap on " + runtime.GOOS + ": command hooks need sandbox mode process, which is no sandbox and has to be chosen"
}
