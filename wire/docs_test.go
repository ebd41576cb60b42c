package wire

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"stopgate/wire/contracts"
)

// docs/hosts.md shows the alias table as it is.
func TestToolTableIsDocumented(t *testing.T) {
	columns := []string{"codex", "gemini-cli", "qwen-code", copilotName, antigravityName, "ax-code"}
	var b strings.Builder
	fmt.Fprintf(&b, "| claude-code | %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)+1))
	for _, tool := range Tools() {
		cells := []string{names(append([]string{tool.Name}, tool.Hosts["claude-code"]...))}
		for _, host := range columns {
			cells = append(cells, names(tool.Hosts[host]))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	if !strings.Contains(hostsPage(t), "\n\n"+b.String()+"\n") {
		t.Errorf("docs/hosts.md has not this table:\n%s", b.String())
	}
	for _, tool := range Tools() {
		for host := range tool.Hosts {
			if host != "claude-code" && !strings.Contains(" "+strings.Join(columns, " ")+" ", " "+host+" ") {
				t.Errorf("%s has a name for %s, which has no column", host, tool.Name)
			}
		}
	}
}

func names(list []string) string {
	if len(list) == 0 {
		return "–"
	}
	return "`" + strings.Join(list, "`, `") + "`"
}

// The page's first table says of each host that was tried what its contract says.
func TestTriedHostsAreDocumented(t *testing.T) {
	page := hostsPage(t)
	for _, c := range contracts.All() {
		if c.From == "" {
			continue
		}
		tried, blocks := c.From, "no limit"
		if c.To != c.From {
			tried += " to " + c.To
		}
		if c.Cap > 0 {
			blocks = fmt.Sprint(c.Cap)
		}
		if c.CapRestarts {
			blocks += ", anew after a tool call"
		}
		if row := fmt.Sprintf("\n| %s | %s | %s |", c.Host, tried, blocks); !strings.Contains(page, row) {
			t.Errorf("docs/hosts.md has no row that begins with %q", row)
		}
		if command := "stopgate init " + c.Host + " "; !strings.Contains(page, command) {
			t.Errorf("docs/hosts.md does not say %q", command)
		}
	}
}

func hostsPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../docs/hosts.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}
