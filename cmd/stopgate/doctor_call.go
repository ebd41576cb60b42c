package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"stopgate/cmd/internal/hookclient"
	"stopgate/wire"
	"stopgate/wire/install"
)

// runEntry runs a command as hosts do: by a shell, in the project, with the
// payload on standard input. Any exit but 0 is no answer of the gate's.
func (d *doctor) runEntry(p probed, e install.Entry, payload []byte, mark string, wait time.Duration) ([]byte, error) {
	cmd := exec.Command("sh", "-c", e.Command)        //nolint:gosec // the entry that the host runs, which is the point
	cmd.Dir, cmd.Env = d.places.Project, os.Environ() // the host's own is taken to be ours
	if !d.mayHaveKey(orServer(e.Server, serverURL(d.getenv))) {
		cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "STOPGATE_API_KEY=") })
	}
	for _, name := range wire.ProjectVariables(p.host.Name) {
		cmd.Env = append(cmd.Env, name+"="+d.places.Project)
	}
	cmd.Env = append(cmd.Env, p.variables(payload, mark)...)
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
	c.Buffer.Write(p[:min(len(p), hookclient.MaxAnswer-c.Len())])
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
	body, err := io.ReadAll(io.LimitReader(resp.Body, hookclient.MaxAnswer))
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

// shortened is the beginning of what somebody said, for one line.
func shortened(text []byte) string {
	const most = 200
	line := strings.Join(strings.Fields(strings.ToValidUTF8(string(text[:min(len(text), most)]), "�")), " ")
	if len(text) > most {
		line += "…"
	}
	return fmt.Sprintf("%q", line)
}
