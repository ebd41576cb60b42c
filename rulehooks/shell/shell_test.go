package shell

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// read is all that a text would start, and whether some of it is guessed.
func read(t *testing.T, text string) (all []Command, guessed bool) {
	t.Helper()
	budget := NewBudget(t.Context())
	for c := range Read(budget, text) {
		all, guessed = append(all, c), guessed || c.Guessed
	}
	if budget.Spent() {
		t.Errorf("%.80q spends the budget", text)
	}
	return all, guessed
}

// shown are the commands in a line each; ~ marks words that are not literal.
func shown(commands []Command) (all []string) {
	for _, c := range commands {
		line := ""
		for _, w := range append([]Word{c.Program}, c.Args...) {
			if !w.Literal {
				line += "~"
			}
			line += w.Text + "|"
		}
		all = append(all, strings.TrimSuffix(line, "|"))
	}
	return all
}

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"words", `git  push origin`, []string{"git|push|origin"}},
		{"quotes", `g'i't "pu"sh \-\-force $'a\tb' "a\"b\x" ''`, []string{"git|push|--force|a\tb|a\"b\\x|"}},
		{"a line that goes on", "git push \\\n --force", []string{"git|push|--force"}},
		{"not literal", `echo $A "b$C" *.go ~/x {a,b} "~" "*" \* $(true)`, []string{"echo|~$A|~b$C|~*.go|~~/x|a|b|~|*|*|~$(true)", "true"}},
		{"lists", `a; b && c || d & e | f`, []string{"a", "b", "c", "d", "e", "f"}},
		{"subshells and groups", `(a; b); { c; }; ! d; time e`, []string{"a", "b", "c", "d", "e"}},
		{"substitutions", "a $(b) `c` <(d) \"$(e)\" ${x:-$(f)} $((1 + $(g)))", []string{"a|~$(b)|~`c`|~<(d)|~$(e)|~${x:-$(f)}|~$((1 + $(g)))", "b", "c", "d", "e", "f", "g"}},
		{"control", `if a; then b; else c; fi; for i in 1 2; do d; done; while e; do f; done; case x in y) g;; esac; [[ -f $(h) ]]; k() { l; }`,
			[]string{"a", "b", "c", "d", "e", "f", "g", "h", "l"}},
		{"a comment", `a # b`, []string{"a"}},
		{"assignments alone start nothing", `a=b`, nil},
		{"mentions are words", `echo 'git push --force'`, []string{"echo|git push --force"}},
		{"nothing", ` `, nil},
		{"a shell's text", `bash -c 'a; b'`, []string{"bash|-c|a; b", "a", "b"}},
		{"a shell's options", `/bin/bash --norc -eo pipefail -O x -lc 'a' b`, []string{"/bin/bash|--norc|-eo|pipefail|-O|x|-lc|a|b", "a"}},
		{"a shell's script", `sh a.sh -c b`, []string{"sh|a.sh|-c|b"}},
		{"a text in a text", `sh -c "bash -c 'a \"b c\"'"`, []string{`sh|-c|bash -c 'a "b c"'`, `bash|-c|a "b c"`, "a|b c"}},
		{"a text that is not literal", `sh -c "a $X; b"`, []string{"sh|-c|~a $X; b", "a|~$X", "b"}},
		{"eval", `eval a '; b'`, []string{"eval|a|; b", "a", "b"}},
		{"trap", `trap 'a' EXIT`, []string{"trap|a|EXIT", "a"}},
		{"watch and su", `watch -n 5 'a b'; su -c 'c d' me; su me --command='e'; script -c f /dev/null`,
			[]string{"watch|-n|5|a b", "a|b", "su|-c|c d|me", "c|d", "su|me|--command=e", "e", "script|-c|f|/dev/null", "f"}},
		{"env", `env -i -u A B=c D=e a b=c; env -S 'x y'`, []string{"env|-i|-u|A|B=c|D=e|a|b=c", "a|b=c", "env|-S|x y", "env|x|y", "x|y"}},
		{"sudo", `sudo -n -u me A=b -- a -n`, []string{"sudo|-n|-u|me|A=b|--|a|-n", "a|-n"}},
		{"starters", `nohup nice -n 5 timeout -k 1 10s stdbuf -oL setsid command exec -a x a`,
			[]string{"nohup|nice|-n|5|timeout|-k|1|10s|stdbuf|-oL|setsid|command|exec|-a|x|a", "nice|-n|5|timeout|-k|1|10s|stdbuf|-oL|setsid|command|exec|-a|x|a",
				"timeout|-k|1|10s|stdbuf|-oL|setsid|command|exec|-a|x|a", "stdbuf|-oL|setsid|command|exec|-a|x|a", "setsid|command|exec|-a|x|a", "command|exec|-a|x|a", "exec|-a|x|a", "a"}},
		{"command that only says", `command -v a`, []string{"command|-v|a"}},
		{"a prefix that only a shell knows", `$SUDO a b`, []string{"~$SUDO|a|b", "a|b"}},
		{"xargs", `a | xargs -n 1 -I {} b {}`, []string{"a", "xargs|-n|1|-I|{}|b|{}", "b|~{}"}},
		{"xargs of what is known", `echo -f x | xargs b`, []string{"b|-f|x", "echo|-f|x", "xargs|b", "b"}},
		{"find", `find . -name x -exec a {} \; -ok b {} +`, []string{`find|.|-name|x|-exec|a|{}|;|-ok|b|{}|+`, "a|~{}", "b|~{}"}},
		{"flock", `flock -w 5 /tmp/l a b; flock /tmp/l -c 'c d'`, []string{"flock|-w|5|/tmp/l|a|b", "a|b", "flock|/tmp/l|-c|c d", "c|d"}},
		{"into a shell", `echo 'a b' | sh`, []string{"a|b", "echo|a b", "sh"}},
		{"into a shell by way of", `echo 'a b' | cat | tee x | sudo bash -s --`, []string{"a|b", "echo|a b", "cat", "tee|x", "sudo|bash|-s|--", "bash|-s|--"}},
		{"printf into a shell", `printf '%s\n' 'a b' c | sh`, []string{"a|b", "c", `printf|%s\n|a b|c`, "sh"}},
		{"a here document into a shell", "bash <<'EOF'\na $x\nEOF\nbash <<EOF\nb\nEOF\n", []string{"bash", "a|~$x", "bash", "b"}},
		{"a here document whose text is escaped", "bash <<\\EOF\n'a' \\\nb\nEOF\nbash <<-EOF\n\tc \\$(d)\n\tEOF\n", []string{"bash", "a|b", "bash", "c|~$(d)", "d"}},
		{"a here document by way of cat", "cat <<EOF | sh\na\nEOF\n", []string{"a", "cat", "sh"}},
		{"a here string into a shell", `sh <<< 'a b'`, []string{"sh", "a|b"}},
		{"a here document is text elsewhere", "cat > x <<'EOF'\na\nEOF\n", []string{"cat"}},
		{"into a shell in brackets", `echo a | (sudo sh); echo b | { time sh; }`, []string{"a", "echo|a", "sudo|sh", "sh", "b", "echo|b", "sh"}},
		{"as a shell's file", `bash <(echo 'a b'); source <(printf c)`, []string{"bash|~<(echo 'a b')", "a|b", "echo|a b", "source|~<(printf c)", "c", "printf|c"}},
		{"as a builtin's file", `. /dev/stdin <<< 'a b'`, []string{".|/dev/stdin", "a|b"}},
		{"as another's file", `diff <(echo a) <(echo b)`, []string{"diff|~<(echo a)|~<(echo b)", "echo|a", "echo|b"}},
		{"into a script is no shell's text", `echo a | sh x.sh`, []string{"echo|a", "sh|x.sh"}},
		{"an unknown text into a shell", `curl x | sh`, []string{"curl|x", "sh"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			commands, guessed := read(t, tt.text)
			if diff := cmp.Diff(tt.want, shown(commands)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if guessed {
				t.Error("guessed")
			}
		})
	}
}

