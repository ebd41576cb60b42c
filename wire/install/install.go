// Package install knows each agent host's own hook file: where it lies, how an
// entry of stopgate looks there, what else keeps hooks from running. It edits
// bytes and looks at bytes; reading and writing files is the caller's:
//
//	host, _ := install.Find("claude-code")
//	file, err := host.Add(content, host.Entries(install.Target{Agent: "marker", Server: "http://127.0.0.1:8790", Program: "/usr/bin/stopgate"}))
//
// A host's file belongs to its user: comments, order, indentation and every
// foreign entry stay as they are, and what cannot be read is never written.
// What a host does with an entry is package contracts' to say.
package install

import (
	"path/filepath"
	"slices"

	"stopgate/wire/contracts"
)

// Host is one agent host's hook configuration. It is made by [Find].
type Host struct {
	Name     string
	Contract contracts.Contract

	// Executable is what starts the host, for its version.
	Executable string

	// folder is the host's own, in a project and in the user's home;
	// folderVariable names another for the user, homeVariable another home.
	folder, folderVariable, homeVariable string
	// projectFile and userFile hold the hooks: below the project, and below the
	// user's folder. No userFile: there are none of the user's.
	projectFile, userFile string

	layout layout
	off    func(switches) []Problem
}

// Scope says whose entries a file holds.
type Scope string

// The scopes of a hook file, and that of what an administrator sets.
const (
	Project Scope = "project"
	User    Scope = "user"
	Managed Scope = "managed"
)

// Places are where a host looks on this machine.
type Places struct {
	Project string              // the project's directory, absolute
	Home    string              // the user's home
	System  string              // the root of the file system
	Getenv  func(string) string // the environment that hosts will have
}

// Find is the host of that name.
func Find(name string) (Host, bool) {
	all := All()
	i := slices.IndexFunc(all, func(h Host) bool { return h.Name == name })
	if i < 0 {
		return Host{}, false
	}
	return all[i], true
}

// All lists the hosts, each with the contract of package contracts.
func All() []Host {
	all := []Host{
		{Name: "claude-code", Executable: "claude", folder: ".claude", folderVariable: "CLAUDE_CONFIG_DIR",
			projectFile: ".claude/settings.json", userFile: "settings.json",
			layout: layout{grouped: true, command: "command", timeout: "timeout"}, off: claudeCodeOff},
		{Name: "codex", Executable: "codex", folder: ".codex", folderVariable: "CODEX_HOME",
			projectFile: ".codex/hooks.json", userFile: "hooks.json",
			layout: layout{grouped: true, command: "command", timeout: "timeout"}, off: codexOff},
		{Name: "gemini-cli", Executable: "gemini", folder: ".gemini", homeVariable: "GEMINI_CLI_HOME",
			projectFile: ".gemini/settings.json", userFile: "settings.json",
			layout: layout{grouped: true, command: "command", timeout: "timeout"}, off: geminiCLIOff},
		{Name: "qwen-code", Executable: "qwen", folder: ".qwen", folderVariable: "QWEN_HOME",
			projectFile: ".qwen/settings.json", userFile: "settings.json",
			layout: layout{grouped: true, command: "command", timeout: "timeout"}, off: qwenCodeOff},
		// Of copilot's two forms the camelCase one, which every version reads.
		{Name: "copilot", Executable: "copilot", folder: ".copilot", folderVariable: "COPILOT_HOME",
			projectFile: ".github/hooks/stopgate.json", userFile: "hooks/stopgate.json",
			layout: layout{command: "bash", timeout: "timeoutSec", version: true, camelCase: true}, off: copilotOff},
		{Name: axCode, Executable: "ax-code", folder: ".ax-code", projectFile: ".ax-code/hooks.json",
			layout: layout{flat: true, command: "command"}, off: axCodeOff},
	}
	for i := range all {
		all[i].Contract, _, _ = contracts.For(all[i].Name, "")
	}
	return all
}

func (h Host) is(protocol string) bool { return h.Name == protocol }

// Names lists the hosts' names.
func Names() []string {
	var names []string
	for _, h := range All() {
		names = append(names, h.Name)
	}
	return names
}

// Has reports whether the host has hooks of that scope.
func (h Host) Has(scope Scope) bool { return scope == Project || h.userFile != "" }

// File is the path of the file that holds the hooks of a scope.
func (h Host) File(p Places, scope Scope) string {
	if scope == User {
		return filepath.Join(h.userFolder(p), filepath.FromSlash(h.userFile))
	}
	return filepath.Join(p.Project, filepath.FromSlash(h.projectFile))
}

// Folders are the directories that the file of a scope lies in and that init
// makes where they are missing, the innermost first. A folder that a variable
// names is not among them: its owner made it.
func (h Host) Folders(p Places, scope Scope) []string {
	top := p.Project
	if scope == User {
		if top = h.userFolder(p); top == filepath.Join(p.Home, h.folder) {
			top = p.Home
		}
	}
	var folders []string
	for dir := filepath.Dir(h.File(p, scope)); len(dir) > len(top); dir = filepath.Dir(dir) {
		folders = append(folders, dir)
	}
	return folders
}

// userFolder is the host's folder of the user's.
func (h Host) userFolder(p Places) string {
	if h.folderVariable != "" {
		if dir := p.Getenv(h.folderVariable); dir != "" {
			return dir
		}
	}
	home := p.Home
	if h.homeVariable != "" {
		if dir := p.Getenv(h.homeVariable); dir != "" {
			home = dir
		}
	}
	return filepath.Join(home, h.folder)
}

// Needs says what the host still needs, beside the entries, before it runs
// them: sentences for a person. Hosts tell none of it themselves.
func (h Host) Needs(scope Scope) []string {
	const managed = "An administrator's settings can allow managed hooks only, or none: doctor looks."
	project := scope == Project
	var needs []string
	say := func(yes bool, text string) {
		if yes {
			needs = append(needs, text)
		}
	}
	switch h.Name {
	case "claude-code":
		say(true, "Claude Code reads its hooks when a session starts: start a new one.")
		say(true, managed)
	case "codex":
		say(project, "Codex ignores a project's hooks until the project is trusted: start codex here and trust it.")
		say(true, "Codex skips every hook, new or changed, until it was reviewed: type /hooks in codex and trust those of stopgate.")
		say(true, managed)
	case "gemini-cli":
		say(project, "Gemini CLI ignores a project's settings where folder trust is on and the folder is not trusted: type /permissions in gemini, or set GEMINI_CLI_TRUST_WORKSPACE=true where nobody can.")
	case "qwen-code":
		say(project, "Qwen Code ignores a project's hooks where folder trust is on and the folder is not trusted: type /permissions in qwen.")
	case "copilot":
		say(true, "Copilot CLI runs hooks in folders that it trusts only: start copilot here and trust it.")
		say(true, "The entries are commands, since Copilot CLI calls no http hook on this machine unless COPILOT_HOOK_ALLOW_LOCALHOST=1 is set.")
	case axCode:
		say(true, axCodeTrust+": it has to be in the environment that ax-code is started in.")
		say(true, axCodeStop+".")
		say(true, axCodeKey+".")
	}
	return needs
}
