# Completion of mayfly for bash. It needs bash alone: of the bash-completion package only that it
# finds this file by the command's name.
#
# tests/package/test_manual.c compares the flags with the program's own table.

_mayfly() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev='' flag='' command='' i word at
    local commands='python run plan pull images import build export inspect rmi prune mcp agent doctor lab log gc version help'
    local with_file='--policy --env-file'
    local with_dir='--rootfs --cgroup-parent --store --out'
    local with_path='--volume -v --mount --file'
    local with_value='--memory -m --memory-swap --cpus --pids-limit --timeout --cpu-time
        --max-output --out-size --out-files --tmp-size --tmp-inodes --ulimit --limits --tmpfs --workdir -w --env -e --user
        -u --hostname --network --cap-drop --security-opt --image
        --entrypoint --pull --log-code --log-size --log-keep'
    local switches='--read-only --build --interactive -i --attest --json --log --stats --init --rm --help'
    local mcp=' --http --token-file --allow-host --allow-origin --allow-run --no-log --max-boxes'
    local agent=' --model --system --max-steps --max-tokens --allow-run --no-log --retries --request-timeout --no-stream --plain-http --quiet'
    local all="$with_file $with_dir $with_path $with_value $switches"

    COMPREPLY=()
    # --flag=value comes as three words, since = separates words.
    if [ "$cur" = = ]; then
        cur='' flag=${COMP_WORDS[COMP_CWORD - 1]}
    elif [ "$COMP_CWORD" -gt 1 ] && [ "${COMP_WORDS[COMP_CWORD - 1]}" = = ]; then
        flag=${COMP_WORDS[COMP_CWORD - 2]}
    fi

    # Up to the word in question: the command, the flag that waits for a value, the first word
    # that is neither, from which on everything is the box's.
    at='command'
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        prev=
        case $at in
            command)
                command=$word
                case $word in
                    plan) at=planned ;;
                    help) at=end ;;
                    agent) all+=$agent switches+=' --allow-run --no-log --no-stream --plain-http --quiet' at=flags ;;
                    mcp) all+=$mcp switches+=' --allow-run --no-log' at=flags ;;
                    *) at=flags ;;
                esac
                ;;
            planned) command=$word at=flags ;;
            flags)
                if [ "${COMP_WORDS[i + 1]}" = = ]; then
                    ((i += 2))
                elif [ "$word" = : ]; then # so does a colon, as in SOURCE:TARGET
                    ((i += 1))
                elif [[ " ${all//$'\n'/ } -c " == *" $word "* && " $switches " != *" $word "* ]]; then
                    if ((i + 1 < COMP_CWORD)); then
                        ((i += 1))
                        [ "$word" != -c ] || at=box
                    else
                        prev=$word
                    fi
                elif [ "$word" = -- ]; then
                    at=box
                elif [[ $word != -?* ]]; then
                    at=box
                fi
                ;;
        esac
    done
    [ -z "$flag" ] || prev=$flag

    case $at in
        command) mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$cur") ;;
        planned) mapfile -t COMPREPLY < <(compgen -W 'python run' -- "$cur") ;;
        end) mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur") ;;
        box) compopt -o default 2>/dev/null ;;
        flags)
            case $command in
                python | run | mcp | agent) ;;
                pull) _mayfly_images "$cur" '--platform --missing --plain-http --tls-verify --retry --retry-delay --stall-timeout --speed-limit --config --no-bytecode --quiet -q --json --store --help' && return ;;
                images) mapfile -t COMPREPLY < <(compgen -W '--quiet -q --json --store --help' -- "$cur") && return ;;
                import) _mayfly_words "$cur" '--tag -t --platform --no-bytecode --json --store --help' && return ;;
                build) _mayfly_words "$cur" '--tag -t --file -f --build-arg --target --no-cache --pull --platform --network --memory -m --cpus --pids-limit --timeout --limits --max-disk --max-output --storage --no-bytecode --quiet -q --json --store --help' && return ;;
                export) _mayfly_words "$cur" '--output -o --store --help' && return ;;
                inspect) _mayfly_images "$cur" '--json --store --help' && return ;;
                rmi) _mayfly_images "$cur" '--force -f --json --store --help' && return ;;
                prune) mapfile -t COMPREPLY < <(compgen -W '--force -f --json --store --help' -- "$cur") && return ;;
                doctor) mapfile -t COMPREPLY < <(compgen -W '--verbose --json --help' -- "$cur") && return ;;
                log) mapfile -t COMPREPLY < <(compgen -W 'verify --log --follow -f --lines -n --since --until --failed --outcome --source --id --json --stats --prometheus --help' -- "$cur") && return ;;
                lab) _mayfly_lab "$prev" "$cur" && return ;;
                gc) mapfile -t COMPREPLY < <(compgen -W '--all --json --help' -- "$cur") && return ;;
                *) mapfile -t COMPREPLY < <(compgen -W '--help' -- "$cur") && return ;;
            esac
            _mayfly_value "$prev" "$cur" && return
            if [ -n "$prev" ]; then
                return
            elif [[ $cur == -* ]]; then
                [ "$command" != python ] || all+=' -c'
                mapfile -t COMPREPLY < <(compgen -W "$all" -- "$cur")
            elif [ "$command" = python ]; then
                compopt -o default 2>/dev/null
            fi
            ;;
    esac
}

