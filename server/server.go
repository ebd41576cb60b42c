// Package server is stopgate's HTTP side: the routes of DESIGN §5, the checks
// every request passes, and the one place that turns an error into an answer.
//
// A request goes through around (request id, Host and Origin, panics, errors,
// metrics), then its route's guard (who may use it) and content-type check, then
// one handler, which returns an error or answers. Nothing here decides an event: POST
// /v1/evaluate reads the body, decodes it, calls [gate.Gate.Decide] and writes
// what it said.
package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// Options are what a server is made of. Every field without a default stated
// is required.
type Options struct {
	Gate        *gate.Gate // its Observe should be Metrics.Observe
	Store       gate.Store
	StoreName   string // which store that is, shown by /readyz
	Transcripts Transcripts
	Metrics     *Metrics

	// Decode reads the body of POST /v1/evaluate. Errors are a [*gate.Error]
	// with CodeInvalidJSON or CodeValidation. The event may alias body until
	// Decide has returned.
	Decode func(body []byte) (gate.Event, error)
	// ReadSpec reads one resource of a known kind. contentType is a media type
	// without parameters. A document with errors is told either by error
	// findings or by a [*gate.Error] with CodeValidation or
	// CodeInvalidObjectType; warnings are findings beside a spec.
	ReadSpec func(kind gate.SpecKind, contentType string, body []byte) (*gate.Spec, []gate.Finding, error)
	// ReadAny is ReadSpec for a document that says its kind itself.
	ReadAny func(contentType string, body []byte) (*gate.Spec, []gate.Finding, error)
	// DialectOf says whose hooks JSON is, by its form; name is empty.
	DialectOf func(name string, body []byte) (gate.Dialect, error)
	// ReadAttached reads an agent's hooks in another dialect than azure, and
	// ReadNetwork what its http hooks may reach: JSON both. The spec is nil where a
	// finding is an error.
	ReadAttached func(d gate.Dialect, agent string, body []byte) (*gate.Spec, []gate.Finding)
	ReadNetwork  func(agent string, body []byte) (*gate.Spec, []gate.Finding)
	// HideSecrets is the document of a network, or of hooks in another dialect than
	// azure, as an answer may have it: an object, with a mark for each secret.
	HideSecrets func(kind gate.SpecKind, document json.RawMessage) json.RawMessage
	// CheckName says what is wrong with a name of an agent that something is stored
	// under; nil: nothing.
	CheckName func(what, name string) error
	// EventName is what the system of a dialect calls an event.
	EventName func(d gate.Dialect, event gate.EventName) string
	// Unasked reports whether this server could not ask a hook, as it is now; nil: it
	// could ask each.
	Unasked func(h *gate.Hook) bool
	// Unserved are warnings about what this server cannot do for the hooks of a
	// document without errors, each with what helps and the place in the document
	// that it was read from; nil: there are none.
	Unserved func(spec *gate.Spec, document []byte) []gate.Finding
	// Protocol finds a host's protocol by its name; ProtocolNames lists them.
	// nil: /v1/hooks knows none.
	Protocol      func(name string) (HostProtocol, bool)
	ProtocolNames []string
	// Schemas are the JSON Schemas of the files that people write, by name; nil:
	// there are none.
	Schemas map[string][]byte
	// Ready reports on what evaluations need beside the store: "sandbox",
	// "models". It is shown by /readyz and decides nothing; nil: nothing to
	// show.
	Ready func(ctx context.Context) map[string]Check

	// Forget drops what this process remembers of a session that is erased, beside
	// the store and the transcripts; nil: nothing is.
	Forget func(session string)

	// Login finds out who sends a request; nil: there is no login, and everybody
	// may do everything.
	Login Login
	// TLS is how connections are made; nil: in the clear. Its GetConfigForClient
	// or Certificates have the server's own.
	TLS *tls.Config
	// MintKey makes a new API key: its ID, the key itself, and the sum of its
	// secret; nil: none can be made here.
	MintKey func() (id, key string, hash [32]byte)

	// Trace begins the trace of one evaluation, with the caller's headers; nil:
	// there are none. The gate decides with the context it answers, and end is
	// called once with what became of the event; with neither a decision nor an
	// error the gate panicked.
	Trace func(ctx context.Context, header http.Header, ev *gate.Event) (_ context.Context, end func(*gate.Decision, error))

	Log     *slog.Logger // nil: nothing is logged
	Version string       // shown by /readyz

	// Loopback says that the listener is on a loopback address: then a request
	// must name this machine, or one of Hosts, in its Host header.
	Loopback bool
	// Hosts are names this server is reached by, without a port. On any
	// address, if there are some, a Host that is a name must be one of them.
	Hosts []string
	// Origins are origins of web pages that may call, as "https://host:port".
	Origins []string

	Limits Limits
	// ShutdownGrace is how long running evaluations may go on once Serve's
	// context has ended; 0 = 30 s.
	ShutdownGrace time.Duration
}

// Limits bound what one request, and all together, may take. All but
// BufferedBytes are required.
type Limits struct {
	BodyBytes       int64 // body of an evaluation
	SpecBytes       int64 // a spec
	TranscriptBytes int64 // one upload, streamed
	// BufferedBytes is what the large bodies of all evaluations that run may take
	// together, one credential's half of it, and half of it more the small ones; 0 = 128 MiB,
	// or four times BodyBytes if that is more. Beyond it: overloaded. An evaluation needs some
	// nine times its body: the fields, each hook's context, the request to a model.
	BufferedBytes int64
	// InFlight is how many evaluations run at once, three quarters of them one
	// credential's. Beyond it: overloaded.
	InFlight int64
}

