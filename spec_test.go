package stopgate_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every numbered assertion of a contract that is built has a test that carries
// its number, and no test carries a number that the contract does not have.
func TestEveryAssertionHasATest(t *testing.T) {
	for _, c := range []struct {
		file, prefix string
		first, last  int // what is built of it
		all          int
	}{
		{"azure.md", "TestAzure", 1, 50, 50},
		{"claude-code.md", "TestClaudeCode", 1, 16, 16},
		{"antigravity.md", "TestAntigravity", 1, 18, 18},
		{"ax-code.md", "TestAXCode", 1, 24, 24},
	} {
		t.Run(c.file, func(t *testing.T) {
			contract, err := os.ReadFile(filepath.Join("..", "shared", "spec", c.file))
			if errors.Is(err, fs.ErrNotExist) && os.Getenv("CI") == "" {
				t.Skip("the contract (../shared) is not beside this checkout")
			}
			if err != nil {
				t.Fatal(err)
			}
			if found := regexp.MustCompile(`(?m)^\d+\. `).FindAll(contract, -1); len(found) != c.all {
				t.Fatalf("the contract has %d assertions, want %d", len(found), c.all)
			}
			tested := map[int][]string{}
			numbers := regexp.MustCompile(`^` + c.prefix + `(\d\d)(?:(And|To)(\d\d))?`)
			for name := range testNames(t) {
				for _, m := range numbers.FindAllStringSubmatch(name, -1) {
					first, _ := strconv.Atoi(m[1]) // two digits
					tested[first] = append(tested[first], name)
					last, _ := strconv.Atoi(m[3])
					if m[2] == "To" {
						for n := first + 1; n < last; n++ {
							tested[n] = append(tested[n], name)
						}
					}
					if last > 0 {
						tested[last] = append(tested[last], name)
					}
				}
			}
			for n := c.first; n <= c.last; n++ {
				if len(tested[n]) == 0 {
					t.Errorf("%s %d has no test named %s%02d…", c.file, n, c.prefix, n)
				}
			}
			for n, names := range tested {
				if n < 1 || n > c.all {
					t.Errorf("%v carry the number %d, which %s does not have", names, n, c.file)
				}
			}
		})
	}
}

// Every reported fault that docs/faults.md says a test holds is named by one.
func TestEveryHeldFaultIsNamedByATest(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	sources := testSources(t)
	held := 0
	for _, row := range strings.Split(string(page), "\n") {
		cells := strings.Split(row, "|")
		if len(cells) < 5 || strings.TrimSpace(cells[3]) != "here" {
			continue
		}
		held++
		id := strings.TrimSpace(cells[1])
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(id) + `\b`).MatchString(sources) {
			t.Errorf("fault %s applies here and no test names it", id)
		}
	}
	if held < 20 {
		t.Fatalf("docs/faults.md has %d rows that apply here", held)
	}
}

// Every test that docs/faults.md names exists, and is in the package that it
// says.
func TestFaultsNameTestsThatExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	// One or more tests, joined by "and", then where they are.
	where := regexp.MustCompile("((?:`Test\\w+(?:/\\w+)?`(?: and )?)+)[^`|]*? in `([\\w/]+)`")
	named := 0
	for _, m := range where.FindAllStringSubmatch(string(page), -1) {
		for _, test := range regexp.MustCompile(`Test\w+(?:/\w+)?`).FindAllString(m[1], -1) {
			named++
			if name, script, _ := strings.Cut(test, "/"); !holdsTest(t, m[2], name, script) {
				t.Errorf("docs/faults.md names %s in %s, which is not there", test, m[2])
			}
		}
	}
	if all := regexp.MustCompile("`Test\\w+(?:/\\w+)?`").FindAllString(string(page), -1); named != len(all) {
		t.Errorf("%d tests are named with their package, of %d", named, len(all))
	}
}

// holdsTest reports whether a package has a test, or a script of its
// TestScripts.
func holdsTest(t *testing.T, dir, name, script string) bool {
	t.Helper()
	if script != "" {
		_, err := os.Stat(filepath.Join(dir, "testdata", "script", script+".txtar"))
		return err == nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(source), "\nfunc "+name+"(")
	})
}

func testNames(t *testing.T) map[string]bool {
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllStringSubmatch(testSources(t), -1) {
		names[m[1]] = true
	}
	return names
}

// testSources is every test file and CLI script of the tree.
func testSources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".txtar") ||
			strings.HasPrefix(path, filepath.Join("store", "storetest")) && strings.HasSuffix(path, ".go") {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			all.Write(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
