package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"stopgate/access"
	"stopgate/cmd/internal/hookclient"
	"stopgate/config"
	"stopgate/gate"
)

// keys are what a key command works on: a data directory, or a server.
type keys interface {
	create(ctx context.Context, k gate.Key) (madeKey, error)
	list(ctx context.Context) ([]gate.Key, error)
	revoke(ctx context.Context, idOrName string) error
	where() string
	close() error
}

// open finds the keys. A data directory is made for a first key alone.
func (k keyPlace) open(p process, mayMake bool) (keys, error) {
	client, store, err := k.choose(p, mayMake)
	switch {
	case err != nil:
		return nil, err
	case client != nil:
		return remoteKeys{*client}, nil
	}
	return localKeys{store}, nil
}

// choose is the server or the store that the flags name. A flag that names a
// place wins over the environment. A data directory that is not there is made if
// it may be: elsewhere a misspelt one is an error.
func (k keyPlace) choose(p process, mayMake bool) (client *apiClient, store namedStore, err error) {
	local := k.Data != "" || k.Config != ""
	if k.Server != "" && local {
		return nil, nil, exit{exitUsage, errors.New("--server is another place than --data and --config: name one")}
	}
	if base := cmp.Or(k.Server, p.getenv("STOPGATE_SERVER")); base != "" && !local {
		if err := hookclient.CheckServer(base); err != nil {
			return nil, nil, exit{exitUsage, err}
		}
		return &apiClient{base: strings.TrimRight(base, "/"), key: p.getenv("STOPGATE_API_KEY")}, nil, nil
	}
	cfg, err := loadConfig(p, k.Config, overrides{data: k.Data})
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(filepath.Join(cfg.Data, "stopgate.db")); cfg.Database == "" && !mayMake && errors.Is(err, fs.ErrNotExist) {
		return nil, nil, exit{exitInput, fmt.Errorf("data directory %q holds no store: name it with --data, or a server with --server", cfg.Data)}
	}
	cfg.Retention = config.Retention{} // a command like this deletes nothing
	store, err = openStore(p.ctx, cfg, shared, nil)
	return nil, store, err
}

// localKeys are those of a data directory, or of the database that the server
// file names.
type localKeys struct{ store namedStore }

func (l localKeys) where() string { return l.store.String() }
func (l localKeys) close() error  { return l.store.Close() }

func (l localKeys) create(ctx context.Context, k gate.Key) (madeKey, error) {
	m := madeKey{Key: k}
	m.ID, m.Secret, m.Hash = access.Mint()
	if err := l.store.AddKey(ctx, m.Key, localActor()); err != nil {
		return madeKey{}, refused(err)
	}
	var err error
	m.Key, err = l.store.Key(ctx, m.ID)
	return m, err
}

func (l localKeys) list(ctx context.Context) ([]gate.Key, error) { return l.store.Keys(ctx) }

func (l localKeys) revoke(ctx context.Context, idOrName string) error {
	return refused(l.store.RevokeKey(ctx, idOrName, localActor()))
}

// refused gives what a store refuses the exit code that a server's refusal has.
func refused(err error) error {
	if code := gate.CodeOf(err); err != nil && (code == gate.CodeConflict || code == gate.CodeNotFound) {
		return exit{exitFindings, err}
	}
	return err
}

// localActor is who works on the data directory itself: a user of this machine.
func localActor() gate.Actor {
	id := strconv.Itoa(os.Getuid())
	name := "uid " + id
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return gate.Actor{Name: name, Credential: "local:" + id}
}

// remoteKeys are a running server's.
type remoteKeys struct{ client apiClient }

func (r remoteKeys) where() string { return r.client.base }
func (r remoteKeys) close() error  { return nil }

func (r remoteKeys) create(ctx context.Context, k gate.Key) (madeKey, error) {
	asked := map[string]any{"name": k.Name, "scopes": k.Scopes, "agents": k.Agents}
	if !k.Expires.IsZero() {
		asked["expires"] = k.Expires.UTC().Format(time.RFC3339Nano)
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return madeKey{}, err
	}
	var m madeKey
	err = r.ask(ctx, http.MethodPost, "/v1/keys", body, &m)
	if err == nil && m.Secret == "" {
		err = r.notOurs()
	}
	return m, err
}

func (r remoteKeys) list(ctx context.Context) ([]gate.Key, error) {
	var answer struct{ Value []gate.Key }
	err := r.ask(ctx, http.MethodGet, "/v1/keys", nil, &answer)
	return answer.Value, err
}

func (r remoteKeys) revoke(ctx context.Context, idOrName string) error {
	return r.ask(ctx, http.MethodDelete, "/v1/keys/"+url.PathEscape(idOrName), nil, nil)
}

func (r remoteKeys) ask(ctx context.Context, method, path string, body []byte, into any) error {
	answer, _, err := r.client.do(ctx, method, path, "application/json", body)
	if err != nil {
		return err
	}
	if into != nil && json.Unmarshal(answer, into) != nil {
		return r.notOurs()
	}
	return nil
}

func (r remoteKeys) notOurs() error {
	return exit{exitUnreachable, fmt.Errorf("%s does not answer like a stopgate server", r.client.base)}
}
