package config

import (
	"strings"

	"stopgate/gate"
)

// wrapping is shell round a command that makes one law of another. A sub-shell
// keeps its exits inside, and line breaks its comments and here-documents.
type wrapping struct{ head, tail string }

var (
	bare     = wrapping{}
	muted    = wrapping{"(\n", "\n) >&2\ntrue"}
	opened   = wrapping{"(\n", "\n)" + otherwise("exit 1")}
	closed   = wrapping{"(\n", "\n)" + otherwise("exit 2")}
	closedBy = wrapping{"(\n", "\n) >&2" + otherwise("exit 2")} // by its exit code alone

	// In antigravity no exit code refuses.
	denyAt2   = wrapping{denyHead, denyTail + "\ncode=$?\ncase $code in 2) cat <&8 >&2; " + denial + " ;; *) cat <&8; exit $code ;; esac"}
	denyAny   = wrapping{denyHead, denyTail + "\ncase $? in 0) cat <&8 ;; *) cat <&8 >&2; " + denial + " ;; esac"}
	denyByEnd = wrapping{"(\n", "\n) >&2" + otherwise(denial)}

	// In azure a Stop is let go that is refused without a reason (spec/azure.md 34).
	reasoned   = wrapping{reasonHead + "(\n", "\n) 2>&9 7<&- 8<&- 9>&-" + reasonTail}
	reasonedBy = wrapping{reasonHead + "(\n(\n", "\n) >&2" + otherwise("exit 2") + "\n) 2>&9 7<&- 8<&- 9>&-" + reasonTail}

	// The plain text that AX Code gives the agent is additionalContext in an answer
	// elsewhere.
	fed = wrapping{keep + " || exit 1\n(\n", "\n) >&9 7<&- 8<&- 9>&-" + otherwise("exit 1") + "\n" + fedTail}
)

const (
	// What a command writes is kept in a file that has no name any more, to be read at
	// 7 and at 8: a variable would lose its NULs and last line breaks, and wait for
	// whatever the command leaves running. The command itself has none of these.
	keep = `kept=$(mktemp) && exec 7<"$kept" 8<"$kept" 9>|"$kept" && rm -f "$kept" && unset kept`

	// A gate that cannot keep an answer denies: it could not tell one from a refusal.
	denyHead = keep + " || { " + denial + "; exit; }\n(\n"
	denyTail = "\n) >&9 7<&- 8<&- 9>&-"
	denial   = `echo '{"decision":"deny","reason":"A hook refused this call by its exit code."}'`

	// Without a file every refusal has the fixed reason behind its own. What has no
	// letter, digit or mark of ASCII in it may be white space.
	reasonHead = keep + " || exec 7</dev/null 8</dev/null 9>&2\n"
	reasonTail = "\ncode=$?\ncat <&8 >&2\n" +
		`case $code in 2) LC_ALL=C grep -q '[!-~]' <&7 || echo 'A hook refused this stop by its exit code.' >&2 ;; esac` +
		"\nexit $code"

	// JSON has no control characters in its texts: line breaks and tabs are escaped,
	// the others, which nobody reads, are left out; and so are empty lines at the ends.
	fedTail = `! LC_ALL=C grep -q '[^[:space:]]' <&7 || printf '{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"%s"}}\n' "$(` +
		`tr -d '\000-\010\013-\037\177' <&8 | sed 's/[\"]/\\&/g' | ` +
		`awk 'BEGIN { ORS = "" } /./ { gsub(/\t/, "\\t"); print (said ? gap : "") $0; said = 1; gap = "" } { gap = gap "\\n" }')"`
)

// otherwise does something where what stands before it failed. After || bash would
// let the command go on where its own set -e or trap on ERR ends it.
func otherwise(do string) string { return "\ncase $? in 0) ;; *) " + do + " ;; esac" }

// express is how a dialect says a law: its own fields in h, and what is put
// round the command.
func express(h *gate.Hook, l law) wrapping {
	switch h.Dialect {
	case gate.Antigravity:
		if watchedOnly(h.Dialect, h.Event) {
			return bare
		}
		return map[law]wrapping{watches: muted, speaks: bare, refuses: denyAt2, failsClosed: denyAny, exitCloses: denyByEnd}[l]
	case gate.AXCode:
		h.ReadsAnswer = l != watches && l != exitCloses && l != feeds && !watchedOnly(h.Dialect, h.Event)
		h.BlockOnFailure = l == exitCloses && gate.AXCodeBlocks(h.Event)
		switch {
		case h.BlockOnFailure:
			h.FailMode = gate.FailBlock
		case h.ReadsAnswer:
			return map[law]wrapping{speaks: opened, refuses: bare, failsClosed: closed}[l]
		case h.Event == gate.PostToolUse && l != feeds: // what it prints would be feedback
			return muted
		}
		return bare
	case gate.Azure:
		if l == failsClosed || l == exitCloses {
			h.FailMode = gate.FailBlock
		}
		if h.Event == gate.Stop {
			return map[law]wrapping{watches: muted, speaks: opened, refuses: reasoned, failsClosed: reasoned, exitCloses: reasonedBy}[l]
		}
		return map[law]wrapping{watches: muted, speaks: opened, refuses: bare, failsClosed: bare, exitCloses: closedBy, feeds: fed}[l]
	}
	return map[law]wrapping{watches: muted, speaks: opened, refuses: bare, failsClosed: closed, exitCloses: closedBy, feeds: fed}[l]
}

// unwrapped is a hook's command without a wrapping of ours, and the law that it
// has with it.
func unwrapped(d *declared) (string, law) {
	line, l, _ := unwrap(d)
	return line, l
}

// ownWrapping is the wrapping of ours that a hook's command has round it.
func ownWrapping(d *declared) wrapping {
	_, _, w := unwrap(d)
	return w
}

// unwrap tries first what has more round a command.
func unwrap(d *declared) (string, law, wrapping) {
	for _, l := range []law{exitCloses, watches, speaks, refuses, failsClosed, feeds} {
		h := gate.Hook{Dialect: d.Dialect, Event: d.Event, FailMode: gate.FailAllow}
		w := express(&h, l)
		if w == bare || h.FailMode != d.FailMode || h.ReadsAnswer != d.ReadsAnswer || h.BlockOnFailure != d.BlockOnFailure {
			continue
		}
		if inner, ok := strings.CutPrefix(d.Command, w.head); ok && d.Args == nil {
			if inner, ok = strings.CutSuffix(inner, w.tail); ok && readBash(inner) == nil {
				return inner, l, w
			}
		}
	}
	return d.Command, ownLaw(&d.Hook), bare
}