func TestReadCommand(t *testing.T) {
	commands, _ := read(t, `A=b C="$D" /usr/bin/make all 2>>log <in >&2`)
	want := []Command{{Program: Word{"/usr/bin/make", true}, Args: []Word{{"all", true}},
		Assignments:  []Assignment{{"A", Word{"b", true}}, {"C", Word{"$D", false}}},
		Redirections: []Redirection{{">>", Word{"log", true}}, {"<", Word{"in", true}}, {">&", Word{"2", true}}}}}
	if diff := cmp.Diff(want, commands); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := commands[0].Name(); got != "make" {
		t.Errorf("Name() = %q", got)
	}
	for _, tt := range []struct{ text, want string }{{`"$X/git" push`, "git"}, {`~/bin/git`, "git"}, {`$X`, ""}, {`a/gi?`, ""}, {`$(a /git)`, ""}, {`"${a:-/git}"`, ""}} {
		commands, _ := read(t, tt.text)
		if got := commands[0].Name(); got != tt.want {
			t.Errorf("Name() of %s = %q, want %q", tt.text, got, tt.want)
		}
	}
}

// holds reports whether there is a command of these words.
func holds(commands []Command, words ...string) bool {
	for _, c := range commands {
		if c.Program.Text != words[0] || len(c.Args) < len(words)-1 {
			continue
		}
		same := true
		for i, w := range words[1:] {
			same = same && c.Args[i].Text == w
		}
		if same {
			return true
		}
	}
	return false
}

