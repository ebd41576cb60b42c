package transcripts

import (
	"fmt"
	"strings"
	"testing"

	"stopgate/gate"
)

// outlined uploads messages as NDJSON and gives the view's outline.
func outlined(t *testing.T, ndjson string, limit int) (string, bool) {
	t.Helper()
	s := openStore(t, Options{})
	if _, err := s.Replace(t.Context(), "s", "application/x-ndjson", strings.NewReader(ndjson)); err != nil {
		t.Fatal(err)
	}
	v, err := s.Attach(t.Context(), &gate.Event{Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	text, whole, err := v.Outline(t.Context(), limit)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > limit {
		t.Errorf("outline of %d bytes, want at most %d", len(text), limit)
	}
	return text, whole
}

func says1(role, text string) string {
	return fmt.Sprintf("{\"role\":%q,\"content\":%q}\n", role, text)
}

func calls1(id, name, args string) string {
	return fmt.Sprintf("{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":%q,\"name\":%q,\"arguments\":%s}]}\n", id, name, args)
}

func result1(id, text string) string {
	return fmt.Sprintf("{\"role\":\"tool\",\"tool_call_id\":%q,\"content\":%q}\n", id, text)
}

func TestOutlineOfAShortConversationIsAllOfIt(t *testing.T) {
	text, whole := outlined(t, says1("user", "Restart web.")+says1("assistant", "Done."), 16<<10)
	want := "1\t=== user ===\n2\tRestart web.\n3\t=== assistant ===\n4\tDone.\n"
	if !whole || text != want {
		t.Errorf("whole %v:\n%s", whole, text)
	}
}

func TestOutlineIsAMap(t *testing.T) {
	long := strings.Repeat("line of a long result\n", 2000)
	talk := says1("user", "Book the flight HAT001.\nOnly if it costs less than 200.") +
		calls1("c1", "search", `{"flight":"HAT001","note":"`+strings.Repeat("n", 100)+`"}`) + result1("c1", long) +
		says1("assistant", "It is booked.")
	text, whole := outlined(t, talk, 16<<10)
	want := "1\tuser: Book the flight HAT001.\n\tOnly if it costs less than 200.\n" +
		"4\tassistant calls search (c1): {\n\t  \"flight\": \"HAT001\"\n\t  \"note\": \"" + strings.Repeat("n", 100) + "\"\n\t}\n" +
		"9\ttool (c1): 2000 lines\n" +
		"2010\tassistant: It is booked.\n"
	if whole || text != want {
		t.Errorf("whole %v:\n%s\nwant\n%s", whole, text, want)
	}
}

// A conversation of thousands of messages still fits, its ends above all, and
// every word of the user that fits.
func TestOutlineOfALongConversationFits(t *testing.T) {
	var talk strings.Builder
	talk.WriteString(says1("user", "The first request."))
	for i := range 3000 {
		talk.WriteString(calls1(fmt.Sprint("c", i), "Bash", `{"command":"make test `+strings.Repeat("x", 50)+`"}`))
		talk.WriteString(result1(fmt.Sprint("c", i), strings.Repeat("ok\n", 20)))
		if i%500 == 499 {
			talk.WriteString(says1("user", fmt.Sprintf("Go on, part %d.", i)))
		}
	}
	talk.WriteString(says1("user", "The last request."))
	talk.WriteString(says1("assistant", "All done."))
	text, whole := outlined(t, talk.String(), 16<<10)
	for _, want := range []string{"The first request.", "Go on, part 1499.", "The last request.", "500 calls: Bash ×500"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the map:\n%s", want, text)
		}
	}
	if whole {
		t.Error("said to be whole")
	}
	if text, _ = outlined(t, talk.String(), 300); !strings.Contains(text, "The first request.") || !strings.Contains(text, "left out") {
		t.Errorf("in 300 bytes:\n%s", text)
	}
}

func TestOutlineNamesFailures(t *testing.T) {
	v := &view{text: strings.NewReader(""), store: openStore(t, Options{})}
	body := strings.Repeat("=== assistant calls Bash (a) ===\n{}\n=== tool Bash (a) ===\n"+strings.Repeat("fine\n", 300), 40) +
		"=== tool Bash (b) failed ===\nExit code 3\n" + strings.Repeat("x\n", 9000)
	v.text, v.size = strings.NewReader(body), int64(len(body))
	text, _, err := v.Outline(t.Context(), 2000)
	if err != nil || !strings.Contains(text, "tool Bash (b) failed: Exit code 3") {
		t.Errorf("%v:\n%s", err, text)
	}
}

func TestOutlineOfLongPlainTextIsNone(t *testing.T) {
	s := openStore(t, Options{})
	if _, err := s.Replace(t.Context(), "s", "text/plain", strings.NewReader(strings.Repeat("words\n", 10_000))); err != nil {
		t.Fatal(err)
	}
	v, err := s.Attach(t.Context(), &gate.Event{Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if text, whole, err := v.Outline(t.Context(), 16<<10); text != "" || whole || err != nil {
		t.Errorf("%v %v:\n%s", whole, err, text)
	}
}

// What is in a result can be found field by field.
func TestResultsAreSpread(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"an object":       {`{"id":"HAT001","price":{"total":181}}`, "{\n \"id\": \"HAT001\",\n \"price\": {\n  \"total\": 181\n }\n}"},
		"an array":        {` [1,2] `, "[\n 1,\n 2\n]"},
		"no JSON":         {`{"id":`, `{"id":`},
		"text":            {"fine {", "fine {"},
		"nested too deep": {strings.Repeat("[", 40) + strings.Repeat("]", 40), strings.Repeat("[", 40) + strings.Repeat("]", 40)},
		"too long":        {"[" + strings.Repeat("1,", 200_000) + "1]", "[" + strings.Repeat("1,", 200_000) + "1]"},
	} {
		if got := spread(c.text); got != c.want {
			t.Errorf("%s: %.200q, want %.200q", name, got, c.want)
		}
	}
	text, _ := outlined(t, says1("user", "?")+calls1("c", "get", `{}`)+result1("c", `{"status":"cancelled","seats":2}`), 16<<10)
	if !strings.Contains(text, "\t \"status\": \"cancelled\",\n") {
		t.Errorf("%s", text)
	}
}
