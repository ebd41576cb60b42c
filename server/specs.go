package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// Load puts in force what is stored, and nothing else beside the files' specs;
// call it before serving. A spec that does not validate is logged and kept out,
// since one bad document must not take the gate down; or, where another replica
// has stored what this one cannot read, its last good version stays in force. The
// error is the store's.
func (s *Server) Load(ctx context.Context) error {
	s.specs.Lock()
	defer s.specs.Unlock()
	stored, err := s.opt.Store.CurrentSpecs(ctx)
	if err != nil {
		return fmt.Errorf("loading the stored specs: %w", err)
	}
	before := s.opt.Gate.Policies.Uploaded()
	specs := make([]*gate.Spec, 0, len(stored))
	told := s.unreadable
	s.unreadable = map[resource]string{}
	for _, doc := range stored {
		spec, err := s.readStored(doc)
		if err == nil {
			specs = append(specs, spec)
			continue
		}
		last := slices.IndexFunc(before, func(old *gate.Spec) bool { return old.Kind == doc.Kind && old.Name == doc.Name })
		if last >= 0 {
			specs = append(specs, before[last])
		}
		of := resource{doc.Kind, doc.Name}
		s.unreadable[of] = doc.ETag
		if etag, before := told[of]; before && etag == doc.ETag { // all are read whenever one has changed
			continue
		}
		s.log.LogAttrs(ctx, slog.LevelError, "stored spec is not valid any more and not in force", slog.String("kind", string(doc.Kind)),
			slog.String("name", doc.Name), slog.Bool("last_good_version", last >= 0), slog.Any("error", err))
	}
	s.opt.Gate.Policies.SetUploaded(specs)
	return nil
}

func (s *Server) readStored(doc gate.StoredSpec) (*gate.Spec, error) {
	spec, _, err := s.readSpec(resource{doc.Kind, doc.Name}, typeJSON, doc.Document)
	if err == nil && spec.Name != doc.Name {
		err = fmt.Errorf("document is about %q", spec.Name)
	}
	return spec, err
}

// loadAgain is how long a store that failed is left alone.
const loadAgain = time.Second

