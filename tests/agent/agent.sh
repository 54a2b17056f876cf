#!/bin/bash
# The functions of test_agent.c: `mayfly agent` against an endpoint that plays a script (endpoint.py), at $ENDPOINT_PORT on
# 127.0.0.1. Whatever the agent sends that it should not is a status 418, which is an error of the agent's.
# shellcheck disable=SC2030,SC2031 # T is a directory of its own in those that run beside each other

key=sk-test-4711-do-not-tell
flags=(--rootfs "$ROOTFS" --model test-model --no-log)
[ -z "${BEST_EFFORT:-}" ] || flags+=(--limits=best-effort)
export OPENAI_API_KEY=$key
unset OPENAI_MODEL http_proxy HTTP_PROXY https_proxy ALL_PROXY all_proxy

# at SCRIPT: a new conversation, whose name is $name
talks=0
at() {
    talks=$((talks + 1)) name=$BASHPID-$talks
    export OPENAI_BASE_URL=http://127.0.0.1:$ENDPOINT_PORT/$1/$name/v1
}

# agent STATUS SCRIPT [FLAG...] QUESTION: $out and $err are what it printed; the key is never in it
agent() {
    local want=$1 got=0
    at "$2"
    shift 2
    "$B/mayfly" agent "${flags[@]}" "$@" >"$T/out" 2>"$T/err" </dev/null || got=$?
    out=$(cat "$T/out") err=$(cat "$T/err")
    [ $got = "$want" ] || fail "exit status $got: $out$err"
    [[ $out$err != *"$key"* ]] || fail "the key was printed: $out$err"
}

# The one line of an error, and what is in it
error_has() {
    local words
    same "$out" ""
    same "$(wc -l <"$T/err")" 1
    for words; do
        has "$err" "$words"
    done
}

# json NAME: of the object in $out, by Python's words
json() { python3 -c 'import json, sys; o = json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$out" "$1"; }

# Whether a process has that name, within some seconds
await_process() { # WANT NAME
    python3 - "$@" <<'END'
import glob, sys, time

def there():
    for path in glob.glob("/proc/[0-9]*/comm"):
        try:
            if open(path).read() == sys.argv[2] + "\n":
                return True
        except OSError:
            pass
    return False

end = time.monotonic() + 10
while there() != (sys.argv[1] == "there"):
    if time.monotonic() > end:
        sys.exit(f"the process {sys.argv[2]} is not {sys.argv[1]}")
    time.sleep(0.02)
END
}

# What npm has brought (scripts/npm-tree.sh), and a Node for it
node_ready() {
    local arch
    case $(uname -m) in x86_64) arch=x64 ;; aarch64) arch=arm64 ;; *) arch=none ;; esac
    clients=$PWD/build/mcp-clients
    [ -e "$clients/done" ] || skip npm "others' programs are not installed (scripts/npm-tree.sh tests/mcp/clients $clients)"
    node=$clients/node_modules/node-linux-$arch/bin/node
    [ -x "$node" ] || node=node
}

# ------------------------------------------------------------------ the loop

a_traceback_is_read_and_the_corrected_code_gives_the_answer() {
    agent 0 corrects "What is 1 + … + 10, and over 0?"
    same "$out" "The sum is 55; over 0 it is nothing."
    same "$err" "mayfly: agent: step 1: run_python
mayfly: agent: run_python: exit code: 1
mayfly: agent: step 2: run_python
mayfly: agent: run_python: exit code: 0"
}

