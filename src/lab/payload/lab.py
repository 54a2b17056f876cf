# lab.py: what every probe in Python has before it. The last line printed is the verdict.
import ctypes, errno, os, signal, sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
PROC = os.environ.get("LAB_PROC", "/proc")  # see probe.h: the host's, where the box has none


def name(error):
    """EPERM, of an OSError, a number, or a string that is one already"""
    number = error.errno if isinstance(error, OSError) else error
    return number if isinstance(number, str) else errno.errorcode.get(number, "E%s" % number)


def verdict(word, call, error="", detail=""):
    text = [str(x).replace("\t", " ").replace("\n", " ") for x in (word, call, error, detail)]
    print("\t".join(text), flush=True)
    sys.exit(0)


def through(call, detail=""):
    verdict("THROUGH", call, "", detail)


def stopped(call, error="", detail=""):
    verdict("STOPPED", call, name(error) if error else "", detail)


def untestable(why):
    verdict("UNTESTABLE", "", "", why)


def syscall(number, *args):
    """The raw call; OSError where it fails. Integers are 64 bits wide."""
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(number), *wide)
    if r == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r


def attempt(call, function, *args):
    """through() if it returns, stopped() if it raises OSError"""
    try:
        r = function(*args)
    except OSError as e:
        stopped(call, e)
    through(call, r if isinstance(r, (int, str)) else "")


def first_through(attempts):
    """Of (call, function) the first that returns decides; if none does, the last error."""
    last = ("nothing to try", "")
    for call, function in attempts:
        try:
            function()
        except OSError as e:
            last = (call, name(e))
            continue
        through(call)
    stopped(*last)


# x86-64 and arm64; what is the same on both is above 424
NR = dict(
    x86_64=dict(mknod=133, pivot_root=155, chroot=161, umount2=166, capset=126, capget=125, mount=165,
                syslog=103, open_by_handle_at=304, setns=308, unshare=272, keyctl=250, add_key=248),
    aarch64=dict(mknodat=33, pivot_root=41, chroot=51, umount2=39, capset=91, capget=90, mount=40,
                 syslog=116, open_by_handle_at=265, setns=268, unshare=97, keyctl=219, add_key=217),
)[os.uname().machine]
NR.update(open_tree=428, move_mount=429, fsopen=430, fsconfig=431, fsmount=432, mount_setattr=442)
