package gate

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// axCode makes hooks of AX Code attached to agent "a".
func axCode(hooks ...Hook) *Spec {
	hooks = defaults(hooks)
	for i := range hooks {
		hooks[i].Dialect, hooks[i].Level = AXCode, CustomLevel
	}
	return &Spec{Kind: Attached(AXCode), Name: "a", Hooks: hooks}
}

// outcomes are the hooks' in firing order.
func outcomes(d Decision) (all []string) {
	for _, v := range d.Hooks {
		all = append(all, v.Name+" "+string(v.Outcome))
	}
	return all
}

func TestAXCode05And06Matcher(t *testing.T) {
	for _, tt := range []struct {
		name, pattern, tool string
		want                bool
	}{
		{"absent", "", "bash", true},
		{"absent, without a tool", "", "", true},
		{"star", "*", "bash", true},
		{"star, without a tool", "*", "", true},
		{"exact", "bash", "bash", true},
		{"case counts", "bash", "Bash", false},
		{"no substring", "bash", "bash2", false},
		{"alternatives", "edit|write", "write", true},
		{"trimmed", " edit | write ", "write", true},
		{"empty parts are dropped", "|edit||", "edit", true},
		{"an empty part is not everything", "edit|", "bash", false},
		{"only separators are nothing", "|", "bash", false},
		{"white space is nothing", " ", "bash", false},
		{"prefix", "web*", "webfetch", true},
		{"prefix, the whole", "web*", "web", true},
		{"prefix, another", "web*", "bash", false},
		{"prefix among alternatives", "edit|mcp__*", "mcp__x__y", true},
		{"a star inside is itself", "w*b", "web", false},
		{"no regular expression", "ba.h", "bash", false},
		{"no anchors", "^bash$", "bash", false},
		{"6: specific without a tool", "bash", "", false},
		{"6: prefix without a tool", "ba*", "", false},
		{"6: star among alternatives, without a tool", "bash|*", "", false},
		{"star among alternatives", "bash|*", "read", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := CompileAXCodeMatcher(tt.pattern).Match(tt.tool); got != tt.want {
				t.Errorf("matcher %q on tool %q: %v", tt.pattern, tt.tool, got)
			}
		})
	}
	if got := CompileAXCodeMatcher(" a|b* ").String(); got != " a|b* " {
		t.Errorf("String() = %q", got)
	}
}

// TestAXCode06AMatcherNeedsATool: an event without a tool is one for hooks whose
// matcher is everything's, whatever tool the payload names.
func TestAXCode06AMatcherNeedsATool(t *testing.T) {
	ev := stop("s")
	ev.ToolName, ev.ToolAliases = "bash", []string{"Bash"}
	for pattern, want := range map[string]bool{"bash": false, "ba*": false, "": true, "*": true} {
		h := Hook{Dialect: AXCode, Event: Stop, Matcher: CompileAXCodeMatcher(pattern)}
		if got := h.Concerns(&ev); got != want {
			t.Errorf("matcher %q on Stop: %v, want %v", pattern, got, want)
		}
	}
}

func TestAXCode05HooksSeeTheirOwnToolNames(t *testing.T) {
	for _, tt := range []struct {
		name       string
		tool, want string
		aliases    []string
	}{
		{"its own", "bash", "bash", []string{"Bash"}},
		{"its own with an alias", "apply_patch", "apply_patch", []string{"Write", "Edit"}},
		{"its own with another's alias", "list", "list", []string{"Glob"}},
		{"a host's", "run_shell_command", "bash", []string{"Bash"}},
		{"a host's with two aliases", "patch", "write", []string{"Write", "Edit"}},
		{"canonical", "WebFetch", "webfetch", nil},
		{"MultiEdit has a name of its own", "MultiEdit", "multiedit", nil},
		{"one that AX Code has not", "mcp__a__b", "mcp__a__b", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ev := tool(PreToolUse)
			ev.ToolName, ev.ToolAliases = tt.tool, tt.aliases
			if event, got := AXCodeNames(&ev); event != "PreToolUse" || got != tt.want {
				t.Errorf("got %s %q", event, got)
			}
			h := Hook{Dialect: AXCode, Event: PreToolUse, Matcher: CompileAXCodeMatcher(tt.want)}
			if !h.Concerns(&ev) {
				t.Errorf("matcher %q is not about it", tt.want)
			}
		})
	}
}

