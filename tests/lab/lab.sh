#!/bin/bash
# The functions of test_matrix.c: `mayfly lab` as its user sees it.
export MAYFLY_ROOTFS=$ROOTFS
quick=FS9,NS1,SK1 # probes that take some milliseconds

# lab STATUS FLAG...: $out and $err are what it printed
lab() {
    local want=$1 got=0
    shift
    PATH=${LAB_PATH:-$PATH} "$B/mayfly" lab "$@" >"$T/out" 2>"$T/err" </dev/null || got=$?
    out=$(cat "$T/out") err=$(cat "$T/err")
    [ $got = "$want" ] || fail "exit status $got: $out$err"
}

# says WORDS...: one line on standard error that has them, and nothing else anywhere
says() {
    local words
    same "$out" ""
    same "$(wc -l <"$T/err")" 1
    for words; do
        has "$err" "$words"
    done
}

# of FILE EXPRESSION: of the object that is `lab` in Python
of() { python3 -c 'import json, sys; lab = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }

# What processes of this lab there are: by its program, in whatever namespace; the test's own shells are none of them.
labs() { pgrep -f "^$B/mayfly-lab .*--json $T/" || true; }
# Those that the keeper of this lab made, who is named in them.
cgroups() { find /sys/fs/cgroup -type d -name "mayfly-*-$keeper-*" 2>/dev/null | sort; }

# gone: waits until no process of it lives, at most five seconds
gone() {
    for _ in $(seq 50); do
        [ -n "$(labs)" ] || return 0
        sleep 0.1
    done
    fail "still there: $(ps -o pid,args -p "$(labs | tr '\n' ,)")"
}

some_probes_and_the_matrix_that_is_written() {
    lab 0 --probe $quick --no-price --quiet --check --json "$T/lab.json"
    has "$out" "Smallest sets"
    same "$err" ""
    same "$(of "$T/lab.json" '[p["id"] for p in lab["probes"]]')" "['FS9', 'NS1', 'SK1']"
    same "$(of "$T/lab.json" '{p["verdict"] for p in lab["probes"]}')" "{'counts'}"
    [ "$(id -u)" = 0 ] || skip root "the matrix is root's"
    python3 tests/lab/matrix.py compare tests/lab/matrix-machine.txt "$T/lab.json"
}

each_field_is_what_the_page_says() {
    lab 0 --probe SK1,EX6 --control net,seccomp --quiet --json "$T/lab.json"
    python3 - "$T/lab.json" <<'END'
import json, sys
lab = json.load(open(sys.argv[1]))
assert lab["format"] == "mayfly-lab/1" and lab["where"] == "box" and lab["as"] in ("root", "user"), lab
assert [c["name"] for c in lab["controls"]] == ["net", "seccomp"]
net, probe = lab["controls"][0], lab["probes"][-1]
assert net["available"] and net["why"] is None and net["sole"] == ["SK1"] and net["stopsNothing"] is None, net
price = net["price"] # of a run only where the machine was quiet enough
assert price["rowsUs"] > 0 and (price["rounds"] > 0 if price["runUs"] is not None else price["rounds"] == 0), price
assert lab["controls"][1]["stopsNothing"] is None, lab["controls"][1]  # no probe was chosen that could tell
assert probe["id"] == "SK1" and probe["matrix"] == {"net": "stopped", "seccomp": "through"}, probe
cells = probe["cells"]
assert set(cells) == {"allOn", "allOff", "without", "only", "sets"}, cells
assert cells["allOn"]["result"] == "stopped" and cells["allOn"]["errno"] == "ECONNREFUSED", cells
assert cells["allOff"]["result"] == "through" and cells["without"]["net"]["result"] == "through"
for cell in [cells["allOn"], cells["allOff"], *cells["without"].values(), *cells["only"].values()]:
    assert set(cell) == {"result", "call", "errno", "detail", "host", "ms"} and cell["ms"] > 0, cell
assert lab["probes"][0]["verdict"] == "must_pass" and lab["probes"][0]["mustPass"]
assert lab["peers"] == [] and lab["faults"] == [] and lab["lacks"] is None
END
}

what_is_not_there_is_said_with_what_is() {
    lab 125 --probe FS1,nope
    says "--probe: no probe nope; \`mayfly lab explain\` lists them"
    lab 125 --family nope
    says "--family: no family nope; there are files proc"
    lab 125 --control net,nope
    says "no control nope; there are memory cpu"
    lab 125 --control "net user"
    says "no control net user"
    lab 125 --nope
    says "--nope: no such flag"
    lab 125 FS1
    says "FS1: it takes no words but flags"
    lab 125 --where moon
    says "--where: it takes box, kernel or host"
    lab 125 --jobs 0
    says "--jobs: it takes a number"
    lab 125 --rootfs "$T/nope"
    says "$T/nope: no root file system is there"
    lab 125 --check=yes
    says "--check: it takes no value"
    lab 125 --from
    says "--from: it takes a value"
    lab 125 --probe ,
    says '"," names nothing; leave it out for all'
    lab 125 --from "$T/lab.json" --probe FS1
    says "--from: it shows what was found"
    lab 125 --lacks net --with bwrap
    says "--lacks: it asks what gets through"
}

what_was_saved_shows_as_what_was_found() {
    lab 0 --probe FS9 --control mount --no-price --quiet --json "$T/lab.json"
    local first=$out
    lab 0 --from "$T/lab.json"
    same "$out" "$first"
    lab 0 --from "$T/lab.json" --json
    same "$out" "$(cat "$T/lab.json")"
    lab 0 --from "$T/lab.json" --html "$T/lab.html" --markdown "$T/lab.md"
    has "$(cat "$T/lab.html")" "<html"
    has "$(cat "$T/lab.md")" "FS9"
    # Faults are in it too.
    python3 -c 'import json, sys; lab = json.load(open(sys.argv[1])); lab["faults"] = ["FS9 is\n\33[31mwrong"]
json.dump(lab, open(sys.argv[1], "w"))' "$T/lab.json"
    lab 1 --from "$T/lab.json" --check
    same "$err" "mayfly: lab: FS9 is  [31mwrong"
}

what_was_not_saved_by_it_is_refused() {
    lab 125 --from "$T/none"
    says "$T/none: No such file"
    echo '{"format": "mayfly-lab/1", "controls": [' >"$T/cut"
    lab 125 --from "$T/cut"
    says "$T/cut: line"
    echo '{"format": "mayfly-lab/1", "controls": {}}' >"$T/other"
    lab 125 --from "$T/other"
    says '"controls" is no list'
    echo '[]' >"$T/list"
    lab 125 --from "$T/list"
    says "its \"format\" is not mayfly-lab/1"
    # A list of nothing that it should be shows without a crash.
    echo '{"format": "mayfly-lab/1", "controls": [1, {}], "families": [null, {}], "probes": [7, {}], "peers": [], "faults": [3]}' >"$T/odd"
    lab 0 --from "$T/odd"
}

a_file_is_written_whole_or_not_at_all() {
    lab 0 --probe FS9 --control mount --no-price --quiet --json "$T/lab.json"
    echo before >"$T/there"
    chmod 500 "$T" # nothing can be made in it, but for root
    [ "$(id -u)" = 0 ] || { lab 125 --from "$T/lab.json" --json "$T/there" && same "$(cat "$T/there")" before; }
    chmod 700 "$T"
    lab 125 --from "$T/lab.json" --json "$T/no/such/directory"
    says "$T/no/such/directory: No such file"
    mkdir "$T/dir"
    lab 125 --from "$T/lab.json" --json "$T/dir"
    same "$(find "$T" -name 'dir.*')" ""
    # What is no plain file stays what it is, and is written to.
    ln -s real "$T/link"
    lab 0 --from "$T/lab.json" --json "$T/link"
    [ -L "$T/link" ] && cmp "$T/lab.json" "$T/real"
    mkfifo "$T/fifo"
    cat "$T/fifo" >"$T/piped" &
    lab 0 --from "$T/lab.json" --json "$T/fifo"
    wait $!
    [ -p "$T/fifo" ] && cmp "$T/lab.json" "$T/piped"
    lab 0 --from "$T/lab.json" --json /dev/fd/9 9>"$T/nine"
    cmp "$T/lab.json" "$T/nine"
    [ "$(id -u)" = 0 ] || skip root "only root can make a device"
    mknod -m 666 "$T/null" c 1 3 || skip mknod "devices cannot be made here"
    mknod -m 666 "$T/full" c 1 7
    lab 0 --from "$T/lab.json" --json "$T/null" --html "$T/null" --markdown "$T/null"
    [ -c "$T/null" ]
    lab 125 --from "$T/lab.json" --json "$T/full"
    says "full: No space left on device"
    [ -c "$T/full" ]
    ! "$B/mayfly" lab explain --no-run user >"$T/full" 2>"$T/err" || fail "a page that goes nowhere is no error"
}

without_some_controls_what_doctor_says_gets_through() {
    lab 0 --probe EX1,EX2,EX5,FS9,SK1,SK1b,SK2,SK4 --lacks net,tmp --no-price --quiet --check --json "$T/lab.json"
    same "$(of "$T/lab.json" 'lab["lacks"]["predicted"] == lab["lacks"]["through"] and len(lab["lacks"]["through"]) == 4')" True
    has "$out" "Without net, tmp"
    has "$out" "as mayfly doctor says"
    lab 0 --probe FS9 --lacks --no-price --quiet --check --json "$T/lab.json"
    same "$(of "$T/lab.json" 'lab["lacks"]["thisHost"]')" True
}

on_the_host_it_says_what_that_means() {
    lab 0 --where host --probe SK1 --control net --no-price --check --json "$T/lab.json"
    has "$err" "on the bare host: controls are off on purpose"
    same "$(of "$T/lab.json" 'lab["where"]')" host
}

as_a_user_it_works_but_for_what_only_root_can_switch_off() {
    [ "$(id -u)" = 0 ] || skip root "only root can be another user"
    # shellcheck disable=SC2016 # the inner shell expands
    tests/hosts/as-user.sh -- bash -c '"$1/mayfly" lab --probe SK1,EX1 --no-price --check --quiet --json /tmp/lab.json &&
        cat /tmp/lab.json' - "$B" >"$T/out" || fail "$(cat "$T/out")"
    sed '/^{/,$!d' "$T/out" >"$T/lab.json"
    same "$(of "$T/lab.json" 'lab["as"]')" user
    same "$(of "$T/lab.json" '[p["verdict"] for p in lab["probes"]]')" "['counts', 'counts']"
    same "$(of "$T/lab.json" '[p["matrix"]["user"] for p in lab["probes"]]')" "['untestable', 'untestable']"
}

# started: a lab in the background that takes long, and is in the middle of it; $pid
started() {
    "$B/mayfly-lab" lab --probe RS4,RS4b --no-price --quiet --json "$T/lab.json" >"$T/out" 2>"$T/err" </dev/null &
    pid=$!
    for _ in $(seq 100); do
        if [ "$(labs | wc -l)" -ge 4 ]; then
            keeper=$(pgrep -P $pid)
            [ "$(id -u)" != 0 ] || [ -n "$(cgroups)" ] || fail "it has no cgroup"
            return
        fi
        sleep 0.05
    done
    fail "it does not begin: $(cat "$T/out" "$T/err")"
}

an_interrupt_ends_it_and_leaves_nothing() {
    local got=0
    started
    kill -INT $pid
    wait $pid || got=$?
    same $got 130
    gone
    same "$(cgroups)" ""
    [ ! -e "$T/lab.json" ] || fail "it has written something"
}

killed_it_leaves_nothing() {
    started
    kill -KILL $pid
    wait $pid || true
    gone
    same "$(cgroups)" ""
}

# On the host itself what an attempt needs is below /tmp for all to see; and its keeper, who would remove it, is killed too.
killed_on_the_host_the_next_one_collects() {
    local pid worker below left=
    "$B/mayfly-lab" lab --where host --probe PS9 --no-price --quiet >"$T/out" 2>"$T/err" </dev/null &
    pid=$!
    for _ in $(seq 200); do
        keeper=$(pgrep -P $pid) && below=$(pgrep -P "$keeper") &&
            for worker in $(pgrep -P "$below"); do
                left=$(compgen -G "/tmp/mayfly-lab-$worker-*") && break 2
            done
        sleep 0.02
    done
    [ -n "$left" ] || fail "it made no directory: $(cat "$T/out" "$T/err")"
    kill -KILL $pid "$keeper"
    wait $pid || true
    for _ in $(seq 50); do # a process of it that still ends has it as well
        lab 0 --where host --probe SY2 --control seccomp --no-price --quiet
        [ -e "$left" ] || return 0
        sleep 0.1
    done
    fail "still there: $left"
}

in_a_kernel_of_its_own() {
    local pid kernel
    need linux.uml
    lab 0 --where kernel --probe FS1 --control mount --no-price --quiet --check --json "$T/lab.json"
    same "$(of "$T/lab.json" 'lab["where"], lab["cgroups"]')" "('kernel', 'v2')"
    same "$(of "$T/lab.json" 'lab["probes"][0]["matrix"]')" "{'mount': 'stopped_too'}"
    # Killed, it takes its kernel along.
    "$B/mayfly-lab" lab --where kernel --probe FS1 --no-price --quiet --json "$T/lab.json" >"$T/out" 2>"$T/err" </dev/null &
    pid=$!
    for _ in $(seq 100); do
        ! pgrep -P $pid -f '^[^ ]*linux.uml ' >/dev/null || break
        sleep 0.02
    done
    kernel=$(pgrep -P $pid -a | grep -oE 'uml_dir=[^ ]+')
    kill -KILL $pid
    wait $pid || true
    for _ in $(seq 50); do
        [ -n "$(pgrep -f -- "$kernel")" ] || break
        sleep 0.1
    done
    same "$(pgrep -f -- "$kernel")" ""
    # What it had on the disk goes with the next.
    [ -d "${kernel#*=}" ]
    lab 0 --where host --probe SY2 --control seccomp --no-price --quiet
    [ ! -e "${kernel#*=}" ]
    LAB_PATH=/nowhere lab 125 --where kernel --probe FS1
    says "install the package user-mode-linux"
}

each_difference_between_the_kernels_has_its_reason() {
    python3 tests/lab/matrix.py differs tests/lab/matrix-machine.txt tests/lab/matrix-uml.txt tests/lab/differs.txt
}

# All of it, where there is time: MAYFLY_TEST_FULL=1.
the_whole_matrix_is_as_it_is_written() {
    [ -n "${MAYFLY_TEST_FULL:-}" ] || skip time "MAYFLY_TEST_FULL=1 has it made"
    lab 0 --no-price --quiet --check --json "$T/lab.json"
    python3 tests/lab/matrix.py compare tests/lab/matrix-machine.txt "$T/lab.json"
}
