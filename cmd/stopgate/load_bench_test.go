package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	loadRate  = 1000            // requests a second
	loadTurn  = 3 * time.Second // of arrivals, then all answers are waited for
	loadThink = time.Second     // that the model takes
	loadSpec  = `{"name":"load","properties":{"hooks":{
		"PostToolUse":[{"type":"command","matcher":"Bash","command":"case $(cat) in *rm\\ -rf*) echo no >&2; exit 2;; esac; echo '{}'","failMode":"block"}],
		"Stop":[{"type":"prompt","prompt":"Is it done?","timeout":60,"failMode":"block"}]}}}`
)

// BenchmarkLoad sends 1,000 requests of 8 KB a second to a server process, as they
// come and not as they are answered: of a hundred 88 meet no hook, 10 a prompt
// hook whose model takes a second, 2 a script; and in turns as many to a bare Echo
// in this process. A request's time begins when it was due, so that one that could
// not be sent in time counts as late. "own" is the answer's time without the
// model's and without what the answer says of the script's; "echo" is what this
// machine and the generator make of the least server; "lag" is how late requests
// left; "server-cpu" is processor time of the server, scripts not counted, which a
// busy machine changes least.
func BenchmarkLoad(b *testing.B) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(loadThink)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"candidates":[{"content":{"role":"model","parts":[{"text":"{\"ok\":true}"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":7}}`))
	}))
	b.Cleanup(model.Close)
	server := startServe(b, "GEMINI_API_KEY=bench", "GOOGLE_GEMINI_BASE_URL="+model.URL)
	s := &service{t: b, url: "http://" + server.addr}
	if status, answer := s.do(http.MethodPut, agents+"load", "application/json", []byte(loadSpec)); status != http.StatusAccepted {
		b.Fatalf("%d %s", status, answer)
	}
	bare := echo.New()
	bare.POST("/*", echoJSON)
	echoAddr := listen(b, bare)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: loadRate}}
	var gate, plain arrivals
	before := server.cpu(b)
	for b.Loop() {
		gate.turn(b, client, "http://"+server.addr, loadKind)
		plain.turn(b, client, "http://"+echoAddr, func(int) string { return "none" })
	}
	b.ReportMetric(gate.percentile("none", 50), "none-own-p50-ms")
	b.ReportMetric(gate.percentile("none", 99), "none-own-p99-ms")
	b.ReportMetric(gate.percentile("prompt", 99), "prompt-own-p99-ms")
	b.ReportMetric(gate.percentile("script", 99), "script-own-p99-ms")
	b.ReportMetric(plain.percentile("none", 50), "echo-p50-ms")
	b.ReportMetric(plain.percentile("none", 99), "echo-p99-ms")
	b.ReportMetric(gate.percentile("lag", 99), "lag-p99-ms")
	b.ReportMetric(float64((server.cpu(b)-before).Microseconds())/1000/float64(len(gate.took["lag"])), "server-cpu-ms/req")
}

// loadKind is what the n-th request meets.
func loadKind(n int) string {
	switch n % 50 {
	case 7, 17, 27, 37, 47:
		return "prompt"
	case 23:
		return "script"
	}
	return "none"
}

// arrivals are what requests took, by their kind.
type arrivals struct {
	mu   sync.Mutex
	took map[string][]time.Duration
}

func (a *arrivals) add(kind string, d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.took == nil {
		a.took = map[string][]time.Duration{}
	}
	a.took[kind] = append(a.took[kind], d)
}

// percentile is in milliseconds.
func (a *arrivals) percentile(kind string, n int) float64 {
	all := a.took[kind]
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return float64(all[(len(all)-1)*n/100].Microseconds()) / 1000
}

// turn sends a turn's requests, each when it is due, and waits for the answers.
func (a *arrivals) turn(b *testing.B, client *http.Client, url string, kindOf func(int) string) {
	var running sync.WaitGroup
	began := time.Now()
	for n := range int(loadTurn.Seconds() * loadRate) {
		due := began.Add(time.Duration(n) * time.Second / loadRate)
		time.Sleep(time.Until(due))
		running.Go(func() {
			a.add("lag", time.Since(due))
			kind := kindOf(n)
			hooks, err := askLoad(client, url, loadBody(kind, n))
			took := time.Since(due)
			if err != nil {
				b.Errorf("%s: %v", kind, err)
			}
			if kind == "prompt" {
				took -= loadThink
			} else {
				took -= hooks
			}
			a.add(kind, took)
		})
	}
	running.Wait()
}

// loadBody is an event of 8 KB of one of 500 sessions.
func loadBody(kind string, n int) string {
	head := fmt.Sprintf(`{"agent_name":"load","session_id":"load-%d","current_turn":7,"max_turns":50,`, n%500)
	switch kind {
	case "prompt":
		head += `"hook_event_name":"Stop","final_output":"`
	case "script":
		head += `"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"make"},"tool_succeeded":true,"tool_result":"`
	default:
		head += `"hook_event_name":"PostToolUse","tool_name":"ReadFile","tool_input":{"path":"src/main.go"},"tool_succeeded":true,"tool_result":"`
	}
	words := strings.Repeat("func main runs the server and waits for it to end, line by line. ", 8<<10/64+1)
	return head + words[:8<<10-len(head)-2] + `"}`
}

// askLoad sends one event and says how long its hooks have taken, by the answer.
func askLoad(client *http.Client, url, body string) (hooks time.Duration, err error) {
	resp, err := client.Post(url+"/v1/evaluate", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	var d struct {
		Decision string `json:"decision"`
		Degraded bool   `json:"degraded"`
		Hooks    []struct {
			DurationMS int64 `json:"duration_ms"`
		} `json:"hooks"`
	}
	if json.Unmarshal(text, &d) != nil || resp.StatusCode != http.StatusOK || d.Degraded || d.Decision != "" && d.Decision != "allow" { // the echo has none
		return 0, fmt.Errorf("%s: %.300s", resp.Status, text)
	}
	for _, h := range d.Hooks {
		hooks += time.Duration(h.DurationMS) * time.Millisecond
	}
	return hooks, nil
}
