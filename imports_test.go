// Package stopgate_test holds the shape of the tree: which package may know
// which (DESIGN §3). Siblings never import siblings; cmd knows them all.
package stopgate_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed maps a package to the packages of ours that it may import. A package
// that is not listed may import none and must be added here first.
var allowed = map[string][]string{
	"stopgate":                       {},
	"stopgate/gate":                  {},
	"stopgate/config":                {"stopgate/gate", "stopgate/rulehooks/expressions", "stopgate/internal/datadir", "stopgate/internal/hostname", "stopgate/internal/loopback", "stopgate/internal/nearest", "stopgate/internal/regular"},
	"stopgate/calibrate":             {"stopgate/gate"},
	"stopgate/export":                {"stopgate/gate"},
	"stopgate/wire":                  {"stopgate/gate", "stopgate/internal/jsonscan", "stopgate/internal/nearest"},
	"stopgate/wire/contracts":        {"stopgate/gate"},
	"stopgate/wire/install":          {"stopgate/gate", "stopgate/wire/contracts", "stopgate/internal/loopback"},
	"stopgate/transcripts":           {"stopgate/gate", "stopgate/internal/durable"},
	"stopgate/commandhooks":          {"stopgate/gate", "stopgate/internal/places", "stopgate/internal/scratch"},
	"stopgate/commandhooks/jq":       {},
	"stopgate/httphooks":             {"stopgate/gate", "stopgate/internal/hostname"},
	"stopgate/prompthooks":           {"stopgate/gate", "stopgate/internal/places"},
	"stopgate/prompthooks/gemini":    {"stopgate/gate", "stopgate/prompthooks", "stopgate/prompthooks/exchange"},
	"stopgate/prompthooks/recording": {"stopgate/gate", "stopgate/prompthooks", "stopgate/prompthooks/exchange"},
	"stopgate/prompthooks/traced":    {"stopgate/gate", "stopgate/prompthooks"},
	"stopgate/telemetry":             {"stopgate/gate"},
	"stopgate/redact":                {"stopgate/gate", "stopgate/internal/jsonscan"},
	"stopgate/rulehooks":             {"stopgate/gate", "stopgate/rulehooks/shell"},
	"stopgate/rulehooks/expressions": {"stopgate/gate", "stopgate/internal/jsonscan", "stopgate/internal/nearest", "stopgate/rulehooks/shell"},
	"stopgate/rulehooks/shell":       {},
	"stopgate/store/record":          {"stopgate/gate"},
	"stopgate/store/postgres":        {"stopgate/gate", "stopgate/store/record"},
	"stopgate/store/sqlite":          {"stopgate/gate", "stopgate/store/record", "stopgate/internal/durable"},
	"stopgate/store/storetest":       {"stopgate/gate"},
	"stopgate/server":                {"stopgate/gate", "stopgate/internal/jsonscan", "stopgate/internal/loopback", "stopgate/internal/nearest"},
	"stopgate/internal/contract":     {},
	"stopgate/internal/datadir":      {},
	"stopgate/internal/durable":      {},
	"stopgate/internal/hostname":     {},
	"stopgate/internal/jsonscan":     {},
	"stopgate/internal/loopback":     {},
	"stopgate/internal/nearest":      {},
	"stopgate/internal/places":       {},
	"stopgate/internal/regular":      {},
	"stopgate/internal/scratch":      {},
	"stopgate/internal/terminal":     {},
	"stopgate/prompthooks/exchange":  {"stopgate/gate", "stopgate/prompthooks"},
	"stopgate/prompthooks/modeltest": {"stopgate/gate", "stopgate/prompthooks", "stopgate/prompthooks/exchange"},
	"stopgate/prompthooks/openai":    {"stopgate/gate", "stopgate/prompthooks", "stopgate/prompthooks/exchange"},
	"stopgate/prompthooks/anthropic": {"stopgate/gate", "stopgate/prompthooks", "stopgate/prompthooks/exchange"},
	"stopgate/chaos":                 {"stopgate/gate"},
	"stopgate/e2e":                   {},
	"stopgate/bench":                 {},
	"stopgate/examples/loops":        {},
	"stopgate/cmd/stopgate":          {"*"},
	"stopgate/cmd/stopgate-hook":     {"stopgate/cmd/internal/hookclient"},
	"stopgate/cmd/internal/hookclient": {"stopgate/gate", "stopgate/transcripts", "stopgate/wire", "stopgate/internal/datadir", "stopgate/internal/loopback",
		"stopgate/internal/nearest", "stopgate/internal/scratch", "stopgate/internal/terminal", "stopgate/redact"},

	"stopgate/store/postgres/postgrestest": {},
	"stopgate/access":                      {"stopgate/gate"},
	"stopgate/access/oidc":                 {"stopgate/gate"},
}

// confined names the only package that may import a dependency (STYLE 15), with
// the packages inside it, so that it can be replaced without a search.
var confined = map[string]string{
	"github.com/labstack/echo":               "stopgate/server",
	"modernc.org/sqlite":                     "stopgate/store/sqlite",
	"github.com/jackc/pgx":                   "stopgate/store/postgres",
	"google.golang.org/genai":                "stopgate/prompthooks/gemini",
	"gopkg.in/yaml.v3":                       "stopgate/config",
	"cel.dev/cel-go":                         "stopgate/rulehooks/expressions",
	"github.com/alecthomas/kong":             "stopgate/cmd/stopgate",
	"github.com/tailscale/hujson":            "stopgate/wire/install",
	"github.com/BurntSushi/toml":             "stopgate/wire/install",
	"cloud.google.com/go/auth":               "stopgate/prompthooks/gemini",
	"github.com/openai/openai-go":            "stopgate/prompthooks/openai",
	"github.com/anthropics/anthropic-sdk-go": "stopgate/prompthooks/anthropic",
	"github.com/coreos/go-oidc":              "stopgate/access/oidc",
	"github.com/hashicorp/golang-lru":        "stopgate/access",
	"golang.org/x/time":                      "stopgate/access",
	"golang.org/x/perf":                      "stopgate/bench",
	"github.com/failsafe-go/failsafe-go":     "stopgate/prompthooks",
	"go.opentelemetry.io/otel/sdk":           "stopgate/telemetry",
	"go.opentelemetry.io/otel/exporters":     "stopgate/telemetry",
}

func TestImportsFormAStar(t *testing.T) {
	out, err := exec.Command("go", "list", "-tags=e2e", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	seen := map[string]bool{}
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		seen[p.ImportPath] = true
		may, listed := allowed[p.ImportPath]
		if !listed {
			t.Errorf("%s is not in the table: add it with what it may import", p.ImportPath)
		}
		for _, i := range p.Imports {
			if strings.HasPrefix(i, "stopgate/") && !slices.Contains(may, i) && !slices.Contains(may, "*") {
				t.Errorf("%s imports %s: siblings don't know each other", p.ImportPath, i)
			}
			for dependency, home := range confined {
				if strings.HasPrefix(i, dependency) && p.ImportPath != home && !strings.HasPrefix(p.ImportPath, home+"/") {
					t.Errorf("%s imports %s, which belongs in %s only", p.ImportPath, i, home)
				}
			}
		}
	}
	for name := range allowed {
		if !seen[name] {
			t.Errorf("%s is in the table, and there is no such package", name)
		}
	}
}
