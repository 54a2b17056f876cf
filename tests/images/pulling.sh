#!/bin/bash
# What the tests that pull share: a store and a home of the test's own, and what came of the last pull.
# shellcheck disable=SC2154 # T and B are prelude.sh's

PATH=/usr/bin:/bin:$PATH # Debian's own python3, whatever else there is
export HOME=$T/home DOCKER_CONFIG=$T/docker XDG_CONFIG_HOME=$T/config
unset CURL_CA_BUNDLE SSL_CERT_FILE SSL_CERT_DIR http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY all_proxy NO_PROXY no_proxy
mkdir -p "$HOME" "$DOCKER_CONFIG" "$XDG_CONFIG_HOME/mayfly"
S=$T/store

# Its output is in $T/out and $T/err, its status in $status.
pull() {
    status=0
    timeout 60 "$B/mayfly" pull --store "$S" --retry-delay 5ms "$@" >"$T/out" 2>"$T/err" || status=$?
}
pulled() {
    pull "$@"
    [ $status = 0 ] || fail "pull $*: status $status: $(cat "$T/err")"
}
# WORDS ARGUMENTS: it fails, the last line says so in these words, and what to do.
refused() {
    local words=$1 line
    shift
    pull "$@"
    [ $status = "${expected:-125}" ] || fail "pull $*: status $status: $(cat "$T/err")"
    line=$(tail -n 1 "$T/err")
    [[ $line == mayfly:*"$words"* ]] || fail "pull $*: said: $line"$'\n'"and not: $words"
    [[ $line == *"; "* ]] || fail "pull $*: says no remedy: $line"
    [ "$(grep -c '^mayfly: ' "$T/err")" = "$(wc -l <"$T/err")" ] || fail "pull $*: other lines: $(cat "$T/err")"
    [ ! -s "$T/out" ] || fail "pull $*: printed: $(cat "$T/out")"
}
names() { [ ! -e "$S/index.json" ] || python3 -c 'import json, sys
for m in json.load(open(sys.argv[1]))["manifests"]: print(m["annotations"]["org.opencontainers.image.ref.name"])' "$S/index.json"; }
