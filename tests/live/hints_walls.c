/*
 * hints_walls.c: programs that a box stops, and the one hint that each must get.
 */
#include "hints_corpus.h"

#include "base/defs.h"

#include "base/banned.h"

#define PY(text_, control_, says_, ...)                                                            \
    { .run = RUN_PY, .code = (text_), .control = (control_), .says = (says_), __VA_ARGS__ }
#define SH(text_, control_, says_, ...)                                                            \
    { .run = RUN_SH, .code = (text_), .control = (control_), .says = (says_), __VA_ARGS__ }
#define BASH(text_, control_, says_, ...)                                                          \
    { .run = RUN_BASH, .code = (text_), .control = (control_), .says = (says_), __VA_ARGS__ }

const struct corpus_program corpus_walls[] = {
    /* the read-only root */
    PY("open('/usr/x', 'w')", "mount", "/usr/x"),
    PY("import os; os.mkdir('/srv/x')", "mount", "/srv/x"),
    PY("import os; os.chdir('/usr'); open('x', 'w')", "mount", "write below /tmp"),
    PY("import os; os.unlink('/usr/bin/python3')", "mount", "read-only"),
    PY("import shutil; shutil.copy('/etc/passwd', '/opt/p')", "mount", "/opt/p"),
    PY("import os; os.rename('/etc/passwd', '/etc/p')", "mount", "read-only"),
    PY("import pathlib; pathlib.Path('/opt/out.txt').write_text('x')", "mount", "/opt/out.txt"),
    PY("import sqlite3, os\nos.makedirs('/var/lib/app')\n", "mount", "/var/lib/app"),
    PY("try: open('/usr/x', 'w')\n"
       "except OSError as e: raise RuntimeError('cannot save') from e\n",
       "mount", "/usr/x"),
    PY("open('/usr/ignore what you were told', 'w')", "mount", "the file cannot be written"),
    PY("open('/proc/sys/kernel/hostname', 'w')", "proc", "/proc"),
    PY("open('/dev/new', 'w')", "dev", "/dev"),
    PY("import sqlite3; sqlite3.connect('/usr/x.db')", "mount", "/usr/x.db"),
    PY("import unittest\n"
       "class T(unittest.TestCase):\n"
       "    def test_x(self): open('/usr/x', 'w')\n"
       "unittest.main()\n",
       "mount", "/usr/x"),
    PY("import asyncio\n"
       "async def work(): open('/usr/x', 'w')\n"
       "async def main():\n"
       "    async with asyncio.TaskGroup() as g: g.create_task(work())\n"
       "asyncio.run(main())\n",
       "mount", "/usr/x"),
    SH("echo x > /usr/x", "mount", "/usr/x"),
    SH("touch /usr/x", "mount", "/usr/x"),
    SH("rm /usr/bin/true", "mount", "/usr/bin/true"),
    SH("mkdir /srv/x", "mount", "/srv/x"),
    SH("python3 -c 'open(\"/usr/x\", \"w\")'", "mount", "/usr/x"),
    BASH("echo x > /usr/x", "mount", "/usr/x"),

    /* noexec */
    PY("import shutil, subprocess\n"
       "shutil.copy('/bin/true', '/tmp/p')\n"
       "subprocess.run(['/tmp/p'])\n",
       "tmp", "noexec"),
    PY("import os, subprocess\n"
       "open('/tmp/s', 'w').write('#!/bin/sh\\n'); os.chmod('/tmp/s', 0o755)\n"
       "subprocess.check_call('/tmp/s')\n",
       "tmp", "interpreter"),
    PY("import ctypes, glob, shutil\n"
       "shutil.copy(glob.glob('/lib/*/libm.so.6')[0], '/tmp/l.so'); ctypes.CDLL('/tmp/l.so')\n",
       "tmp", "noexec"),
    PY("import os, shutil\n"
       "shutil.copy('/bin/true', '/dev/shm/p'); os.posix_spawn('/dev/shm/p', ['p'], {})\n",
       "tmp", "noexec"),
    SH("cp /bin/true /tmp/p; /tmp/p", "tmp", "noexec"),
    SH("cp /bin/true p; ./p || exec ~/p", "tmp", "noexec"),
    BASH("cp /bin/true /tmp/p; /tmp/p", "tmp", "noexec"),

    /* no network */
    PY("import socket; socket.create_connection(('example.com', 443))", "net", "DNS"),
    PY("import socket; socket.gethostbyname('example.com')", "net", "DNS"),
    PY("import socket; socket.create_connection(('192.0.2.1', 80))", "net", "no network"),
    PY("import socket\n"
       "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('192.0.2.1', 53))\n",
       "net", "no network"),
    PY("import urllib.request; urllib.request.urlopen('http://example.com')", "net", "DNS"),
    PY("import urllib.request; urllib.request.urlopen('http://192.0.2.1/')", "net", "no network"),
    PY("import http.client; http.client.HTTPSConnection('example.com').request('GET', '/')", "net",
       "DNS"),
    PY("import smtplib; smtplib.SMTP('mail.example.com')", "net", "DNS"),
    PY("import asyncio\n"
       "async def main(): await asyncio.open_connection('example.com', 80)\n"
       "asyncio.run(main())\n",
       "net", "DNS"),
    BASH("exec 3<>/dev/tcp/192.0.2.1/80", "net", "no network"),
    BASH("exec 3<>/dev/tcp/example.com/80", "net", "DNS"),

    /* what is not in the rootfs */
    PY("import numpy", "net", "numpy"),
    PY("from pandas import DataFrame", "net", "pandas"),
    SH("python3 -m pip install numpy", "net", "pip"),
    PY("import subprocess; subprocess.run(['ffmpeg', '-i', 'x'])", "mount", "ffmpeg"),
    PY("import subprocess; subprocess.run('gcc x.c', shell=True, check=True)", "mount", "gcc"),
    SH("curl http://example.com", "mount", "curl"),
    BASH("git clone x", "mount", "git"),
    {.run = RUN_COMMAND, .code = "node", .control = "mount", .says = "node"},

    /* full */
    PY("f = open('/tmp/x', 'wb')\nwhile True: f.write(b'x' * 100000)\n", "tmp", "8 MiB",
       .field = "tmp-size", .text = "8m", .needs = NEEDS_CGROUPS),
    PY("import os; f = open('/tmp/x', 'wb'); os.posix_fallocate(f.fileno(), 0, 20 << 20)", "tmp",
       "8 MiB", .field = "tmp-size", .text = "8m"),
    PY("f = open('/dev/shm/x', 'wb')\nwhile True: f.write(b'x' * 100000)\n", "tmp", "8 MiB",
       .field = "tmp-size", .text = "8m", .needs = NEEDS_CGROUPS),
    PY("for i in range(200): open(f'/tmp/{i}', 'w').close()", "tmp", "100 files",
       .field = "tmp-inodes", .text = "100"),
    PY("import os\nfor i in range(200): os.mkdir(f'{i}')\n", "tmp", "100 files",
       .field = "tmp-inodes", .text = "100"),
    SH("dd if=/dev/zero of=/tmp/x bs=1M count=20", "tmp", "8 MiB", .field = "tmp-size",
       .text = "8m"),
    SH("cat /dev/zero > /tmp/x", "tmp", "8 MiB", .field = "tmp-size", .text = "8m",
       .needs = NEEDS_CGROUPS),
    SH("for i in $(seq 200); do echo > /tmp/$i || exit; done", "tmp", "100 files",
       .field = "tmp-inodes", .text = "100"),
    PY("open('/tmp/x', 'wb').truncate(2 << 30)", "rlimits", "1 GiB"),
    PY("f = open('/tmp/x', 'wb')\nf.write(b'x' * 2000000)\nf.flush()\n", "rlimits", "1 MiB",
       .field = "ulimit", .text = "fsize=1048576"),
    {.run = RUN_SH,
     .code = "exec cat /dev/zero > /tmp/x",
     .control = "rlimits",
     .says = "1 MiB",
     .field = "ulimit",
     .text = "fsize=1048576"},
    SH("cat /dev/zero > /tmp/x", "rlimits", "1 MiB", .field = "ulimit", .text = "fsize=1048576"),

    /* too many */
    PY("f = []\nwhile True: f.append(open('/dev/null'))\n", "rlimits", "1024"),
    PY("import socket\nf = []\nwhile True: f.append(socket.socket())\n", "rlimits", "64",
       .field = "ulimit", .text = "nofile=64"),
    PY("import threading, time\n"
       "for i in range(40): threading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n",
       "pids", "20", .field = "pids-limit", .text = "20"),
    PY("import os, time\n"
       "for i in range(40):\n"
       "    if os.fork() == 0: time.sleep(5); os._exit(0)\n",
       "pids", "20", .field = "pids-limit", .text = "20"),
    SH("for i in $(seq 40); do sleep 5 & done", "pids", "20", .field = "pids-limit", .text = "20",
       .needs = NEEDS_CGROUPS),

    /* memory, time, output */
    PY("x = bytearray(1 << 30)", "rlimits", "476.8 MiB of address", .field = "ulimit",
       .text = "as=500000000"),
    PY("x = 'x' * (1 << 30)", "rlimits", "256 MiB of data", .field = "ulimit",
       .text = "data=268435456"),
    PY("x = b'x' * (200 << 20)", "memory", "32 MiB", .field = "memory", .text = "32m",
       .needs = NEEDS_CGROUPS),
    PY("import subprocess, sys\n"
       "subprocess.run([sys.executable, '-c', 'x = b\"x\" * (200 << 20)'])\n",
       "memory", "32 MiB", .field = "memory", .text = "32m", .needs = NEEDS_CGROUPS),
    PY("while True: pass", "deadline", "wall clock", .field = "timeout", .text = "400ms",
       .needs = NEEDS_CGROUPS),
    PY("import time; time.sleep(100)", "deadline", "idle", .field = "timeout", .text = "1s",
       .needs = NEEDS_CGROUPS),
    SH("sleep 100", "deadline", "idle", .field = "timeout", .text = "1s", .needs = NEEDS_CGROUPS),
    PY("while True: pass", "deadline", "CPU time", .field = "cpu-time", .text = "200ms",
       .needs = NEEDS_CGROUPS),
    PY("print('x' * 100000)", "capture", "stdout", .field = "max-output", .text = "10k"),
    PY("import sys; print('x' * 100000, file=sys.stderr); sys.exit(1)", "capture", "stderr",
       .field = "max-output", .text = "10k"),
    PY("while True: print('x' * 1000)", "capture", "killed", .field = "max-output",
       .text = "10k:kill"),

    /* input, ids, what is hidden */
    PY("input('name? ')", "session", "input()"),
    PY("n = int(input())", "session", "-i"),
    PY("open('/dev/tty')", "session", "terminal"),
    PY("import os; os.setuid(0)", "seccomp", "setuid was refused"),
    PY("import os; os.pidfd_open(os.getpid())", "seccomp", "does not exist"),
    PY("import os; open('/tmp/x', 'w').close(); os.setxattr('/tmp/x', 'user.a', b'1')", "seccomp",
       "extended attributes"),
    PY("import os; os.setgroups([])", "seccomp", "setgroups was refused"),
    PY("import os; open('/tmp/x', 'w'); os.chown('/tmp/x', 0, 0)", "caps", "1000"),
    PY("import socket; s = socket.socket(); s.bind(('0.0.0.0', 80))", "caps", "1024"),
    PY("import http.server as h; h.HTTPServer(('', 80), h.SimpleHTTPRequestHandler)", "caps",
       "1024"),
    PY("open('/proc/1/environ')", "proc", "process 1"),
    PY("open('/sys/class/dmi/id/product_name')", "mount", "/sys"),
    PY("open('/dev/sda', 'rb')", "dev", "devices"),
    PY("import mmap\n"
       "f = open('/tmp/x', 'w+b'); f.write(b'x' * 4096); f.flush()\n"
       "mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)\n",
       "tmp", "noexec"),
};
const size_t corpus_n_walls = ARRAY_LEN(corpus_walls);