func TestAXCodeEvents(t *testing.T) {
	if len(AXCodeEvents) != 11 {
		t.Errorf("%d events, want 11", len(AXCodeEvents))
	}
	for _, name := range AXCodeEvents {
		n, ok := AXCodeEvent(name)
		ev := Event{Name: n, ToolSucceeded: true}
		if back, _ := AXCodeNames(&ev); !ok || back != name {
			t.Errorf("%s: got %s, back %s, %v", name, n, back, ok)
		}
		if blocks := name == "PreToolUse" || name == "UserPromptSubmit"; AXCodeBlocks(n) != blocks {
			t.Errorf("%s blocks: %v", name, AXCodeBlocks(n))
		}
	}
	for _, name := range []string{"Start", "", "stop", "AfterAgent"} {
		if _, ok := AXCodeEvent(name); ok {
			t.Errorf("%q is an event", name)
		}
	}
	for _, n := range []EventName{SessionEnd, PreCompact, PostCompact, Interrupt} {
		if n.Known() {
			t.Errorf("%s is an event for everybody", n)
		}
	}
}

// A host that reports a failed call as PostToolUse means AX Code's other event.
func TestAXCodeFailedCall(t *testing.T) {
	ev := tool(PostToolUse)
	ev.ToolSucceeded = false
	after, failure := Hook{Dialect: AXCode, Event: PostToolUse, Matcher: CompileAXCodeMatcher("")}, Hook{Dialect: AXCode, Event: PostToolUseFailure, Matcher: CompileAXCodeMatcher("")}
	if after.Concerns(&ev) || !failure.Concerns(&ev) {
		t.Error("a failed call is one that succeeded")
	}
	if event, _ := AXCodeNames(&ev); event != "PostToolUseFailure" {
		t.Errorf("HOOK_EVENT is %s", event)
	}
}

