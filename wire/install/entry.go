package install

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"stopgate/gate"
	"stopgate/internal/loopback"
	"stopgate/wire/contracts"
)

// Target is what the entries are to reach.
type Target struct {
	Agent   string // the agent spec's name; empty: [gate.DefaultAgent]
	Server  string // the server's URL, without a secret
	Program string // the absolute path of stopgate
	// Client is that of stopgate-hook, which commands then call; empty: they call
	// `stopgate hook`.
	Client string

	// Keyed: the server wants a key. It is never written into a host's file,
	// so every entry is then the command, which has it from its environment.
	Keyed bool
}

// Entry is one hook of stopgate's in a host's file.
type Entry struct {
	Event   string // as the host's file calls it
	Matcher string // of the entry's group; empty: none

	URL     string // of an http hook …
	Command string // … or the command
	// Timeout is the host's for this hook; 0: the host's own default.
	Timeout time.Duration

	// What the URL or the command says: which agent is asked, and where. Agent
	// is "default" where none is named, Server empty where the environment
	// decides. Local: specs are read from files, no server is asked.
	// Deadline is when the gate answers at the latest.
	Agent, Server string
	Local         bool
	// Own: it names files of its own to decide by, as a server file.
	Own      bool
	Deadline time.Duration

	// Program is what the command starts: with `hook`, or as stopgate-hook. Plain:
	// the command is that one call, of words that no shell has to work out, and
	// nothing else.
	Program string
	Plain   bool

	start  []string // the words that start us, before the flags
	extra  []string // flags of the command's own that are not init's to choose
	unread bool     // its answer is not read there
	bends  []string // keys beside it by which a host runs it otherwise, or not

	// Where it was found. File and Scope are the caller's to fill in.
	File  string
	Scope Scope
	Line  int // from 1
}

// HTTP reports whether the host is to call a URL.
func (e Entry) HTTP() bool { return e.URL != "" }

// hostTimeout is what a host gives one of our entries: well above the gate's
// own deadline (DESIGN §5), so that the gate's answer comes first.
const (
	hostTimeout  = 60 * time.Second
	gateDeadline = 25 * time.Second
)

// Entries are what belongs into the host's file: one for each event that hooks
// can be about, as an http hook where the host was seen to call one on this
// machine (EFFECTS §1), else as the command. There is no matcher: on events
// without a tool one can keep a hook from running (fault gx-003), on the others
// the agent's own hooks have theirs.
func (h Host) Entries(t Target) []Entry {
	var entries []Entry
	for _, event := range h.events() {
		e := Entry{Event: event.Host, Timeout: hostTimeout, Deadline: gateDeadline, Agent: cmp.Or(t.Agent, gate.DefaultAgent), Server: strings.TrimRight(t.Server, "/")}
		if h.layout.flat {
			e.Timeout = axCodeTime
		}
		if event.HTTP && !t.Keyed && Loopback(t.Server) {
			// A literal URL: hosts expand no variables in it (fault http-03).
			e.URL = e.Server + hookRoute + h.Name + "?agent=" + url.QueryEscape(e.Agent)
		} else {
			e.Command = h.commandLine(t.start(), e)
		}
		entries = append(entries, e)
	}
	return entries
}

// start are the words that commands begin with.
func (t Target) start() []string {
	if t.Client != "" {
		return []string{t.Client}
	}
	return []string{t.Program, "hook"}
}

// events are the contract's events that entries are written for.
func (h Host) events() []contracts.Event {
	var events []contracts.Event
	for _, e := range h.Contract.Events {
		first, _ := utf8.DecodeRuneInString(e.Host)
		if e.Name != "" && (!h.layout.camelCase || unicode.IsLower(first)) {
			events = append(events, e)
		}
	}
	return events
}

// Event is the host's event that the gate calls name, as entries are written.
func (h Host) Event(name gate.EventName) (contracts.Event, bool) {
	for _, e := range h.events() {
		if e.Name == name {
			return e, true
		}
	}
	return contracts.Event{}, false
}

