package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"stopgate/cmd/internal/hookclient"
	"stopgate/config"
	"stopgate/gate"
	"stopgate/wire/install"
)

type doctorCommand struct {
	Host   string   `arg:"" optional:"" help:"Agent host: ${hosts}; without one, all that have entries of stopgate."`
	Server string   `placeholder:"URL" help:"Server to look at beside those that the entries name (STOPGATE_SERVER)."`
	Agent  []string `sep:"none" placeholder:"NAME" help:"Agent spec to look at beside those that the entries name; may be given again."`
	JSON   bool     `help:"Print the findings as JSON."`

	TrustProject bool `help:"Run the project's hook commands also where they do more than call stopgate, and send the key to any server that the project's files name."`
}

// Help is the detail of `stopgate doctor --help`.
func (doctorCommand) Help() string {
	return `Looks at the entries of stopgate in the hosts' files of this directory and of the user, at what turns hooks off, and at the server. Then it sends a probe through each installed entry, as the host would run or call it, with a tool that the entry's matcher lets pass. Where the agent has hooks on the event, a gate in order answers with a block, without asking a hook; elsewhere without an objection. An event that the agent has hooks on and that has no entry is an error. The server records the probes as dry runs and counts nothing.

Exit 0: the gate gates. Exit 1: it would not; every finding says what to do.

A project's files are whatever its authors wrote. Their commands are run only where they are one call of a stopgate that lies outside the project, and STOPGATE_API_KEY goes only to servers on this machine, in the user's own files, in STOPGATE_SERVER or in --server, unless --trust-project says otherwise.

Examples:
  stopgate doctor claude-code
  stopgate doctor codex --server https://gate.example --agent marker
  stopgate doctor --json`
}

// severityOK is a finding that all is well; the others are those of specs.
const severityOK gate.Severity = "ok"

// diagnosis is one finding.
type diagnosis struct {
	About    string        `json:"about"` // a host, or "server URL"
	Severity gate.Severity `json:"severity"`
	Place    string        `json:"place,omitempty"` // file:line
	Message  string        `json:"message"`
	Do       string        `json:"do,omitempty"`
}

// doctor gathers the findings.
type doctor struct {
	process
	places   install.Places
	trusting bool            // --trust-project
	vouched  map[string]bool // servers that somebody but the project names
	findings []diagnosis
	servers  []*examined
}

// patient is one host with its entries.
type patient struct {
	host    install.Host
	entries []install.Entry
}

// Run examines, prints and ends with 1 where the gate would not gate.
func (c doctorCommand) Run(p process) error {
	p.stdout, p.stderr = visible{p.stdout}, visible{p.stderr}
	places, err := hostPlaces(p)
	if err != nil {
		return err
	}
	hosts := install.All()
	if c.Host != "" {
		host, err := findHost(c.Host)
		if err != nil {
			return exit{exitUsage, err}
		}
		hosts = []install.Host{host}
	}
	if err := cmp.Or(hookclient.CheckServer(orServer(c.Server, serverURL(p.getenv))), hookclient.CheckServer(serverURL(p.getenv))); err != nil {
		return exit{exitUsage, err}
	}
	d := &doctor{process: p, places: places, trusting: c.TrustProject, vouched: map[string]bool{
		orServer("", serverURL(p.getenv)): true, orServer(c.Server, serverURL(p.getenv)): true}}
	var patients []patient
	for _, host := range hosts {
		if found, ok := d.lookAt(host, c.Host != ""); ok {
			patients = append(patients, found)
		}
	}
	if len(patients) == 0 && c.Host == "" {
		d.say("hosts", gate.SeverityError, "", "no host has an entry of stopgate here: none asks the gate", "run stopgate init HOST, with one of "+strings.Join(install.Names(), ", "))
	}
	d.examineServers(c, patients)
	for _, pt := range patients {
		d.probe(pt)
	}
	if err := d.print(c.JSON); err != nil {
		return err
	}
	if d.failed() {
		return exit{code: exitFindings}
	}
	return nil
}

func (d *doctor) say(about string, severity gate.Severity, place, message, do string) {
	d.findings = append(d.findings, diagnosis{about, severity, place, message, do})
}

// lookAt reads a host's files. ok is false for a host that nobody asked about
// and that has no entry.
func (d *doctor) lookAt(host install.Host, asked bool) (pt patient, ok bool) {
	pt = patient{host: host}
	before := len(d.findings)
	scopes := []install.Scope{install.Project, install.User}
	if !host.Has(install.User) {
		scopes = scopes[:1]
	} else if host.File(d.places, install.Project) == host.File(d.places, install.User) { // in the home directory
		scopes = []install.Scope{install.User}
	}
	for _, scope := range scopes {
		pt.entries = append(pt.entries, d.readEntries(host, scope, asked)...)
	}
	if len(pt.entries) == 0 && !asked && !d.broken(before) {
		d.findings = d.findings[:before]
		return pt, false
	}
	for _, problem := range host.Missing(pt.entries) {
		d.problem(host.Name, host.File(d.places, install.Project), problem)
	}
	d.twice(pt)
	settings := host.Settings(d.places)
	for i := range settings {
		content, _, err := readRegular(settings[i].Path)
		if err == nil {
			settings[i].Content = content
		} else if !errors.Is(err, fs.ErrNotExist) {
			d.say(host.Name, gate.SeverityWarning, settings[i].Path, fmt.Sprintf("it cannot be looked at: %v", err), "look yourself whether it turns hooks off")
		}
	}
	for _, problem := range host.Off(d.places, settings, pt.entries) {
		d.problem(host.Name, "", problem)
	}
	d.checkVersion(host)
	return pt, true
}

