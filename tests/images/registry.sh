#!/bin/bash
# Functions of test_registry.c. PLAIN, TLS and TOKEN are docker-registries over one storage.
# shellcheck disable=SC2153,SC2154,SC2034

# shellcheck source=tests/images/pulling.sh
. tests/images/pulling.sh

make_keys() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj '/CN=mayfly tests' -addext 'subjectAltName=IP:127.0.0.1' \
        -keyout "$SERVERS/key.pem" -out "$SERVERS/ca.pem" 2>/dev/null
    # user, pa:ss; a hash as htpasswd -B makes it, of the least cost
    # shellcheck disable=SC2016 # they are part of the hash
    echo 'user:$2y$04$ltc8.apU5JXyIvuel9K72.6SUZcHzYWe6VX8wmvEJDr19qdkepHnW' >"$SERVERS/htpasswd"
}

# An image of umoci's, with the layers that its name has words: image NAME ARCH WORD...
image() {
    local name=$1 arch=$2 word
    shift 2
    umoci new --image "$T/oci:$name"
    umoci config --image "$T/oci:$name" --architecture "$arch" --config.cmd /hello --config.env PATH=/bin
    for word; do
        rm -rf "$T/bundle"
        umoci unpack --rootless --image "$T/oci:$name" "$T/bundle"
        echo "$word" >"$T/bundle/rootfs/$word"
        head -c 300000 /dev/urandom >"$T/bundle/rootfs/noise-$word"
        umoci repack --image "$T/oci:$name" "$T/bundle"
    done
}
push() { skopeo copy -q --insecure-policy --dest-tls-verify=false "$@"; }

# All that the tests pull: once, as it takes longest.
push_images() {
    umoci init --layout "$T/oci"
    image app amd64 one two three
    image arm arm64 arm
    push "oci:$T/oci:app" "docker://$PLAIN/public/app:oci"
    push --format v2s2 "oci:$T/oci:app" "docker://$PLAIN/public/app:docker"
    push --dest-compress --dest-compress-format zstd "oci:$T/oci:app" "dir:$T/zstd"
    push "dir:$T/zstd" "docker://$PLAIN/public/app:zstd"
    push "oci:$T/oci:arm" "docker://$PLAIN/public/app:arm"
    push "oci:$T/oci:app" "docker://$PLAIN/private/app:oci"
    python3 - "$PLAIN" <<'END'
import json, sys, urllib.request
base = "http://" + sys.argv[1] + "/v2/public/app/manifests/"
kind = "application/vnd.oci.image.manifest.v1+json"
def get(tag):
    reply = urllib.request.urlopen(urllib.request.Request(base + tag, headers={"Accept": kind}))
    return {"mediaType": kind, "digest": reply.headers["Docker-Content-Digest"], "size": len(reply.read())}
entries = [{**get("arm"), "platform": {"os": "linux", "architecture": "arm64", "variant": "v8"}},
           {**get("oci"), "platform": {"os": "linux", "architecture": "amd64"}}]
kind_of_index = "application/vnd.oci.image.index.v1+json"
body = json.dumps({"schemaVersion": 2, "mediaType": kind_of_index, "manifests": entries}).encode()
urllib.request.urlopen(urllib.request.Request(base + "multi", body, {"Content-Type": kind_of_index}, method="PUT"))
END
}

