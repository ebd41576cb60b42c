package exchange

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"stopgate/prompthooks"
)

// failure translates what went wrong. The HTTP status decides, not what the
// body says of itself.
func (ex *Exchange) failure(name string, uses prompthooks.Features, err error) *prompthooks.Error {
	if made, ok := errors.AsType[*prompthooks.Error](err); ok {
		return made
	}
	if ex.fault != nil {
		err = ex.fault
	}
	text := err.Error()
	if ex.Status >= 300 {
		text = cmp.Or(ex.said.message, strings.TrimSpace(string(ex.Body)), http.StatusText(ex.Status))
	}
	text = Clip(string(ex.blotted([]byte(text))), 300)
	status := fmt.Sprintf("%s: status %d: %s", name, ex.Status, text)
	switch lacks := ex.lacks(uses); {
	case ex.Status == 0 && !ex.sent:
		return prompthooks.Errorf(prompthooks.Rejected, "%s: the request cannot be made: %s", name, text)
	case ex.Status == 0:
		return prompthooks.Errorf(prompthooks.Unavailable, "%s: the server cannot be reached: %s", name, text)
	case ex.Status == http.StatusTooManyRequests:
		return &prompthooks.Error{Kind: prompthooks.RateLimited, RetryAfter: ex.RetryAfter, Message: status}
	case lacks != 0:
		return &prompthooks.Error{Kind: prompthooks.Unsupported, Lacks: lacks, Message: status}
	case ex.Status >= 500:
		return &prompthooks.Error{Kind: prompthooks.Unavailable, RetryAfter: ex.RetryAfter, Message: status}
	case ex.Status >= 300:
		return &prompthooks.Error{Kind: prompthooks.Rejected, Message: status}
	case ex.broken:
		return prompthooks.Errorf(prompthooks.Unavailable, "%s: the connection broke: %s", name, text)
	}
	return prompthooks.Errorf(prompthooks.Garbled, "%s: the answer cannot be read: %s", name, text)
}

// complaint is an error as a body tells it.
type complaint struct {
	made    bool
	message string
	param   string // the field of the request that it is about
	status  int    // its own status, 400 to 599; 0: none
}

// complaintIn finds the error in a body, in the forms that servers write it in:
// an object or a text under "error", FastAPI's "detail", vLLM's "object":
// "error". Whatever form it has, it is an error; what of it cannot be read is
// zero.
func complaintIn(body []byte) complaint {
	var b struct {
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
		Object json.RawMessage `json:"object"`
	}
	_ = json.Unmarshal(body, &b)
	told := b.Error
	switch {
	case len(told) > 0 && string(told) != "null":
	case string(b.Object) == `"error"`:
		told = body
	case len(b.Detail) > 0:
		told = b.Detail
	default:
		return complaint{}
	}
	var text string
	if json.Unmarshal(told, &text) == nil {
		return complaint{made: true, message: cmp.Or(text, "an error without a message")}
	}
	var fields map[string]any
	_ = json.Unmarshal(told, &fields)
	word := func(name string) string { s, _ := fields[name].(string); return s }
	return complaint{made: true, message: cmp.Or(word("message"), "an error without a message"), param: word("param"),
		status: statusOf(fields["code"], word("code")+" "+word("type"))}
}

// statusOf is the HTTP status that an error inside a success means.
func statusOf(code any, words string) int {
	number, _ := code.(float64)
	if text, ok := code.(string); ok {
		number, _ = strconv.ParseFloat(text, 64) // what is no number is 0
	}
	switch {
	case number >= 400 && number <= 599:
		return int(number)
	case strings.Contains(words, "rate_limit"):
		return http.StatusTooManyRequests
	case strings.Contains(words, "overloaded"), strings.Contains(words, "server_error"), strings.Contains(words, "api_error"):
		return http.StatusServiceUnavailable
	}
	return 0
}

// longest is what a wait too long to be written as a duration is read as.
const longest = 24 * time.Hour

// Seconds is n seconds, at most a day; what is no wait is 0.
func Seconds(n float64) time.Duration {
	switch {
	case !(n > 0):
		return 0
	case n > longest.Seconds():
		return longest
	}
	return time.Duration(n * float64(time.Second))
}

// retryAfter reads the headers: milliseconds, as OpenAI has them too, else
// seconds or a date. What cannot be read, or is past, is 0.
func retryAfter(h http.Header, now time.Time) time.Duration {
	for _, header := range []struct {
		name string
		unit float64 // of a second
	}{{"Retry-After-Ms", 0.001}, {"Retry-After", 1}} {
		n, err := strconv.ParseFloat(h.Get(header.name), 64)
		if err == nil || errors.Is(err, strconv.ErrRange) {
			return Seconds(n * header.unit)
		}
	}
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return min(max(at.Sub(now), 0), longest)
	}
	return 0
}

// Clip makes foreign text safe to show: one line, at most n bytes.
func Clip(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s[:min(len(s), 4*n)])
	if s = strings.Join(strings.Fields(s), " "); len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
