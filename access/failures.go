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
	// rememberedAddresses bounds the memory that anybody can fill, at some 200
	// bytes each. Who is pushed out begins anew.
	rememberedAddresses = 10_000
)

// failures counts wrong credentials by the address that they came from.
type failures struct {
	now func() time.Time
	of  *lru.Cache[netip.Addr, *rate.Limiter]
}

func newFailures(now func() time.Time) (*failures, error) {
	of, err := lru.New[netip.Addr, *rate.Limiter](rememberedAddresses)
	return &failures{now, of}, err
}

// network is what one caller can choose addresses from: an IPv6 host has a /64.
func network(from netip.Addr) netip.Addr {
	if p, err := from.Prefix(64); err == nil && from.Is6() {
		return p.Addr()
	}
	return from
}

// wait is how long an address is locked out still; 0: it is not.
func (f *failures) wait(from netip.Addr) time.Duration {
	left, ok := f.of.Get(network(from))
	if !ok {
		return 0
	}
	missing := 1 - left.TokensAt(f.now())
	if missing <= 0 {
		return 0
	}
	return time.Duration(missing * float64(failureForgiven))
}

func (f *failures) add(from netip.Addr) {
	fresh := rate.NewLimiter(rate.Every(failureForgiven), failuresAtOnce)
	left, known, _ := f.of.PeekOrAdd(network(from), fresh)
	if !known {
		left = fresh
	}
	left.AllowN(f.now(), 1)
}
