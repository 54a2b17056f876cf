# Completion of mayfly for fish.
#
# tests/package/test_manual.c compares the flags with the program's own table.

set -l commands python run plan doctor gc version help
set -l runs '__fish_seen_subcommand_from python run'

complete -c mayfly -f
complete -c mayfly -n "not __fish_seen_subcommand_from $commands" -l version -d 'Print the version'
complete -c mayfly -n "not __fish_seen_subcommand_from $commands" -a python -d 'Run Python code in a fresh box'
complete -c mayfly -n "not __fish_seen_subcommand_from $commands" -a run -d 'Run a command in a fresh box'
complete -c mayfly -n "not __fish_seen_subcommand_from $commands" -a plan -d 'Print the system calls of a run'
complete -c mayfly -n "not __fish_seen_subcommand_from $commands" -a doctor -d 'Say what this host can put in force'
complete -c mayfly -n "not __fish_seen_subcommand_from $commands" -a gc -d 'Collect what killed runs left behind'
complete -c mayfly -n "not __fish_seen_subcommand_from $commands" -a version -d 'Print the version'
complete -c mayfly -n "not __fish_seen_subcommand_from $commands" -a help -d 'The flags of a command'
complete -c mayfly -n '__fish_seen_subcommand_from plan; and not __fish_seen_subcommand_from python run' -a 'python run'
complete -c mayfly -n '__fish_seen_subcommand_from help' -a "python run plan doctor gc version"
complete -c mayfly -s h -l help -d 'The flags, with their defaults'
complete -c mayfly -n '__fish_seen_subcommand_from doctor gc python run' -l json -d 'Print JSON'
complete -c mayfly -n '__fish_seen_subcommand_from doctor' -l verbose -d 'Say it of what is in order too'
complete -c mayfly -n '__fish_seen_subcommand_from gc' -l all -d 'Look through the whole cgroup tree'

# What is not a flag names files: the program, and its arguments.
complete -c mayfly -n $runs -F
complete -c mayfly -n '__fish_seen_subcommand_from python' -s c -x -d 'The code'

complete -c mayfly -n $runs -s m -l memory -x -d 'Memory of the whole box (256m)'
complete -c mayfly -n $runs -l memory-swap -x -d 'Memory and swap together'
complete -c mayfly -n $runs -l cpus -x -d 'CPUs\' worth of time (1)'
complete -c mayfly -n $runs -l pids-limit -x -d 'Processes and threads at once (128)'
complete -c mayfly -n $runs -l timeout -x -d 'Wall clock until the run is killed (10s)'
complete -c mayfly -n $runs -l cpu-time -x -d 'CPU time of all processes together'
complete -c mayfly -n $runs -l max-output -x -d 'Bytes kept of each of stdout and stderr (1m)'
complete -c mayfly -n $runs -l tmp-size -x -d 'Size of /tmp, /dev/shm and home, each (64m)'
complete -c mayfly -n $runs -l tmp-inodes -x -d 'Files in each of them (16384)'
complete -c mayfly -n $runs -l ulimit -x -a 'as= core= cpu= data= fsize= memlock= msgqueue= nofile= nproc= sigpending= stack=' -d 'A limit of each process'
complete -c mayfly -n $runs -l limits -x -a 'strict best-effort' -d 'What to do when a limit cannot be put in force'
complete -c mayfly -n $runs -l cgroup-parent -x -a '(__fish_complete_directories)' -d 'Cgroup below which the box\'s is made'
complete -c mayfly -n $runs -l rootfs -x -a '(__fish_complete_directories)' -d 'Directory that is the box\'s root'
complete -c mayfly -n $runs -l read-only -d 'The root cannot be written'
complete -c mayfly -n $runs -s v -l volume -r -F -d 'Show a directory or file of the host\'s'
complete -c mayfly -n $runs -l mount -x -a 'type=bind,src= type=tmpfs,dst=' -d 'The same in the long form of docker'
complete -c mayfly -n $runs -l tmpfs -x -d 'One more place in memory'
complete -c mayfly -n $runs -s w -l workdir -x -d 'Where the command starts'
complete -c mayfly -n $runs -s e -l env -x -a '(set -xn)' -d 'A variable'
complete -c mayfly -n $runs -s u -l user -x -d 'Who the code is in the box (1000)'
complete -c mayfly -n $runs -l hostname -x -d 'The host name of the box'
complete -c mayfly -n $runs -s i -l interactive -d 'Pass standard input on'
complete -c mayfly -n $runs -l attest -d 'Read every control back before the code runs'
complete -c mayfly -n $runs -l network -x -a none -d 'None is all there is'
complete -c mayfly -n $runs -l cap-drop -x -a ALL -d 'All are dropped, always'
complete -c mayfly -n $runs -l security-opt -x -a 'seccomp=builtin seccomp= no-new-privileges' -d 'Another seccomp profile'
complete -c mayfly -n $runs -l env-file -r -F -d 'Variables, one on each line'
complete -c mayfly -n $runs -l policy -r -F -d 'Fields as a JSON object'
complete -c mayfly -n $runs -l stats -d 'Print what the run used'
complete -c mayfly -n $runs -l init -d 'Always so'
complete -c mayfly -n $runs -l rm -d 'Always so'
