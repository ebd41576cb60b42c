package shell

import (
	"regexp"
	"slices"
	"strings"
)

// textOptions are the options whose value programs run as a shell would.
var textOptions = map[string]struct {
	letter byte
	names  []string
}{
	"su": {'c', []string{"command", "session-command"}}, "runuser": {'c', []string{"command", "session-command"}}, "sg": {'c', nil},
	"script": {'c', []string{"command"}}, "firejail": {'c', nil}, "emulate": {'c', nil}, "xterm": {'e', nil},

	"tar": {'I', tarPrograms}, "bsdtar": {'I', tarPrograms}, "gtar": {'I', tarPrograms},
	"rsync": {'e', []string{"rsh", "rsync-path"}}, "split": {0, []string{"filter"}}, "sort": {0, []string{"compress-program"}},
	"rg": {0, []string{"pre", "hostname-bin"}}, "man": {'P', []string{"pager"}}, "tcpdump": {'z', nil},
	"nc": {'e', nil}, "ncat": {'e', []string{"exec", "sh-exec"}}, "scp": {'S', nil}, "sftp": {'S', nil},
}

var tarPrograms = []string{"use-compress-program", "to-command", "info-script", "new-volume-script", "rsh-command", "checkpoint-action"}

// runsTexts are the texts that a command runs as a shell would.
func (r *reader) runsTexts(name string, c Command) []Word {
	switch name {
	case "eval":
		return r.all(behindDashes(c.Args))
	case "trap":
		rest, _ := operands(c.Args, "", nil)
		if len(rest) > 0 && rest[0].Text == "-" {
			return nil
		}
		return r.all(rest[:min(1, len(rest))])
	case "alias":
		return r.aliases(c.Args)
	case "compgen", "complete": // which expand the words of -W
		words := slices.DeleteFunc(texts(r.optionTexts(c.Args, 'W')), func(w Word) bool { return w.Literal && !substitutes(w.Text) })
		return append(called(texts(r.optionTexts(c.Args, 'C'))), words...)
	case "mapfile", "readarray":
		return called(texts(r.optionTexts(c.Args, 'C')))
	case "zip":
		return append(texts(r.optionTexts(c.Args, 0, "unzip-command")), valuesOf(c.Args, "TT")...)
	case "watch":
		rest, _ := operands(c.Args, "nq", []string{"interval", "equexit"})
		return r.all(rest)
	case "make", "gmake", "bmake":
		return r.makeTexts(c.Args)
	case "parallel": // TEXT ::: arguments
		return r.all(slices.DeleteFunc(slices.Clone(started(c)), func(w Word) bool { return strings.HasPrefix(w.Text, ":::") }))
	case "flock": // flock FILE -c TEXT
		return texts(r.optionTexts(c.Args[:min(len(c.Args), 8)], 'c', "command"))
	case "env":
		return r.splitTexts(c.Args)
	case "ssh":
		return r.sshTexts(c.Args)
	case "git":
		return r.gitTexts(c.Args)
	}
	if isShell(name) || unknown(c) {
		return append(r.shellTexts(name, c.Args), r.fishTexts(name, c.Args)...)
	}
	option, ok := textOptions[name]
	if !ok {
		return nil
	}
	all := texts(r.optionTexts(c.Args, option.letter, option.names...))
	for i := range all {
		all[i].Text = strings.TrimPrefix(all[i].Text, "exec=") // --checkpoint-action=exec=TEXT
	}
	if name == "scp" || name == "sftp" {
		all = append(all, r.sshSettings(c.Args)...)
	}
	return all
}

// behindDashes are the words behind the mark that ends options, if it stands there.
func behindDashes(args []Word) []Word {
	if len(args) > 0 && args[0].Text == "--" {
		return args[1:]
	}
	return args
}

// called are texts behind which a shell puts what it calls them for.
func called(all []Word) []Word {
	for i := range all {
		all[i].Text += ` "$@"`
	}
	return all
}

// fishTexts are those of a fish's options that other shells do not have.
func (r *reader) fishTexts(name string, args []Word) []Word {
	if name != "fish" {
		return nil
	}
	return texts(r.optionTexts(args, 'C', "command", "init-command"))
}

// makeTexts are the values of variables, which recipes run: make CC='a b'. Of one
// that is not known it is not said, since versions and paths are such.
func (r *reader) makeTexts(args []Word) (all []Word) {
	if !r.Spend(len(args)) {
		return nil
	}
	for _, a := range args {
		if name, value, is := strings.Cut(a.Text, "="); is && a.Literal && !strings.HasPrefix(name, "-") {
			all = append(all, Word{value, true})
		}
	}
	return all
}

func (r *reader) all(words []Word) []Word {
	if len(words) == 0 || !r.Spend(len(words)) {
		return nil
	}
	return []Word{joined(words)}
}

// aliases are the texts that names stand for from now on.
func (r *reader) aliases(args []Word) (all []Word) {
	if !r.Spend(len(args)) {
		return nil
	}
	for _, a := range args {
		if _, text, is := strings.Cut(a.Text, "="); is {
			all = append(all, Word{text, a.Literal})
		}
	}
	return all
}

