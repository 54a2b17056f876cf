#!/bin/bash
# How much of each file that reads what others wrote is executed by the unit tests and the inputs of
# the fuzz targets: lines, by gcov. Less than the share below in one of them is a failure.
#
# Usage: scripts/coverage.sh   (`make coverage` builds what it runs, in build/coverage)
set -uo pipefail
cd "$(dirname "$0")/.." || exit

least=90
parsers="
    base/base64 base/err base/units base/utf8
    policy/policy policy/policy_fields policy/policy_json policy/profile_json
    cli/options json/result_json
    control/seccomp_compile control/seccomp_pack
    linux/bpf linux/cgroup linux/idmap linux/procfs
    box/protocol
    runlog/record runlog/files runlog/pruned log/asked
    mcp/jsonrpc mcp/session
    agent/sse agent/turn
    lib/hints lib/hints_calls lib/hints_words lib/last_words
"
b=build/coverage

find $b -name '*.gcda' -delete
# Some tests become other users, who have to be able to write down what they executed.
find $b/obj -type d -exec chmod a+rwx {} +
umask 0
MAYFLY_BUILD=$b scripts/test.sh unit || exit

# gcov names the source, then says "Lines executed:97.50% of 80".
share() {
    gcov -n -o "$b/obj/src/${1%/*}" "src/$1.c" 2>/dev/null | awk -v file="src/$1.c" '
        $1 == "File" { ours = index($0, file "\047") }
        ours && sub(/^Lines executed:/, "") { split($0, n, /% of /); print n[1], n[2]; exit }'
}

low=0
printf '%-32s %8s %7s\n' file lines covered
for file in $parsers; do
    read -r percent lines < <(share "$file") || percent=0 lines=none
    mark=
    [ "${percent%.*}" -ge $least ] || { mark="  less than $least %" low=$((low + 1)); }
    printf '%-32s %8s %6s%%%s\n' "src/$file.c" "$lines" "$percent" "$mark"
done
[ $low = 0 ] || { echo "coverage: $low of these files have less than $least % of their lines executed" >&2 && exit 1; }
