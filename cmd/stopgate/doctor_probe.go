package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"stopgate/gate"
	"stopgate/wire"
	"stopgate/wire/contracts"
	"stopgate/wire/install"
)

// probeWait is the longest that the doctor waits for an answer. A gate asks no
// hook for a probe, so that it answers at once.
const probeWait = 30 * time.Second

// probe sends a must-block probe through every Stop entry of a host, and one
// through an entry for tools if the agent has hooks there (fault agents-01).
func (d *doctor) probe(pt patient) {
	toolProbed := false
	for _, e := range pt.entries {
		event, ok := pt.host.Contract.Find(e.Event)
		if !ok || e.HTTP() && !event.HTTP {
			continue // said already: the host does not run it
		}
		agent := d.agent(e)
		switch {
		case event.Name == gate.Stop && !(agent.known && len(agent.hooks) > 0 && len(agent.on(gate.Stop)) == 0):
			d.probeEntry(pt.host, e, event, "")
		case !toolProbed && (event.Name == gate.PreToolUse || event.Name == gate.PostToolUse):
			if tool := matchedTool(pt.host, agent.on(event.Name)); tool != "" {
				d.probeEntry(pt.host, e, event, tool)
				toolProbed = true
			}
		}
	}
}

// agent is what is known of the agent that an entry asks.
func (d *doctor) agent(e install.Entry) *gatedAgent {
	if e.Local {
		return &gatedAgent{}
	}
	return d.agentOf(orServer(e.Server, serverURL(d.getenv)), e.Agent)
}

// matchedTool is a tool of the host's that one of the hooks is about.
func matchedTool(host install.Host, hooks []gate.Hook) string {
	for _, tool := range wire.KnownTools(host.Name) {
		if slices.ContainsFunc(hooks, func(h gate.Hook) bool { return h.Matcher.Match(tool) }) {
			return tool
		}
	}
	return ""
}

// runnable reports whether an entry's command may be run: of a project, whose
// files anybody may have written, only one call of a stopgate of the user's.
func (d *doctor) runnable(e install.Entry) bool {
	if e.Scope != install.Project || d.trusting {
		return true
	}
	program, err := exec.LookPath(e.Program)
	if err != nil {
		return e.Plain && filepath.Base(e.Program) == "stopgate" // it runs nothing, and the host's shell says so too
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return false
	}
	self, err := os.Executable()
	known := filepath.Base(e.Program) == "stopgate" || err == nil && sameFile(program, self)
	return e.Plain && known && filepath.IsAbs(program) && !inside(d.places.Project, program)
}

// probeEntry plays the host for one entry and one event.
func (d *doctor) probeEntry(host install.Host, e install.Entry, event contracts.Event, tool string) {
	place := fmt.Sprintf("%s:%d", e.File, e.Line)
	if !e.HTTP() && !d.runnable(e) {
		d.say(host.Name, gate.SeverityError, place, "not probed: the project's command does more than call a stopgate outside the project: "+shortened([]byte(e.Command)),
			"read it; if you trust it: stopgate doctor "+host.Name+" --trust-project")
		return
	}
	mark := "probe-" + strings.ToLower(rand.Text())
	payload := probePayload(host.Name, event, d.places.Project, tool, mark)
	wait := probeWait
	if e.Timeout > 0 {
		wait = min(wait, e.Timeout)
	}
	ctx, cancel := context.WithTimeout(d.ctx, wait)
	defer cancel()
	var answer []byte
	var err error
	if e.HTTP() {
		answer, err = d.call(ctx, host, e, payload)
	} else {
		answer, err = d.runEntry(host, e, payload, wait)
	}
	if err == nil {
		if err = install.Blocks(event, answer, mark); err != nil && len(answer) > 0 {
			err = fmt.Errorf("%w: %s", err, shortened(answer))
		}
	}
	if err != nil {
		d.say(host.Name, gate.SeverityError, place, fmt.Sprintf("a probe on %s is not blocked: %v", e.Event, err),
			"mend what the other findings name, or run stopgate init "+host.Name+" again")
		return
	}
	d.say(host.Name, severityOK, place, fmt.Sprintf("a probe on %s is blocked, as the host would take it", e.Event), "")
}

// runEntry runs a command as hosts do: by a shell, in the project, with the
// payload on standard input. Any exit but 0 is no answer of the gate's.
func (d *doctor) runEntry(host install.Host, e install.Entry, payload []byte, wait time.Duration) ([]byte, error) {
	cmd := exec.Command("sh", "-c", e.Command)        //nolint:gosec // the entry that the host runs, which is the point
	cmd.Dir, cmd.Env = d.places.Project, os.Environ() // the host's own is taken to be ours
	if !d.mayHaveKey(orServer(e.Server, serverURL(d.getenv))) {
		cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "STOPGATE_API_KEY=") })
	}
	for _, name := range host.ProjectVariables {
		cmd.Env = append(cmd.Env, name+"="+d.places.Project)
	}
	out, err := d.runCommand(cmd, payload, wait)
	if err != nil {
		return nil, fmt.Errorf("the command fails: %w: %s", err, shortened(append(out.stderr, out.stdout...)))
	}
	return out.stdout, nil
}

// output is what a command said, as much of it as is kept.
type output struct{ stdout, stderr []byte }

// runCommand runs a command with its whole process group, which does not
// outlive the wait.
func (d *doctor) runCommand(cmd *exec.Cmd, stdin []byte, wait time.Duration) (output, error) {
	var stdout, stderr capped
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // a grandchild may hold the pipes open
	if err := cmd.Start(); err != nil {
		return output{}, err
	}
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the group may have ended by itself
	ctx, cancel := context.WithTimeout(d.ctx, wait)
	defer cancel()
	stop := context.AfterFunc(ctx, kill)
	err := cmd.Wait()
	kill() // what it left behind in the background
	if !stop() {
		err = fmt.Errorf("no answer within %s", wait)
	}
	return output{stdout.Bytes(), stderr.Bytes()}, err
}

