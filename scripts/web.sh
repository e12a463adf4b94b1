#!/usr/bin/env bash
# Usage: [ONLY=NAME] scripts/web.sh BIN NODE_DIR
#
# Checks the types of the chat page's modules, and drives the page of the real programs
# in BIN in Debian's Chromium, with what `npm ci --ignore-scripts` installed in NODE_DIR
# from scripts/web: signing in, a question, its card, a press that comes too early, a
# yes that three tabs show, edited arguments, nized killed with a card open and back, an
# input method, a phone in the dark in Chinese, keys, signing out, an answer that is
# drawn while it is written; cards edited by a form of every kind, run together, answered
# for good, hostile ones, results of 200 KB, notifications; views of tools, on the page
# and in another host. axe looks at each state; pictures of them go to NIZE_SHOTS, else
# to a temporary directory. ONLY names one file of tests.
#
# A machine without Chromium leaves that out, and says so.
set -euo pipefail
bin=$(cd "$1" && pwd)
node=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
cp scripts/web/*.mjs scripts/web/tsconfig.json scripts/web/hljs.d.ts "$node"
cp -r bots/web/page "$node"
"$node/node_modules/.bin/tsc" -p "$node"
CHROMIUM=${CHROMIUM:-$(command -v chromium || true)}
if [ -z "$CHROMIUM" ]; then
	echo "left out: there is no chromium"
	exit
fi
go build -o "$node/history" ./scripts/web/history
CHROMIUM=$CHROMIUM NIZE_BIN=$bin NIZE_HISTORY=$node/history node --test --test-concurrency=1 "$node"/${ONLY:-*}.test.mjs
