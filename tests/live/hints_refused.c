/*
 * hints_refused.c: programs that make a system call which the filter refuses, and
 * get a hint that names it.
 */
#include "hints_corpus.h"

#include "base/defs.h"

#include "base/banned.h"

#define PY(text_, control_, says_, ...)                                                            \
    { .run = RUN_PY, .code = (text_), .control = (control_), .says = (says_), __VA_ARGS__ }
#define SH(text_, control_, says_, ...)                                                            \
    { .run = RUN_SH, .code = (text_), .control = (control_), .says = (says_), __VA_ARGS__ }

/* No C library or Python gives these a name of their own everywhere, so by number where there is no other way. */
#define LIBC "import ctypes, os, platform\nlibc = ctypes.CDLL(None, use_errno=True)\n"
#define FAIL "if r < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))\n"

const struct corpus_program corpus_refused[] = {
    PY(LIBC "r = libc.ptrace(0, 0, 0, 0)\n" FAIL, "seccomp", "ptrace"),
    PY(LIBC "r = libc.ptrace(0, 0, 0, 0)\n", "seccomp", "ptrace"),
    PY(LIBC "r = libc.mount(b'x', b'/tmp', b'tmpfs', 0, None)\n" FAIL, "seccomp", "mount"),
    PY(LIBC "r = libc.umount2(b'/proc', 0)\n" FAIL, "seccomp", "umount2"),
    PY(LIBC "r = libc.unshare(0x10000000)\n" FAIL, "seccomp", "unshare"),
    PY(LIBC "r = libc.setns(0, 0)\n" FAIL, "seccomp", "setns"),
    PY(LIBC "r = libc.syscall(425, 8, 0)\n" FAIL, "seccomp", "io_uring_setup"),
    PY(LIBC "r = libc.syscall({'x86_64': 250}.get(platform.machine(), 219), 0, -3, 0)\n" FAIL,
       "seccomp", "keyctl"),
    PY(LIBC "r = libc.syscall({'x86_64': 321}.get(platform.machine(), 280), 0, 0, 0)\n" FAIL,
       "seccomp", "bpf"),
    PY(LIBC
       "r = libc.syscall({'x86_64': 298}.get(platform.machine(), 241), 0, 0, -1, -1, 0)\n" FAIL,
       "seccomp", "perf_event_open"),
    PY("import os; os.chroot('/tmp')", "seccomp", "chroot"),
    PY("import os, stat; os.mknod('/tmp/x', stat.S_IFCHR | 0o666, os.makedev(1, 3))", "seccomp",
       "mknod"),
    PY("import os; open('/tmp/x', 'w').close(); os.chmod('/tmp/x', 0o4755)", "seccomp", "setuid"),
    PY("import os; os.memfd_create('x')", "seccomp", "memfd_create"),
    PY("import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)", "seccomp", "AF_PACKET"),
    PY("import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)", "seccomp", "AF_NETLINK"),
    PY("import socket; socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)", "seccomp", "AF_ALG"),
    PY("import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)", "seccomp", "AF_VSOCK"),
    PY("import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)", "seccomp", "SOCK_RAW"),
    PY("import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))", "seccomp",
       "sched_setscheduler"),
    PY("import socket; socket.sethostname('x')", "seccomp", "sethostname"),
    PY("import time; time.clock_settime(time.CLOCK_REALTIME, 0)", "seccomp", "clock_settime"),
    SH("mknod /tmp/x c 1 3", "seccomp", "mknod"),
    SH("chmod 4755 /bin/true", "seccomp", "setuid"),
    SH("chroot / true", "seccomp", "chroot"),
};
const size_t corpus_n_refused = ARRAY_LEN(corpus_refused);
