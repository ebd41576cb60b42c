package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"stopgate/gate"
)

func agentFile(name, prompt string) string {
	return "api_version: azuresre.ai/v2\nkind: ExtendedAgent\nmetadata: {name: " + name + "}\nspec: {hooks: {Stop: [{prompt: " + prompt + "}]}}\n"
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// inForce is "name=prompt" of each spec, in order.
func inForce(specs []*gate.Spec) string {
	var words []string
	for _, s := range specs {
		words = append(words, s.Name+"="+s.Hooks[0].Prompt)
	}
	return strings.Join(words, " ")
}

func wantLoaded(t *testing.T, d *Dir, want string, wantChanged bool) map[string][]gate.Finding {
	t.Helper()
	specs, findings, changed := d.Load()
	if got := inForce(specs); got != want || changed != wantChanged {
		t.Errorf("in force: %q, changed %v; want %q, %v", got, changed, want, wantChanged)
	}
	return findings
}

func TestDirKeepsTheLastGoodVersion(t *testing.T) {
	path := t.TempDir()
	file := filepath.Join(path, "a.yaml")
	d := OpenDir(path)
	wantLoaded(t, d, "", true)

	write(t, file, agentFile("a", "one"))
	if findings := wantLoaded(t, d, "a=one", true); len(findings) != 0 {
		t.Errorf("findings: %v", findings)
	}
	wantLoaded(t, d, "a=one", false)

	write(t, file, agentFile("a", "''"))
	findings := wantLoaded(t, d, "a=one", true)
	if text := textOf(findings[file]); !strings.Contains(text, "4:32: error: spec.hooks.Stop[0].prompt") ||
		!strings.Contains(text, "the last good version of this file stays in force: a") {
		t.Errorf("findings:\n%s", text)
	}
	write(t, file, "{") // worse still
	wantLoaded(t, d, "a=one", true)
	write(t, file, "") // an editor in the middle of saving
	wantLoaded(t, d, "a=one", true)
	write(t, file, agentFile("a", "two"))
	if findings := wantLoaded(t, d, "a=two", true); len(findings) != 0 {
		t.Errorf("findings: %v", findings)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	wantLoaded(t, d, "", true)

	write(t, file, "{")
	findings = wantLoaded(t, d, "", true)
	if text := textOf(findings[file]); !strings.Contains(text, "nothing of this file is in force") {
		t.Errorf("findings:\n%s", text)
	}
}

func TestDirNameInTwoFiles(t *testing.T) {
	path := t.TempDir()
	first, second := filepath.Join(path, "1.yaml"), filepath.Join(path, "2.yaml")
	d := OpenDir(path)
	write(t, second, agentFile("a", "second")+"---\n"+agentFile("b", "second"))
	wantLoaded(t, d, "a=second b=second", true)

	write(t, first, agentFile("a", "first"))
	findings := wantLoaded(t, d, "a=first b=second", true)
	if text := textOf(findings[second]); !strings.Contains(text, `error: agent "a" is defined already in `+first) || findings[first] != nil {
		t.Errorf("findings:\n%s", text)
	}
	write(t, first, agentFile("c", "first"))
	if findings := wantLoaded(t, d, "c=first a=second b=second", true); len(findings) != 0 {
		t.Errorf("findings: %v", findings)
	}
	t.Run("an agent and a hook of one name do not collide", func(t *testing.T) {
		write(t, first, "api_version: azuresre.ai/v2\nkind: GlobalHook\nmetadata: {name: a}\nspec: {eventType: Stop, hook: {prompt: hook}}\n")
		wantLoaded(t, d, "a=hook a=second b=second", true)
	})
}

func TestDirPassesOver(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{".hidden.yaml", ".a.yaml.swp", "a.yaml~", "#a.yaml#", "notes.txt", "README"} {
		write(t, filepath.Join(path, name), agentFile("x", "x"))
	}
	if err := os.Mkdir(filepath.Join(path, "sub.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(path, "pipe.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if findings := wantLoaded(t, OpenDir(path), "", true); len(findings) != 0 {
		t.Errorf("findings: %v", findings)
	}
}

func TestDirSymbolicLinks(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.yaml")
	write(t, outside, agentFile("secret", "x"))
	path := t.TempDir()
	for name, target := range map[string]string{"absolute.yaml": outside, "relative.yaml": "../" + filepath.Base(filepath.Dir(outside)) + "/secret.yaml", "nowhere.yaml": "none.yaml", "loop.yaml": "loop.yaml"} {
		if err := os.Symlink(target, filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	findings := wantLoaded(t, OpenDir(path), "", true)
	if len(findings) != 4 {
		t.Errorf("findings: %v", findings)
	}
	for file, list := range findings {
		if !strings.Contains(textOf(list), "symbolic link leads outside the directory, or nowhere") {
			t.Errorf("%s:\n%s", file, textOf(list))
		}
	}
}

// configMap makes what Kubernetes mounts: files linked through ..data to a
// directory per version.
func configMap(t *testing.T, path, version, prompt string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(path, version), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, version, "a.yaml"), agentFile("a", prompt))
	if err := os.Symlink(version, filepath.Join(path, "..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(path, "..data_tmp"), filepath.Join(path, "..data")); err != nil {
		t.Fatal(err)
	}
}

func TestDirThatVanishesKeepsItsSpecs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agents")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "a.yaml"), agentFile("a", "one"))
	d := OpenDir(path)
	wantLoaded(t, d, "a=one", true)
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	findings := wantLoaded(t, d, "a=one", true)
	if !strings.Contains(textOf(findings[path]), "what was loaded before stays in force") {
		t.Errorf("findings: %v", findings)
	}
	wantLoaded(t, d, "a=one", false)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	wantLoaded(t, d, "", true)
}

func TestDirBounds(t *testing.T) {
	path := t.TempDir()
	write(t, filepath.Join(path, "big.yaml"), strings.Repeat("#\n", maxSpecFileBytes/2+1))
	findings := wantLoaded(t, OpenDir(path), "", true)
	if !strings.Contains(textOf(findings[filepath.Join(path, "big.yaml")]), "longer than") {
		t.Errorf("findings: %v", findings)
	}
}

// watch runs WatchSpecs and gives what it reports, as [inForce] has it.
func watch(t *testing.T, dir string) <-chan string {
	t.Helper()
	reports := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- WatchSpecs(ctx, dir, func(specs []*gate.Spec, _ map[string][]gate.Finding) { reports <- inForce(specs) })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the watch ended with %v", err)
		}
	})
	return reports
}

// wantReport waits until a report says want.
func wantReport(t *testing.T, reports <-chan string, want string) {
	t.Helper()
	last := "nothing"
	late := time.After(30 * time.Second) // far above pollTime, for slow machines
	for {
		select {
		case last = <-reports:
			if last == want {
				return
			}
		case <-late:
			t.Fatalf("no report of %q; the last was %q", want, last)
		}
	}
}

func TestWatchSpecs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agents")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(path, "a.yaml")
	write(t, file, agentFile("a", "one"))
	reports := watch(t, path)
	wantReport(t, reports, "a=one")

	write(t, file, agentFile("a", "two"))
	wantReport(t, reports, "a=two")

	write(t, file+".new", agentFile("a", "three")) // as editors save
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	wantReport(t, reports, "a=three")

	if err := os.Rename(path, path+".old"); err != nil { // the directory is replaced
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, file, agentFile("a", "four"))
	wantReport(t, reports, "a=four")

	write(t, file, agentFile("a", "five")) // the new one is watched too
	wantReport(t, reports, "a=five")
}

func TestWatchSpecsConfigMap(t *testing.T) {
	path := t.TempDir()
	configMap(t, path, "..v1", "one")
	if err := os.Symlink("..data/a.yaml", filepath.Join(path, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	reports := watch(t, path)
	wantReport(t, reports, "a=one")
	configMap(t, path, "..v2", "two")
	wantReport(t, reports, "a=two")
}

func TestWatchSpecsNeedsTheDirectory(t *testing.T) {
	err := WatchSpecs(t.Context(), filepath.Join(t.TempDir(), "none"), func([]*gate.Spec, map[string][]gate.Finding) { t.Error("reported") })
	if err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("error is %v", err)
	}
}
