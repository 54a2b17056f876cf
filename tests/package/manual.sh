#!/bin/bash
# Functions of test_manual.c: pages and completion say what the program says.

# The flags of `mayfly run --help`, one a line, and those that it has no room for.
flags() {
    "$B/mayfly" help run | sed -nE 's/^ {2,6}((-[a-zA-Z], )?--[a-z-]+(, --[a-z-]+)?).*/\1/p' |
        tr -d ' ' | tr ',' '\n'
    printf '%s\n' --help
}
sorted() { sort -u | tr '\n' ' '; }

every_flag_is_in_mayfly_1_and_none_besides() {
    local page
    page=$(sed -n 's/^\.It \(Fl .*\)/\1/p' man/mayfly.1 | grep -oE 'Fl -?[a-z-]+' | sed 's/^Fl /-/')
    [ "$(flags | wc -l)" -gt 25 ] || fail "mayfly help run prints no flags that this test could see"
    same "$(sorted <<<"$page")" "$( (flags && printf '%s\n' -c -h) | sorted)"
}

every_command_is_in_mayfly_1_and_none_besides() {
    local page program
    page=$(sed -n '/^\.Sh COMMANDS/,/^\.Sh FLAGS/s/^\.It Cm //p' man/mayfly.1)
    program=$("$B/mayfly" help | sed -nE 's/^  mayfly ([a-z]+) .*/\1/p')
    same "$(sorted <<<"$page")" "$(sorted <<<"$program")"
}

