package commandhooks

import (
	"testing"
	"time"
)

// warmRunner starts sandboxes ahead.
func warmRunner(t testing.TB, opt Options) *Runner {
	t.Helper()
	opt.Ahead = 64 << 20
	r := newRunner(t, opt)
	t.Cleanup(r.Close)
	if r.ahead == nil {
		t.Fatal("no sandbox is started ahead")
	}
	return r
}

func TestWarmSmoke(t *testing.T) {
	r := warmRunner(t, Options{})
	for _, script := range []string{"echo hi >&2; exit 2", python + "import sys, json\nprint('hi', file=sys.stderr)\nsys.exit(2)"} {
		for i := range 4 {
			v := ask(t, r, script)
			t.Log(i, show(v), r.Use())
			time.Sleep(300 * time.Millisecond)
		}
	}
}
