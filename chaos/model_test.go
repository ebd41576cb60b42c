package chaos

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// model is a scripted one: it refuses what says "verdict reject".
type model struct {
	url  string
	mood atomic.Int32
}

const (
	fast = iota // answers at once
	slow        // every other answer comes after the judge's time
	dead        // hangs up
	moods
)

var moodNames = [moods]string{"fast", "slow", "dead"}

func startModel(t testing.TB) *model {
	m := &model{}
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch m.mood.Load() {
		case dead:
			panic(http.ErrAbortHandler)
		case slow:
			if asked.Add(1)%2 == 0 {
				select {
				case <-r.Context().Done():
				case <-time.After(1500 * time.Millisecond):
				}
			}
		}
		verdict := `{\"ok\":true}`
		if strings.Contains(string(body), "verdict reject") {
			verdict = `{\"ok\":false,\"reason\":\"not proven\"}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"1","object":"chat.completion","created":1,"model":"scripted","choices":[{"index":0,"finish_reason":"stop",`+
			`"message":{"role":"assistant","content":"%s"}}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`, verdict)
	}))
	t.Cleanup(s.Close)
	m.url = s.URL
	return m
}
