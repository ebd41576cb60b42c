package install

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tailscale/hujson"
)

// layout is how a host writes its hooks.
type layout struct {
	flat      bool   // "hooks" is one list, whose entries name their events
	grouped   bool   // entries lie in groups, {"matcher", "hooks": […]}
	command   string // the command's key
	timeout   string // the timeout's key
	version   bool   // the file says "version": 1
	camelCase bool   // of two forms of each event the camelCase one
}

// The shapes that are written; their order is the order in the file.
type (
	groupShape struct {
		Matcher string      `json:"matcher,omitempty"`
		Hooks   []hookShape `json:"hooks"`
	}
	hookShape struct {
		Type       string `json:"type"`
		URL        string `json:"url,omitempty"`
		Command    string `json:"command,omitempty"`
		Bash       string `json:"bash,omitempty"`
		Timeout    int64  `json:"timeout,omitempty"`
		TimeoutSec int64  `json:"timeoutSec,omitempty"`
	}
	flatShape struct {
		Event    string `json:"event"`
		Matcher  string `json:"matcher,omitempty"`
		Command  string `json:"command"`
		Protocol string `json:"protocol,omitempty"`
	}
)

// shape is an entry as the host writes it.
func (h Host) shape(e Entry) any {
	if h.layout.flat {
		return flatShape{e.Event, e.Matcher, e.Command, h.answersBy(e.Event)}
	}
	s := hookShape{Type: "command", URL: e.URL}
	if e.HTTP() {
		s.Type = "http"
	}
	if h.layout.command == "bash" {
		s.Bash = e.Command
	} else {
		s.Command = e.Command
	}
	amount := int64(e.Timeout / h.timeoutUnit(e.HTTP()))
	if h.layout.timeout == "timeoutSec" {
		s.TimeoutSec = amount
	} else {
		s.Timeout = amount
	}
	if h.layout.grouped {
		return groupShape{e.Matcher, []hookShape{s}}
	}
	return s
}

// timeoutUnit is the unit of a hook's timeout. Qwen Code's is documented as
// seconds, but a command's number from 1000 on is read as milliseconds, as
// every number was in older versions (fault gx-030): milliseconds mean the same
// to all of them.
func (h Host) timeoutUnit(http bool) time.Duration {
	if http {
		return time.Second
	}
	return h.Contract.TimeoutUnit
}

// readTimeout is the host's own reading of a number.
func (h Host) readTimeout(amount float64, http bool) time.Duration {
	unit := h.timeoutUnit(http)
	if h.Name == "qwen-code" && amount < 1000 {
		unit = time.Second
	}
	const longest = 1e9 // of any unit: what is more does not fit a Duration
	return time.Duration(max(0, min(amount, longest)) * float64(unit))
}

// Add puts the entries into the host's file and takes out what older ones of
// stopgate it finds. Where all are there already, the bytes are the same. The
// matcher that somebody gave one of our entries on a tool event stays.
//
// An error starts with line:column where the file cannot be read, or names what
// in it no host would read as hooks.
func (h Host) Add(content []byte, entries []Entry) ([]byte, error) {
	d, err := parse(content)
	if err != nil {
		return nil, err
	}
	found, _, err := h.look(d)
	if err != nil {
		return nil, err
	}
	if err := onlyOurs(found); err != nil {
		return nil, err
	}
	entries = h.keepSettings(entries, found)
	if h.same(entries, found) {
		return content, nil
	}
	if err := h.removeAll(d); err != nil {
		return nil, err
	}
	if i, _ := find(d.object(), "version"); i < 0 && h.layout.version {
		if err := d.appendMember(d.object(), 1, "version", 1); err != nil {
			return nil, err
		}
	}
	for _, e := range entries {
		if err := h.insert(d, e); err != nil {
			return nil, err
		}
	}
	return d.root.Pack(), nil
}

// Remove takes out every entry of stopgate, and what held nothing else. Where
// none is, the bytes are the same; alone: nothing is left but an empty object.
// Its errors are those of [Host.Add].
func (h Host) Remove(content []byte) (rest []byte, alone bool, err error) {
	d, err := parse(content)
	if err != nil {
		return nil, false, err
	}
	found, _, err := h.look(d)
	if err == nil {
		err = onlyOurs(found)
	}
	if err != nil || len(found) == 0 {
		return content, false, err
	}
	if err := h.removeAll(d); err != nil {
		return nil, false, err
	}
	if o := d.object(); h.layout.version && len(o.Members) == 1 && nameOf(&o.Members[0]) == "version" {
		d.removeMember(o, 0)
	}
	packed := d.root.Pack()
	return packed, bytes.Equal(bytes.TrimSpace(packed), []byte("{}")), nil
}

// onlyOurs refuses commands that do more than call stopgate: what they do beside
// is their user's.
func onlyOurs(found []Entry) error {
	for _, e := range found {
		if !e.HTTP() && !e.Plain {
			return fmt.Errorf("%d:1: the hook there does more than call stopgate, so it is its author's: take stopgate out of %q by hand", e.Line, e.Command)
		}
	}
	return nil
}

// keepSettings gives entries what their user has set on their predecessors: a
// longer time, what becomes of an answer when nobody can be asked, and on tool
// events the matcher. Elsewhere a matcher only does harm (fault gx-003).
func (h Host) keepSettings(entries, found []Entry) []Entry {
	entries = slices.Clone(entries)
	for i := range entries {
		e := &entries[i]
		for _, f := range found {
			if f.Event != e.Event {
				continue
			}
			if event, ok := h.Contract.Find(e.Event); ok && event.Name.ForTool() {
				e.Matcher = f.Matcher
			}
			e.Timeout = max(e.Timeout, f.Timeout)
			if e.HTTP() && len(f.extra) > 0 { // what a URL cannot say
				e.URL, e.Command = "", h.commandLine(f.start, *e)
			}
			e.keep(f)
		}
	}
	return entries
}

