/*
 * test_view.c: what the code sees, and what it can reach. Most tests are a few lines of Python that
 * print what they find. The cases S1 to S18 (S2 is in test_binds.c), and their like.
 */
#include <arpa/inet.h>
#include <grp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "live/beside.h"

#include "base/banned.h"

static bool any_holds(const char *const *list, size_t n, const char *word) {
    for (size_t i = 0; i < n; i++)
        if (strstr(list[i], word))
            return true;
    return false;
}

/* ------------------------------------------------------------------ of the caller */

/* Put together at run time, so that it is in no text that the code brings with it. */
static const char look_for_secret[] =
    "import glob, os\n"
    "word = 'mayfly' + '-secret-' + 'b7e1'\n"
    "found = [k for k, v in os.environ.items() if word in v]\n"
    "read = 0\n"
    "for path in glob.glob('/proc/[0-9]*/*') + glob.glob('/proc/[0-9]*/task/*/*'):\n"
    "    if os.path.basename(path) not in ('environ', 'cmdline', 'comm', 'auxv', 'stat', "
    "'status'):\n"
    "        continue\n"
    "    try: text = open(path, 'rb').read()\n"
    "    except OSError: continue\n"
    "    read += 1\n"
    "    if word.encode() in text: found.append(path)\n"
    "print(read > 5, found, sorted(os.listdir('/proc/self/task')) == [str(os.getpid())])\n";

/* S1 */
static void a_secret_in_the_callers_environment_is_nowhere_to_be_found(void **state) {
    (void)state;
    assert_int_equal(setenv("MAYFLY_TEST_TOKEN", "mayfly-secret-b7e1", 1), 0);
    const char *argv[] = {"python", "-c", look_for_secret, NULL};
    mayfly_result *r = live_python(look_for_secret, NULL);
    struct live_output *o = live_program(argv, -1);
    (void)unsetenv("MAYFLY_TEST_TOKEN");

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "True [] True\n");
    assert_string_equal(o->out, "True [] True\n");
    assert_int_equal(o->exit_code, 0);
    mayfly_result_free(r);
    free(o);
}

static void the_environment_is_a_list_that_the_caller_extends(void **state) {
    (void)state;
    const char *code = "import os\n"
                       "print(os.environ['A'], os.environ['PATH'], os.environ['HOME'],\n"
                       "      [k for k in os.environ if k.startswith('MAYFLY_')])\n";
    mayfly_result *r = live_python(code, "env", "A=1", "env", "A=two words", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "two words /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
                                     "/sbin:/bin /home/box []\n");
    mayfly_result_free(r);
}

/* S3 */
static void a_descriptor_that_the_caller_leaked_is_not_open(void **state) {
    (void)state;
    const char *code = "import os\n"
                       "def is_open(fd):\n"
                       "    try: os.fstat(fd); return True\n"
                       "    except OSError: return False\n"
                       "print([fd for fd in range(2000) if is_open(fd)])\n"
                       "print(sorted(os.listdir('/proc/self/fd')))\n";
    int leaked = open("/", O_RDONLY | O_DIRECTORY); // NOLINT: without O_CLOEXEC, that is the point

    assert_true(leaked >= 0);
    assert_int_equal(dup2(leaked, 7), 7);
    assert_int_equal(dup2(leaked, 900), 900);
    const char *argv[] = {"python", "-c", code, NULL};
    mayfly_result *r = live_python(code, NULL);
    struct live_output *o = live_program(argv, -1);
    (void)close(7);
    (void)close(900);
    (void)close(leaked);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data,
                        "[0, 1, 2]\n['0', '1', '2', '3']\n"); /* 3: the listing's own */
    assert_string_equal(o->out, "[0, 1, 2]\n['0', '1', '2', '3']\n");
    mayfly_result_free(r);
    free(o);
}

static void a_working_directory_below_proc_is_refused(void **state) {
    (void)state;
    const char *dirs[] = {"/proc/self/fd/7", "/proc/self/root", "/proc/1/cwd", "/tmp/../proc/self"};
    const char *argv[] = {"true", NULL};

    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        struct mayfly_error e = {0};
        mayfly_policy *policy = live_policy();
        mayfly_result *r = NULL;

        assert_int_equal(mayfly_policy_command(policy, argv, &e), 0);
        if (mayfly_policy_set(policy, "workdir", dirs[i], &e) == 0 &&
            mayfly_run(policy, NULL, &r, &e) == 0)
            fail_msg("%s was not refused", dirs[i]);
        assert_int_equal(e.kind, MAYFLY_E_USAGE);
        assert_non_null(strstr(e.message, "workdir"));
        mayfly_policy_free(policy);
    }
}