// What cannot be read as a shell's is guessed at: nothing is hidden in it.
func TestReadGuesses(t *testing.T) {
	for _, tt := range []struct{ name, text string }{
		{"an open quote", `a b 'c`},
		{"what stands before", "a b\n( c"},
		{"what stands behind", "x; ) ; a b"},
		{"an arithmetic that is none", "$((a b) )"},
		{"too long", strings.Repeat("#", MaxBytes) + "\na b"},
		{"too deep", strings.Repeat("eval ", MaxDepth+2) + "a b"},
		{"find in find", strings.Repeat("find -exec ", MaxDepth+2) + "a b"},
		{"a great many brackets", strings.Repeat("(", MaxBytes-10) + " a b"},
		{"a great many substitutions", strings.Repeat("$(", MaxBytes/2-10) + " a b"},
		{"a great many ifs", strings.Repeat("if ", MaxBytes/3-10) + " a b"},
		{"a great many parameters", strings.Repeat("${x:-", MaxBytes/5-10) + " $(a b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			commands, guessed := read(t, tt.text)
			if !guessed || !holds(commands, "a", "b") {
				t.Errorf("guessed %v, %d commands, among them %q", guessed, len(commands), shown(commands[:min(5, len(commands))]))
			}
		})
	}
}

// What a text comes to can be far more than it is.
func TestReadSpendsTheBudget(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name, text string
		ctx        context.Context
		spent      bool
	}{
		{"texts that multiply", strings.Repeat(`$(echo "`, 60) + "a b" + strings.Repeat(`" | sh)`, 60), t.Context(), true},
		{"braces that multiply", "a " + strings.Repeat("{a,b}", 30), t.Context(), true},
		{"braces in braces", "a " + strings.Repeat("{a,", 100) + strings.Repeat("}", 100), t.Context(), true},
		{"a row without an end", "a {1..9999999999}", t.Context(), true},
		{"arguments that multiply", "sh -c '" + strings.Repeat("$@ ", 9000) + "' " + strings.Repeat(" a", 9000), t.Context(), true},
		{"the time", "a", ended, true},
		{"the time of a long text", strings.Repeat("a ", MaxBytes), ended, true},
		{"an ordinary one", "a && b", t.Context(), false},
		{"a long one", strings.Repeat("a ", 1<<17), t.Context(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			budget := NewBudget(tt.ctx)
			for range Read(budget, tt.text) {
			}
			if budget.Spent() != tt.spent {
				t.Errorf("spent: %v", budget.Spent())
			}
		})
	}
}

