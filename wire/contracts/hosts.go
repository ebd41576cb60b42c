package contracts

import (
	"strings"
	"time"

	"stopgate/gate"
)

// The bodies that more than one host takes.
const (
	block = `{"decision":"block","reason":"REASON"}`
	deny  = `{"decision":"deny","reason":"REASON"}`
	allow = `{"decision":"allow"}`
	flat  = `{"additionalContext":"CONTEXT"}`
	noted = `{"decision":"block","reason":"REASON\n\nCONTEXT"}`
)

// context is a context in hookSpecificOutput, for the event's own name.
func context(event string) string {
	return `{"hookSpecificOutput":{"hookEventName":"` + event + `","additionalContext":"CONTEXT"}}`
}

// reasonAsContext is how a block reaches the model where only a context does.
func reasonAsContext(event string) (block, both string) {
	head := `{"hookSpecificOutput":{"hookEventName":"` + event + `","additionalContext":"REASON`
	return head + `"}}`, head + `\n\nCONTEXT"}}`
}

// blockAnd is a block with a context beside it.
func blockAnd(event string) string {
	return `{"decision":"block","reason":"REASON","hookSpecificOutput":{"hookEventName":"` + event + `","additionalContext":"CONTEXT"}}`
}

// withheld is a block of a tool's result: its reason says that the tool has run.
func withheld(block string) string {
	return strings.Replace(block, "REASON", `REASON\n\n`+gate.Withheld, 1)
}

// permission is a tool call's permissionDecision; reason may hold more fields.
func permission(word, rest string) string {
	return `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"` + word + `","permissionDecisionReason":"` + rest + `}}`
}

const unasked = "This tool call needs approval, and there is nobody here to give it. REASON"

func claudeCode() Contract {
	failed, failedBoth := reasonAsContext("PostToolUseFailure")
	return Contract{Host: "claude-code", Program: "Claude Code", From: "2.1.328", To: "2.1.328",
		Run: "-p --output-format stream-json --include-hook-events; six runs in the interactive TUI",
		Cap: 8, CapRestarts: true, TimeoutUnit: time.Second,
		Events: []Event{
			{Host: "SessionStart", Name: gate.Start, Command: true, // an http entry is silently never called
				Answers: Answers{Context: context("SessionStart"), BlockWithContext: context("SessionStart")}},
			{Host: "UserPromptSubmit", Name: gate.UserPromptSubmit, HTTP: true, Command: true,
				Answers: Answers{Context: context("UserPromptSubmit"), Block: block, BlockWithContext: block, Ask: block}},
			{Host: "PreToolUse", Name: gate.PreToolUse, HTTP: true, Command: true,
				Answers: Answers{Context: context("PreToolUse"), Block: permission("deny", `REASON"`),
					BlockWithContext: permission("deny", `REASON","additionalContext":"CONTEXT"`), Ask: permission("ask", `REASON"`)}},
			{Host: "PostToolUse", Name: gate.PostToolUse, HTTP: true, Command: true,
				Answers: Answers{Context: context("PostToolUse"), Block: block, BlockWithContext: blockAnd("PostToolUse"), Ask: block}},
			{Host: "PostToolUseFailure", Name: gate.PostToolUseFailure, HTTP: true, Command: true, Untried: true,
				Answers: Answers{Context: context("PostToolUseFailure"), Block: failed, BlockWithContext: failedBoth, Ask: failed}},
			{Host: "Stop", Name: gate.Stop, HTTP: true, Command: true,
				Answers: Answers{Block: block, BlockWithContext: blockAnd("Stop"), Ask: block}},
			{Host: "SubagentStop", Name: gate.SubagentStop, HTTP: true, Command: true,
				Answers: Answers{Block: block, BlockWithContext: block, Ask: block}},
		}}
}

func codex() Contract {
	return Contract{Host: "codex", Program: "Codex", From: "0.169.0", To: "0.169.0",
		Run:         "exec --dangerously-bypass-hook-trust, wire_api responses",
		TimeoutUnit: time.Second,
		Events: []Event{
			{Host: "SessionStart", Name: gate.Start, Command: true,
				Answers: Answers{Context: context("SessionStart"), BlockWithContext: context("SessionStart")}},
			{Host: "UserPromptSubmit", Name: gate.UserPromptSubmit, Command: true,
				Answers: Answers{Context: context("UserPromptSubmit"), Block: block, BlockWithContext: block, Ask: block}},
			{Host: "PreToolUse", Name: gate.PreToolUse, Command: true,
				Answers: Answers{Context: context("PreToolUse"), Block: permission("deny", `REASON"`),
					BlockWithContext: permission("deny", `REASON","additionalContext":"CONTEXT"`), Ask: permission("deny", unasked+`"`)}},
			{Host: "PostToolUse", Name: gate.PostToolUse, Command: true,
				Answers: Answers{Context: context("PostToolUse"), Block: withheld(block), BlockWithContext: withheld(blockAnd("PostToolUse")), Ask: withheld(block)}},
			{Host: "Stop", Name: gate.Stop, Command: true,
				Answers: Answers{Block: block, BlockWithContext: block, Ask: block}},
			{Host: "SubagentStop", Name: gate.SubagentStop, Command: true,
				Answers: Answers{Block: block, BlockWithContext: block, Ask: block}},
		}}
}

