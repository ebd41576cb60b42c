package commandhooks

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"stopgate/gate"
)

// axCodeArgsBytes is how much JSON HOOK_ARGS_JSON takes; of more it is empty
// (spec/ax-code.md 8).
const axCodeArgsBytes = 32_768

// axCodeNameBytes bounds the other variables: a value that the kernel refuses
// would keep the hook from running, and a name may be as long as somebody likes.
const axCodeNameBytes = 32_768

// axCodeEnv is what a hook of AX Code finds in its environment beside what every
// hook does: the host's own, sanitised, and the HOOK_ variables
// (spec/ax-code.md 8, 21, 22).
func axCodeEnv(host []string, in gate.Input) map[string]string {
	env := sanitised(host)
	event, tool := gate.AXCodeNames(in.Event)
	args := string(in.Context)
	if len(args) > axCodeArgsBytes {
		args = ""
	}
	maps.Copy(env, map[string]string{"HOOK_EVENT": event, "HOOK_TOOL": tool, "HOOK_SESSION_ID": in.Event.Session, "HOOK_ARGS_JSON": args,
		"HOOK_ARGS_STDIN": "1", "HOOK_PACK": in.Hook.Pack})
	for _, name := range []string{"HOOK_TOOL", "HOOK_SESSION_ID", "HOOK_PACK"} {
		env[name] = gate.Cut(strings.ReplaceAll(env[name], "\x00", ""), axCodeNameBytes)
	}
	return env
}

// withHost is base, what every hook gets, with a host's variables over it. The
// temporary directory and the mark of a hook stay base's, and its search path is the end of the host's:
// there are the interpreters that the gate has found.
func withHost(base []string, host map[string]string) []string {
	if host == nil {
		return base
	}
	env := maps.Clone(host)
	for _, variable := range base {
		name, value, _ := strings.Cut(variable, "=")
		switch have, ok := env[name]; {
		case name == "PATH" && have != "":
			env[name] = have + ":" + value
		case !ok || name == "TMPDIR" || name == gate.FromHookVariable:
			env[name] = value
		}
	}
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// FullEnvironment reports whether a host's environment, as [os.Environ] has it,
// asks for hooks of AX Code to get all of it (spec/ax-code.md 22).
func FullEnvironment(host []string) bool {
	full := false
	for _, variable := range host {
		if value, ok := strings.CutPrefix(variable, "AX_CODE_HOOKS_FULL_ENV="); ok {
			full = slices.Contains([]string{"true", "1", "yes", "on"}, strings.ToLower(strings.TrimSpace(value)))
		}
	}
	return full
}

// sanitised are the variables of a host's environment, as [os.Environ] has it,
// that hooks of AX Code get: without what looks like a secret, and what makes
// programs load code; all of them where it asks for that ([FullEnvironment]).
// stopgate's own never pass (DESIGN §9); its keys by other names are not in host.
func sanitised(host []string) map[string]string {
	full := FullEnvironment(host)
	env := map[string]string{}
	for _, variable := range host {
		name, value, ok := strings.Cut(variable, "=")
		switch {
		case !ok || name == "" || strings.ContainsRune(variable, 0) || strings.HasPrefix(name, "STOPGATE_"):
		case full || slices.Contains(alwaysKept, name):
			env[name] = value
		case secretName.MatchString(name) || loadsCode.MatchString(name) || secretURL.MatchString(value):
		default:
			env[name] = value
		}
	}
	return env
}

// alwaysKept pass whatever they look like (spec/ax-code.md 21).
var alwaysKept = []string{"PYTHON_KEYRING_BACKEND", "XAUTHORITY", "DOTNET_CLI_TELEMETRY_SESSION_TOKEN", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS",
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TZ", "PWD", "TMPDIR",
	"LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER",
	"LC_TELEPHONE", "LC_TIME"}

var (
	// secretName is a name of what is or leads to a secret.
	secretName = regexp.MustCompile(`(?i)KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|AUTH|WEBHOOK|(?:^|_)PAT(?:_|$)|` +
		`(?:DATABASE|REDIS|AMQP|MONGODB|POSTGRES|MYSQL|ELASTIC|BROKER).*UR[LI]|^(?:KUBECONFIG|SSH_AUTH_SOCK|GIT_ASKPASS|SUDO_ASKPASS)$`)
	// loadsCode is a name of what makes a program run what somebody else wrote.
	loadsCode = regexp.MustCompile(`(?i)^(?:LD_PRELOAD|LD_LIBRARY_PATH|DYLD_.*|NODE_OPTIONS|NODE_PATH|NODE_EXTRA_CA_CERTS|ELECTRON_RUN_AS_NODE|` +
		`PYTHONPATH|PYTHONSTARTUP|RUBYOPT|BASH_ENV|PERL5OPT|JAVA_TOOL_OPTIONS|JAVA_OPTIONS|CLASSPATH)$`)
	// secretURL is a value with a URL that names a user, or with a secret in its
	// query: words of a key stand between the hyphens of X-Amz-Signature too.
	secretURL = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://(?:[^\s/?#]*@|\S*[?&](?:[^\s=&#]*[-_.])?` +
		`(?:signature|credential|token|secret|password|passwd|api_?key|access_?key)(?:[-_.][^\s=&#]*)?=)`)
)
