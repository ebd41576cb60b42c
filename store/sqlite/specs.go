package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"stopgate/gate"
	"stopgate/store/record"
)

const specColumns = `kind, name, document, version, etag, by, at, deleted`

// PutSpec stores a new version, also when the document is the same.
func (s *Store) PutSpec(ctx context.Context, spec gate.StoredSpec, by gate.Actor, ifMatch string) (gate.StoredSpec, error) {
	spec.At, spec.By, spec.Deleted = s.opt.Now().UnixMilli(), by.Name, false
	w := &putSpec{spec: spec, by: by, ifMatch: ifMatch}
	if err := s.writer.do(ctx, w); err != nil {
		return gate.StoredSpec{}, err
	}
	return w.spec, nil
}

// DeleteSpec stores the deletion as a version of its own, without document.
func (s *Store) DeleteSpec(ctx context.Context, kind gate.SpecKind, name string, by gate.Actor, ifMatch string) error {
	return s.writer.do(ctx, &putSpec{ifMatch: ifMatch, by: by, spec: gate.StoredSpec{Kind: kind, Name: name, By: by.Name,
		At: s.opt.Now().UnixMilli(), Deleted: true}})
}

// putSpec writes the next version of a spec: a document or its deletion.
type putSpec struct {
	spec    gate.StoredSpec
	by      gate.Actor
	ifMatch string
}

func (w *putSpec) size() int { return len(w.spec.Document) }

func (w *putSpec) apply(c *conn) error {
	s := &w.spec
	var v [4]driver.Value
	known, err := c.row(v[:], `SELECT version, etag, deleted, born FROM specs WHERE kind = ? AND name = ? ORDER BY version DESC LIMIT 1`,
		string(s.Kind), s.Name)
	if err != nil {
		return err
	}
	var exists bool
	var etag string
	var born any // NULL: this version's own seq
	s.Version = 1
	if known {
		s.Version = int(v[0].(int64)) + 1
		if exists = v[2].(int64) == 0; exists {
			etag, born = v[1].(string), v[3].(int64)
		}
	}
	if s.Deleted && !exists {
		return gate.Errorf(gate.CodeNotFound, "%s %q is not known", s.Kind, s.Name)
	}
	if w.ifMatch != "" && (!exists || w.ifMatch != "*" && w.ifMatch != etag) {
		return gate.Errorf(gate.CodePreconditionFailed, "%s %q has changed: its ETag is not %s any more", s.Kind, s.Name, w.ifMatch)
	}
	s.ETag = record.ETag(s)
	err = c.exec(`INSERT INTO specs (kind, name, version, etag, document, by, at, deleted, born)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, coalesce(?, (SELECT coalesce(max(seq), 0) + 1 FROM specs)))`,
		string(s.Kind), s.Name, int64(s.Version), s.ETag, blob(s.Document), s.By, s.At, asInt(s.Deleted), born)
	if err != nil {
		return err
	}
	return w.audit(c, exists)
}

// audit writes what changed: the version that was in force, and the one that is
// now.
func (w *putSpec) audit(c *conn, existed bool) error {
	s := &w.spec
	e := entry(gate.SpecPut, string(s.Kind), s.Name, w.by, s.At)
	e.After = s.Version
	if existed {
		e.Before = s.Version - 1
	}
	if s.Deleted {
		e.Action = gate.SpecDeleted
	}
	return insertAudit(c, e)
}

// Spec is the current version.
func (s *Store) Spec(ctx context.Context, kind gate.SpecKind, name string) (gate.StoredSpec, error) {
	spec, err := scanSpec(s.reads.QueryRowContext(ctx, `SELECT `+specColumns+` FROM specs
		WHERE kind = ? AND name = ? ORDER BY version DESC LIMIT 1`, string(kind), name))
	if errors.Is(err, sql.ErrNoRows) || err == nil && spec.Deleted {
		return gate.StoredSpec{}, gate.Errorf(gate.CodeNotFound, "%s %q is not known", kind, name)
	}
	return spec, explain(err)
}

// CurrentSpecs lists what is not deleted, in order of first creation; what was
// deleted and put again is created anew.
func (s *Store) CurrentSpecs(ctx context.Context) ([]gate.StoredSpec, error) {
	return s.specs(ctx, `SELECT `+specColumns+` FROM specs AS s WHERE deleted = 0
		AND version = (SELECT max(version) FROM specs WHERE kind = s.kind AND name = s.name) ORDER BY born`)
}

// SpecHistory lists every version, newest first; none for a name that was
// never put.
func (s *Store) SpecHistory(ctx context.Context, kind gate.SpecKind, name string) ([]gate.StoredSpec, error) {
	return s.specs(ctx, `SELECT `+specColumns+` FROM specs WHERE kind = ? AND name = ? ORDER BY version DESC`, string(kind), name)
}

func (s *Store) specs(ctx context.Context, query string, args ...any) ([]gate.StoredSpec, error) {
	rows, err := s.reads.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, explain(err)
	}
	defer rows.Close()
	list := []gate.StoredSpec{}
	for rows.Next() {
		spec, err := scanSpec(rows)
		if err != nil {
			return nil, explain(err)
		}
		list = append(list, spec)
	}
	return list, explain(rows.Err())
}

func scanSpec(row interface{ Scan(...any) error }) (gate.StoredSpec, error) {
	var s gate.StoredSpec
	var document []byte
	err := row.Scan(&s.Kind, &s.Name, &document, &s.Version, &s.ETag, &s.By, &s.At, &s.Deleted)
	if len(document) > 0 {
		s.Document = document
	}
	return s, err
}
