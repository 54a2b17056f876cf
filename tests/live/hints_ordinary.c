/*
 * hints_ordinary.c: programs that fail by their own doing, many of them with the
 * words of a wall. Not one may get a hint.
 */
#include "hints_corpus.h"

#include "base/defs.h"

#include "base/banned.h"

#define PY(text_)                                                                                  \
    { .run = RUN_PY, .code = (text_) }
#define SH(text_)                                                                                  \
    { .run = RUN_SH, .code = (text_) }
#define BASH(text_)                                                                                \
    { .run = RUN_BASH, .code = (text_) }

const struct corpus_program corpus_ordinary[] = {
    /* plain mistakes */
    PY("assert 1 == 2"),
    PY("assert 1 == 2, 'Read-only file system'"),
    PY("int('x')"),
    PY("{}['key']"),
    PY("[][0]"),
    PY("1 / 0"),
    PY("undefined_name"),
    PY("None.attribute"),
    PY("'a' + 1"),
    PY("def f(): f()\nf()"),
    PY("if True\n  pass"),
    PY("print('x' 1)"),
    PY("import sys; sys.exit(3)"),
    PY("import sys; sys.exit('something went wrong')"),
    PY("import os; os._exit(7)"),
    PY("import os; os.abort()"),
    PY("import os, signal; os.kill(os.getpid(), signal.SIGTERM)"),
    PY("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
    PY("import os, signal; os.kill(os.getpid(), signal.SIGXCPU)"),
    PY("import os, signal; os.kill(os.getpid(), signal.SIGSYS)"),
    PY("import ctypes; ctypes.string_at(0)"),
    PY("raise KeyboardInterrupt"),
    PY("import json; json.loads('{')"),
    PY("b'\\xff'.decode()"),
    PY("print('\\u00e9\\u4e2d\\U0001f600'); raise ValueError('\\u00e9\\u4e2d\\U0001f600')"),
    PY("import sys; sys.stderr.buffer.write(b'\\xff\\xfe\\x00 [Errno 30]\\n'); sys.exit(1)"),
    PY("import sys; sys.stderr.write('no newline'); sys.exit(1)"),
    PY("import json.nothing"),
    PY("from json import nothing"),
    PY("import unittest\n"
       "class T(unittest.TestCase):\n"
       "    def test(self): self.assertEqual(1, 2)\n"
       "unittest.main()\n"),
    PY("import unittest\n"
       "class T(unittest.TestCase):\n"
       "    def test(self): raise OSError(30, 'Read-only file system', '/usr/x')\n"
       "unittest.main()\n"),
    PY("import doctest\n"
       "def f():\n"
       "    '''\n    >>> f()\n    2\n    '''\n"
       "    return 1\n"
       "raise SystemExit(doctest.testmod().failed)\n"),
    PY("import argparse\n"
       "p = argparse.ArgumentParser(); p.add_argument('file'); p.parse_args()\n"),
    PY("import asyncio\n"
       "async def main(): await asyncio.wait_for(asyncio.sleep(9), 0.01)\n"
       "asyncio.run(main())\n"),

    /* its own files */
    PY("open('missing')"),
    PY("open('/tmp/missing')"),
    PY("open('/nowhere/missing', 'w')"),
    PY("open('/dev/shm/missing')"),
    PY("open('/etc/no-such-file')"),
    PY("open('/tmp')"),
    PY("import os; os.mkdir('/tmp/a'); os.mkdir('/tmp/a')"),
    PY("import os; open('/tmp/a', 'w').close(); os.chmod('/tmp/a', 0); open('/tmp/a')"),
    PY("import os; open('a', 'w').close(); os.chmod('a', 0); open('a', 'w')"),
    PY("import os; os.mkdir('/tmp/d', 0); open('/tmp/d/x', 'w')"),
    PY("import os; os.mkdir('/tmp/d', 0); os.listdir('/tmp/d')"),
    PY("import os; os.mkdir('/tmp/d'); open('/tmp/d/x', 'w'); os.rmdir('/tmp/d')"),
    PY("f = open('/dev/full', 'w'); f.write('x'); f.flush()"),
    PY("open('/tmp/x', 'w').read()"),
    PY("import os; os.close(999)"),

    /* the words of a wall, in its own mouth */
    PY("print('Read-only file system'); raise SystemExit(1)"),
    PY("import sys; print('Permission denied: \\'/tmp/x\\'', file=sys.stderr); sys.exit(1)"),
    PY("import sys\n"
       "print('OSError: [Errno 30] Read-only file system: \\'/usr/x\\'', file=sys.stderr)\n"
       "sys.exit(1)\n"),
    PY("import sys; print('sh: 1: ffmpeg: not found', file=sys.stderr); sys.exit(127)"),
    PY("import sys; print('sh: 1: /tmp/p: Permission denied', file=sys.stderr); sys.exit(126)"),
    PY("import sys; print('failed to map segment from shared object', file=sys.stderr); "
       "sys.exit(1)"),
    PY("import sys; print('MemoryError', file=sys.stderr); sys.exit(1)"),
    PY("raise MemoryError"),
    PY("bytearray(10**15)"),
    PY("import unittest, unittest.mock as m\n"
       "class T(unittest.TestCase):\n"
       "    def test_x(self): m.Mock(side_effect=OSError(30, 'Read-only file system', "
       "'/usr/x'))()\n"
       "unittest.main()\n"),
    PY("import resource; resource.setrlimit(resource.RLIMIT_AS, (16 << 20,) * 2); import ssl"),
    PY("import os, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL); os.kill(os.getpid(), "
       "signal.SIGXFSZ)"),
    SH("kill -XFSZ $$"),
    SH("echo true > /tmp/x; /tmp/x"),
    PY("import sqlite3; sqlite3.connect('/tmp/no/x.db')"),
    PY("raise MemoryError('my own')"),
    PY("if True: raise OSError(30, 'Read-only file system', '/usr/x')"),
    PY("import errno, os\nraise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))"),
    PY("raise PermissionError(13, 'Permission denied', '/etc/passwd')"),
    PY("import socket\nraise socket.gaierror(-3, 'Temporary failure in name resolution')"),
    PY("raise ModuleNotFoundError(\"No module named 'numpy'\")"),
    PY("raise EOFError('EOF when reading a line')"),
    PY("raise ValueError('[Errno 101] Network is unreachable')"),
    PY("raise RuntimeError('can\\'t start new thread')"),
    PY("raise OSError(38, 'Function not implemented')"),
    PY("raise NotImplementedError"),
    PY("raise OSError('Too many open files')"),
    PY("class MemoryError(Exception): pass\nraise MemoryError"),
    PY("def check(e):\n    raise e\ncheck(OSError(30, 'Read-only file system', '/usr/x'))\n"),
    PY("import multiprocessing as m\n"
       "def f(x): raise MemoryError\n"
       "if __name__ == '__main__':\n"
       "    with m.Pool(1) as p: p.map(f, [1])\n"),
    PY("from concurrent.futures import ThreadPoolExecutor as T\n"
       "def f(): raise OSError(28, 'No space left on device', '/tmp/x')\n"
       "T().submit(f).result()\n"),

    PY("from unittest import mock\n"
       "open = mock.Mock(side_effect=OSError(30, 'Read-only file system', '/usr/x'))\n"
       "open('/usr/x', 'w')\n"),
    PY("exec('raise OSError(30, \"Read-only file system\", \"/usr/x\")')"),
    PY("import contextlib\n"
       "@contextlib.contextmanager\n"
       "def cm():\n"
       "    yield\n"
       "with cm(): raise OSError(30, 'Read-only file system', '/usr/x')\n"),
    PY("raise OSError(\n    30,\n    'Read-only file system',\n    '/usr/x')\n"),
    PY("import asyncio\n"
       "async def main():\n"
       "    f = asyncio.get_running_loop().create_future()\n"
       "    raise OSError(101, 'Network is unreachable')\n"
       "asyncio.run(main())\n"),
    PY("import datetime\n"
       "datetime.datetime.strptime('[Errno 101] Network is unreachable', '%Y')\n"),
    PY("import traceback, ctypes\n"
       "try: open('/usr/x', 'w')\n"
       "except OSError: traceback.print_exc()\n"
       "ctypes.string_at(0)\n"),

    /* its own limits */
    PY("import resource\n"
       "resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))\n"
       "f = []\n"
       "while True: f.append(open('/dev/null'))\n"),
    PY("import resource\n"
       "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
       "open('/tmp/x', 'wb').write(b'x' * 2000000)\n"),
    PY("import resource\n"
       "resource.setrlimit(resource.RLIMIT_AS, (100 << 20, 100 << 20))\n"
       "x = b'x' * (200 << 20)\n"),

    /* a wall that it met and got over, and then another failure */
    PY("try: open('/usr/x', 'w')\nexcept OSError: pass\n1 / 0\n"),
    PY("try: open('/usr/x', 'w')\nexcept OSError: 1 / 0\n"),
    PY("try: open('/usr/x', 'w')\nexcept OSError as e: print(e)\nraise SystemExit(1)\n"),
    PY("import sys\n"
       "try: open('/usr/x', 'w')\n"
       "except OSError as e: print(e, file=sys.stderr)\n"
       "sys.exit(2)\n"),
    PY("try: import numpy\nexcept ImportError: numpy = None\nnumpy.array([1])\n"),
    PY("import socket\n"
       "try: socket.gethostbyname('example.com')\n"
       "except OSError: pass\n"
       "raise ValueError('offline')\n"),
    PY("import logging\n"
       "try: open('/usr/x', 'w')\n"
       "except OSError: logging.exception('no')\n"
       "raise SystemExit('giving up')\n"),
    PY("try: input()\nexcept EOFError: raise SystemExit(1)\n"),

    /* its own network */
    PY("import socket\n"
       "s = socket.socket(); s.bind(('127.0.0.1', 0)); a = s.getsockname(); s.close()\n"
       "socket.create_connection(a)\n"),
    PY("import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9/')\n"),
    PY("import socket\n"
       "a = socket.socket(); a.bind(('127.0.0.1', 5000)); b = socket.socket()\n"
       "b.bind(('127.0.0.1', 5000))\n"),
    PY("import socket\n"
       "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); s.settimeout(0.01)\n"
       "s.accept()\n"),
    PY("import socket\nsocket.getaddrinfo('localhost', 'no-such-service')\n"),
    PY("import socket\nsocket.getaddrinfo('localhost', 80); raise ValueError\n"),
    PY("import socket\n"
       "a, b = socket.socketpair(); a.setblocking(False); a.recv(1)\n"),

    /* its own children */
    PY("import subprocess; subprocess.run(['false'], check=True)"),
    PY("import subprocess; subprocess.run('exit 127', shell=True, check=True)"),
    PY("import subprocess; subprocess.run(['ls'], cwd='nodir')"),
    PY("import subprocess\nsubprocess.run(\n    ['ls'],\n    cwd='nodir')\n"),
    PY("import subprocess; subprocess.run(['./missing'])"),
    PY("import subprocess; subprocess.run(['/etc/passwd'])"),
    PY("import subprocess; subprocess.run(['sleep', '9'], timeout=0.01)"),
    PY("import subprocess, sys\n"
       "sys.exit(subprocess.run(['grep', 'x', '/dev/null']).returncode)\n"),

    SH("false"),
    SH("exit 3"),
    SH("exit 127"),
    SH("exit 126"),
    SH("exit 137"),
    SH("grep x /dev/null"),
    SH("cat missing"),
    SH("ls /nowhere"),
    SH("./missing"),
    SH("/tmp"),
    SH("cd /nowhere"),
    SH("if"),
    SH("echo 'Read-only file system' >&2; exit 1"),
    SH("echo 'Permission denied'; exit 1"),
    SH("echo 'error: [Errno 28] No space left on device' >&2; exit 1"),
    SH("echo 'Network is unreachable' >&2; exit 1"),
    SH("echo 'app: /data/x: Read-only file system' >&2; exit 1"),
    SH("echo \"touch: cannot touch '/usr/x': Read-only file system\" >&2; exit 1"),
    SH("echo 'sh: 1: ffmpeg: not found' >&2; exit 127"),
    SH("kill -9 $$"),
    SH("kill -SEGV $$"),
    SH("touch /tmp/a; chmod 0 /tmp/a; cat /tmp/a"),
    SH("mkdir /tmp/d; chmod 0 /tmp/d; touch /tmp/d/x"),
    SH("mkdir /tmp/d; chmod 0 /tmp/d; echo x > /tmp/d/x"),
    SH("echo x > /dev/full"),
    SH("cat /etc/passwd > /dev/full"),
    SH("ulimit -f 1; cat /dev/zero > /tmp/x"),
    SH("test 1 = 2"),
    SH("diff /etc/passwd /etc/group > /dev/null"),
    SH("python3 -c 'raise MemoryError'"),
    SH("python3 -c 'import sys; sys.exit(1)'"),
    SH("python3 missing.py"),
    SH("echo 'raise OSError(30, \"Read-only file system\")' | python3"),
    SH("set -u; echo $undefined"),
    SH("python3 -m json.tool < /dev/null"),
    BASH("exec 3<>/dev/tcp/127.0.0.1/9"),
    BASH("echo $((1 / 0))"),
    BASH("exec /tmp/missing"),
};
const size_t corpus_n_ordinary = ARRAY_LEN(corpus_ordinary);
