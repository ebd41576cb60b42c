package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"stopgate/cmd/internal/hookclient"
	"stopgate/config"
	"stopgate/wire/install"
)

type initCommand struct {
	Host   string `arg:"" help:"Agent host: ${hosts}."`
	Agent  string `default:"default" placeholder:"NAME" help:"Agent spec that the gate is to ask (default, which needs none)."`
	Server string `default:"${server}" placeholder:"URL" help:"URL of the server (STOPGATE_SERVER; ${server})."`
	User   bool   `help:"Write the user's own configuration, for every project, instead of this project's."`
	Print  bool   `help:"Show what would change; write nothing."`
	Remove bool   `help:"Take the entries of stopgate out again."`
}

// Help is the detail of `stopgate init --help`.
func (initCommand) Help() string {
	return `Writes the host's own hook configuration: in the current directory, or with --user below the home directory. Comments, order and foreign hooks stay as they are; older entries of stopgate are replaced; a second run changes nothing. A file that cannot be read is left alone (exit 65).

A server on this machine is called by URL where the host can do that, else by stopgate-hook where that is beside stopgate (the same as stopgate hook, and sooner), else by stopgate hook. Either takes the key, if the server wants one, from STOPGATE_API_KEY of the host's environment. No key is ever written.

Examples:
  stopgate init claude-code --agent marker
  stopgate init codex --agent marker --server https://gate.example --user
  stopgate init gemini-cli --print
  stopgate init claude-code --remove`
}

// Run edits one host's file.
func (c initCommand) Run(p process) error {
	p.stdout, p.stderr = visible{p.stdout}, visible{p.stderr}
	host, err := findHost(c.Host)
	if err = cmp.Or(err, withoutSecret(c.Server), hookclient.CheckServer(c.Server), config.CheckName("agent", c.Agent)); err != nil {
		return exit{exitUsage, err}
	}
	places, err := hostPlaces(p)
	if err != nil {
		return err
	}
	if c.User && !host.Has(install.User) {
		return exit{exitUsage, fmt.Errorf("%s has no hooks of the user's, for every project: leave --user out", host.Contract.Program)}
	}
	scope, within := install.Project, places.Project
	if c.User {
		scope, within = install.User, ""
	}
	file, err := readHostFile(host.File(places, scope), within)
	if err != nil {
		return exit{exitInput, err}
	}
	if c.Remove {
		return c.remove(p, host, file, host.Folders(places, scope))
	}
	program, err := ownPath()
	if err != nil {
		return err
	}
	entries := host.Entries(install.Target{Agent: c.Agent, Server: c.Server, Program: program, Client: clientBeside(program), Keyed: p.getenv("STOPGATE_API_KEY") != ""})
	content, err := host.Add(file.content, entries)
	if err != nil {
		return c.unreadable(file, err)
	}
	if c.Print {
		return printDiff(p, file, content)
	}
	if string(content) == string(file.content) {
		fmt.Fprintf(p.stdout, "%s has the entries already\n", file.path)
	} else if err := file.write(content); err != nil {
		return exit{exitInput, err}
	} else {
		fmt.Fprintf(p.stdout, "wrote %s: %s asks %s for agent %q\n", file.path, host.Contract.Program, c.Server, c.Agent)
		for _, e := range entries {
			fmt.Fprintf(p.stdout, "  %-20s %s%s\n", e.Event, e.URL, e.Command)
		}
	}
	c.sayNext(p, host, places, scope, entries)
	return nil
}

// sayNext says what the host still needs, and how to see that it works.
func (c initCommand) sayNext(p process, host install.Host, places install.Places, scope install.Scope, entries []install.Entry) {
	fmt.Fprintf(p.stdout, "\n%s still needs:\n", host.Contract.Program)
	for _, need := range host.Needs(scope) {
		fmt.Fprintf(p.stdout, "  - %s\n", need)
	}
	if scope == install.Project && slices.ContainsFunc(entries, func(e install.Entry) bool { return !e.HTTP() }) {
		instead := ""
		if host.Has(install.User) {
			instead = ", or use --user"
		}
		fmt.Fprintf(p.stdout, "  - %s holds the path of stopgate on this machine: do not commit it%s.\n", host.File(places, scope), instead)
	}
	other, flag := install.User, " --user"
	if scope == install.User {
		other, flag = install.Project, ""
	}
	if f, err := readHostFile(host.File(places, other), ""); host.Has(other) && err == nil && f.path != host.File(places, scope) {
		if entries, _, err := host.Found(f.content); err == nil && len(entries) > 0 {
			fmt.Fprintf(p.stdout, "  - %s has entries too, so the gate is asked twice: stopgate init %s%s --remove takes them out.\n", f.path, host.Name, flag)
		}
	}
	fmt.Fprintf(p.stdout, "\nNext: stopgate doctor %s\n", host.Name)
}

