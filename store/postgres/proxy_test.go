package postgres

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"stopgate/store/postgres/postgrestest"
)

// proxy stands between stores and their server, and does what networks do.
type proxy struct {
	listener net.Listener
	server   string // its socket

	mu      sync.Mutex
	conns   map[net.Conn]bool
	refuse  bool
	freeze  bool
	watch   func(fromClient []byte) fate
	holding sync.WaitGroup
}

// fate is what becomes of bytes on their way to the server.
type fate int

const (
	pass       fate = iota
	cutBefore       // the server never gets them
	cutAnswer       // the server gets them, and its answer is lost
	cutAnswers      // as cutAnswer, and nobody connects any more
)

// through answers the URL of a database behind a proxy.
func through(t *testing.T, database string) (*proxy, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: postgrestest.Socket(t, database), conns: map[net.Conn]bool{}}
	p.holding.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.cut()
		p.holding.Wait()
	})
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.Host, u.RawQuery = l.Addr().String(), "sslmode=disable"
	return p, u.String()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refuse := p.refuse
		p.mu.Unlock()
		if refuse {
			client.Close()
			continue
		}
		server, err := net.Dial("unix", p.server)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.holding.Go(func() { p.forward(client, server) })
		p.holding.Go(func() {
			p.answer(server, client)
			client.Close()
			server.Close()
		})
	}
}

// forward carries what a client says.
func (p *proxy) forward(client, server net.Conn) {
	defer client.Close()
	defer server.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		doomed := pass
		if p.watch != nil {
			doomed = p.watch(buf[:n])
		}
		p.mu.Unlock()
		switch doomed {
		case cutBefore:
			return
		case cutAnswer, cutAnswers:
			p.mu.Lock()
			p.refuse = doomed == cutAnswers
			for c := range p.conns {
				if doomed == cutAnswers && c != server {
					c.Close()
				}
			}
			p.mu.Unlock()
			client.Close()
			_, _ = server.Write(buf[:n])
			_, _ = io.Copy(io.Discard, io.LimitReader(server, 1)) // the server has done it
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// answer carries what the server says, or lets it wait for ever.
func (p *proxy) answer(server, client net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		frozen := p.freeze
		p.mu.Unlock()
		if frozen {
			continue
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// set changes what the proxy does.
func (p *proxy) set(change func(p *proxy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// cut ends every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

// once watches for the first message that has the words in it.
func once(words string, what fate) func([]byte) fate {
	done := false
	return func(b []byte) fate {
		if done || !bytes.Contains(b, []byte(words)) {
			return pass
		}
		done = true
		return what
	}
}
