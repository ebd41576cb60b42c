// Package transcripts keeps conversations on disk and lets a judge read them.
//
// A conversation comes by upload ([Store.Replace], [Store.Append]), inside an
// event, or as the name of a file on this machine. What hooks get is its view:
// plain text, one line per line, which ReadFile and GrepSearch number. A
// text/plain conversation is its own view; messages are rendered.
//
// # The rendered view
//
// Every message begins with a marker line and goes on with its content, line by
// line as it is:
//
//	=== user ===
//	Deploy it, please.
//	=== assistant calls Bash (call_1) ===
//	{"command":"make deploy"}
//	=== tool Bash (call_1) ===
//	deployed
//	=== assistant ===
//	Done.
//
// Content cannot forge a marker: a content line that would look like one, white
// space and backslashes at its start put aside, gets a backslash in front.
// Other lines that begin with "===" (go test's "=== RUN") stay as they are. Who
// uploads text/plain writes the view, and so the markers, too: untrusted
// conversations are better sent as messages.
// Control characters become visible signs (␛, ␍), so that a line stays a line.
//
// # Session files of agent hosts
//
// A file that Claude Code, Codex, Copilot CLI, Gemini CLI or Qwen Code writes is
// rendered the same way, read leniently, by the event's TranscriptFormat; host.go
// says how, and each format has a file of its own (hostclaudecode.go, …). System
// prompts, attachments, snapshots, notices of hooks and thinking are left out.
// Results over 32 KiB are cut in the middle, with a note; a call that failed has
// "failed" in its result's marker. Lines that are no JSON object, are cut off or
// are longer than 64 MiB are left out and counted in the view's last line. The
// answer under judgement is the payload's own and stands in the view once: it is
// added if the file does not end with it (spec/claude-code.md 10). The view knows
// the host's version where the file names it ([gate.ByHost]).
//
// Between two events of one session the view is kept, with where the file's
// lines lie: what the host has written since is read and rendered behind it, as
// long as the file is the same and has only grown. It is known by its inode, its
// size, its change time and the sums of what was read: all of it up to 1 MiB, of
// more the beginning, the end and pieces at random. What is kept is bounded in
// memory and on disk, belongs to one session and one file, and goes when the
// session is erased, after an hour without an event, or with the process.
//
// Such a file of another machine is uploaded as it is, part by part
// ([Store.AppendFile]), and rendered when an event needs it.
//
// # Secrets
//
// With [Options.Masks] secrets are hidden in all that is written here: what is sent,
// while it comes and where it is kept, and copies and views of what lies elsewhere. A
// mask is as long as what it hides, so that sizes, lines and offsets are those of what
// was sent. Of a host's file only whole lines are then taken, so that each can be looked
// into as JSON, and the sum that the next part is compared with is of what was sent.
//
// # On disk
//
//	sessions/<sha256 of the session id>/meta.json      the commit record: which view, how much of it counts
//	sessions/<…>/<generation>.txt                      the view
//	sessions/<…>/<generation>.txt.idx                  where lines begin, one mark per 64 KiB
//	locks/<first byte>                                 flock: one writer per session, over all processes
//	tmp/<process>/                                     uploads on their way, the views that readers hold, and those that are kept
//
// An upload is spooled before it touches the session, so a client that stalls
// or goes away holds no lock and leaves no trace. Bytes beyond what meta.json
// counts were never acknowledged: no reader sees them, and the next writer cuts
// them off. Directories have mode 0700, files 0600.
package transcripts
