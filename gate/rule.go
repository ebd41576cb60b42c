package gate

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Rule says which calls of a tool a hook of Claude Code is about, as its `if`
// has it in the form of a permission rule: Tool, or Tool(pattern). A nil Rule
// holds for every call. It is safe for concurrent use.
//
//	Bash(git push *)       a command that begins so, also one inside a longer line
//	Bash(npm run test:*)   the same, written in the older way
//	Edit(src/**)           a file below src in the working directory
//	Read(.env)             a file of that name at any depth
//	Read(//etc/**)         an absolute path
//	Read(~/.ssh/**)        a path in a home directory, whosever
//	WebFetch(domain:example.com)
//	Agent(Explore)         a sub-agent of that type
//	mcp__github, mcp__github__get_*   tools of a server
//
// It holds for the tool that it names and no other: Edit(…) is not about Write
// (seen with Claude Code 2.1.332). Paths are compared as they are written, in
// letters of any case; symbolic links are not followed. A call of which the rule
// cannot tell, since its command cannot be parsed or it names no file, is one that
// the hook is about: better asked once too often.
//
// A rule on commands looks behind those that start others, and behind a program's
// path: Bash(git push *) is about `sudo git push`, `timeout 5 git push`, `bash -c
// 'git push'` and /usr/bin/git push. Claude Code 2.1.332 was measured not to look
// behind timeout, sudo, nice and nohup, though its documentation has it strip
// timeout, time, nice, nohup, stdbuf and a bare xargs. Here a hook is asked that
// it would not ask: a hook that is not asked lets the call pass unseen.
type Rule struct {
	source string
	tool   string
	about  func(call map[string]json.RawMessage, cwd string) bool // nil: every call
}

// String is the rule as it was declared.
func (r *Rule) String() string { return r.source }

// maxRuleBytes is far beyond any rule that people write.
const maxRuleBytes = 4096

