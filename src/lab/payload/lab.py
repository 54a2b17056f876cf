# lab.py: what every probe in Python has before it. The last line printed is the verdict.
# Imports are most of an attempt's time: no more than a probe needs. (signal has no names of its own, os no enum.)
import errno, os, sys
import _signal as signal

PROC = os.environ.get("LAB_PROC", "/proc")  # see probe.h: the host's, where the box has none
TMP = os.environ.get("LAB_TMP", "/tmp")  # likewise a directory of the attempt's own
os.chdir(TMP)
signal.pthread_sigmask(signal.SIG_SETMASK, [])  # without session it is init's, which blocks all


def load():
    """ctypes and libc, for those who need them"""
    global ctypes, libc
    if "libc" not in globals():
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        libc.syscall.restype = ctypes.c_long


def name(error):
    """EPERM, of an OSError, a number, or a string that is one already"""
    number = error.errno if isinstance(error, OSError) else error
    return number if isinstance(number, str) else errno.errorcode.get(number, "E%s" % number)


def verdict(word, call, error="", detail=""):
    text = [str(x).replace("\t", " ").replace("\n", " ") for x in (word, call, error, detail)]
    print("\t".join(text), flush=True)
    os._exit(0)


def through(call, detail=""):
    verdict("THROUGH", call, "", detail)


def stopped(call, error="", detail=""):
    verdict("STOPPED", call, name(error) if error else "", detail)


def untestable(why):
    verdict("UNTESTABLE", "", "", why)


def attempt(call, function, *args):
    """through() if it returns, stopped() if it raises OSError"""
    try:
        r = function(*args)
    except OSError as e:
        stopped(call, e)
    through(call, r if isinstance(r, (int, str)) else "")


def first_through(attempts):
    """Of (call, function) the first that returns decides; if none does, the first that was denied, else the last error."""
    last = ("nothing to try", "")
    for call, function in attempts:
        try:
            function()
        except OSError as e:
            if last[1] not in ("EPERM", "EACCES"):
                last = (call, name(e))
            continue
        through(call)
    stopped(*last)


def expand(path):
    """Of a pattern with stars, of which each is a whole name: what is there, eight of each directory"""
    head, star, tail = path.partition("*")
    if not star:
        return [path] if os.path.exists(path) else []
    try:
        return [p for entry in sorted(os.listdir(head))[:8] for p in expand(head + entry + tail)]
    except OSError:
        return []


def own_init():
    """The number that PROC has for the process that made this one; never another init's"""
    try:
        with open(PROC + "/self/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError as e:
        stopped("open " + PROC + "/self/stat", e)


def stay():
    """Of a box beside: ready, and there until its init is gone, whatever else is off"""
    import time
    print("ready", flush=True)
    init, end = os.getppid(), time.monotonic() + 60
    while os.getppid() == init and time.monotonic() < end:
        time.sleep(0.01)
    os._exit(0)


def send_fds(s, *fds):
    """Of the socket module, whose import takes as long as all of Python's start"""
    s.sendmsg([b"x"], [(1, 1, b"".join(fd.to_bytes(4, sys.byteorder) for fd in fds))])


# ---- From here on: system calls by their numbers. Left out where a probe makes none, for it takes time to read.


def syscall(number, *args):
    """The raw call; OSError where it fails. Integers are 64 bits wide."""
    load()
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(number), *wide)
    if r == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r


# x86-64 and arm64; what is the same on both is above 424
NR = dict(
    x86_64=dict(mknod=133, pivot_root=155, chroot=161, umount2=166, capset=126, capget=125, mount=165,
                syslog=103, open_by_handle_at=304, setns=308, unshare=272, keyctl=250, add_key=248),
    aarch64=dict(mknodat=33, pivot_root=41, chroot=51, umount2=39, capset=91, capget=90, mount=40,
                 syslog=116, open_by_handle_at=265, setns=268, unshare=97, keyctl=219, add_key=217),
)[os.uname().machine]
NR.update(open_tree=428, move_mount=429, fsopen=430, fsconfig=431, fsmount=432, mount_setattr=442)
NR.update(dict(
    x86_64=dict(acct=163, adjtimex=159, bpf=321, clock_adjtime=305, fanotify_init=300, init_module=175, ioctl=16,
                ioperm=173, iopl=172, kcmp=312, kexec_load=246, mincore=27, modify_ldt=154, move_pages=279,
                name_to_handle_at=303, perf_event_open=298, personality=135, prctl=157, process_vm_readv=310,
                ptrace=101, quotactl=179, reboot=169, request_key=249, sched_setattr=314, sched_setscheduler=144,
                seccomp=317, sethostname=170, setpriority=141, settimeofday=164, swapon=167, sysfs=139,
                userfaultfd=323, vmsplice=278),
    aarch64=dict(acct=89, adjtimex=171, bpf=280, clock_adjtime=266, fanotify_init=262, init_module=105, ioctl=29,
                 kcmp=272, kexec_load=104, mincore=232, move_pages=239, name_to_handle_at=264, perf_event_open=241,
                 personality=92, prctl=167, process_vm_readv=270, ptrace=117, quotactl=60, reboot=142, request_key=218,
                 sched_setattr=274, sched_setscheduler=119, seccomp=277, sethostname=161, setpriority=140,
                 settimeofday=170, swapon=224, userfaultfd=282, vmsplice=75),
)[os.uname().machine])
NR.update(pidfd_open=434, pidfd_getfd=438, process_madvise=440, memfd_secret=447, cachestat=451, listmount=458,
          io_uring_setup=425)


def filtered():
    """Whether a seccomp filter is in force; where that cannot be read, it is taken to be."""
    try:
        with open(PROC + "/self/status") as f:
            return "Seccomp:\t0" not in f.read()
    except OSError:
        return True


def room(size, layout="", *values):
    """A structure for the kernel to read or to write, zero behind the values"""
    import struct
    load()
    return ctypes.create_string_buffer(struct.pack(layout, *values), max(size, struct.calcsize(layout)))


def allow_all():
    """A seccomp program: return ALLOW"""
    load()
    code = room(8, "HBBI", 6, 0, 0, 0x7fff0000)
    program = room(16, "HxxxxxxQ", 1, ctypes.addressof(code))
    program.code = code  # keeps it alive
    return program


def pidfd_of(pid):
    """A descriptor of a process; where there is none to be had, what it was for is stopped already"""
    try:
        return syscall(NR["pidfd_open"], pid, 0)
    except OSError as e:
        stopped("pidfd_open", e)


def tried(call, *args, past="", untestable_on=""):
    """One call by its name. Errors in `past` come after the kernel's look at the caller's rights: through."""
    if call not in NR:
        untestable("%s has no %s" % (os.uname().machine, call))
    try:
        r = syscall(NR[call], *args)
    except OSError as e:
        if name(e) in past.split():
            through(call, name(e) + ", of the call itself: nothing had refused it before")
        if name(e) in untestable_on.split():
            untestable("%s: %s from the kernel itself" % (call, name(e)))
        if name(e) == "ENOSYS" and not filtered():
            untestable("this kernel has no " + call)
        stopped(call, e)
    through(call, "returned %d" % r)