the_object_has_the_conversation_the_runs_and_the_tokens() {
    agent 0 corrects --json "What is 1 + … + 10, and over 0?"
    same "$err" ""
    same "$(wc -l <"$T/out")" 1
    same "$(json "[o[n] for n in ('outcome', 'answer', 'error', 'finishReason', 'model', 'steps', 'retries', 'tokens')]")" \
        "['answered', 'The sum is 55; over 0 it is nothing.\\n', None, 'stop', 'test-model-1', 3, 0, {'prompt': 300, 'completion': 21, 'total': 321}]"
    same "$(json "[m['role'] for m in o['messages']]")" "['system', 'user', 'assistant', 'tool', 'assistant', 'tool', 'assistant']"
    same "$(json "[(r['step'], r['tool'], r['callId'], r['isError'], r['wallMs'] > 1, r['result']['exitCode'], r['result']['stdout']) for r in o['runs']]")" \
        "[(1, 'run_python', 'call-run_python-0', False, True, 1, ''), (2, 'run_python', 'call-run_python-0', False, True, 0, '55\\n')]"
    has "$(json "o['runs'][0]['result']['stderr']")" "ZeroDivisionError"
    for name in $(json "' '.join(list(o) + ['runs[].' + n for n in o['runs'][0]] + ['tokens.' + n for n in o['tokens']])"); do
        sed -n '/^\.Sh WHAT AN AGENT/,/^\.Sh EX/p' man/mayfly-result.5 | grep -E "^\.It Va (.* )?${name//[\[]/\\[}(\[\]|\..*)?( |$)" ||
            [ "$name" = tokens ] || [ "$name" = runs ] || fail "mayfly-result(5) does not tell of $name"
    done
    # What is found out before the endpoint is asked is told in the same form.
    agent 125 corrects --json --rootfs /nowhere x
    same "$(json "o['outcome'], o['messages']")" "('failed', [])"
    has "$(json "o['error']['message']")" "/nowhere"
}

an_endpoint_that_does_not_stream_serves_too() {
    agent 0 whole "?"
    same "$out" "It is 42."
    agent 0 old --json "?"
    same "$(json "o['answer'], o['retries'], o['tokens']['total']")" "('It is 42.', 0, 214)"
    agent 0 tokens --max-tokens 77 "?"
    same "$out" "Short."
}

two_calls_of_one_turn_run_beside_each_other() {
    agent 0 two "?"
    same "$out" "Both ran."
}

what_endpoints_leave_out_is_understood() {
    agent 0 strange --json "?"
    same "$(json "o['answer'], o['steps'], o['tokens'], [r['result']['stdout'] for r in o['runs']]")" \
        "('Understood.', 3, None, ['object\\n', 'x\\n', 'y\\n'])"
}

what_the_model_does_wrong_it_is_told() {
    agent 0 unknown "?"
    same "$out" "I cannot browse."
    agent 0 malformed "?"
    same "$out" "Mended."
}

steps_and_answers_have_an_end() {
    agent 4 again --max-steps 2 "?"
    same "$out" ""
    has "$err" "no answer within 2 steps"
    agent 4 again --max-steps 1 --json "?"
    same "$(json "o['outcome'], o['answer'], o['steps'], o['runs'], o['error']")" "('max_steps', None, 1, [], None)"
    agent 3 length "?"
    same "$out" "The first half of"
    has "$err" "its finish reason is length; allow more with --max-tokens"
    agent 3 mute --json "?"
    same "$(json "o['outcome'], o['answer'], o['finishReason']")" "('incomplete', None, 'stop')"
}

very_long_output_is_cut_for_the_model() {
    agent 0 long "?"
    same "$out" "Long."
}

# ------------------------------------------------------------------ the operator

the_flags_say_what_is_asked_and_what_may_be_run() {
    agent 0 echo --json --system "Be brief." "hello"
    same "$(json "[m['content'] for m in o['messages'][:2]]")" "['Be brief.', 'hello']"
    same "$(json "sorted(json.loads(o['answer']))")" "['messages', 'model', 'stream', 'stream_options', 'tools']"
    same "$(json "json.loads(o['answer'])['tools']")" "['run_python']"
    agent 0 echo --json --system "" --allow-run --memory 64m "hello"
    same "$(json "json.loads(o['answer'])['tools'], len(json.loads(o['answer'])['messages'])")" "(['run_python', 'run_command'], 1)"
    at echo
    out=$(printf 'from\nstdin' | OPENAI_MODEL=test-model "$B/mayfly" agent "${flags[@]:0:2}" --no-log ${BEST_EFFORT:+--limits=best-effort} --json -)
    same "$(json "o['messages'][1]['content'], o['model']")" "('from\\nstdin', 'test-model-1')"
}

