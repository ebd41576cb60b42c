package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"stopgate/gate"
	"stopgate/internal/datadir"
	"stopgate/internal/regular"
)

// maxServerFile is far more than a server file needs, in bytes.
const maxServerFile = 1 << 20

// LoadServer reads the server file at path; an empty path means all defaults.
// getenv gives environment variables, empty when not set: for ${VAR} in values
// and for defaults that come from there. flags, unless nil, is called with what
// the file says and may change it, before it is checked as a whole.
//
// What is legal and does nothing is in [Server.Warnings].
//
// The file is read strictly: the error is an [*gate.Error] whose Details are
// everything that is wrong with it at once, each with its line, and whose
// message names them all.
func LoadServer(path string, getenv func(string) string, flags func(*Server)) (Server, error) {
	return loadServer(path, getenv, flags, false)
}

// LoadServerUnasked is [LoadServer] where no model is going to be asked: keys of
// their providers are not read, and none needs one.
func LoadServerUnasked(path string, getenv func(string) string, flags func(*Server)) (Server, error) {
	return loadServer(path, getenv, flags, true)
}

func loadServer(path string, getenv func(string) string, flags func(*Server), unasked bool) (Server, error) {
	root := &node{kind: objectKind, pos: pos{1, 1}}
	var f findings
	if path != "" {
		data, err := regular.Read(path, maxServerFile)
		if err != nil {
			return Server{}, gate.Errorf(gate.CodeValidation, "server file %q cannot be read: %w", path, err)
		}
		docs, err := readDocuments(data, false, &f)
		switch {
		case err != nil:
			f.list = append(f.list, detailsOf(err)...)
		case len(docs) > 1:
			f.errorf("", docs[1].pos, "file holds %d documents, want one", len(docs))
		case len(docs) == 1 && docs[0].kind != objectKind:
			f.errorf("", docs[0].pos, "file is %s, want an object", docs[0].describe())
		case len(docs) == 1:
			root = docs[0]
		}
	}
	if unasked {
		dropKeys(root)
	}
	r := serverReader{getenv: getenv, base: filepath.Dir(path), top: &object{findings: &f, node: root}, unasked: unasked}
	r.expand(root, "")
	s := r.server()
	if flags != nil {
		flags(&s)
	}
	s.validate(&f, func(path string) pos { return root.placeOf(path) })
	errs, warnings := split(f.sorted())
	if len(errs) > 0 {
		return Server{}, serverFileError(path, errs)
	}
	s.Warnings = warnings
	return s, nil
}

// serverFileError names everything in its message too: it is shown on a
// terminal before anything else works.
func serverFileError(path string, list []gate.Finding) *gate.Error {
	subject := fmt.Sprintf("server file %q is not usable", path)
	if path == "" {
		subject = "configuration (defaults, environment and flags) is not usable"
	}
	var b strings.Builder
	b.WriteString(subject + ":")
	for _, f := range list {
		b.WriteString("\n  " + f.String())
	}
	return &gate.Error{Code: gate.CodeValidation, Message: b.String(), Details: list}
}

// placeOf is where a dotted path's value stands.
func (n *node) placeOf(path string) pos {
	for name := range strings.SplitSeq(path, ".") {
		next := n.find(name)
		if next == nil {
			return pos{}
		}
		n = next
	}
	return n.pos
}

type serverReader struct {
	getenv func(string) string
	base   string // directory that relative paths start from
	top    *object
	// unasked: no model is asked, so that none needs a key.
	unasked bool
}

// dropKeys takes the keys of providers out of a server file.
func dropKeys(root *node) {
	models := root.find("models")
	if models == nil {
		return
	}
	providers := models.find("providers")
	if providers == nil {
		return
	}
	for _, p := range providers.fields {
		p.value.fields = slices.DeleteFunc(p.value.fields, func(f field) bool { return f.name == "api_key" })
	}
}