static void the_code_starts_in_its_home_or_where_it_is_told_to(void **state) {
    (void)state;
    const char *code = "import os\nprint(os.getcwd())\n";

    live_prints(code, "/home/box\n");
    mayfly_result *r = live_python(code, "workdir", "/usr/lib", NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "/usr/lib\n");
    mayfly_result_free(r);
}

static void signals_that_the_caller_ignores_or_blocks_are_as_at_boot(void **state) {
    (void)state;
    sigset_t block, old;

    (void)sigemptyset(&block);
    (void)sigaddset(&block, SIGTERM);
    (void)sigaddset(&block, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &block, &old);
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    mayfly_result *r = live_sh("while read k v; do case $k in Sig[BI]*) echo $k $v;; esac; "
                               "done < /proc/self/status; umask",
                               NULL);
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGHUP, SIG_DFL);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "SigBlk: 0000000000000000\nSigIgn: 0000000000000000\n0022\n");
    mayfly_result_free(r);
}

/* S6 */
static void a_file_for_one_of_the_callers_groups_is_refused_or_reported(void **state) {
    (void)state;
    char path[] = "/tmp/mayfly-group-XXXXXX", volume[96];
    const char *argv[] = {"cat", "/tmp/in", NULL};
    gid_t group = 54321, old[64];
    struct mayfly_error e = {0};

    if (geteuid() != 0)
        live_skip("root", "a user without extra groups cannot get one");
    int n = getgroups(64, old);
    int fd = mkostemp(path, O_CLOEXEC);
    assert_true(n >= 0 && fd >= 0);
    assert_int_equal(write(fd, "for the group", 13), 13);
    assert_int_equal(fchown(fd, 12345, group), 0);
    assert_int_equal(fchmod(fd, 0040), 0);
    (void)close(fd);
    assert_int_equal(setgroups(1, &group), 0);
    mayfly_policy *policy = live_policy();
    (void)snprintf(volume, sizeof(volume), "%s:/tmp/in", path);
    live_set(policy, "volume", volume);
    assert_int_equal(mayfly_policy_command(policy, argv, &e), 0);
    mayfly_result *r = live_run(policy, NULL);
    (void)setgroups((size_t)n, old);
    (void)unlink(path);
    mayfly_policy_free(policy);

    if (strstr(r->out.data, "for the group"))
        assert_true(any_holds(r->warnings, r->n_warnings, "group"));
    else
        assert_non_null(strstr(r->err.data, "Permission denied"));
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ of the host */

/* S4 */
static void dev_has_the_harmless_devices_and_no_other(void **state) {
    (void)state;
    live_prints(
        "import os, stat\n"
        "print(sorted(os.listdir('/dev')))\n"
        "for d in 'null', 'zero', 'full', 'random', 'urandom':\n"
        "    s = os.stat('/dev/' + d)\n"
        "    print(d, stat.S_ISCHR(s.st_mode), os.major(s.st_rdev), os.minor(s.st_rdev))\n"
        "print(len(open('/dev/urandom', 'rb', 0).read(16)), open('/dev/null').read() == '',\n"
        "      open('/dev/zero', 'rb', 0).read(4), open('/dev/null', 'w').write('x'))\n"
        "try: open('/dev/full', 'w', buffering=1).write('x\\n')\n"
        "except OSError as e: print(e.strerror)\n"
        "try: open('/dev/made', 'w')\n"
        "except OSError: print('no file in /dev')\n",
        "['fd', 'full', 'null', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'urandom', "
        "'zero']\n"
        "null True 1 3\nzero True 1 5\nfull True 1 7\nrandom True 1 8\nurandom True 1 9\n"
        "16 True b'\\x00\\x00\\x00\\x00' 1\n"
        "No space left on device\n"
        "no file in /dev\n");
}

static void no_device_anywhere_else_opens_or_can_be_made(void **state) {
    (void)state;
    live_prints(
        "import os, stat\n"
        "opened = []\n"
        "for d, dirs, files in os.walk('/'):\n"
        "    if d == '/': dirs[:] = [x for x in dirs if x not in ('proc', 'dev')]\n"
        "    for f in files:\n"
        "        p = os.path.join(d, f)\n"
        "        m = os.lstat(p).st_mode\n"
        "        if stat.S_ISCHR(m) or stat.S_ISBLK(m):\n"
        "            try: os.open(p, os.O_RDONLY | os.O_NONBLOCK); opened.append(p)\n"
        "            except OSError: pass\n"
        "print(opened)\n"
        "for dev in (1, 1), (5, 0), (8, 0), (10, 232), (1, 3):\n"
        "    for kind in stat.S_IFCHR, stat.S_IFBLK:\n"
        "        try: os.mknod('/tmp/dev', kind | 0o666, os.makedev(*dev)); print('made', dev)\n"
        "        except OSError: pass\n",
        "[]\n");
}

/* S5 */
static void what_the_kernel_tells_of_the_host_is_masked(void **state) {
    (void)state;
    live_prints(
        "import os\n"
        "for name in ('acpi', 'asound', 'interrupts', 'kallsyms', 'kcore', 'key-users', 'keys',\n"
        "             'latency_stats', 'sched_debug', 'scsi', 'timer_list', 'timer_stats'):\n"
        "    p = '/proc/' + name\n"
        "    try: seen = os.listdir(p) if os.path.isdir(p) else open(p, 'rb').read(64)\n"
        "    except (FileNotFoundError, PermissionError): continue\n"
        "    if seen: print(name, seen)\n"
        "print(sorted(os.listdir('/sys')))\n"
        "print(sorted(x for x in os.listdir('/proc') if x.isdigit()) == [str(os.getpid())])\n",
        "[]\nTrue\n");
}

static void nothing_of_the_kernels_can_be_written(void **state) {
    (void)state;
    live_prints(
        "import os\n"
        "written = []\n"
        "def attempt(p):\n"
        "    try: fd = os.open(p, os.O_WRONLY | os.O_NONBLOCK)\n"
        "    except OSError: return\n"
        "    os.close(fd)\n"
        "    written.append(p)\n"
        "for top in 'sys', 'irq', 'bus', 'fs', 'tty':\n"
        "    for d, dirs, files in os.walk('/proc/' + top):\n"
        "        for f in files: attempt(os.path.join(d, f))\n"
        "for f in 'sysrq-trigger', 'kmsg', 'mtrr', 'kcore': attempt('/proc/' + f)\n"
        "print([w for w in written if os.path.realpath(w) != '/dev/null'\n"
        "       and os.stat(w).st_rdev != os.makedev(1, 3)])\n" /* a masked file is /dev/null */
        "for f in 'oom_score_adj', 'uid_map', 'gid_map', 'setgroups', 'loginuid', 'attr/current':\n"
        "    try: open('/proc/self/' + f, 'w').write('0'); print(f, 'written')\n"
        "    except OSError: pass\n",
        "[]\n");
}

static void every_mount_is_one_of_ours(void **state) {
    (void)state;
    live_prints(
        "own = {'/', '/proc', '/dev', '/dev/shm', '/tmp', '/home'}\n"
        "own |= {'/dev/' + d for d in ('null', 'zero', 'full', 'random', 'urandom')}\n"
        "for line in open('/proc/self/mountinfo'):\n"
        "    f = line.split()\n"
        "    if f[4] not in own and not f[4].startswith('/proc/'): print('a stranger:', line)\n"
        "    o = f[5].split(',')\n"
        "    need = {'nosuid'} | ({'nodev'} if not f[4].startswith('/dev') else set())\n"
        "    need |= {'ro'} if f[4] in ('/', '/proc', '/dev') else set()\n"
        "    need |= {'noexec'} if f[4] in ('/proc', '/dev', '/dev/shm', '/tmp', '/home') else "
        "set()\n"
        "    if f[4] in own - {'/dev/' + d for d in ('null', 'zero', 'full', 'random', "
        "'urandom')}\\\n"
        "       and not need <= set(o): print('lacks', need - set(o), line)\n"
        "    if 'master:' in line or 'shared:' in line: print('propagates:', line)\n",
        "");
}

static void names_of_the_host_are_not_shown(void **state) {
    (void)state;
    live_prints("import os, socket\n"
                "print(socket.gethostname(), os.uname().nodename,\n"
                "      open('/proc/sys/kernel/hostname').read().strip())\n"
                "print({l.split(':')[2].strip() for l in open('/proc/self/cgroup')})\n",
                "mayfly mayfly mayfly\n{'/'}\n");
}

static void only_the_loopback_is_there(void **state) {
    (void)state;
    live_prints("print([l.split(':')[0].strip() for l in open('/proc/net/dev').readlines()[2:]])\n"
                "print(len(open('/proc/net/route').readlines()) - 1)\n",
                "['lo']\n0\n");
}

/* ------------------------------------------------------------------ ordinary programs work */

/* S7 */
static void multiprocessing_works(void **state) {
    (void)state;
    live_prints("import multiprocessing as m\n"
                "def square(x): return x * x\n"
                "if __name__ == '__main__':\n"
                "    with m.Lock(): print('locked')\n"
                "    with m.Pool(2) as pool: print(pool.map(square, range(5)))\n"
                "    q = m.Queue()\n"
                "    p = m.Process(target=q.put, args=['from the child'])\n"
                "    p.start(); print(q.get()); p.join(); print(p.exitcode)\n"
                "    from multiprocessing import shared_memory\n"
                "    s = shared_memory.SharedMemory(create=True, size=4096)\n"
                "    s.buf[0] = 7; print(s.buf[0]); s.close(); s.unlink()\n",
                "locked\n[0, 1, 4, 9, 16]\nfrom the child\n0\n7\n");
}

/* S8 */
static void the_user_has_a_name_a_home_and_a_place_for_files(void **state) {
    (void)state;
    live_prints(
        "import getpass, os, pathlib, tempfile\n"
        "print(getpass.getuser(), os.getuid(), os.getgid(), os.getgroups() in ([], [1000]))\n"
        "with tempfile.TemporaryFile() as f: print(f.write(b'x'), tempfile.gettempdir())\n"
        "p = pathlib.Path.home() / 'a'\n"
        "print(p, p.write_text('b'), p.read_text())\n",
        "box 1000 1000 True\n1 /tmp\n/home/box/a 1 b\n");
}

/* S9 */
static void text_is_utf8_whatever_the_callers_locale(void **state) {
    (void)state;
    assert_int_equal(setenv("LANG", "C", 1), 0);
    assert_int_equal(setenv("LC_ALL", "POSIX", 1), 0);
    mayfly_result *r =
        live_python("import sys\n"
                    "print('\\u00e9', sys.stdout.encoding, sys.getfilesystemencoding())\n"
                    "open('/tmp/\\u00e9', 'w').write('\\u00e9')\n"
                    "print(len(open('/tmp/\\u00e9', 'rb').read()))\n",
                    NULL);
    (void)unsetenv("LC_ALL");
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "\xc3\xa9 utf-8 utf-8\n2\n");
    mayfly_result_free(r);
}

