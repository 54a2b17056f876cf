#!/bin/bash
# Functions of test_pull.c. STUB and STUB_TLS are the registry that does wrong on purpose; its log is in $SERVERS.
# shellcheck disable=SC2154,SC2034

# shellcheck source=tests/images/pulling.sh
. tests/images/pulling.sh

need openssl python3
LOG=$SERVERS/log
from=0
forget() { from=$(wc -l <"$LOG"); } # what was asked until now
asked() { tail -n +$((from + 1)) "$LOG"; }
count() { asked | grep -c -e "$@" || true; }
is() { test "$@" || fail "$* does not hold: $(cat "$T/err")"; } # as test has it
login() { printf '{"auths":{"%s":{%s}}}' "$1" "$2" >"$DOCKER_CONFIG/config.json"; }
settings() { printf '{"registries":{%s}}' "$1" >"$XDG_CONFIG_HOME/mayfly/config.json"; }
touch "$LOG"
forget

an_image_is_pulled_named_and_unpacked() {
    pulled --plain-http "$STUB/good:1"
    same "$(cat "$T/out")" "$STUB/good:1"
    same "$(names)" "$STUB/good:1"
    same "$(cat "$S"/unpacked/*/fs/hello)" "hello good"
    same "$(cat "$S"/unpacked/*/fs/etc/name)" good
    is "$(stat -c %s "$S"/unpacked/*/fs/usr/noise)" = 2097152
    same "$(ls "$S/tmp")" ""
    need skopeo # another's eyes
    same "$(skopeo inspect --format '{{len .Layers}} {{.Architecture}}' "oci:$S:$STUB/good:1")" "2 amd64"
}

what_is_there_is_not_pulled_again() {
    pulled --plain-http "$STUB/good:1"
    is "$(count /blobs/)" = 3
    forget
    pulled --plain-http "$STUB/good:1"
    has "$(cat "$T/err")" "was here already"
    is "$(count /blobs/)" = 0
    is "$(count /manifests/)" = 1
    pulled --plain-http "$STUB/good:2" # another name of the same
    is "$(count /blobs/)" = 0
    same "$(names | sort)" "$STUB/good:1"$'\n'"$STUB/good:2"
    forget
    pulled --missing "$STUB/good:2" # though plain HTTP is not allowed
    is "$(count .)" = 0
}

# Each blob in turn: manifest, config and layers. A byte is another, the size as before.
what_the_store_has_damaged_is_got_anew() {
    local blob at
    pulled --plain-http "$STUB/good:1"
    for blob in "$S"/blobs/sha256/*; do
        at=$(($(stat -c %s "$blob") / 2))
        printf '\0' | dd of="$blob" bs=1 seek="$at" conv=notrunc status=none
        sha256sum "$blob" | grep -q "^${blob##*/}" && fail "$blob is not damaged"
        pulled --plain-http "$STUB/good:1"
        has "$(cat "$T/err")" "is damaged: getting it anew"
        same "$(sha256sum <"$blob")" "${blob##*/}  -"
    done
    for blob in "$S"/blobs/sha256/*; do # and where it has to be unpacked again
        rm -rf "$S"/unpacked/* "$S"/images/*
        printf 'junk' | dd of="$blob" bs=1 conv=notrunc status=none
        pulled --plain-http --missing "$STUB/good:1"
        has "$(cat "$T/err")" "is damaged"
        same "$(cat "$S"/unpacked/*/fs/hello)" "hello good"
        same "$(sha256sum <"$blob")" "${blob##*/}  -"
    done
}

both_families_of_media_types_and_unpacked_layers_are_taken() {
    local repository digest
    for repository in docker plain no-type; do
        pulled --plain-http "$STUB/$repository:t"
    done
    digest=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["manifests"][0]["digest"])' "$S/index.json")
    pulled --plain-http "$STUB/docker@$digest"
    has "$(names)" "$STUB/docker@$digest"
}

