package commandhooks

import (
	"os"
	"sync"
	"time"

	"stopgate/gate"
)

// streams are a hook's standard input, output and error as pipes, since that
// is what scripts test for and open by /dev/stdin.
type streams struct {
	child   [3]*os.File
	input   *os.File // nil: all of it is in the pipe already
	content []byte
	outputs [2]*capture
	pumps   sync.WaitGroup
}

// open makes the pipes. What has a process that was started ahead needs no others,
// and they are a good part of what such a hook costs.
func (s *streams) open() (err error) {
	if s.child[0], s.input, err = os.Pipe(); err != nil {
		return err
	}
	for i := range s.outputs {
		s.outputs[i] = &capture{}
		if s.outputs[i].pipe, s.child[i+1], err = os.Pipe(); err != nil {
			s.close()
			return err
		}
	}
	return nil
}

// openFor makes the pipes for a job that is about to be started with them, and has
// its input in them as far as they hold it. A second time, after a start in vain, does
// nothing.
func (s *streams) openFor(j job) *gate.Failure {
	if s.child[0] != nil {
		return nil
	}
	if err := s.open(); err != nil {
		return failed(gate.Internal, "pipes for the hook: %v", err)
	}
	s.feed(j.stdin)
	return nil
}

// feed gives the hook its input; what the pipe does not hold is left to pump.
func (s *streams) feed(stdin []byte) {
	s.content = stdin[writeNow(s.input, stdin):]
	if len(s.content) == 0 {
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
		s.input = nil
	}
	for _, c := range s.outputs {
		if c != nil && c.pipe != nil {
			c.pipe.Close()
		}
	}
}

// pump moves bytes until finish, but those of an output that is attended. That a
// script does not read its input is no error (spec/azure.md 40).
func (s *streams) pump(attended bool) {
	if s.input != nil {
		input := s.input
		s.pumps.Go(func() {
			_, _ = input.Write(s.content)
			input.Close()
		})
	}
	if attended {
		return
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
	if s.outputs[0] == nil { // never opened
		return text{}, text{}
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

// drain reads what is in the pipe now, without waiting, and sees if that is the end.
// A pipe holds at most 1 MiB, so a background process that floods cannot keep it here.
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
				c.atEnd = n == 0 && err == nil
				return
			}
			total += n
			c.keep(buf[:n])
		}
	})
}
