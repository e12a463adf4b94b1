#!/usr/bin/env bash
# Usage: [ONLY=NAME] scripts/web.sh BIN NODE_DIR
#
# Checks the types of the chat page's modules, and tests the page of the programs
# in BIN in Debian's Chromium, with the packages that `npm ci --ignore-scripts` installed
# in NODE_DIR from scripts/web: signing in, a question, its card, a press that is too
# early, an approval shown in three tabs, edited arguments, a restart of nized with an open
# card, an input method, a dark phone screen in Chinese, keys, signing out, a streamed
# answer; cards with every kind of form, run together, standing answers, hostile cards,
# results of 200 KB, notifications; views of tools, on the page and in another host; where
# the focus goes, whether long words fit, and what people's tasks take in clicks. axe
# checks each state; screenshots are saved in NIZE_SHOTS, or else in a temporary
# directory. ONLY selects one test file.
#
# Without Chromium the browser tests are skipped, with a message.
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
