#!/usr/bin/env bash
# Usage: scripts/upgrade.sh OLD NEW
#
# Tests the steps in UPGRADE.md with two builds (directories of programs): the old nized
# creates data, the new one upgrades it, then the old one opens it again. The old one must
# either work with it, or refuse it with one sentence; in both cases the backup from
# before the upgrade must work, and so must the upgrade after it.
set -euo pipefail
old=$(realpath "$1") new=$(realpath "$2")
work=$(mktemp -d "${TMPDIR:-/tmp}/nize-upgrade.XXXXXX")
pid=
cleanup() {
	[ -z "$pid" ] || { kill -TERM "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; } || true
	rm -rf "$work"
}
trap cleanup EXIT
unset NIZE_CONFIG NIZE_LISTEN NIZE_SOCKET OPENAI_API_KEY
export NIZE_DATA_DIR=$work/data HOME=$work NIZE_ALERTS_DISK=0
fail() {
	echo "upgrade: FAILED: $*" >&2
	[ ! -s "$work/log" ] || tail -n 5 "$work/log" >&2
	exit 1
}

# start BUILD starts a nized, and fails if it exits before it responds.
start() {
	bin=$1
	"$bin/nized" --listen 127.0.0.1:0 2>"$work/log" </dev/null &
	pid=$!
	until ctl status >/dev/null 2>&1; do
		kill -0 "$pid" 2>/dev/null || { wait "$pid" || code=$?; pid=; return "${code:-1}"; }
		sleep 0.1
	done
}
stop() {
	kill -TERM "$pid"
	wait "$pid" || fail "nized of ${bin#"$work/"} ended with $?"
	pid=
}
ctl() { "$bin/nizectl" "$@" </dev/null; }
# has WHAT TEXT COMMAND… fails unless a command prints a text.
has() {
	local what=$1 text=$2
	shift 2
	ctl "$@" >"$work/out" 2>&1 || { cat "$work/out" >&2; fail "$what: nizectl $*"; }
	grep -q -- "$text" "$work/out" || { cat "$work/out" >&2; fail "$what: nizectl $* does not print $text"; }
}

# everything WHO checks all that was created with the old nized.
everything() {
	has "$1" 'mia .*admin' users list
	has "$1" 42 tools call toolbox:calculate --args '{"expression":"6*7"}'
	has "$1" 'in Tokyo' tools call toolbox:current_time --args '{"place":"Tokyo"}'
	has "$1" 'toolbox .*ready' servers list
	has "$1" laptop tokens list --user mia
	has "$1" 17s config get drain.grace
	has "$1" 'crew' groups list
	has "$1" 'the audit trail holds' audit verify
	has "$1" toolbox:time_difference tools search 'difference between two time zones'
	local thread
	thread=$(<"$work/thread")
	has "$1" 'What time is it in Tokyo' chat show "$thread" --reason 'the upgrade is tried'
	has "$1" 'in Oslo (Europe' chat -m 'What time is it in Oslo?' --approve all
	local code
	code=$(curl -s -o "$work/out" -w '%{http_code}' -H "Authorization: Bearer $(<"$work/token")" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
		-d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' "http://$(<"$work/data/nized.addr")/mcp")
	[ "$code" = 200 ] || { cat "$work/out" >&2; fail "$1: the token of the old nized gets $code"; }
}

echo "upgrade: from $("$old/nizectl" --version) to $("$new/nizectl" --version)"
start "$old" || fail "the old nized does not start"
ctl servers add toolbox -- "$old/nize-toolbox" >/dev/null 2>&1 || fail "servers add"
ctl servers share toolbox --with all 2>/dev/null
ctl users add mia --role admin 2>/dev/null
ctl groups add crew --members mia 2>/dev/null
ctl tokens create laptop --user mia >"$work/out" 2>/dev/null
grep -oE 'nize_[A-Za-z0-9_-]+' "$work/out" | head -n 1 >"$work/token"
ctl config set drain.grace 17s >/dev/null 2>&1 || fail "config set"
ctl chat -m 'What time is it in Tokyo?' --approve all --json >"$work/out" 2>/dev/null
grep -oE '"thread":"[^"]+"' "$work/out" | head -n 1 | cut -d '"' -f 4 >"$work/thread"
everything "the old nized"
ctl backup "$work/before-upgrade.db" >/dev/null 2>&1 || fail "backup"
ctl keys export --to "$work/key.txt" --yes >/dev/null 2>&1 || fail "keys export"
stop

start "$new" || fail "the new nized does not start on the old data"
everything "the new nized"
ctl users add ann 2>/dev/null || fail "users add"
ctl servers edit toolbox --description 'tools for the day' >/dev/null 2>&1 || fail "servers edit"
ctl chat -m '17 percent of 2340' --approve all >/dev/null 2>&1 || fail "chat"
stop
echo "upgrade: the new nized has all that the old one had"

if start "$old"; then
	everything "the old nized, back"
	has "the old nized, back" ann users list
	stop
	echo "upgrade: the old nized works on what the new one left"
else
	[ "$(grep -c . "$work/log")" -eq 1 ] || fail "the old nized refuses the new data, with more than one line"
	grep -q 'restore the backup made before the upgrade' "$work/log" || fail "the old nized does not say what to do"
	echo "upgrade: the old nized refuses what the new one left: $(<"$work/log")"
fi

"$old/nized" restore "$work/before-upgrade.db" --keep-access >"$work/out" 2>&1 || { cat "$work/out" >&2; fail "restoring the backup with the old nized"; }
start "$old" || fail "the old nized does not start after the restore"
everything "the old nized, restored"
ctl users list | grep -q ann && fail "the restored data has what came after the backup"
stop
echo "upgrade: the backup from before serves the old nized"
start "$new" || fail "the new nized does not start the second time"
everything "the new nized, again"
stop
echo "upgrade: and the upgrade works again after it"
