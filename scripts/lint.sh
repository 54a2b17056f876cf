#!/bin/bash
# Everything about the source that a machine can judge; all of it runs, then the verdict.
#
# Usage: scripts/lint.sh COMPILER-FLAGS...   (`make lint` passes those that the build uses)
set -uo pipefail
cd "$(dirname "$0")/.." || exit

mapfile -t sources < <(find src tests -name '*.c' | sort)
mapfile -t files < <(find include src tests -name '*.[ch]' | sort)
mapfile -t scripts < <(grep -rlE "^#!/bin/(ba)?sh" .ci rootfs scripts tests/hosts tests/agent tests/examples tests/images tests/lab tests/mcp tests/package | sort)
scripts+=(packaging/completion/mayfly.bash)
jobs=$(nproc)
flags=()
for flag in "$@"; do # clang knows all of ours but sanitizers' and gcc's own
    case $flag in -fsanitize* | -fno-sanitize*) ;; *) flags+=("$flag") ;; esac
done

bad=()
check() {
    local name=$1 && shift
    if "$@"; then echo "lint: $name: ok"; else echo "lint: $name: FAILED" && bad+=("$name"); fi
}
# Not the tests: cmocka's failures do not return, which the analyzer cannot know.
# Not libc: it defines what these headers declare, under their names.
tidy() {
    find src -name '*.c' ! -path 'src/libc/*' -print0 |
        xargs -0 -P "$jobs" -I{} clang-tidy --quiet {} -- "${flags[@]}" 2>/dev/null
}
clang_build() {
    printf '%s\0' "${sources[@]}" |
        xargs -0 -P "$jobs" -I{} clang -Werror -fsyntax-only "${flags[@]}" {}
}
# cppcheck knows neither scoped clean-up, so leaks are left to the sanitizers, nor cmocka, whose
# failures do not return, so the tests are left out.
static() {
    cppcheck --quiet --error-exitcode=1 --std=c11 --inline-suppr -j "$jobs" \
        --enable=warning,portability --suppress=missingInclude --suppress=missingIncludeSystem \
        --suppress=memleak --suppress=resourceLeak \
        -D_GNU_SOURCE -D__GNUC__=12 -D__x86_64__ -DMAYFLY_API= -Isrc -Iinclude src
}
# By both programs that are about: what one lets pass the other may print wrong.
pages() {
    local page said
    mandoc -T lint -W warning man/*.[1-8] || return
    for page in man/*.[1-8]; do
        said=$(LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l "$page" 2>&1 >/dev/null)
        [ -z "$said" ] || { echo "$said" && return 1; }
    done
}
# A warning, not a fault: there can be a reason.
long() {
    wc -l "${files[@]}" | awk '$2 != "total" && $1 > 600 { print "lint: note: " $2 " has " $1 " lines" }'
    awk 'length > 100 { n++; seen[FILENAME] }
         END { if (n) print "lint: note: " n " lines of more than 100 columns in " length(seen) " files" }' "${files[@]}"
}

check layout clang-format --dry-run -Werror "${files[@]}"
check "include directions" scripts/check-includes.sh
check symbols scripts/check-symbols.sh
check "exported names" scripts/check-exports.sh
check "manual pages" pages
check scripts shellcheck -x --shell=bash "${scripts[@]}"
check "compiling with clang" clang_build
check cppcheck static
check clang-tidy tidy
long
[ ${#bad[@]} = 0 ] || { echo "lint: failed: ${bad[*]}" && exit 1; }