static void threads_subprocesses_and_asyncio_work(void **state) {
    (void)state;
    live_prints(
        "import asyncio, subprocess, threading\n"
        "t = [threading.Thread(target=lambda: None) for i in range(20)]\n"
        "for x in t: x.start()\n"
        "for x in t: x.join()\n"
        "print(subprocess.run(['sh', '-c', 'echo $((6*7)); exit 3'], capture_output=True))\n"
        "async def main():\n"
        "    p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=-1)\n"
        "    print((await p.communicate())[0])\n"
        "asyncio.run(main())\n",
        "CompletedProcess(args=['sh', '-c', 'echo $((6*7)); exit 3'], returncode=3, "
        "stdout=b'42\\n', stderr=b'')\nb'hi\\n'\n");
}

/* ------------------------------------------------------------------ network */

/* S10 */
static void the_box_has_a_loopback_of_its_own(void **state) {
    (void)state;
    struct beside beside;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(here);
    char line[64], code[512];

    /* A server on the host, which the box must not reach; the box's own has the same port. */
    int host = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(host >= 0);
    assert_int_equal(bind(host, (const struct sockaddr *)&here, sizeof(here)), 0);
    assert_int_equal(listen(host, 5), 0);
    assert_int_equal(getsockname(host, (struct sockaddr *)&here, &len), 0);
    unsigned port = ntohs(here.sin_port);
    (void)snprintf(
        code, sizeof(code),
        "import socket, sys, time\n"
        "try: socket.create_connection(('127.0.0.1', %u), 5); print('the host answers')\n"
        "except ConnectionRefusedError: pass\n"
        "s = socket.create_server(('127.0.0.1', %u))\n"
        "c = socket.create_connection(('127.0.0.1', %u), 5)\n"
        "a = s.accept()[0]\n"
        "c.sendall(b'ping'); print(a.recv(4).decode())\n"
        "time.sleep(100)\n",
        port, port, port);
    beside_start(&beside, code, NULL);
    beside_line(&beside, line, sizeof(line));
    /* With the host's own server gone, nothing may answer there. */
    (void)close(host);
    int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r = connect(probe, (const struct sockaddr *)&here, sizeof(here));
    int error = errno;
    (void)close(probe);
    mayfly_result *result = beside_end(&beside);
    if (strcmp(line, "ping") != 0)
        fail_msg("%s\n%s", line, result->err.data);
    assert_int_equal(r, -1);
    assert_int_equal(error, ECONNREFUSED);
    mayfly_result_free(result);
}

