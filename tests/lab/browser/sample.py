#!/usr/bin/env python3
"""Writes JSON as `mayfly lab --json` does, with every kind of cell, long texts and hostile ones: what the report is
tried with where no probe is to be run. The same each time.

Usage: sample.py >FILE
"""
import json

HOSTILE = "</script><img src=x onerror=\"window.pwned=1\">{{rows}} | `a` & <!--<b>\u2028\u202etxt\x07"
LONG = "a-name-without-a-place-to-break-it/" * 5

CONTROLS = {  # name: (summary, source, µs of its rows, µs of a run)
    "memory": ("memory and swap of all processes together", "cgroups(7)", 88.4, 101.2),
    "cpu": ("CPU time a second of all processes together", "cgroups(7)", 71.0, 70.3),
    "pids": ("number of processes", "cgroups(7)", 64.9, 72.8),
    "deadline": ("wall-clock and CPU time", "timerfd_create(2)", 3.1, 1.9),
    "user": ("ids of its own, host uid 0 never among them", "user_namespaces(7)", 41.6, 58.0),
    "pid": ("sees and signals only its own processes", "pid_namespaces(7)", 12.4, 20.5),
    "ipc": ("shared memory and queues of its own", "ipc_namespaces(7)", 10.2, 11.7),
    "uts": ("a host name of its own", "uts_namespaces(7)", 6.0, 8.8),
    "cgroupns": ("the host's cgroup paths are not shown", "cgroup_namespaces(7)", 7.7, 7.1),
    "net": ("no network: a loopback of its own and nothing else", "network_namespaces(7)", 351.0, 402.6),
    "mount": ("a root of its own, read-only", "mount_namespaces(7)", 164.7, 188.1),
    "proc": ("a /proc of its own, in parts masked and read-only", "proc(5)", 58.1, 60.0),
    "dev": ("no devices but null, zero, full and random", "null(4)", 43.8, 47.5),
    "tmp": ("a /tmp that is bounded and from which nothing is executed", "tmpfs(5)", 35.5, 38.4),
    "binds": ("only the host's files that were named", "mount(2)", 22.2, 25.9),
    "session": ("no terminal", "setsid(2)", 1.0, -0.4),
    "rlimits": ("open files, file size, core dumps", "getrlimit(2)", 5.3, 4.1),
    "env": ("an environment of its own", "environ(7)", 0.4, 0.2),
    "fds": ("no descriptors but 0, 1 and 2", "close_range(2)", 0.8, 1.5),
    "identity": ("an ordinary user in the box", "credentials(7)", 2.9, 3.0),
    "caps": ("no capabilities", "capabilities(7)", 7.4, 8.2),
    "nonewprivs": ("no privilege by executing a file", "prctl(2)", 0.3, 0.6),
    "landlock": ("the same borders, by a second part of the kernel", "landlock(7)", 29.0, 33.3),
    "seccomp": ("160 system calls and no others", "seccomp(2)", 48.2, 65.7),
    "capture": ("output that is bounded", "pipe(7)", 0.0, 2.2),
}
FAMILIES = {"files": "The host's files", "proc": "/proc and /sys", "namespaces": "Namespaces", "calls": "System calls",
            "sockets": "Sockets", "processes": "Other processes", "resources": "Resources", "leaks": "Leaks"}
