package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"stopgate/config"
)

// deployed is the directory deploy.
var deployed = filepath.Join("..", "..", "deploy")

// tool finds a program that not everybody has; where it is missing the test is
// skipped, but under make deploy, which installs it.
func tool(t *testing.T, name, from string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
	case os.Getenv("DEPLOY_TOOLS") == "required":
		t.Fatalf("%v (%s)", err, from)
	default:
		t.Skipf("%s is not installed (%s)", name, from)
	}
	return path
}

// manifest is an object of Kubernetes.
type manifest = map[string]any

// manifests reads a file of several objects, by their kinds.
func manifests(t *testing.T, text []byte) map[string]manifest {
	t.Helper()
	all := map[string]manifest{}
	for dec := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m manifest
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if m != nil {
			all[m["kind"].(string)] = m
		}
	}
}

// in follows names through objects, and the first element of lists.
func in(t *testing.T, m any, path string) any {
	t.Helper()
	for _, name := range strings.Split(path, "/") {
		if list, ok := m.([]any); ok {
			m = list[0]
		}
		object, ok := m.(manifest)
		if !ok {
			t.Fatalf("%s: no object at %q", path, name)
		}
		m = object[name]
	}
	return m
}

// loads has a ConfigMap's server file read as serve reads it.
func loads(t *testing.T, configMap manifest) config.Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stopgate.yaml")
	if err := os.WriteFile(file, []byte(in(t, configMap, "data/stopgate.yaml").(string)), 0o600); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{"HOME": "/nonexistent", "STOPGATE_DATABASE": "postgres://stopgate@db.example/gate"}
	server, err := config.LoadServer(file, func(name string) string { return environment[name] }, func(*config.Server) {})
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func TestManifestsServerFileLoads(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deployed, "kubernetes", "stopgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if s := loads(t, manifests(t, text)["ConfigMap"]); s.Data != "/var/lib/stopgate" {
		t.Errorf("data is %q, not where the volume is", s.Data)
	}
}

// TestChart (docs/faults.md G71) renders the chart as Helm does, for each kind of installation.
func TestChart(t *testing.T) {
	helm := tool(t, "helm", "make chart")
	render := func(t *testing.T, set ...string) ([]byte, error) {
		args := []string{"template", "stopgate", filepath.Join(deployed, "helm", "stopgate"), "--namespace", "stopgate"}
		for _, s := range set {
			args = append(args, "--set", s)
		}
		cmd := exec.CommandContext(t.Context(), helm, args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, errors.New(stderr.String())
		}
		return out, nil
	}
	rendered := func(t *testing.T, set ...string) map[string]manifest {
		t.Helper()
		out, err := render(t, set...)
		if err != nil {
			t.Fatal(err)
		}
		return manifests(t, out)
	}

	t.Run("as the manifests", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(deployed, "kubernetes", "stopgate.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		plain, chart := manifests(t, text), rendered(t, "environmentSecrets={stopgate-models}", "image.tag=dev")
		if diff := cmp.Diff(loads(t, plain["ConfigMap"]), loads(t, chart["ConfigMap"])); diff != "" {
			t.Errorf("server file (-manifests +chart):\n%s", diff)
		}
		want, got := in(t, plain["StatefulSet"], "spec/template/spec"), in(t, chart["StatefulSet"], "spec/template/spec").(manifest)
		container := got["containers"].([]any)[0].(manifest)
		if policy := container["imagePullPolicy"]; policy != "IfNotPresent" {
			t.Errorf("imagePullPolicy %v", policy)
		}
		delete(container, "imagePullPolicy")
		if diff := cmp.Diff(want, any(got)); diff != "" {
			t.Errorf("pod (-manifests +chart):\n%s", diff)
		}
		if diff := cmp.Diff(in(t, plain["StatefulSet"], "spec/volumeClaimTemplates/spec"), in(t, chart["StatefulSet"], "spec/volumeClaimTemplates/spec")); diff != "" {
			t.Errorf("volume (-manifests +chart):\n%s", diff)
		}
		if diff := cmp.Diff(in(t, plain["NetworkPolicy"], "spec/ingress"), in(t, chart["NetworkPolicy"], "spec/ingress")); diff != "" {
			t.Errorf("network (-manifests +chart):\n%s", diff)
		}
	})
	t.Run("replicas", func(t *testing.T) {
		all := rendered(t, "replicas=3", "database.secret=db", "serviceMonitor.enabled=true")
		if s := loads(t, all["ConfigMap"]); !strings.HasPrefix(string(s.Database), "postgres://") {
			t.Error("no database")
		}
		set := all["StatefulSet"]
		if in(t, set, "spec/replicas") != 3 || in(t, set, "spec/volumeClaimTemplates") != nil {
			t.Errorf("%v", set)
		}
		if all["PodDisruptionBudget"] == nil || all["ServiceMonitor"] == nil {
			t.Error("no disruption budget, or no monitor")
		}
	})
	t.Run("container mode", func(t *testing.T) {
		all := rendered(t, "sandbox.mode=container")
		loads(t, all["ConfigMap"])
		pod := in(t, all["StatefulSet"], "spec/template/spec")
		want := manifest{
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
			"capabilities": manifest{"drop": []any{"ALL"}}, "seccompProfile": manifest{"type": "RuntimeDefault"},
		}
		if diff := cmp.Diff(any(want), in(t, pod, "containers/securityContext")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if in(t, pod, "hostUsers") != nil {
			t.Error("hostUsers is for bubblewrap alone")
		}
	})
	for _, tc := range []struct{ set, want string }{
		{"replicas=2", "SQLite has one owner"},
		{"sandbox.mode=process", "/sandbox/mode"},
		{"config.listen=0.0.0.0:1", "/config/listen"},
		{"replica=2", "replica"},
	} {
		t.Run("refused: "+tc.set, func(t *testing.T) {
			if _, err := render(t, tc.set); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
	t.Run("lint", func(t *testing.T) {
		if out, err := exec.CommandContext(t.Context(), helm, "lint", "--strict", filepath.Join(deployed, "helm", "stopgate")).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
