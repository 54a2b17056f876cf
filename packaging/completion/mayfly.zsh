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
        '--image=[image whose files are the box'"'"'s root]:image:_mayfly_images'
        '--store=[where images are kept]:directory:_files -/'
        '--pull=[when to get the image from its registry]:when:(missing always never)'
        '--entrypoint=[what runs in place of the image'"'"'s own]:command:'
        '--read-only=-[the root cannot be written]::boolean:(true false)'
        '--build=-[the rootfs is an image being made]::boolean:(true false)'
        '*'{-v+,--volume=}'[show a directory or file of the host'"'"'s]:source\:target[\:rw]:_files -S \:'
        '*--mount=[the same in the long form of docker]:type=bind,src=…,dst=…:(type=bind,src= type=tmpfs,dst=)'
        '*--tmpfs=[one more place in memory]:path in the box[\:options]:'
        '*--file=[put a copy of a file in]:name=path:'
        '--out=[bring back what the code leaves in /out]:directory:_files -/'
        '--out-size=[size of /out]:size:(16m 64m 256m)'
        '--out-files=[the most files that are brought back]:number:'
        '(-w --workdir)'{-w+,--workdir=}'[where the command starts]:directory in the box:'
        '*'{-e+,--env=}'[a variable]:name=value:_parameters -S = -q'
        '(-u --user)'{-u+,--user=}'[who the code is in the box]:user[\:group] (1000):'
        '--hostname=[the host name of the box]:name:'
        '(-i --interactive)'{-i,--interactive}'[pass standard input on]'
        '--attest[read every control back before the code runs]'
        '--network=[none is all there is]:network:(none)'
        '*--cap-drop=[all are dropped, always]:capability:(ALL)'
        '*--security-opt=[another seccomp profile]:option:(seccomp=builtin seccomp= no-new-privileges)'
        '*--env-file=[variables, one on each line]:file:_files'
        '--policy=[fields as a JSON object]:file:_files -g "*.json(-.)"'
        '--json[print the result as one JSON object]'
        '--log=-[log this run]::file:_files'
        '--log-code=[what the log has of the code]:what:(full digest none)'
        '--log-size=[a log that would grow beyond is rotated]:size (64m):'
        '--log-keep=[rotated logs that are kept]:number (10):'
        '--stats[print what the run used]'
        '--init[always so]'
        '--rm[always so]'
        '(- *)'{-h,--help}'[the flags, with their defaults]'
    )
    # What follows the first word that is no flag is the box's: it is completed as files.
    if [[ $1 = mcp ]]; then
        _arguments -s -S "$flags[@]" '--http=[serve by HTTP at this address]:address:' \
            '--token-file=[what clients have to show]:file:_files' \
            '*--allow-host=[a name it may be asked for by]:name:' \
            '*--allow-origin=[a web page that may ask]:origin:' \
            '--allow-run[offer any program of the image]' '--no-log[log nothing]' '--max-boxes=[boxes at once]:number (4):'
    elif [[ $1 = agent ]]; then
        _arguments -s -S "$flags[@]" '--model=[the model that is asked]:name:' \
            '--system=[what it is told first]:text:' '--max-steps=[how often it may be asked]:number (6):' \
            '--max-tokens=[tokens of one answer]:number:' '--allow-run[offer any program of the image]' '--no-log[log nothing]' \
            '--retries=[how often to ask again]:number (5):' \
            '--request-timeout=[the longest that an answer may take]:time (10m):' \
            '--no-stream[ask for whole answers]' '--plain-http[allow http to other machines]' \
            '--quiet[the answer and errors only]' '1:question:'
    elif [[ $1 = python ]]; then
        _arguments -s -S "$flags[@]" '(1)-c[the code]:code:' '1:program:_files' '*::argument:_files'
    else
        _arguments -s -S "$flags[@]" '1:image, or command in the box:_mayfly_images' '*::argument:_files'
    fi
}

_mayfly_images() {
    compadd -- ${(f)"$(mayfly images 2>/dev/null | sed '1d; s/ .*//; /^</d')"}
}