// capped keeps the first megabyte and swallows the rest, so that the command
// goes on as it would.
type capped struct{ bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	c.Buffer.Write(p[:min(len(p), maxAnswer-c.Len())])
	return len(p), nil
}

// call sends the payload to an http entry's URL as the host does: by the proxy
// that its environment names, also to this machine itself (fault http-02),
// without following redirects.
func (d *doctor) call(ctx context.Context, host install.Host, e install.Entry, payload []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(payload))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	proxy, err := d.proxyFor(req.URL)
	if err != nil {
		return nil, err
	}
	client := http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := post(&client, host, req)
	if err != nil && proxy != nil {
		err = fmt.Errorf("%w (by the proxy %s that the environment names: set NO_PROXY=%s where the host is started)", err, proxy.Host, req.URL.Hostname())
	}
	return answer, err
}

func post(client *http.Client, host install.Host, req *http.Request) ([]byte, error) {
	resp, err := client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, fmt.Errorf("%s does not answer: %w", req.URL, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK { // hosts take any other for "go on" (EFFECTS §3.8)
		return nil, fmt.Errorf("%s answers %s: %s", req.URL, resp.Status, shortened(body))
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media != "application/json" && host.Name == "qwen-code" {
		return nil, fmt.Errorf("the answer's content type is %q, and Qwen Code reads application/json only", media)
	}
	return body, nil
}

// proxyFor is the proxy that a host would use for a URL: by the variables of
// its environment, without the exception for this machine that Go makes.
func (d *doctor) proxyFor(u *url.URL) (*url.URL, error) {
	variable := strings.ToLower(u.Scheme) + "_proxy"
	proxy := cmp.Or(d.getenv(variable), d.getenv(strings.ToUpper(variable)))
	if proxy == "" || exempt(u, cmp.Or(d.getenv("no_proxy"), d.getenv("NO_PROXY"))) {
		return nil, nil
	}
	if !strings.Contains(proxy, "://") {
		proxy = "http://" + proxy
	}
	parsed, err := url.Parse(proxy)
	if err != nil {
		return nil, fmt.Errorf("%s is not the URL of a proxy", variable)
	}
	return parsed, nil
}

// exempt reports whether NO_PROXY names a URL's host: by name, by the end of
// its name, by address or by network.
func exempt(u *url.URL, list string) bool {
	host := strings.ToLower(u.Hostname())
	for _, item := range strings.FieldsFunc(strings.ToLower(list), func(r rune) bool { return r == ',' || r == ' ' }) {
		if name, port, found := strings.Cut(item, ":"); found && port == u.Port() {
			item = name
		}
		domain := strings.TrimPrefix(strings.TrimPrefix(item, "*"), ".")
		if item == "*" || item == host || domain != "" && strings.HasSuffix(host, "."+domain) {
			return true
		}
		if network, err := netip.ParsePrefix(item); err == nil {
			if addr, err := netip.ParseAddr(host); err == nil && network.Contains(addr) {
				return true
			}
		}
	}
	return false
}

// probePayload is the host's own payload of an event (captured: spec
// claude-code.md 7), with the mark that tells the gate what it is. It names no
// transcript, since there is none.
func probePayload(host string, event contracts.Event, project, tool, mark string) []byte {
	now := time.Now()
	input := map[string]any{"command": "true", "description": "stopgate doctor"}
	m := map[string]any{"session_id": mark, "transcript_path": "", "cwd": project, "hook_event_name": event.Host, "stopgate_probe": mark}
	if host == "copilot" && strings.ToLower(event.Host[:1]) == event.Host[:1] {
		m = map[string]any{"sessionId": mark, "timestamp": now.UnixMilli(), "cwd": project, "transcriptPath": "", "stopgate_probe": mark}
	}
	camel := m["sessionId"] != nil
	set := func(members map[string]any) {
		for k, v := range members {
			m[k] = v
		}
	}
	if host == "gemini-cli" || host == "qwen-code" || host == "copilot" && !camel {
		m["timestamp"] = now.UTC().Format(time.RFC3339Nano)
	}
	if host == "claude-code" || host == "codex" || host == "qwen-code" {
		set(map[string]any{"permission_mode": "default", "prompt_id": mark})
	}
	const text = "This is a probe of stopgate doctor."
	switch {
	case tool != "" && camel:
		set(map[string]any{"toolName": tool, "toolArgs": input})
		if event.Name == gate.PostToolUse {
			m["toolResult"] = map[string]any{"resultType": "success", "textResultForLlm": text}
		}
	case tool != "":
		set(map[string]any{"tool_name": tool, "tool_input": input, "tool_use_id": mark})
		if event.Name == gate.PostToolUse {
			m["tool_response"] = text
		}
	case host == "copilot" && camel:
		set(map[string]any{"stopReason": "end_turn", "stop_hook_active": false})
	case host == "copilot":
		set(map[string]any{"stop_reason": "end_turn", "stop_hook_active": false})
	case host == "gemini-cli":
		set(map[string]any{"prompt": text, "prompt_response": text, "stop_hook_active": false})
	default:
		set(map[string]any{"last_assistant_message": text, "stop_hook_active": false})
	}
	payload, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings, numbers and booleans
	}
	return payload
}

// shortened is the beginning of what somebody said, for one line.
func shortened(text []byte) string {
	const most = 200
	line := strings.Join(strings.Fields(strings.ToValidUTF8(string(text[:min(len(text), most)]), "�")), " ")
	if len(text) > most {
		line += "…"
	}
	return fmt.Sprintf("%q", line)
}
