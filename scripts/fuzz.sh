#!/bin/bash
# Runs the fuzz targets of tests/fuzz with libFuzzer, under the address and undefined-behaviour sanitizers.
#
# Each starts from tests/fuzz/corpus/NAME and tests/fuzz/crashes/NAME, and keeps what it learns in
# build/fuzz/corpus/NAME, where the next session goes on. An input that breaks a property is put into
# tests/fuzz/crashes/NAME, where every test run replays it until it is mended and for good after that.
#
# The last line, "tests P F S", is as that of run-programs.sh. Status 77: this machine has no libFuzzer.
#
# Usage: scripts/fuzz.sh [--seconds N] [--seed N] [TARGET...]
#   --seconds N   for each target (60); as many run at once as there are processors
#   --seed N      a session that begins with the seeds in the tree alone and always the same way
set -uo pipefail
cd "$(dirname "$0")/.." || exit

seconds=60 seed=
while [ $# -gt 0 ]; do
    case $1 in
        --seconds | --seed)
            [[ ${2:-} =~ ^[0-9]+$ ]] || { echo "fuzz.sh: $1 wants a number" >&2 && exit 2; }
            printf -v "${1#--}" %s "$2"
            shift 2
            ;;
        -*) echo "fuzz.sh: no option $1; see the head of $0" >&2 && exit 2 ;;
        *) break ;;
    esac
done
b=build/fuzz optimize=-O1
[ -z "$seed" ] || b=build/fuzz-seeded optimize=-O0 # such a session is short: to compile would take most of the time
if [ $# = 0 ]; then
    for file in tests/fuzz/fuzz_*.c; do
        file=${file##*/fuzz_}
        set -- "$@" "${file%.c}"
    done
fi
for name in "$@"; do
    [ -e "tests/fuzz/fuzz_$name.c" ] || { echo "fuzz.sh: no target is called $name" >&2 && exit 2; }
done

# Clang is of no use without this part of its runtime, which is a package of its own.
mkdir -p $b
echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return !d && n; }' |
    clang -fsanitize=fuzzer,address -x c -o $b/probe - 2>/dev/null || exit 77
rm -f $b/probe
MAKEFLAGS='' make -s V=1 --no-print-directory -j"$(nproc)" B=$b CC=clang SAN=fuzzer CFLAGS="$optimize -g" "${@/#/$b/bin/}" ||
    { echo "tests 0 1 0" && exit 1; }

# one NAME: a session of one target; its line on stdout, its log in the build directory
one() {
    local name=$1 log=$b/log/$1 own=$b/corpus/$1 dirs=() runs begin=$SECONDS
    local options=(-max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1)
    mkdir -p "tests/fuzz/crashes/$name" $b/log "$own"
    [ -z "$seed" ] || own=$(mktemp -d "$b/session.XXXXXX")
    [ -z "$seed" ] || options+=(-seed="$seed")
    [ ! -e "tests/fuzz/$name.dict" ] || options+=(-dict="tests/fuzz/$name.dict")
    for dir in tests/fuzz/{corpus,crashes}/"$name"; do dirs+=("$dir"); done
    "$b/bin/$name" "${options[@]}" -artifact_prefix="tests/fuzz/crashes/$name/" "$own" "${dirs[@]}" \
        >"$log" 2>&1 </dev/null
    local status=$? file old
    [ -z "$seed" ] || rm -rf "$own"
    rmdir "tests/fuzz/crashes/$name" 2>/dev/null # nothing was found
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    if [ $status = 0 ] && [ "${runs:-0}" -gt 0 ]; then
        echo "  ok    fuzz $name: $runs inputs ($((SECONDS - begin)) s)"
        return 0
    fi
    grep -v '^#' "$log" | tail -n 40 | sed 's/^/        /'
    echo "  FAIL  fuzz $name: status $status; the whole of it is in $log"
    file=$(sed -n 's/.*Test unit written to \(.*\)$/\1/p' "$log" | tail -1)
    for old in "tests/fuzz/crashes/$name"/*; do # one that was known is not a new find
        [ "$old" = "$file" ] || ! cmp -s "$old" "$file" || { rm -f "$file" && file=$old; }
    done
    [ -z "$file" ] || echo "        to replay: build/tests/unit/test_fuzz_replay $name $file   (or $b/bin/$name $file)"
    return 1
}
export -f one
export b seconds seed
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} bash -c 'one {}' || failed=1
p=0 f=0
for name in "$@"; do
    if grep -q '^stat::number_of_executed_units' "$b/log/$name" && ! grep -q 'SUMMARY: ' "$b/log/$name"; then
        p=$((p + 1))
    else
        f=$((f + 1))
    fi
done
[ -z "${failed:-}" ] || [ $f -gt 0 ] || f=1
echo "tests $p $f 0"
[ $f = 0 ]
