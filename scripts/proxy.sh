#!/usr/bin/env bash
# Usage: scripts/proxy.sh BIN
#
# Tests nized in BIN behind a TLS proxy, with the examples in scripts/proxy,
# changed only in ports and paths:
#
#   nginx   end to end: initialize, a stream whose events and comments come
#           through as they happen, the public origin and no other, the client's
#           address in the audit trail
#   caddy   the same origin, a waiting call's progress, the client's address
#
# Proxies that are not installed are skipped, with a message. Everything
# listens on loopback. It exits with 1 at the first failure, and stops
# everything that it started.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: scripts/proxy.sh BIN" >&2; exit 2; }
bin=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
PATH=$bin:$PATH:/usr/sbin

ok() { printf 'proxy: ok after %3d s: %s\n' "$SECONDS" "$*"; }
fail() {
	echo "proxy: FAILED: $*" >&2
	exit 1
}

for need in nginx curl openssl; do
	command -v "$need" >/dev/null || { echo "proxy: left out: $need is not installed"; exit 0; }
done

work=$(mktemp -d "${TMPDIR:-/tmp}/nize-proxy.XXXXXX")
started=()

cleanup() {
	code=$?
	trap - EXIT
	trap '' HUP INT TERM
	for pid in "${started[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
	for _ in $(seq 200); do
		alive=
		for pid in "${started[@]}"; do if kill -0 "$pid" 2>/dev/null; then alive=1; fi; done
		[ -n "$alive" ] || break
		sleep 0.1
	done
	for pid in "${started[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
	wait 2>/dev/null || true
	if [ "$code" -ne 0 ]; then
		tail -n 20 "$work"/*.log >&2 || true
	fi
	rm -rf "$work"
	exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# eventually WHAT COMMAND… runs it every 0.1 s until it succeeds, for 2 minutes.
eventually() {
	local what=$1 end=$((SECONDS + 120))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || fail "$what: not within 2 minutes"
		sleep 0.1
	done
}

# settled PID COMMAND… succeeds if the process has exited or the command succeeds.
settled() {
	local pid=$1
	shift
	! kill -0 "$pid" 2>/dev/null || "$@"
}

# --- nized, as yet without a proxy --------------------------------------------

unset NIZE_DATA_DIR NIZE_LISTEN NIZE_MCP_PORT NIZE_PUBLIC_URL NIZE_MASTER_KEY
export NIZE_SOCKET=$work/data/nized.sock NIZE_CONFIG=$work/nized.toml NO_COLOR=1
: >"$NIZE_CONFIG"
nized --data-dir "$work/data" --listen 127.0.0.1:0 --log-format text 2>"$work/nized.log" </dev/null &
nized=$!
started+=("$nized")
eventually "nized answers" nizectl status
upstream=$(cat "$work/data/nized.addr")
mkdir "$work/notes"
nizectl servers add toolbox -- nize-toolbox --notes "$work/notes" >/dev/null 2>"$work/out" || fail "adding the toolbox: $(cat "$work/out")"
token=$(nizectl tokens create proxy 2>/dev/null)

# --- nginx, from the example ----------------------------------------------------

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=nize.example.com \
	-addext subjectAltName=DNS:nize.example.com -keyout "$work/privkey.pem" -out "$work/fullchain.pem" 2>"$work/openssl.log"
port=
for try in $(shuf -i 20000-30000 -n 5); do
	sed -e "s|listen 443 |listen 127.0.0.1:$try |" -e "s|listen 80;|listen 127.0.0.1:$((try + 10000));|" \
		-e "s|/etc/ssl/nize.example.com/|$work/|" -e "s|127.0.0.1:19560|$upstream|" scripts/proxy/nginx.conf >"$work/nize.conf"
	cat >"$work/nginx.conf" <<-END
		daemon off;
		worker_processes 1;
		pid $work/nginx.pid;
		error_log $work/nginx.log;
		events {}
		http {
			access_log off;
			client_body_temp_path $work/body;
			proxy_temp_path $work/proxied;
			fastcgi_temp_path $work/fastcgi;
			uwsgi_temp_path $work/uwsgi;
			scgi_temp_path $work/scgi;
			include $work/nize.conf;
		}
	END
	nginx -e "$work/nginx.log" -c "$work/nginx.conf" 2>"$work/nginx.err.log" </dev/null &
	nginx=$!
	started+=("$nginx")
	eventually "nginx listens, or says why not" settled "$nginx" test -s "$work/nginx.pid"
	if kill -0 "$nginx" 2>/dev/null; then port=$try; break; fi
done
[ -n "$port" ] || fail "nginx did not start: $(cat "$work/nginx.err.log")"

# ask CURLFLAGS… sends a request to the public origin, from an address other than nginx's,
# so that the audit trail can distinguish the two.
public=https://nize.example.com:$port
ask() {
	curl -sS --max-time 300 --noproxy '*' --interface 127.0.0.5 --cacert "$work/fullchain.pem" \
		--resolve "nize.example.com:$port:127.0.0.1" --resolve "evil.example:$port:127.0.0.1" "$@"
}
mcp() { # BODY CURLFLAGS…
	local body=$1
	shift
	ask "$public/mcp" -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' "$@" -d "$body"
}
status() { # WANT WHAT CURLFLAGS…
	local want=$1 what=$2 got
	shift 2
	got=$(ask -o "$work/out" -w '%{http_code}' "$@") || fail "$what: curl ended with $?"
	[ "$got" = "$want" ] || fail "$what: HTTP $got, not $want: $(cat "$work/out")"
}

status 403 "before public_url is set" "$public/openapi.json"
cat >"$NIZE_CONFIG" <<END
public_url = "$public"
http.trusted_proxies = ["127.0.0.1"]
END
kill -HUP "$nized"
served() { [ "$(ask -o /dev/null -w '%{http_code}' "$public/openapi.json")" = 200 ]; }
eventually "the public URL holds after a SIGHUP" served
status 200 "its own origin" "$public/openapi.json" -H "Origin: $public"
status 403 "another origin" "$public/openapi.json" -H "Origin: https://evil.example"
status 403 "another host" "$public/openapi.json" -H "Host: evil.example"
status 401 "no token" "$public/mcp" -X POST
ok "nginx: the public origin is served, and no other"

initialize='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"proxy.sh","version":"1"}}}'
mcp "$initialize" -D "$work/headers" >"$work/out" || fail "initialize: curl ended with $?"
grep -q '"serverInfo"' "$work/out" || fail "initialize: $(cat "$work/out")"
grep -qi '^HTTP/2 200' "$work/headers" || fail "initialize: $(cat "$work/headers")"
session=$(tr -d '\r' <"$work/headers" | sed -n 's/^mcp-session-id: //Ip')
[ -n "$session" ] || fail "initialize gives no session: $(cat "$work/headers")"
in_session=(-H "Mcp-Session-Id: $session" -H 'MCP-Protocol-Version: 2025-11-25')
mcp '{"jsonrpc":"2.0","method":"notifications/initialized"}' "${in_session[@]}" >/dev/null
mcp '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' "${in_session[@]}" >"$work/out" || fail "tools/list: curl ended with $?"
grep -q execute_tool "$work/out" || fail "tools/list: $(cat "$work/out")"
ok "nginx: initialize, a session, tools/list, over HTTP/2 and TLS"

# The session's stream is idle; a waiting call sends progress on it.
ask -N "$public/mcp" -H "Authorization: Bearer $token" -H 'Accept: text/event-stream' "${in_session[@]}" >"$work/stream" 2>/dev/null &
stream=$!
started+=("$stream")
mcp '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"toolbox:current_time","params":{"place":"Tokyo"}},"_meta":{"progressToken":"p"}}}' \
	"${in_session[@]}" -N -H 'X-Forwarded-For: 198.51.100.1' >"$work/call" 2>/dev/null &
call=$!
started+=("$call")
eventually "progress of a waiting call comes through while it waits" grep -q notifications/progress "$work/call"
if grep -q '"id":3' "$work/call"; then fail "the call did not wait: $(cat "$work/call")"; fi
id=$(nizectl approvals list --json | sed -n 's/.*"call": "\([^"]*\)".*/\1/p' | head -n 1)
nizectl approvals approve "$id" --yes 2>"$work/out" || fail "approve: $(cat "$work/out")"
eventually "its answer follows on the same stream" grep -q '"id":3' "$work/call"
grep -q 'Asia/Tokyo' "$work/call" || fail "the answer: $(cat "$work/call")"
ok "nginx: a waiting call's progress and answer stream through"

nizectl audit --tool toolbox:current_time --json >"$work/out"
grep -q '"address": *"127.0.0.5"' "$work/out" || fail "the audit trail does not have the client's address: $(cat "$work/out")"
if grep -q '198.51.100.1' "$work/out"; then fail "the audit trail believes a client's own X-Forwarded-For"; fi
ok "nginx: the audit trail has the client's address, not what it sent"

eventually "a comment keeps the quiet stream open" grep -q '^: still here' "$work/stream"
ok "nginx: a quiet stream is kept open by comments"

# --- Caddy, from the example ----------------------------------------------------

# It requests no certificate here and doesn't use port 80; the rest is the example.
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
if command -v caddy >/dev/null; then
	port=
	for try in $(shuf -i 30001-32000 -n 5); do
		if listens "$try"; then continue; fi # somebody else
		{
			printf '{\n\tadmin off\n\tauto_https off\n\tdefault_bind 127.0.0.1\n\tstorage file_system %s/caddy\n}\n' "$work"
			sed -e "s|^nize.example.com {|https://nize.example.com:$try {\n\ttls $work/fullchain.pem $work/privkey.pem|" -e "s|127.0.0.1:19560|$upstream|" scripts/proxy/Caddyfile
		} >"$work/Caddyfile"
		HOME=$work caddy run --adapter caddyfile --config "$work/Caddyfile" >"$work/caddy.log" 2>&1 </dev/null &
		caddy=$!
		started+=("$caddy")
		eventually "caddy listens, or says why not" settled "$caddy" listens "$try"
		if kill -0 "$caddy" 2>/dev/null; then port=$try; break; fi
	done
	[ -n "$port" ] || fail "caddy did not start"
	public=https://nize.example.com:$port
	printf 'public_url = "%s"\nhttp.trusted_proxies = ["127.0.0.1", "::1"]\n' "$public" >"$NIZE_CONFIG"
	kill -HUP "$nized"
	eventually "the public URL behind caddy holds after a SIGHUP" served
	status 403 "another origin, behind caddy" "$public/openapi.json" -H "Origin: https://evil.example"
	mcp "$initialize" -D "$work/headers" >"$work/out" || fail "initialize behind caddy: curl ended with $?"
	session=$(tr -d '\r' <"$work/headers" | sed -n 's/^mcp-session-id: //Ip')
	[ -n "$session" ] || fail "initialize behind caddy gives no session: $(cat "$work/headers" "$work/out")"
	in_session=(-H "Mcp-Session-Id: $session" -H 'MCP-Protocol-Version: 2025-11-25')
	mcp '{"jsonrpc":"2.0","method":"notifications/initialized"}' "${in_session[@]}" >/dev/null
	mcp '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"execute_tool","arguments":{"tool_id":"toolbox:roll_dice","params":{"dice":"2d6"}},"_meta":{"progressToken":"q"}}}' \
		"${in_session[@]}" -N -H 'X-Forwarded-For: 198.51.100.1' >"$work/call2" 2>/dev/null &
	started+=("$!")
	eventually "progress of a waiting call comes through caddy while it waits" grep -q notifications/progress "$work/call2"
	id=$(nizectl approvals list --json | sed -n 's/.*"call": "\([^"]*\)".*/\1/p' | head -n 1)
	nizectl approvals approve "$id" --yes 2>"$work/out" || fail "approve: $(cat "$work/out")"
	eventually "its answer follows through caddy" grep -q '"id":4' "$work/call2"
	nizectl audit --tool toolbox:roll_dice --json >"$work/out"
	grep -q '"address": *"127.0.0.5"' "$work/out" || fail "behind caddy the audit trail does not have the client's address: $(cat "$work/out")"
	if grep -q '198.51.100.1' "$work/out"; then fail "behind caddy the audit trail believes a client's own X-Forwarded-For"; fi
	ok "caddy: the public origin, a waiting call's progress, the client's address"
else
	echo "proxy: left out: caddy is not installed"
fi

kill -TERM "$nized"
wait "$nized" || fail "nized ended with $?"
ok "nized ends with 0 while a stream is open"
