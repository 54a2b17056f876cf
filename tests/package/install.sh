#!/bin/bash
# The functions of test_install.c: what `make install` puts is whole, goes again, and serves.

uninstall_removes_all_that_install_put() {
    local n
    mkdir -p "$T/d/usr/lib"
    echo other >"$T/d/usr/lib/libother.a"
    remake install DESTDIR="$T/d" PREFIX=/usr
    [ -x "$T/d/usr/bin/mayfly" ]
    n=$(find "$T/d" ! -type d | wc -l)
    [ "$n" -ge 19 ] || fail "only $n files"
    remake uninstall DESTDIR="$T/d" PREFIX=/usr
    same "$(find "$T/d" ! -type d -o -name '*mayfly*')" "$T/d/usr/lib/libother.a"
}

each_place_can_be_chosen_and_a_helper_goes_along() {
    local at places=(PREFIX=/p BINDIR=/p/1 LIBDIR=/p/2 INCLUDEDIR=/p/3 MANDIR=/p/4 DOCDIR=/p/5
        PKGCONFIGDIR=/p/6 BASHCOMPDIR=/p/7 ZSHCOMPDIR=/p/8 FISHCOMPDIR=/p/9 LIBEXECDIR=/p/10)
    echo '#!/bin/sh' >"$T/mayfly-helper"
    remake install DESTDIR="$T/d" HELPERS="$T/mayfly-helper" "${places[@]}"
    for at in 1/mayfly 2/libmayfly.so 2/libmayfly.so.0 2/libmayfly.a 3/mayfly.h 4/man1/mayfly.1 \
        4/man3/libmayfly.3 4/man5/mayfly-result.5 5/README.md 6/mayfly.pc 7/mayfly 8/_mayfly \
        9/mayfly.fish 10/mayfly/mayfly-helper; do
        [ -e "$T/d/p/$at" ] || fail "$at is not there"
    done
    [ -x "$T/d/p/10/mayfly/mayfly-helper" ]
    same "$(find "$T/d/p" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort -n | tr '\n' ' ')" "1 2 3 4 5 6 7 8 9 10 "
    remake uninstall DESTDIR="$T/d" HELPERS="$T/mayfly-helper" "${places[@]}"
    same "$(find "$T/d" ! -type d)" ""
}

exactly_the_headers_names_are_exported() {
    need cc nm objdump
    scripts/check-exports.sh "$B"
    # And the check would see one too many, in either library.
    mkdir -p "$T/b/public"
    echo 'int stray(void); int stray(void) { return 1; }' |
        cc -xc -shared -fPIC -Wl,-soname,libmayfly.so.0 -o "$T/b/libmayfly.so.0" - \
            -xnone -Wl,--whole-archive "$B/public/libmayfly.a" -Wl,--no-whole-archive \
            -ljansson -lseccomp -lm
    cp "$B/public/libmayfly.a" "$T/b/public/"
    ! scripts/check-exports.sh "$T/b" 2>"$T/said" || fail "nothing was said"
    has "$(cat "$T/said")" "stray is in $T/b/libmayfly.so.0, but not in include/mayfly.h"
    cp "$B/libmayfly.so.0" "$T/b/"
    cp "$B/libmayfly.a" "$T/b/public/"
    ! scripts/check-exports.sh "$T/b" 2>"$T/said" || fail "nothing was said"
    has "$(cat "$T/said")" "is in $T/b/public/libmayfly.a, but not in include/mayfly.h"
}

# ---------------------------------------------------------------------------- programs that use it

installed() {
    need cc pkg-config
    remake install DESTDIR="$T/d" PREFIX=/opt/mayfly
    export PKG_CONFIG_PATH=$T/d/opt/mayfly/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$T/d
    same "$(pkg-config --modversion mayfly)" "$("$B/mayfly" version | cut -d' ' -f2)"
}

# Where limits cannot be put in force, it is the library's error that proves that it was reached.
example_runs() {
    local said
    said=$("$@" "$ROOTFS" 60s 2>&1) || [ $? = 125 ]
    [[ $said == "exited 1"*ZeroDivisionError* || $said == *best-effort* ]] || fail "$said"
}

