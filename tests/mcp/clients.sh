#!/bin/bash
# The functions of test_clients.c: others' clients, and the official conformance suite, call the program. URL is where a
# server of the suite's own tools listens, which the test has started.
# shellcheck disable=SC2164 # under set -e, as the prelude has it

clients=$PWD/build/mcp-clients mayfly=$PWD/$B/mayfly
flags=(mcp --no-log --rootfs "$ROOTFS")
[ -z "${BEST_EFFORT:-}" ] || flags+=(--limits=best-effort)

ready() {
    local arch
    case $(uname -m) in x86_64) arch=x64 ;; aarch64) arch=arm64 ;; *) arch=none ;; esac
    [ -e "$clients/done" ] || skip npm "the clients are not installed (scripts/npm-tree.sh tests/mcp/clients $clients)"
    node=$clients/node_modules/node-linux-$arch/bin/node
    [ -x "$node" ] || node=node
    cp tests/mcp/clients/*.mjs "$clients/"
}

# `mayfly mcp --http`, at $url, until the function ends
serve() {
    "$mayfly" "${flags[@]}" --http 0 >"$T/url" &
    server=$!
    trap 'kill $server; wait $server || true; rm -rf "$T"' EXIT
    for _ in $(seq 200); do
        [ -s "$T/url" ] && break
        sleep 0.05
    done
    url=$(cat "$T/url")
}

the_conformance_suite_passes_with_its_own_tools() {
    ready
    cd "$T"
    "$node" "$clients/node_modules/@modelcontextprotocol/conformance/dist/index.js" server --url "$URL" --suite all \
        --expected-failures "$OLDPWD/tests/mcp/clients/expected.yml" >"$T/out" 2>&1 || { cat "$T/out" && fail "it does not"; }
    has "$(cat "$T/out")" "✓ tools-call-with-progress"
    has "$(cat "$T/out")" "✓ dns-rebinding-protection: 2 passed"
}

the_program_passes_what_of_the_suite_needs_no_tool_of_its_own() {
    local name all
    ready
    serve
    # The suite calls tools by these names.
    cp tests/mcp/clients/expected.yml "$T/"
    for name in simple-text image audio embedded-resource mixed-content with-logging error with-progress; do
        echo "  - tools-call-$name" >>"$T/expected.yml"
    done
    cd "$T"
    all=$("$node" "$clients/node_modules/@modelcontextprotocol/conformance/dist/index.js" server --url "$url" \
        --expected-failures "$T/expected.yml" 2>&1) || fail "$all"
    for name in server-initialize logging-set-level ping tools-list server-sse-multiple-streams; do
        has "$all" "✓ $name: 1 passed, 0 failed"
    done
    has "$all" "✓ dns-rebinding-protection: 2 passed, 0 failed"
}

the_official_sdks_client_calls_it_down_a_pipe() {
    ready
    has "$("$node" "$clients/sdk.mjs" "$mayfly" "${flags[@]}")" "all is well"
}

the_official_sdks_client_calls_it_by_http() {
    ready
    serve
    has "$("$node" "$clients/sdk.mjs" "$url")" "all is well"
}

a_model_of_the_ai_package_reads_a_traceback_and_mends_its_code() {
    ready
    has "$("$node" "$clients/ai.mjs" "$mayfly" "${flags[@]}")" "all is well"
}

the_official_inspector_lists_and_calls() {
    local inspector=(node_modules/@modelcontextprotocol/inspector-cli/build/cli.js) out
    ready
    serve
    cd "$clients"
    out=$("$node" "${inspector[@]}" --cli "$mayfly" "${flags[@]}" --method tools/list)
    has "$out" '"name": "run_python"'
    out=$("$node" "${inspector[@]}" --cli "$url" --transport http --method tools/call --tool-name run_python \
        --tool-arg 'code=print(6 * 7)')
    has "$out" '"stdout": "42\n"'
}
