#!/bin/bash
# Runs cmocka test programs one after another: a line for each, the whole output of one that fails.
#
# The last line, "tests P F S", has the numbers that passed, failed and were skipped. A program
# that crashes, hangs, or says nothing that can be counted has failed: silence is not success.
#
# Usage: scripts/run-programs.sh PROGRAM...   (works in any host; MAYFLY_TEST_SLOW is its patience)
set -uo pipefail
export LC_ALL=C.UTF-8
unset CMOCKA_MESSAGE_OUTPUT CMOCKA_XML_FILE # the counts are read from the plain form

out=$(mktemp)
trap 'rm -f "$out"' EXIT
passed=0 failed=0 skipped=0
count() { sed -n "s/^\[  $1 *\] \([0-9]*\) test(s).*/\1/p" "$out" | tail -1; }

for program in "$@"; do
    begin=${EPOCHREALTIME/./}
    timeout -k 5 $((${MAYFLY_TEST_LONG:+10*}600 * ${MAYFLY_TEST_SLOW:-1})) "$program" >"$out" 2>&1 </dev/null
    status=$?
    ms=$(((${EPOCHREALTIME/./} - begin) / 1000))
    p=$(count PASSED) f=$(count FAILED) s=$(count SKIPPED)
    p=${p:-0} f=${f:-0} s=${s:-0} note=
    [ $status != 124 ] || note=", hung"
    [ $status -lt 128 ] || note=", ended by signal $((status - 128))"
    if [ "$f" = 0 ] && { [ $status != 0 ] || [ $((p + s)) = 0 ]; }; then
        f=1 note=${note:-, status $status with nothing counted as failed}
    fi
    [ "$s" = 0 ] || note+=", $s skipped"
    if [ "$f" = 0 ]; then
        echo "  ok    ${program##*/}: $p passed$note ($ms ms)"
    else
        sed 's/^/        /' "$out"
        echo "  FAIL  ${program##*/}: $f failed, $p passed$note ($ms ms)"
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
echo "tests $passed $failed $skipped"
[ $failed = 0 ]