// remove undoes init.
func (c initCommand) remove(p process, host install.Host, file hostFile, folders []string) error {
	rest, alone, err := host.Remove(file.content)
	if err != nil {
		return c.unreadable(file, err)
	}
	gone := alone && !file.linked // what a link leads to is somebody's own
	switch {
	case string(rest) == string(file.content):
		fmt.Fprintf(p.stdout, "%s has no entry of stopgate\n", file.path)
		return nil
	case c.Print && gone:
		fmt.Fprintf(p.stdout, "%s would be deleted: nothing else is in it\n", file.path)
		return printDiff(p, file, nil)
	case c.Print:
		return printDiff(p, file, rest)
	case gone:
		err = file.remove(folders)
	default:
		err = file.write(rest)
	}
	if err != nil {
		return exit{exitInput, err}
	}
	fmt.Fprintf(p.stdout, "took the entries of stopgate out of %s\n", file.path)
	return nil
}

func (c initCommand) unreadable(file hostFile, err error) error {
	return exit{exitInput, fmt.Errorf("%s:%w; nothing was written", file.path, err)}
}

func printDiff(p process, file hostFile, content []byte) error {
	_, err := p.stdout.Write(diff.Diff(file.path, file.content, file.path, content))
	return err
}

// findHost is the host of a name that somebody typed.
func findHost(name string) (install.Host, error) {
	host, ok := install.Find(name)
	if !ok {
		return host, fmt.Errorf("host %q is unknown: want one of %s%s", name, strings.Join(install.Names(), ", "), config.DidYouMean(name, install.Names()))
	}
	return host, nil
}

// withoutSecret refuses what may not stand in a host's file: hosts show the URL
// to their model.
func withoutSecret(server string) error {
	if u, err := url.Parse(server); err == nil && u.User != nil {
		return errors.New("--server has a name or password in it, which agents would see: put the key into STOPGATE_API_KEY")
	}
	return nil
}

// hostPlaces are where hosts look, for a host that is started here.
func hostPlaces(p process) (install.Places, error) {
	project, err := os.Getwd()
	if err == nil {
		project, err = filepath.EvalSymlinks(project) // as hosts name the folders that they trust
	}
	if err != nil {
		return install.Places{}, err
	}
	home := p.getenv("HOME")
	if home == "" {
		return install.Places{}, exit{exitUsage, errors.New("HOME is not set, so nobody knows where the user's files are")}
	}
	return install.Places{Project: project, Home: home, System: string(filepath.Separator), Getenv: p.getenv}, nil
}

// ownPath is this program as an absolute path: by the name that it was called
// by, since a link outlives the file that an upgrade replaces.
func ownPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if called, err := exec.LookPath(os.Args[0]); err == nil && filepath.IsAbs(called) && sameFile(called, self) {
		return called, nil
	}
	return self, nil
}

// clientBeside is the stopgate-hook in the program's own directory; empty if there
// is none.
func clientBeside(program string) string {
	path := filepath.Join(filepath.Dir(program), hookclient.Name)
	if about, err := os.Stat(path); err != nil || !about.Mode().IsRegular() || about.Mode()&0o111 == 0 {
		return ""
	}
	return path
}

func sameFile(a, b string) bool {
	one, errOne := os.Stat(a)
	other, errOther := os.Stat(b)
	return errOne == nil && errOther == nil && os.SameFile(one, other)
}

// hostNames lists the hosts for flags and messages.
func hostNames() string { return strings.Join(install.Names(), ",") }