# id, family, title, walls, call, errno, echo. Walls: "a,b" each stops it alone; "a+b" only the two together.
PROBES = [
    ("FS1", "files", "read the host's canary by its own path", "mount,landlock", "open", "ENOENT", "CVE-2024-21626"),
    ("FS2", "files", "write to the root", "mount,landlock,caps+identity", "open", "EROFS", None),
    ("FS8", "files", "open a file of the host's by its handle", "user,caps,seccomp", "open_by_handle_at", "EPERM",
     "Shocker, 2014"),
    ("FS11", "files", "fill /tmp past its size", "tmp,memory", "write", "ENOSPC", None),
    ("FS14", "files", "find the scratch of the box beside", "tmp", "open", "ENOENT", None),
    ("PR1", "proc", "set kernel.core_pattern through /proc/sys", "proc,user,landlock", "open", "EROFS",
     "CVE-2022-0492"),
    ("PR2", "proc", "the host's processes in /proc", "pid+proc", "readdir /proc", "", None),
    ("NS1", "namespaces", "a new user namespace, for capabilities in it", "seccomp", "unshare", "EPERM",
     "CVE-2022-0185"),
    ("NS3", "namespaces", "join the namespaces of the host's init", "pid,caps,seccomp,user", "setns", "EPERM", None),
    ("SY1", "calls", "io_uring_setup", "seccomp", "io_uring_setup", "EPERM", "CVE-2022-29582"),
    ("SY9", "calls", "a socket by int 0x80, past a 64-bit filter", "seccomp", "int 0x80", "killed by SIGSYS", None),
    ("SY13", "calls", "sched_setscheduler: a real-time process", "caps,seccomp", "sched_setscheduler", "EPERM", None),
    ("SO1", "sockets", "reach a service on the host's localhost", "net", "connect", "ECONNREFUSED", None),
    ("SO4", "sockets", "an abstract socket of the host's", "net,landlock", "connect", "ECONNREFUSED",
     "CVE-2020-15257"),
    ("SO6", "sockets", "AF_VSOCK", "seccomp", "socket", "EAFNOSUPPORT", None),
    ("PS1", "processes", "kill a sentinel of the host's", "pid,user", "kill", "ESRCH", None),
    ("PS4", "processes", "push characters into the caller's terminal", "session,seccomp", "ioctl TIOCSTI", "EPERM",
     "CVE-2017-5226"),
    ("RE1", "resources", "take 64 MiB where 32 are allowed", "memory", "mmap", "oom_killed", None),
    ("RE2", "resources", "200 processes where 64 are allowed", "pids", "fork", "EAGAIN", None),
    ("RE5", "resources", "a loop without an end", "deadline", "loop", "timed_out", None),
    ("LE1", "leaks", "a secret in the caller's environment", "env", "getenv", "", None),
    ("LE2", "leaks", "a descriptor that the caller left open", "fds", "read", "EBADF", "CVE-2024-21626"),
    ("LE3", "leaks", "the host's name", "uts", "gethostname", "", None),
    ("LE4", "leaks", LONG, "dev,mount,nonewprivs+landlock+identity+cgroupns+deadline", LONG[:47], "ENOENT", LONG[:120]),
    ("XS1", "leaks", HOSTILE, "cgroupns", HOSTILE[:40], "EPERM", HOSTILE),
]
OTHERS = [  # id, family, title, verdict, why
    ("FS16", "files", "print what it may print", "must_pass", None),
    ("PR9", "proc", "memory of the box's init", "mayfly", "init is not dumpable: there is no control to switch off"),
    ("SY4b", "calls", "perf_event_open on itself", "untestable", "this kernel was built without perf events"),
    ("LE9", "leaks", "a probe that proves nothing", "void", "stopped with everything off: " + HOSTILE),
]


def cell(result, call="", errno="", detail="", host="", ms=9.4):
    return {"result": result, "call": call, "errno": errno, "detail": detail, "host": host, "ms": ms}


def counted(ident, family, title, walls, call, errno, echo):
    """A probe that counts: what stops it is each set of `walls`."""
    walls = [set(wall.split("+")) for wall in walls.split(",")]
    hostile = HOSTILE if ident == "XS1" else ""
    through = cell("through", call, "", hostile or "the attempt had what it wanted", hostile or
                   ("canary/open was changed" if ident == "FS2" else ""), 7.9)
    stopped = cell("stopped", call, errno, hostile)

    def attempt(on):
        return stopped if any(wall <= on for wall in walls) else through

    every, words = set(CONTROLS), {}
    without = {name: attempt(every - {name}) for name in CONTROLS}
    only = {name: attempt({name}) for name in CONTROLS}
    for name in CONTROLS:
        alone, needed = only[name] is stopped, without[name] is through
        words[name] = ("stopped" if needed else "stopped_too") if alone else "together" if needed else "through"
    if ident in ("FS8", "SO4"):  # as where this kernel has no Landlock
        words["landlock"] = "untestable"
        only["landlock"] = cell("untestable", detail="this kernel has no Landlock")
        del without["landlock"]
    partners = sorted(set().union(*walls))
    return {"id": ident, "title": title, "family": family, "expected": partners, "sees": [errno] if errno else [],
            "echo": echo, "mustPass": False, "verdict": "counts", "why": None,
            "minimal": sorted((sorted(wall) for wall in walls), key=len), "redundancy": len(walls) - 1,
            "matrix": words,
            "cells": {"allOn": stopped, "allOff": through, "without": without, "only": only,
                      "sets": [{"off": partners, **through}, {"on": partners, **stopped}]}}


