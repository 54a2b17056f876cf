"""Byte code of all that this Python can import, as a tar archive on standard output.

Runs in a box of mayfly's, on the image's own Python, whatever its version; what does not compile is left out.
"""
import importlib.util
import io
import os
import py_compile
import sys
import tarfile

WORKERS = 2
SKIP = {"test", "tests", "__pycache__", "idlelib", "turtledemo"}


def sources():
    seen = set()
    for top in sys.path:
        for where, dirs, files in os.walk(top) if os.path.isdir(top) else ():
            dirs[:] = sorted(d for d in dirs if d not in SKIP)
            for name in sorted(files):
                path = os.path.join(where, name)
                if name.endswith(".py") and not top.startswith("/home") and path not in seen:
                    seen.add(path)
                    yield path


def compile_some(paths, where):
    for path in paths:
        try:
            py_compile.compile(path, os.path.join(where, path.replace("/", "\\")), doraise=True, quiet=2)
        except Exception:  # a file that is no source of this version's
            pass


def main():
    where = "/tmp/pyc"
    os.mkdir(where)
    paths = list(sources())
    children = []
    for k in range(WORKERS):
        pid = os.fork()
        if pid == 0:
            compile_some(paths[k::WORKERS], where)
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for path in paths:
            made = os.path.join(where, path.replace("/", "\\"))
            if not os.path.exists(made):
                continue
            with open(made, "rb") as f:
                data = f.read()
            info = tarfile.TarInfo(importlib.util.cache_from_source(path).lstrip("/"))
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
    sys.stdout.buffer.flush()


main()
