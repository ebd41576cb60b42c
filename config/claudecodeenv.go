package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"stopgate/gate"
)

// maxEnvBytes bounds the variables of settings: the kernel starts no program with
// very much more, and the hook would be asked nothing.
const maxEnvBytes = 64 << 10

// env reads the variables that settings set, which Claude Code's hooks find in
// their environment. No finding quotes a value: it may be a secret.
func (r *claudeCodeReader) env(n *node) map[string]string {
	o := &object{findings: r.findings, node: n}
	list := o.node.find("env")
	if list == nil || list.kind != objectKind {
		return nil
	}
	env, size := map[string]string{}, 0
	for _, f := range list.fields {
		path := "env." + cut(f.name)
		if size += len(f.name) + len(f.value.text); size > maxEnvBytes {
			r.warnf("env", list.pos, "env is larger than %d bytes: hooks get what comes first", maxEnvBytes)
			break
		}
		switch f.value.kind {
		case textKind, numberKind, boolKind:
		default:
			r.warnf(path, f.value.pos, "%s is no text: hooks do not get it", path)
			continue
		}
		if !gate.HookVariable(f.name) {
			if r.played || r.named(f.name) {
				r.warnf(path, f.pos, "%s does not reach hooks: it is stopgate's own, or says what runs round them: set it in the command itself", path)
			}
			continue
		}
		env[f.name] = f.value.text
	}
	return env
}

// keep is what of the variables a server keeps: those that a command names, but
// for credentials. It says what it leaves out.
func (r *claudeCodeReader) keep(n *node, env map[string]string) map[string]string {
	kept := map[string]string{}
	var unnamed, secret []string
	list := n.find("env")
	for _, f := range fieldsOf(list) {
		value, usable := env[f.name]
		path := "env." + cut(f.name)
		switch {
		case !usable:
		case credentialName.MatchString(f.name) || credentialURL.MatchString(value):
			if !r.named(f.name) {
				secret = append(secret, cut(f.name))
				continue
			}
			r.warnf(path, f.pos, "%s looks like a credential, so a server does not keep it, and the command that names it finds it empty: %s", path, credentialPlace)
		case !r.named(f.name):
			unnamed = append(unnamed, cut(f.name))
		default:
			kept[f.name] = value
		}
	}
	if len(unnamed) > 0 {
		r.warnf("env", list.pos, "a server does not keep %s, as no hook's command names them: a script that reads one needs it in its command, as NAME=value python3 …", someOf(unnamed))
	}
	if len(secret) > 0 {
		r.warnf("env", list.pos, "a server does not keep %s, which look like credentials: where a script reads one, %s", someOf(secret), credentialPlace)
	}
	return kept
}

// someOf lists the first of names, and says how many more there are.
func someOf(names []string) string {
	more := ""
	if left := len(names) - maxNamed; left > 0 {
		names, more = names[:maxNamed], fmt.Sprintf(" and %d more", left)
	}
	return strings.Join(names, ", ") + more
}

var (
	// credentialName is a name of what lets somebody in.
	credentialName = regexp.MustCompile(`(?i)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|AUTH|AUTHORIZATION|COOKIE)S?$|(?:^|[_-])PAT$`)
	// credentialURL is a value with a URL that has a password.
	credentialURL = regexp.MustCompile(`://[^/\s:@]*:[^/\s@]+@`)
)

// named reports whether a hook's command has the name of a variable in it, be it
// $NAME, ${NAME:-x} or what printenv is given.
func (r *claudeCodeReader) named(name string) bool {
	return slices.ContainsFunc(r.hooks, func(h gate.Hook) bool {
		return slices.ContainsFunc(append([]string{h.Command}, h.Args...), func(text string) bool { return hasWord(text, name) })
	})
}

// hasWord reports whether a text has a name in it that is no part of a longer one.
func hasWord(text, name string) bool {
	part := func(b byte) bool {
		return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
	}
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		begin := from + i
		end := begin + len(name)
		if (begin == 0 || !part(text[begin-1])) && (end == len(text) || !part(text[end])) {
			return true
		}
		from = begin + 1
	}
}

// fieldsOf are an object's members; of anything else there are none.
func fieldsOf(n *node) []field {
	if n == nil || n.kind != objectKind {
		return nil
	}
	return n.fields
}

// giveEnv has every command find the variables.
func giveEnv(hooks []gate.Hook, env map[string]string) {
	for i := range hooks {
		if hooks[i].Type == gate.CommandHook && len(env) > 0 {
			hooks[i].Env = env
		}
	}
}
