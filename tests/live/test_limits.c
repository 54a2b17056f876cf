/*
 * test_limits.c: a limit is met inside the box, as an error the code can understand where there
 * is one, and outside nothing is felt of it. The cases L1 to L8, and their like.
 */
#include <pthread.h>
#include <sys/resource.h>

#include "live/beside.h"

#include "base/banned.h"

/* The one limit of that name, or NULL. */
static const struct mayfly_limit *limit_of(const mayfly_result *r, const char *name) {
    for (size_t i = 0; i < r->n_limits; i++)
        if (strcmp(r->limits[i].name, name) == 0)
            return &r->limits[i];
    return NULL;
}

static bool any_holds(const char *const *list, size_t n, const char *word) {
    for (size_t i = 0; i < n; i++)
        if (strstr(list[i], word))
            return true;
    return false;
}

static char *milliseconds(char *text, size_t size, double ms) {
    (void)snprintf(text, size, "%dms", (int)(ms * live_slow()));
    return text;
}

/* ------------------------------------------------------------------ memory */

static uint64_t swap_free_kib(void) {
    FILE *f = fopen("/proc/meminfo", "re");
    char line[256];
    uint64_t kib = 0;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (strncmp(line, "SwapFree:", 9) == 0)
            kib = strtoull(line + 9, NULL, 10);
    (void)fclose(f);
    return kib;
}

/* L1 */
static void memory_beyond_the_limit_does_not_go_to_swap(void **state) {
    (void)state;
    live_need_cgroups();
    if (live_count_lines("/proc/swaps") < 2)
        live_skip("swap", "this host has none");
    uint64_t before = swap_free_kib();
    mayfly_result *r = live_python("b = []\n"
                                   "for i in range(256): b.append(bytearray(1 << 20))\n",
                                   "memory", "64m", NULL);

    live_expect(r, MAYFLY_OOM_KILLED, 137);
    assert_true(swap_free_kib() + (16 << 10) > before);
    mayfly_result_free(r);
}

/* L2 */
static void a_full_tmp_is_an_error_and_not_a_kill(void **state) {
    (void)state;
    mayfly_result *r = live_python("import errno\n"
                                   "try:\n"
                                   "    with open('/tmp/big', 'wb', 0) as f:\n"
                                   "        for i in range(40): f.write(b'x' * (1 << 20))\n"
                                   "except OSError as e: print(errno.errorcode[e.errno], i)\n",
                                   "memory", "128m", "tmp-size", "32m", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "ENOSPC 32\n");
    assert_int_equal(r->oom_kills, 0);
    mayfly_result_free(r);
}

static void every_place_to_write_is_limited(void **state) {
    (void)state;
    mayfly_result *r =
        live_python("import errno\n"
                    "for d in '/tmp', '/dev/shm', '/home/box':\n"
                    "    try:\n"
                    "        with open(d + '/big', 'wb', 0) as f:\n"
                    "            for i in range(40): f.write(b'x' * (1 << 20))\n"
                    "    except OSError as e: print(d, errno.errorcode[e.errno], 7 <= i <= 8)\n",
                    "tmp-size", "8m", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data,
                        "/tmp ENOSPC True\n/dev/shm ENOSPC True\n/home/box ENOSPC True\n");
    mayfly_result_free(r);
}

