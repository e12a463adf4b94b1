#!/usr/bin/env bash
# Usage: scripts/failover.sh BIN [-for 10m]
#
# Runs three nized on a separate PostgreSQL, and kills and stops them and the database
# under load.
set -euo pipefail
bin=$(realpath "$1")
shift
cd "$(dirname "$0")/.."
server=$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort -V | tail -1)
[ -n "$server" ] || { echo "failover: there is no PostgreSQL below /usr/lib/postgresql" >&2; exit 1; }
work=$(mktemp -d /tmp/nize-fo.XXXXXX)
as=()
mkdir "$work/pg" "$work/nized"
if [ "$(id -u)" -eq 0 ]; then
	chmod 755 "$work"
	chown postgres "$work/pg"
	as=(runuser -u postgres --)
fi
control=("${as[@]}" "$server/pg_ctl" -D "$work/pg/data" -l "$work/pg/log" -w)
trap 'cd /; "${control[@]}" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
(
	cd "$work/pg"
	"${as[@]}" "$server/initdb" -D data -A trust -U nize >/dev/null
	"${control[@]}" -o "-k $work/pg -c listen_addresses= -p 5432" start >/dev/null
)
go build -o "$work/failover" -tags urfave_cli_no_template ./scripts/failover
cat >"$work/restart" <<EOF
#!/bin/sh
cd $work/pg && exec ${control[*]} -m immediate restart </dev/null >/dev/null 2>&1
EOF
chmod +x "$work/restart"
code=0
NIZE_DATABASE="postgres://nize@/postgres?host=$work/pg&port=5432" "$work/failover" -bin "$bin" -dir "$work/nized" -restart "$work/restart" "$@" || code=$?
[ "$code" -eq 0 ] || { grep -v '"level":"\(INFO\|DEBUG\)"' "$work/nized/log" | tail -n 40 >&2; }
exit "$code"
