#!/bin/bash
# The code that runs between clone and exec must not allocate, use stdio, or start a thread: in a
# child of a threaded program another thread may have held the lock that is needed. The compiler
# does not mind; the symbol tables of the objects show it.
#
# Usage: scripts/check-symbols.sh [BUILD-DIRECTORY]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}

forbidden='malloc|calloc|realloc|reallocarray|free|strdup|strndup|asprintf|vasprintf|getline'
forbidden+='|v?[fd]?printf|puts|fputs|fputc|putchar|fopen|fdopen|fclose|fwrite|fread'
forbidden+='|fflush|perror|stdin|stdout|stderr|opendir|readdir|exit|atexit|syslog'
forbidden+='|getpw[a-z_]*|getgr[a-z_]*|setenv|putenv|pthread_[a-z_]*|json_[a-z_]*|seccomp_[a-z_]*'
bad=0
for object in box/ops box/ops_tree box/inside box/evidence box/walk linux/bpf linux/procfs; do
    file=$build/obj/src/$object.o
    [ -e "$file" ] || { echo "check-symbols: $file is not there; run make" >&2 && exit 2; }
    found=$(nm --undefined-only --format=posix "$file" | cut -d' ' -f1 |
        sed -E 's/^__(.*)_chk$/\1/; s/^__isoc[0-9]*_//' | grep -xE "$forbidden" | tr '\n' ' ' || true)
    [ -z "$found" ] || { echo "check-symbols: src/$object.c refers to $found" >&2 && bad=1; }
done
exit $bad
