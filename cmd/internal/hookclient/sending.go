package hookclient

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"stopgate/gate"
	"stopgate/transcripts"
)

const (
	// sentPart is how much of a conversation one request carries: each is kept
	// by itself, so a first send that has no time to end goes on where it was.
	sentPart = 8 << 20
	// sentAge is how long the size of a conversation is remembered.
	sentAge = 30 * 24 * time.Hour
)

// sent is what a server has of a conversation, as it told us: a small file of
// ours, locked while a part is on its way, since hosts run hooks in parallel.
type sent struct {
	file *os.File
	Size int64  `json:"size"`
	Tail string `json:"tail"` // [transcripts.Tail] before Size
}

// openSent locks and reads what is known; the zero size if nothing is. Without a
// directory nothing is remembered, and the whole is sent each time.
func openSent(ctx context.Context, dir, name string) (*sent, error) {
	if dir == "" {
		return &sent{}, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, sentName(name)), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	s := &sent{file: f}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, errors.New("another hook is still sending the conversation")
		case <-time.After(5 * time.Millisecond):
		}
	}
	content, err := io.ReadAll(io.LimitReader(f, 4<<10))
	if err != nil || json.Unmarshal(content, s) != nil || s.Size < 0 {
		s.forget()
	}
	return s, nil
}

// sentName is the file for a conversation of that name.
func sentName(conversation string) string {
	sum := sha256.Sum256([]byte(conversation))
	return hex.EncodeToString(sum[:]) + ".json"
}

// forget has nothing be known: the whole is to be sent.
func (s *sent) forget() { s.Size, s.Tail = 0, "" }

// keep writes what the server has now.
func (s *sent) keep() error {
	if s.file == nil {
		return nil
	}
	content, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := s.file.Truncate(0); err != nil {
		return err
	}
	_, err = s.file.WriteAt(content, 0)
	return err
}

func (s *sent) close() {
	if s.file != nil {
		s.file.Close()
	}
}

// uploadName is the session under which an event's conversation is uploaded: a
// sub-agent's own file is not the session's.
func uploadName(ev *gate.Event) string {
	if ev.Name == gate.SubagentStop && ev.SubAgent != "" {
		return ev.Session + "." + ev.SubAgent
	}
	return ev.Session
}

// sendTranscript brings the server's copy of the event's conversation up to
// date: the new part alone, the whole only once.
func (c *call) sendTranscript(ctx context.Context, client *Client) error {
	path, name := c.event.TranscriptPath, uploadName(&c.event)
	f, size, err := openConversation(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was said yet
	}
	if err != nil {
		return err
	}
	defer f.Close()
	dir := c.dir()
	if dir != "" {
		dir = filepath.Join(dir, "sent")
	}
	known, err := openSent(ctx, dir, client.Base+"\n"+name+"\n"+path)
	if err != nil {
		return err
	}
	defer known.close()
	emptied := known.Size > 0 && size == 0 // what the server has of it is no longer so
	if tail, err := transcripts.Tail(f, known.Size); err != nil || tail != known.Tail {
		known.forget() // shortened, or another file by now
	}
	if known.Size == 0 && dir != "" {
		forgetOld(dir)
	}
	up := upload{client: client, known: known, file: f, part: c.part,
		path: "/v1/sessions/" + url.PathEscape(name) + "/transcript?agent=" + url.QueryEscape(c.event.Agent) + "&format=" + url.QueryEscape(c.event.TranscriptFormat)}
	if emptied {
		_, err := up.send(ctx, 0)
		return err
	}
	return up.sendUpTo(ctx, size)
}

// openConversation opens a host's file, and gives its size.
func openConversation(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a named pipe would wait for its writer
	if err != nil {
		return nil, 0, err
	}
	about, err := f.Stat()
	if err == nil && !about.Mode().IsRegular() {
		err = fmt.Errorf("the conversation %q is no regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, about.Size(), nil
}

// upload is a conversation on its way to a server.
type upload struct {
	client *Client
	known  *sent
	file   *os.File
	path   string // of the request, but for what is sent
	part   int64  // at most so many bytes at once
}

// sendUpTo sends what the server lacks of the first size bytes.
func (u *upload) sendUpTo(ctx context.Context, size int64) error {
	part := u.part
	for again := false; u.known.Size < size; {
		at := u.known.Size
		n, err := u.wholeLines(min(size-at, part))
		if err != nil {
			return err
		}
		status, err := u.send(ctx, n)
		if status == http.StatusConflict && !again && u.known.Size > 0 {
			u.known.forget() // erased there, or sent by another machine
			again = true
			continue
		}
		if err != nil {
			return err
		}
		switch taken := u.known.Size - at; {
		case taken > 0:
			part = u.part
		case at+n == size: // a line that the host has not ended
			return nil
		default: // a line that is longer than a part
			part *= 2
		}
	}
	return nil
}

// wholeLines is how much of the next bytes ends with a line; all of them where none
// does. So a server takes all of a part, or nothing.
func (u *upload) wholeLines(most int64) (int64, error) {
	const step = 64 << 10
	piece := make([]byte, min(most, step))
	for end := most; end > 0; end -= int64(len(piece)) {
		piece = piece[:min(end, step)]
		if _, err := u.file.ReadAt(piece, u.known.Size+end-int64(len(piece))); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(piece, '\n'); i >= 0 {
			return end - int64(len(piece)) + int64(i) + 1, nil
		}
	}
	return most, nil
}

// send sends the next bytes, and keeps how far the server has them: one that redacts
// conversations takes whole lines. Any status but 200 is an error too.
func (u *upload) send(ctx context.Context, n int64) (status int, err error) {
	then, err := transcripts.Tail(u.file, u.known.Size+n)
	if err != nil {
		return 0, err
	}
	at := "&at=" + strconv.FormatInt(u.known.Size, 10) + "&after=" + u.known.Tail + "&then=" + then
	status, answer, err := u.client.Send(ctx, http.MethodPost, u.path+at, "application/x-ndjson", io.NewSectionReader(u.file, u.known.Size, n))
	if err != nil {
		return status, err
	}
	if status != http.StatusOK {
		return status, fmt.Errorf("server at %s does not take the conversation: %w", u.client.Base, Refusal(strconv.Itoa(status), answer))
	}
	var has struct {
		Bytes *int64 `json:"bytes"`
	}
	if json.Unmarshal(answer, &has) != nil || has.Bytes == nil || *has.Bytes < u.known.Size || *has.Bytes > u.known.Size+n {
		return status, fmt.Errorf("server at %s does not say how much of the conversation it has", u.client.Base)
	}
	if u.known.Size += n; u.known.Size != *has.Bytes {
		u.known.Size = *has.Bytes
		if then, err = transcripts.Tail(u.file, u.known.Size); err != nil {
			return status, err
		}
	}
	u.known.Tail = then
	return status, u.known.keep()
}

// forgetOld removes what is known of conversations that have long ended.
func forgetOld(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // there is none yet
	}
	for _, e := range entries {
		if len(e.Name()) != len(sentName("")) {
			continue // not ours
		}
		if about, err := e.Info(); err == nil && time.Since(about.ModTime()) > sentAge {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