// broken reports whether there is an error among the findings since then.
func (d *doctor) broken(since int) bool {
	return slices.ContainsFunc(d.findings[since:], func(f diagnosis) bool { return f.Severity == gate.SeverityError })
}

// readEntries are the entries in one file of a host's. A file that cannot be
// read is an error if somebody asked about the host, or if it has to do with us.
func (d *doctor) readEntries(host install.Host, scope install.Scope, asked bool) []install.Entry {
	path := host.File(d.places, scope)
	file, err := readHostFile(path, "")
	if err != nil {
		if asked {
			d.say(host.Name, gate.SeverityError, path, err.Error(), "mend the file, then run stopgate init "+host.Name)
		}
		return nil
	}
	entries, problems, err := host.Found(file.content)
	if err != nil {
		if asked || bytes.Contains(file.content, []byte("stopgate")) || bytes.Contains(file.content, []byte("/v1/hooks/")) {
			d.say(host.Name, gate.SeverityError, path, err.Error(), "mend the file: the host reads no hook in it")
		}
		return nil
	}
	var events []string
	for i := range entries {
		entries[i].File, entries[i].Scope = path, scope
		if scope == install.User && entries[i].Server != "" {
			d.vouched[orServer(entries[i].Server, "")] = true
		}
		events = append(events, entries[i].Event)
	}
	if len(entries) > 0 {
		d.say(host.Name, severityOK, path, fmt.Sprintf("the %s's hooks have entries on %s", scope, strings.Join(events, ", ")), "")
	}
	for _, problem := range problems {
		d.problem(host.Name, path, problem)
	}
	if host.Name == "ax-code" && len(entries) > 0 {
		d.dropped(host, file)
	}
	return entries
}

// dropped says why AX Code drops a whole file, which it does in silence for any
// one entry (spec/ax-code.md 2).
func (d *doctor) dropped(host install.Host, file hostFile) {
	_, findings := config.ReadAttached(gate.AXCode, gate.DefaultAgent, file.content)
	for _, f := range findings {
		if f.Severity == gate.SeverityError {
			d.say(host.Name, f.Severity, fmt.Sprintf("%s:%d", file.path, f.Line), f.Message, "mend the file: none of its hooks runs")
		}
	}
}

// twice warns of events that both files ask the gate about.
func (d *doctor) twice(pt patient) {
	for _, e := range pt.entries {
		event, ok := pt.host.Contract.Find(e.Event)
		if ok && event.Name == gate.Stop && e.Scope == install.User && slices.ContainsFunc(pt.entries, func(o install.Entry) bool { return o.Scope == install.Project && o.Event == e.Event }) {
			d.say(pt.host.Name, gate.SeverityWarning, e.File, "both the user's and the project's hooks ask the gate, and a rejection counts twice",
				fmt.Sprintf("run stopgate init %s --user --remove, or without --user", pt.host.Name))
			return
		}
	}
}

// problem takes over what package install found.
func (d *doctor) problem(about, path string, p install.Problem) {
	if path != "" && p.Line > 0 {
		path = fmt.Sprintf("%s:%d", path, p.Line)
	}
	d.say(about, p.Severity, path, p.Text, p.Do)
}

func (d *doctor) failed() bool { return d.broken(0) }

func (d *doctor) print(asJSON bool) error {
	if asJSON {
		return printJSON(d.stdout, map[string]any{"ok": !d.failed(), "findings": d.findings})
	}
	var abouts []string
	for _, f := range d.findings {
		if !slices.Contains(abouts, f.About) {
			abouts = append(abouts, f.About)
		}
	}
	for _, about := range abouts {
		fmt.Fprintln(d.stdout, about)
		for _, f := range d.findings {
			if f.About == about {
				f.Place = strings.TrimPrefix(f.Place, d.places.Project+"/")
				f.print(d.stdout)
			}
		}
	}
	verdict := "\nThe gate gates."
	switch {
	case d.failed():
		verdict = "\nThe gate would not gate: see the errors."
	case slices.ContainsFunc(d.findings, func(f diagnosis) bool { return f.Severity == gate.SeverityWarning }):
		verdict = "\nThe gate gates, unless a warning applies."
	}
	_, err := fmt.Fprintln(d.stdout, verdict)
	return err
}

func (f diagnosis) print(w io.Writer) {
	if f.Place != "" {
		f.Message = f.Place + ": " + f.Message
	}
	fmt.Fprintf(w, "  %-8s %s\n", f.Severity, f.Message)
	if f.Do != "" {
		fmt.Fprintf(w, "           → %s\n", f.Do)
	}
}
