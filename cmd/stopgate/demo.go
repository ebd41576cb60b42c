package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/internal/scratch"
	"stopgate/internal/terminal"
	"stopgate/prompthooks"
)

//go:embed demo.yaml
var demoSpec []byte

type demoCommand struct{}

// Help is the detail of `stopgate demo --help`.
func (demoCommand) Help() string {
	return "Runs a server of its own on a free loopback port, with a temporary data directory, and an agent that plays both sides of a loop. Where a model is configured (as by GEMINI_API_KEY), it judges; else a scripted judge does.\n\nExample: stopgate demo"
}

// Run plays one loop: a tool call audited, a final answer refused, corrected
// and allowed.
func (demoCommand) Run(p process) error {
	dir, err := scratch.Make("")
	if err != nil {
		return err
	}
	defer dir.Remove()
	cfg, err := loadConfig(p, "", overrides{listen: "127.0.0.1:0", data: dir.Path()})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return exit{exitUnreachable, err}
	}
	defer listener.Close()
	s, app, err := newServer(p, cfg, slog.New(slog.DiscardHandler), listener.Addr().String())
	if err != nil {
		return err
	}
	d := &demo{out: p.stdout, ctx: p.ctx, colour: terminal.Is(p.stdout) && p.getenv("NO_COLOR") == "",
		api: apiClient{base: "http://" + listener.Addr().String()}, judge: app.models.check().Reason}
	if !app.models.check().OK {
		d.judge = "no model key is set: a scripted judge plays the model's part"
		app.useScripted()
	}
	if status := app.runner.Status(); !status.Working {
		d.judge += "; no sandbox, so the audit script will not run (" + status.Reason + ")"
	}
	ctx, stop := context.WithCancel(p.ctx)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	err = d.play()
	stop()
	return errors.Join(err, <-served, app.close())
}

// demo is one agent's loop, told step by step.
type demo struct {
	ctx    context.Context
	out    io.Writer
	colour bool
	api    apiClient
	judge  string
	step   int
	err    error
}

