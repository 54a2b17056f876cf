#!/bin/bash
# Holds the directions in which the parts of the source may know of each other.
#
# The table is the architecture: a directory may include itself, base, and what stands beside it;
# mayfly.h is the public header. Whoever needs more changes the table first, and says why.
set -euo pipefail
cd "$(dirname "$0")/.."

declare -A may=(
    [base]=""
    [linux]=""
    [policy]=""
    [plan]="policy linux"
    [image]="linux"
    [control]="plan policy linux"
    [box]="plan control policy linux"
    [lib]="box control plan policy image linux mayfly.h"
    [json]="mayfly.h"
    [cli]="json mayfly.h"
    # What is offered to language models, and by what protocol.
    [tool]="runlog json mayfly.h"
    [mcp]="tool runlog json mayfly.h"
    # It speaks HTTP as fetch does, by the same file.
    [agent]="tool fetch runlog json mayfly.h"
    [delegate]=""
    [libc]=""
    [fetch]="image linux mayfly.h"
    # What a Dockerfile makes is put into a store as fetch does, and its RUN is a box as any program's. Of lib it
    # has the function that knows users by name, and what only a build's boxes may be given.
    [build]="fetch image lib linux mayfly.h"
    # What the probes see with a control off is more than the public interface tells: rows, what was read back.
    [lab]="lib box control plan policy linux json mayfly.h"
    # The run log knows results as JSON only, so it is the same for every program that logs.
    [runlog]=""
    [log]="runlog"
)
# Headers that only the files matching the pattern may include.
declare -A only=(
    ["<jansson.h>"]='^src/(policy/[a-z_]*_json|json/[a-z_]*|image/[a-z_]*|fetch/[a-z_]*|build/[a-z_]*|tool/[a-z_]*|mcp/[a-z_]*|agent/[a-z_]*|runlog/[a-z_]*|log/[a-z_]*|lab/[a-z_]*)\.[ch]$'
    ["<microhttpd.h>"]='^src/mcp/http'
    ["<curl/curl.h>"]='^src/fetch/http\.c$'
    ["<archive.h>"]='^src/(fetch|build)/'
    ["<openssl/evp.h>"]='^src/((fetch|build)/|(runlog/record|lab/hostile)\.c$)'
    ["<systemd/sd-bus.h>"]='^src/delegate/delegate\.c$'
    ["<seccomp.h>"]='^src/(control/seccomp_compile|fetch/confine)\.c$'
)

bad=0
report() { echo "check-includes: $1" >&2 && bad=1; }

while IFS=: read -r file line text; do
    part=${file#src/} && part=${part%%/*}
    header=$(sed -E 's/^ *# *include *//; s/ *(\/[/*].*)?$//' <<<"$text")
    [ -z "${only[$header]:-}" ] || [[ $file =~ ${only[$header]} ]] ||
        report "$file:$line: $header belongs behind ${only[$header]}"
    case $header in
        \"*\") name=${header//\"/} ;;
        "<mayfly.h>") name=mayfly.h ;;
        *) continue ;;
    esac
    if [ -z "${may[$part]+known}" ]; then
        report "$file: the table in $0 does not know src/$part"
        continue
    fi
    [ -e "src/$name" ] || [ -e "include/$name" ] || [ "$name" = seccomp_default.h ] ||
        [[ $name == *.inc ]] || # made at build time, as the former
        report "$file:$line: $header is given by no path below src/ or include/"
    [[ $name == */* || $name == mayfly.h || $name == seccomp_default.h ]] || continue
    [[ " base $part ${may[$part]} " == *" ${name%%/*} "* || " ${may[$part]} " == *" $name "* ]] ||
        [ "$name" = seccomp_default.h ] || report "$file:$line: $part may not include $name"
done < <(grep -rnE --include='*.[ch]' '^ *# *include' src)

# No control knows of another: what two of them need moves to linux/, or to a helper of its own.
for header in src/control/*.h; do
    name=${header#src/control/}
    grep -qsE '^const struct control ' "${header%.h}.c" || continue
    report "$header: a control has no header (so that no other control can include it): $name"
done

while IFS= read -r file; do
    last=$(grep -E '^ *# *include' "$file" | grep -v '\.inc"$' | tail -1) # .inc: data, where it stands
    [[ $last == *'"base/banned.h"'* ]] || report "$file: the last include must be \"base/banned.h\""
done < <(find src -name '*.c' ! -path 'src/libc/*') # libc: has the functions that are banned elsewhere

exit $bad