func (r *serverReader) server() Server {
	top := r.top
	s := Server{
		Listen:      "127.0.0.1:8790",
		Data:        r.path(top, "data", datadir.Default(r.getenv)),
		Database:    r.database(top),
		Agents:      r.path(top, "agents", ""),
		OnGateError: gate.FailMode(choice(top, "on_gate_error", "allow", "block")),
		Durability:  Durability(choice(top, "durability", string(DurablePower), string(DurableProcess))),
	}
	if listen := top.text("listen"); listen != "" {
		s.Listen = listen
	}
	s.HTTP = readHTTP(section(top, "http"))
	s.Auth = r.auth(top)
	s.HTTPHooks = r.httpHooks(section(top, "http_hooks"))
	s.Models = r.models(section(top, "models"))
	s.Sandbox = r.sandbox(section(top, "sandbox"))
	s.Transcripts = r.transcripts(section(top, "transcripts"), s.Listen)
	s.Limits = readLimits(section(top, "limits"))
	retention := section(top, "retention")
	s.Retention = Retention{Records: duration(retention, "records", 0), RecordsMaxSize: bound(retention, "records_max_size", 16<<20),
		TranscriptsMaxSize: bound(retention, "transcripts_max_size", 1<<20)}
	retention.unknown(true)
	s.Export = r.export(section(top, "export"))
	s.Telemetry = r.telemetry(section(top, "telemetry"))
	s.Redaction = readRedaction(section(top, "redaction"))
	top.unknown(true)
	return s
}

// database is the URL of one. What is wrong with it is said without quoting it:
// there is a password in it.
func (r *serverReader) database(o *object) Secret {
	text := o.text("database")
	if text != "" && !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		o.errorf("database", o.place("database"), "database does not begin with postgres://; leave it out, and SQLite in the data directory is used")
	}
	return Secret(text)
}

// bound is a size, or 0 for none; one that is too small would delete what is in
// use.
func bound(o *object, name string, least int64) int64 {
	n := size(o, name, 0, 0)
	if n != 0 && n < least {
		o.errorf(o.child(name), o.place(name), "%s is %d bytes, want at least %d, or 0 for no bound", name, n, least)
	}
	return n
}

func (r *serverReader) sandbox(o *object) Sandbox {
	defer o.unknown(true)
	s := Sandbox{
		Mode: SandboxMode(choice(o, "mode", string(SandboxAuto), string(SandboxBubblewrap), string(SandboxProcess),
			string(SandboxContainer), string(SandboxOff))),
		Network:        o.flag("network"),
		Workspace:      Workspace(choice(o, "workspace", string(WorkspaceNone), string(WorkspaceReadOnly), string(WorkspaceReadWrite))),
		WorkspaceRoots: workspaceRoots(o),
		Pool:           size(o, "pool", 0, 0),
		Python:         SandboxPython(choice(o, "python", string(PythonFresh), string(PythonForked))),
	}
	if s.Python == PythonForked && s.Pool == 0 {
		o.errorf(o.child("python"), o.place("python"), "python is %q, which needs a pool: set sandbox.pool, as to 64MiB", s.Python)
	}
	l := section(o, "limits")
	defer l.unknown(true)
	s.Limits = SandboxLimits{
		Memory:    size(l, "memory", 512<<20, 16<<20), // an interpreter alone takes some 10 MiB
		Processes: number(l, "processes", 64, 4),      // the sandbox's own is one, and so is a command's in $( )
		FileSize:  size(l, "file_size", 64<<20, 1<<20),
		OpenFiles: number(l, "open_files", 256, 16),
		// As long as the longest time-out that is not warned about.
		CPU: duration(l, "cpu", gate.LongTimeout),
	}
	if n := l.value("cpu"); n != nil && s.Limits.CPU < time.Second {
		l.errorf(l.child("cpu"), n.pos, "cpu is less than one second")
	}
	return s
}

// workspaceRoots are whole paths: they are compared with an agent's, which says
// nothing of where the server file lies.
func workspaceRoots(o *object) []string {
	const name = "workspace_roots"
	if o.value(name) == nil {
		return nil
	}
	var roots []string
	for i, text := range o.texts(name) {
		item, at := fmt.Sprintf("%s[%d]", name, i), o.list(name)[i].pos
		if !filepath.IsAbs(text) {
			o.errorf(o.child(item), at, "%s is %q, want the whole path of a directory, as /home/me/projects (~ is not expanded: write ${HOME})", item, cut(text))
			continue
		}
		root := filepath.Clean(text)
		if about, err := os.Stat(root); err != nil || !about.IsDir() {
			o.warnf(o.child(item), at, "%s is %q, which is no directory on this machine: nothing lies under it", item, cut(text))
		}
		roots = append(roots, root)
	}
	return roots
}

// hostTranscripts are where the known hosts keep conversations, under the
// user's home.
var hostTranscripts = []string{".claude/projects", ".codex/sessions", ".copilot/session-state", ".gemini/tmp", ".qwen/projects"}

