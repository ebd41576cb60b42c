package config

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var sizeForm = regexp.MustCompile(`\A([0-9]+) ?([A-Za-z]*)\z`)

// sizeUnits are the units a size may have; none means bytes.
var sizeUnits = map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}

func parseSize(s string) (int64, bool) {
	form := sizeForm.FindStringSubmatch(s)
	if form == nil {
		return 0, false
	}
	unit, known := sizeUnits[form[2]]
	n, err := strconv.ParseInt(form[1], 10, 64)
	if !known || err != nil || n > math.MaxInt64/unit {
		return 0, false
	}
	return n * unit, true
}

// size is a number of bytes, as 64MiB or 65536.
func size(o *object, name string, missing, least int64) int64 {
	n := o.value(name)
	if n == nil {
		return missing
	}
	bytes, ok := parseSize(n.text)
	if !ok || n.kind != textKind && n.kind != numberKind {
		o.errorf(o.child(name), n.pos, "%s is %s, want a size as 64MiB (B, KiB, MiB, GiB) or a number of bytes", name, n.describe())
		return missing
	}
	if bytes < least {
		o.errorf(o.child(name), n.pos, "%s is %s, want at least %d bytes", name, n.describe(), least)
	}
	return bytes
}

// duration is a Go duration, a number of days as 90d, or a number of seconds;
// never negative.
func duration(o *object, name string, missing time.Duration) time.Duration {
	n := o.value(name)
	if n == nil {
		return missing
	}
	d, ok := ParseDuration(n.text)
	if !ok || n.kind != textKind && n.kind != numberKind {
		o.errorf(o.child(name), n.pos, "%s is %s, want a duration as 90s, 12h or 30d, or a number of seconds", name, n.describe())
		return missing
	}
	return d
}

// ParseDuration reads a duration as the server file has it: 90s, 12h, 30d, or a
// number of seconds; not negative, and at most a hundred years.
func ParseDuration(s string) (time.Duration, bool) {
	const most = 100 * 365 * 24 * time.Hour
	unit := time.Second
	digits, days := strings.CutSuffix(s, "d")
	if days {
		unit = 24 * time.Hour
	}
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return time.Duration(n) * unit, n >= 0 && n <= int64(most/unit)
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d >= 0 && d <= most
}
