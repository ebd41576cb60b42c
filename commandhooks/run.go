package commandhooks

import (
	"context"
	"os"
	"sync"
	"time"

	"stopgate/gate"
)

// keepBytes is how much of each stream is kept; the rest is read and thrown
// away, so that a flood neither blocks the script nor fills the memory.
const keepBytes = 1 << 20

// A launcher starts a job with its three standard streams, or with streams that
// it has already. A failure means that no line of the hook was run.
type launcher func(ctx context.Context, j job, stdio [3]*os.File) (*process, *gate.Failure)

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
	s, err := openStreams()
	if err != nil {
		return ending{}, failed(gate.Internal, "pipes for the hook: %v", err)
	}
	defer func() { s.close() }()
	s.feed(j.stdin)
	p, failure := start(ctx, j, s.child)
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
	s.pump()

	state, why := p.wait(ctx)
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
func (p *process) wait(ctx context.Context) (*os.ProcessState, killed) {
	ended := make(chan struct{})
	go func() {
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

// streams are a hook's standard input, output and error as pipes, since that
// is what scripts test for and open by /dev/stdin.
type streams struct {
	child   [3]*os.File
	input   *os.File // nil: all of it is in the pipe already
	content []byte
	outputs [2]*capture
	pumps   sync.WaitGroup
}

// pipeBytes fit in a pipe of the smallest usual size without a reader.
const pipeBytes = 4096

func openStreams() (*streams, error) {
	s := &streams{}
	var err error
	if s.child[0], s.input, err = os.Pipe(); err != nil {
		return nil, err
	}
	for i := range s.outputs {
		s.outputs[i] = &capture{}
		if s.outputs[i].pipe, s.child[i+1], err = os.Pipe(); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// feed gives the hook its input; what does not fit in the pipe is left to pump.
func (s *streams) feed(stdin []byte) {
	s.content = stdin
	if len(stdin) <= pipeBytes {
		_, _ = s.input.Write(stdin) // cannot block: a pipe takes this much
		s.input.Close()
		s.input = nil
	}
}

func (s *streams) closeChild() {
	for i, f := range s.child {
		if f != nil {
			f.Close()
			s.child[i] = nil
		}
	}
}

func (s *streams) close() {
	s.closeChild()
	if s.input != nil {
		s.input.Close()
	}
	for _, c := range s.outputs {
		if c != nil && c.pipe != nil {
			c.pipe.Close()
		}
	}
}

// pump moves bytes until finish. That a script does not read its input is no
// error (spec/azure.md 40).
func (s *streams) pump() {
	if s.input != nil {
		s.pumps.Go(func() {
			_, _ = s.input.Write(s.content)
			s.input.Close()
		})
	}
	for _, c := range s.outputs {
		s.pumps.Go(c.read)
	}
}

// finish stops the pumps after main has ended and takes what it had written
// and nobody had read yet: that lies in the pipe, so no waiting is needed, and
// later bytes of its children are not waited for.
func (s *streams) finish() (stdout, stderr text) {
	now := time.Now()
	if s.input != nil {
		s.input.SetWriteDeadline(now)
	}
	for _, c := range s.outputs {
		c.pipe.SetReadDeadline(now)
	}
	s.pumps.Wait()
	for _, c := range s.outputs {
		if !c.atEnd {
			c.drain()
		}
	}
	return s.outputs[0].text, s.outputs[1].text
}

// capture keeps the head of one output stream.
type capture struct {
	pipe  *os.File
	atEnd bool
	text
}

func (c *capture) read() {
	buf := make([]byte, 32<<10)
	for {
		n, err := c.pipe.Read(buf)
		c.keep(buf[:n])
		if err != nil {
			c.atEnd = !os.IsTimeout(err)
			return
		}
	}
}

func (c *capture) keep(b []byte) {
	if room := keepBytes - len(c.kept); len(b) > room {
		b, c.cut = b[:room], true
	}
	c.kept = append(c.kept, b...)
}

// drain reads what is in the pipe now, without waiting. A pipe holds at most
// 1 MiB, so a background process that floods cannot keep it here.
func (c *capture) drain() {
	conn, err := c.pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) { // what is lost by a closed pipe is gone
		buf := make([]byte, 32<<10)
		for total := 0; total < keepBytes; {
			n, err := readNow(int(fd), buf)
			if n <= 0 || err != nil {
				return
			}
			total += n
			c.keep(buf[:n])
		}
	})
}