// CompileRule reads a rule. The error says what of it is not understood.
func CompileRule(text string) (*Rule, error) {
	r := &Rule{source: text}
	tool, rest, open := strings.Cut(strings.TrimSpace(text), "(")
	pattern, closed := strings.CutSuffix(rest, ")")
	r.tool = strings.TrimSpace(tool)
	switch {
	case len(text) > maxRuleBytes:
		return nil, fmt.Errorf("rule is %d bytes long, want at most %d", len(text), maxRuleBytes)
	case open && !closed, r.tool == "", strings.ContainsAny(r.tool, " ,|)"):
		return nil, fmt.Errorf("rule %q is not of the form Tool or Tool(pattern)", text)
	case !open, pattern == "*", pattern == "":
		return r, nil
	}
	var err error
	switch r.tool {
	case "Bash":
		r.about = commandRule(pattern)
	case "Edit", "Write", "MultiEdit", "NotebookEdit", "Read":
		r.about, err = pathRule(pattern)
	case "WebFetch":
		r.about, err = domainRule(pattern)
	case "Agent", "Task":
		r.about = func(call map[string]json.RawMessage, _ string) bool {
			kind, ok := argument(call, "subagent_type")
			return !ok || kind == pattern
		}
	default:
		err = fmt.Errorf("rules on the arguments of %s are not evaluated by the gate, but those of Bash, Edit, Write, Read, WebFetch and Agent", r.tool)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// WidestRule is about every call of the tool that a text names, where [CompileRule]
// understands no more of it: better asked once too often. It is nil, which is about
// every call, where not even that is plain.
func WidestRule(text string) *Rule {
	tool, _, _ := strings.Cut(strings.TrimSpace(text), "(")
	tool = strings.TrimSpace(tool)
	if tool == "" || len(text) > maxRuleBytes || strings.ContainsAny(tool, " ,|)") {
		return nil
	}
	return &Rule{source: text, tool: tool}
}

// holds reports whether a call is one that the rule is about: tools are the
// tool's names, input its arguments.
func (r *Rule) holds(tools []string, input json.RawMessage, cwd string) bool {
	if r == nil {
		return true
	}
	if !slices.ContainsFunc(tools, r.names) {
		return false
	}
	var call map[string]json.RawMessage
	return r.about == nil || json.Unmarshal(input, &call) != nil || r.about(call, cwd)
}

// names reports whether a tool is one that the rule is about.
func (r *Rule) names(tool string) bool {
	return tool == r.tool || strings.HasPrefix(r.tool, "mcp__") && (strings.HasPrefix(tool, r.tool+"__") || wild(r.tool, tool))
}

// argument is a text among a call's arguments.
func argument(call map[string]json.RawMessage, name string) (text string, ok bool) {
	ok = json.Unmarshal(call[name], &text) == nil && text != ""
	return text, ok
}

// maxHostBytes is more than any name in the DNS has.
const maxHostBytes = 256

// domainRule: domain:HOST, in which * stands for anything.
func domainRule(pattern string) (func(map[string]json.RawMessage, string) bool, error) {
	domain, ok := strings.CutPrefix(pattern, "domain:")
	if !ok || domain == "" {
		return nil, fmt.Errorf("rule WebFetch(%s) is not of the form WebFetch(domain:example.com)", pattern)
	}
	return func(call map[string]json.RawMessage, _ string) bool {
		target, ok := argument(call, "url")
		if !ok {
			return true
		}
		u, err := url.Parse(target)
		return err != nil || u.Hostname() == "" || len(u.Hostname()) > maxHostBytes || wild(strings.ToLower(domain), strings.TrimSuffix(strings.ToLower(u.Hostname()), "."))
	}, nil
}

// maxPathWork bounds what comparing a path takes, which is its length times the
// pattern's: some 20 ms. Of calls that would take more the rule cannot tell.
const maxPathWork = 1 << 20

// pathRule: a pattern as .gitignore has them. //x is the absolute path /x; what
// begins with /, or has a / in its middle, lies in the working directory; another
// name, be it behind ./, at any depth below it. ~/x is x in any directory, since any may
// be the home of who runs the agent. ** stands for any directories, * and ? for
// what holds no /. A directory's name stands for what is in it.
func pathRule(pattern string) (func(map[string]json.RawMessage, string) bool, error) {
	glob, absolute := strings.CutPrefix(pattern, "//")
	if below, home := strings.CutPrefix(pattern, "~/"); home {
		glob, absolute = "**/"+below, true
	}
	switch {
	case strings.HasPrefix(pattern, "~") && !absolute:
		return nil, fmt.Errorf("rule path %q lies in the home directory of somebody else, which the gate does not know: write it as //home/NAME/…", pattern)
	case strings.HasPrefix(pattern, "!"), strings.ContainsAny(pattern, `[]{}\`):
		return nil, fmt.Errorf("rule path %q holds one of ! [ ] { } \\, which the gate does not evaluate", pattern)
	case !absolute:
		glob = strings.TrimPrefix(glob, "./")
		anchored := strings.Contains(strings.TrimSuffix(glob, "/"), "/")
		if glob = strings.TrimPrefix(glob, "/"); !anchored {
			glob = "**/" + glob
		}
	}
	re, err := pathPattern(glob)
	if err != nil {
		return nil, fmt.Errorf("rule path %q: %w", pattern, err)
	}
	about := func(file, cwd string) bool {
		switch {
		case (len(file)+len(cwd))*len(glob) > maxPathWork:
			return true
		case !path.IsAbs(file) && cwd == "":
			return absolute || re.MatchString(path.Clean(file))
		case !path.IsAbs(file):
			file = cwd + "/" + file
		}
		if file = path.Clean(file); absolute {
			return re.MatchString(strings.TrimPrefix(file, "/"))
		}
		below, inside := strings.CutPrefix(file, strings.TrimSuffix(path.Clean(cwd), "/")+"/")
		return cwd == "" || inside && re.MatchString(below)
	}
	return func(call map[string]json.RawMessage, cwd string) bool {
		file, named := argument(call, "file_path")
		notebook, also := argument(call, "notebook_path") // the tool knows one of them, and passes over the other
		return !named && !also || named && about(file, cwd) || also && about(notebook, cwd)
	}, nil
}
