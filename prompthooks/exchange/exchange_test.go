package exchange

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"stopgate/prompthooks"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", "1.5", 1500 * time.Millisecond},
		{"Retry-After", now.Add(9 * time.Second).Format(http.TimeFormat), 9 * time.Second},
		{"Retry-After", now.Add(-time.Hour).Format(http.TimeFormat), 0},
		{"Retry-After", now.AddDate(9, 0, 0).Format(http.TimeFormat), 24 * time.Hour},
		{"Retry-After-Ms", "250", 250 * time.Millisecond},
		{"Retry-After", "9223372036854775808", 24 * time.Hour},
		{"Retry-After", "1e400", 24 * time.Hour},
		{"Retry-After", "-1e400", 0},
		{"Retry-After", "", 0},
	} {
		if got := retryAfter(http.Header{c.name: {c.value}}, now); got != c.want {
			t.Errorf("%s %s is %s, want %s", c.name, c.value, got, c.want)
		}
	}
}

func TestErrorsInBodies(t *testing.T) {
	for body, want := range map[string]complaint{
		`{"error":{"message":"m","param":"tools","code":"rate_limit_exceeded"}}`: {true, "m", "tools", 429},
		`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`:     {true, "m", "", 503},
		`{"error":{"code":"502","message":"m"}}`:                                 {true, "m", "", 502},
		`{"error":{"code":200,"message":"m"}}`:                                   {true, "m", "", 0},
		`{"error":"m"}`:                                                          {true, "m", "", 0},
		`{"error":""}`:                                                           {true, "an error without a message", "", 0},
		`{"error":[1]}`:                                                          {true, "an error without a message", "", 0},
		`{"detail":"m"}`:                                                         {true, "m", "", 0},
		`{"object":"error","message":"m","code":400}`:                            {true, "m", "", 400},
		`{"object":"chat.completion","error":null}`:                              {},
		`{}`: {},
	} {
		if got := complaintIn([]byte(body)); got != want {
			t.Errorf("%s is %+v, want %+v", body, got, want)
		}
	}
}

// What a server quotes of a request, and so of an agent's words, is no refusal.
func TestQuotedRefusal(t *testing.T) {
	ex := Exchange{Status: 400, said: complaint{made: true, message: "the prompt is too long: " + strings.Repeat("x", 400) + " tools are not supported"}}
	if got := ex.lacks(prompthooks.Tools); got != 0 {
		t.Errorf("lacks %d", got)
	}
}

// An outage passes; a server that lacks tools is asked without them for long.
func TestOutageIsNoRefusal(t *testing.T) {
	for message, want := range map[string]prompthooks.Features{
		"The function host is temporarily unavailable, please retry.": 0,
		"Service unavailable: cloud function timed out":               0,
		"tool runtime is not available":                               0,
		"tools param requires --jinja flag":                           prompthooks.Tools,
		"Unsupported param: tools":                                    prompthooks.Tools,
	} {
		for _, status := range []int{http.StatusInternalServerError, http.StatusNotImplemented} {
			ex := Exchange{Status: status, said: complaint{made: true, message: message}}
			if got := ex.lacks(prompthooks.Tools); got != want {
				t.Errorf("%d %q lacks %d, want %d", status, message, got, want)
			}
		}
	}
}

func TestClip(t *testing.T) {
	for text, want := range map[string]string{"a\n\x1b[31m b\x00": "a [31m b", "0123456789": "01234567…", "€€€€": "€€…", "": ""} {
		if got := Clip(text, 8); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestSecrets(t *testing.T) {
	const secret = "a-long-secret"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"said":"`+r.Header.Get("Authorization")+` short"}`)
	}))
	defer s.Close()
	client := Client(nil)
	get := func(bearer string) string {
		_, ex, err := Do(t.Context(), Peer{Name: "p", Secret: "short"}, 0, func(ctx context.Context) (int, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
			if err != nil {
				return 0, err
			}
			req.Header.Set("Authorization", "Bearer "+bearer)
			resp, err := client.Do(req)
			if err == nil {
				err = resp.Body.Close()
			}
			return 0, err
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(ex.Body)
	}
	if got := get(secret); got != `{"said":"Bearer [key] short"}` {
		t.Errorf("the body is %s", got)
	}
	if got := get("EMPTY"); got != `{"said":"Bearer EMPTY short"}` {
		t.Errorf("a word that is no secret is blotted out: %s", got)
	}
	t.Run("of an SDK's own error and panic", func(t *testing.T) {
		for name, call := range map[string]func(context.Context) (int, error){
			"error": func(context.Context) (int, error) { return 0, errors.New("with " + secret) },
			"panic": func(context.Context) (int, error) { panic("with " + secret) },
		} {
			_, _, err := Do(t.Context(), Peer{Name: "p", Secret: secret}, 0, call)
			if bad, ok := errors.AsType[*prompthooks.Error](err); !ok || bad.Kind != prompthooks.Rejected || !strings.HasSuffix(bad.Message, "with [key]") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