every_flag_and_command_is_completed_by_bash() {
    local got
    got=$(bash --norc --noprofile -c '. packaging/completion/mayfly.bash
        COMP_WORDS=(mayfly python -) COMP_CWORD=2; _mayfly; printf "%s\n" "${COMPREPLY[@]}"')
    same "$(sorted <<<"$got")" "$( (flags && echo -c) | sorted)"
    got=$(bash --norc --noprofile -c '. packaging/completion/mayfly.bash
        COMP_WORDS=(mayfly "") COMP_CWORD=1; _mayfly; printf "%s\n" "${COMPREPLY[@]}"')
    same "$(grep -v -e '^-' <<<"$got" | sorted)" \
        "$("$B/mayfly" help | sed -nE 's/^  mayfly ([a-z]+) .*/\1/p' | sorted)"
}

every_flag_and_command_is_completed_by_zsh() {
    local got flag
    got=$(sed -n '/^    flags=(/,/^    )/p' packaging/completion/mayfly.zsh |
        sed -E "s/\[.*//; s/\([^)]*\)//; s/[+='*]//g" | grep -oE '(^|[ ,{])--?[a-z][a-z-]*' | tr -d ' ,{')
    same "$(while read -r flag; do printf '%s\n' "${flag%-}"; done <<<"$got" | sorted)" "$( (flags && echo -h) | sorted)"
    got=$(sed -n "/^    commands=(/,/^    )/s/^ *'\([a-z]*\):.*/\1/p" packaging/completion/mayfly.zsh)
    same "$(sorted <<<"$got")" "$("$B/mayfly" help | sed -nE 's/^  mayfly ([a-z]+) .*/\1/p' | sorted)"
}

every_flag_and_command_is_completed_by_fish() {
    local got
    got=$(grep '^complete' packaging/completion/mayfly.fish | grep -v -e 'not __fish_seen' -e 'from gc' -e 'from lab' -e 'from log' -e 'from mcp' -e 'from agent' -e 'from doctor. ' -e 'from pull' -e 'from images' -e 'from import' -e 'from build' -e 'from export' -e 'from rmi prune' | sed "s/ -d '.*//" |
        grep -oE ' -(s|l) [a-z-]+' | sed -E 's/ -s /-/; s/ -l /--/')
    same "$(sorted <<<"$got")" "$( (flags && printf '%s\n' -c -h) | sorted)"
    got=$(sed -n 's/^set -l commands //p' packaging/completion/mayfly.fish | tr ' ' '\n')
    same "$(sorted <<<"$got")" "$("$B/mayfly" help | sed -nE 's/^  mayfly ([a-z]+) .*/\1/p' | sorted)"
}

the_flags_of_doctor_and_gc_are_in_mayfly_1_and_completed() {
    local command flag n=0
    for command in doctor gc; do
        for flag in $("$B/mayfly" help $command | sed -n 1p | grep -oE -e '--[a-z]+'); do
            n=$((n + 1))
            sed -n "/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/{/^\.Cm $command/,/^\.Nm/p}" man/mayfly.1 |
                grep -x -e ".Op Fl ${flag#-}" || fail "mayfly(1) has no $flag of $command"
            grep -E "^ *$command\)" packaging/completion/mayfly.bash | grep -e "$flag" ||
                fail "bash does not complete $flag of $command"
            sed -nE "/^ *$command\)/,/;;/p" packaging/completion/mayfly.zsh | grep -e "$flag\[" ||
                fail "zsh does not complete $flag of $command"
            grep -E "from ([a-z]+ )*$command" packaging/completion/mayfly.fish | grep -e " -l ${flag#--} " ||
                fail "fish does not complete $flag of $command"
        done
    done
    [ $n -ge 4 ] || fail "mayfly help prints no flags of doctor and gc that this test could see"
}

the_flags_of_the_commands_about_images_are_in_mayfly_1_and_completed() {
    local command flag n=0
    for command in pull images import build export inspect rmi prune log; do
        for flag in $("$B/mayfly" help $command | sed 1d | grep -oE -e '^ {2,6}.*' | grep -oE -e '--[a-z-]+' | sort -u); do
            n=$((n + 1))
            sed -n "/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/{/^\.Cm $command/,/^\.Nm/p}" man/mayfly.1 |
                grep -e "^.Op Fl ${flag#-}\( \|$\)" || fail "mayfly(1) has no $flag of $command"
            grep -E "^ *$command\)" packaging/completion/mayfly.bash | grep -e "$flag" ||
                fail "bash does not complete $flag of $command"
            sed -nE "/^ *$command\)/,/;;/p" packaging/completion/mayfly.zsh | grep -E -e "$flag('|=?\[|=?})" ||
                fail "zsh does not complete $flag of $command"
            grep -E "from ([a-z]+ )*$command" packaging/completion/mayfly.fish | grep -e " -l ${flag#--} " ||
                fail "fish does not complete $flag of $command"
        done
    done
    [ $n -ge 40 ] || fail "mayfly help prints no flags of images and the like that this test could see"
}

the_flags_of_lab_are_in_mayfly_1_and_completed() {
    local flag n=0 bash
    # shellcheck disable=SC2016 # the inner shell expands
    bash=$(bash --norc --noprofile -c '. packaging/completion/mayfly.bash
        COMP_WORDS=(mayfly lab -) COMP_CWORD=2; _mayfly; printf "%s\n" "${COMPREPLY[@]}"')
    for flag in $("$B/mayfly" help lab | grep -oE -e '^ {6}--[a-z-]+' | grep -v -e --help); do
        n=$((n + 1))
        sed -n '/^\.Cm lab$/,/^\.Nm/p' man/mayfly.1 | grep -E -e "^.Op Fl ${flag#-}( |$)" || fail "mayfly(1) has no $flag of lab"
        sed -n '/^\.Sh THE LAB/,/^\.Sh EXP/p' man/mayfly.1 | grep -e "^\.Fl ${flag#-}\( \|$\)" || fail "mayfly(1) does not say what $flag is"
        has "$bash" "$flag"
        sed -nE '/^ *lab\)/,/;;/p' packaging/completion/mayfly.zsh | grep -E -e "$flag=?-?\[" || fail "zsh does not complete $flag"
        grep "from lab'" packaging/completion/mayfly.fish | grep -e " -l ${flag#--} " || fail "fish does not complete $flag"
    done
    [ $n = 15 ] || fail "mayfly help lab prints $n flags"
}

every_field_of_the_labs_json_is_in_mayfly_lab_5() {
    local field
    MAYFLY_ROOTFS=$ROOTFS "$B/mayfly" lab --probe SK1 --lacks seccomp --no-price --quiet --json "$T/lab.json" >/dev/null
    python3 -c '
import json, sys
def keys(o, free):
    if isinstance(o, dict):
        for k, v in o.items():
            if not free:
                yield k
            yield from keys(v, k in ("matrix", "without", "only") and isinstance(v, dict))
    elif isinstance(o, list):
        for v in o:
            yield from keys(v, False)
print("\n".join(sorted(set(keys(json.load(open(sys.argv[1])), False)))))' "$T/lab.json" >"$T/fields"
    [ "$(wc -l <"$T/fields")" -gt 35 ] || fail "few fields: $(cat "$T/fields")"
    for field in $(cat "$T/fields") rowsUs runUs rounds version command note explain fault; do
        grep -E -e "^\.(It )?Va (.* )?$field( |$)" man/mayfly-lab.5 || fail "mayfly-lab(5) has no $field"
    done
}

the_flags_of_mcp_and_agent_are_in_mayfly_1_and_completed() {
    local command flag n=0 bash
    for command in mcp agent; do
        # shellcheck disable=SC2016 # the inner shell expands
        bash=$(bash --norc --noprofile -c '. packaging/completion/mayfly.bash
            COMP_WORDS=(mayfly "$1" --memory 1g --allow-run -) COMP_CWORD=5; _mayfly; printf "%s\n" "${COMPREPLY[@]}"' - $command)
        has "$bash" "--memory" # those of a run, too
        for flag in $("$B/mayfly" help $command | grep -oE -e '^ {6}--[a-z-]+'); do
            [[ $(flags) != *"$flag"* ]] || continue # a run's
            n=$((n + 1))
            sed -n "/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/{/^\.Cm $command/,/^\.Nm/p}" man/mayfly.1 |
                grep -e "^.Op Fl ${flag#-}\( \|$\)" || fail "mayfly(1) has no $flag of $command"
            sed -n '/^\.Sh THE TOOL/,/^\.Sh REG/p' man/mayfly.1 | grep -e "^\.Fl ${flag#-}$" || fail "mayfly(1) does not say what $flag is"
            has "$bash" "$flag"
            sed -n "/= $command/,/elif/p" packaging/completion/mayfly.zsh | grep -E -e "$flag=?\[" || fail "zsh does not complete $flag"
            grep "from $command'" packaging/completion/mayfly.fish | grep -e " -l ${flag#--} " || fail "fish does not complete $flag"
        done
    done
    [ $n = 18 ] || fail "mayfly help prints $n flags of their own"
}

every_function_is_in_libmayfly_3_and_none_besides() {
    local page
    page=$(sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/s/^\.F[no] \(mayfly_[a-z_]*\).*/\1/p' man/libmayfly.3)
    same "$(sorted <<<"$page")" \
        "$(sed -n '/^global:/,/^local:/s/^ *\([a-z_0-9]*\);/\1/p' src/lib/libmayfly.map | sorted)"
    # And each is spoken of.
    page=$(sed -n '/^\.Sh DESCRIPTION/,$s/^\.Fn \(mayfly_[a-z_]*\).*/\1/p' man/libmayfly.3)
    same "$(sorted <<<"$page"$'\n'mayfly_policy_free$'\n'mayfly_result_free)" \
        "$(sed -n '/^global:/,/^local:/s/^ *\([a-z_0-9]*\);/\1/p' src/lib/libmayfly.map | sorted)"
}

the_version_is_the_same_everywhere() {
    local version file
    version=$("$B/mayfly" version | cut -d' ' -f2)
    for file in man/*.[1-8]; do
        has "$(cat "$file")" ".Os mayfly $version"
    done
    has "$(head -1 packaging/debian/changelog)" "($version)"
}

the_pages_are_clean() {
    need mandoc
    same "$(mandoc -T lint -W warning man/*.[1-8] 2>/dev/null)" ""
}
