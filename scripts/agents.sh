#!/usr/bin/env bash
# Usage: scripts/agents.sh BIN NODE_DIR
#
# Tests the programs in BIN with third-party coding agents, installed in
# NODE_DIR by `npm ci --ignore-scripts` from scripts/agents: their hooks ask nize before
# a shell command, with a scripted model and a simulated Slack on loopback. Missing agents
# are skipped, and the last line lists them.
#
# Linux on x86-64 only: the agents are binaries, not scripts.
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: scripts/agents.sh BIN NODE_DIR" >&2; exit 2; }
bin=$(realpath "$1")
modules=$(realpath "$2")/node_modules
cd "$(dirname "$0")/.."

# one PATH prints PATH if it is executable.
one() { [ ! -x "$1" ] || echo "$1"; }
claude=$(one "$modules/@anthropic-ai/claude-code-linux-x64/claude")
codex=$(one "$modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex")
go run -tags urfave_cli_no_template ./scripts/agents -bin "$bin" -claude "$claude" -codex "$codex"
