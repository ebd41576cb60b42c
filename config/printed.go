package config

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"stopgate/gate"
)

// hookText is what can be seen of what a hook runs.
type hookText struct {
	all   string  // the hook's own text with the scripts that it runs
	says  []*node // where doubt is empty: each object that it may print
	doubt string  // why something else may be its answer; empty: nothing can
}

// project is what can be seen of the files that hooks run: as in [Conversion].
type project struct {
	script func(path string) (text string, ok bool)
	names  func(dir string) (names []string, ok bool)
}

// maxScripts is how many files are looked at for one hook.
const maxScripts = 16

// text is the hook's own text with the scripts that it runs, as far as they can
// be seen. A server's answers cannot.
func (c *converter) text(d *declared) hookText {
	if d.Type != gate.CommandHook {
		return hookText{doubt: "they come from a server"}
	}
	r := newTextReader(project{c.Script, c.Names})
	if i := slices.IndexFunc(d.env, func(name string) bool { return !ordinary(name) }); i >= 0 {
		r.unsure("env sets %s, by which programs take in others", cut(d.env[i]))
	}
	line, _ := unwrapped(d)
	switch {
	case d.Script != "":
		r.alone = true // such a script lies beside no other file
		r.add(d.Script, scriptLanguage(d.Script), ".", heard)
	case d.Args != nil:
		words := append([]string{d.Command}, d.Args...)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "${CLAUDE_PROJECT_DIR}", ".")
		}
		r.write(strings.Join(words, "\n"))
		r.program(words, nil, heard)
	default:
		r.add(strings.TrimPrefix(line, projectHere), shellText, ".", heard)
	}
	return r.seen()
}

// textOf is text, which is looked for once: files are read for it.
func (c *converter) textOf(d *declared) hookText {
	if d.text == nil {
		t := c.text(d)
		d.text = &t
	}
	return *d.text
}

// textReader follows a command to the scripts that it runs, and to what they
// print. Only what it knows to print nothing, or knows all of, leaves no doubt.
type textReader struct {
	project
	read  map[string]bool // paths, and what runs them
	alone bool            // no module can lie beside the script
	all   strings.Builder
	says  []*node
	doubt string
	own   map[string][]functionBody // functions that the shell text declares
	// ran are the files of the project's that are run as they are now, wrote those that
	// are written by name, both without their directories; changes: something may write
	// any.
	ran, wrote []string
	changes    bool
}

func newTextReader(p project) *textReader { return &textReader{project: p, read: map[string]bool{}} }

func (r *textReader) seen() hookText {
	changed := func(file string) bool {
		return slices.Contains(r.wrote, file) || file == anyModule && slices.ContainsFunc(r.wrote, func(name string) bool { return shadows([]string{name}) })
	}
	if len(r.ran) > 0 && r.changes || slices.ContainsFunc(r.ran, changed) {
		r.unsure("it may change a file before it runs it")
	}
	return hookText{r.all.String(), r.says, r.doubt}
}

func (r *textReader) write(text string) { r.all.WriteString(text + "\n") }

// unsure says why not all is known that the hook may print. The first reason is
// enough.
func (r *textReader) unsure(format string, args ...any) {
	if r.doubt == "" {
		r.doubt = fmt.Sprintf(format, args...)
	}
}

// unseen is unsure of what may do anything, and write files too.
func (r *textReader) unseen(format string, args ...any) {
	r.changes = true
	r.unsure(format, args...)
}

// add takes in a text of a language, which lies in a directory.
func (r *textReader) add(text string, l language, dir string, s streams) {
	r.write(text)
	switch l {
	case shellText, posixText:
		r.shell(text, l, s)
	case otherText:
		r.unseen("it runs a program in another language than shell, Python or JavaScript")
	default:
		r.simple(text, l, dir)
	}
}