// commandLine is what the host hands to a shell. No secret is ever in it: hosts
// show it to the model (EFFECTS §4).
func (h Host) commandLine(start []string, e Entry) string {
	words := append(slices.Clone(start), "--protocol", h.Name)
	if h.layout.camelCase { // that form's payloads name no event
		words = append(words, "--event", e.Event)
	}
	words = append(words, "--agent", e.Agent)
	if e.Server != "" {
		words = append(words, "--server", e.Server)
	}
	for i, w := range words {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}

// quote writes a word for a POSIX shell.
func quote(word string) string {
	plain := func(r rune) bool {
		return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("/._-:=@%+,", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'"'"'`) + "'"
}

// Loopback reports whether a URL is plain http to this machine itself.
func Loopback(server string) bool {
	u, err := url.Parse(server)
	return err == nil && u.Scheme == "http" && loopback.Host(u.Hostname())
}

// readURL fills in what a URL of ours says; false: it is not one of a protocol that
// is meant. It is not parsed: one that no host can call, as with a variable for
// the port, is ours all the same, and doctor has something to say about it.
func (e *Entry) readURL(meant func(protocol string) bool) bool {
	base, query, _ := strings.Cut(e.URL, "?")
	q, _ := url.ParseQuery(query) // what of it can be read
	i := strings.LastIndex(base, hookRoute)
	if i <= 0 {
		return false
	}
	e.Server, e.Agent, e.Deadline = base[:i], cmp.Or(q.Get("agent"), gate.DefaultAgent), seconds(q.Get("deadline"))
	return meant(base[i+len(hookRoute):])
}

// hookRoute is what hosts call, with the name of their protocol after it.
const hookRoute = "/v1/hooks/"

// readCommand fills in what a command of ours says; false: it runs neither
// `stopgate hook` nor stopgate-hook for a protocol that is meant. It reads as a shell would, so that quotes,
// variables before the program and several commands are no obstacle.
func (e *Entry) readCommand(meant func(protocol string) bool) bool {
	file, err := parseCommand(e.Command)
	if err != nil {
		return false
	}
	found := false
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && !found {
			words, _ := wordsOf(call)
			found = e.readWords(words, meant)
		}
		return !found
	})
	if call := onlyCall(file); call != nil {
		words, literal := wordsOf(call)
		e.Plain = literal && len(words) > 1 && (words[1] == "hook" || isClient(words[0]))
	}
	return found
}

func parseCommand(text string) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
}

// onlyCall is the call that a command line consists of; nil: there is more.
func onlyCall(file *syntax.File) *syntax.CallExpr {
	if len(file.Stmts) != 1 {
		return nil
	}
	s := file.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Background || s.Negated || s.Coprocess || len(s.Redirs) > 0 || len(call.Assigns) > 0 {
		return nil
	}
	return call
}

// isClient reports whether a program is stopgate-hook.
func isClient(program string) bool { return programName(program) == "stopgate-hook" }

// programName is what a program is called, by a path of Windows too.
func programName(program string) string {
	name := program[strings.LastIndexAny(program, `/\`)+1:]
	return strings.TrimSuffix(strings.ToLower(name), ".exe")
}

// readWords reads `PROGRAM hook --protocol P …`, and the same without `hook` where
// the program is stopgate-hook. Else it may have any name: people rename it, and
// the rest is ours alone.
func (e *Entry) readWords(words []string, meant func(protocol string) bool) bool {
	i := slices.IndexFunc(words, func(w string) bool { return w == "hook" || isClient(w) })
	switch {
	case i < 0:
		return false
	case isClient(words[i]):
		e.start = words[i : i+1]
	case i == 1, i > 1 && programName(words[i-1]) == "stopgate":
		e.start = words[i-1 : i+1]
	default:
		return false
	}
	flags := map[string]string{}
	for rest := words[i+1:]; len(rest) > 0; rest = rest[1:] {
		name, value, joined := strings.Cut(rest[0], "=")
		if !joined && len(rest) > 1 {
			value = rest[1]
		}
		switch name {
		case "--protocol", "--agent", "--server", "--deadline", "-f", "--file":
			flags[name] = value
		case "--on-unreachable", "--transcript":
			e.extra = append(e.extra, name, value)
		case "--unattended":
			e.extra = append(e.extra, name)
		case "--event":
		default:
			e.Own = e.Own || strings.HasPrefix(name, "-")
		}
	}
	if !meant(flags["--protocol"]) {
		return false
	}
	e.Program, e.Agent = e.start[0], cmp.Or(flags["--agent"], gate.DefaultAgent)
	e.Server = strings.TrimRight(flags["--server"], "/")
	e.Deadline = seconds(flags["--deadline"])
	e.Local = flags["-f"]+flags["--file"] != ""
	return true
}

// seconds reads a deadline; what is none is the gate's own.
func seconds(text string) time.Duration {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0 && n <= 3600) {
		return gateDeadline
	}
	return time.Duration(n * float64(time.Second))
}

// wordsOf are a command's words without their quotes. What only a running shell
// knows, as a variable, stays as it is written, and literal is false.
func wordsOf(call *syntax.CallExpr) (words []string, literal bool) {
	literal = true
	for _, w := range call.Args {
		text, plain := plainText(w.Parts, strings.NewReplacer(`\\`, `\`, `\`, ""))
		words = append(words, text)
		literal = literal && plain
	}
	return words, literal
}

// inQuotes takes out the backslashes that escape something between double quotes.
var inQuotes = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, "$", "\\`", "`", "\\\n", "")

func plainText(parts []syntax.WordPart, escapes *strings.Replacer) (text string, literal bool) {
	var b strings.Builder
	literal = true
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(escapes.Replace(p.Value))
			literal = literal && !strings.ContainsAny(p.Value, `\*?[~{`)
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
			literal = literal && !p.Dollar
		case *syntax.DblQuoted:
			inner, plain := plainText(p.Parts, inQuotes)
			b.WriteString(inner)
			literal = literal && plain
		case *syntax.ParamExp:
			b.WriteString("$" + p.Param.Value)
			literal = false
		default:
			literal = false
		}
	}
	return b.String(), literal
}
