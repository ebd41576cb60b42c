package config

import (
	"testing"

	"stopgate/gate"
)

// A hook is found in its own file, and in its own document of it.
func TestLocate(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		spec             int
		hook             string
		line, column     int
	}{
		{"settings", ".claude/settings.json", claudeHook("Stop", "", `{"type":"command","command":"x"}`), 0, "Stop[0].hooks[0]", 2, 1},
		{"AX Code", ".ax-code/hooks.json", axFile(`"event":"Stop","command":"x"`), 0, "hooks[0].Stop", 1, 11},
		{"the second of two agents", "x.yaml", "name: a\nproperties: {hooks: {Stop: [{prompt: x}]}}\n---\nname: b\nproperties: {hooks: {Stop: [{prompt: y}]}}\n", 1, "Stop[0]", 5, 29},
		{"a hook that is not there", ".claude/settings.json", claudeHook("Stop", "", `{"type":"command","command":"x"}`), 0, "Stop[9]", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			specs, _ := ReadHooks("", c.file, []byte(c.text))
			if len(specs) <= c.spec {
				t.Fatalf("%d specs", len(specs))
			}
			got := Locate(specs[c.spec], c.file, []byte(c.text), []gate.Finding{{Path: c.hook}, {Path: c.hook, Line: 7, Column: 7}})
			if got[0].Line != c.line || got[0].Column != c.column || got[1].Line != 7 {
				t.Errorf("%v", got)
			}
		})
	}
}
