package transcripts

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// errNoAnswer: the file does not hold what the agent answered, or not yet.
var errNoAnswer = errors.New("it does not hold the agent's answer")

// Answer is the text of the last assistant message in a host's session file:
// what an agent answered whose host does not say it (spec/claude-code.md 10).
// Where since is not zero it is the last one before the hook.start record of
// that moment, to the millisecond; only copilot's files have such records.
//
// Hosts write late: it waits, at most within, for the file, the record and the
// message. If they do not come, and for whatever else could not be read, the
// error is a [*gate.Failure] with TranscriptUnreadable, never an empty answer;
// a path that may not be read is a [*gate.Error] with CodeValidation, as in
// [Store.Attach].
func (s *Store) Answer(ctx context.Context, path, format string, since time.Time, within time.Duration) (string, error) {
	const every = 20 * time.Millisecond
	late := time.After(within)
	seen := int64(-1) // size of the file that held no answer
	for {
		text, size, err := s.answerNow(ctx, path, format, since, seen)
		if err == nil {
			return text, nil
		}
		if !errors.Is(err, errNoAnswer) && !errors.Is(err, fs.ErrNotExist) {
			return "", attaching(unreadable(path, err))
		}
		seen = size
		select {
		case <-ctx.Done():
			return "", attaching(unreadable(path, ctx.Err()))
		case <-late:
			return "", attaching(unreadable(path, err))
		case <-time.After(every):
		}
	}
}

// answerNow is the answer as the file has it now, and the file's size. A file
// that has not grown since it was last seen is not read again.
func (s *Store) answerNow(ctx context.Context, path, format string, since time.Time, seen int64) (string, int64, error) {
	f, err := s.openNamed(path)
	if err != nil {
		return "", -1, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", -1, err
	}
	h, err := newHostFile(f, st.Size(), format)
	if err != nil {
		return "", -1, err
	}
	if h.size == seen {
		return "", seen, errNoAnswer
	}
	text, err := h.answerSince(ctx, since)
	return text, h.size, err
}

// answerSince is the answer of the Stop that began then; see [Store.Answer].
func (h *hostFile) answerSince(ctx context.Context, since time.Time) (string, error) {
	if !since.IsZero() {
		c, ok := h.format.(*copilot)
		if !ok {
			return "", errors.New("files of this format do not record when hooks start")
		}
		c.until = since
	}
	if err := h.scan(ctx); err != nil {
		return "", err
	}
	text, err := h.answer(ctx, h.format.chosen())
	if err == nil && text == "" {
		err = errNoAnswer
	}
	return text, err
}

// answer is the text of the last message of the assistant, if it has spoken
// since the user or the host last did; else empty.
func (h *hostFile) answer(ctx context.Context, spans []extent) (string, error) {
	var texts []string // backwards
	message := ""
	for _, sp := range slices.Backward(spans) {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		steps, err := h.steps(sp)
		if errors.Is(err, errNoMessage) {
			continue
		}
		if err != nil {
			return "", err
		}
		for _, s := range slices.Backward(steps) {
			switch {
			case s.kind == hears || s.kind == says && s.role != assistant:
				return inOrder(texts), nil
			case s.kind != says || strings.TrimSpace(s.text) == "":
			case len(texts) == 0:
				texts, message = append(texts, s.text), s.message
			case s.message == "" || s.message != message:
				return inOrder(texts), nil
			default:
				texts = append(texts, s.text)
			}
		}
	}
	return inOrder(texts), nil
}

func inOrder(texts []string) string {
	slices.Reverse(texts)
	return strings.Join(texts, "\n")
}

// sameAnswer reports whether the file's last answer is the payload's. The
// payload may hold only the last part of a message, or the answers of the whole
// turn (gemini-cli): then the end of it, from the start of a line, is the same.
func sameAnswer(file, payload string) bool {
	file, payload = strings.TrimSpace(file), strings.TrimSpace(payload)
	if file == "" {
		return payload == ""
	}
	return file == payload || strings.HasSuffix(payload, "\n"+file) || strings.HasSuffix(file, "\n"+payload)
}
