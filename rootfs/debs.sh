# shellcheck shell=bash
# Debian packages with all that they need, downloaded into a private directory; to be sourced.
#
#   fetch_debs DIR PACKAGE...    DIR has the .deb files, DIR/apt/closure their names, sorted
#
# apt sees the machine's sources and keys, and nothing else of it: it knows of no installed package.
# The machine's package lists are used where they serve; if stale or missing, private ones are made.

fetch_debs() {
    local debs=$1
    shift
    mkdir -p "$debs/partial" "$debs/apt/lists/partial"
    : >"$debs/apt/status"
    # The hooks are cleared because those of slim images delete downloads, and those of desktops
    # rebuild indexes.
    cat >"$debs/apt/conf" <<CONF
Dir::State "$debs/apt";
Dir::State::status "$debs/apt/status";
Dir::State::extended_states "$debs/apt/extended_states";
Dir::Cache "$debs/apt";
Dir::Cache::archives "$debs";
Dir::Log "$debs/apt";
Debug::NoLocking "true";
APT::Sandbox::User "";
APT::Install-Recommends "false";
Acquire::Retries "3";
Acquire::Languages "none";
#clear APT::Update;
#clear DPkg::Post-Invoke;
CONF
    local lists=/var/lib/apt/lists
    download_debs "$@" >"$debs/apt/log" 2>&1 && return
    lists=$debs/apt/lists
    { private_apt update && download_debs "$@"; } >>"$debs/apt/log" 2>&1 && return
    cat "$debs/apt/log" >&2
    return 1
}

private_apt() { apt-get -q -c "$debs/apt/conf" -o Dir::State::lists="$lists" "$@"; }

# The names are resolved with an empty archive directory, since apt does not print what it need not download.
download_debs() {
    private_apt -o Dir::Cache::archives="$debs/apt/none" install -y --print-uris "$@" |
        sed -n "s/^'[^']*' \([^ ]*\.deb\) .*/\1/p" | sort >"$debs/apt/closure"
    [ -s "$debs/apt/closure" ] && private_apt install -y --download-only "$@"
}
