#!/usr/bin/env bash
# Copies a data directory of stopgate while a server uses it:
#
#   backup.sh /var/lib/stopgate /backup/stopgate-2026-12-01
#
# The database by SQLite's online backup, checked, and then the conversations that
# were uploaded. The target must not exist; it appears when it is whole. To
# restore: stop the server, put the target in the place of the data directory,
# owned by the server's user, and start it.
set -euo pipefail
if [ $# -ne 2 ]; then
	echo "usage: backup.sh DATA TARGET" >&2
	exit 64
fi
data=$1 target=$2
[ -f "$data/stopgate.db" ] || { echo "$data holds no stopgate.db" >&2; exit 65; }
[ ! -e "$target" ] || { echo "$target is there already" >&2; exit 73; }
umask 077
part=$(mktemp -d "$target.part.XXXXXX")
trap 'rm -rf "$part"' EXIT
python3 - "$data/stopgate.db" "$part/stopgate.db" <<'PYTHON'
import sqlite3, sys, urllib.parse
source = sqlite3.connect("file:" + urllib.parse.quote(sys.argv[1]) + "?mode=ro", uri=True, timeout=30)
copy = sqlite3.connect(sys.argv[2])
with copy:
    source.backup(copy)  # all at once: a copy in steps begins anew with each commit
copy.execute("PRAGMA journal_mode = DELETE")
state = copy.execute("PRAGMA integrity_check").fetchone()[0]
copy.close()
if state != "ok":
    sys.exit("the copy is damaged: " + state)
PYTHON
if [ -d "$data/transcripts" ]; then
	cp -a "$data/transcripts" "$part/transcripts"
fi
mv -T "$part" "$target"
trap - EXIT
