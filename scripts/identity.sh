#!/usr/bin/env bash
# Usage: scripts/identity.sh BIN NODE_DIR
#
# Signs people in to the real programs in BIN with a company's account, in Debian's
# Chromium, with what `npm ci --ignore-scripts` installed in NODE_DIR from
# scripts/identity: oidc-provider is the identity provider. Consent of an MCP client,
# groups that approve and make admins, keys replaced in the middle, signing out at the
# provider, oidc.required, and what the page says if a sign-in fails.
#
# Without Chromium it reports that it was left out.
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