// follow puts in force what others store, whenever it has changed, until ctx
// ends.
func (s *Server) follow(ctx context.Context, changed <-chan struct{}) {
	for range changed {
		for {
			err := s.Load(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			s.log.LogAttrs(ctx, slog.LevelError, "changed specs are not in force yet", slog.Any("error", err))
			select {
			case <-ctx.Done():
			case <-time.After(loadAgain):
			}
		}
	}
}

// readSpec reads a document that must be without errors.
func (s *Server) readSpec(of resource, contentType string, body []byte) (*gate.Spec, []gate.Finding, error) {
	switch of.kind {
	case gate.AgentSpec, gate.HookSpec:
		return sound(s.opt.ReadSpec(of.kind, contentType, body))
	case gate.NetworkSpec:
		return sound(ownJSON(body, func() (*gate.Spec, []gate.Finding) { return s.opt.ReadNetwork(of.name, body) }))
	}
	return sound(s.readAttached(of, body))
}

// sound makes error findings an error that quotes the first of them.
func sound(spec *gate.Spec, findings []gate.Finding, err error) (*gate.Spec, []gate.Finding, error) {
	if err != nil {
		return nil, nil, err
	}
	errs := slices.DeleteFunc(slices.Clone(findings), func(f gate.Finding) bool { return f.Severity != gate.SeverityError })
	if len(errs) == 0 {
		return spec, findings, nil
	}
	message := errs[0].Message
	if errs[0].Path != "" {
		message = errs[0].Path + ": " + message
	}
	if more := len(errs) - 1; more > 0 {
		message += fmt.Sprintf(" (and %d more)", more)
	}
	return nil, nil, &gate.Error{Code: gate.CodeValidation, Message: message, Details: errs}
}

// putSpec stores a resource and puts it in force at once (spec/azure.md 1–3,
// 7).
func (s *Server) putSpec(about about) echo.HandlerFunc {
	return func(c echo.Context) error {
		of, err := about(c)
		if err != nil {
			return err
		}
		if err := s.checkName(of); err != nil {
			return err
		}
		return s.withBody(c, s.opt.Limits.SpecBytes, func(body []byte) error {
			spec, findings, err := s.readSpec(of, mediaType(c.Request()), slices.Clone(body)) // the spec lives on
			if err != nil || len(spec.Hooks) == 0 {
				if other := s.ofAnother(of, body); other != nil {
					return other.before(err)
				}
			}
			if err != nil {
				return err
			}
			findings = append(findings, s.ofNobody(of)...)
			if spec.Name != of.name {
				return gate.Errorf(gate.CodeValidation, "name %q in the body is not the name %q in the path", spec.Name, of.name)
			}
			answer, err := putAnswer(of.kind, s.shown(of.kind, spec.Document), s.withUnserved(c, spec, body, findings))
			if err != nil {
				return err
			}
			stored, err := s.storeSpec(c, spec)
			if err != nil {
				return err
			}
			c.Response().Header().Set("ETag", stored.ETag)
			return s.answer(c, http.StatusAccepted, answer)
		})
	}
}

// withUnserved adds what this server cannot do for the spec; nil: it has errors,
// or none was read. It names hosts and programs of the server's, and so is not for one
// who reads for some agents only.
func (s *Server) withUnserved(c echo.Context, spec *gate.Spec, document []byte, findings []gate.Finding) []gate.Finding {
	who := callerOf(c)
	if spec == nil || s.opt.Unserved == nil || gate.HasErrors(findings) || who.Limited() && !who.May(gate.AdminScope) {
		return findings
	}
	return append(slices.Clip(findings), s.opt.Unserved(spec, document)...)
}

// storeSpec stores, then puts in force. One change at a time, so that store and
// policies agree on which came last; and to its end, though the caller may have
// gone.
func (s *Server) storeSpec(c echo.Context, spec *gate.Spec) (gate.StoredSpec, error) {
	s.specs.Lock()
	defer s.specs.Unlock()
	ctx := context.WithoutCancel(c.Request().Context())
	if err := s.ownedByFile(spec.Kind, spec.Name); err != nil {
		return gate.StoredSpec{}, err
	}
	ifMatch, err := s.precondition(ctx, c.Request(), spec.Kind, spec.Name)
	if err != nil {
		return gate.StoredSpec{}, err
	}
	stored, err := s.opt.Store.PutSpec(ctx, gate.StoredSpec{Kind: spec.Kind, Name: spec.Name, Document: spec.Document}, actorOf(c), ifMatch)
	if err != nil {
		return gate.StoredSpec{}, err
	}
	s.opt.Gate.Policies.Put(spec)
	return stored, nil
}

// ownedByFile refuses to change what a file defines: the file would win.
func (s *Server) ownedByFile(kind gate.SpecKind, name string) error {
	if spec := s.opt.Gate.Policies.Find(kind, name); spec != nil && spec.Source != "" {
		return gate.Errorf(gate.CodeConflict, "%s %q is defined by the file %s: change it there", kind, name, spec.Source)
	}
	return nil
}

// putAnswer is what is stored and what was remarked on it. Hooks in another
// dialect stand in a member of their own: a group of antigravity's may have any
// name, "warnings" too.
func putAnswer(kind gate.SpecKind, document json.RawMessage, findings []gate.Finding) (map[string]any, error) {
	if isAttached(kind) {
		return map[string]any{"document": document, "warnings": remarks(findings, gate.SeverityWarning)}, nil
	}
	return withWarnings(document, findings)
}

// withWarnings is the document, as it will be stored, plus what was remarked on it.
func withWarnings(document json.RawMessage, findings []gate.Finding) (map[string]any, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(document, &fields); err != nil {
		return nil, fmt.Errorf("document is not an object: %w", err)
	}
	answer := make(map[string]any, len(fields)+1)
	for k, v := range fields {
		answer[k] = v
	}
	answer["warnings"] = remarks(findings, gate.SeverityWarning)
	return answer, nil
}

func (s *Server) getSpec(about about) echo.HandlerFunc {
	return func(c echo.Context) error {
		of, err := about(c)
		if err != nil {
			return err
		}
		document, etag, err := s.spec(c.Request().Context(), of)
		if err != nil {
			return err
		}
		known, err := readTags(c.Request(), "If-None-Match")
		if err != nil {
			return err
		}
		c.Response().Header().Set("ETag", etag)
		if known.weaklyHave(etag) {
			return c.NoContent(http.StatusNotModified)
		}
		return s.answer(c, http.StatusOK, s.shown(of.kind, document))
	}
}

// spec is the document that GET answers: a file's, since that is in force, or
// the stored one.
func (s *Server) spec(ctx context.Context, of resource) (document json.RawMessage, etag string, err error) {
	if spec := s.opt.Gate.Policies.Find(of.kind, of.name); spec != nil && spec.Source != "" {
		return spec.Document, etagOf(spec), nil
	}
	stored, err := s.opt.Store.Spec(ctx, of.kind, of.name)
	return stored.Document, stored.ETag, err
}

// etagOf is the version of a file's spec.
func etagOf(spec *gate.Spec) string {
	sum := sha256.Sum256(spec.Document)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// listSpecs answers all, a file's before the uploaded ones (spec/azure.md 4).
// There are no pages: a client that follows no nextLink would miss specs, and
// what is listed is in force, so in memory anyway.
func (s *Server) listSpecs(kind gate.SpecKind) echo.HandlerFunc {
	return func(c echo.Context) error {
		inForce := s.opt.Gate.Policies.Agents()
		if kind == gate.HookSpec {
			inForce = s.opt.Gate.Policies.Hooks()
		}
		documents := []json.RawMessage{}
		mayBeSeen := func(name string) bool { return kind == gate.HookSpec || callerOf(c).Owns(name) }
		fromFile := map[string]bool{}
		for _, spec := range inForce {
			if spec.Source != "" && mayBeSeen(spec.Name) {
				documents = append(documents, spec.Document)
				fromFile[spec.Name] = true
			}
		}
		stored, err := s.opt.Store.CurrentSpecs(c.Request().Context())
		if err != nil {
			return err
		}
		for _, doc := range stored {
			if doc.Kind == kind && !fromFile[doc.Name] && mayBeSeen(doc.Name) {
				documents = append(documents, doc.Document)
			}
		}
		return s.answer(c, http.StatusOK, map[string]any{"value": documents, "nextLink": nil})
	}
}

func (s *Server) deleteSpec(about about) echo.HandlerFunc {
	return func(c echo.Context) error {
		of, err := about(c)
		if err != nil {
			return err
		}
		s.specs.Lock()
		defer s.specs.Unlock()
		ctx := context.WithoutCancel(c.Request().Context())
		if err := s.ownedByFile(of.kind, of.name); err != nil {
			return err
		}
		ifMatch, err := s.precondition(ctx, c.Request(), of.kind, of.name)
		if err != nil {
			return err
		}
		if err := s.opt.Store.DeleteSpec(ctx, of.kind, of.name, actorOf(c), ifMatch); err != nil {
			return err
		}
		s.opt.Gate.Policies.Delete(of.kind, of.name)
		return c.NoContent(http.StatusNoContent)
	}
}
