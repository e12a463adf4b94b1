#!/usr/bin/env bash
# Usage: scripts/identity.sh BIN NODE_DIR
#
# Signs people in to the programs in BIN with company accounts, in Debian's
# Chromium, with the packages that `npm ci --ignore-scripts` installed in NODE_DIR from
# scripts/identity: oidc-provider is the identity provider. It tests the consent of an MCP
# client, groups that approve and make admins, key rotation, signing out at the
# provider, oidc.required, and the page's errors if a sign-in fails.
#
# Without Chromium it is skipped, with a message.
set -euo pipefail
bin=$(cd "$1" && pwd)
node=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
CHROMIUM=${CHROMIUM:-$(command -v chromium || true)}
if [ -z "$CHROMIUM" ]; then
	echo "left out: there is no chromium"
	exit
fi
cp scripts/identity/*.mjs scripts/web/stand.mjs "$node"
CHROMIUM=$CHROMIUM NIZE_BIN=$bin node --test "$node/identity.test.mjs"
