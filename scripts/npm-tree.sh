#!/bin/bash
# Installs what tests take from npm, below the directory TO: what FROM/package-lock.json names. At once when that is there
# already. Status 1 if it cannot be had.
#
#   scripts/npm-tree.sh tests/mcp/clients build/mcp-clients   other people's MCP clients, the official conformance suite,
#                                                             and a Node that is new enough for them
#   scripts/npm-tree.sh tests/lab/browser build/lab-browser   what drives the browser that the lab's page is tried in
#
# Usage: scripts/npm-tree.sh FROM TO
set -euo pipefail
cd "$(dirname "$0")/.."
from=$1 to=$2

if cmp -s "$from/package-lock.json" "$to/package-lock.json" && [ -e "$to/done" ]; then
    exit 0
fi
command -v npm >/dev/null || scripts/deps.sh npm || exit 1
rm -rf "$to"
mkdir -p "$to"
cp "$from/package.json" "$from/package-lock.json" "$to/"
echo "npm-tree: installing what $from names" >&2
# No package's own scripts: what is wanted is there without them.
if ! (cd "$to" && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier) >"$to/log" 2>&1; then
    tail -n 20 "$to/log" >&2
    echo "npm-tree: npm could not install it" >&2
    exit 1
fi
# The inspector's command line is a package of its own, too, but reads its version from the whole, which is of 260 packages.
inspector=$to/node_modules/@modelcontextprotocol
[ ! -d "$inspector/inspector-cli" ] || cp "$inspector"/{inspector-cli/,}package.json
touch "$to/done"
