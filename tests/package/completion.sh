#!/bin/bash
# The functions of test_completion.c: the completion of each shell, driven as that shell drives it.

# bash_gives WANT WORD...: the words that bash's Tab would offer for the last word
bash_gives() {
    local want=$1 got
    shift
    # shellcheck disable=SC2016 # the inner shell expands
    got=$(bash --norc --noprofile -c '
        . packaging/completion/mayfly.bash
        [[ $(complete -p mayfly) == "complete -F _mayfly mayfly" ]] || exit 1
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _mayfly
        printf "%s\n" "${COMPREPLY[@]}" | sort' - "$@" | tr '\n' ' ')
    same "$* -> ${got% }" "$* -> $want"
}

bash_completes_commands_flags_values_and_paths() {
    mkdir -p "$T/dir-a" "$T/dir-b"
    touch "$T/dir-file"
    bash_gives "plan" mayfly pl
    bash_gives "--tag" mayfly import --ta
    bash_gives "missing" mayfly run --pull = m
    bash_gives "--force" mayfly rmi --fo
    bash_gives "--memory --memory-swap" mayfly run --mem
    bash_gives "--stats" mayfly python --memory 1g --sta
    bash_gives "--stats" mayfly python --memory = 1g --sta
    bash_gives "best-effort strict" mayfly run --limits ""
    bash_gives "best-effort" mayfly run --limits = b
    bash_gives "false" mayfly run --read-only = f
    bash_gives "$T/dir-a $T/dir-b" mayfly run --rootfs "$T/dir"
    bash_gives "$T/dir-a $T/dir-b $T/dir-file" mayfly run -v "$T/dir"
    bash_gives "$T/dir-file" mayfly run --policy "$T/dir-f"
    bash_gives "python run" mayfly plan ""
    bash_gives "--attest" mayfly plan run --att
    bash_gives "--all" mayfly gc --a
    bash_gives "" mayfly gc --mem
    bash_gives "" mayfly run --memory 1g sh --mem # the command's own flags
    bash_gives "" mayfly python -c 'print()' --mem
}

# On a terminal of its own, with the Tab key: WANT appears, though it was not typed.
tab_gives() { # SHELL-COMMAND READY TYPED WANT
    need python3
    timeout 60 python3 - "$@" <<'END'
import os, pty, select, sys, time
command, ready, typed, want = sys.argv[1:]
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="dumb", PS1="", HISTFILE="")
    os.execvp("sh", ["sh", "-c", command])
seen = b""
def until(word, seconds):
    global seen
    end = time.monotonic() + seconds
    while word.encode() not in seen and time.monotonic() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                seen += os.read(fd, 65536)
            except OSError:
                break
    return word.encode() in seen
if not until(ready, 30):
    sys.exit("the shell does not come up: %r" % seen)
seen = b""
assert want not in typed
os.write(fd, typed.encode() + b"\t")
found = until(want, 15)
os.write(fd, b"\x03\x03exit\n")
os.kill(pid, 9)
if not found:
    sys.exit("%r then Tab shows %r" % (typed, seen))
END
}

bash_completes_at_the_tab_key() {
    printf 'PS1="re""ady> "\nbind "set bell-style none"\n. packaging/completion/mayfly.bash\n' >"$T/rc"
    tab_gives "exec bash --rcfile $T/rc -i" "ready> " "mayfly python --attes" "--attest"
    tab_gives "exec bash --rcfile $T/rc -i" "ready> " "mayfly run --limits be" "best-effort"
}

zsh_completes_at_the_tab_key() {
    need zsh
    mkdir "$T/f" "$T/root-of-a-box"
    cp packaging/completion/mayfly.zsh "$T/f/_mayfly"
    printf '%s\n' "fpath=($T/f \$fpath)" 'autoload -Uz compinit' "compinit -u -d $T/dump" \
        'unset zle_bracketed_paste' 'PS1="re""ady> "' >"$T/.zshrc"
    local start="ZDOTDIR=$T exec zsh -d -i"
    tab_gives "$start" "ready> " "mayfly ver" "version"
    tab_gives "$start" "ready> " "mayfly run --attes" "--attest"
    tab_gives "$start" "ready> " "mayfly run --limits be" "best-effort"
    tab_gives "$start" "ready> " "mayfly run --limits=be" "best-effort"
    tab_gives "$start" "ready> " "mayfly plan run --hostn" "--hostname"
    tab_gives "$start" "ready> " "mayfly run --rootfs $T/root" "root-of-a-box"
    tab_gives "$start" "ready> " "mayfly gc --al" "--all"
}

fish_gives() { # WANT LINE
    local got
    got=$(HOME=$T fish --no-config -c "source packaging/completion/mayfly.fish; complete -C '$2'" |
        cut -f1 | sort | tr '\n' ' ')
    same "$2 -> ${got% }" "$2 -> $1"
}

fish_completes_commands_flags_values_and_paths() {
    need fish
    mkdir "$T/dir-a"
    touch "$T/dir-file"
    fish_gives "plan" "mayfly pl"
    fish_gives "--memory --memory-swap" "mayfly run --mem"
    fish_gives "--attest" "mayfly plan run --att"
    fish_gives "best-effort strict" "mayfly run --limits "
    fish_gives "--limits=best-effort" "mayfly run --limits=b"
    fish_gives "$T/dir-a/" "mayfly run --rootfs $T/dir"
    fish_gives "$T/dir-a/ $T/dir-file" "mayfly run -v $T/dir"
    fish_gives "$T/dir-file" "mayfly run --policy $T/dir-f"
    fish_gives "python run" "mayfly plan "
    fish_gives "--all" "mayfly gc --al"
    fish_gives "" "mayfly gc --mem"
}