func geminiCLI() Contract {
	const denyBoth = `{"decision":"deny","reason":"REASON\n\nCONTEXT"}`
	return Contract{Host: "gemini-cli", Program: "Gemini CLI", From: "0.61.0", To: "0.61.0",
		Run:         "--yolo -p",
		TimeoutUnit: time.Millisecond,
		Events: []Event{
			{Host: "SessionStart", Name: gate.Start, Command: true,
				Answers: Answers{NoObjection: `{}`, Context: context("SessionStart"), Block: `{}`, BlockWithContext: context("SessionStart"), Ask: `{}`}},
			{Host: "BeforeAgent", Name: gate.UserPromptSubmit, Command: true,
				Answers: Answers{NoObjection: `{}`, Context: context("BeforeAgent"), Block: block, BlockWithContext: block, Ask: block}},
			{Host: "BeforeTool", Name: gate.PreToolUse, Command: true,
				Answers: Answers{NoObjection: `{}`, Context: `{}`, Block: deny, BlockWithContext: denyBoth, Ask: `{"decision":"deny","reason":"` + unasked + `"}`}},
			{Host: "AfterTool", Name: gate.PostToolUse, Command: true,
				Answers: Answers{NoObjection: `{}`, Context: context("AfterTool"), Block: withheld(deny), BlockWithContext: withheld(denyBoth), Ask: withheld(deny)}},
			{Host: "AfterAgent", Name: gate.Stop, Command: true,
				Answers: Answers{NoObjection: `{}`, Context: `{}`, Block: block, BlockWithContext: block, Ask: block}},
		}}
}

func qwenCode() Contract {
	said, saidBoth := reasonAsContext("PostToolUse")
	failed, failedBoth := reasonAsContext("PostToolUseFailure")
	return Contract{Host: "qwen-code", Program: "Qwen Code", From: "0.24.4", To: "0.24.4",
		Run: "--yolo -p, OpenAI chat API",
		// Measured: of a command hook's timeout a number from 1000 on is
		// milliseconds, a smaller one seconds; an http hook's is always seconds
		// (fault gx-030).
		Cap: 7, TimeoutUnit: time.Millisecond,
		Events: []Event{
			{Host: "SessionStart", Name: gate.Start, HTTP: true, Command: true,
				Answers: Answers{NoObjection: `{}`, Context: context("SessionStart"), Block: `{}`, BlockWithContext: context("SessionStart"), Ask: `{}`}},
			{Host: "UserPromptSubmit", Name: gate.UserPromptSubmit, HTTP: true, Command: true,
				Answers: Answers{NoObjection: `{}`, Context: context("UserPromptSubmit"), Block: block, BlockWithContext: block, Ask: block}},
			{Host: "PreToolUse", Name: gate.PreToolUse, HTTP: true, Command: true,
				Answers: Answers{NoObjection: `{}`, Context: `{}`, Block: permission("deny", `REASON"`),
					BlockWithContext: permission("deny", `REASON\n\nCONTEXT"`), Ask: permission("ask", `REASON"`)}},
			{Host: "PostToolUse", Name: gate.PostToolUse, HTTP: true, Command: true,
				Answers: Answers{NoObjection: `{}`, Context: context("PostToolUse"), Block: said, BlockWithContext: saidBoth, Ask: said}},
			{Host: "PostToolUseFailure", Name: gate.PostToolUseFailure, HTTP: true, Command: true, Untried: true,
				Answers: Answers{NoObjection: `{}`, Context: context("PostToolUseFailure"), Block: failed, BlockWithContext: failedBoth, Ask: failed}},
			{Host: "Stop", Name: gate.Stop, HTTP: true, Command: true,
				Answers: Answers{NoObjection: `{}`, Context: `{}`, Block: block, BlockWithContext: block, Ask: block}},
			{Host: "SubagentStop", Name: gate.SubagentStop, HTTP: true, Command: true,
				Answers: Answers{NoObjection: `{}`, Context: `{}`, Block: block, BlockWithContext: block, Ask: block}},
		}}
}

