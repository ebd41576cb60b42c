package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"stopgate/gate"
)

// precondition is the request's If-Match as a store understands it, and refuses
// by If-None-Match what exists already (spec/azure.md 13). The store checks
// again, in its transaction, what it is given.
func (s *Server) precondition(ctx context.Context, r *http.Request, kind gate.SpecKind, name string) (ifMatch string, err error) {
	match, err := readTags(r, "If-Match")
	if err != nil {
		return "", err
	}
	none, err := readTags(r, "If-None-Match")
	if err != nil {
		return "", err
	}
	if match.absent() && none.absent() {
		return "", nil
	}
	current, err := s.opt.Store.Spec(ctx, kind, name)
	exists := err == nil
	if err != nil && gate.CodeOf(err) != gate.CodeNotFound {
		return "", err
	}
	switch {
	case exists && none.weaklyHave(current.ETag):
		return "", gate.Errorf(gate.CodePreconditionFailed, "%s %q exists already", kind, name)
	case match.absent() && !exists:
		return "", nil
	case !match.absent() && (!exists || !match.have(current.ETag)):
		return "", gate.Errorf(gate.CodePreconditionFailed, "%s %q has changed meanwhile, or is not there", kind, name)
	}
	return current.ETag, nil
}

// entityTags is the value of If-Match or If-None-Match (RFC 9110, 13.1).
type entityTags struct {
	any  bool     // "*"
	list []string // each with its quotes, weak ones with their W/
}

func (t entityTags) absent() bool { return !t.any && len(t.list) == 0 }

// have compares strongly, as If-Match does: a weak tag is never the same.
func (t entityTags) have(etag string) bool { return t.any || slices.Contains(t.list, etag) }

// weaklyHave compares as If-None-Match does: weak or not, the same text is the
// same.
func (t entityTags) weaklyHave(etag string) bool {
	return t.have(etag) || slices.Contains(t.list, "W/"+etag)
}

// readTags reads a header of entity tags. One that is there and names none, or
// cannot be read, is an error: a condition that was meant is not ignored.
func readTags(r *http.Request, header string) (entityTags, error) {
	values := r.Header.Values(header)
	if len(values) == 0 {
		return entityTags{}, nil
	}
	text := strings.Join(values, ",") // several headers are one list (RFC 9110, 5.3)
	if strings.Trim(text, " \t") == "*" {
		return entityTags{any: true}, nil
	}
	tags, ok := splitTags(text)
	if !ok || len(tags) == 0 {
		return entityTags{}, gate.Errorf(gate.CodeValidation, "header %s is %.100q, want *, or entity tags with their quotes as an answer's ETag has them, separated by commas", header, text)
	}
	return entityTags{list: tags}, nil
}

// splitTags takes a list of entity tags apart. Empty elements are passed over,
// as a recipient must (RFC 9110, 5.6.1).
func splitTags(text string) (tags []string, ok bool) {
	for {
		text = strings.TrimLeft(text, " \t,")
		if text == "" {
			return tags, true
		}
		opaque, _ := strings.CutPrefix(text, "W/")
		if !strings.HasPrefix(opaque, `"`) {
			return nil, false
		}
		length := strings.IndexByte(opaque[1:], '"') // no tag holds a quote, escaped or not
		if length < 0 || strings.ContainsAny(opaque[1:1+length], " \t\x7f") {
			return nil, false
		}
		end := len(text) - len(opaque) + length + 2
		tags = append(tags, text[:end])
		if text = strings.TrimLeft(text[end:], " \t"); text != "" && text[0] != ',' {
			return nil, false
		}
	}
}
