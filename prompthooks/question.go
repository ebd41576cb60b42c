package prompthooks

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"

	"stopgate/gate"
)

// key is everything that a verdict depends on but the conversation: two inputs
// with one key, about the same conversation, are the same question.
type key [sha256.Size]byte

// whole is a key and the sum of the conversation.
type whole struct {
	key          key
	conversation [sha256.Size]byte
}

// keyOf is the key of an input; false: it cannot be compared. The conversation's
// path is another one for each event, and no part of the question.
func keyOf(in gate.Input) (k key, ok bool) {
	h := *in.Hook
	said, err := withoutPaths(in.Context)
	if err != nil {
		return k, false
	}
	question, err := json.Marshal([]any{h.Event, h.Prompt, h.Model, h.Models, h.Votes, h.Threshold, h.EvidenceRequired, h.Timeout, said, in.Transcript != nil})
	return sha256.Sum256(question), err == nil
}

// withoutPaths is a context without the names of the conversation's files.
func withoutPaths(context []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(context, &fields); err != nil {
		return nil, err
	}
	delete(fields, "execution_summary")
	delete(fields, "transcript_path")
	delete(fields, "agent_transcript_path")
	return json.Marshal(fields)
}

// conversation is what a question is about. It is read, which may be 64 MiB,
// when its sum is first wanted: mostly nobody else asks the same, and never.
type conversation struct {
	mu   sync.Mutex
	read func() (sum [sha256.Size]byte, ok bool) // nil: it was, or may not be any more
	sum  [sha256.Size]byte
	ok   bool
}

// conversationOf is an input's, to be read until its end.
func conversationOf(ctx context.Context, in gate.Input) *conversation {
	if in.Transcript == nil {
		return &conversation{ok: true}
	}
	return &conversation{read: func() ([sha256.Size]byte, bool) { return in.Transcript.Fingerprint(ctx) }}
}

// fingerprint is the sum; false: the conversation is too long, or cannot be read,
// to be compared.
func (c *conversation) fingerprint() ([sha256.Size]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read != nil {
		c.sum, c.ok = c.read()
		c.read = nil
	}
	return c.sum, c.ok
}

// end has nobody read it any more: it is its asker's, who is about to return.
func (c *conversation) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = nil
}

// same reports whether both are known to say the same.
func (c *conversation) same(other *conversation) bool {
	a, known := c.fingerprint()
	b, too := other.fingerprint()
	return known && too && a == b
}