// prints takes in a text that is written to standard output. What begins like no
// object is none, whatever comes after it; and an object counts only if all of it
// stands there. raw: backslashes stand for themselves.
func (r *textReader) prints(text string, raw bool) {
	switch start := strings.TrimLeft(text, " \t\r\n"); {
	case start == "", plainBeginning(start):
	case !raw && strings.Contains(start, `\`), strings.Contains(start, unplain):
		r.unsure("it prints a text that is put together as it runs")
	default:
		f := &findings{}
		docs, err := readDocuments([]byte(start), true, f)
		if err != nil || f.errors > 0 || docs[0].kind != objectKind {
			r.unsure("it prints a text that is not an object by itself")
			return
		}
		r.says = append(r.says, docs[0])
	}
}

// plainBeginning reports whether a text begins like no object, whatever stands
// before or behind it.
func plainBeginning(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text != "" && text[0] > ' ' && text[0] < 0x7f && text[0] != '{' && text[0] != '\\'
}

// language is that of a script.
type language string

const (
	shellText  language = "bash"
	posixText  language = "sh" // which may be dash, bash or another
	pythonText language = "python"
	nodeText   language = "node"
	jqText     language = "jq"
	otherText  language = ""
)

// scriptLanguage is that of a spec's own script.
func scriptLanguage(script string) language {
	if strings.HasPrefix(script, shebangs[1]) {
		return pythonText
	}
	return shellText
}

// languageOf is whose a script is, by what runs it, else by what it says itself.
func languageOf(interpreter, name, first string) language {
	switch {
	case strings.HasPrefix(interpreter, "python"), interpreter == "" && pythonShebang.MatchString(first):
		return pythonText
	case interpreter == "node", interpreter == "" && nodeShebang.MatchString(first):
		return nodeText
	case interpreter == "bash", interpreter == ".", interpreter == "source", interpreter == "" && bashShebang.MatchString(first):
		return shellText
	case interpreter == "sh", interpreter == "dash", interpreter == "" && (shShebang.MatchString(first) || !strings.HasPrefix(first, "#!") && path.Ext(name) == ".sh"):
		return posixText
	}
	return otherText
}

var (
	bashShebang   = regexp.MustCompile(`\A#!(?:/usr)?/bin/(?:env +)?bash(?: -[eux]+)?\s*\z`)
	shShebang     = regexp.MustCompile(`\A#!(?:/usr)?/bin/(?:env +)?(?:da)?sh(?: -[eux]+)?\s*\z`)
	pythonShebang = regexp.MustCompile(`\A#!(?:/usr)?/bin/(?:env +)?python[0-9.]*\s*\z`)
	nodeShebang   = regexp.MustCompile(`\A#!(?:/usr)?/bin/(?:env +)?node\s*\z`)
)

// interpreter is how a program takes a script.
type interpreter struct {
	inline string         // the option whose next word is the script
	plain  *regexp.Regexp // options that leave what the script prints, and which word it is; nil: none
}

// interpreters are what is known to run scripts. An option has another meaning for
// each: -x skips a line of Python, -s of a shell makes it read standard input.
var (
	shellOptions = regexp.MustCompile(`\A-[eux]+\z`)
	interpreters = map[string]interpreter{
		"bash": {"-c", shellOptions}, "sh": {"-c", shellOptions}, "dash": {"-c", shellOptions}, "zsh": {"-c", nil},
		"python": {"-c", pythonOptions}, "python3": {"-c", pythonOptions},
		"node": {"-e", nil}, "perl": {"-e", nil}, "ruby": {"-e", nil},
	}
	pythonOptions = regexp.MustCompile(`\A-[uBEIsS]+\z`)
)

func isShell(program string) bool {
	return slices.Contains([]string{"bash", "sh", "dash", "zsh"}, program)
}

// interpreted follows an interpreter to its script; fed: what stands in its own
// line for standard input.
func (r *textReader) interpreted(program string, args []string, fed *string, s streams) {
	how := interpreters[program]
	for i, arg := range args {
		switch {
		case arg == how.inline && i+1 < len(args) && known(args[i+1]):
			r.add(args[i+1], languageOf(program, "", ""), ".", s)
			return
		case how.plain != nil && how.plain.MatchString(arg):
		case arg == "-" && fed != nil:
			r.fed(program, *fed, s)
			return
		case strings.HasPrefix(arg, "-"), strings.HasPrefix(arg, "+"), !known(arg):
			r.unseen("what %s runs is not seen", program)
			return
		default:
			r.file(arg, program, s)
			return
		}
	}
	if fed == nil {
		r.unseen("what %s runs is not seen", program)
		return
	}
	r.fed(program, *fed, s)
}

// fed takes in a script that an interpreter reads from its standard input.
func (r *textReader) fed(program, text string, s streams) {
	if !known(text) {
		r.unseen("what %s runs is put together as the hook runs", program)
		return
	}
	r.add(text, languageOf(program, "", ""), ".", s)
}

// file reads a script, which an interpreter runs or, where that is empty, which
// says itself what does.
func (r *textReader) file(name, interpreter string, s streams) {
	as := fmt.Sprint(interpreter, " ", name, s)
	if r.read[as] {
		return
	}
	text, ok := "", false
	if known(name) && r.script != nil && len(r.read) < maxScripts {
		r.read[as] = true
		text, ok = r.script(name)
	}
	if !ok || !known(text) {
		r.unseen("%q, which it runs, cannot be read here", cut(visibleWord(name)))
		return
	}
	r.ran = append(r.ran, path.Base(name))
	first, _, _ := strings.Cut(text, "\n")
	alone := r.alone
	r.alone = false
	r.add(text, languageOf(interpreter, name, first), path.Dir(name), s)
	r.alone = alone
}

// visibleWord is a word with an ellipsis for what only a running shell knows.
func visibleWord(word string) string { return strings.ReplaceAll(word, unplain, "…") }
