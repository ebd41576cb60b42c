package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"stopgate/access"
	"stopgate/access/oidc"
	"stopgate/config"
	"stopgate/gate"
	"stopgate/server"
)

// openLogin makes what the server asks who comes; nil where there is no login.
// The issuer is nil where there is none; it was not asked yet.
func openLogin(auth config.Auth, keys gate.Keys) (login server.Login, issuer *oidc.Issuer, err error) {
	if !auth.LoginNeeded() {
		return nil, nil, nil
	}
	opt := access.Options{Now: time.Now}
	if auth.Keys {
		opt.Keys = keys
	}
	if auth.OIDC != nil {
		if issuer, err = openIssuer(*auth.OIDC); err != nil {
			return nil, nil, err
		}
		opt.Tokens = issuer
	}
	if auth.TLS != nil {
		for _, c := range auth.TLS.Clients {
			opt.Clients = append(opt.Clients, access.Client{Name: c.Name, Scopes: c.Scopes, Agents: c.Agents})
		}
	}
	l, err := access.New(opt)
	if err != nil {
		return nil, nil, err
	}
	return l, issuer, nil
}

func openIssuer(c config.OIDC) (*oidc.Issuer, error) {
	opt := oidc.Options{Issuer: c.Issuer, Audience: c.Audience, Name: c.Name, Now: time.Now, Transport: http.DefaultTransport}
	for _, r := range c.Rules {
		opt.Rules = append(opt.Rules, oidc.Rule{Claim: r.Claim, Value: r.Value, Scopes: r.Scopes, Agents: r.Agents, AgentsClaim: r.AgentsClaim})
	}
	return oidc.New(opt)
}

// openTLS reads the server's certificates; nil where it has none.
func openTLS(auth config.Auth, log *slog.Logger) (*tls.Config, error) {
	if auth.TLS == nil {
		return nil, nil
	}
	return access.TLS(access.TLSFiles{Cert: auth.TLS.Cert, Key: auth.TLS.Key, ClientCA: auth.TLS.ClientCA}, time.Now, log)
}

// reach says at the start whether the issuer answers. Where it does not, its
// tokens are answered 503 until it does.
func reach(ctx context.Context, issuer *oidc.Issuer, log *slog.Logger) {
	if err := issuer.Discover(ctx); err != nil && ctx.Err() == nil {
		log.Warn("the OIDC issuer does not answer: its tokens cannot be checked until it does", "error", err.Error())
	}
}

// announceAccess says what is still missing before anybody can come in safely.
func announceAccess(log *slog.Logger, app *app, cfg config.Server, address string) {
	if !cfg.Auth.LoginNeeded() {
		return
	}
	if loopback, _ := config.IsLoopback(address); !loopback && cfg.Auth.TLS == nil {
		log.Warn("credentials come in the clear: set auth.tls, or see that a proxy before this server ends TLS and nobody else reaches it")
	}
	if !cfg.Auth.Keys {
		return
	}
	keys, err := app.store.Keys(context.Background())
	if err != nil {
		log.Error("keys cannot be read", "error", err.Error())
		return
	}
	if !slices.ContainsFunc(keys, func(k gate.Key) bool { return k.Revoked.IsZero() }) {
		log.Warn("there is no API key yet: make one with stopgate key create --name admin --scope admin --data " + cfg.Data)
	}
}