/* S11 */
static void the_outside_is_unreachable_at_once(void **state) {
    (void)state;
    char code[700];
    (void)snprintf(code, sizeof(code),
                   "import socket, time\n"
                   "for to in ('example.com', 443), ('192.0.2.1', 80), ('2001:db8::1', 80):\n"
                   "    t = time.monotonic()\n"
                   "    try: socket.create_connection(to, 60); print('connected')\n"
                   "    except OSError as e: print('refused', time.monotonic() - t < %d)\n"
                   "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                   "try: s.sendto(b'x', ('192.0.2.1', 53)); print('sent')\n"
                   "except OSError: print('refused', True)\n",
                   (int)(2 * live_slow()));
    live_prints(code, "refused True\nrefused True\nrefused True\nrefused True\n");
}

/* S18 */
static void an_abstract_socket_of_another_box_or_of_the_host_is_not_there(void **state) {
    (void)state;
    const char *server = "import socket, time\n"
                         "s = socket.socket(socket.AF_UNIX)\n"
                         "s.bind('\\0mayfly-test-box')\n"
                         "s.listen()\n"
                         "c = socket.socket(socket.AF_UNIX)\n"
                         "c.connect('\\0mayfly-test-box')\n"
                         "print('bound', flush=True)\n"
                         "time.sleep(100)\n";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char name[] = "mayfly-test-host";
    struct beside beside;
    char line[64];

    int host = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(host >= 0);
    memcpy(address.sun_path + 1, name, sizeof(name) - 1);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(name));
    assert_int_equal(bind(host, (const struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(host, 5), 0);
    beside_start(&beside, server, NULL);
    beside_line(&beside, line, sizeof(line));
    mayfly_result *r =
        live_python("import socket\n"
                    "for n in 'box', 'host':\n"
                    "    try:\n"
                    "        socket.socket(socket.AF_UNIX).connect('\\0mayfly-test-' + n)\n"
                    "        print('connected to the', n)\n"
                    "    except OSError as e: print('refused')\n",
                    NULL);
    mayfly_result *first = beside_end(&beside);
    (void)close(host);
    assert_string_equal(line, "bound");
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "refused\nrefused\n");
    mayfly_result_free(r);
    mayfly_result_free(first);
}

