package access

import (
	"crypto/x509"
	"time"

	"stopgate/gate"
)

// Client is who comes with a client certificate of a name.
type Client struct {
	Name   string // pattern (see [gate.MatchName]) of one of the certificate's names
	Scopes []gate.Scope
	Agents []string // patterns
}

// callerOf is who has the certificate, whose chain was verified. It is
// looked at for every request, since a connection may outlive it.
func callerOf(certificate *x509.Certificate, clients []Client, now time.Time) (gate.Caller, error) {
	if certificate == nil {
		return gate.Caller{}, gate.Errorf(gate.CodeUnauthenticated, "request has no credential")
	}
	if now.Before(certificate.NotBefore) || now.After(certificate.NotAfter) {
		return gate.Caller{}, gate.Errorf(gate.CodeUnauthenticated, "client certificate is valid from %s to %s only",
			certificate.NotBefore.Format(time.RFC3339), certificate.NotAfter.Format(time.RFC3339))
	}
	names := namesOf(certificate)
	for _, c := range clients {
		for _, name := range names {
			if gate.MatchName(c.Name, name) {
				return gate.Caller{Name: name, Credential: "certificate:" + name, Scopes: c.Scopes, Agents: c.Agents}, nil
			}
		}
	}
	return gate.Caller{}, gate.Errorf(gate.CodeUnauthenticated, "client certificate of %q is nobody's that the server file names", names)
}

// namesOf are the alternative names of the subject, and its common name.
func namesOf(certificate *x509.Certificate) []string {
	var names []string
	for _, u := range certificate.URIs { // spiffe://… is the most exact
		names = append(names, u.String())
	}
	names = append(names, certificate.DNSNames...)
	names = append(names, certificate.EmailAddresses...)
	if cn := certificate.Subject.CommonName; cn != "" {
		names = append(names, cn)
	}
	return names
}
