package gate

import "strings"

// maxVersion is the longest version that is taken, in bytes: that of a build
// from a branch, 0.61.0-nightly.20261130.0123456789ab, has some 40.
const maxVersion = 64

// PlainVersion is a version of a host as it may stand in a record: the text, if
// it is at most 64 bytes of ASCII letters, digits and . + - _; else empty.
// Session files and requests, which name versions, are anybody's to write.
func PlainVersion[T string | []byte](text T) string {
	if len(text) > maxVersion {
		return ""
	}
	for i := range len(text) {
		c := text[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && !('0' <= c && c <= '9') && strings.IndexByte(".+-_", c) < 0 {
			return ""
		}
	}
	return string(text)
}

// ByHost is a [Transcript] that an agent host wrote.
type ByHost interface {
	// WrittenBy is the host, as its protocol is called, and its version, a
	// [PlainVersion]; empty: the transcript does not say.
	WrittenBy() (host, version string)
}

// learnVersion takes the host's version from a transcript of its own, unless the
// request itself has named it.
func (e *evaluation) learnVersion(t Transcript) {
	written, ok := t.(ByHost)
	if !ok || e.ev.HostVersion != "" {
		return
	}
	if host, version := written.WrittenBy(); host == e.ev.Protocol {
		e.ev.HostVersion = version
	}
}

// untried is what the record remarks of the host's version.
func (e *evaluation) untried() string {
	if e.ev.HostVersion == "" || e.gate.Untried == nil {
		return ""
	}
	return e.gate.Untried(e.ev.Protocol, e.ev.HostVersion)
}