what_is_wrong_is_refused_in_one_line_and_leaves_the_store_as_it_was() {
    local before words repository
    pulled --plain-http "$STUB/good:1"
    rm "$S"/blobs/sha256/* # so that each has to come again
    before=$(cd "$S" && cat index.json && find unpacked -maxdepth 1)
    while IFS='|' read -r repository words; do
        refused "$words" --plain-http "$STUB/$repository"
        same "$(cd "$S" && cat index.json && find unpacked -maxdepth 1)" "$before"
        same "$(find "$S/tmp" -mindepth 1 ! -name 'partial-*')" "" # of other blobs than the wrong one
        rm -f "$S"/blobs/sha256/* "$S"/tmp/*
    done <<'END'
wrong-digest|its content has the digest sha256:
wrong-size|where the manifest says
too-long|more than the
petabyte|is free in
manifest-lie|its digest is
by-digest-lie@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef|its digest is
index-size|where the index says 5
foreign|has a foreign layer
unknown-layer|application/vnd.example.layer+rar
artifact|helm
both|could be an index and an image both
no-digest|config: has no digest
schema1|first format
deep|200000 parts
parts|200000 parts
twice|duplicate object key
html|is no JSON
empty|the answer is empty
other-arch|is for linux/s390x
outside|"../outside"
blob-404|blob unknown to registry
wrong-range|sends from byte 5 on
END
}

what_has_no_end_is_refused_in_bounded_memory() {
    local repository
    ulimit -v 400000
    for repository in huge huge-said; do
        refused "larger than the 4194304 bytes" --plain-http "$STUB/$repository"
    done
    refused "the answer's header has no end" --plain-http "$STUB/headers"
    refused "200000 parts" --plain-http "$STUB/parts"
}

answers_that_are_final_say_what_to_do() {
    refused "answers 401 Unauthorized: authentication required; log in" --plain-http "$STUB/basic"
    refused "answers 401 Unauthorized: authentication required; log in" --plain-http "$STUB/refused"
    is "$(count /v2/refused/)" = 2 # with a token once more, and no further
    refused "answers 403 Forbidden: requested access to the resource is denied; log in" --plain-http "$STUB/403"
    refused "answers 404 Not Found: manifest unknown; see whether the name and the tag" --plain-http "$STUB/404"
    refused "answers 404 Not Found; see" --plain-http "$STUB/404-html"
    refused "answers 429 Too Many Requests: slow down (come back in 3600 s); wait" --plain-http "$STUB/429-long"
    is "$(count /v2/429-long/)" = 1
    refused "answers 429 Too Many Requests: you have reached [2J your pull rate limit; wait" --plain-http --retry 1 "$STUB/429-always"
    refused "answers 500 Internal Server Error: oops; the fault is the server's" --plain-http --retry 3 "$STUB/500-always"
    is "$(count /v2/500-always/)" = 4
}

what_fails_for_the_moment_is_tried_again() {
    local begin=${EPOCHREALTIME/./}
    pulled --plain-http "$STUB/429"
    is $((${EPOCHREALTIME/./} - begin)) -ge 1000000
    has "$(cat "$T/err")" "the server answers 429 Too Many Requests; trying again in 1 s"
    pulled --plain-http "$STUB/500"
    is "$(count /v2/500/manifests/)" = 3
    pulled --plain-http "$STUB/token-500"
    is "$(count /token/token-500)" = 3
    refused "answers 500" --retry 0 --plain-http "$STUB/500-always"
}

the_process_that_reads_layers_has_nothing_else() {
    [ "$(id -u)" = 0 ] || skip root "the memory of a process is looked at"
    local pid reader='' i wrong=0
    login "$STUB" '"auth":"dXNlcjpwYTpzcw=="'
    https_proxy=http://proxy:pa:ss@127.0.0.1:1 \
        "$B/mayfly-fetch" pull -q --plain-http --store "$S" "$STUB/basic-slow" >"$T/out" 2>"$T/err" &
    pid=$!
    for ((i = 0; i < 500; i++)); do
        sleep 0.01
        reader=$(cat "/proc/$pid/task/$pid/children")
        ! grep -qs 'Seccomp:.2' "/proc/${reader% }/status" || break
    done
    kill -STOP $pid # so that the other waits for its layer
    sleep 0.1
    reader=${reader% }
    python3 - "$pid" "$reader" "$S" <<'END' || wrong=1
import os, re, sys
def memory(pid):
    mem, found = open(f"/proc/{pid}/mem", "rb", 0), []
    for line in open(f"/proc/{pid}/maps"):
        begin, end, rights = re.match(r"(\w+)-(\w+) (....)", line).groups()
        try:
            found.append(os.pread(mem.fileno(), int(end, 16) - int(begin, 16), int(begin, 16)) if rights[0] == "r" else b"")
        except OSError:  # what the kernel itself maps
            pass
    return b"".join(found)
def fds(pid):
    return {int(n): os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")}
pid, reader, store = sys.argv[1:]
secrets = (b"pa:ss", b"dXNlcjpwYTpzcw")
assert all(s in memory(pid) for s in secrets)  # they would be found
there = memory(reader)
assert open(f"/proc/{reader}/comm").read() == "mayfly-unpack\n"
assert len(there) > 1 << 20 and not any(s in there for s in secrets)
assert open(f"/proc/{reader}/environ").read() == ""
has = fds(reader)
assert has[0].startswith("socket:") and has[1].startswith(store + "/tmp/unpack-") and has[2] == "/dev/null", has
assert all(path.startswith(has[1]) for n, path in has.items() if n > 2), has
status = open(f"/proc/{reader}/status").read()
assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status, status
END
    kill -CONT $pid
    wait $pid
    same "$wrong" 0
    same "$(names)" "$STUB/basic-slow:latest"
}

layers_are_unpacked_while_others_come() {
    local pid i begin
    "$B/mayfly-fetch" pull -q --plain-http --store "$S" "$STUB/last-slow" >/dev/null 2>"$T/err" &
    pid=$!
    for ((i = 0; i < 500; i++)); do
        [ ! -e "$(echo "$S"/tmp/unpack-*/fs/usr/noise)" ] || break
        sleep 0.01
    done
    is "$(find "$S/blobs/sha256" -type f | wc -l)" -le 3 # manifest, configuration, the first layer
    same "$(ls "$S/unpacked")" ""
    kill -9 $pid
    wait $pid || true
    pulled --plain-http "$STUB/last-slow"
    same "$(ls "$S/tmp")" ""
    same "$(names)" "$STUB/last-slow:latest"
    # A layer that is wrong ends it at once.
    begin=${EPOCHREALTIME/./}
    refused '"../outside"' --plain-http --platform linux/amd64 "$STUB/outside-slow"
    is $((${EPOCHREALTIME/./} - begin)) -lt 2500000
}

