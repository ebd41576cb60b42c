package gate

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The page for people has every note and every code, in the gate's own order.
func TestNotesAndErrorsPage(t *testing.T) {
	data, err := os.ReadFile("../docs/notes-and-errors.md")
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(data), "\n## Notes\n")
	notes, codes, found := strings.Cut(rest, "\n## Error codes")
	if !found || first == "" {
		t.Fatal("the page lacks a section")
	}
	rows := func(section string) (names []string) {
		for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [^|]{20,}").FindAllStringSubmatch(section, -1) {
			names = append(names, m[1])
		}
		return names
	}
	var wantNotes, wantCodes []string
	for _, n := range Notes {
		wantNotes = append(wantNotes, string(n))
	}
	for _, c := range FailureCodes {
		wantCodes = append(wantCodes, string(c))
	}
	if diff := cmp.Diff(wantNotes, rows(notes)); diff != "" {
		t.Errorf("notes (-gate +page):\n%s", diff)
	}
	if diff := cmp.Diff(wantCodes, rows(codes)); diff != "" {
		t.Errorf("codes (-gate +page):\n%s", diff)
	}
}

// Who tests a reason on PostToolUse has to know what the gate adds to it.
func TestWithheldIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/writing-hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "`"+Withheld+"`") {
		t.Errorf("the page does not say: %s", Withheld)
	}
}

// docs/dialects.md has the limits of the laws.
func TestDialectsPageLimits(t *testing.T) {
	data, err := os.ReadFile("../docs/dialects.md")
	if err != nil {
		t.Fatal(err)
	}
	thousands := func(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }
	for _, want := range []string{
		fmt.Sprintf("%d rejections in a row, whoever rejected", claudeCodeStops),
		fmt.Sprintf("feedback of %s characters a hook, %s a call", thousands(axCodeHookFeedback), thousands(axCodeCallFeedback)),
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the page does not say: %s", want)
		}
	}
}
