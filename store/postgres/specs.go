package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/gate"
	"stopgate/store/record"
)

const specColumns = `kind, name, document, version, etag, by, at, deleted`

// PutSpec stores a new version, also when the document is the same.
func (s *Store) PutSpec(ctx context.Context, spec gate.StoredSpec, by gate.Actor, ifMatch string) (gate.StoredSpec, error) {
	spec.By, spec.Deleted = by.Name, false
	return s.putSpec(ctx, spec, by, ifMatch)
}

// DeleteSpec stores the deletion as a version of its own, without document.
func (s *Store) DeleteSpec(ctx context.Context, kind gate.SpecKind, name string, by gate.Actor, ifMatch string) error {
	_, err := s.putSpec(ctx, gate.StoredSpec{Kind: kind, Name: name, By: by.Name, Deleted: true}, by, ifMatch)
	return err
}

// putSpec writes the next version of a spec: a document or its deletion. All
// specs have one lock: they change rarely, and so the highest seq is the last
// that was committed.
func (s *Store) putSpec(ctx context.Context, spec gate.StoredSpec, by gate.Actor, ifMatch string) (gate.StoredSpec, error) {
	err := s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockOf("specs")); err != nil {
			return err
		}
		last, born, err := lastVersion(ctx, tx, spec.Kind, spec.Name)
		if err != nil {
			return err
		}
		exists := last.Version > 0 && !last.Deleted
		if spec.Deleted && !exists {
			return gate.Errorf(gate.CodeNotFound, "%s %q is not known", spec.Kind, spec.Name)
		}
		if ifMatch != "" && (!exists || ifMatch != "*" && ifMatch != last.ETag) {
			return gate.Errorf(gate.CodePreconditionFailed, "%s %q has changed: its ETag is not %s any more", spec.Kind, spec.Name, ifMatch)
		}
		spec.Version = last.Version + 1
		spec.ETag = record.ETag(&spec)
		if !exists {
			born = nil // this version's own
		}
		err = tx.QueryRow(ctx, `WITH next AS (SELECT coalesce(max(seq), 0) + 1 AS seq FROM stopgate.specs),
			told AS (SELECT pg_notify('`+specsChannel+`', ''))
			INSERT INTO stopgate.specs (seq, kind, name, version, etag, document, by, at, deleted, born)
			SELECT seq, $1, $2, $3::bigint, $4, $5, $6, `+nowMillis+`, $7::boolean, coalesce($8::bigint, seq) FROM next, told RETURNING at`,
			bytesOf(string(spec.Kind)), bytesOf(spec.Name), spec.Version, bytesOf(spec.ETag), []byte(spec.Document), bytesOf(spec.By),
			spec.Deleted, born).Scan(&spec.At)
		if err != nil {
			return err
		}
		return audit(ctx, tx, specChange(&spec, exists), by)
	})
	if err != nil {
		return gate.StoredSpec{}, err
	}
	return spec, nil
}

// specChange is what changed: the version that was in force, and the one that is
// now.
func specChange(spec *gate.StoredSpec, existed bool) gate.AuditEntry {
	e := gate.AuditEntry{Action: gate.SpecPut, Kind: string(spec.Kind), Name: spec.Name, After: spec.Version}
	if existed {
		e.Before = spec.Version - 1
	}
	if spec.Deleted {
		e.Action = gate.SpecDeleted
	}
	return e
}

// lastVersion is the newest version of a spec; version 0: none. born is nil then.
func lastVersion(ctx context.Context, tx pgx.Tx, kind gate.SpecKind, name string) (last gate.StoredSpec, born *int64, err error) {
	err = tx.QueryRow(ctx, `SELECT version, etag, deleted, born FROM stopgate.specs
		WHERE sha256(kind) = sha256($1) AND sha256(name) = sha256($2) ORDER BY version DESC LIMIT 1`, bytesOf(string(kind)), bytesOf(name)).
		Scan(&last.Version, (*text)(&last.ETag), &last.Deleted, &born)
	if errors.Is(err, pgx.ErrNoRows) {
		return gate.StoredSpec{}, nil, nil
	}
	return last, born, err
}

// Spec is the current version.
func (s *Store) Spec(ctx context.Context, kind gate.SpecKind, name string) (gate.StoredSpec, error) {
	found, err := s.specs(ctx, `SELECT `+specColumns+` FROM stopgate.specs
		WHERE sha256(kind) = sha256($1) AND sha256(name) = sha256($2) ORDER BY version DESC LIMIT 1`, bytesOf(string(kind)), bytesOf(name))
	if err == nil && (len(found) == 0 || found[0].Deleted) {
		err = gate.Errorf(gate.CodeNotFound, "%s %q is not known", kind, name)
	}
	if err != nil {
		return gate.StoredSpec{}, err
	}
	return found[0], nil
}

// CurrentSpecs lists what is not deleted, in order of first creation; what was
// deleted and put again is created anew.
func (s *Store) CurrentSpecs(ctx context.Context) ([]gate.StoredSpec, error) {
	return s.specs(ctx, `SELECT `+specColumns+` FROM (
			SELECT DISTINCT ON (sha256(kind), sha256(name)) * FROM stopgate.specs ORDER BY sha256(kind), sha256(name), version DESC
		) AS newest WHERE NOT deleted ORDER BY born`)
}

// SpecHistory lists every version, newest first; none for a name that was
// never put.
func (s *Store) SpecHistory(ctx context.Context, kind gate.SpecKind, name string) ([]gate.StoredSpec, error) {
	return s.specs(ctx, `SELECT `+specColumns+` FROM stopgate.specs
		WHERE sha256(kind) = sha256($1) AND sha256(name) = sha256($2) ORDER BY version DESC`, bytesOf(string(kind)), bytesOf(name))
}

func (s *Store) specs(ctx context.Context, query string, args ...any) (list []gate.StoredSpec, err error) {
	err = s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (v gate.StoredSpec, err error) {
			var document []byte
			err = row.Scan((*text)(&v.Kind), (*text)(&v.Name), &document, &v.Version, (*text)(&v.ETag), (*text)(&v.By), &v.At, &v.Deleted)
			v.Document = document
			return v, err
		})
		return err
	})
	return list, err
}
