package postgres

import (
	"net"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/gate"
)

// readURL refuses what is no URL of a database, and what may be one whose
// password has an @, a #, a / or a ? in it: no part of that may be taken for a
// host or a name, and shown. Its error quotes nothing, since the password may be
// anywhere.
func readURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Fragment != "" ||
		u.User == nil && strings.Contains(text, "@") || strings.Contains(u.EscapedPath()+u.RawQuery, "@") {
		return nil, gate.Errorf(gate.CodeValidation, "database is not a URL as postgres://user:password@host:5432/name; "+
			"what is special in the password, and an @ behind the host, is percent-encoded")
	}
	return u, nil
}

// parse reads the URL of a database. CodeValidation.
func parse(text string) (*pgxpool.Config, error) {
	u, err := readURL(text)
	if err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, gate.Errorf(gate.CodeValidation, "database %s cannot be used: %s", Where(text), refused(u))
	}
	query := u.Query()
	if !query.Has("connect_timeout") {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	if !query.Has("pool_max_conns") {
		cfg.MaxConns = maxConns
	}
	if !query.Has("application_name") {
		cfg.ConnConfig.RuntimeParams["application_name"] = "stopgate"
	}
	return cfg, nil
}

// refused names the parameters that the driver did not like, as far as can be
// said without their values: without each in turn, is the URL good?
func refused(u *url.URL) string {
	for name := range u.Query() {
		rest := *u
		query := u.Query()
		query.Del(name)
		rest.RawQuery = query.Encode()
		if _, err := pgxpool.ParseConfig(rest.String()); err == nil {
			return "its parameter " + quoteShort(name) + " is wrong"
		}
	}
	return "its parameters, or the PG… variables of the environment, are wrong"
}

func quoteShort(name string) string {
	const most = 40
	if len(name) > most {
		name = name[:most] + "…"
	}
	return `"` + strings.ToValidUTF8(name, "?") + `"`
}

// Where names a database for people: its host and its name, nothing else.
func Where(text string) string {
	u, err := readURL(text)
	if err != nil {
		return "postgres"
	}
	host := u.Host
	if host == "" { // a socket's directory
		host = u.Query().Get("host")
	}
	if name, port, err := net.SplitHostPort(host); err == nil && port == "5432" {
		host = name
	}
	return "postgres " + host + "/" + strings.TrimPrefix(u.Path, "/")
}
