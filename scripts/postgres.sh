#!/usr/bin/env bash
# Usage: scripts/postgres.sh [COMMAND…]
#
# Runs the store's contract tests and some tests of nized on a separate PostgreSQL, which
# listens only on a socket in a temporary directory. For root, the server runs as the user
# of Debian's package. If there is a COMMAND, it runs instead, with the server's URL
# in NIZE_TEST_POSTGRES.
set -euo pipefail
cd "$(dirname "$0")/.."
server=$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort -V | tail -1)
[ -n "$server" ] || { echo "postgres: there is no PostgreSQL below /usr/lib/postgresql" >&2; exit 1; }
fsync=off
[ $# -eq 0 ] || fsync=on
work=$(mktemp -d /tmp/nize-pg.XXXXXX)
as=()
if [ "$(id -u)" -eq 0 ]; then
	chown postgres "$work"
	as=(runuser -u postgres --)
fi
trap 'cd /; "${as[@]}" "$server/pg_ctl" -D "$work/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$work" "$work.log"' EXIT
(
	cd "$work"
	"${as[@]}" "$server/initdb" -D "$work/data" -A trust -U nize >"$work.log"
	"${as[@]}" "$server/pg_ctl" -D "$work/data" -o "-k $work -c listen_addresses= -c fsync=$fsync -p 5432" -l "$work/log" -w start >>"$work.log"
) || { cat "$work.log" >&2; exit 1; }
rm -f "$work.log"
export NIZE_TEST_POSTGRES="postgres://nize@/postgres?host=$work&port=5432"
if [ $# -gt 0 ]; then
	"$@"
	exit
fi
go test -count=1 -tags urfave_cli_no_template ./store/kv/postgres
go test -count=1 -tags urfave_cli_no_template ./store/database -run TestPostgres
go test -count=1 -tags urfave_cli_no_template ./daemon -run "TestStandby|TestOutage|TestTrips"
go test -count=1 -tags urfave_cli_no_template ./cmd/nizectl -run TestScripts/postgres