func TestAXCode07Payload(t *testing.T) {
	for _, tt := range []struct {
		name string
		ev   Event
		want string
	}{
		{"arguments alone", Event{Name: PreToolUse, ToolInput: json.RawMessage("{\n  \"command\": \"ls <a> & b\"\n}")}, `{"command":"ls <a> & b"}`},
		{"none", Event{Name: PreToolUse}, `{}`},
		{"Stop has none", Event{Name: Stop, FinalOutput: "done"}, `{}`},
		{"null", Event{Name: PreToolUse, ToolInput: json.RawMessage(`null`)}, `{}`},
		{"a prompt", Event{Name: UserPromptSubmit, Prompt: "hi"}, `{"prompt":"hi"}`},
		{"a prompt as it was given", Event{Name: UserPromptSubmit, Prompt: "hi", ToolInput: json.RawMessage(`{"prompt":"hi","x":1}`)}, `{"prompt":"hi","x":1}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := Hook{Dialect: AXCode}
			if got := string(h.told(&tt.ev, loopState{}, nil)); got != tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestAXCode10TheFirstBlockStopsTheRest(t *testing.T) {
	block := says(Verdict{Outcome: Block, Reason: "no"})
	broken := says(Verdict{Outcome: NoVerdict, Failure: &Failure{Code: SandboxUnavailable, Message: "m"}})
	for _, tt := range []struct {
		name   string
		second Hook
		says   func(Input) Verdict
		want   []string
	}{
		{"a block", Hook{}, block, []string{"1 allow", "2 block", "3 skipped"}},
		{"one that could not be run and blocks then", Hook{FailMode: FailBlock}, broken, []string{"1 allow", "2 no_verdict", "3 skipped"}},
		{"one that could not be run", Hook{}, broken, []string{"1 allow", "2 no_verdict", "3 block"}},
		{"an ask goes on", Hook{}, says(Verdict{Outcome: Ask}), []string{"1 allow", "2 ask", "3 block"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var order []string
			a := answers{"2": tt.says, "3": block}
			seen := EvaluatorFunc(func(ctx context.Context, in Input) Verdict {
				order = append(order, in.Hook.Name)
				return a.Evaluate(ctx, in)
			})
			second := tt.second
			second.Name, second.Event = "2", PreToolUse
			g := newGate(newMemory(), seen, axCode(Hook{Name: "1", Event: PreToolUse}, second, Hook{Name: "3", Event: PreToolUse}))
			d := decide(t, g, tool(PreToolUse))
			if diff := cmp.Diff(tt.want, outcomes(d)); diff != "" {
				t.Error(diff)
			}
			if d.Outcome != Block {
				t.Errorf("decision %s", d.Outcome)
			}
			asked := 0
			for _, o := range outcomes(d) {
				if !strings.HasSuffix(o, "skipped") {
					asked++
				}
			}
			if len(order) != asked || strings.Join(order, "") != "123"[:asked] {
				t.Errorf("ran %v", order)
			}
		})
	}
}

// What could not be run in time for want of a place is no allow of a hook that
// could have blocked, and ends the turn as a block does.
func TestAXCode10WithoutAPlace(t *testing.T) {
	for _, tt := range []struct {
		name   string
		event  EventName
		hook   Hook
		code   FailureCode
		blocks bool
	}{
		{"answers before a tool", PreToolUse, Hook{ReadsAnswer: true}, Overloaded, true},
		{"answers to a prompt", UserPromptSubmit, Hook{ReadsAnswer: true}, Overloaded, true},
		{"blocks on failure", PreToolUse, Hook{BlockOnFailure: true}, Overloaded, true},
		{"neither", PreToolUse, Hook{}, Overloaded, false},
		{"after a tool", PostToolUse, Hook{ReadsAnswer: true, BlockOnFailure: true}, Overloaded, false},
		{"its own time-out", PreToolUse, Hook{ReadsAnswer: true}, Timeout, false},
		{"its own failure", PreToolUse, Hook{ReadsAnswer: true}, NonzeroExit, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			every := CompileAXCodeMatcher("")
			tt.hook.Name, tt.hook.Event, tt.hook.Matcher = "first", tt.event, every
			none := says(Verdict{Outcome: NoVerdict, Failure: &Failure{Code: tt.code, Message: "m"}})
			g := newGate(newMemory(), answers{"first": none, "second": says(Verdict{Outcome: Allow})}, agent(), axCode(tt.hook, Hook{Name: "second", Event: tt.event, Matcher: every}))
			d := decide(t, g, tool(tt.event))
			want, note, second := Allow, FailedOpen, "second allow"
			if tt.blocks {
				want, note, second = Block, FailedClosed, "second skipped"
			}
			if d.Outcome != want || !d.Hooks[0].Has(note) || (d.Hooks[0].FailMode == FailBlock) != tt.blocks {
				t.Errorf("%s, %+v", d.Outcome, d.Hooks[0])
			}
			if diff := cmp.Diff([]string{"first no_verdict", second}, outcomes(d)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The evaluator of AX Code's commands is given the whole time that there is: the
// hook's own begins with its process.
func TestAXCode09TimeIsTheEvaluators(t *testing.T) {
	for _, tt := range []struct {
		kind  HookType
		bound bool
	}{{CommandHook, false}, {RuleHook, true}} {
		asked, bound := false, false
		evaluator := EvaluatorFunc(func(ctx context.Context, _ Input) Verdict {
			_, bound = ctx.Deadline()
			asked = true
			return Verdict{Outcome: Allow}
		})
		g := newGate(newMemory(), evaluator, agent(), axCode(Hook{Name: "h", Event: PreToolUse, Type: tt.kind}))
		g.Evaluators[RuleHook] = evaluator
		decide(t, g, tool(PreToolUse))
		if !asked || bound != tt.bound {
			t.Errorf("%s hook: asked: %v; has a deadline: %v", tt.kind, asked, bound)
		}
	}
}

func TestAXCode16DenyBeatsAnEarlierAsk(t *testing.T) {
	asks := func(reason string) func(Input) Verdict { return says(Verdict{Outcome: Ask, Reason: reason}) }
	a := answers{"1": asks("one"), "2": asks("two")}
	g := newGate(newMemory(), a, axCode(Hook{Name: "1", Event: PreToolUse}, Hook{Name: "2", Event: PreToolUse}, Hook{Name: "3", Event: PreToolUse}))
	if d := decide(t, g, tool(PreToolUse)); d.Outcome != Ask || d.Reason != "one" {
		t.Errorf("got %s %q, want the first ask's reason", d.Outcome, d.Reason)
	}
	a["3"] = says(Verdict{Outcome: Block, Reason: "three"})
	if d := decide(t, g, tool(PreToolUse)); d.Outcome != Block || d.Reason != "three" {
		t.Errorf("got %s %q, want the deny", d.Outcome, d.Reason)
	}
}

func TestAXCode17ObservedEventsAreNotBlocked(t *testing.T) {
	for _, name := range AXCodeEvents {
		n, _ := AXCodeEvent(name)
		if AXCodeBlocks(n) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			a := answers{"h": says(Verdict{Outcome: Block, Reason: "no", AdditionalContext: "c"})}
			g := newGate(newMemory(), a, axCode(Hook{Name: "h", Event: n, FailMode: FailBlock, Matcher: CompileAXCodeMatcher("")}))
			d := decide(t, g, Event{Name: n, Protocol: Native, Agent: "a", Session: "s", ToolSucceeded: true, AnswerUnknown: true})
			if len(d.Hooks) != 1 || d.Outcome != Allow || d.Reason != "" {
				t.Errorf("got %s %q by %v", d.Outcome, d.Reason, outcomes(d))
			}
			if want := map[bool]string{true: "c"}[n == PostToolUse]; d.AdditionalContext != want {
				t.Errorf("context %q", d.AdditionalContext)
			}
		})
	}
}

func TestAXCode19FeedbackLimits(t *testing.T) {
	const mark = "\n[hook feedback truncated to 4000 characters]"
	long := func(c string) string { return strings.Repeat(c, 5000) }
	for _, tt := range []struct {
		name     string
		feedback []string
		want     string
		injected string
	}{
		{"one", []string{" a \n"}, "a", "y"},
		{"joined by a blank line", []string{"a", "", "b"}, "a\n\nb", "yny"},
		{"exactly 4,000", []string{strings.Repeat("é", 4000)}, strings.Repeat("é", 4000), "y"},
		{"4,001", []string{strings.Repeat("é", 4001)}, strings.Repeat("é", 4000) + mark, "y"},
		{"two of 5,000", []string{long("a"), long("b")}, strings.Repeat("a", 4000) + mark + "\n\n" + strings.Repeat("b", 3955), "yy"},
		{"a third gives nothing", []string{long("a"), long("b"), "c"}, strings.Repeat("a", 4000) + mark + "\n\n" + strings.Repeat("b", 3955), "yyn"},
		{"the mark is cut too", []string{strings.Repeat("a", 3980), long("b")}, strings.Repeat("a", 3980) + "\n\n" + strings.Repeat("b", 4000) + mark[:20], "yy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var hooks []Hook
			a := answers{}
			for i, text := range tt.feedback {
				name := string(rune('a' + i))
				hooks = append(hooks, Hook{Name: name, Event: PostToolUse})
				a[name] = says(Verdict{Outcome: Allow, AdditionalContext: text})
			}
			d := decide(t, newGate(newMemory(), a, axCode(hooks...)), tool(PostToolUse))
			if diff := cmp.Diff(tt.want, d.AdditionalContext); diff != "" {
				t.Error(diff)
			}
			injected := ""
			for _, v := range d.Hooks {
				injected += map[bool]string{true: "y", false: "n"}[v.Injected]
			}
			if injected != tt.injected {
				t.Errorf("injected %s, want %s", injected, tt.injected)
			}
			if d.Outcome != Allow {
				t.Errorf("decision %s", d.Outcome)
			}
		})
	}
	if n := utf8.RuneCountInString(strings.Repeat("a", 4000) + mark); n != 4045 {
		t.Errorf("cut feedback has %d characters, want 4,045", n)
	}
}

func TestAXCode20Appended(t *testing.T) {
	if got := AXCodeAppended("lint: ok"); got != "\n\n<hook_feedback event=\"PostToolUse\">\nlint: ok\n</hook_feedback>" {
		t.Errorf("got %q", got)
	}
	if got := AXCodeAppended(""); got != "" {
		t.Errorf("no feedback gives %q", got)
	}
}
