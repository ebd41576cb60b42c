package transcripts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"stopgate/gate"
	"strings"
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
// more briefly, its middle before its ends. Plain text that is too long has no
// map.
func (v *view) Outline(ctx context.Context, limit int) (text string, whole bool, err error) {
	if v.size < int64(min(limit, maxAnswer/2)) {
		text, err = v.ReadFile(ctx, 1, maxLines)
		if err != nil || len(text) <= limit && !strings.HasSuffix(text, " not shown)\n") {
			return text, err == nil, err
		}
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
	// keptHeads is what all heads together may take.
	keptHeads = 8 << 20
)

// entries reads the whole view once.
func (v *view) entries(ctx context.Context) ([]entry, error) {
	in := lineReader{r: bufio.NewReaderSize(io.NewSectionReader(v.text, 0, v.size), block), most: block}
	var all []entry
	held := 0
	for {
		if in.number%1000 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil && !errors.Is(err, errLongLine) {
			return nil, v.lost(err)
		}
		if bytes.HasPrefix(line, []byte(markBegin)) && bytes.HasSuffix(line, []byte(markEnd)) && len(line) > len(markBegin)+len(markEnd) {
			if len(all) == maxEntries {
				all = slices.Delete(all, keptFirst, keptFirst+maxEntries/2)
			}
			all = append(all, entry{line: in.number, words: string(line[len(markBegin) : len(line)-len(markEnd)])})
			continue
		}
		if len(all) == 0 {
			continue // what stands before the first marker is no message
		}
		e := &all[len(all)-1]
		e.lines++
		e.bytes += int64(len(line)) + 1
		if room := keptHead - len(e.head); room > 0 && held < keptHeads {
			e.head = append(e.head, line[:min(room, len(line))]...)
			e.head = append(e.head, '\n')
			held += min(room, len(line))
		}
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

// middleOut is as many of the first and, above all, of the last lines as fit.
func middleOut(lines []string, limit int) string {
	const note = "[… %d lines of the map left out; search, or read these lines …]\n"
	room := limit - len(note) - 8
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