digest() { skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://$PLAIN/public/app:$1"; }
stored_digest() { python3 -c 'import json, sys
for m in json.load(open(sys.argv[1]))["manifests"]:
    if m["annotations"]["org.opencontainers.image.ref.name"] == sys.argv[2]: print(m["digest"])' "$S/index.json" "$1"; }
has_app() { same "$(cat "$S"/unpacked/*/fs/{one,two,three})" "one"$'\n'"two"$'\n'"three"; }

what_others_push_is_pulled_in_every_form() {
    need docker-registry skopeo umoci
    local tag
    for tag in oci docker zstd; do
        pulled --plain-http --platform linux/amd64 "$PLAIN/public/app:$tag"
        same "$(stored_digest "$PLAIN/public/app:$tag")" "$(digest $tag)"
    done
    grep -qF layer.v1.tar+zstd "$S"/blobs/sha256/* || fail "nothing was zstd"
    grep -qF rootfs.diff.tar.gzip "$S"/blobs/sha256/* || fail "nothing was Docker's"
    has_app # and of the three forms it is the same tree, once
    same "$(umoci list --layout "$S" | sort)" "$(names | sort)"
    refused "answers 404 Not Found: manifest unknown; see whether" --plain-http "$PLAIN/public/app:none"
    refused "answers 404 Not Found" --plain-http "$PLAIN/nothing"
}

an_image_of_an_index_is_chosen_by_its_platform() {
    need docker-registry skopeo umoci
    pulled --plain-http --platform linux/arm64 "$PLAIN/public/app:multi"
    same "$(stored_digest "$PLAIN/public/app:multi")" "$(digest arm)"
    pulled --plain-http --platform linux/amd64 "$PLAIN/public/app:multi" # the name is the other's now
    same "$(stored_digest "$PLAIN/public/app:multi")" "$(digest oci)"
    refused "there is none for linux/s390x; there is linux/arm64, linux/amd64; choose one with --platform" \
        --plain-http --platform linux/s390x "$PLAIN/public/app:multi"
}

an_image_is_pulled_by_its_digest_and_by_that_of_its_index() {
    need docker-registry skopeo umoci
    local one many
    one=$(digest docker)
    many=$(curl -sI -H 'Accept: application/vnd.oci.image.index.v1+json' "http://$PLAIN/v2/public/app/manifests/multi" |
        tr -d '\r' | sed -n 's/^Docker-Content-Digest: //ip')
    pulled --plain-http --platform linux/amd64 "$PLAIN/public/app@$one"
    pulled --plain-http --platform linux/amd64 "$PLAIN/public/app:multi@$many"
    same "$(stored_digest "$PLAIN/public/app@$one")" "$one"
    same "$(stored_digest "$PLAIN/public/app:multi@$many")" "$(digest oci)"
    has_app
}

a_login_of_anothers_opens_a_registry_with_passwords() {
    need docker-registry skopeo umoci
    export SSL_CERT_FILE=$SERVERS/ca.pem
    refused "answers 401 Unauthorized: authentication required; log in with docker login" "$TLS/private/app:oci"
    skopeo login --authfile "$DOCKER_CONFIG/config.json" --tls-verify=false -u user -p pa:ss "$TLS" >/dev/null
    pulled --platform linux/amd64 "$TLS/private/app:oci"
    has_app
    skopeo logout --authfile "$DOCKER_CONFIG/config.json" "$TLS" >/dev/null
    refused "answers 401" "$TLS/private/app:oci"
    unset SSL_CERT_FILE
    refused "certificate" "$TLS/private/app:oci"
}

tokens_are_got_with_a_login_and_without() {
    need docker-registry skopeo umoci
    pulled --plain-http --platform linux/amd64 "$TOKEN/public/app:oci"
    has_app
    refused "answers 401 Unauthorized: authentication required; log in" --plain-http "$TOKEN/private/app:oci"
    printf '{"auths":{"%s":{"auth":"dXNlcjpwYTpzcw=="}}}' "$TOKEN" >"$DOCKER_CONFIG/config.json"
    pulled --plain-http --platform linux/amd64 "$TOKEN/private/app:oci"
    printf '{"auths":{"%s":{"auth":"dXNlcjp3cm9uZw=="}}}' "$TOKEN" >"$DOCKER_CONFIG/config.json"
    refused "answers 401 Unauthorized: wrong password; log in" --plain-http "$TOKEN/private/app:oci"
}

what_was_cut_is_resumed_from_a_real_registry() {
    need docker-registry skopeo umoci
    local layer
    pulled --plain-http --platform linux/amd64 "$PLAIN/public/app:oci"
    layer=$(find "$S/blobs/sha256" -size +200k -print -quit)
    layer=${layer##*/}
    head -c 100000 "$S/blobs/sha256/$layer" >"$T/part"
    rm -rf "$S/blobs/sha256/$layer" "$S/index.json" "$S/unpacked" "$S/images"
    cp "$T/part" "$S/tmp/partial-sha256-$layer"
    pulled --plain-http --platform linux/amd64 "$PLAIN/public/app:oci"
    has_app
    grep -e "$layer.* 206 " "$SERVERS/plain.log"
}

a_tag_that_moved_is_followed() {
    need docker-registry skopeo umoci
    push --src-tls-verify=false "docker://$PLAIN/public/app:oci" "docker://$PLAIN/public/moves:1"
    pulled --plain-http --platform linux/amd64 "$PLAIN/public/moves:1"
    push --src-tls-verify=false "docker://$PLAIN/public/app:zstd" "docker://$PLAIN/public/moves:1"
    pulled --missing --plain-http "$PLAIN/public/moves:1"
    same "$(stored_digest "$PLAIN/public/moves:1")" "$(digest oci)"
    pulled --plain-http --platform linux/amd64 "$PLAIN/public/moves:1"
    same "$(stored_digest "$PLAIN/public/moves:1")" "$(digest zstd)"
    same "$(names)" "$PLAIN/public/moves:1"
    grep -F "$(digest oci | cut -c 1-19)… had this name before and has none now; mayfly prune" "$T/err"
}

# One downloads and unpacks, the others wait for it: all run, whatever half of it they came upon.
twenty_cold_runs_at_once_are_all_right() {
    need docker-registry skopeo
    local i image=$PLAIN/cold:1 pids=()
    mkdir -p "$T/root/usr"
    cp "$B/mayfly" "$T/root/usr/hello" # static, so all that an image needs
    "$B/mayfly" import --store "$T/other" -t cold "$T/root" >"$T/out"
    "$B/mayfly" export --store "$T/other" -o "$T/cold.tar" cold
    push "docker-archive:$T/cold.tar" "docker://$image"
    printf '{"registries":{"%s":{"plainHttp":true}}}' "$PLAIN" >"$XDG_CONFIG_HOME/mayfly/config.json"
    for i in {1..20}; do
        "$B/mayfly" run --store "$S" --limits=best-effort --timeout 60s --image "$image" /usr/hello version >"$T/out.$i" 2>"$T/err.$i" &
        pids+=($!)
    done
    for i in {1..20}; do
        wait "${pids[i - 1]}" || fail "run $i: status $?: $(cat "$T/err.$i")"
        same "$(cat "$T/out.$i")" "$("$B/mayfly" version)"
    done
    same "$(cat "$T"/err.* | grep -c 'is here now')" 1
    same "$(ls "$S/tmp")" ""
    same "$(find "$S/unpacked" -mindepth 1 -maxdepth 1 | wc -l)" 1
}