files_go_in_and_come_out_by_name() {
    echo 20,22 >"$T/data"
    agent 0 files --file "data.csv=$T/data" --json "?"
    same "$(json "[(r['filesIn'], [(f['name'], f['bytes']) for f in r['result']['files']]) for r in o['runs']]")" \
        "[(None, [('sum.txt', 2)]), (None, [('sum.txt', 9)]), (None, [])]"
    agent 0 files --file "data.csv=$T/data" --out - "?" # the same, and so without --json
    # Into a directory: each run's apart, and what is there stays as it is.
    mkdir "$T/kept" "$T/kept/2"
    agent 0 kept --file "data.csv=$T/data" --out "$T/kept" "?"
    same "$(cd "$T/kept" && echo * && cat 1/sum.txt 3/sum.txt)" "1 2 3
42corrected"
    has "$err" "mayfly: agent: run_python: has made $T/kept/1/sum.txt (2 B)"
    agent 125 corrects --out "$T/data" "?"
    error_has "$T/data"
}

each_run_is_in_the_log_unless_the_operator_says_no() {
    flags=("${flags[@]/#--no-log/--log=$T/runs}")
    agent 0 corrects "What is 1 + … + 10, and over 0?"
    "$B/mayfly" log verify --log="$T/runs"
    same "$("$B/mayfly" log --json --log="$T/runs" | python3 -c 'import json, sys
print([(r["source"], r["outcome"], r["exitCode"], r["code"]["text"]) for r in map(json.loads, sys.stdin)])')" \
        "[('agent', 'exited', 1, 'total = sum(range(11))\\nprint(total / 0)'), ('agent', 'exited', 0, 'print(sum(range(11)))')]"
    ! grep -F "$key" "$T/runs" || fail "the key is in the log"
    flags=("${flags[@]/#--log=*/--log=/nowhere/runs}")
    agent 125 corrects "?"
    error_has "/nowhere/runs" "; or log nothing: --no-log"
    agent 125 corrects --no-log "?"
    error_has "--no-log: and --log"
    agent 125 corrects --log-code some "?"
    error_has "--log-code: \"some\" is not full, digest or none"
}

what_is_wrong_with_the_flags_is_said_at_once() {
    agent 125 echo
    error_has "wants one QUESTION"
    agent 125 echo two words
    error_has "quoted"
    agent 125 echo "  "
    error_has "the question is empty"
    agent 125 echo $'\xff'
    error_has "is not UTF-8"
    agent 125 echo --max-steps 0 "?"
    error_has "--max-steps: \"0\" is not 1 to 1000"
    agent 125 echo --request-timeout soon "?"
    error_has "--request-timeout"
    agent 125 echo --no-such "?"
    error_has "--no-such: no such flag"
    agent 125 echo --model "" "?"
    agent 125 echo -e OPENAI_API_KEY "?"
    error_has "OPENAI_API_KEY would be in the box"
    OPENAI_API_KEY=$'sk\r\nX: y' agent 125 echo "?"
    error_has "OPENAI_API_KEY: holds what no key has"
}