static void a_tmp_larger_than_the_memory_is_warned_of(void **state) {
    (void)state;
    mayfly_result *r = live_sh("exit 0", "memory", "64m", "tmp-size", "128m", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_true(any_holds(r->warnings, r->n_warnings, "tmp"));
    mayfly_result_free(r);
    r = live_sh("exit 0", NULL);
    assert_false(any_holds(r->warnings, r->n_warnings, "tmp"));
    mayfly_result_free(r);
}

static void files_in_tmp_count_as_memory(void **state) {
    (void)state;
    live_need_cgroups();
    /* In one call: a program that comes back from each write needs its own text again, and a kernel
     * without swap may then read that in and throw it out for minutes, rather than call it out of
     * memory. */
    mayfly_result *r = live_python("import os\n"
                                   "f = open('/tmp/big', 'wb')\n"
                                   "os.posix_fallocate(f.fileno(), 0, 200 << 20)\n",
                                   "memory", "64m", "tmp-size", "256m", NULL);

    live_expect(r, MAYFLY_OOM_KILLED, 137);
    assert_true(r->oom_kills >= 1);
    assert_true(any_holds(r->hints, r->n_hints, "memory"));
    mayfly_result_free(r);
}

static void what_a_run_used_is_in_its_result(void **state) {
    (void)state;
    live_need_cgroups();
    mayfly_result *r = live_python("b = bytearray(64 << 20)\n"
                                   "for i in range(0, len(b), 4096): b[i] = 1\n"
                                   "import time\n"
                                   "t = time.process_time() + 0.2\n"
                                   "while time.process_time() < t: pass\n",
                                   NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    if (r->memory_peak_bytes != UINT64_MAX)
        assert_in_range(r->memory_peak_bytes, 64 << 20, 256 << 20);
    assert_true(r->cpu_ms >= 200);
    assert_true(r->wall_ms >= 200);
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ files */

/* L3 */
static void a_million_files_meet_an_error(void **state) {
    (void)state;
    mayfly_result *r = live_python("import errno, os\n"
                                   "try:\n"
                                   "    for i in range(1000000): os.mknod(f'/tmp/{i}')\n"
                                   "except OSError as e:\n"
                                   "    print(errno.errorcode[e.errno], 16000 < i <= 16384)\n",
                                   NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "ENOSPC True\n");
    mayfly_result_free(r);
}

static void directories_and_links_count_as_files(void **state) {
    (void)state;
    mayfly_result *r =
        live_python("import errno, os\n"
                    "for n, make in enumerate([os.mkdir, lambda p: os.symlink('x', p),\n"
                    "                          os.mkfifo]):\n"
                    "    d = ['/tmp', '/dev/shm', '/home/box'][n]\n"
                    "    try:\n"
                    "        for i in range(5000): make(f'{d}/{i}')\n"
                    "    except OSError as e:\n"
                    "        print(errno.errorcode[e.errno], 90 < i <= 100)\n",
                    "tmp-inodes", "100", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "ENOSPC True\nENOSPC True\nENOSPC True\n");
    mayfly_result_free(r);
}

static void open_files_and_the_size_of_one_are_limited(void **state) {
    (void)state;
    mayfly_result *r =
        live_python("import errno, os\n"
                    "fds = []\n"
                    "try:\n"
                    "    while True: fds.append(os.open('/dev/null', os.O_RDONLY))\n"
                    "except OSError as e:\n"
                    "    print(errno.errorcode[e.errno], fds[-1])\n"
                    "os.close(fds[0])\n"
                    "try:\n"
                    "    with open('/tmp/x', 'wb', 0) as f:\n"
                    "        while True: f.write(b'x' * 4096)\n"
                    "except OSError as e:\n"
                    "    print(errno.errorcode[e.errno], os.stat('/tmp/x').st_size)\n",
                    "ulimit", "nofile=50", "ulimit", "fsize=1048576", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "EMFILE 49\nEFBIG 1048576\n");
    mayfly_result_free(r);
}

static void an_own_ulimit_may_be_higher_than_the_default_and_is_what_the_result_says(void **state) {
    (void)state;
    mayfly_result *r = live_python("import resource\n"
                                   "print(resource.getrlimit(resource.RLIMIT_NOFILE),\n"
                                   "      resource.getrlimit(resource.RLIMIT_MSGQUEUE))\n",
                                   "ulimit", "nofile=1500:2000", "ulimit", "msgqueue=7", NULL);
    uint64_t said = 0;

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "(1500, 2000) (7, 7)\n");
    for (size_t i = 0; i < r->n_limits; i++)
        if (strcmp(r->limits[i].name, "openFiles") == 0)
            said = r->limits[i].value;
    assert_int_equal(said, 1500);
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ processes */

static void *sleep_until_told(void *arg) {
    int fd = *(int *)arg;
    char c;

    (void)!read(fd, &c, 1);
    return NULL;
}

enum { HOST_THREADS = 600 };

/* L4 */
static void neither_the_users_threads_nor_a_fork_bomb_touch_another_box(void **state) {
    (void)state;
    const char *bomb = "import os, time\n"
                       "n = 0\n"
                       "try:\n"
                       "    while True:\n"
                       "        if os.fork() == 0:\n"
                       "            time.sleep(100)\n"
                       "            os._exit(0)\n"
                       "        n += 1\n"
                       "except OSError as e: print(e.errno, n, flush=True)\n"
                       "time.sleep(100)\n";
    pthread_t threads[HOST_THREADS];
    pthread_attr_t small;
    struct beside beside;
    char line[64];
    int hold[2], n = 0, error = 0, children = 0;

    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, 65536);
    while (n < HOST_THREADS && pthread_create(&threads[n], &small, sleep_until_told, &hold[0]) == 0)
        n++;
    (void)pthread_attr_destroy(&small);
    int made = n;

    beside_start(&beside, bomb, "pids-limit", "64", NULL);
    beside_line(&beside, line, sizeof(line));
    int fields = sscanf(line, "%d %d", &error, &children);
    mayfly_result *sibling = live_python("import subprocess\n"
                                         "for i in range(5): subprocess.run(['true'], check=True)\n"
                                         "print('unaffected')\n",
                                         "pids-limit", "64", NULL);
    mayfly_result *bombed = beside_end(&beside);
    (void)close(hold[1]);
    while (n > 0)
        (void)pthread_join(threads[--n], NULL);
    (void)close(hold[0]);

    assert_int_equal(made, HOST_THREADS);
    if (fields != 2 || error != EAGAIN || children < 40 || children > 63)
        fail_msg("the bomb said: %s\n%s", line, bombed->err.data);
    live_expect(sibling, MAYFLY_EXITED, 0);
    assert_string_equal(sibling->out.data, "unaffected\n");
    live_expect(bombed, MAYFLY_CANCELLED, -1);
    mayfly_result_free(sibling);
    mayfly_result_free(bombed);
}

static void threads_are_capped_too_and_the_result_says_so(void **state) {
    (void)state;
    mayfly_result *r = live_python("import threading\n"
                                   "e = threading.Event()\n"
                                   "n = 0\n"
                                   "try:\n"
                                   "    while n < 1000:\n"
                                   "        threading.Thread(target=e.wait).start()\n"
                                   "        n += 1\n"
                                   "except RuntimeError: print(20 < n < 32)\n"
                                   "e.set()\n",
                                   "pids-limit", "32", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "True\n");
    if (live_has_cgroups())
        assert_true(any_holds(r->hints, r->n_hints, "32"));
    mayfly_result_free(r);
}

static void a_bomb_of_every_child_ends_with_its_box(void **state) {
    (void)state;
    char limit[32];
    struct live_host before = live_look();
    mayfly_result *r = live_sh("b() { b | b & }; b; sleep 100", "timeout",
                               milliseconds(limit, sizeof(limit), 1000), "pids-limit", "100", NULL);

    /* it may be over before the time is: the bomb's own shell cannot fork either */
    if (r->outcome != MAYFLY_TIMED_OUT && r->outcome != MAYFLY_EXITED)
        live_expect(r, MAYFLY_TIMED_OUT, 124);
    mayfly_result_free(r);
    live_same(before);
}

/* L5 */
static void thousands_of_orphans_are_reaped(void **state) {
    (void)state;
    char script[160], limit[32];
    int n = live_times(5000) / 10;

    (void)snprintf(
        script, sizeof(script),
        "i=0; while [ $i -lt %d ]; do (: & : & : & : & : & : & : & : & : & : &) || exit 1; "
        "i=$((i+1)); done; echo $i",
        n);
    mayfly_result *r = live_sh(script, "pids-limit", "1000", "cpus", "2", "timeout",
                               milliseconds(limit, sizeof(limit), 60000), NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_int_equal(strtol(r->out.data, NULL, 10), n);
    assert_string_equal(r->err.data, "");
    assert_int_equal(r->n_hints, 0);
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ core dumps */

/* L6 */
static void a_crash_with_a_huge_mapping_is_quick_and_dumps_nothing(void **state) {
    (void)state;
    double start = live_now_ms();
    mayfly_result *r =
        live_python("import faulthandler, mmap\n"
                    "noreserve = 0x4000\n"
                    "m = mmap.mmap(-1, 1 << 36, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS\n"
                    "              | noreserve, mmap.PROT_READ)\n"
                    "print(len(m))\n"
                    "faulthandler._sigsegv()\n",
                    NULL);

    live_expect(r, MAYFLY_SIGNALED, 139);
    assert_int_equal(r->signal, SIGSEGV);
    assert_string_equal(r->out.data, "68719476736\n");
    assert_true(live_now_ms() - start < 2000 * live_slow());
    mayfly_result_free(r);
}

static void a_crash_writes_no_core_file(void **state) {
    (void)state;
    live_prints("import os, resource, signal\n"
                "print(resource.getrlimit(resource.RLIMIT_CORE))\n"
                "for d in '/tmp', '/home/box':\n"
                "    os.chdir(d)\n"
                "    pid = os.fork()\n"
                "    if pid == 0: os.kill(os.getpid(), signal.SIGSEGV)\n"
                "    status = os.waitpid(pid, 0)[1]\n"
                "    print(os.WTERMSIG(status), os.WCOREDUMP(status), os.listdir(d))\n",
                "(1, 1)\n11 False []\n11 False ['main.py']\n");
}

/* The setting is the whole host's: only where the host is this test's own. */
static void a_crash_does_not_start_the_hosts_core_dump_program(void **state) {
    (void)state;
    const char *setting = "/proc/sys/kernel/core_pattern";
    const char *mark = "/run/mayfly-core-dumped", *mine = "|/usr/bin/touch /run/mayfly-core-dumped";
    char old[256] = "";

    if (geteuid() != 0 || !live_on_uml())
        live_skip("a host of its own", "core_pattern is not changed on a machine in use");
    int fd = open(setting, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, old, sizeof(old) - 1) > 0);
    assert_int_equal(pwrite(fd, mine, strlen(mine), 0), strlen(mine));

    /* That it would be started otherwise: a crash outside a box. */
    pid_t pid = fork();
    if (pid == 0) {
        const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
        (void)setrlimit(RLIMIT_CORE, &all);
        (void)signal(SIGSEGV, SIG_DFL);
        (void)raise(SIGSEGV);
        _exit(0);
    }
    (void)waitpid(pid, NULL, 0);
    live_sleep_ms(500);
    bool started = access(mark, F_OK) == 0;
    (void)unlink(mark);

    mayfly_result *r = live_sh("kill -SEGV $$", NULL);
    live_sleep_ms(500);
    bool started_by_box = access(mark, F_OK) == 0;
    (void)unlink(mark);
    (void)!pwrite(fd, old, strlen(old), 0);
    (void)close(fd);
    if (!started)
        live_skip("a host of its own", "this kernel starts no core dump program at all");
    assert_false(started_by_box);
    live_expect(r, MAYFLY_SIGNALED, 139);
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ CPU */

/* L7 */
static void the_code_is_told_how_many_threads_are_worth_starting(void **state) {
    (void)state;
    const char *code = "import os\n"
                       "names = 'OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS'.split()\n"
                       "print({os.environ.get(n) for n in names})\n";
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    char want[32];

    live_prints(code, "{'1'}\n");
    mayfly_result *r = live_python(code, "cpus", "2", NULL);
    (void)snprintf(want, sizeof(want), "{'%ld'}\n", cpus < 2 ? cpus : 2);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, want);
    mayfly_result_free(r);
}

static void a_share_of_a_cpu_is_not_exceeded(void **state) {
    (void)state;
    live_need_cgroups();
    mayfly_result *r = live_python("import os, time\n"
                                   "end = time.monotonic() + 2\n"
                                   "for i in range(3): os.fork()\n"
                                   "while time.monotonic() < end: pass\n",
                                   "cpus", "0.3", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_true(r->cpu_ms >= 0);
    /* Without the limit it is at least the wall's; time that a host takes away from a virtual CPU is counted to the box. */
    if (r->cpu_ms > 0.5 * r->wall_ms + 150)
        fail_msg("%.0f ms of CPU in %.0f ms with 0.3 CPUs", r->cpu_ms, r->wall_ms);
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ limits that cannot be had */

/* L8 */
static void a_limit_that_cannot_be_had_is_an_error_with_its_remedy(void **state) {
    (void)state;
    if (live_has_cgroups())
        live_skip("no delegated cgroups",
                  "every limit can be had here; the tests as a user cover it");
    const char *argv[] = {"true", NULL};
    struct mayfly_error e = {0};
    mayfly_policy *policy = live_policy();
    mayfly_result *r = NULL;

    live_set(policy, "limits", "strict");
    assert_int_equal(mayfly_policy_command(policy, argv, &e), 0);
    assert_true(mayfly_run(policy, NULL, &r, &e) < 0);
    mayfly_policy_free(policy);
    assert_null(r);
    assert_int_equal(e.kind, MAYFLY_E_UNSUPPORTED);
    assert_string_equal(e.control, "memory");
    bool remedy = strstr(e.message, "as root: ") || strstr(e.message, "systemd-run");
    if (!remedy || !strstr(e.message, "memory limit") || !strstr(e.message, "--limits=best-effort"))
        fail_msg("controller, remedy or way around not named: %s", e.message);
}

static void running_without_a_limit_is_in_the_result(void **state) {
    (void)state;
    if (live_has_cgroups())
        live_skip("no delegated cgroups",
                  "every limit can be had here; the tests as a user cover it");
    mayfly_result *r = live_sh("exit 0", NULL); /* best-effort, by live_policy */

    live_expect(r, MAYFLY_EXITED, 0);
    assert_true(any_holds(r->warnings, r->n_warnings, "memory"));
    assert_true(any_holds(r->warnings, r->n_warnings, "cpu"));
    assert_true(any_holds(r->warnings, r->n_warnings, "pids"));
    const struct mayfly_limit *memory = limit_of(r, "memory");
    assert_non_null(memory);
    assert_string_equal(memory->enforced_by, "supervisor");
    assert_string_equal(limit_of(r, "memoryPerProcess")->enforced_by, "rlimit");
    assert_null(limit_of(r, "cpu"));
    mayfly_result_free(r);
}

static void best_effort_still_limits_each_process(void **state) {
    (void)state;
    if (live_has_cgroups())
        live_skip("no delegated cgroups",
                  "every limit can be had here; the tests as a user cover it");
    mayfly_result *r = live_python("try: b = bytearray(512 << 20)\n"
                                   "except MemoryError: print('MemoryError')\n",
                                   NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "MemoryError\n");
    mayfly_result_free(r);
}

static void need_no_cgroups(void) {
    if (live_has_cgroups())
        live_skip("no delegated cgroups", "every limit can be had here; as a user it is tested");
}

static void best_effort_adds_up_the_memory_of_all_processes(void **state) {
    (void)state;
    need_no_cgroups();
    mayfly_result *r = live_python("import os, time\n"
                                   "for i in range(5):\n"
                                   "    if os.fork() == 0:\n"
                                   "        b = bytearray(b'x') * (40 << 20)\n"
                                   "        time.sleep(30)\n"
                                   "time.sleep(30)\n",
                                   "memory", "100m", "timeout", "60s", NULL);

    live_expect(r, MAYFLY_OOM_KILLED, 137);
    assert_int_equal(r->oom_kills, 1);
    mayfly_result_free(r);
}

static void best_effort_sees_shared_memory_too(void **state) {
    (void)state;
    need_no_cgroups();
    mayfly_result *r = live_python("import mmap, time\n"
                                   "m = mmap.mmap(-1, 200 << 20)\n"
                                   "for i in range(160): m.write(b'x' * (1 << 20))\n"
                                   "time.sleep(30)\n",
                                   "memory", "128m", "timeout", "60s", NULL);

    live_expect(r, MAYFLY_OOM_KILLED, 137);
    mayfly_result_free(r);
}

/* What a fork shares is there once. */
static void best_effort_counts_what_processes_share_once(void **state) {
    (void)state;
    need_no_cgroups();
    mayfly_result *r = live_python("import os, time\n"
                                   "b = bytearray(b'x') * (60 << 20)\n"
                                   "for i in range(4):\n"
                                   "    if os.fork() == 0:\n"
                                   "        time.sleep(1)\n"
                                   "        os._exit(0)\n"
                                   "for i in range(4): os.wait()\n"
                                   "print('whole')\n",
                                   "memory", "150m", "timeout", "60s", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "whole\n");
    mayfly_result_free(r);
}

/* Four processes, each below RLIMIT_CPU. */
static void best_effort_adds_up_the_cpu_time_of_all_processes(void **state) {
    (void)state;
    need_no_cgroups();
    mayfly_result *r = live_python("import os\n"
                                   "for i in range(3): os.fork() or None\n"
                                   "while True: pass\n",
                                   "cpu-time", "1s", "timeout", "60s", NULL);

    live_expect(r, MAYFLY_CPU_LIMIT, 124);
    assert_string_equal(limit_of(r, "cpuTime")->enforced_by, "supervisor");
    mayfly_result_free(r);
}

/* H1, H2, H4 */
static void the_result_says_who_enforces_each_limit(void **state) {
    (void)state;
    live_need_cgroups();
    const char *names[] = {"memory", "cpu", "pids"};
    const uint64_t values[] = {96 << 20, 1500, 77};
    mayfly_result *r = live_sh("exit 0", "memory", "96m", "cpus", "1.5", "pids-limit", "77", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    for (size_t i = 0; i < 3; i++) {
        const struct mayfly_limit *limit = limit_of(r, names[i]);

        assert_non_null(limit);
        assert_int_equal(limit->value, values[i]);
        if (live_on_uml())
            assert_string_equal(limit->enforced_by, "cgroup2");
        else
            assert_true(strncmp(limit->enforced_by, "cgroup", 6) == 0);
    }
    mayfly_result_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_beyond_the_limit_does_not_go_to_swap),
        cmocka_unit_test(a_full_tmp_is_an_error_and_not_a_kill),
        cmocka_unit_test(every_place_to_write_is_limited),
        cmocka_unit_test(an_own_ulimit_may_be_higher_than_the_default_and_is_what_the_result_says),
        cmocka_unit_test(a_tmp_larger_than_the_memory_is_warned_of),
        cmocka_unit_test(files_in_tmp_count_as_memory),
        cmocka_unit_test(what_a_run_used_is_in_its_result),
        cmocka_unit_test(a_million_files_meet_an_error),
        cmocka_unit_test(directories_and_links_count_as_files),
        cmocka_unit_test(open_files_and_the_size_of_one_are_limited),
        cmocka_unit_test(neither_the_users_threads_nor_a_fork_bomb_touch_another_box),
        cmocka_unit_test(threads_are_capped_too_and_the_result_says_so),
        cmocka_unit_test(a_bomb_of_every_child_ends_with_its_box),
        cmocka_unit_test(thousands_of_orphans_are_reaped),
        cmocka_unit_test(a_crash_with_a_huge_mapping_is_quick_and_dumps_nothing),
        cmocka_unit_test(a_crash_writes_no_core_file),
        cmocka_unit_test(a_crash_does_not_start_the_hosts_core_dump_program),
        cmocka_unit_test(the_code_is_told_how_many_threads_are_worth_starting),
        cmocka_unit_test(a_share_of_a_cpu_is_not_exceeded),
        cmocka_unit_test(a_limit_that_cannot_be_had_is_an_error_with_its_remedy),
        cmocka_unit_test(running_without_a_limit_is_in_the_result),
        cmocka_unit_test(best_effort_still_limits_each_process),
        cmocka_unit_test(best_effort_adds_up_the_memory_of_all_processes),
        cmocka_unit_test(best_effort_sees_shared_memory_too),
        cmocka_unit_test(best_effort_counts_what_processes_share_once),
        cmocka_unit_test(best_effort_adds_up_the_cpu_time_of_all_processes),
        cmocka_unit_test(the_result_says_who_enforces_each_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
