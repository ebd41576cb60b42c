package main

import (
	"cmp"
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

	"stopgate/config"
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
		s.Size, s.Tail = 0, ""
	}
	return s, nil
}

// sentName is the file for a conversation of that name.
func sentName(conversation string) string {
	sum := sha256.Sum256([]byte(conversation))
	return hex.EncodeToString(sum[:]) + ".json"
}

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
func (h *hookCall) sendTranscript(ctx context.Context, client *hookClient) error {
	path, name := h.event.TranscriptPath, uploadName(&h.event)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a named pipe would wait for its writer
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was said yet
	}
	if err != nil {
		return err
	}
	defer f.Close()
	about, err := f.Stat()
	if err != nil {
		return err
	}
	if !about.Mode().IsRegular() {
		return fmt.Errorf("the conversation %q is no regular file", path)
	}
	dir := cmp.Or(h.Data, config.DefaultData(h.getenv))
	if dir != "" {
		dir = filepath.Join(dir, "sent")
	}
	known, err := openSent(ctx, dir, client.base+"\n"+name+"\n"+path)
	if err != nil {
		return err
	}
	defer known.close()
	had := known.Size > 0
	if tail, err := transcripts.Tail(f, known.Size); err != nil || tail != known.Tail {
		known.Size, known.Tail = 0, "" // shortened, or another file by now
	}
	if known.Size == 0 && dir != "" {
		forgetOld(dir)
	}
	part := "/v1/sessions/" + url.PathEscape(name) + "/transcript?agent=" + url.QueryEscape(h.event.Agent) +
		"&format=" + url.QueryEscape(h.event.TranscriptFormat) + "&at="
	emptied := had && about.Size() == 0 // what the server has of it is no longer so
	for again := false; known.Size < about.Size() || emptied; {
		emptied = false
		size := min(about.Size()-known.Size, h.part)
		status, answer, err := client.send(ctx, http.MethodPost, part+strconv.FormatInt(known.Size, 10)+"&after="+known.Tail, "application/x-ndjson",
			io.NewSectionReader(f, known.Size, size))
		switch {
		case err != nil:
			return err
		case status == http.StatusConflict && !again && known.Size > 0:
			known.Size, known.Tail, again = 0, "", true // erased there, or sent by another machine
			continue
		case status != http.StatusOK:
			return fmt.Errorf("server at %s does not take the conversation: %w", client.base, refusal(strconv.Itoa(status), answer))
		}
		known.Size += size
		if known.Tail, err = transcripts.Tail(f, known.Size); err != nil {
			return err
		}
		if err := known.keep(); err != nil {
			return err
		}
	}
	return nil
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