static void two_boxes_share_no_process_no_file_and_no_queue(void **state) {
    (void)state;
    const char *first =
        "import os, time\n"
        "open('/tmp/mine', 'w').write('x'); open('/dev/shm/mine', 'w').write('x')\n"
        "import ctypes\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print('here' if libc.shmget(4711, 4096, 0o1666) >= 0 else 'no shm', flush=True)\n"
        "time.sleep(100)\n";
    const char *second =
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(os.path.exists('/tmp/mine'), os.path.exists('/dev/shm/mine'),\n"
        "      libc.shmget(4711, 4096, 0o666),\n"
        "      [p for p in os.listdir('/proc') if p.isdigit() and int(p) != os.getpid()])\n"
        "for pid in range(2, 3000):\n"
        "    if pid != os.getpid():\n"
        "        try: os.kill(pid, 0); print('reached', pid)\n"
        "        except OSError: pass\n";
    struct beside beside;
    char line[64], path[] = "/tmp/mayfly-profile-XXXXXX", option[64];
    const char *all = "{\"defaultAction\": \"SCMP_ACT_ALLOW\"}";

    /* The default filter has no such memory at all; here the namespace must hold alone. */
    int fd = mkostemp(path, O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, all, strlen(all)), strlen(all));
    (void)close(fd);
    (void)snprintf(option, sizeof(option), "seccomp=%s", path);
    beside_start(&beside, first, "security-opt", option, NULL);
    beside_line(&beside, line, sizeof(line));
    mayfly_result *r = live_python(second, "security-opt", option, NULL);
    mayfly_result *other = beside_end(&beside);
    (void)unlink(path);
    assert_string_equal(line, "here");
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "False False -1 []\n");
    bool warned = false; /* of a filter that refuses nothing but what it names */
    for (size_t i = 0; i < r->n_warnings; i++)
        warned = warned || strstr(r->warnings[i], "defaultAction allows");
    assert_true(warned);
    mayfly_result_free(r);
    mayfly_result_free(other);
}

/* ------------------------------------------------------------------ executing and calling */

/* S12 */
static void what_is_written_in_the_box_cannot_be_executed_or_loaded(void **state) {
    (void)state;
    live_prints("import ctypes, glob, os, shutil, subprocess\n"
                "lib = (glob.glob('/lib/*/libz.so.1') + glob.glob('/lib/*/libm.so.6'))[0]\n"
                "for d in '/tmp', '/dev/shm', '/home/box':\n"
                "    shutil.copy('/bin/true', d + '/prog'); os.chmod(d + '/prog', 0o755)\n"
                "    try: subprocess.run([d + '/prog']); print('executed')\n"
                "    except PermissionError: print('refused')\n"
                "    shutil.copy(os.path.realpath(lib), d + '/lib.so')\n"
                "    try: ctypes.CDLL(d + '/lib.so'); print('loaded')\n"
                "    except OSError as e: print('failed to map' in str(e))\n"
                "    open(d + '/script', 'w').write('#!/bin/sh\\necho run\\n')\n"
                "    os.chmod(d + '/script', 0o755)\n"
                "    try: subprocess.run([d + '/script']); print('executed')\n"
                "    except PermissionError: print('refused')\n",
                "refused\nTrue\nrefused\nrefused\nTrue\nrefused\nrefused\nTrue\nrefused\n");
}

