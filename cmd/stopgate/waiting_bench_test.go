package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// waitingRate is how many Stops come in a second, evenly: all at one instant
	// would measure the client.
	waitingRate = 200
	// waitingStreams are the callers that share a connection, fewer than a server
	// lets one have.
	waitingStreams = 200
)

// BenchmarkWaitingPrompts has thousands of Stops judged at once by a model that
// takes its time, in a server process of its own. Callers and model speak HTTP/2,
// as providers and the proxies before a server do: the process may have fewer open
// files than twenty thousand connections need. The server is told to keep within
// 1,400 MiB, as docs/operate.md advises. "at-model" is how many requests the
// model had open at the same moment, "added-p99-ms" what the gate adds to the
// model's time, "waiting-MiB" what the server had resident when the last had come,
// "server-MiB" the most that it ever had.
func BenchmarkWaitingPrompts(b *testing.B) {
	for _, waiting := range []int{5000, 20000} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) { waitForModel(b, waiting) })
	}
}

func waitForModel(b *testing.B, waiting int) {
	arriving := time.Duration(waiting) * time.Second / waitingRate
	m := &slowModel{think: arriving + 5*time.Second}
	dir := b.TempDir()
	pair, cert, key := newKeyPair(b, dir, "bench")
	model := httptest.NewUnstartedServer(m)
	model.EnableHTTP2, model.TLS = true, &tls.Config{Certificates: []tls.Certificate{pair}} //nolint:gosec // its minimum is the client's
	model.StartTLS()
	defer model.Close()

	callers := waitingCallers(waiting, pair.Leaf)
	addr := "127.0.0.1:" + freePort(b)
	url := "https://" + addr
	file := filepath.Join(dir, "server.yaml")
	limits := fmt.Sprintf("limits:\n  evaluations: %d\nauth:\n  tls: {cert: %q, key: %q}\n", waiting, cert, key)
	if err := os.WriteFile(file, []byte(limits), 0o600); err != nil {
		b.Fatal(err)
	}
	server := startServeAt(b, addr, url, callers[0], []string{"GEMINI_API_KEY=bench", "GOOGLE_GEMINI_BASE_URL=" + model.URL, "SSL_CERT_FILE=" + cert, "GOMEMLIMIT=1400MiB"}, "--config", file)
	spec := fmt.Sprintf(`{"name":"waiting","properties":{"hooks":{"Stop":[{"type":"prompt","prompt":"Is it done?","timeout":%d,"failMode":"block"}]}}}`, 2*int(m.think.Seconds()))
	if err := expectAnswer(callers[0], http.MethodPut, url+agents+"waiting", spec, `"waiting"`); err != nil {
		b.Fatal(err)
	}
	for _, c := range callers { // a connection each: a call would make one of its own else
		if err := expectAnswer(c, http.MethodGet, url+"/healthz", "", ""); err != nil {
			b.Fatal(err)
		}
	}

	for b.Loop() {
		added := make([]time.Duration, waiting)
		var running sync.WaitGroup
		began := time.Now()
		for i := range added {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / waitingRate)))
			running.Go(func() {
				began := time.Now()
				body := fmt.Sprintf(`{"hook_event_name":"Stop","agent_name":"waiting","session_id":"s%d","final_output":"Done."}`, i)
				if err := expectAnswer(callers[i%len(callers)], http.MethodPost, url+"/v1/evaluate", body, `"decision":"allow"`); err != nil {
					b.Error(err)
				}
				added[i] = time.Since(began) - m.think
			})
		}
		time.Sleep(2 * time.Second) // within which the last are at the model
		b.ReportMetric(server.peak(b), "waiting-MiB")
		running.Wait()
		slices.Sort(added)
		b.ReportMetric(float64(added[waiting*99/100].Microseconds())/1000, "added-p99-ms")
		b.ReportMetric(float64(added[waiting/2].Microseconds())/1000, "added-p50-ms")
	}
	b.ReportMetric(float64(m.most.Load()), "at-model")
	b.ReportMetric(server.peak(b), "server-MiB")
}

// slowModel says yes to everything, after a time.
type slowModel struct {
	think      time.Duration
	open, most atomic.Int64
}

func (m *slowModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := m.open.Add(1)
	defer m.open.Add(-1)
	for seen := m.most.Load(); now > seen && !m.most.CompareAndSwap(seen, now); seen = m.most.Load() {
	}
	_, _ = io.Copy(io.Discard, r.Body)
	time.Sleep(m.think)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"candidates":[{"content":{"role":"model","parts":[{"text":"{\"ok\":true}"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":7}}`))
}

// waitingCallers are clients for so many requests at once, each with its own
// connection to whom the certificate belongs.
func waitingCallers(waiting int, trusted *x509.Certificate) []*http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(trusted)
	callers := make([]*http.Client, (waiting+waitingStreams-1)/waitingStreams)
	for i := range callers {
		callers[i] = &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}}
	}
	return callers
}

// expectAnswer makes a request and says what is wrong with its answer, which is to have
// these words in it and is not to be degraded.
func expectAnswer(c *http.Client, method, url, body, words string) error {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 || !strings.Contains(string(answer), words) || strings.Contains(string(answer), `"degraded":true`) {
		return fmt.Errorf("status %d: %s", resp.StatusCode, answer)
	}
	return nil
}
