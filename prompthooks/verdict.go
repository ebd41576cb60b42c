package prompthooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"stopgate/gate"
)

// maxAnswerBytes bounds the text that is searched for a verdict. A verdict
// with a long reason is a few kilobytes.
const maxAnswerBytes = 256 << 10

// maxObjects bounds how many objects one answer may hold: beyond it the answer
// is a dump, not a verdict.
const maxObjects = 64

// ReadVerdict finds the verdict in the text of a model's answer
// (spec/azure.md 31, 32): one JSON object, with fences or prose round it. If
// there are several that state a decision they must agree, and the last one
// that gives a reason counts. An error says why the text is not a verdict:
//
//   - nothing but prose or a bare value, or an object that states no decision;
//   - an object that is broken, cut off, contradicts itself or another one;
//   - an object inside an array, or inside something that is not JSON.
//
// It leans to "not a verdict": what is wrongly refused is asked again, what is
// wrongly taken is a wrong verdict.
func ReadVerdict(event gate.EventName, text string) (gate.Verdict, error) {
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "\ufeff"))
	switch {
	case text == "":
		return gate.Verdict{}, errors.New("the answer is empty")
	case len(text) > maxAnswerBytes:
		return gate.Verdict{}, fmt.Errorf("the answer is %d bytes long, more than %d", len(text), maxAnswerBytes)
	}
	objects, err := objectsIn(text)
	if err != nil {
		return gate.Verdict{}, err
	}
	return agreed(event, objects)
}

// agreed is the verdict that all objects which state one agree on.
func agreed(event gate.EventName, objects []json.RawMessage) (gate.Verdict, error) {
	var found *gate.Verdict
	for _, o := range objects {
		v, err := readDecision(event, o)
		switch {
		case errors.Is(err, errNoDecision):
			continue
		case err != nil:
			return gate.Verdict{}, err
		case found != nil && found.Outcome != v.Outcome:
			return gate.Verdict{}, fmt.Errorf("the answer holds verdicts that disagree: %s and %s", found.Outcome, v.Outcome)
		case found == nil || strings.TrimSpace(v.Reason) != "":
			found = &v
		}
	}
	if found == nil {
		return gate.Verdict{}, errNoDecision
	}
	return *found, nil
}

var errNoDecision = errors.New(`the answer states no decision: no JSON object with "ok" or "decision" in it`)

// readDecision reads one object. One without any of the keys that decide, as
// prose may quote it, is errNoDecision; one that has them and cannot be read
// is an error of its own.
func readDecision(event gate.EventName, object []byte) (gate.Verdict, error) {
	v, err := gate.ReadAnswer(event, object)
	if err == nil && gate.DecisionIn(object) {
		if err = readWorking(event, object, &v); err == nil {
			return v, nil
		}
	}
	if err == nil || !slices.ContainsFunc(decisiveKeys, func(key string) bool { return bytes.Contains(object, []byte(key)) }) {
		return gate.Verdict{}, errNoDecision
	}
	return gate.Verdict{}, fmt.Errorf("the answer is no verdict: %w", err)
}

// decisiveKeys are those whose object is meant as a verdict, however broken.
var decisiveKeys = []string{`"ok"`, `"decision"`, `"permissionDecision"`, `"continue"`}

// objectsIn is the JSON objects of a text that stand by themselves, in order.
// Braces and brackets of prose ("func() { return a[0] }") are passed over; an
// object inside them is an error, since whatever holds it may deny it.
func objectsIn(text string) ([]json.RawMessage, error) {
	var objects []json.RawMessage
	braces, brackets := 0, 0 // of prose, open
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '}':
			braces = max(braces-1, 0)
		case '[':
			brackets++
		case ']':
			brackets = max(brackets-1, 0)
		case '{':
			if !opensObject(text[i+1:]) {
				braces++
				continue
			}
			if braces > 0 || brackets > 0 {
				return nil, errors.New("the answer's JSON object stands inside something else")
			}
			object, err := firstObject(text[i:])
			if err != nil {
				return nil, err
			}
			if objects = append(objects, object); len(objects) > maxObjects {
				return nil, fmt.Errorf("the answer holds more than %d JSON objects", maxObjects)
			}
			i += len(object) - 1
		}
	}
	return objects, nil
}

// opensObject reports whether what follows a brace can be a JSON object's.
func opensObject(rest string) bool {
	rest = strings.TrimLeft(rest, " \t\r\n")
	return rest == "" || rest[0] == '"' || rest[0] == '}'
}

func firstObject(text string) (json.RawMessage, error) {
	var object json.RawMessage
	switch err := json.NewDecoder(strings.NewReader(text)).Decode(&object); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("the answer's JSON object is cut off")
	case err != nil:
		return nil, fmt.Errorf("the answer's JSON object is broken: %w", err)
	}
	return object, nil
}