func (r *serverReader) transcripts(o *object, listen string) Transcripts {
	defer o.unknown(true)
	var roots []string
	if loopback, _ := IsLoopback(listen); loopback {
		if home := r.getenv("HOME"); filepath.IsAbs(home) {
			for _, dir := range hostTranscripts {
				roots = append(roots, filepath.Join(home, dir))
			}
		}
	}
	return Transcripts{
		Roots:   r.paths(o, "roots", roots),
		MaxSize: size(o, "max_size", 2<<30, 1<<10),
		MaxLine: size(o, "max_line", 16<<20, 1<<10), // one message, tool result included
	}
}

func readLimits(o *object) Limits {
	defer o.unknown(true)
	return Limits{
		EvaluateBody:     size(o, "evaluate_body", 32<<20, 1<<10),
		SpecBody:         size(o, "spec_body", 2<<20, 1<<10), // some thirty scripts of the largest size
		ParallelHooks:    number(o, "parallel_hooks", 8, 1),
		Evaluations:      number(o, "evaluations", 8192, 1),
		CommandHooks:     number(o, "command_hooks", 16, 1),
		JudgeRounds:      number(o, "judge_rounds", 12, 1),
		JudgeTokens:      number(o, "judge_tokens", 200_000, 1000),
		AgentDailyTokens: number(o, "agent_daily_tokens", 0, 0),
	}
}

// path reads a directory; a relative one starts from the server file's.
func (r *serverReader) path(o *object, name, missing string) string {
	text := o.text(name)
	if text == "" {
		return missing
	}
	return r.absolute(o, name, text)
}

func (r *serverReader) paths(o *object, name string, missing []string) []string {
	if o.value(name) == nil {
		return missing
	}
	var paths []string
	for i, text := range o.texts(name) {
		paths = append(paths, r.absolute(o, fmt.Sprintf("%s[%d]", name, i), text))
	}
	return paths
}

func (r *serverReader) absolute(o *object, name, path string) string {
	base, _, _ := strings.Cut(name, "[")
	switch {
	case path == "":
		o.errorf(o.child(name), o.place(base), "%s is empty, want a directory", name)
	case strings.HasPrefix(path, "~"):
		o.errorf(o.child(name), o.place(base), "%s begins with ~, which is not expanded: write ${HOME}", name)
	case !filepath.IsAbs(path):
		return filepath.Join(r.base, path)
	}
	return filepath.Clean(path)
}

// section is a field's object, empty when absent or wrong.
func section(o *object, name string) *object {
	if s := o.object(name); s != nil {
		return s
	}
	return &object{findings: o.findings, path: o.child(name), node: &node{kind: objectKind, pos: o.node.pos}}
}

// choice is a word of a closed list; the first is the default.
func choice(o *object, name string, legal ...string) string {
	if word := o.oneOf(name, legal...); word != "" {
		return word
	}
	return legal[0]
}

func number(o *object, name string, missing, least int) int {
	if i, ok := o.whole(name, least, maxWhole, ""); ok {
		return i
	}
	return missing
}

var variable = regexp.MustCompile(`\$\$\{|\$\{([^}]*)\}?`)
var variableName = regexp.MustCompile(`\A[A-Za-z_][A-Za-z0-9_]*\z`)

// expand replaces ${VAR} in every text value; $${ stands for ${. What a
// variable holds is not expanded again.
func (r *serverReader) expand(n *node, path string) {
	for _, f := range n.fields {
		r.expand(f.value, strings.TrimPrefix(path+"."+f.name, "."))
	}
	for i, item := range n.items {
		r.expand(item, fmt.Sprintf("%s[%d]", path, i))
	}
	if n.kind != textKind || n.written != "" || !strings.Contains(n.text, "${") {
		return
	}
	n.written = n.text
	n.text = variable.ReplaceAllStringFunc(n.text, func(found string) string {
		if found == "$${" {
			return "${"
		}
		name := strings.TrimSuffix(found[2:], "}")
		switch value := r.getenv(name); {
		case !strings.HasSuffix(found, "}") || !variableName.MatchString(name):
			r.top.errorf(path, n.pos, "%q is not ${VARIABLE}; write $${ for a plain ${", cut(found))
		case value == "":
			r.top.errorf(path, n.pos, "environment variable %s is not set", name)
		default:
			return value
		}
		return ""
	})
}
