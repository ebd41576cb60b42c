package commandhooks

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

func TestAXCode21Sanitised(t *testing.T) {
	kept := []string{"PATH=/x/bin", "HOME=/home/a", "USER=a", "LANG=de_DE.UTF-8", "LC_ALL=C", "LC_IDENTIFICATION=C", "LC_PROJECT=x", "EDITOR=vi", "GOFLAGS=-v", "PYTHON_KEYRING_BACKEND=x", "XAUTHORITY=/x",
		"DOTNET_CLI_TELEMETRY_SESSION_TOKEN=x", "GPG_AGENT_INFO=x://u:p@h/", "DBUS_SESSION_BUS_ADDRESS=x://u@h", "SAFE_URL=https://example.com/api",
		"PAGED_URL=https://example.com/?page=2&q=a@b", "PATIENT=x", "COMPAT=x", "MY_PATH=/x", "EMPTY=", "MAIL=a@example.com", "REDIS=on", "SOME_URL=/local",
		"AT_PATH=https://example.com/@scope/x", "LD_DEBUG=x", "NODE_ENV=test", "CI=1", "DEPTH=a=b=c"}
	dropped := []string{"OPENAI_API_KEY=x", "api_key=x", "MONKEY=x", "MY_SECRET_X=x", "GITHUB_TOKEN=x", "DB_PASSWORD=x", "PASSWD=x", "AWS_CREDENTIALS=x", "GIT_AUTHOR_NAME=x",
		"npm_config__auth=x", "GITHUB_PAT=x", "PAT=x", "pat_x=x", "SLACK_WEBHOOK=x", "DATABASE_URL=x", "REDIS_URI=x", "AMQP_URL=x", "MONGODB_URI=x",
		"POSTGRES_PRISMA_URL=x", "MYSQL_URL=x", "ELASTICSEARCH_URL=x", "CELERY_BROKER_URL=x", "KUBECONFIG=/x", "SSH_AUTH_SOCK=/x", "GIT_ASKPASS=/x", "SUDO_ASKPASS=/x",
		"LD_PRELOAD=/x", "LD_LIBRARY_PATH=/x", "DYLD_INSERT_LIBRARIES=/x", "NODE_OPTIONS=x", "NODE_PATH=x", "NODE_EXTRA_CA_CERTS=x", "ELECTRON_RUN_AS_NODE=1",
		"PYTHONPATH=x", "PYTHONSTARTUP=x", "RUBYOPT=x", "BASH_ENV=x", "PERL5OPT=x", "JAVA_TOOL_OPTIONS=x", "JAVA_OPTIONS=x", "CLASSPATH=x",
		"A=https://user:pw@example.com/", "B=postgres://u@h/db", "C=HTTPS://example.com/x?a=b&Token=c", "D=https://s3/x?X-Amz-Signature=1", "E=https://x/?signature=1",
		"F=https://x/?credential=1", "G=https://x?access_token=1", "H=https://x/?client_secret=1", "I=https://x/?password=1", "J=https://x/?passwd=1", "K=https://x/?api_key=1",
		"L=https://x/?access_key=1", "LC_GITHUB_TOKEN=x", "LC_X=https://u:p@h/", "M=--index https://u:p@h/simple", "STOPGATE_SERVER=http://127.0.0.1:8790"}
	env := sanitised(append(append([]string{"no equals sign", "=x"}, dropped...), kept...))
	var got []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		got = append(got, name+"="+env[name])
	}
	slices.Sort(kept)
	if diff := cmp.Diff(kept, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestAXCode22FullEnvironment(t *testing.T) {
	for _, tt := range []struct {
		value string
		full  bool
	}{{"1", true}, {"true", true}, {"TRUE", true}, {"Yes", true}, {"on", true}, {"0", false}, {"false", false}, {"", false}, {"2", false}, {"enabled", false}} {
		host := []string{"GITHUB_TOKEN=x", "LD_PRELOAD=/x", "STOPGATE_API_KEY=x", "AX_CODE_HOOKS_FULL_ENV=" + tt.value}
		env := sanitised(host)
		if got := FullEnvironment(host); got != tt.full {
			t.Errorf("%q: %v", tt.value, got)
		}
		if (env["GITHUB_TOKEN"] == "x") != tt.full || (env["LD_PRELOAD"] == "/x") != tt.full {
			t.Errorf("%q: environment %v", tt.value, env)
		}
		if _, passed := env["STOPGATE_API_KEY"]; passed {
			t.Errorf("%q: stopgate's own key passes", tt.value)
		}
	}
	if FullEnvironment([]string{"X_AX_CODE_HOOKS_FULL_ENV=1"}) {
		t.Error("another variable restores everything")
	}
}

// printed is the hook's environment, as it tells it.
func printed(t *testing.T, r *Runner, change ...func(*gate.Input)) map[string]string {
	t.Helper()
	v := ask(t, r, `env -0 | tr '\0' '\1' >&2; exit 1`, append([]func(*gate.Input){ofAXCode, on(gate.PreToolUse), blocking}, change...)...)
	env := map[string]string{}
	for variable := range strings.SplitSeq(v.Reason, "\x01") {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	return env
}

func TestAXCode08Environment(t *testing.T) {
	host := []string{"PATH=/opt/host/bin", "HOME=/home/host", "TMPDIR=/elsewhere", "EDITOR=vi", "GITHUB_TOKEN=x", "STOPGATE_API_KEY=x", "HOOK_PACK=forged", "HOOK_ARGS_JSON=forged"}
	everyMode(t, Options{HostEnv: host}, func(t *testing.T, r *Runner) {
		env := printed(t, r, withContext([]byte(`{"command":"echo 'a b' \"c\""}`)), func(in *gate.Input) {
			in.Event.ToolName, in.Event.ToolAliases, in.Event.Session, in.Hook.Pack = "run_shell_command", []string{"Bash"}, "ses_1", "mine"
		})
		for name, want := range map[string]string{"HOOK_EVENT": "PreToolUse", "HOOK_TOOL": "bash", "HOOK_SESSION_ID": "ses_1", "HOOK_PACK": "mine",
			"HOOK_ARGS_STDIN": "1", "HOOK_ARGS_JSON": `{"command":"echo 'a b' \"c\""}`, "EDITOR": "vi", "HOME": "/home/host"} {
			if env[name] != want {
				t.Errorf("%s is %q, want %q", name, env[name], want)
			}
		}
		if !strings.HasPrefix(env["PATH"], "/opt/host/bin:/usr/local/bin:") {
			t.Errorf("PATH is %q", env["PATH"])
		}
		if env["TMPDIR"] == "/elsewhere" || env["TMPDIR"] == "" {
			t.Errorf("TMPDIR is %q", env["TMPDIR"])
		}
		for _, name := range []string{"GITHUB_TOKEN", "STOPGATE_API_KEY"} {
			if value, passed := env[name]; passed {
				t.Errorf("%s=%s reaches the hook", name, value)
			}
		}
	})
}

func TestAXCode08VariablesWithoutAValue(t *testing.T) {
	r := newRunner(t, Options{Mode: Process})
	at := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
	env := printed(t, r, withContext(at(32_768)))
	for _, name := range []string{"HOOK_TOOL", "HOOK_SESSION_ID", "HOOK_PACK"} {
		if value, ok := env[name]; !ok || value != "" {
			t.Errorf("%s is %q, %v; want it there and empty", name, value, ok)
		}
	}
	if len(env["HOOK_ARGS_JSON"]) != 32_768 {
		t.Errorf("HOOK_ARGS_JSON has %d bytes", len(env["HOOK_ARGS_JSON"]))
	}
	if env := printed(t, r, withContext(at(32_769))); env["HOOK_ARGS_JSON"] != "" {
		t.Errorf("HOOK_ARGS_JSON has %d bytes, want none", len(env["HOOK_ARGS_JSON"]))
	}
}

// Names that the kernel would not take keep no hook from running.
func TestAXCode08HostileNames(t *testing.T) {
	r := newRunner(t, Options{Mode: Process})
	env := printed(t, r, func(in *gate.Input) {
		in.Event.ToolName, in.Event.Session, in.Hook.Pack = "a\x00b", strings.Repeat("s", 1<<20), "é"+strings.Repeat("é", 1<<20)
	})
	if env["HOOK_TOOL"] != "ab" || len(env["HOOK_SESSION_ID"]) != axCodeNameBytes || len(env["HOOK_PACK"]) != axCodeNameBytes {
		t.Errorf("tool %q, session of %d, pack of %d bytes", env["HOOK_TOOL"], len(env["HOOK_SESSION_ID"]), len(env["HOOK_PACK"]))
	}
}

// Hooks of the other dialects get nothing of the host's environment.
func TestHostEnvironmentIsForAXCodeAlone(t *testing.T) {
	everyMode(t, Options{HostEnv: []string{"EDITOR=vi"}}, func(t *testing.T, r *Runner) {
		if v := ask(t, r, `echo "[$EDITOR$HOOK_EVENT]" >&2; exit 2`); told(v) != "block []" {
			t.Errorf("got %s", show(v))
		}
	})
}
