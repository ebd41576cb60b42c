package access

import (
	"net/netip"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

const (
	// failuresAtOnce may come from an address before it is locked out: more than
	// somebody who pastes the wrong key needs. A secret of 256 bits needs no
	// lock-out; logs, the store and an issuer do.
	failuresAtOnce = 10
	// failureForgiven is when one of them is forgiven.
	failureForgiven = 10 * time.Second
	// checksLocked is how many tokens a second are looked at from an address that
	// is locked out. Not none: behind a proxy all callers have one address, and a
	// wrong one now and then would keep everybody out who comes anew.
	checksLocked = 20
	// rememberedAddresses bounds the memory that anybody can fill, at some 300
	// bytes each. Who is pushed out begins anew.
	rememberedAddresses = 10_000
)

// failures counts wrong credentials by the address that they came from.
type failures struct {
	now func() time.Time
	of  *lru.Cache[netip.Addr, *failing]
}

// failing is an address that wrong credentials came from: how many more may, and
// how many tokens are looked at once no more may.
type failing struct{ left, checks *rate.Limiter }

func newFailures(now func() time.Time) (*failures, error) {
	of, err := lru.New[netip.Addr, *failing](rememberedAddresses)
	return &failures{now, of}, err
}

// network is what one caller can choose addresses from: an IPv6 host has a /64.
func network(from netip.Addr) netip.Addr {
	if p, err := from.Prefix(64); err == nil && from.Is6() {
		return p.Addr()
	}
	return from
}

// locked is how long an address is locked out still, 0 if it is not.
func (f *failures) locked(from netip.Addr) time.Duration {
	of, known := f.of.Get(network(from))
	if !known {
		return 0
	}
	missing := max(0, 1-of.left.TokensAt(f.now()))
	return time.Duration(missing * float64(failureForgiven))
}

// check reports whether one more token may be looked at from an address that is
// locked out.
func (f *failures) check(from netip.Addr) bool {
	of, known := f.of.Get(network(from))
	return !known || of.checks.AllowN(f.now(), 1)
}

func (f *failures) add(from netip.Addr) {
	fresh := &failing{rate.NewLimiter(rate.Every(failureForgiven), failuresAtOnce), rate.NewLimiter(checksLocked, checksLocked)}
	of, known, _ := f.of.PeekOrAdd(network(from), fresh)
	if !known {
		of = fresh
	}
	of.left.AllowN(f.now(), 1)
}