// keep takes over what a predecessor was told beside whom to ask.
func (e *Entry) keep(f Entry) {
	deadline := strconv.FormatFloat(f.Deadline.Seconds(), 'g', -1, 64)
	if e.HTTP() {
		if f.Deadline != gateDeadline {
			e.URL += "&deadline=" + deadline
		}
		return
	}
	words := f.extra
	if f.Deadline != gateDeadline {
		words = append(slices.Clone(words), "--deadline", deadline)
	}
	for _, w := range words {
		e.Command += " " + quote(w)
	}
}

// same reports whether the file's entries are those, each once.
func (h Host) same(entries, found []Entry) bool {
	if len(entries) != len(found) {
		return false
	}
	for _, e := range entries {
		if !slices.ContainsFunc(found, func(f Entry) bool {
			return f.Event == e.Event && f.Matcher == e.Matcher && f.URL == e.URL && f.Command == e.Command && f.Timeout == e.Timeout && len(f.bends) == 0 && !f.unread
		}) {
			return false
		}
	}
	return true
}

// insert puts one entry at the end of its event's list.
func (h Host) insert(d *document, e Entry) error {
	if h.layout.flat {
		list, err := child(d, d.object(), 1, "hooks", &hujson.Array{})
		if err != nil {
			return err
		}
		return d.appendElement(list.(*hujson.Array), 2, h.shape(e))
	}
	hooks, err := child(d, d.object(), 1, "hooks", &hujson.Object{})
	if err != nil {
		return err
	}
	list, err := child(d, hooks.(*hujson.Object), 2, e.Event, &hujson.Array{})
	if err != nil {
		return err
	}
	return d.appendElement(list.(*hujson.Array), 3, h.shape(e))
}

// child is a member's value, made where it is missing; it has the kind of empty.
func child(d *document, o *hujson.Object, depth int, name string, empty hujson.ValueTrimmed) (hujson.ValueTrimmed, error) {
	i, err := find(o, name)
	if err != nil {
		return nil, err
	}
	if i < 0 {
		if err := d.appendMember(o, depth, name, nil); err != nil {
			return nil, err
		}
		i = len(o.Members) - 1
		o.Members[i].Value.Value = empty
	}
	v := o.Members[i].Value.Value
	if v.Kind() != empty.Kind() {
		return nil, fmt.Errorf("%q is not what a host reads as hooks: want %c", name, empty.Kind())
	}
	return v, nil
}

// removeAll takes out every entry of ours.
func (h Host) removeAll(d *document) error {
	i, err := find(d.object(), "hooks")
	if err != nil || i < 0 {
		return err
	}
	if list, ok := d.object().Members[i].Value.Value.(*hujson.Array); ok && h.layout.flat {
		if h.removeFrom(d, list) && len(list.Elements) == 0 && list.AfterExtra == nil {
			d.removeMember(d.object(), i)
		}
		return nil
	}
	hooks, ok := d.object().Members[i].Value.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	changed := false
	for e := len(hooks.Members) - 1; e >= 0; e-- {
		list, ok := hooks.Members[e].Value.Value.(*hujson.Array)
		if !ok || !h.removeFrom(d, list) {
			continue
		}
		if changed = true; len(list.Elements) == 0 && list.AfterExtra == nil { // no comment is left in it
			d.removeMember(hooks, e)
		}
	}
	if changed && len(hooks.Members) == 0 && hooks.AfterExtra == nil {
		d.removeMember(d.object(), i)
	}
	return nil
}

// removeFrom takes our entries out of a list, and groups that held nothing
// else; false: there was none.
func (h Host) removeFrom(d *document, list *hujson.Array) (changed bool) {
	for i := len(list.Elements) - 1; i >= 0; i-- {
		if !h.layout.grouped {
			if h.ours(&list.Elements[i]) {
				d.removeElement(list, i)
				changed = true
			}
			continue
		}
		hooks, _ := group(&list.Elements[i])
		if hooks == nil {
			continue
		}
		gone := false
		for j := len(hooks.Elements) - 1; j >= 0; j-- {
			if h.ours(&hooks.Elements[j]) {
				d.removeElement(hooks, j)
				gone = true
			}
		}
		if changed = changed || gone; gone && len(hooks.Elements) == 0 && !commented(&list.Elements[i]) {
			d.removeElement(list, i)
		}
	}
	return changed
}

// commented reports whether there is a comment inside a value.
func commented(v *hujson.Value) bool {
	switch x := v.Value.(type) {
	case *hujson.Object:
		for i := range x.Members {
			m := &x.Members[i]
			if hasComment(m.Name.BeforeExtra) || hasComment(m.Name.AfterExtra) || around(&m.Value) || commented(&m.Value) {
				return true
			}
		}
		return hasComment(x.AfterExtra)
	case *hujson.Array:
		for i := range x.Elements {
			if around(&x.Elements[i]) || commented(&x.Elements[i]) {
				return true
			}
		}
		return hasComment(x.AfterExtra)
	}
	return false
}

// hasComment: an extra is nothing but blanks and comments.
func hasComment(e hujson.Extra) bool { return bytes.ContainsRune(e, '/') }

func around(v *hujson.Value) bool { return hasComment(v.BeforeExtra) || hasComment(v.AfterExtra) }

func (h Host) ours(v *hujson.Value) bool {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return false
	}
	_, ours := h.entry(o)
	return ours
}
