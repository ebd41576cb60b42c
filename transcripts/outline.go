package transcripts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"stopgate/gate"
)

// entry is one marker of a view and what follows it.
type entry struct {
	line  int64  // of the marker, from 1
	lines int64  // of the content
	words string // the marker's, as "assistant calls Bash (call_1)"
	head  []byte // of the content
	bytes int64
	// folded, where it is not empty, tells of several entries in one line.
	folded string
}

func (e *entry) calls() bool  { return strings.Contains(e.words, " calls ") }
func (e *entry) user() bool   { return e.words == user || strings.HasPrefix(e.words, user+" ") }
func (e *entry) result() bool { return e.words == "tool" || strings.HasPrefix(e.words, "tool ") }
func (e *entry) failed() bool { return e.result() && strings.HasSuffix(e.words, " failed") }

// tool is the name of the tool that is called.
func (e *entry) tool() string {
	_, name, _ := strings.Cut(e.words, " calls ")
	name, _, _ = strings.Cut(name, " ")
	return name
}

// Outline is the whole conversation, its lines numbered, where that fits into
// limit bytes; else a map of it for a reader who then looks at what matters:
// what was asked, uncut where there is room, each tool call with its arguments,
// each failure, and on which line each stands. A longer conversation is told
// more briefly, its middle before its ends. Text that is too long has no map:
// whoever wrote it could have written the lines that look like a message's.
func (v *view) Outline(ctx context.Context, limit int) (text string, whole bool, err error) {
	if v.size < int64(min(limit, maxAnswer/2)) {
		text, err = v.ReadFile(ctx, 1, maxLines)
		if err != nil || len(text) <= limit && !strings.HasSuffix(text, " not shown)\n") {
			return text, err == nil, err
		}
	}
	if v.asText {
		return "", false, ctx.Err()
	}
	entries, err := v.entries(ctx)
	if err != nil || len(entries) == 0 {
		return "", false, err
	}
	for _, d := range []detail{
		{user: 8 << 10, call: 2 << 10, said: 400, failure: 400, results: true},
		{user: 2 << 10, call: 400, said: 120, failure: 200, results: true},
		{user: 600, call: 160, failure: 120},
	} {
		if text := strings.Join(told(entries, d), ""); len(text) <= limit {
			return text, false, nil
		}
	}
	return middleOut(told(folded(entries), detail{user: 300, failure: 100}), limit), false, nil
}

const (
	// maxEntries bounds what is held of a view; real conversations have some
	// thousand. Beyond it the oldest are forgotten, but for the first.
	maxEntries = 20_000
	keptFirst  = 200
	keptHead   = 8 << 10
	// keptHeads is what all heads together may take. Beyond it the oldest, but
	// for the first, give theirs back; the user's, which matter most, are cut to
	// keptUser, as much as the briefest map tells of them.
	keptHeads = 8 << 20
	keptUser  = 600
	// keptWords of a marker: roles and names are short, unless they are hostile.
	keptWords = 400
)

// entryList is what is held of a view that is being read.
type entryList struct {
	all  []entry
	held int // bytes of all heads
	cut  int // the entries before it, but for the first, have given back
}

// begin adds an entry.
func (l *entryList) begin(line int64, words []byte) {
	if len(l.all) == maxEntries {
		const end = keptFirst + maxEntries/2
		for _, e := range l.all[keptFirst:end] {
			l.held -= len(e.head)
		}
		l.all = slices.Delete(l.all, keptFirst, end)
		l.cut -= maxEntries / 2
	}
	l.all = append(l.all, entry{line: line, words: briefly(words)})
}

// briefly is a marker's words, of which the end says whether a result failed.
func briefly(words []byte) string {
	if len(words) <= keptWords {
		return string(words)
	}
	brief := gate.Cut(string(words[:keptWords+1]), keptWords) + "…"
	if bytes.HasSuffix(words, []byte(" failed")) {
		brief += " failed"
	}
	return brief
}

// add adds a line to the last entry.
func (l *entryList) add(line []byte) {
	if len(l.all) == 0 {
		return // what stands before the first marker is no message
	}
	e := &l.all[len(l.all)-1]
	e.lines++
	e.bytes += int64(len(line)) + 1
	room := keptHead - len(e.head)
	if room <= 0 {
		return
	}
	before := len(e.head)
	e.head = append(append(e.head, line[:min(room, len(line))]...), '\n')
	l.held += len(e.head) - before
	for l.cut = max(l.cut, keptFirst); l.held > keptHeads && l.cut < len(l.all)-1; l.cut++ {
		l.giveBack(&l.all[l.cut])
	}
}

func (l *entryList) giveBack(e *entry) {
	l.held -= len(e.head)
	if e.user() {
		e.head = []byte(gate.Cut(string(e.head), keptUser))
	} else {
		e.head = nil
	}
	l.held += len(e.head)
}