# What mayfly lab takes, and the names that are known.
_mayfly_lab() {
    local words='explain trace --probe --family --control --lacks --check --json --html --markdown --from --with --where --jobs --rootfs --no-price --quiet --help'
    case $1 in
        --json | --html | --markdown | --from) compopt -o default 2>/dev/null
            return 0 ;;
        --rootfs) mapfile -t COMPREPLY < <(compgen -d -- "$2") && return ;;
        --where) words='box kernel host' ;;
        --with) words='bwrap crun runc runsc podman docker firejail' ;;
        --family) words='files proc exec namespaces calls sockets processes resources leaks host' ;;
        --control | --lacks) words='memory cpu pids deadline user pid ipc uts cgroupns net mount proc dev tmp binds session rlimits env fds identity caps nonewprivs landlock seccomp capture' ;;
        --probe | --jobs) words='' ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$2")
}

# Flags, or files.
_mayfly_words() {
    if [[ $1 == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$2" -- "$1")
    else
        compopt -o default 2>/dev/null || true
    fi
}

# Flags, or the images of the store. A colon parts words here, so names are completed up to it.
_mayfly_images() {
    if [[ $1 == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$2" -- "$1")
    else
        mapfile -t COMPREPLY < <(compgen -W "$(mayfly images 2>/dev/null | sed '1d; s/ .*//; /^</d')" -- "$1")
    fi
}

# The values of a flag that are known, or a path; false for all others.
_mayfly_value() {
    local values=''
    case $1 in
        --policy | --env-file | --token-file) compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$2") && return ;;
        --image) _mayfly_images "$2" '' && return ;;
        --log-code) values='full digest none' ;;
        --pull) values='missing always never' ;;
        --rootfs | --cgroup-parent | --store | --out) compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -d -- "$2") && return ;;
        --volume | -v) # a source begins with / or ./, and what comes behind it is in the box
            [[ $2 == /* || $2 == .* || -z $2 ]] || return 0
            compopt -o filenames -o nospace 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "${2:-./}") && return ;;
        --mount) compopt -o nospace 2>/dev/null && values='type=bind,src= type=tmpfs,dst=' ;;
        --limits) values='strict best-effort' ;;
        --network) values=none ;;
        --cap-drop) values=ALL ;;
        --security-opt) values='seccomp=builtin seccomp= no-new-privileges' ;;
        --read-only | --build) [ "$flag" ] || return 1
            values='true false' ;;
        --ulimit) compopt -o nospace 2>/dev/null
            values='as= core= cpu= data= fsize= memlock= msgqueue= nofile= nproc= sigpending= stack=' ;;
        --env | -e) compopt -o nospace 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -v -- "$2") && return ;;
        *) return 1 ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$values" -- "$2")
}

complete -F _mayfly mayfly
