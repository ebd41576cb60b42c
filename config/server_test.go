package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// environment is getenv on a map.
func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

var atHome = environment(map[string]string{"HOME": "/home/dev"})

// serverFile writes a server file and answers its path.
func serverFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stopgate.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, text string, getenv func(string) string) Server {
	t.Helper()
	s, err := LoadServer(serverFile(t, text), getenv, nil)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return s
}

func TestServerDefaults(t *testing.T) {
	want := Server{
		Listen: "127.0.0.1:8790",
		Data:   "/home/dev/.local/state/stopgate",
		HTTP:   HTTP{ShutdownGrace: 30 * time.Second}, HTTPHooks: HTTPHooks{Connections: 256},
		Models: Models{Providers: map[string]Provider{}, Tiers: map[string]string{}, Named: map[string]string{}, Probe: "http://127.0.0.1:11434"},
		Sandbox: Sandbox{Mode: SandboxAuto, Workspace: WorkspaceNone, Python: PythonFresh,
			Limits: SandboxLimits{Memory: 512 << 20, Processes: 64, FileSize: 64 << 20, OpenFiles: 256, CPU: 5 * time.Minute}},
		Transcripts: Transcripts{MaxSize: 2 << 30, MaxLine: 16 << 20, Roots: []string{"/home/dev/.claude/projects", "/home/dev/.codex/sessions",
			"/home/dev/.copilot/session-state", "/home/dev/.gemini/tmp", "/home/dev/.qwen/projects"}},
		Limits: Limits{EvaluateBody: 32 << 20, SpecBody: 2 << 20, ParallelHooks: 8, Evaluations: 8192,
			CommandHooks: 16, JudgeRounds: 12, JudgeTokens: 200_000},
		Telemetry:   Telemetry{Sample: 1, Queue: 2048},
		Redaction:   Redaction{BuiltIn: BuiltInRedactions},
		OnGateError: gate.FailAllow,
		Durability:  DurablePower,
	}
	for name, path := range map[string]string{"no file": "", "empty file": serverFile(t, "# nothing\n"), "empty sections": serverFile(t, "limits:\nsandbox: {}\nmodels: ~\n")} {
		t.Run(name, func(t *testing.T) {
			got, err := LoadServer(path, atHome, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"state directory":                     {map[string]string{"HOME": "/home/dev", "XDG_STATE_HOME": "/state"}, "/state/stopgate"},
		"a relative state directory is unset": {map[string]string{"HOME": "/home/dev", "XDG_STATE_HOME": "state"}, "/home/dev/.local/state/stopgate"},
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := LoadServer("", environment(c.env), nil); err != nil || s.Data != c.want {
				t.Errorf("data is %q, error %v", s.Data, err)
			}
		})
	}
	t.Run("no home at all", func(t *testing.T) {
		if _, err := LoadServer("", environment(nil), nil); err == nil || !strings.Contains(err.Error(), "data is not set") {
			t.Errorf("error is %v", err)
		}
	})
}

func TestServerEveryKey(t *testing.T) {
	path := serverFile(t, `
listen: localhost:1
data: state
agents: ${AGENTS}
database: postgres://u:${DB_PASSWORD}@h/d
on_gate_error: block
durability: process
sandbox:
  pool: 8 MiB
  python: forked
  mode: bubblewrap
  network: true
  workspace: read-write
  workspace_roots: [/usr, /usr/../bin/..]
  limits: {memory: 1GiB, processes: "${N}", file_size: 1 MiB, open_files: 64, cpu: 90}
transcripts: {roots: [], max_size: 10GiB, max_line: 65536}
limits:
  evaluate_body: 64MiB
  spec_body: 4MiB
  parallel_hooks: 2
  evaluations: 3
  command_hooks: 4
  judge_rounds: 5
  judge_tokens: 6000
  agent_daily_tokens: 7
retention: {records: 30d}
telemetry:
  endpoint: https://otel.example
  headers: {authorization: "Bearer ${KEY}"}
  header_files: {X-Scope: scope}
  ca_file: otel.pem
  sample: 0.25
  queue: 100
  pprof: localhost:6060
redaction: {built_in: [jwt, card], patterns: {bird: BLUE.+}, redact_model_input: true}
http_hooks: {allow: [hooks.example], proxy: "http://proxy.example:3128", ca_file: /etc/ca.pem, connections: 8}
http: {hosts: [gate.example], origins: ["https://console.example"], shutdown_grace: 5m}
models:
  providers:
    main: {kind: gemini, api_key: "${KEY}", base_url: "http://127.0.0.1:1"}
    cloud: {kind: gemini, api_key: other}
  default: main
  tiers: {fast: cloud/tiny}
  models: {own: cloud/a/b}
`)
	got, err := LoadServer(path, environment(map[string]string{"HOME": "/home/dev", "AGENTS": "/etc/agents", "N": "9", "KEY": "007", "DB_PASSWORD": "p%40ss"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Dir(path)
	want := Server{
		Listen: "localhost:1", Data: filepath.Join(base, "state"), Database: "postgres://u:p%40ss@h/d", Agents: "/etc/agents",
		OnGateError: gate.FailBlock, Durability: DurableProcess,
		Sandbox: Sandbox{Mode: SandboxBubblewrap, Network: true, Workspace: WorkspaceReadWrite, WorkspaceRoots: []string{"/usr", "/"}, Pool: 8 << 20, Python: PythonForked,
			Limits: SandboxLimits{Memory: 1 << 30, Processes: 9, FileSize: 1 << 20, OpenFiles: 64, CPU: 90 * time.Second}},
		Transcripts: Transcripts{MaxSize: 10 << 30, MaxLine: 65536},
		Limits: Limits{EvaluateBody: 64 << 20, SpecBody: 4 << 20, ParallelHooks: 2, Evaluations: 3, CommandHooks: 4,
			JudgeRounds: 5, JudgeTokens: 6000, AgentDailyTokens: 7},
		Retention: Retention{Records: 30 * 24 * time.Hour},
		Telemetry: Telemetry{Endpoint: "https://otel.example:443/v1/traces", Headers: map[string]Secret{"Authorization": "Bearer 007"},
			HeaderFiles: map[string]string{"X-Scope": filepath.Join(base, "scope")}, CAFile: filepath.Join(base, "otel.pem"), Sample: 0.25, Queue: 100, Pprof: "localhost:6060"},
		Redaction: Redaction{BuiltIn: []string{"jwt", "card"}, Patterns: []RedactionPattern{{"bird", "BLUE.+"}}, ModelInput: true, Conversations: true},
		HTTPHooks: HTTPHooks{Allow: []string{"hooks.example"}, Proxy: &url.URL{Scheme: "http", Host: "proxy.example:3128"}, CAFile: "/etc/ca.pem", Connections: 8},
		HTTP:      HTTP{Hosts: []string{"gate.example"}, Origins: []string{"https://console.example"}, ShutdownGrace: 5 * time.Minute},
		Models: Models{Default: "main",
			Providers: map[string]Provider{"main": {Kind: "gemini", APIKey: "007", BaseURL: "http://127.0.0.1:1"}, "cloud": {Kind: "gemini", APIKey: "other"}},
			Tiers: map[string]string{"Reasoning": "main/gemini-3.8-flash", "ReasoningFast": "main/gemini-3.6-flash", "GeneralPurpose": "main/gemini-3.6-flash",
				"Fast": "cloud/tiny", "LongContext": "main/gemini-3.8-flash"},
			Named: map[string]string{"own": "cloud/a/b"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDatabaseIsSecret: what is wrong with it is said without quoting it, and it
// does not show where a configuration is printed.
func TestDatabaseIsSecret(t *testing.T) {
	for _, text := range []string{"database: mysql://u:hush@h/d\n", "database: u:${HUSH}@h\n", "database: [hush]\n"} {
		_, err := LoadServer(serverFile(t, text), environment(map[string]string{"HOME": "/home/dev", "HUSH": "hush"}), nil)
		if err == nil || !strings.Contains(err.Error(), "database ") || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", text, err)
		}
	}
	got, err := LoadServer(serverFile(t, "database: postgres://u:hush@h/d\n"), environment(map[string]string{"HOME": "/home/dev"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%v %+v %#v", got, got, got); strings.Contains(text, "hush") {
		t.Errorf("it shows in %s", text)
	}
}

func TestServerFileIsStrict(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "listen: 127.0.0.1:1\nlisen: x\n", `2:1: error: lisen: key "lisen" is unknown; known here: data, database, agents`},
		{"misspelt key", "lisetn: x\n", `did you mean "listen"?`},
		{"unknown key inside", "limits:\n  paralel_hooks: 3\n", `2:3: error: limits.paralel_hooks: key "paralel_hooks" is unknown; did you mean "parallel_hooks"?`},
		{"unknown key of a provider", "models: {providers: {gemini: {api_key: k, url: x}}}\n", `models.providers.gemini.url`},
		{"wrong type", "limits: {parallel_hooks: many}\n", `parallel_hooks is the text "many", want a whole number of 1 or more`},
		{"zero", "limits: {parallel_hooks: 0}\n", "parallel_hooks is 0"},
		{"section that is none", "limits: 3\n", "limits is the number 3, want an object"},
		{"size", "limits: {spec_body: 3 apples}\n", `spec_body is the text "3 apples", want a size as 64MiB`},
		{"size too large", "limits: {spec_body: 9999999999TiB}\n", "want a size as 64MiB"},
		{"size too small", "sandbox: {limits: {memory: 1MiB}}\n", "want at least 16777216 bytes"},
		{"a pool that is a switch", "sandbox: {pool: on}\n", "pool"},
		{"forks without a pool", "sandbox: {python: forked}\n", `sandbox.python: python is "forked", which needs a pool`},
		{"another way to have python", "sandbox: {pool: 1MiB, python: shared}\n", `python is "shared", want one of fresh, forked`},
		{"too few processes", "sandbox: {limits: {processes: 3}}\n", "want a whole number of 4 or more"},
		{"files too small", "sandbox: {limits: {file_size: 1023KiB}}\n", "want at least 1048576 bytes"},
		{"size that is a flag", "limits: {spec_body: true}\n", "spec_body is true, want a size"},
		{"duration", "retention: {records: -1h}\n", `records is the text "-1h", want a duration`},
		{"negative seconds", "retention: {records: -1}\n", "records is the number -1, want a duration"},
		{"word", "on_gate_error: deny\n", `on_gate_error is "deny", want one of allow, block`},
		{"sandbox mode", "sandbox: {mode: docker}\n", `mode is "docker", want one of auto, bubblewrap, process, container, off`},
		{"processor time", "sandbox: {limits: {cpu: 500ms}}\n", "cpu is less than one second"},
		{"an empty directory", "transcripts: {roots: [\"\"]}\n", "roots[0] is empty, want a directory"},
		{"workspace without roots", "sandbox: {workspace: read-only}\n", "1:22: error: sandbox.workspace: sandbox.workspace is read-only, but"},
		{"a root that is not whole", "sandbox: {workspace: read-only, workspace_roots: [/usr, relative/dir]}\n", `1:57: error: sandbox.workspace_roots[1]: workspace_roots[1] is "relative/dir", want the whole path`},
		{"an empty root", "sandbox: {workspace_roots: [\"\"]}\n", `workspace_roots[0] is "", want the whole path`},
		{"home as a tilde", "data: ~/x\n", "write ${HOME}"},
		{"database", "database: mysql://u:p@h/d\n", "1:11: error: database: database does not begin with postgres://"},
		{"auth of nobody", "auth: {}\n", "1:7: error: auth: auth says nobody may come in"},
		{"auth that is null", "auth:\n", "auth says nobody may come in"},
		{"auth without keys", "auth: {keys: false}\n", "auth says nobody may come in"},
		{"a collector that is no URL", "telemetry: {endpoint: 127.0.0.1:4318}\n", "1:23: error: telemetry.endpoint: endpoint is not http:// or https://"},
		{"a collector with a password", "telemetry: {endpoint: \"https://u:p@h\"}\n", "keys go into headers"},
		{"a key in clear text", "telemetry: {endpoint: \"http://h:4318\", headers: {X-Key: secret}}\n", "in clear text: use https://"},
		{"a key in clear text from a file", "telemetry: {endpoint: \"http://h:4318\", header_files: {X-Key: key}}\n", "in clear text: use https://"},
		{"a header that is no name", "telemetry: {headers: {\"X Key\": v}}\n", `"X Key" is not the name of a header`},
		{"a header of two lines", "telemetry: {headers: {X-Key: \"a\\nb\"}}\n", "the value of X-Key is empty, or has characters"},
		{"a header without a value", "telemetry: {headers: {X-Key: \"\"}}\n", "the value of X-Key is empty"},
		{"a header given twice", "telemetry: {headers: {X-Key: a}, header_files: {x-key: f}}\n", "header X-Key is among headers too"},
		{"no trace at all", "telemetry: {sample: 0}\n", "sample is 0, want a number above 0 and up to 1"},
		{"more than all traces", "telemetry: {sample: 1.5}\n", "sample is 1.5"},
		{"no queue", "telemetry: {queue: 0}\n", "queue is 0, want a whole number of 1 or more"},
		{"profiles for everybody", "telemetry: {pprof: \":6060\"}\n", "want a loopback address with a port"},
		{"profiles for the network", "telemetry: {pprof: \"192.0.2.1:6060\"}\n", "want a loopback address with a port"},
		{"redaction of an unknown kind", "redaction: {built_in: [emails]}\n", `built_in has no pattern "emails"; did you mean "email"?`},
		{"conversations in no form", "redaction: {conversations: masked}\n", `conversations is "masked", want one of original, redacted`},
		{"redaction by no pattern", "redaction: {patterns: {a: \"\"}}\n", "pattern a is empty"},
		{"redaction by what RE2 lacks", "redaction: {patterns: {a: \"(?=a)\"}}\n", "1:24: error: redaction.patterns.a: pattern a is not RE2"},
		{"a redaction's name", "redaction: {patterns: {A-b: a}}\n", "pattern name \"A-b\" has other characters"},
		{"profiles without a port", "telemetry: {pprof: 127.0.0.1}\n", "want a loopback address with a port"},
		{"two documents", "---\nlisten: x\n---\nlisten: y\n", "file holds 2 documents"},
		{"a list", "- x\n", "file is a list"},
		{"not YAML", "a: [\n", "text is not YAML"},
		{"key twice", "listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n", `key "listen" is given twice`},
		{"no port", "listen: 127.0.0.1\n", "no host and port in it"},
		{"port that is no number", "listen: 127.0.0.1:http\n", `port "http" is not a number`},
		{"variable not set", "data: /x/${NOPE}/y\n", "1:7: error: data: environment variable NOPE is not set"},
		{"variable inside a list", "transcripts: {roots: [/a, \"${NOPE}\"]}\n", "transcripts.roots[1]: environment variable NOPE"},
		{"variable not closed", "data: /x/${HOME\n", `"${HOME" is not ${VARIABLE}`},
		{"variable with a default", "data: ${HOME:-/x}\n", "is not ${VARIABLE}"},
		{"provider kind", "models: {providers: {x: {kind: opneai}}}\n", `kind is "opneai", want one of gemini, anthropic, openai, azure-openai, vertex, ollama; did you mean "openai"?`},
		{"provider without a kind", "models: {providers: {x: {api_key: k}}}\n", "kind is missing, want one of gemini,"},
		{"provider key of another kind", "models: {providers: {gemini: {api_key: k, project: p}}}\n", `key "project" is unknown`},
		{"a key for Vertex", "models: {providers: {vertex: {api_key: k, project: p}}}\n", `key "api_key" is unknown`},
		{"OpenAI without a key", "models: {providers: {openai: {}}}\n", "api_key is missing: write ${OPENAI_API_KEY}"},
		{"Anthropic without a key", "models: {providers: {anthropic: {}}}\n", "api_key is missing: write ${ANTHROPIC_API_KEY}"},
		{"Azure without a resource", "models: {providers: {azure-openai: {api_key: k, model: m}}}\n", "base_url is missing"},
		{"Azure without a deployment", "models: {providers: {azure-openai: {api_key: k, base_url: https://h}}}\n", "model is missing"},
		{"Vertex without a project", "models: {providers: {vertex: {}}}\n", "project is missing"},
		{"tools that are no flag", "models: {providers: {ollama: {tools: maybe}}}\n", `tools is the text "maybe", want true or false`},
		{"provider without a key", "models: {providers: {gemini: {}}}\n", "api_key is missing"},
		{"base URL", "models: {providers: {gemini: {api_key: k, base_url: localhost}}}\n", "base_url is not an http or https URL"},
		{"two providers, no default", "models: {providers: {a: {kind: gemini, api_key: k}, b: {kind: gemini, api_key: k}}}\n", "default is missing, want one of a, b"},
		{"default unknown", "models: {providers: {gemini: {api_key: k}}, default: x}\n", `default is "x", want one of gemini`},
		{"default without a provider", "models: {default: gemini}\n", "but there is no provider"},
		{"tier unknown", "models: {providers: {gemini: {api_key: k}}, tiers: {Slow: gemini/x}}\n", `tier "Slow" is unknown, want one of Reasoning`},
		{"tier without provider", "models: {providers: {gemini: {api_key: k}}, tiers: {Fast: flash}}\n", "want provider/model"},
		{"model called like a tier", "models: {providers: {gemini: {api_key: k}}, models: {fast: gemini/x}}\n", "is a tier: set it under tiers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := LoadServer(serverFile(t, c.text), atHome, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || gate.CodeOf(err) != gate.CodeValidation {
				t.Errorf("error is %v, want %q", err, c.want)
			}
		})
	}
	t.Run("all at once", func(t *testing.T) {
		_, err := LoadServer(serverFile(t, "x: 1\nlimits: {y: 2, spec_body: z}\ndata: ${NOPE}\nsandbox: {mode: w}\n"), atHome, nil)
		if e, ok := errors.AsType[*gate.Error](err); !ok || len(e.Details) != 5 || strings.Count(e.Message, "\n") != 5 {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("no such file", func(t *testing.T) {
		_, err := LoadServer(filepath.Join(t.TempDir(), "none.yaml"), atHome, nil)
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("too long", func(t *testing.T) {
		_, err := LoadServer(serverFile(t, strings.Repeat("#\n", maxServerFile)), atHome, nil)
		if err == nil || !strings.Contains(err.Error(), "larger than") {
			t.Errorf("error is %v", err)
		}
	})
}

func TestServerListensOnLoopbackOnly(t *testing.T) {
	for listen, loopback := range map[string]bool{"127.0.0.1:8790": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:0": true, "[::ffff:127.0.0.1]:1": true,
		"0.0.0.0:8790": false, ":8790": false, "[::]:1": false, "192.168.0.1:1": false, "gate.example:1": false, "127.0.0.1.example:1": false} {
		_, err := LoadServer("", atHome, func(s *Server) { s.Listen = listen })
		if (err == nil) != loopback || err != nil && !strings.Contains(err.Error(), "let them log in (auth in the server file") {
			t.Errorf("%s: %v", listen, err)
		}
	}
	t.Run("process mode elsewhere is refused for a reason of its own", func(t *testing.T) {
		on := func(listen string) error {
			_, err := LoadServer("", atHome, func(s *Server) { s.Listen, s.Sandbox.Mode = listen, SandboxProcess })
			return err
		}
		e, _ := errors.AsType[*gate.Error](on("0.0.0.0:1"))
		if e == nil || len(e.Details) != 2 || !strings.Contains(e.Details[1].Message, "process does not confine scripts") {
			t.Errorf("error is %+v", e)
		}
		if err := on("127.0.0.1:1"); err != nil {
			t.Errorf("on loopback: %v", err)
		}
	})
	t.Run("the file says it with its line", func(t *testing.T) {
		_, err := LoadServer(serverFile(t, "data: /d\nlisten: 0.0.0.0:1\n"), atHome, nil)
		if err == nil || !strings.Contains(err.Error(), "2:9: error: listen") {
			t.Errorf("error is %v", err)
		}
	})
}

func TestVariablesInServerFile(t *testing.T) {
	env := environment(map[string]string{"HOME": "/home/dev", "A": "x", "TRICK": "${HOME}"})
	for text, want := range map[string]string{
		`"/${A}/${A}b"`: "/x/xb", `"/$${A}"`: "/${A}", `"/$A"`: "/$A", `"/${TRICK}"`: "/${HOME}", `/a$$`: "/a$$",
	} {
		if s := load(t, "data: "+text+"\n", env); s.Data != want {
			t.Errorf("%s is %q, want %q", text, s.Data, want)
		}
	}
	t.Run("what a variable holds is not shown", func(t *testing.T) {
		env := environment(map[string]string{"HOME": "/home/dev", "KEY": "s3cret"})
		for _, text := range []string{"on_gate_error: ${KEY}\n", "limits: {spec_body: \"${KEY}\", parallel_hooks: \"${KEY}\"}\n", "sandbox: {network: \"${KEY}\"}\n", "models: {providers: {gemini: {kind: \"${KEY}\"}}}\n"} {
			if _, err := LoadServer(serverFile(t, text), env, nil); err == nil || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}

// Conversations are redacted where judges do not see the original, unless the file
// says otherwise.
func TestConversationsAreRedacted(t *testing.T) {
	for text, want := range map[string]bool{
		"":                          false,
		"redact_model_input: false": false,
		"redact_model_input: true":  true,
		"conversations: redacted":   true,
		"conversations: original":   false,
		"redact_model_input: true, conversations: original":  false,
		"redact_model_input: false, conversations: redacted": true,
	} {
		if got := load(t, "redaction: {"+text+"}\n", atHome).Redaction.Conversations; got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// Every secret that a server file can hold is among its secrets: a new field fails
// here. Files that hold one are named.
func TestEverySecretOfTheFileIsKnown(t *testing.T) {
	var s Server
	s.Database = "postgres://gate:database%20password@db/gate?sslpassword=of+its+key&password=of+the+query"
	s.HTTPHooks.Proxy = &url.URL{Scheme: "http", Host: "proxy", User: url.UserPassword("gate", "proxy password")}
	s.Models.Providers = map[string]Provider{"own": {BaseURL: "https://gate:base%20password@models.example/v1"}}
	s.Auth.TLS = &TLS{Key: "/tls.key"}
	want := []string{"database password", "of its key", "of the query", "proxy password", "base password"}
	files := []string{"/tls.key"}
	fill(reflect.ValueOf(&s).Elem(), "", func(path string, v reflect.Value) {
		switch {
		case v.Type() == reflect.TypeFor[Secret]() && v.String() == "":
			v.SetString("secret of " + path)
			want = append(want, v.String())
		case v.Type() == reflect.TypeFor[map[string]Secret]():
			v.Set(reflect.ValueOf(map[string]Secret{"A": Secret("Bearer " + path), "B": Secret("plain-" + path)}))
			want = append(want, path, "plain-"+path)
		case strings.HasSuffix(path, ".HeaderFiles") && v.Kind() == reflect.Map:
			v.Set(reflect.ValueOf(map[string]string{"A": path}))
			files = append(files, path)
		}
	})
	known := s.Secrets()
	for _, secret := range want {
		if !slices.Contains(known, secret) {
			t.Errorf("%q is not among %q", secret, known)
		}
	}
	if len(want) < 9 || len(files) < 3 {
		t.Errorf("the walk found %q and %q", want, files)
	}
	slices.Sort(files)
	if diff := cmp.Diff(files, s.SecretFiles()); diff != "" {
		t.Errorf("files of secrets (-want +got):\n%s", diff)
	}
}

// fill visits all that a value has, with one element where there can be several.
func fill(v reflect.Value, path string, visit func(string, reflect.Value)) {
	visit(path, v)
	switch v.Kind() {
	case reflect.Struct:
		if v.Type().PkgPath() != reflect.TypeFor[Server]().PkgPath() {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
			}
		}
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fill(v.Elem(), path, visit)
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		fill(v.Index(0), path, visit)
	case reflect.Map:
		if v.IsNil() && v.Type().Elem().Kind() == reflect.Struct {
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("one").Convert(v.Type().Key()), reflect.New(v.Type().Elem()).Elem())
		}
		for _, name := range v.MapKeys() {
			item := reflect.New(v.Type().Elem()).Elem()
			item.Set(v.MapIndex(name))
			fill(item, path, visit)
			v.SetMapIndex(name, item)
		}
	}
}

func TestSecretsOfTheFile(t *testing.T) {
	s := load(t, `
database: postgres://gate:pass%20word@db/gate
telemetry: {endpoint: "https://otel.example", headers: {authorization: "Bearer ${KEY}", x-other: plain}}
models: {default: gemini, providers: {gemini: {}, openai: {api_key: "${KEY}"}}}
`, environment(map[string]string{"HOME": "/home/dev", "KEY": "s3cret", "GEMINI_API_KEY": "of the environment"}))
	if diff := cmp.Diff([]string{"of the environment", "pass word", "plain", "s3cret"}, s.Secrets()); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	if got := load(t, "", environment(map[string]string{"HOME": "/home/dev"})).Secrets(); len(got) != 0 {
		t.Errorf("without any: %q", got)
	}
}

func TestSecretsDoNotShow(t *testing.T) {
	p := Provider{APIKey: "s3cret"}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{fmt.Sprint(p), fmt.Sprintf("%+v %#v %s %q", p, p, p.APIKey, p.APIKey), string(b), p.APIKey.LogValue().String()} {
		if strings.Contains(shown, "s3cret") {
			t.Errorf("shown: %s", shown)
		}
	}
}

func TestFallbackAndPrices(t *testing.T) {
	env := environment(map[string]string{"HOME": "/home/dev", "GEMINI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"})
	s := load(t, `
models:
  providers: {gemini: {}, anthropic: {}}
  default: gemini
  models: {own: gemini/tuned}
  fallback: {reasoningfast: [anthropic/small, gemini/old], own: [anthropic/small]}
  prices: {gemini/tuned: {input: 1, cached: 0.1, output: 4}}
`, env)
	for model, want := range map[string][]string{"": {"anthropic/small", "gemini/old"}, "Reasoning Fast": {"anthropic/small", "gemini/old"}, "own": {"anthropic/small"}, "Reasoning": nil, "other": nil} {
		if diff := cmp.Diff(want, s.Models.InPlaceOf(model)); diff != "" {
			t.Errorf("%q: %s", model, diff)
		}
	}
	price, known := s.Models.Price("own")
	if cost := price.Of(gate.Usage{PromptTokens: 3e6, CachedTokens: 1e6, OutputTokens: 5e5}); !known || cost != 2+0.1+2 {
		t.Errorf("%v %v", known, cost)
	}
	if _, known := s.Models.Price("Reasoning"); known {
		t.Error("a model without a price has one")
	}
	for _, c := range []struct{ section, want string }{
		{"fallback: {Slow: [gemini/a]}", `fallback "Slow" is neither a tier nor one of models`},
		{"fallback: {Fast: [elsewhere/a]}", `fallback: Fast has "elsewhere/a", want provider/model`},
		{"fallback: {Fast: gemini/a}", "fallback.Fast"},
		{"prices: {gemini: {input: 1}}", `price of "gemini": want provider/model`},
		{"prices: {gemini/a: {input: -1}}", "input is -1, want a number of 0 or more"},
		{"prices: {gemini/a: {in: 1}}", `key "in" is unknown`},
	} {
		_, err := LoadServer(serverFile(t, "models:\n  providers: {gemini: {}}\n  "+c.section+"\n"), env, nil)
		if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(c.want, "fallback: ")) {
			t.Errorf("%s: %v, want %q", c.section, err, c.want)
		}
	}
}

// What is legal and does nothing is said, and keeps no server from starting.
func TestServerFileWarnings(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "sandbox: {workspace: read-only, workspace_roots: [/usr]}\n", ""},
		{"roots for nobody", "sandbox: {workspace_roots: [/usr]}\n", "1:28: warning: sandbox.workspace_roots: sandbox.workspace_roots has no effect without sandbox.workspace"},
		{"a root that is not there", "sandbox: {workspace: read-only, workspace_roots: [/usr, /no/such/dir]}\n", `1:57: warning: sandbox.workspace_roots[1]: workspace_roots[1] is "/no/such/dir", which is no directory`},
		{"a root that is a file", "sandbox: {workspace: read-only, workspace_roots: [/etc/passwd]}\n", "which is no directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "stopgate.yaml")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := LoadServer(file, func(string) string { return "" }, func(s *Server) { s.Data = "d" })
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, w := range s.Warnings {
				got += w.String() + "\n"
			}
			if c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Count(got, "\n") > 1 {
				t.Errorf("warnings %q, want %q", got, c.want)
			}
		})
	}
}
