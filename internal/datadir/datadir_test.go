package datadir

import "testing"

func TestDefault(t *testing.T) {
	for _, c := range []struct{ name, state, home, want string }{
		{"the state directory", "/state", "/home/a", "/state/stopgate"},
		{"the home directory", "", "/home/a", "/home/a/.local/state/stopgate"},
		{"a relative state directory is ignored", "state", "/home/a", "/home/a/.local/state/stopgate"},
		{"never the current directory", "", "", ""},
		{"not even below a relative home", "state", "home", ""},
	} {
		env := map[string]string{"XDG_STATE_HOME": c.state, "HOME": c.home}
		if got := Default(func(name string) string { return env[name] }); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
