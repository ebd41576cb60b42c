package config

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"

	"stopgate/gate"
)

const (
	// settleTime lets an editor finish: it writes in several steps, and
	// replaces by renaming.
	settleTime = 100 * time.Millisecond
	// pollTime finds what no notice came of: network file systems, a directory
	// that was replaced, a full notice queue.
	pollTime = 2 * time.Second
)

// WatchSpecs loads the spec files of a directory and calls report, at once and
// after every change, until ctx ends; then it returns nil. It is an error if
// the directory cannot be read at the start. See [Dir] for what is read, and
// [Dir.Load] for what report gets.
//
// report is called from this goroutine, never twice at a time.
func WatchSpecs(ctx context.Context, dir string, report func(specs []*gate.Spec, findings map[string][]gate.Finding)) error {
	d := OpenDir(dir)
	// The watch begins before the first reading, so that no change is lost
	// between them.
	notices := newNotices(dir)
	defer notices.close()
	seen := d.fingerprint()
	specs, findings, _ := d.Load()
	if d.err != nil {
		return gate.Errorf(gate.CodeValidation, "agents directory %q cannot be read: %w", dir, d.err)
	}
	report(specs, findings)

	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-notices.events:
		case <-notices.errors: //nolint:errcheck // an overflow: something has changed
		case <-poll.C:
			if d.fingerprint() == seen {
				continue
			}
			notices.renew() // the directory may be another one now
		case <-settled:
			settled = nil
			seen = d.fingerprint()
			if specs, findings, changed := d.Load(); changed {
				report(specs, findings)
			}
			continue
		}
		if settled == nil { // later notices do not put it off: a busy directory must not starve
			settled = time.After(settleTime)
		}
	}
}

// notices are the system's word that a directory has changed. Where the system
// gives none (no watches left), the channels stay silent and polling serves.
type notices struct {
	dir     string
	watcher *fsnotify.Watcher // nil: none to be had
	events  chan fsnotify.Event
	errors  chan error
}

func newNotices(dir string) *notices {
	n := &notices{dir: dir}
	if w, err := fsnotify.NewWatcher(); err == nil {
		n.watcher, n.events, n.errors = w, w.Events, w.Errors
		n.renew()
	}
	return n
}

// renew watches what is at the path now. It may fail as the directory may be
// gone; polling calls it again when there is one.
func (n *notices) renew() {
	if n.watcher != nil {
		_ = n.watcher.Remove(n.dir)
		_ = n.watcher.Add(n.dir)
	}
}

func (n *notices) close() {
	if n.watcher != nil {
		n.watcher.Close()
	}
}
