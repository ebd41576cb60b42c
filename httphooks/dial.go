package httphooks

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"stopgate/gate"
	"stopgate/internal/hostname"
)

const (
	// maxAddresses of one host are tried.
	maxAddresses = 4
	// dialTimeout is how long the last address may take, and resolving before;
	// earlyTimeout each one before the last: a hook has 30 s if nobody says
	// otherwise. They go on after a hook's own time, for the next one.
	dialTimeout  = 10 * time.Second
	earlyTimeout = 3 * time.Second
	// foresight is how long the addresses of a host are looked for that the proxy
	// will look for itself.
	foresight = 2 * time.Second
)

// dialer connects by the rules of one dialect.
type dialer struct {
	caller  *Caller
	dialect gate.Dialect
}

// dial connects to a host. It finds the addresses, checks them all, and connects
// to one of just these: a name that is resolved once more, and to something
// else, is nobody's way in.
func (d dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := d.caller.addresses(ctx, host, dialTimeout)
	if err != nil {
		return nil, err
	}
	if failure := d.caller.refused(d.dialect, host, port, addrs); failure != nil {
		return nil, failure
	}
	addrs = addrs[:min(len(addrs), maxAddresses)]
	var errs []error
	for i, addr := range addrs {
		most := earlyTimeout
		if i == len(addrs)-1 {
			most = dialTimeout
		}
		conn, err := d.attempt(ctx, network, net.JoinHostPort(addr.String(), port), most)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// attempt tries one address.
func (d dialer) attempt(ctx context.Context, network, address string, most time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return d.caller.opt.Dial(ctx, network, address)
}

// addresses are what a host stands for. localhost is this machine, whatever a
// resolver says.
func (c *Caller) addresses(ctx context.Context, host string, most time.Duration) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	if hostname.IsLocalhost(host) {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	addrs, err := c.opt.Resolve(ctx, host)
	if err == nil && len(addrs) == 0 {
		err = errors.New("the name has no address")
	}
	return addrs, err
}

// refused is why one of a host's addresses may not be reached; nil: all may.
// One is enough: honest names do not stand for a public and a private place.
func (c *Caller) refused(d gate.Dialect, host, port string, addrs []netip.Addr) *gate.Failure {
	for _, addr := range addrs {
		if failure := c.refusal(d, host, port, addr); failure != nil {
			return failure
		}
	}
	return nil
}

// foresee checks the addresses of a host that a proxy will connect to, as far as
// they are known here: behind many proxies external names cannot be resolved.
func (c *Caller) foresee(ctx context.Context, d gate.Dialect, t target) *gate.Failure {
	addrs, _ := c.addresses(ctx, t.host, foresight) // others are the proxy's to find, and to refuse
	return c.refused(d, t.host, t.port, addrs)
}