the_endpoint_is_one_that_may_be_told_the_key() {
    local url
    for url in http://example.org/v1 http://127.0.0.1.example.org/v1; do
        OPENAI_BASE_URL=$url "$B/mayfly" agent "${flags[@]}" "?" >"$T/out" 2>"$T/err" && fail "$url is taken"
        has "$(cat "$T/err")" "in the clear"
    done
    for url in http://localhost:1@example.org/v1 https://me:secret@example.org/v1 http://me@127.0.0.1/v1; do
        OPENAI_BASE_URL=$url "$B/mayfly" agent "${flags[@]}" "?" >"$T/out" 2>"$T/err" && fail "$url is taken"
        has "$(cat "$T/err")" "has a name or a password in it; the key is what OPENAI_API_KEY is for"
        [[ "$(cat "$T/err")" != *secret* ]] || fail "the password is shown"
    done
    for url in ftp://127.0.0.1/v1 127.0.0.1 "http://127.0.0.1/v1?x=1" ://; do
        OPENAI_BASE_URL=$url "$B/mayfly" agent "${flags[@]}" "?" >"$T/out" 2>"$T/err" && fail "$url is taken"
        has "$(cat "$T/err")" "no URL of an endpoint"
    done
    OPENAI_API_KEY='' OPENAI_BASE_URL='' "$B/mayfly" agent "${flags[@]}" "?" 2>"$T/err" && fail "without a key"
    has "$(cat "$T/err")" "OPENAI_API_KEY is not set"
    # No proxy stands between this machine and itself.
    http_proxy=http://127.0.0.1:1 ALL_PROXY=http://127.0.0.1:1 agent 0 echo "?"
    agent 125 moved "?"
    error_has "HTTP 307, to http://127.0.0.2:$ENDPOINT_PORT/corrects/elsewhere/v1/chat/completions; the key is not carried elsewhere"
    [ ! -e "$SERVERS/port.visited" ] || fail "a redirect was followed"
}

the_key_is_in_no_box_and_no_command_line() {
    local pid
    agent 0 spy "?"
    same "$out" "Nothing found."
    at thinks
    "$B/mayfly" agent "${flags[@]}" --quiet "?" >"$T/out" 2>"$T/err" &
    pid=$!
    sleep 0.5
    tr '\0' ' ' <"/proc/$pid/cmdline" >"$T/cmdline"
    tr '\0' '\n' <"/proc/$pid/environ" >"$T/environ"
    kill -INT $pid
    wait $pid || [ $? = 130 ]
    has "$(cat "$T/cmdline")" "mayfly-agent"
    has "$(cat "$T/environ")" "OPENAI_BASE_URL"
    ! grep -F "$key" "$T/cmdline" "$T/environ" || fail "the key is there"
}

# ------------------------------------------------------------------ trouble

what_the_operator_must_mend_is_one_line() {
    agent 125 denied "?"
    error_has "/denied/$name/v1/chat/completions: HTTP 401: Incorrect API key provided: ****" "; check OPENAI_API_KEY"
    agent 125 denied --json "?"
    has "$(json "o['error']['message']")" "HTTP 401"
    agent 125 nomodel "?"
    error_has "HTTP 404: The model" "check --model, and OPENAI_BASE_URL"
    agent 125 quota "?"
    error_has "HTTP 429: You exceeded your current quota; look at the account's plan"
    agent 125 never "?"
    error_has "(it asks to wait for 24 h)"
}

what_is_no_chat_completion_is_one_line() {
    agent 125 html "?"
    error_has "HTTP 200 with no JSON (text/html); check that OPENAI_BASE_URL"
    agent 125 nojson "?"
    error_has ": no JSON; check that OPENAI_BASE_URL"
    agent 125 other "?"
    error_has "JSON that is no chat completion"
    agent 125 empty "?"
    error_has "HTTP 200 with no JSON"
    agent 125 deep "?"
    error_has "HTTP 200 with no JSON"
}

# together FUNCTION...: beside each other, since most of their time is waiting
together() {
    local one pids=()
    for one; do
        (
            T=$T/$one
            mkdir "$T"
            "$one"
        ) &
        pids+=($!)
    done
    for one in "${pids[@]}"; do
        wait "$one" || fail "one of $* fails"
    done
}

seconds() {
    agent 0 seconds "?"
    same "$out" "Patience."
    has "$err" "HTTP 429: Rate limit reached; asking again in 1 s"
}
date_() {
    agent 0 date "?"
    same "$out" "Patience."
}
trouble() {
    agent 0 trouble "?"
    same "$out" "Well again."
    same "$(grep -c "asking again" "$T/err")" 2
}
inside() {
    agent 0 inside --quiet "?"
    same "$out" "Then it went well."
    same "$err" ""
}
cut_() {
    agent 0 cut --json "?"
    same "$(json "o['answer'], o['retries']")" "('Whole.', 2)"
}
a_moments_trouble_and_a_cut_stream_are_waited_out() {
    together seconds date_ trouble inside cut_
}