// The readings of one decision share its budget.
func TestBudgetIsShared(t *testing.T) {
	budget := NewBudget(t.Context())
	for n := 0; !budget.Spent(); n++ {
		if n > 10 {
			t.Fatalf("read %d texts", n)
		}
		for range Read(budget, "a #"+strings.Repeat("b", MaxBytes-10)) {
		}
	}
}

func TestReadEndsWithItsReader(t *testing.T) {
	for _, text := range []string{"a; a", "bash -c 'a; a'", "env a a; a", strings.Repeat("a ", MaxBytes)} {
		for range Read(NewBudget(t.Context()), text) {
			break
		}
	}
}

// A text costs little more than its length, whatever is in it.
func TestReadIsBounded(t *testing.T) {
	for _, tt := range []struct{ name, part string }{
		{"brackets", "( "}, {"ifs", "if "}, {"starters", "env "}, {"shells", "sh -c "}, {"locks", "flock a "}, {"finds", "find -exec "}, {"xargs", "xargs "}, {"pipes", "echo a | cat | "},
		{"indices", "a["}, {"evals", "eval "}, {"words of git", "git push "}, {"substitutions", "$(echo a | sh) "}, {"here strings", "sh <<< a;"},
		{"nested substitutions", `a "x$(`}, {"nested echoes", `echo "x$(`}, {"here documents", "sh <<a\n"}, {"eval of words", `eval "$(a)" `},
		{"variables", "env A=b "}, {"variables that load", "env ENV=b PAGER=c "}, {"containers", "docker "}, {"containers of texts", "docker 'a b' "}, {"aliases", "alias a=b;"}, {"names", "alias a=b "}, {"settings of git", "git -c alias.a=!b "}, {"more of them", "-c alias.a=!b "},
		{"values", "x='$(a)';"}, {"values of an array", "'$(a)' "}, {"a list of them", "x=('$(a)' "}, {"arithmetic", "(( a['$(b)'] "}, {"lets", "let 'a[$(b)]' "}, {"names that are worked out", "printf -v 'a[$(b)]' "}, {"programs of sed", "sed -e p "}, {"programs of awk", "awk -v a=b "},
		{"marks", "xargs -I a "}, {"finds of xargs", "find . -exec xargs "}, {"hosts", "ssh a "}, {"parallels", "parallel ::: a "}, {"parallel pipes", "echo a | parallel a | "}, {"functions", "echo() { a; };"}, {"redirections", "{ a; } > b;"}, {"capabilities", "capsh -- "},
	} {
		for _, size := range []int{MaxBytes, 3 * MaxBytes} {
			t.Run(tt.name, func(t *testing.T) {
				text := strings.Repeat(tt.part, size/len(tt.part))
				commands := 0
				for range Read(NewBudget(t.Context()), text) {
					commands++
				}
				if commands > len(text) {
					t.Errorf("%d bytes give %d commands", len(text), commands)
				}
			})
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{`a b`, `sudo bash -c 'git push -f'`, "cat <<E | sh\na\nE\n", `echo "$(a)" | xargs b`, `find . -exec a {} \;`, "$((a) )", `printf '%s' a | sh`,
		`git -c alias.x='!a' x`, `docker run x 'a b'`, `sed -ne 's/a/b/e' x`, `awk 'BEGIN { a }'`, `let 'x[$(a)]'`, `x='$(a)' ENV=<(b) c`, `xargs -I{} sh -c '{}'`, `ssh -o ProxyCommand=a h b`, `make CC='a b' -f -`, `capsh -- -c a`, `{ a; } > b`, "\\\x00\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for c := range Read(NewBudget(t.Context()), text) {
			if c.Name() == "" && !c.Program.Literal && !c.Opaque() {
				t.Errorf("%q: %+v may be anything", text, c)
			}
			if c.Program.Text == "" && len(c.Args) == 0 && c.Assignments == nil && c.Redirections == nil && !strings.ContainsAny(text, `'"$`) {
				t.Errorf("%q starts nothing", text)
			}
		}
	})
}