def other(ident, family, title, verdict, why):
    result = {"must_pass": "through", "untestable": "untestable"}.get(verdict, "stopped")
    one = cell(result, "read", "" if result == "through" else "EACCES", why or "")
    return {"id": ident, "title": title, "family": family, "expected": [], "sees": [], "echo": None,
            "mustPass": verdict == "must_pass", "verdict": verdict, "why": why, "minimal": [], "redundancy": 0,
            "matrix": {name: "untestable" for name in CONTROLS} if verdict == "untestable" else {},
            "cells": {"allOn": one} if verdict == "untestable" else {"allOn": one, "allOff": one}}


def control(name, probes):
    def those(word):
        return [p["id"] for p in probes if p["matrix"].get(name) == word]

    summary, source, rows, run = CONTROLS[name]
    sole, backs, needed = those("stopped"), those("stopped_too"), those("together")
    lacking = name == "landlock"
    return {"name": name, "summary": summary, "source": source, "without": f"Without {name}: {summary}, no longer.",
            "available": not lacking, "why": "this kernel has no Landlock" if lacking else None,
            "price": None if lacking else {"rowsUs": rows, "runUs": run, "rounds": 25},
            "sole": sole, "backs": backs, "needed": needed,
            "stopsNothing": None if sole or backs or needed else "what it stops, others stop before it: " + HOSTILE}


def peers(probes):
    cells, more = {}, {}
    for p in probes:
        mine = p["cells"]["allOn"]["result"]
        if p["verdict"] not in ("counts", "must_pass"):
            cells[p["id"]] = cell("untestable", detail="it is mayfly's own matter") | {"explain": None}
        elif p["expected"] == ["seccomp"]:
            cells[p["id"]] = cell("through", p["cells"]["allOn"]["call"]) | {
                "explain": "bwrap loads a filter only where --seccomp hands it one."}
        else:
            cells[p["id"]] = cell(mine, "open", "EPERM") | {"explain": None}
        more[p["id"]] = cells[p["id"]] | ({"explain": HOSTILE} if p["id"] == "XS1" else {})
    return [{"name": "bwrap", "version": "0.8.0", "command": "bwrap --unshare-all --ro-bind ROOTFS / --tmpfs /tmp "
             "--die-with-parent --new-session --cap-drop ALL -- CMD", "cells": cells},
            {"name": HOSTILE[:24], "version": "1", "command": HOSTILE, "cells": more}]


def main():
    probes = [counted(*row) for row in PROBES] + [other(*row) for row in OTHERS]
    print(json.dumps({
        "format": "mayfly-lab/1", "mayfly": "0.6.0", "kernel": "6.18.5", "machine": "x86_64", "where": "box",
        "as": "root", "cgroups": "hybrid", "started": "2026-11-30T04:00:00Z", "seconds": 201.5, "attempts": 6012,
        "controls": [control(name, probes) for name in CONTROLS],
        "families": [{"name": name, "title": title} for name, title in FAMILIES.items()],
        "probes": probes, "peers": peers(probes),
        "lacks": {"controls": ["landlock"], "thisHost": True, "predicted": ["FS8"], "through": ["FS8"]},
        "faults": ["LE9 is void: " + HOSTILE]}))


main()