down() {
    agent 125 down --retries 1 "?"
    same "$out" ""
    has "$err" "HTTP 503: The server is overloaded [2J; try later, or raise --retries"
    same "$(wc -l <"$T/err")" 2
}
cut_always() {
    agent 125 cutalways --retries 1 --quiet "?"
    error_has "try again, or raise --retries"
}
drips() {
    agent 125 drips --request-timeout 600ms "?"
    error_has "no end of the answer within 600 ms; allow more with --request-timeout"
}
long_line() {
    agent 125 longline "?"
    error_has "an event of the stream is over 8 MiB and does not end"
}
flood() {
    agent 125 flood "?"
    error_has "the answer is over 16 MiB"
}
open_() {
    agent 0 open "?"
    same "$out" "All."
}
what_lasts_or_never_ends_is_given_up() {
    together down cut_always drips long_line flood open_
}

an_interrupt_ends_the_box_and_then_the_program() {
    local pid status signal
    for signal in INT TERM KILL; do
        at sleeps
        "$B/mayfly" agent "${flags[@]}" --timeout 60s --json "?" >"$T/out" 2>"$T/err" &
        pid=$! status=0
        await_process there "nap-$name"
        kill -$signal $pid
        wait $pid || status=$?
        await_process gone "nap-$name"
        same "$status" $((128 + $(kill -l $signal)))
        out=$(cat "$T/out")
        [ $signal = KILL ] || same "$(json "o['outcome'], o['steps']")" "('interrupted', 1)"
    done
}

# ------------------------------------------------------------------ a terminal

a_terminal_shows_the_text_as_it_comes_and_obeys_none_of_it() {
    at rude
    python3 - "$B/mayfly" agent "${flags[@]}" "?" >"$T/seen" <<'END'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    try:
        data = os.read(fd, 65536)
    except OSError:
        break
    if not data:
        break
    sys.stdout.buffer.write(data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
    has "$(cat "$T/seen")" "  | print('\\x1b[31mred')"
    has "$(cat "$T/seen")" "[31mred"
    has "$(cat "$T/seen")" "plain[2J]0;owned text"
    ! grep -q $'[\x1b\x07]' "$T/seen" || fail "the terminal was told to do something"
}

# ------------------------------------------------------------------ somebody else's endpoint

# others SCRIPT: the endpoint of the package @dwmkerr/mock-llm, which matches what it is asked with rules, at $url
others() {
    local port
    node_ready
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    HOST=127.0.0.1 PORT=$port "$node" "$clients/node_modules/@dwmkerr/mock-llm/dist/main.js" --config "$1" >"$T/log" 2>&1 &
    server=$!
    trap 'kill $server; wait $server || true; rm -rf "$T"' EXIT
    for _ in $(seq 200); do
        grep -q "server running" "$T/log" && break
        sleep 0.05
    done
    export OPENAI_BASE_URL=http://127.0.0.1:$port/v1
}

an_endpoint_that_others_have_written_is_understood() {
    others tests/agent/mock-llm.yaml
    out=$("$B/mayfly" agent "${flags[@]}" --json --no-stream "What is the sum?")
    same "$(json "o['answer'], o['steps'], o['tokens']['total'], [r['result']['stdout'] for r in o['runs']]")" \
        "('It is 55.', 3, 42, ['', '55\\n'])"
    out=$("$B/mayfly" agent "${flags[@]}" --json "Say it.")
    same "$(json "o['answer'], o['steps'], o['finishReason']")" "('What I was asked is: Say it.', 1, 'stop')"
    ! "$B/mayfly" agent "${flags[@]}" --no-stream "I am denied" 2>"$T/err" || fail "it is not denied"
    has "$(cat "$T/err")" "HTTP 401: Incorrect API key provided; check OPENAI_API_KEY"
}