the_example_builds_by_pkg_config_shared() {
    installed
    # shellcheck disable=SC2046 # words are meant
    cc -Wall -Wextra -Werror -o "$T/example" tests/live/example.c $(pkg-config --cflags --libs mayfly)
    has "$(objdump -p "$T/example")" "NEEDED               libmayfly.so.0"
    example_runs env LD_LIBRARY_PATH="$T/d/opt/mayfly/lib" "$T/example"
}

the_example_builds_by_pkg_config_static() {
    installed
    # shellcheck disable=SC2046
    cc -static -Wall -Wextra -Werror -o "$T/example" tests/live/example.c \
        $(pkg-config --static --cflags --libs mayfly)
    ! objdump -p "$T/example" | grep NEEDED || fail "it is not static"
    example_runs "$T/example"
}

a_callers_own_names_do_not_meet_the_static_librarys() {
    installed
    cat >"$T/own.c" <<'END'
#include <mayfly.h>
#include <stdio.h>
int buf_printf = 1;
int policy_new = 2;
int err_set(void);
int err_set(void) { return 3; }
int main(void) {
    mayfly_policy *policy = mayfly_policy_new();
    struct mayfly_error error;
    int r = policy ? mayfly_policy_set(policy, "memory", "nonsense", &error) : 0;
    printf("%d %d %d %s\n", buf_printf, policy_new, err_set(), r < 0 ? error.message : "");
    mayfly_policy_free(policy);
    return 0;
}
END
    # shellcheck disable=SC2046
    cc -static -o "$T/own" "$T/own.c" $(pkg-config --static --cflags --libs mayfly)
    has "$("$T/own")" '1 2 3 --memory: "nonsense"'
}

a_cpp_program_uses_the_header_and_the_library() {
    need c++
    installed
    cat >"$T/own.cpp" <<'END'
#include <mayfly.h>
#include <cstdio>
#include <memory>
struct freed {
    void operator()(mayfly_policy *p) const { mayfly_policy_free(p); }
    void operator()(mayfly_result *r) const { mayfly_result_free(r); }
};
int main(int argc, char **argv) {
    std::unique_ptr<mayfly_policy, freed> policy(mayfly_policy_new());
    const char *command[] = {"echo", "from C++", nullptr};
    mayfly_error error = {};
    mayfly_result *result = nullptr;
    if (argc < 2 || mayfly_policy_set(policy.get(), "rootfs", argv[1], &error) < 0 ||
        mayfly_policy_set(policy.get(), "limits", "best-effort", &error) < 0 ||
        mayfly_policy_command(policy.get(), command, &error) < 0 ||
        mayfly_run(policy.get(), nullptr, &result, &error) < 0) {
        std::fprintf(stderr, "%s\n", error.message);
        return 125;
    }
    std::unique_ptr<mayfly_result, freed> owner(result);
    std::printf("%s %s", mayfly_outcome_name(result->outcome), result->out.data);
}
END
    # shellcheck disable=SC2046
    c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -o "$T/own" "$T/own.cpp" \
        $(pkg-config --cflags --libs mayfly)
    same "$(LD_LIBRARY_PATH=$T/d/opt/mayfly/lib "$T/own" "$ROOTFS")" "exited from C++"
}

python_calls_the_library_by_ctypes() {
    need python3
    python3 -c 'import ctypes' || skip "Python's ctypes" "python3 cannot import it"
    remake install DESTDIR="$T/d" PREFIX=/opt/mayfly
    cat >"$T/own.py" <<'END'
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("kind", ctypes.c_int),
                ("control", ctypes.c_char * 16), ("message", ctypes.c_char * 480)]
class Stream(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("len", ctypes.c_size_t),
                ("total", ctypes.c_uint64), ("truncated", ctypes.c_int)]
class Result(ctypes.Structure): # its beginning
    _fields_ = [("outcome", ctypes.c_int), ("exit_code", ctypes.c_int), ("signal", ctypes.c_int),
                ("timed_out", ctypes.c_int), ("oom_kills", ctypes.c_uint64), ("out", Stream)]