// entries reads the whole view once.
func (v *view) entries(ctx context.Context) ([]entry, error) {
	in := lineReader{r: bufio.NewReaderSize(io.NewSectionReader(v.text, 0, v.size), block), most: block}
	var list entryList
	for {
		if in.number%1000 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			return list.all, nil
		}
		if err != nil && !errors.Is(err, errLongLine) {
			return nil, v.lost(err)
		}
		if bytes.HasPrefix(line, []byte(markBegin)) && bytes.HasSuffix(line, []byte(markEnd)) && len(line) > len(markBegin)+len(markEnd) {
			list.begin(in.number, line[len(markBegin):len(line)-len(markEnd)])
			continue
		}
		list.add(line)
	}
}

// detail says how many bytes are shown of each kind of entry; 0: none of it.
type detail struct {
	user, call, said, failure int
	results                   bool
}

// told is a line for each entry that there is something to tell of.
func told(entries []entry, d detail) []string {
	var lines []string
	for i := range entries {
		e := &entries[i]
		switch {
		case e.folded != "":
			lines = append(lines, e.folded)
		case e.user():
			lines = append(lines, tell(e, d.user))
		case e.calls():
			lines = append(lines, tell(e, d.call))
		case e.failed():
			lines = append(lines, tell(e, d.failure))
		case e.result():
			if d.results {
				lines = append(lines, tell(e, 0))
			}
		case d.said > 0:
			lines = append(lines, tell(e, d.said))
		}
	}
	return lines
}

// tell is an entry on one line: its number, whose it is, and the head of what it
// says, or how much that is.
func tell(e *entry, most int) string {
	said := strings.TrimSpace(string(e.head))
	if most == 0 || said == "" {
		return fmt.Sprintf("%d\t%s: %d lines\n", e.line, e.words, e.lines)
	}
	left := ""
	if cut := gate.Cut(said, most); len(cut) < len(said) || e.bytes > int64(len(e.head)) {
		said, left = cut, fmt.Sprintf(" […, %d lines]", e.lines)
	}
	return fmt.Sprintf("%d\t%s: %s%s\n", e.line, e.words, strings.ReplaceAll(said, "\n", "\n\t"), left)
}

// folded puts what lies between two words of the user, and no failure in it,
// into one line that counts the calls.
func folded(entries []entry) []entry {
	var out []entry
	for i := 0; i < len(entries); {
		if entries[i].user() || entries[i].failed() {
			out = append(out, entries[i])
			i++
			continue
		}
		first, tools, calls := i, map[string]int{}, 0
		for ; i < len(entries) && !entries[i].user() && !entries[i].failed(); i++ {
			if entries[i].calls() {
				tools[entries[i].tool()]++
				calls++
			}
		}
		last := &entries[i-1]
		out = append(out, entry{folded: fmt.Sprintf("%d–%d\t%s\n", entries[first].line, last.line+last.lines, counted(tools, calls))})
	}
	return out
}

// counted says how often which tools were called, the most used first.
func counted(tools map[string]int, calls int) string {
	if calls == 0 {
		return "answers"
	}
	names := make([]string, 0, len(tools))
	for name := range tools {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if tools[a] != tools[b] {
			return tools[b] - tools[a]
		}
		return strings.Compare(a, b)
	})
	const most = 8
	if len(names) > most {
		names = append(names[:most], "…")
	}
	for i, name := range names {
		if n := tools[name]; n > 1 {
			names[i] = fmt.Sprintf("%s ×%d", name, n)
		}
	}
	return fmt.Sprintf("%d calls: %s", calls, strings.Join(names, ", "))
}

// middleOut is as many of the first and, above all, of the last lines as fit,
// none of them longer than a quarter of the room.
func middleOut(lines []string, limit int) string {
	const note = "[… %d lines of the map left out; search, or read these lines …]\n"
	room := limit - len(note) - 8
	for i, l := range lines {
		if most := max(room/4, 16); len(l) > most {
			lines[i] = gate.Cut(l, most-len("…\n")) + "…\n"
		}
	}
	var head, tail []string
	size := 0
	for _, l := range lines {
		if size+len(l) > room/3 {
			break
		}
		head = append(head, l)
		size += len(l)
	}
	for i := len(lines) - 1; i >= len(head) && size+len(lines[i]) <= room; i-- {
		tail = append(tail, lines[i])
		size += len(lines[i])
	}
	slices.Reverse(tail)
	left := len(lines) - len(head) - len(tail)
	if left == 0 {
		return strings.Join(lines, "")
	}
	return strings.Join(head, "") + fmt.Sprintf(note, left) + strings.Join(tail, "")
}