_mayfly() {
    local -a commands
    local curcontext=$curcontext state line
    local controls='memory cpu pids deadline user pid ipc uts cgroupns net mount proc dev tmp binds session rlimits env fds identity caps nonewprivs landlock seccomp capture'
    commands=(
        'python:run Python code in a fresh box'
        'run:run a command in a fresh box'
        'plan:print the system calls that such a run would make'
        'pull:get an image from its registry'
        'images:list the images that are in the store'
        'import:take images from archives and directories'
        'build:make an image from a Dockerfile'
        'export:write images to an archive'
        'inspect:say what the store knows of images'
        'rmi:remove images'
        'prune:remove what no image needs'
        'mcp:offer boxes to language models'
        'agent:have a language model answer by code'
        'doctor:say what this host can put in force'
        'lab:show what each control really stops'
        'log:show the run log'
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
                python | run | mcp | agent) _mayfly_flags $line[1] ;;
                plan)
                    if ((CURRENT == 2)); then
                        compadd python run
                    else
                        shift words
                        ((CURRENT--))
                        _mayfly_flags $words[1]
                    fi
                    ;;
                pull) _arguments '--platform=[which of several]:os/arch:' '--missing[ask nobody if it is there]' \
                    '--plain-http[speak to the registry without TLS]' \
                    '--tls-verify=[whether its certificate is verified]:boolean:(true false)' \
                    '--retry=[how often to try again]:number (5):' '--retry-delay=[wait before that]:time (500ms):' \
                    '--stall-timeout=[give up a silent server]:time (30s):' '--speed-limit=[too slow, a second]:size (1k):' \
                    '--config=[settings of registries]:file:_files -g "*.json(-.)"' \
                    '--no-bytecode[make no byte code]' '(-q --quiet)'{-q,--quiet}'[print the name only]' \
                    '--json[print JSON]' '--store=[where images are kept]:directory:_files -/' \
                    '(- *)'{-h,--help}'[help]' '1:image:_mayfly_images' ;;
                images) _arguments '(-q --quiet)'{-q,--quiet}'[print digests only]' '--json[print JSON]' \
                    '--store=[where images are kept]:directory:_files -/' '(- *)'{-h,--help}'[help]' ;;
                import) _arguments '(-t --tag)'{-t+,--tag=}'[the name]:name:' \
                    '--platform=[which of several]:os/arch:' '--no-bytecode[make no byte code]' \
                    '--json[print JSON]' '--store=[where images are kept]:directory:_files -/' \
                    '(- *)'{-h,--help}'[help]' '1:source:_files' ;;
                build) _arguments '*'{-t+,--tag=}'[the name]:name:' '(-f --file)'{-f+,--file=}'[the Dockerfile]:file:_files' \
                    '*--build-arg=[the value of an ARG]:name=value:' '--target=[the stage that is the image]:stage:' \
                    '--no-cache[carry every step out again]' '--pull=[when to get the base images]:when:(missing always never)' \
                    '--platform=[accepted if this machine can run it]:os/arch:' '--network=[what each RUN has]:network:(none host)' \
                    '(-m --memory)'{-m+,--memory=}'[memory of each RUN]:size:' '--cpus=[CPUs of each RUN]:number:' \
                    '--pids-limit=[processes of each RUN]:number:' '--timeout=[wall clock of each RUN]:time:' \
                    '--limits=[as of a run]:how:(strict best-effort)' '--no-bytecode[make no byte code]' \
                    '--max-disk=[what all RUNs may write]:size:' '--max-output=[what is shown of output]:size:' \
                    '--storage=[what a RUN writes to]:how:(auto overlay copy)' \
                    '(-q --quiet)'{-q,--quiet}'[print the digest only]' '--json[print JSON]' \
                    '--store=[where images are kept]:directory:_files -/' '(- *)'{-h,--help}'[help]' \
                    '1:directory:_files -/' ;;
                export) _arguments '(-o --output)'{-o+,--output=}'[where to write it]:file:_files' \
                    '--store=[where images are kept]:directory:_files -/' '(- *)'{-h,--help}'[help]' \
                    '*:image:_mayfly_images' ;;
                inspect) _arguments '--json[print JSON]' '--store=[where images are kept]:directory:_files -/' \
                    '(- *)'{-h,--help}'[help]' '*:image:_mayfly_images' ;;
                rmi) _arguments '(-f --force)'{-f,--force}'[accepted]' '--json[print JSON]' \
                    '--store=[where images are kept]:directory:_files -/' '(- *)'{-h,--help}'[help]' \
                    '*:image:_mayfly_images' ;;
                prune) _arguments '(-f --force)'{-f,--force}'[accepted]' '--json[print JSON]' \
                    '--store=[where images are kept]:directory:_files -/' '(- *)'{-h,--help}'[help]' ;;
                doctor) _arguments '--verbose[say it of what is in order too]' '--json[print JSON]' \
                    '(- *)'{-h,--help}'[help]' ;;
                log) _arguments '--log=[the log]:file:_files' '(-f --follow)'{-f,--follow}'[go on as records come]' \
                    '(-n --lines)'{-n+,--lines=}'[the last so many]:number:' \
                    '--since=[from then on]:when:(1h 24h 7d)' '--until=[before then]:when:' \
                    '--failed[runs that did not exit with 0]' \
                    '--outcome=[runs that ended so]:outcome:(exited signaled timed_out cpu_limit oom_killed output_limit cancelled setup_failed lost)' \
                    '--source=[who asked]:source:(run python mcp agent)' '--id=[that run]:id:' \
                    '--json[print JSON]' '--stats[rates by the hour]' '--prometheus[counters]' \
                    '(- *)'{-h,--help}'[help]' '1:what:(verify)' ;;
                lab) _arguments '--probe=[these probes only]:ids:' \
                    '--family=[the probes of these families]:names:_values -s , family files proc exec namespaces calls sockets processes resources leaks host' \
                    "--control=[these controls only]:names:_values -s , control $controls" \
                    "--lacks=-[only what gets through without these]::names:_values -s , control $controls" \
                    '--check[exit with 1 where something is not as the table says]' \
                    '--json=-[all that was found, as JSON]::file:_files' '--html=[a page that needs no network]:file:_files' \
                    '--markdown=[tables for a text]:file:_files' '--from=[show what was saved]:file:_files' \
                    '--with=[the same probes inside these]:names:_values -s , peer bwrap crun runc runsc podman docker firejail' \
                    '--where=[where it is tried]:place (box):(box kernel host)' '--jobs=[attempts at a time]:number:' \
                    '--rootfs=[what boxes are made of]:directory:_files -/' '--no-price[do not measure costs]' \
                    '--quiet[no progress]' '(- *)'{-h,--help}'[help]' '1:what:(explain trace)' ;;
                gc) _arguments '--all[look through the whole cgroup tree]' '--json[print JSON]' \
                    '(- *)'{-h,--help}'[help]' ;;
                help) ((CURRENT == 2)) && _describe command commands ;;
            esac
            ;;
    esac
}

_mayfly "$@"
