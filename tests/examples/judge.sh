#!/bin/sh
# Judges answers to an exercise, each a program of somebody whom nobody knows: a box each, and the exit status says how it
# ended. The exercise: read numbers from standard input, print their sum.
#
# Usage: tests/examples/judge.sh [FLAG...]     flags of `mayfly python`; MAYFLY=build/mayfly names the program
set -eu
mayfly=${MAYFLY:-mayfly}
command -v "$mayfly" >/dev/null || { echo "judge: there is no program $mayfly; name it by MAYFLY" >&2 && exit 125; }
answers=$(mktemp -d)
trap 'rm -rf "$answers"' EXIT

cat >"$answers/1-right" <<'END'
import sys
print(sum(int(word) for word in sys.stdin.read().split()))
END
cat >"$answers/2-wrong" <<'END'
print(6)
END
cat >"$answers/3-fails" <<'END'
print(sum(input().split()))
END
cat >"$answers/4-endless" <<'END'
while True: pass
END
cat >"$answers/5-greedy" <<'END'
numbers = [bytearray(1 << 20) for _ in range(10000)]
END
cat >"$answers/6-curious" <<'END'
import socket
socket.create_connection(("192.0.2.1", 80), 1)
END

for answer in "$answers"/*; do
    status=0
    got=$(echo "20 1 21" | "$mayfly" python "$@" -i --timeout 1s --memory 64m "$answer" 2>"$answers/.why") || status=$?
    case $status in
        0) [ "$got" = 42 ] && verdict=right || verdict="wrong: it says $got" ;;
        124) verdict="too slow" ;;
        125) cat "$answers/.why" >&2 && exit 125 ;;
        137) verdict="too much memory" ;;
        *) verdict="fails: $(grep -E '^[A-Za-z]+Error' "$answers/.why" | tail -n 1)" ;;
    esac
    [ "$verdict" != "fails: MemoryError" ] || verdict="too much memory" # where each process has the limit, not the box
    echo "${answer##*/}: $verdict"
done