// looseTexts are the words that may be texts of a loose starter.
func (r *reader) looseTexts(args []Word) (all []Word) {
	if !r.Spend(perByte * len(args)) {
		return nil
	}
	for _, a := range args {
		text := a.Text
		if _, value, is := strings.Cut(text, "="); is && strings.HasPrefix(text, "-") {
			text = value
		}
		if strings.ContainsAny(text, " \t\n;|&") {
			all = append(all, Word{text, a.Literal})
		}
	}
	return all
}

// sshTexts are what an ssh has run here, and the words that the other machine's
// shell reads. Options may stand before the host and behind it.
func (r *reader) sshTexts(args []Word) []Word {
	rest, _ := operands(args, sshShort, nil)
	if len(rest) > 0 {
		rest, _ = operands(rest[1:], sshShort, nil)
	}
	return append(r.sshSettings(args[:len(args)-len(rest)]), r.all(rest)...)
}

const sshShort = "BbcDEeFIiJLlmOoPpQRSWw"

// sshSettings are the texts among an ssh's -o Name=value.
func (r *reader) sshSettings(args []Word) (all []Word) {
	for _, found := range r.optionTexts(args, 'o') {
		if text := sshRuns.FindStringSubmatch(found.text.Text); text != nil {
			all = append(all, Word{text[1], found.text.Literal})
		}
	}
	return all
}

var sshRuns = regexp.MustCompile(`(?is)^\s*"?(?:ProxyCommand|LocalCommand|RemoteCommand|KnownHostsCommand)[\s="]+(.*)$`)

// shellTexts are the texts of a shell's -c: what is written, and what it is with
// the shell's arguments in their places.
func (r *reader) shellTexts(name string, args []Word) []Word {
	call := shellArguments(name, args)
	rest, letters := call.operands, call.letters
	noexec := strings.Contains(letters, "n") && !strings.ContainsAny(letters, "io") // which only a shell heeds that nobody types into
	if !strings.Contains(letters, "c") || len(rest) == 0 || noexec {
		return nil
	}
	written := rest[0]
	if text, filled := r.filled(written.Text, rest[1:]); filled {
		return []Word{written, {text, written.Literal}}
	}
	return []Word{written}
}

// filled is a text with a shell's arguments, $0 first, in their places; not ok: it
// has no places, or they are none.
func (r *reader) filled(text string, args []Word) (filled string, ok bool) {
	places := len(arguments.FindAllStringIndex(text, -1))
	if places == 0 || len(args) == 0 {
		return "", false
	}
	size := 0
	for _, a := range args {
		size += len(a.Text) + 3
	}
	if !r.Spend(perByte * size * places) {
		return "", false
	}
	return arguments.ReplaceAllStringFunc(text, func(place string) string {
		switch which := strings.Trim(place, `"${}`); which {
		case "@", "*":
			return strings.TrimSpace(Quoted(args[1:]))
		default:
			if n := int(which[0] - '0'); n < len(args) {
				return strings.TrimSpace(Quoted(args[n : n+1]))
			}
			return ""
		}
	}), true
}

// arguments are the places of a shell's arguments in a text. Inside of quotes the
// arguments' own end them; the text is read as it is written, too.
var arguments = regexp.MustCompile(`"\$(?:[@*0-9]|\{[@*0-9]\})"|\$(?:[@*0-9]|\{[@*0-9]\})`)

// Quoted are words as a shell reads them, a blank before each.
func Quoted(words []Word) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString(" '" + strings.ReplaceAll(w.Text, "'", `'\''`) + "'")
	}
	return b.String()
}

// splitTexts are the texts of env's -S, which reads what it makes of one, and what
// stands behind, as its own words.
func (r *reader) splitTexts(args []Word) (all []Word) {
	rest, _ := operands(args, starters["env"].short, starters["env"].long)
	for _, found := range r.optionTexts(args[:len(args)-len(rest)], 'S', "split-string") {
		words := args[found.next:]
		if !r.Spend(perByte * len(words)) {
			return nil
		}
		// It has escapes of its own, of which \_ is a blank, and ${NAME}.
		text, plain := strings.ReplaceAll(found.text.Text, `\_`, " "), !strings.ContainsAny(found.text.Text, `\$`)
		all = append(all, Word{"env " + text + Quoted(words), found.text.Literal && plain && joined(words).Literal})
	}
	return all
}

// optionText is an option's text, and where the next word stands.
type optionText struct {
	text Word
	next int
}

func texts(found []optionText) []Word {
	all := make([]Word, len(found))
	for i, f := range found {
		all[i] = f.text
	}
	return all
}

// optionTexts is what stands behind options of a letter, be it the last of some,
// or a name; letter 0 is none. Another option's value may look like one: all are taken.
func (r *reader) optionTexts(args []Word, letter byte, names ...string) (all []optionText) {
	if !r.Spend(len(args)) {
		return nil
	}
	for i, a := range args {
		var value string
		var is, joined bool
		if option, long := strings.CutPrefix(a.Text, "--"); long {
			option, value, joined = strings.Cut(option, "=")
			is = option != "" && slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, option) })
		} else if at := strings.IndexByte(a.Text, letter); letter != 0 && at > 0 && a.Text[0] == '-' {
			value, is = a.Text[at+1:], true
			joined = value != ""
		}
		switch {
		case is && joined:
			all = append(all, optionText{Word{value, a.Literal}, i + 1})
		case is && i+1 < len(args):
			all = append(all, optionText{args[i+1], i + 2})
		}
	}
	return all
}
