#compdef mayfly
# Completion of mayfly for zsh.
#
# tests/package/test_manual.c compares the flags with the program's own table.

_mayfly_flags() {
    local -a flags
    flags=(
        '(-m --memory)'{-m+,--memory=}'[memory of the whole box]:size (256m):'
        '--memory-swap=[memory and swap together]:size:'
        '--cpus=[CPUs'"'"' worth of time]:number (1):'
        '--pids-limit=[processes and threads at once]:number (128):'
        '--timeout=[wall clock until the run is killed]:time (10s):'
        '--cpu-time=[CPU time of all processes together]:time:'
        '--max-output=[bytes kept of each of stdout and stderr]:size[\:kill] (1m):'
        '--tmp-size=[size of /tmp, /dev/shm and home, each]:size (64m):'
        '--tmp-inodes=[files in each of them]:number (16384):'
        '*--ulimit=[a limit of each process]:name=soft[\:hard]:(as= core= cpu= data= fsize= memlock= msgqueue= nofile= nproc= sigpending= stack=)'
        '--limits=[what to do when a limit cannot be put in force]:how:(strict best-effort)'
        '--cgroup-parent=[cgroup below which the box'"'"'s is made]:cgroup:_files -/'
        '--rootfs=[directory that is the box'"'"'s root]:directory:_files -/'
        '--read-only=-[the root cannot be written]::boolean:(true false)'
        '*'{-v+,--volume=}'[show a directory or file of the host'"'"'s]:source\:target[\:rw]:_files -S \:'
        '*--mount=[the same in the long form of docker]:type=bind,src=…,dst=…:(type=bind,src= type=tmpfs,dst=)'
        '*--tmpfs=[one more place in memory]:path in the box[\:options]:'
        '(-w --workdir)'{-w+,--workdir=}'[where the command starts]:directory in the box:'
        '*'{-e+,--env=}'[a variable]:name=value:_parameters -S = -q'
        '(-u --user)'{-u+,--user=}'[who the code is in the box]:uid[\:gid] (1000):'
        '--hostname=[the host name of the box]:name:'
        '(-i --interactive)'{-i,--interactive}'[pass standard input on]'
        '--attest[read every control back before the code runs]'
        '--network=[none is all there is]:network:(none)'
        '*--cap-drop=[all are dropped, always]:capability:(ALL)'
        '*--security-opt=[another seccomp profile]:option:(seccomp=builtin seccomp= no-new-privileges)'
        '*--env-file=[variables, one on each line]:file:_files'
        '--policy=[fields as a JSON object]:file:_files -g "*.json(-.)"'
        '--json[print the result as one JSON object]'
        '--stats[print what the run used]'
        '--init[always so]'
        '--rm[always so]'
        '(- *)'{-h,--help}'[the flags, with their defaults]'
    )
    # What follows the first word that is no flag is the box's: it is completed as files.
    if [[ $1 = python ]]; then
        _arguments -s -S "$flags[@]" '(1)-c[the code]:code:' '1:program:_files' '*::argument:_files'
    else
        _arguments -s -S "$flags[@]" '1:command in the box:' '*::argument:_files'
    fi
}

_mayfly() {
    local -a commands
    local curcontext=$curcontext state line
    commands=(
        'python:run Python code in a fresh box'
        'run:run a command in a fresh box'
        'plan:print the system calls that such a run would make'
        'doctor:say what this host can put in force'
        'gc:collect what killed runs left behind'
        'version:print the version'
        'help:the flags of a command'
    )
    _arguments -C '(- *)'{-h,--help}'[what there is]' '(- *)--version[print the version]' \
        '1:command:->command' '*::argument:->rest' && return
    case $state in
        command) _describe command commands ;;
        rest)
            case $line[1] in
                python | run) _mayfly_flags $line[1] ;;
                plan)
                    if ((CURRENT == 2)); then
                        compadd python run
                    else
                        shift words
                        ((CURRENT--))
                        _mayfly_flags $words[1]
                    fi
                    ;;
                doctor) _arguments '--verbose[say it of what is in order too]' '--json[print JSON]' \
                    '(- *)'{-h,--help}'[help]' ;;
                gc) _arguments '--all[look through the whole cgroup tree]' '--json[print JSON]' \
                    '(- *)'{-h,--help}'[help]' ;;
                help) ((CURRENT == 2)) && _describe command commands ;;
            esac
            ;;
    esac
}

_mayfly "$@"