lib.mayfly_policy_new.restype = ctypes.c_void_p
lib.mayfly_outcome_name.restype = ctypes.c_char_p
policy, error, result = ctypes.c_void_p(lib.mayfly_policy_new()), Error(), ctypes.POINTER(Result)()
def done(r):
    if r < 0:
        sys.exit(error.message.decode())
for name, value in (b"rootfs", sys.argv[2].encode()), (b"limits", b"best-effort"):
    done(lib.mayfly_policy_set(policy, name, value, ctypes.byref(error)))
argv = (ctypes.c_char_p * 3)(b"echo", b"from ctypes", None)
done(lib.mayfly_policy_command(policy, argv, ctypes.byref(error)))
done(lib.mayfly_run(policy, None, ctypes.byref(result), ctypes.byref(error)))
print(lib.mayfly_outcome_name(result.contents.outcome).decode(),
      result.contents.exit_code, result.contents.out.data.decode(), end="")
lib.mayfly_result_free(result)
lib.mayfly_policy_free(policy)
END
    same "$(python3 "$T/own.py" "$T/d/opt/mayfly/lib/libmayfly.so.0" "$ROOTFS")" "exited 0 from ctypes"
}

# ---------------------------------------------------------------------------- the program alone

nothing_tells_where_it_was_built() {
    local file
    for file in "$B/mayfly" "$B/libmayfly.so.0" "$B/public/libmayfly.a"; do
        ! grep -qF "$PWD" "$file" || fail "$file holds $PWD"
    done
}

the_static_program_runs_where_nothing_else_is() {
    [ "$(id -u)" = 0 ] || skip root "chroot needs it"
    mkdir -p "$T/r/bin" "$T/r/rootfs" "$T/r/proc" "$T/r/sys" "$T/r/dev" "$T/r/run"
    cp "$B/mayfly" "$T/r/bin/mayfly"
    # The kernel's own file systems, a /run as any host has it, the rootfs; no loader, no library, no /etc.
    # shellcheck disable=SC2016 # the inner shell expands
    unshare --mount --pid --kill-child --propagation=private bash -euc '
        mount --bind "$1" "$1"
        cd "$1"
        mount --rbind /sys sys
        mount --rbind /dev dev
        mount -t proc proc proc
        mount --bind "$2" rootfs
        mount --move . / # a mere chroot may make no user namespace
        exec env -i "$3" . /bin/mayfly python --rootfs /rootfs -c "print(6 * 7)"
    ' - "$T/r" "$ROOTFS" "$(command -v chroot)" >"$T/out"
    same "$(cat "$T/out")" 42
    # Nothing else came to be, but for the lock on the ids that boxes have.
    same "$(find "$T/r" -xdev ! -type d | sort | tr '\n' ' ')" "$T/r/bin/mayfly $T/r/run/mayfly/ids.lock "
}

the_archive_of_make_dist_is_whole_and_always_the_same() {
    local name sum
    scripts_dist() { env B="$B" scripts/dist.sh "$1"; }
    (umask 077 && TZ=Asia/Tokyo LANG=C scripts_dist "$T/1")
    scripts_dist "$T/2"
    cmp "$T"/1/*.tar.gz "$T"/2/*.tar.gz
    (cd "$T/1" && sha256sum --quiet -c -- *.sha256)
    mkdir "$T/prefix"
    tar -C "$T/prefix" --strip-components=1 -xzf "$T"/1/*.tar.gz
    (cd "$T/prefix" && sha256sum --quiet -c SHA256SUMS)
    for name in bin/mayfly share/man/man1/mayfly.1 share/man/man5/mayfly-policy.5 \
        share/bash-completion/completions/mayfly share/zsh/site-functions/_mayfly \
        share/fish/vendor_completions.d/mayfly.fish share/doc/mayfly/LICENSE share/doc/mayfly/README.md; do
        grep -q "  $name$" "$T/prefix/SHA256SUMS" || fail "$name is not there"
    done
    sum=$(cd "$T/prefix" && find . -type f | wc -l)
    same "$(wc -l <"$T/prefix/SHA256SUMS")" "$((sum - 1))"
    same "$("$T/prefix/bin/mayfly" version)" "$("$B/mayfly" version)"
    ! objdump -p "$T/prefix/bin/mayfly" | grep NEEDED || fail "it is not static"
}
