#!/bin/bash
# Installs other people's MCP clients and the official conformance suite, which `mayfly mcp` is tried with, below the
# directory given: what tests/mcp/clients/package-lock.json names, with a Node that is new enough for them. At once when
# that is there already. Status 1 if it cannot be had.
#
# Usage: scripts/mcp-clients.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."
to=$1 lock=tests/mcp/clients/package-lock.json

if cmp -s $lock "$to/package-lock.json" && [ -e "$to/done" ]; then
    exit 0
fi
command -v npm >/dev/null || scripts/deps.sh npm || exit 1
rm -rf "$to"
mkdir -p "$to"
cp tests/mcp/clients/package.json $lock "$to/"
echo "mcp-clients: installing with npm" >&2
# No package's own scripts: what is wanted is there without them.
if ! (cd "$to" && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier) >"$to/log" 2>&1; then
    tail -n 20 "$to/log" >&2
    echo "mcp-clients: npm could not install them" >&2
    exit 1
fi
# The inspector's command line is a package of its own, too, but reads its version from the whole, which is of 260 packages.
cp "$to"/node_modules/@modelcontextprotocol/{inspector-cli/,}package.json
touch "$to/done"