a_download_that_is_cut_goes_on_where_it_was() {
    pulled --plain-http "$STUB/cut"
    same "$(asked | grep -o '"range": "[^"]*"')" "$(printf '"range": "bytes=%s-"\n' $((600 << 10)) $((1200 << 10)) $((1800 << 10)))"
    rm -rf "$S"
    pulled --plain-http "$STUB/cut-norange"
    rm -rf "$S"
    pulled --plain-http "$STUB/short" # neither a length nor chunks
    is "$(count '"range": "bytes=1048576-"')" = 1
    rm -rf "$S"
    refused "try again: what has come is kept" --plain-http "$STUB/truncated"
    same "$(names)" ""
    same "$(partial_bytes)" 1000 # and that is true of little, too
}

partial_bytes() { { stat -c %s "$S"/tmp/partial-* 2>/dev/null || echo 0; } | sort -n | tail -1; }

a_pull_that_is_killed_goes_on_where_it_was() {
    local pid had i
    "$B/mayfly-fetch" pull --plain-http --store "$S" "$STUB/slow" 2>/dev/null &
    pid=$!
    for ((i = 0; i < 500 && $(partial_bytes) < 300000; i++)); do sleep 0.01; done
    kill -9 $pid
    wait $pid || true
    had=$(partial_bytes)
    is "$had" -ge 300000
    same "$(names)" ""
    pulled --plain-http "$STUB/slow"
    is "$(count "\"range\": \"bytes=$had-\"")" = 1
    same "$(ls "$S/tmp")" ""
    # What was left is wrong: seen, and got anew, once.
    mkdir "$T/other"
    S=$T/other/store
    pulled --plain-http "$STUB/good:1"
    had=$(find "$S/blobs/sha256" -size +1000k)
    (cd "$S" && rm -r "unpacked" images index.json && head -c 5000 /dev/zero >"tmp/partial-sha256-${had##*/}" && rm "$had")
    forget
    pulled --plain-http "$STUB/good:1"
    is "$(count "${had##*/}")" = 2
    is "$(count '"range": "bytes=5000-"')" = 1
}

# Whatever has a name in the store is whole.
store_is_right() {
    python3 - "$S" <<'END'
import hashlib, json, os, sys
os.chdir(sys.argv[1])
def blob(d, size):
    data = open("blobs/" + d.replace(":", "/"), "rb").read()
    assert len(data) == size, d
    return data
for name in os.listdir("blobs/sha256") if os.path.exists("blobs/sha256") else []:
    assert hashlib.sha256(open("blobs/sha256/" + name, "rb").read()).hexdigest() == name, name
for entry in json.load(open("index.json"))["manifests"] if os.path.exists("index.json") else []:
    manifest = json.loads(blob(entry["digest"], entry["size"]))
    for part in [manifest["config"], *manifest["layers"]]:
        blob(part["digest"], part["size"])
for chain in os.listdir("unpacked") if os.path.exists("unpacked") else []:
    assert open("unpacked/" + chain + "/fs/hello").read() == "hello good", chain
END
}

a_pull_that_is_killed_at_any_call_leaves_the_store_right() {
    need strace
    local n step=75 calls
    [ -z "${MAYFLY_TEST_LONG:-}" ] || step=1
    strace -f -o "$T/calls" "$B/mayfly-fetch" pull -q --plain-http --store "$S" "$STUB/good" >/dev/null
    calls=$(grep -c "^$(head -1 "$T/calls" | cut -d' ' -f1) " "$T/calls")
    n=$(grep -n -m1 -F "$S" <(tail -n +2 "$T/calls") | cut -d: -f1) # where the libraries are loaded
    is "$calls" -gt $((n + 300))
    for ((n += RANDOM % step; n < calls - 1; n += step)); do
        rm -rf "$S"
        strace -f -qq -o /dev/null -e inject=all:signal=KILL:when=$n \
            "$B/mayfly-fetch" pull -q --plain-http --store "$S" "$STUB/good" >/dev/null 2>&1 && continue
        store_is_right || fail "killed at call $n"
        pulled --plain-http "$STUB/good"
        store_is_right || fail "killed at call $n, and pulled again"
        same "$(ls "$S/tmp")" ""
    done
}

a_disk_that_fails_at_any_call_is_said_and_leaves_the_store_right() {
    need strace
    local n step=45 error both='' calls=write,pwrite64,ftruncate,fsync,syncfs,renameat,renameat2,linkat,mkdirat,flock
    [ -z "${MAYFLY_TEST_LONG:-}" ] || step=1 both='ENOSPC EIO'
    for ((n = 1 + RANDOM % step; ; n += step)); do
        for error in ${both:-$( ((n / step % 2)) && echo EIO || echo ENOSPC)}; do
            rm -rf "$S"
            status=0
            strace -f -qq -o "$T/calls" -e trace=$calls -e inject=$calls:error="$error":when=$n "$B/mayfly-fetch" \
                pull -q --plain-http --store "$S" "$STUB/good" >"$T/out" 2>"$T/err" || status=$?
            [ ! -e "$S/index.json" ] || store_is_right || fail "$error at call $n"
            if [ $status = 0 ]; then # what was to be written was not needed; or it was what we say ourselves
                same "$(names)" "$STUB/good:latest"
            else
                is "$status" = 125
                same "$(names)" ""
                grep -q '^mayfly: ' "$T/err" || grep "$error.*INJECTED" "$T/calls" | grep 'write(2,' ||
                    fail "$error at call $n: $(cat "$T/err")"
                is "$(wc -l <"$T/err")" -le 1
            fi
            pulled --plain-http "$STUB/good"
            store_is_right || fail "$error at call $n, and pulled again"
        done
        grep -q INJECTED "$T/calls" || break
    done
    is "$n" -gt 100
}

a_store_without_room_is_said_and_goes_on_when_there_is_some() {
    local noise
    [ "$(id -u)" = 0 ] || skip root "a file system is mounted"
    if [ -z "${IN_OWN_MOUNTS:-}" ]; then
        IN_OWN_MOUNTS=1 unshare -m bash tests/package/prelude.sh tests/images/pull.sh "${FUNCNAME[0]}"
        return
    fi
    mkdir "$S"
    mount -t tmpfs -o size=2m none "$S"
    refused "its layers take 2 MiB, and 2 MiB is free in $S; make room" --plain-http "$STUB/good"
    is "$(count /v2/good/blobs/)" = 0
    mount -o remount,size=3500k "$S" # for the download, not for what is in it
    refused "make room" --plain-http "$STUB/good"
    same "$(names)" ""
    mount -o remount,size=8m "$S"
    noise=$(cd "$S/blobs/sha256" && find . -size +1000k -printf sha256:%f)
    forget
    pulled --plain-http "$STUB/good"
    is "$(count "/v2/good/blobs/$noise")" = 0 # the other may have been on its way when that was found to be too large
    same "$(names)" "$STUB/good:latest"
    pulled --plain-http "$STUB/plain:t"
    dd if=/dev/zero of="$S/fill" bs=4k status=none 2>"$T/err" && fail "it is not full"
    "$B/mayfly" rmi --store "$S" "$STUB/good" "$STUB/plain:t" >"$T/out" || fail "a full disk keeps its images"
    same "$(names)" ""
    same "$(ls "$S/unpacked" "$S/blobs/sha256")" "$S/blobs/sha256:"$'\n\n'"$S/unpacked:"
    umount "$S"
}

# OPTION=VALUE of the file system that the store is on: said and nothing half there, or done; and done when there is more.
with_little() {
    umount "$S" 2>/dev/null || true
    mount -t tmpfs -o "$1" none "$S"
    pull -q --plain-http "$STUB/good"
    if [ $status = 0 ]; then
        fitted=1
    else
        is $status = 125
        has "$(cat "$T/err")" "; make room"
        is "$(wc -l <"$T/err")" = 1
        same "$(names)" ""
        same "$(find "$S/tmp" -mindepth 1 ! -name 'partial-*' 2>/dev/null)" ""
        mount -o remount,size=16m,nr_inodes=10000 "$S"
        pulled -q --plain-http "$STUB/good"
    fi
    store_is_right || fail "$1"
    same "$(names)" "$STUB/good:latest"
    same "$(ls "$S/tmp")" ""
}

a_disk_that_is_full_at_any_point_is_said_and_leaves_the_store_right() {
    [ "$(id -u)" = 0 ] || skip root "file systems are mounted"
    if [ -z "${IN_OWN_MOUNTS:-}" ]; then
        IN_OWN_MOUNTS=1 unshare -m bash tests/package/prelude.sh tests/images/pull.sh "${FUNCNAME[0]}"
        return
    fi
    local n step=4 fitted=''
    [ -z "${MAYFLY_TEST_LONG:-}" ] || step=1
    mkdir "$S"
    for ((n = 12 + RANDOM % step; n < 60 && ${#fitted} == 0; n += step)); do with_little nr_inodes=$n; done
    is "$n" -gt 24
    is "$fitted" = 1
    fitted=
    for ((n = 8 + RANDOM % step * 40; n < 8000 && ${#fitted} == 0; n += n < 3200 ? 100 * step : 40 * step)); do
        with_little size=${n}k
    done
    is "$n" -gt 4096
    is "$fitted" = 1
    umount "$S"
}

of_several_pulls_at_once_one_downloads() {
    local i pids=()
    for i in 1 2 3 4 5; do
        timeout 60 "$B/mayfly-fetch" pull --plain-http --store "$S" "$STUB/slow" >"$T/out$i" 2>"$T/err$i" &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i"; done
    is "$(count /blobs/)" = 3
    is "$(grep -l 'waiting for it' "$T"/err? | wc -l)" = 4
    same "$(names)" "$STUB/slow:latest"
}

a_server_that_falls_silent_is_given_up() {
    local begin=${EPOCHREALTIME/./}
    refused "nothing came for 0.3 s; try again" --plain-http --stall-timeout 300ms --retry 0 "$STUB/stall"
    refused "nothing came for 0.3 s; try again" --plain-http --stall-timeout 300ms --retry 1 "$STUB/silent"
    # A drip is as bad; and that there was something each time does not make it one that may go on.
    refused "less than 1024 bytes a second came for 0.3 s; try again" --plain-http --stall-timeout 300ms --retry 1 "$STUB/drip"
    is "$(count /v2/drip/blobs/.*range)" -le 4
    is $((${EPOCHREALTIME/./} - begin)) -lt 5900000
    pulled --plain-http --stall-timeout 300ms "$STUB/slow" # slow is not silent
}

credentials_stay_with_the_registry_when_it_redirects() {
    login "$STUB" '"auth":"dXNlcjpwYTpzcw=="'
    pulled --plain-http "$STUB/redirect"
    is "$(count '"path": "/v2/redirect/blobs/.*"auth": "Basic ')" = 3
    is "$(count '"host": "127.0.0.2".*"path": "/elsewhere/.*"auth": null')" = 3
    is "$(count '"host": "127.0.0.2"')" = 3
    rm -rf "$S"
    pulled --plain-http "$STUB/redirect-relative"
    refused "redirects in circles" --plain-http "$STUB/loop"
    is "$(count /v2/loop/)" = 11
    refused "Protocol" --plain-http "$STUB/redirect-file"
    SSL_CERT_FILE=$SERVERS/ca.pem refused "redirects to where there is no TLS" "$STUB_TLS/redirect-plain"
}

basic_authentication_and_tokens_work() {
    local token='^.*"path": "/token/'
    pulled --plain-http "$STUB/token"
    is "$(count "$token"'token?service=stub&scope=repository%3Atoken%3Apull"')" = 1
    is "$(count '"path": "/v2/token/blobs/.*"auth": "Bearer tok')" = 3
    login "$STUB" '"username":"user","password":"pa:ss"'
    rm -rf "$S"
    pulled --plain-http "$STUB/basic"
    is "$(count '/v2/basic/.*"auth": "Basic dXNlcjpwYTpzcw=="')" = 4
    pulled --plain-http "$STUB/token-creds"
    is "$(count '/v2/token-creds/.*"auth": "Basic')" = 0
    login "$STUB" '"identitytoken":"my/identity+token"'
    pulled --plain-http "$STUB/token-identity"
    is "$(count '"method": "POST", "path": "/token/token-identity"')" = 1
    login "$STUB" '"registrytoken":"registry-token"'
    pulled --plain-http "$STUB/token-given"
    is "$(count "$token"token-given)" = 0
    rm "$DOCKER_CONFIG/config.json" "$S/blobs/sha256/"*
    pulled --plain-http "$STUB/token-expires" # in the middle, for downloads that are under way at once
    is "$(count "$token"token-expires)" -ge 2
}

tokens_that_are_none_are_refused() {
    refused "the answer holds none" --plain-http "$STUB/token-none"
    refused "is none; ask" --plain-http "$STUB/token-inject"
    is "$(count X-Injected)" = 0
    login "$STUB" '"auth":"dXNlcjp3cm9uZw=="'
    refused "answers 401 Unauthorized: incorrect username or password; log in" --plain-http "$STUB/token-creds"
    printf '{' >"$DOCKER_CONFIG/config.json"
    refused "config.json: is no JSON" --plain-http "$STUB/basic"
    printf '{"credsStore":"nowhere"}' >"$DOCKER_CONFIG/config.json"
    pulled --plain-http "$STUB/token"
    has "$(cat "$T/err")" "docker-credential-nowhere cannot be started: No such file or directory; going on without"
    SSL_CERT_FILE=$SERVERS/ca.pem refused "is to be got from where there is no TLS" "$STUB_TLS/token-plain"
}

plain_http_only_where_it_was_asked_for() {
    refused "speaks no TLS; if plain HTTP is meant, say so: mayfly pull --plain-http, or plainHttp" "$STUB/good"
    is "$(count .)" = 0 # nothing was asked in the clear
    settings "\"$STUB\":{\"plainHttp\":true}"
    pulled "$STUB/good"
    settings "\"$STUB\":{\"plainHtp\":true}"
    refused "plainHtp: is not a member that is known" "$STUB/good"
    printf '{"pull":"sometimes"}' >"$XDG_CONFIG_HOME/mayfly/config.json"
    refused "config.json: pull: is not missing, always or never" --plain-http "$STUB/good"
}

certificates_are_verified_unless_told_otherwise() {
    LOG=$SERVERS/log-tls
    touch "$LOG"
    forget
    refused "certificate" "$STUB_TLS/good"
    has "$(cat "$T/err")" "name it by SSL_CERT_FILE; --tls-verify=false trusts anyone"
    SSL_CERT_FILE=$SERVERS/ca.pem refused "127.0.0.2" "$STUB_TLS_OTHER/good" # another host's
    is "$(count .)" = 0
    SSL_CERT_FILE=$SERVERS/ca.pem pulled "$STUB_TLS/good"
    CURL_CA_BUNDLE=$SERVERS/ca.pem SSL_CERT_FILE=/dev/null pulled "$STUB_TLS/good:2"
    mkdir "$T/certs"
    cp "$SERVERS/ca.pem" "$T/certs/$(openssl x509 -hash -noout -in "$SERVERS/ca.pem").0"
    SSL_CERT_DIR=$T/certs pulled "$STUB_TLS/good:3"
    pulled --tls-verify=false "$STUB_TLS/good:4"
    settings "\"$STUB_TLS_OTHER\":{\"tlsVerify\":false}"
    pulled "$STUB_TLS_OTHER/good:5"
    SSL_CERT_FILE=$T/none.pem refused "none.pem" "$STUB_TLS/good"
    CURL_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt refused "the file that CURL_CA_BUNDLE names" "$STUB_TLS/good"
    refused "if that port speaks TLS, leave" --plain-http --retry 0 "$STUB_TLS/good"
}

the_platform_is_chosen_or_what_there_is_is_listed() {
    variants() { cat "$S"/unpacked/*/fs/etc/name && rm -rf "$S"; }
    pulled --plain-http --platform linux/arm/v6 "$STUB/variants"
    same "$(variants)" arm6
    pulled --plain-http --platform linux/arm "$STUB/variants"
    same "$(variants)" arm7
    pulled --plain-http --platform amd64 "$STUB/variants"
    same "$(variants)" good
    refused "there is none for linux/s390x; there is linux/arm/v7, linux/arm/v6, linux/amd64; choose" \
        --plain-http --platform linux/s390x "$STUB/variants"
    refused "there is windows/amd64, linux/arm/v7; choose" --plain-http --platform linux/amd64 "$STUB/windows"
    pulled --plain-http --platform linux/amd64 "$STUB/only"
    pulled --plain-http --platform linux/amd64 "$STUB/nested"
    refused "is for linux/s390x, not for linux/amd64; name another" --plain-http --platform linux/amd64 "$STUB/other-arch"
    is "$(count /v2/other-arch/blobs/)" = 1 # the configuration, which says so
    pulled --plain-http --platform linux/s390x "$STUB/other-arch"
    refused "is not Linux" --plain-http --platform windows/amd64 "$STUB/windows"
}

mirrors_are_asked_first_and_the_registry_last() {
    # One where nobody listens, one that has another, then one that does.
    settings "\"registry.invalid\":{\"mirrors\":[\"http://127.0.0.1:1\",\"http://$STUB/404\",\"http://$STUB/\"]}"
    pulled registry.invalid/good:7
    same "$(names)" registry.invalid/good:7
    has "$(cat "$T/err")" "mirror 127.0.0.1:1: "
    has "$(cat "$T/err")" "going on to $STUB"
    is "$(count '"path": "/v2/good/blobs/')" = 3
    rm -rf "$S"
    # One that has the manifest, and of the layers a damaged one.
    settings "\"registry.invalid\":{\"mirrors\":[\"http://$STUB/wrong-digest\",\"http://$STUB\"]}"
    pulled registry.invalid/good:9
    has "$(cat "$T/err")" "mirror $STUB: "
    rm -rf "$S"
    settings "\"$STUB\":{\"plainHttp\":true,\"mirrors\":[\"http://$STUB_OTHER\"]}"
    pulled "$STUB/good:8"
    is "$(count '"host": "127.0.0.1".*"path": "/v2/good/manifests/8')" = 0
    is "$(count '"host": "127.0.0.2".*"path": "/v2/good/manifests/8')" = 1
    rm -rf "$S"
    SSL_CERT_FILE=$SERVERS/ca.pem
    export SSL_CERT_FILE
    settings "\"$STUB_TLS\":{\"mirrors\":[\"http://$STUB/blob-404\"]}"
    pulled "$STUB_TLS/good@$(good_digest)" # the manifest is in both
    has "$(cat "$T/err")" "going on to $STUB_TLS"
}
good_digest() {
    local d=$T/digest
    "$B/mayfly-fetch" pull -q --plain-http --store "$d" "$STUB/good" >/dev/null
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["manifests"][0]["digest"])' "$d/index.json"
}

a_proxy_is_used_as_curl_would() {
    http_proxy=http://$STUB pulled --plain-http registry.invalid/good
    is "$(count '"path": "http://registry.invalid/v2/good/manifests/latest"')" = 1
    forget
    http_proxy=http://127.0.0.1:1 no_proxy=127.0.0.1 pulled --plain-http "$STUB/good:2"
    expected=69 http_proxy=http://127.0.0.1:1 refused "the proxy" --plain-http "$STUB/good:3"
    # It does not do CONNECT.
    expected=69 https_proxy=http://$STUB refused "the proxy" registry.invalid/good
}

events_are_json_a_line_each() {
    pulled --json --plain-http "$STUB/429:json"
    same "$(cat "$T/err")" ""
    python3 - "$T/out" "$STUB" <<'END'
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
events = [l["event"] for l in lines]
assert events[0] == "retry" and events[1] == "resolved" and events[-2:] == ["unpacking", "pulled"], events
assert events.count("blob") == 3 and lines[1]["layers"] == 2 and lines[1]["bytes"] > 2000000, lines
assert sum(l["size"] for l in lines if l["event"] == "blob") == lines[1]["bytes"]
assert lines[-1]["reference"] == sys.argv[2] + "/429:json" and lines[-1]["digest"].startswith("sha256:"), lines[-1]
END
    pull --json --plain-http "$STUB/404"
    is $status = 125
    same "$(cat "$T/err")" ""
    python3 -c 'import json, sys; l = json.loads(open(sys.argv[1]).read()); assert l["event"] == "error" and l["code"] == "ENOENT", l' "$T/out"
}

the_fields_of_events_are_those_in_their_page() {
    settings "\"$STUB\":{\"plainHttp\":true,\"mirrors\":[\"http://$STUB/404\"]}"
    pulled --json "$STUB/slow"
    cp "$T/out" "$T/all"
    settings "\"$STUB\":{\"plainHttp\":true}"
    pulled --json "$STUB/429:fields"
    cat "$T/out" >>"$T/all"
    pull --json "$STUB/404"
    cat "$T/out" >>"$T/all"
    python3 - "$T/all" <<'END'
import json, re, sys
page = re.search(r"\n\.Sh THE EVENTS OF PULL\n(.*?)\n\.Sh ", open("man/mayfly-result.5").read(), re.S)[1]
items = set(re.findall(r"\n\.It Va ([A-Za-z.*]+)", page))
kinds = set(re.findall(r"\n\.Cm ([a-z]+)", page.split(".It Va reference")[0]))
events = [json.loads(line) for line in open(sys.argv[1])]
fields = {k + ".*" if isinstance(v, dict) else k for e in events for k, v in e.items()}
assert fields == items, fields ^ items
assert {e["event"] for e in events} == kinds, {e["event"] for e in events} ^ kinds
END
}

a_terminal_gets_a_bar_and_others_lines() {
    local bar
    bar=$(TERM=xterm script -qec "'$B/mayfly-fetch' pull --plain-http --store '$S' '$STUB/slow'" /dev/null)
    has "$bar" $'\r\033[K'
    has "$bar" '[##'
    has "$bar" "MiB/s, "
    has "$bar" "is here now"
    rm -rf "$S"
    pulled --plain-http "$STUB/good"
    [[ $(cat "$T/err") != *$'\r'* && $(cat "$T/err") != *$'\033'* ]] || fail "$(cat -v "$T/err")"
    has "$(cat "$T/err")" "pulling 2 MiB for linux/"
    pulled -q --plain-http "$STUB/good"
    same "$(cat "$T/err")" ""
    same "$(cat "$T/out")" "$STUB/good:latest"
}

no_registry_in_reach_has_a_status_of_its_own() {
    local begin=${EPOCHREALTIME/./}
    expected=69 refused "see whether the network" 127.0.0.1:1/x
    expected=69 refused "see whether the network" registry.invalid/x
    is $((${EPOCHREALTIME/./} - begin)) -lt 5000000
    same "$(names)" ""
}

of_several_pulls_of_one_that_is_out_of_reach_one_tries() {
    local i pids=() begin
    # One that takes its time: nobody answers, and it is waited for.
    begin=${EPOCHREALTIME/./}
    for i in 1 2 3 4 5 6; do
        timeout 60 "$B/mayfly" pull --store "$S" --retry-delay 300ms --plain-http 127.0.0.1:1/x 2>"$T/err$i" &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        status=0
        wait "$i" || status=$?
        is $status = 69
    done
    is $((${EPOCHREALTIME/./} - begin)) -lt 1500000
    is "$(cat "$T"/err? | grep -c 'see whether the network')" = 6
    is "$(cat "$T"/err? | grep -c 'trying again')" -lt 6
    # And the next one tries again.
    expected=69 refused "see whether the network" --plain-http 127.0.0.1:1/x
    has "$(cat "$T/err")" "trying again"
}

a_wrong_command_line_is_refused() {
    local words
    while IFS='|' read -r words arguments; do
        # shellcheck disable=SC2086 # words
        pull $arguments
        is "$status" = 125
        has "$(cat "$T/err")" "$words"
        is "$(wc -l <"$T/err")" = 1
    done <<'END'
no image is named|
one image at a time|a b
no such flag|--nonsense a
wants a value|a --platform
is not a number up to 100|--retry x a
is not a time|--stall-timeout 0 a
is not a size|--speed-limit 0 a
platform "a/b/c/d"|--platform a/b/c/d a
upper-case|Upper
is no name of an image|-- -x
END
    [ ! -e "$S" ] || fail "a store was made for nothing"
}
