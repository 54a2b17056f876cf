#!/bin/bash
# mayfly is linked with musl, and with static libraries that Debian compiled against glibc's headers. That is sound
# for functions whose types are the same in both C libraries. These were looked at; any other is an error here, which
# says to look at it and add it, or to build with LIBC=glibc.
#
# Usage: scripts/check-libc.sh LIBRARY.A...
set -euo pipefail

# Numbers, bytes and strings only: C99 and POSIX define the types, and the ABI of the architecture their sizes.
same='abort|calloc|free|malloc|realloc|qsort|mem(chr|cmp|cpy|move|set)|str(chr|cmp|dup|len|ncpy|error|tod|toll)'
same+='|close|dup|getpid|ioctl|open|prctl|read|write|syscall|sched_yield|__errno_location|__assert_fail'
same+='|__stack_chk_fail|__stack_chk_guard'
# A FILE is only ever pointed to; timeval is two longs in both; of lconv the first member alone is read.
same+='|stdin|fclose|fdopen|fflush|fgetc|fopen|fwrite|gettimeofday|localeconv'
# src/libc/musl.c has these.
same+='|__(snprintf|vsnprintf|fprintf|strncpy)_chk'
same+='|_GLOBAL_OFFSET_TABLE_'

for library in "$@"; do
    others=$(comm -23 <(nm --undefined-only --format=posix "$library" 2>/dev/null | awk 'NF > 1 { print $1 }' | sort -u) \
        <(nm --defined-only --format=posix "$library" 2>/dev/null | awk 'NF > 1 { print $1 }' | sort -u) |
        grep -vxE "$same" | tr '\n' ' ' || true)
    [ -z "$others" ] || {
        echo "check-libc: $library calls $others: see $0, or build with LIBC=glibc" >&2
        exit 1
    }
done
