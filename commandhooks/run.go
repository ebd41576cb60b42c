package commandhooks

import (
	"context"
	"os"
	"time"

	"stopgate/gate"
)

// keepBytes is how much of each stream is kept; the rest is read and thrown
// away, so that a flood neither blocks the script nor fills the memory.
const keepBytes = 1 << 20

// A launcher starts a job with these streams, which it has opened, or with streams
// that it has already. A failure means that no line of the hook was run.
type launcher func(ctx context.Context, j job, s *streams) (*process, *gate.Failure)

// process is a hook's main process after it was started.
type process struct {
	main mainProcess
	// kill ends every process of the hook that can be reached; it may be
	// called more than once, and before main was waited for.
	kill func()
	// read says how main ended, from what its launcher knows of it. A failure
	// means that the launcher's own work went wrong.
	read func(state *os.ProcessState, e *ending) *gate.Failure
	// clear gives back what the launcher holds.
	clear func()
	// used is how much memory all processes of the hook hold now, in bytes, and
	// limit how much they may.
	used  func() int64
	limit int64
	lost  bool // the hook was not shown its transcript
	ahead bool // something of it was started before the hook was
	// streams are those of a process that was started ahead, which has its input
	// from there; nil: those that its launcher was given.
	streams *streams
}

// mainProcess is what a hook's end is the end of.
type mainProcess interface {
	await()      // returns when it has ended, and leaves it to be waited for
	Kill() error // ends it, or at least await
	Wait() (*os.ProcessState, error)
}

// teller is a main process whose end, or the word of it, is read from a descriptor, so
// that who waits for it can read the streams as well.
type teller interface{ tells() *os.File }

// child is one that the gate started itself.
type child struct{ *os.Process }

func (c child) await() { awaitEnd(c.Pid) }

// How much memory a hook uses is looked at from watchAfter on: most hooks have
// ended by then. Between two looks a machine fills some 100 MiB. A look at
// hundreds of processes takes longer, and then at most a tenth of the time.
// What is too much has to be so after confirmAfter still: between fork and exec
// a program counts twice.
const (
	watchAfter   = 20 * time.Millisecond
	watchEvery   = 25 * time.Millisecond
	confirmAfter = 5 * time.Millisecond
)

// killGrace is how long a killed process may take to be gone. It is dead at
// once unless it hangs in the kernel; with it the answer comes well within a
// second of the timeout (spec/azure.md 43).
const killGrace = 500 * time.Millisecond

// run starts the job, feeds and reads its streams, and waits for the main
// process or for ctx, whichever ends first. Nothing that it started is left
// when it returns, except what has escaped from a process group in mode
// process.
func run(ctx context.Context, start launcher, j job) (ending, *gate.Failure) {
	if ctx.Err() != nil {
		return ending{timedOut: true}, nil
	}
	began := time.Now()
	s := &streams{}
	defer func() { s.close() }()
	p, failure := start(ctx, j, s)
	s.closeChild()
	if failure != nil {
		if ctx.Err() != nil {
			return ending{timedOut: true, after: time.Since(began)}, nil
		}
		_, said := s.finish() // what the launcher's own program had to say
		failure.Message += ending{stderr: said}.lastWords()
		return ending{}, failure
	}
	defer p.clear()
	if p.streams != nil {
		s.close()
		s = p.streams
	}

	state, why := p.wait(ctx, s)
	e := ending{timedOut: why == outOfTime, after: time.Since(began), lost: p.lost}
	e.stdout, e.stderr = s.finish()
	switch why {
	case outOfTime:
		return e, nil
	case outOfMemory:
		e.signal, e.overMemory = "SIGKILL", p.limit
		return e, nil
	}
	return e, p.read(state, &e)
}

// killed says why a hook did not end by itself.
type killed int

const (
	notKilled killed = iota
	outOfTime
	outOfMemory
)

// wait returns when main has ended. It has nothing more to wait for than that:
// who still holds a pipe does not matter (spec/azure.md 43).
func (p *process) wait(ctx context.Context, s *streams) (*os.ProcessState, killed) {
	ended := make(chan struct{})
	told, tells := p.main.(teller)
	s.pump(tells)
	go func() {
		if tells {
			s.attend(told.tells())
		}
		p.main.await()
		close(ended)
	}()
	why := p.watch(ctx, ended)
	if why != notKilled {
		p.kill()
		select {
		case <-ended:
		case <-time.After(killGrace):
			p.main.Kill()
			<-ended
		}
	}
	// Main has ended and still holds its process id, so that nobody else's
	// group is killed here.
	p.kill()
	state, _ := p.main.Wait()
	return state, why
}

// watch returns when main has ended or the hook has to be killed.
func (p *process) watch(ctx context.Context, ended <-chan struct{}) killed {
	look := time.NewTimer(watchAfter)
	defer look.Stop()
	tooMuch := false
	for {
		var why killed
		select {
		case <-ended:
			return notKilled
		case <-ctx.Done():
			why = outOfTime
		case <-look.C:
			began := time.Now()
			before := tooMuch
			if tooMuch = p.used() > p.limit; !tooMuch {
				look.Reset(max(watchEvery, 9*time.Since(began)))
				continue
			}
			if !before {
				look.Reset(confirmAfter)
				continue
			}
			why = outOfMemory
		}
		select {
		case <-ended: // in the same moment: it did end by itself
			return notKilled
		default:
			return why
		}
	}
}