func (d *demo) play() error {
	const (
		request  = "Restart the web service and make sure that it is healthy."
		tooEarly = "Done. The web service is restarted and healthy."
		checked  = "Done. The web service is restarted, and its health check answers HTTP/1.1 200 OK."
	)
	d.say("stopgate demo on %s (%s)", d.api.base, d.judge)
	d.next("The owner uploads an agent with two hooks (PUT /api/v2/extendedAgent/agents/deployer)")
	d.post(http.MethodPut, "/api/v2/extendedAgent/agents/deployer", "application/yaml", demoSpec)
	d.say("   Stop: evidence, a prompt hook that reads the conversation · PostToolUse: audit, a script in a sandbox")
	d.transcript(message{"user", request})
	d.say("   user: %s", request)

	d.next("The agent runs a tool")
	d.tool("systemctl restart web", "web.service restarted")
	d.next("The agent wants to stop")
	d.stop(tooEarly)
	d.next("Sent back with that reason, the agent runs the check")
	d.tool("curl -sI localhost/health", "HTTP/1.1 200 OK")
	d.next("The agent wants to stop again")
	last := d.stop(checked)
	if d.err == nil && last.Outcome != gate.Allow {
		d.say("\nThe model's judgement was: %s. A real one may differ from the story.", last.Outcome)
	}
	d.next("What was decided is on record (GET /v1/evaluations)")
	d.records()
	d.say("\nGate an agent of your own: stopgate serve, then README.md, \"Gate your own loop\".")
	return d.err
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// tool tells what the agent did and asks the gate about it.
func (d *demo) tool(command, result string) {
	d.transcript(message{"assistant", "I run: " + command}, message{"tool", result})
	d.say("   Bash: %s\n   → %s", command, result)
	answer := d.evaluate(map[string]any{"hook_event_name": gate.PostToolUse, "tool_name": "Bash",
		"tool_input": map[string]string{"command": command}, "tool_result": result})
	d.verdict(answer)
}

func (d *demo) stop(final string) gate.Decision {
	d.say("   agent: %s", final)
	answer := d.evaluate(map[string]any{"hook_event_name": gate.Stop, "final_output": final})
	for _, s := range d.steps(answer.EvaluationID) {
		if s.Tool != "" && s.Tool != "submit_verdict" {
			d.say("   judge: %s %s", s.Tool, s.Input)
		}
	}
	d.verdict(answer)
	for _, h := range answer.Hooks {
		if h.Type == gate.PromptHook && h.Failure != nil { // the rest of the story would be another one
			d.fail(exit{exitInternal, fmt.Errorf("the model could not be asked: %w; unset its key in the environment to see the story with a scripted judge", h.Failure)})
		}
	}
	return answer
}

func (d *demo) verdict(a gate.Decision) {
	if d.err != nil {
		return
	}
	word := strings.ToUpper(string(a.Outcome))
	if d.colour {
		word = map[gate.Outcome]string{gate.Allow: "\x1b[32m", gate.Block: "\x1b[31m", gate.Ask: "\x1b[33m"}[a.Outcome] + word + "\x1b[0m"
	}
	d.say("   gate: %s", word)
	for _, m := range a.Messages {
		d.say("   to the conversation, as %s: %s", m.Role, m.Content)
	}
	for _, h := range a.Hooks {
		if h.Failure != nil {
			d.say("   hook %s gave no verdict: %s", h.Name, h.Failure)
		}
	}
}

func (d *demo) evaluate(event map[string]any) gate.Decision {
	event["agent_name"], event["session_id"] = "deployer", "demo"
	body, err := json.Marshal(event)
	if err != nil {
		d.fail(err)
	}
	var answer gate.Decision
	d.decode(d.post(http.MethodPost, "/v1/evaluate", "application/json", body), &answer)
	return answer
}

func (d *demo) transcript(messages ...message) {
	var body bytes.Buffer
	for _, m := range messages {
		d.fail(json.NewEncoder(&body).Encode(m))
	}
	d.post(http.MethodPost, "/v1/sessions/demo/transcript", "application/x-ndjson", body.Bytes())
}

// steps is what the judge did, from the record.
func (d *demo) steps(evaluation string) []gate.Step {
	var record gate.Record
	d.decode(d.post(http.MethodGet, "/v1/evaluations/"+evaluation, "", nil), &record)
	var steps []gate.Step
	for _, h := range record.Hooks {
		if h.Evidence != nil {
			steps = append(steps, h.Evidence.Steps...)
		}
	}
	return steps
}

func (d *demo) records() {
	var list struct{ Value []gate.RecordSummary }
	d.decode(d.post(http.MethodGet, "/v1/evaluations?session=demo", "", nil), &list)
	for _, r := range list.Value {
		d.say("   %s  %-11s %-5s %s", r.Time.Format("15:04:05"), r.Event, r.Decision, strings.SplitN(r.Reason, "\n", 2)[0])
	}
}

// post sends one request unless something failed before.
func (d *demo) post(method, path, contentType string, body []byte) []byte {
	if d.err != nil {
		return nil
	}
	answer, _, err := d.api.do(d.ctx, method, path, contentType, body)
	d.fail(err)
	return answer
}

func (d *demo) decode(body []byte, into any) {
	if d.err == nil {
		d.fail(json.Unmarshal(body, into))
	}
}

func (d *demo) fail(err error) { d.err = errors.Join(d.err, err) }

func (d *demo) next(title string) {
	d.step++
	d.say("\n%d. %s", d.step, title)
}

func (d *demo) say(format string, args ...any) {
	if d.err == nil {
		_, err := fmt.Fprintf(d.out, format+"\n", args...)
		d.fail(err)
	}
}

// useScripted puts a scripted judge where no model is configured.
func (a *app) useScripted() {
	a.models.providers["scripted"] = prompthooks.ModelFunc(scriptedJudge)
	a.models.names = config.Models{Default: "scripted", Tiers: map[string]string{gate.DefaultModel: "scripted/scripted"}}
}

// scriptedJudge plays a model in the demo: it searches the conversation for a
// health check's answer and judges by what the search found.
func scriptedJudge(_ context.Context, req prompthooks.Request) (prompthooks.Response, error) {
	say := func(m prompthooks.Message) (prompthooks.Response, error) {
		m.Role = prompthooks.Assistant
		return prompthooks.Response{Message: m}, nil
	}
	last := req.Messages[len(req.Messages)-1]
	if len(last.Results) == 0 {
		return say(prompthooks.Message{Calls: []prompthooks.Call{{Name: "GrepSearch", Args: json.RawMessage(`{"pattern":"HTTP/1\\.1 200"}`)}}})
	}
	if strings.Contains(last.Results[0].Text, "HTTP/1.1 200 OK") {
		return say(prompthooks.Message{Text: `{"ok":true}`})
	}
	return say(prompthooks.Message{Text: `{"ok":false,"reason":"The answer says the service is healthy, but no tool result shows a health check. Run curl -sI localhost/health and quote its status line."}`})
}
