package hookclient

import (
	"context"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"stopgate/internal/loopback"
	"stopgate/internal/scratch"
	"stopgate/transcripts"
	"stopgate/wire"
)

// askServer has a server decide.
func (c *call) askServer(ctx context.Context) ([]byte, error) {
	if err := CheckServer(c.Server); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithDeadline(ctx, c.began.Add(seconds(c.Deadline)+frozenWait))
	defer cancel()
	query := url.Values{"agent": {c.event.Agent}}
	for name, value := range map[string]string{"event": c.options.Event, "session": c.options.Session, "tool": c.options.Tool, "cwd": c.options.Cwd,
		"project": c.options.Project} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if c.Unattended {
		query.Set("unattended", "true")
	}
	client := NewClient(c.Server, c.Getenv("STOPGATE_API_KEY"))
	if c.event.TranscriptFormat != "" && c.event.Session != "" && c.sends(client.Key != "") {
		query.Set("transcript", uploadName(&c.event))
		if err := c.sendInTime(ctx, client); err != nil {
			c.failed(err, "")
			query.Set("stale", "true")
		}
	}
	left := seconds(c.Deadline) - time.Since(c.began)
	query.Set("deadline", strconv.FormatFloat(max(left.Seconds(), 0.1), 'f', 3, 64))
	return client.Decide(ctx, "/v1/hooks/"+c.Protocol+"?"+query.Encode(), c.payload)
}

// sends reports whether the conversation is to be sent: a server on this machine
// reads it where it lies, unless it keeps its callers apart.
func (c *call) sends(keyed bool) bool {
	if c.Transcript != "auto" {
		return c.Transcript == "send"
	}
	if keyed { // a key that is limited to some agents reads no file there
		return true
	}
	u, err := url.Parse(c.Server)
	if err != nil {
		return false // the request will say what is wrong
	}
	return !loopback.Host(u.Hostname())
}

// sendInTime sends the conversation's new part. It may take half of the time
// there is: what is not sent by then is, at the next event.
func (c *call) sendInTime(ctx context.Context, client *Client) error {
	ctx, cancel := context.WithDeadline(ctx, c.began.Add(seconds(c.Deadline)/2))
	defer cancel()
	if err := c.awaitAnswer(ctx); err != nil {
		return err
	}
	return c.sendTranscript(ctx, client)
}

// awaitAnswer waits until the conversation holds the answer that the payload
// lacks: a host that does not say it writes it late (spec/claude-code.md 10).
func (c *call) awaitAnswer(ctx context.Context) error {
	sought, missing := wire.AnswerSought(c.event)
	if !missing || sought.Within == 0 {
		return nil
	}
	dir, err := scratch.Make("")
	if err != nil {
		return err
	}
	defer dir.Remove()
	store, err := transcripts.Open(transcripts.Options{Dir: dir.Path(), Roots: []string{filepath.Dir(sought.Path)}})
	if err != nil {
		return err
	}
	defer store.Close()
	_, err = store.Answer(ctx, sought.Path, c.event.TranscriptFormat, sought.Since, sought.Within)
	return err
}
