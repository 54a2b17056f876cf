#!/bin/bash
# The functions of test_examples.c: each example as its head says, with what is in the tree and was built.

flags=(--rootfs "$ROOTFS")
[ -z "${BEST_EFFORT:-}" ] || flags+=(--limits=best-effort)
MAYFLY=$(realpath "$B/mayfly")
export MAYFLY

the_example_in_shell_judges_programs() {
    local got
    got=$(tests/examples/judge.sh "${flags[@]}")
    same "$got" "1-right: right
2-wrong: wrong: it says 6
3-fails: fails: TypeError: unsupported operand type(s) for +: 'int' and 'str'
4-endless: too slow
5-greedy: too much memory
6-curious: fails: OSError: [Errno 101] Network is unreachable"
    # And says so when there is no box to judge them in.
    ! got=$(tests/examples/judge.sh --rootfs /nowhere 2>"$T/err") || fail "$got"
    has "$(cat "$T/err")" "/nowhere"
}

the_example_in_c_parks_boxes() {
    local got
    gcc -Wall -Wextra -Werror -Iinclude -o "$T/parked" tests/examples/parked.c "$B/public/libmayfly.a" -ljansson -lseccomp -lm
    got=$("$T/parked" "$ROOTFS" ${BEST_EFFORT:+limits best-effort})
    same "$got" "1: exited, exit code 0: 55
2: exited, exit code 1: ZeroDivisionError: division by zero
3: exited, exit code 1: FileNotFoundError: [Errno 2] No such file or directory: '/nowhere'
4: timed_out, exit code 124: begun"
}

the_example_in_javascript_has_a_model_mend_its_code() {
    local arch name node clients=$PWD/build/mcp-clients
    case $(uname -m) in x86_64) arch=x64 ;; aarch64) arch=arm64 ;; *) arch=none ;; esac
    [ -e "$clients/done" ] || skip npm "the ai package is not installed (scripts/npm-tree.sh tests/mcp/clients $clients)"
    node=$clients/node_modules/node-linux-$arch/bin/node
    [ -x "$node" ] || node=node
    # What its own package.json asks for is what is tried.
    for name in ai @ai-sdk/mcp; do
        has "$(cat tests/examples/package.json)" "\"$name\": $(grep -oP "\"$name\": \K\"[^\"]*\"" tests/mcp/clients/package.json)"
    done
    ln -s "$clients/node_modules" "$T/node_modules"
    cp tests/examples/model.mjs tests/examples/package.json "$T/"
    same "$(cd "$T" && "$node" model.mjs "${flags[@]}" --no-log)" "print(sum(['20', '1', '21']))
    exit code: 1
print(sum(map(int, ['20', '1', '21'])))
    exit code: 0
It is 42."
}