func copilot() Contract {
	stop := Answers{NoObjection: `{}`, Context: `{}`, Block: block, BlockWithContext: block, Ask: block}
	start := Answers{NoObjection: `{}`, Context: flat, Block: `{}`, BlockWithContext: flat, Ask: `{}`}
	prompt := Answers{NoObjection: `{}`, Context: flat, Block: block, BlockWithContext: block, Ask: block}
	pre := Answers{NoObjection: `{}`, Context: flat,
		Block:            `{"permissionDecision":"deny","permissionDecisionReason":"REASON"}`,
		BlockWithContext: `{"permissionDecision":"deny","permissionDecisionReason":"REASON\n\nCONTEXT"}`,
		Ask:              `{"permissionDecision":"ask","permissionDecisionReason":"REASON"}`}
	post := Answers{NoObjection: `{}`, Context: flat, Block: withheld(block), BlockWithContext: withheld(noted), Ask: withheld(block)}
	return Contract{Host: "copilot", Program: "GitHub Copilot CLI", From: "1.0.102", To: "1.0.102",
		Run: "COPILOT_OFFLINE=true, -p --allow-all-tools; http with PascalCase keys and COPILOT_HOOK_ALLOW_LOCALHOST=1",
		Cap: 8, TimeoutUnit: time.Second, // the key is timeoutSec
		// http was tried for the PascalCase PreToolUse and Stop only.
		Events: []Event{
			{Host: "sessionStart", Name: gate.Start, Command: true, Answers: start},
			{Host: "userPromptSubmitted", Name: gate.UserPromptSubmit, Command: true, Answers: prompt},
			{Host: "preToolUse", Name: gate.PreToolUse, Command: true, Answers: pre},
			{Host: "postToolUse", Name: gate.PostToolUse, Command: true, Answers: post},
			{Host: "agentStop", Name: gate.Stop, Command: true, Answers: stop},
			{Host: "subagentStop", Name: gate.SubagentStop, Command: true, Untried: true, Answers: stop},
			{Host: "SessionStart", Name: gate.Start, Command: true, Answers: start},
			{Host: "UserPromptSubmit", Name: gate.UserPromptSubmit, Command: true, Answers: prompt},
			{Host: "PreToolUse", Name: gate.PreToolUse, HTTP: true, Command: true, Answers: pre},
			{Host: "PostToolUse", Name: gate.PostToolUse, Command: true, Answers: post},
			{Host: "Stop", Name: gate.Stop, HTTP: true, Command: true, Answers: stop},
			{Host: "SubagentStop", Name: gate.SubagentStop, Command: true, Untried: true, Answers: stop},
		}}
}

func antigravity() Contract {
	return Contract{Host: "antigravity", Program: "The Gemini API's agents",
		Run:         "documented: spec/antigravity.md",
		TimeoutUnit: time.Second,
		Events: []Event{
			{Host: "pre_tool_execution", Name: gate.PreToolUse, HTTP: true, Command: true, Untried: true,
				Answers: Answers{NoObjection: allow, Context: allow, Block: deny, BlockWithContext: `{"decision":"deny","reason":"REASON\n\nCONTEXT"}`,
					Ask: `{"decision":"deny","reason":"` + unasked + `"}`}},
			{Host: "post_tool_execution", Name: gate.PostToolUse, HTTP: true, Command: true, Untried: true,
				Answers: Answers{NoObjection: `{}`, Context: `{}`, Block: `{}`, BlockWithContext: `{}`, Ask: `{}`}},
		}}
}

func axCode() Contract {
	said, saidBoth := reasonAsContext("PostToolUse")
	const denied = `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","permissionDecision":"deny","permissionDecisionReason":"REASON"}}`
	watched := func(host string, name gate.EventName) Event {
		return Event{Host: host, Name: name, Command: true, Untried: true}
	}
	return Contract{Host: "ax-code", Program: "AX Code",
		Run: "documented: spec/ax-code.md, runtime 7.24.4; timeouts cannot be configured, a hook has 30 s",
		Events: []Event{
			{Host: "PreToolUse", Name: gate.PreToolUse, Command: true, Untried: true,
				Answers: Answers{Block: permission("deny", `REASON"`), BlockWithContext: permission("deny", `REASON\n\nCONTEXT"`), Ask: permission("ask", `REASON"`)}},
			{Host: "UserPromptSubmit", Name: gate.UserPromptSubmit, Command: true, Untried: true,
				Answers: Answers{Block: denied, BlockWithContext: denied, Ask: denied}},
			{Host: "PostToolUse", Name: gate.PostToolUse, Command: true, Untried: true,
				Answers: Answers{Context: context("PostToolUse"), Block: said, BlockWithContext: saidBoth, Ask: said}},
			watched("PostToolUseFailure", gate.PostToolUseFailure),
			watched("Stop", gate.Stop),
			watched("SubagentStop", gate.SubagentStop),
			watched("SessionStart", gate.Start),
			watched("SessionEnd", ""),
			watched("PreCompact", ""),
			watched("PostCompact", ""),
			watched("Interrupt", ""),
		}}
}