/* S12: with a hint, and only then */
static void a_refused_execution_comes_with_a_hint(void **state) {
    static const struct {
        const char *code;
        size_t hints;
    } cases[] = {
        {"import shutil, subprocess\nshutil.copy('/bin/true', "
         "'/tmp/p')\nsubprocess.run(['/tmp/p'])\n",
         1},
        {"import ctypes, glob, shutil\n"
         "lib = (glob.glob('/lib/*/libz.so.1') + glob.glob('/lib/*/libm.so.6'))[0]\n"
         "shutil.copy(lib, '/tmp/l.so')\nctypes.CDLL('/tmp/l.so')\n",
         1},
        {"1 / 0\n", 0},
        {"open('/etc/shadow2')\n", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        mayfly_result *r = live_python(cases[i].code, NULL);

        live_expect(r, MAYFLY_EXITED, 1);
        assert_int_equal(r->n_hints, cases[i].hints);
        if (r->n_hints)
            assert_non_null(strstr(r->hints[0], "noexec"));
        mayfly_result_free(r);
    }
}

static void nor_can_a_file_without_a_name(void **state) {
    (void)state;
    live_prints("import os\n"
                "try:\n"
                "    fd = os.memfd_create('x', 0)\n"
                "    os.write(fd, open('/bin/true', 'rb').read())\n"
                "    os.execve(f'/proc/self/fd/{fd}', ['x'], {})\n"
                "    print('executed')\n"
                "except OSError: print('refused')\n",
                "refused\n");
}

static void an_ordinary_user_without_any_capability_or_a_way_to_one(void **state) {
    (void)state;
    live_prints(
        "import os\n"
        "want = 'CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp'.split()\n"
        "f = dict(l.split(':', 1) for l in open('/proc/self/status'))\n"
        "print([int(f[k].strip(), 16) for k in want])\n"
        "print(os.getresuid(), os.getresgid(), os.getsid(0) == os.getpid() == os.getpgrp())\n"
        "for f in os.setuid, os.setgid:\n"
        "    try: f(0); print('became root')\n"
        "    except OSError: pass\n",
        "[0, 0, 0, 0, 0, 1, 2]\n(1000, 1000, 1000) (1000, 1000, 1000) True\n");
}

/* Where a user without subordinate ids runs it, init has the code's own uid: then the kernel drops
 * the signals. */
static void no_signal_has_an_effect_on_init(void **state) {
    (void)state;
    mayfly_result *r = live_python("import os, subprocess, sys\n"
                                   "for sig in range(65):\n"
                                   "    try: os.kill(1, sig)\n"
                                   "    except OSError: pass\n"
                                   "subprocess.run(['sh', '-c', '(:) & (:) &'])\n"
                                   "sys.exit(3)\n",
                                   NULL);
    live_expect(r, MAYFLY_EXITED, 3);
    mayfly_result_free(r);
}

/* Starts code that makes raw calls: `call(nr, …)` gives the result, or the name of the error. */
#define CALLS                                                                                      \
    "import ctypes, errno, os\n"                                                                   \
    "libc = ctypes.CDLL(None, use_errno=True)\n"                                                   \
    "libc.syscall.restype = ctypes.c_long\n"                                                       \
    "def call(nr, *a):\n"                                                                          \
    "    ctypes.set_errno(0)\n"                                                                    \
    "    r = libc.syscall(ctypes.c_long(nr), *[ctypes.c_long(x) for x in a])\n"                    \
    "    return r if r >= 0 else errno.errorcode[ctypes.get_errno()]\n"

#if defined(__x86_64__)

/* S13 */
static void unknown_calls_are_enosys_and_refused_ones_an_errno(void **state) {
    (void)state;
    live_prints(CALLS
                "import threading\n"
                "print(call(9999), call(435, 0, 0), call(39) == os.getpid())\n" /* clone3, getpid */
                "t = threading.Thread(target=lambda: print('a thread')); t.start(); t.join()\n"
                "print(call(425, 1, 0) in ('EPERM', 'ENOSYS'))\n", /* io_uring_setup */
                "ENOSYS ENOSYS True\na thread\nTrue\n");
}

/* S14 */
static void calls_of_a_foreign_architecture_end_the_run_and_are_named(void **state) {
    (void)state;
    mayfly_result *r = live_python(CALLS "print('before', flush=True)\n"
                                         "print(call(0x40000000 + 39))\n", /* x32 getpid */
                                   NULL);

    live_expect(r, MAYFLY_SIGNALED, 128 + SIGSYS);
    assert_string_equal(r->out.data, "before\n");
    assert_true(any_holds(r->hints, r->n_hints, "x32"));
    assert_true(any_holds(r->hints, r->n_hints, "39"));
    mayfly_result_free(r);
}

static void int_0x80_ends_the_run(void **state) {
    (void)state;
    const char *code = CALLS "import mmap\n"
                             "m = mmap.mmap(-1, 4096, prot=7)\n"
                             /* push rbx; mov eax, 20; int 0x80; pop rbx; ret */
                             "m.write(bytes([0x53, 0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0x5b, 0xc3]))\n"
                             "p = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
                             "print('before', flush=True)\n"
                             "print(ctypes.CFUNCTYPE(ctypes.c_int)(p)())\n";
    mayfly_result *r = live_python(code, NULL);

    /* User-mode Linux has no such interface either: where the CPU takes the instruction, it is 64-bit call 20, writev(-1). */
    if (live_on_uml() && r->outcome == MAYFLY_EXITED) {
        assert_string_equal(r->out.data, "before\n-9\n");
        mayfly_result_free(r);
        return;
    }
    assert_int_equal(r->outcome, MAYFLY_SIGNALED);
    assert_string_equal(r->out.data, "before\n");
    if (r->signal == SIGSYS)
        assert_true(any_holds(r->hints, r->n_hints, "int 0x80"));
    else
        assert_int_equal(r->signal, SIGSEGV); /* a kernel without the 32-bit interface */
    mayfly_result_free(r);
}

/* S15 */
static void no_keystroke_can_be_pushed_into_a_terminal(void **state) {
    (void)state;
    live_prints(CALLS "for high in 0, 1 << 32, 0xffffffff << 32, 1 << 63:\n"
                      "    h = high if high < 1 << 63 else high - (1 << 64)\n"
                      "    print(call(16, 0, h + 0x5412, 0), call(16, 0, h + 0x541c, 0))\n"
                      "print(call(16, 0, 0x5401, 0))\n", /* TCGETS may be asked: no terminal */
                "EPERM EPERM\nEPERM EPERM\nEPERM EPERM\nEPERM EPERM\nENOTTY\n");
}

/* S16 */
static void only_sockets_of_unix_and_internet_can_be_made(void **state) {
    (void)state;
    live_prints(
        CALLS
        "made = []\n"
        "for family in range(1, 64):\n"
        "    for kind in 1, 2, 5, 3, 10:\n"
        "        for protocol in 0, 1, 255:\n"
        "            r = call(41, family, kind, protocol)\n"
        "            if isinstance(r, int):\n"
        "                made.append((family, kind)); os.close(r)\n"
        "print(sorted({f for f, k in made} - {1, 2, 10}),\n"
        "      sorted({(f, k) for f, k in made if k not in (1, 2, 5)} - {(1, 3)}))\n"
        "print((1, 1) in made, (2, 1) in made, (2, 2) in made)\n"
        "print({call(41, f, 3, 0) for f in (40, 17, 38, 16)}, call(41, 2 + (1 << 32), 3, 0))\n",
        "[] []\nTrue True True\n{'EPERM'} EPERM\n");
}

/* S17 */
static void ways_to_more_privilege_are_refused(void **state) {
    (void)state;
    live_prints(
        CALLS
        "refused = {'EPERM', 'EACCES', 'ENOSYS', 'ESRCH', 'ENOSPC'}\n"
        "def no(what, r):\n"
        "    if r not in refused: print(what, r)\n"
        "new = 0x10000000\n"
        "no('unshare', call(272, new))\n"
        "no('unshare all', call(272, 0x7e020000))\n"
        "no('clone', call(56, new | 17, 0, 0, 0, 0))\n"
        "no('setns', call(308, os.open('/proc/self/ns/net', os.O_RDONLY), 0))\n"
        "s = ctypes.create_string_buffer(b'tmpfs'); p = ctypes.addressof(s)\n"
        "t = ctypes.create_string_buffer(b'/tmp'); q = ctypes.addressof(t)\n"
        "no('mount', call(165, p, q, p, 0, 0))\n"
        "no('umount', call(166, q, 2))\n"
        "no('fsopen', call(430, p, 0))\n"
        "no('open_tree', call(428, -100, q, 1))\n"
        "no('move_mount', call(429, -100, q, -100, q, 0))\n"
        "no('mount_setattr', call(442, -100, q, 0, p, 32))\n"
        "no('pivot_root', call(155, q, q))\n"
        "no('chroot', call(161, q))\n"
        "no('keyctl', call(250, 0, -3, 0))\n"
        "no('add_key', call(248, p, p, p, 1, -3))\n"
        "no('bpf', call(321, 0, p, 8))\n"
        "no('perf_event_open', call(298, p, 0, -1, -1, 0))\n"
        "no('userfaultfd', call(323, 0))\n"
        "no('ptrace attach', call(101, 16, 1, 0, 0))\n"
        "no('ptrace seize', call(101, 0x4206, 1, 0, 0))\n"
        "no('process_vm_readv', call(310, 1, p, 1, p, 1, 0))\n"
        "no('pidfd_getfd', call(438, 0, 0, 0))\n"
        "no('open_by_handle_at', call(304, -100, p, 0))\n"
        "no('kexec_load', call(246, 0, 0, 0, 0))\n"
        "no('init_module', call(175, p, 5, p))\n"
        "no('reboot', call(169, 0xfee1dead - (1 << 32), 0x28121969, 0, 0))\n"
        "no('iopl', call(172, 3))\n"
        "no('sethostname', call(170, p, 5))\n"
        "no('settimeofday', call(164, p, 0))\n"
        "for f in 'environ', 'mem', 'maps', 'root', 'cwd', 'fd', 'exe', 'ns/user':\n"
        "    try: os.stat('/proc/1/' + f); os.open('/proc/1/' + f, os.O_RDONLY); print(f, 'read')\n"
        "    except OSError: pass\n"
        "print('end')\n",
        "end\n");
}

#endif

static void programs_of_the_rootfs_cannot_do_it_either(void **state) {
    (void)state;
    mayfly_result *r =
        live_sh("for c in 'unshare -r true' 'unshare -n true' 'mount -t tmpfs x /tmp' "
                "'chroot / true' 'hostname x' 'nsenter -t 1 -m true' 'su -c true' "
                "'dmesg' 'date -s 12:00'; do "
                "command -v ${c%% *} >/dev/null || continue; "
                "$c </dev/null >/dev/null 2>&1 && echo \"$c: done\"; done; echo end",
                NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "end\n");
    mayfly_result_free(r);
}

static void setuid_programs_give_nothing(void **state) {
    (void)state;
    live_prints("import os, stat, subprocess\n"
                "found = [p for d in ('/bin', '/usr/bin', '/sbin') for p in\n"
                "         (os.path.join(d, f) for f in os.listdir(d)) if os.path.isfile(p)\n"
                "         and os.stat(p).st_mode & stat.S_ISUID]\n"
                "print(os.statvfs('/').f_flag & os.ST_NOSUID)\n"
                "for p in found[:3]:\n"
                "    r = subprocess.run([p, '--help'], capture_output=True)\n",
                "2\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_in_the_callers_environment_is_nowhere_to_be_found),
        cmocka_unit_test(the_environment_is_a_list_that_the_caller_extends),
        cmocka_unit_test(a_descriptor_that_the_caller_leaked_is_not_open),
        cmocka_unit_test(a_working_directory_below_proc_is_refused),
        cmocka_unit_test(the_code_starts_in_its_home_or_where_it_is_told_to),
        cmocka_unit_test(signals_that_the_caller_ignores_or_blocks_are_as_at_boot),
        cmocka_unit_test(a_file_for_one_of_the_callers_groups_is_refused_or_reported),
        cmocka_unit_test(dev_has_the_harmless_devices_and_no_other),
        cmocka_unit_test(no_device_anywhere_else_opens_or_can_be_made),
        cmocka_unit_test(what_the_kernel_tells_of_the_host_is_masked),
        cmocka_unit_test(nothing_of_the_kernels_can_be_written),
        cmocka_unit_test(every_mount_is_one_of_ours),
        cmocka_unit_test(names_of_the_host_are_not_shown),
        cmocka_unit_test(only_the_loopback_is_there),
        cmocka_unit_test(multiprocessing_works),
        cmocka_unit_test(the_user_has_a_name_a_home_and_a_place_for_files),
        cmocka_unit_test(text_is_utf8_whatever_the_callers_locale),
        cmocka_unit_test(threads_subprocesses_and_asyncio_work),
        cmocka_unit_test(the_box_has_a_loopback_of_its_own),
        cmocka_unit_test(the_outside_is_unreachable_at_once),
        cmocka_unit_test(an_abstract_socket_of_another_box_or_of_the_host_is_not_there),
        cmocka_unit_test(two_boxes_share_no_process_no_file_and_no_queue),
        cmocka_unit_test(what_is_written_in_the_box_cannot_be_executed_or_loaded),
        cmocka_unit_test(a_refused_execution_comes_with_a_hint),
        cmocka_unit_test(nor_can_a_file_without_a_name),
        cmocka_unit_test(an_ordinary_user_without_any_capability_or_a_way_to_one),
        cmocka_unit_test(no_signal_has_an_effect_on_init),
#if defined(__x86_64__)
        cmocka_unit_test(unknown_calls_are_enosys_and_refused_ones_an_errno),
        cmocka_unit_test(calls_of_a_foreign_architecture_end_the_run_and_are_named),
        cmocka_unit_test(int_0x80_ends_the_run),
        cmocka_unit_test(no_keystroke_can_be_pushed_into_a_terminal),
        cmocka_unit_test(only_sockets_of_unix_and_internet_can_be_made),
        cmocka_unit_test(ways_to_more_privilege_are_refused),
#endif
        cmocka_unit_test(programs_of_the_rootfs_cannot_do_it_either),
        cmocka_unit_test(setuid_programs_give_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
