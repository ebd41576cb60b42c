package server

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// maxKeyBody is more than a name and a hundred patterns take.
const maxKeyBody = 128 << 10

// newKey is the answer to POST /v1/keys: the only time that a key is seen.
type newKey struct {
	Secret string `json:"key"`
	gate.Key
}

// createKey makes an API key.
func (s *Server) createKey(c echo.Context) error {
	if s.opt.MintKey == nil {
		return gate.Errorf(gate.CodeNotFound, "keys are not used here")
	}
	return s.withBody(c, maxKeyBody, func(body []byte) error {
		k, err := readKey(body)
		if err != nil {
			return err
		}
		if err := k.Check(time.Now()); err != nil {
			return err
		}
		answer := newKey{Key: k}
		answer.ID, answer.Secret, answer.Hash = s.opt.MintKey()
		if err := s.opt.Store.AddKey(c.Request().Context(), answer.Key, actorOf(c)); err != nil {
			return err
		}
		if answer.Key, err = s.opt.Store.Key(c.Request().Context(), answer.ID); err != nil {
			return err
		}
		c.Response().Header().Set("Cache-Control", "no-store")
		return s.answer(c, http.StatusCreated, answer)
	})
}

// readKey is strict: a misspelt limit that was ignored would be none.
func readKey(body []byte) (gate.Key, error) {
	var asked struct {
		Name    string       `json:"name"`
		Scopes  []gate.Scope `json:"scopes"`
		Agents  []string     `json:"agents"`
		Expires *time.Time   `json:"expires"`
	}
	asked.Agents = []string{gate.EveryAgent} // where it is absent; null makes it nil, which Check refuses
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&asked); err != nil {
		return gate.Key{}, gate.Errorf(gate.CodeInvalidJSON, "body is not a key's name, scopes, agents and expires: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return gate.Key{}, gate.Errorf(gate.CodeInvalidJSON, "body goes on after its JSON object")
	}
	k := gate.Key{Name: asked.Name, Scopes: asked.Scopes, Agents: asked.Agents}
	if asked.Expires != nil {
		k.Expires = *asked.Expires
	}
	return k, nil
}

func (s *Server) listKeys(c echo.Context) error {
	keys, err := s.opt.Store.Keys(c.Request().Context())
	if err != nil {
		return err
	}
	return s.answer(c, http.StatusOK, pageOf(keys, ""))
}

// revokeKey ends a key, by its id or its name.
func (s *Server) revokeKey(c echo.Context) error {
	key, err := segment(c, "key")
	if err != nil {
		return err
	}
	if err := s.opt.Store.RevokeKey(c.Request().Context(), key, actorOf(c)); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