// Check is the state of one thing that evaluations need.
type Check struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // why not, or what to know
}

// FilePart says where a part of a host's session file belongs.
type FilePart struct {
	Format string // the host's protocol
	At     int64  // the byte of the file that it begins at
	After  string // the sum of the file's last 4 KiB before that
	Then   string // the same before the part's end; empty: it was not said
}

// Transcripts keeps the uploaded conversations. A session without one is
// CodeNotFound, an upload that may not be is another [*gate.Error].
type Transcripts interface {
	// Replace stores r as the session's conversation; contentType is
	// text/plain, application/x-ndjson or application/json. It answers the
	// size of what is stored now. What could not be read whole changes nothing. seen
	// is the session's last erasure from before anything was done for the upload:
	// [gate.ErrErased], there was a later one, and nothing is kept.
	Replace(ctx context.Context, session string, seen gate.Erasure, contentType string, r io.Reader) (bytes, lines int64, err error)
	// Append adds r to it, in the same manner.
	Append(ctx context.Context, session string, seen gate.Erasure, contentType string, r io.Reader) (bytes, lines int64, err error)
	// AppendFile adds a part of a host's session file; from the file's start on it
	// replaces what was there. Of an unfinished last line it may take nothing, which the
	// size says. CodeConflict: something else is there than what the part goes on from.
	AppendFile(ctx context.Context, session string, seen gate.Erasure, p FilePart, r io.Reader) (bytes, lines int64, err error)
	// Read opens the text, without secrets.
	Read(ctx context.Context, session string) (text io.ReadCloser, bytes, lines int64, err error)
	// ReadFor opens the text of what a record's hooks could read of its uploaded
	// conversation: as they read it, or without secrets; asText says that some of it
	// is as it was sent. CodeConflict: it is no longer what it was.
	ReadFor(ctx context.Context, r gate.Record, original bool) (text io.ReadCloser, asText bool, err error)
	// WriteMessages writes a text of ReadFor's as messages, a JSON object a line. It
	// must not be one of which some is as it was sent.
	WriteMessages(w io.Writer, text io.Reader) error
	// Erase removes it; nothing to remove is no error.
	Erase(ctx context.Context, session string) error
}

// Server answers HTTP.
type Server struct {
	opt     Options
	log     *slog.Logger
	echo    *echo.Echo
	metrics *Metrics

	buffers  sync.Pool // of *bytes.Buffer; see buffers.go for who owns one
	rooms    *rooms
	peeking  atomic.Int64 // bodies whose beginning is read though there is no room
	refusing atomic.Int64 // refusals that wait for their record
	specs    sync.Mutex   // held over store and policies, so that both change in one order
	// unreadable are the ETags of stored specs that are not valid any more, which
	// was logged. Under specs.
	unreadable map[resource]string

	requests  atomic.Uint64 // for request ids
	idPrefix  string
	draining  atomic.Bool
	running   context.Context // ends when running evaluations must end
	endRun    context.CancelFunc
	pace      time.Duration // how long a body may take, a streamed one stand still
	leaseTime time.Duration // of an idempotency key
	taking    time.Duration // how long an upload may take altogether
}

// New checks the options and makes a server that serves nothing yet.
func New(opt Options) (*Server, error) {
	if opt.Gate == nil || opt.Gate.Policies == nil || opt.Store == nil || opt.Transcripts == nil || opt.Metrics == nil ||
		opt.Decode == nil || opt.ReadSpec == nil || opt.ReadAny == nil || opt.DialectOf == nil || opt.ReadAttached == nil || opt.ReadNetwork == nil || opt.HideSecrets == nil || opt.CheckName == nil || opt.EventName == nil {
		return nil, errors.New("server: Gate, its Policies, Store, Transcripts, Metrics, Decode, DialectOf, every Read, HideSecrets, CheckName and EventName are required")
	}
	l := &opt.Limits
	l.BufferedBytes = cmp.Or(l.BufferedBytes, max(128<<20, 4*l.BodyBytes))
	if min(l.BodyBytes, l.SpecBytes, l.TranscriptBytes, l.BufferedBytes, l.InFlight) <= 0 {
		return nil, fmt.Errorf("server: every limit must be more than 0: %+v", *l)
	}
	opt.ShutdownGrace = cmp.Or(opt.ShutdownGrace, 30*time.Second)
	if opt.Protocol == nil {
		opt.Protocol = func(string) (HostProtocol, bool) { return nil, false }
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	var random [4]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	s := &Server{opt: opt, log: opt.Log, metrics: opt.Metrics, rooms: newRooms(*l), idPrefix: hex.EncodeToString(random[:]) + "-",
		pace: 60 * time.Second, leaseTime: 30 * time.Second, taking: 12 * time.Hour}
	s.metrics.limit.Set(float64(l.InFlight))
	s.metrics.build.WithLabelValues(opt.Version).Set(1)
	s.running, s.endRun = context.WithCancel(context.Background())
	s.echo = echo.New()
	s.echo.HTTPErrorHandler = s.writeError
	s.echo.Use(s.around)
	for _, r := range s.routes() {
		s.echo.Add(r.method, r.path, s.handler(r))
		if r.method == http.MethodGet {
			s.echo.Add(http.MethodHead, r.path, s.handler(r))
		}
	}
	return s, nil
}

// Handler answers every route; it may be used without Serve.
func (s *Server) Handler() http.Handler { return s.echo }
