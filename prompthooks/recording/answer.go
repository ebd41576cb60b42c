package recording

import (
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"stopgate/gate"
	"stopgate/prompthooks"
	"stopgate/prompthooks/exchange"
)

// answer is one file: what a model said to one request, or why it said nothing.
type answer struct {
	Take    string `json:"take"`
	Request string `json:"request"` // digest of everything that was sent
	Model   string `json:"model"`

	Text   exact              `json:"text,omitempty"`
	Calls  []call             `json:"calls,omitempty"`
	Native exact              `json:"native,omitempty"`
	Finish prompthooks.Finish `json:"finish,omitempty"`
	Detail exact              `json:"detail,omitempty"`
	Usage  gate.Usage         `json:"usage"`

	// At most one of them is set.
	Error *prompthooks.Error `json:"error,omitempty"`
	Ended ending             `json:"ended,omitempty"`
	Other string             `json:"other_error,omitempty"`
}

type call struct {
	ID   exact `json:"id,omitempty"`
	Name exact `json:"name"`
	Args exact `json:"args,omitempty"`
}

// ending says that the judge did not wait for an answer.
type ending string

const (
	deadline  ending = "deadline"  // its hook's time was over
	cancelled ending = "cancelled" // nobody wanted it any more
)

// keep is what is recorded of a response, secrets blotted out.
func (r *Recording) keep(response prompthooks.Response, err error) answer {
	m := response.Message
	a := answer{Text: r.blot(m.Text), Native: r.blot(string(m.Native)), Finish: response.Finish,
		Detail: r.blot(response.Detail), Usage: response.Usage}
	for _, c := range m.Calls {
		a.Calls = append(a.Calls, call{r.blot(c.ID), r.blot(c.Name), r.blot(string(c.Args))})
	}
	bad, ok := errors.AsType[*prompthooks.Error](err)
	switch {
	case ok:
		said := *bad
		said.Message = string(r.blot(said.Message))
		a.Error = &said
	case errors.Is(err, context.DeadlineExceeded):
		a.Ended = deadline
	case errors.Is(err, context.Canceled):
		a.Ended = cancelled
	case err != nil:
		a.Other = string(r.blot(err.Error()))
	}
	return a
}

func (r *Recording) blot(text string) exact {
	return exact(exchange.Blot([]byte(text), r.secrets))
}

// response is what the judge gets, recorded or replayed.
func (a answer) response() prompthooks.Response {
	m := prompthooks.Message{Role: prompthooks.Assistant, Text: string(a.Text), Native: raw(a.Native)}
	for _, c := range a.Calls {
		m.Calls = append(m.Calls, prompthooks.Call{ID: string(c.ID), Name: string(c.Name), Args: raw(c.Args)})
	}
	return prompthooks.Response{Message: m, Finish: a.Finish, Detail: string(a.Detail), Usage: a.Usage}
}

func raw(text exact) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// exact is a text that keeps its bytes through JSON, also where they are no
// UTF-8, as hostile servers send them.
type exact string

type bytesOf struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON writes a string, or an object with base64 where a string would
// lose bytes.
func (e exact) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(e)) {
		return json.Marshal(string(e))
	}
	return json.Marshal(bytesOf{[]byte(e)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *exact) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var bytes bytesOf
		err := json.Unmarshal(b, &bytes)
		*e = exact(bytes.Base64)
		return err
	}
	return json.Unmarshal(b, (*string)(e))
}
