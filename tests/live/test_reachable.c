/*
 * test_reachable.c: what gets through to the kernel in a real box, found by trying.
 *
 * Python in the box makes every call from 0 to 600, each in a process of its own, with arguments
 * that fit nothing: one that gets past the filter then fails in the kernel, ends the process or
 * waits until an alarm does. It tries socket families and types, and the requests of those calls
 * that pass by what they ask for. What got through must be what src/control/seccomp_default.json
 * declares, and the listing tests/golden/reachable.txt, so that every change shows in a diff.
 * MAYFLY_UPDATE_GOLDEN=1 writes it anew. Run from the top of the source.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "control/seccomp_compile.h"
#include "live.h"

#include <seccomp.h>

#include "base/banned.h"

#define PROFILE "src/control/seccomp_default.json"
#define LISTING "tests/golden/reachable.txt"

enum { LAST = 600, AIM = 160 };

static char *name_of(int nr) { return seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr); }

static struct profile read_profile(void) {
    struct profile profile = {0};
    struct err err = {0};
    char *text = NULL;
    size_t len = 0;

    if (file_read_all_at(AT_FDCWD, PROFILE, 4 << 20, &text, &len) < 0)
        fail_msg("cannot read %s; run from the top of the source", PROFILE);
    if (profile_from_json(text, len, seccomp_arch(), ~0u, &profile, &err) < 0)
        fail_msg("%s: %s", PROFILE, err.message);
    free(text);
    return profile;
}

static bool rule_names(const struct profile_rule *rule, const char *name) {
    for (const char *const *n = rule->names; *n; n++)
        if (strcmp(*n, name) == 0)
            return true;
    return false;
}

static bool declared(const struct profile *p, const char *name) {
    for (int i = 0; name && i < p->n_rules; i++)
        if (p->rules[i].action == PROFILE_ALLOW && rule_names(&p->rules[i], name))
            return true;
    return false;
}

/* ------------------------------------------------------------------ every number */

/* `nr: (answers of a refusal, arguments to try)`. An argument that no rule looks at fits nothing. */
static void describe_call(const struct profile *p, int nr, const char *name, struct buf *code) {
    buf_printf(code, " %d: ({%d", nr, p->default_error);
    for (int i = 0; name && i < p->n_rules; i++)
        if (p->rules[i].action == PROFILE_ERRNO && rule_names(&p->rules[i], name))
            buf_printf(code, ", %d", p->rules[i].error);
    buf_printf(code, "}, [");
    for (int i = 0; name && i < p->n_rules; i++) {
        const struct profile_rule *rule = &p->rules[i];
        uint64_t args[6];
        if (rule->action != PROFILE_ALLOW || rule->n_args == 0 || !rule_names(rule, name))
            continue;
        memset(args, 0xff, sizeof(args));
        for (int k = 0; k < rule->n_args; k++)
            args[rule->args[k].index] = rule->args[k].op == PROFILE_MASKED_EQ
                                            ? rule->args[k].value_two
                                            : rule->args[k].value;
        buf_printf(code, "(");
        for (int k = 0; k < 6; k++)
            buf_printf(code, "%lld, ", (long long)args[k]);
        buf_printf(code, "), ");
    }
    buf_printf(code, "]),\n");
}

/* A child makes one call after the other and reports each; where one ends it, or waits until the
 * alarm does, the next child goes on behind it. uretprobe and uprobe (335, 336) are kept from every
 * filter since 6.14 and 6.18, and fault. */
static const char sweep_code[] =
    "import ctypes, os, resource, signal\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    "def child(todo, w):\n"
    "    os.setpgid(0, 0)\n"
    "    me = os.getpid()\n"
    "    os.dup2(w, 500)\n"
    "    for fd in range(3): os.close(fd)\n"
    "    for nr, args, refusals in todo:\n"
    "        signal.setitimer(signal.ITIMER_REAL, 0.5 * SLOW)\n"
    "        wide = [ctypes.c_long(a) for a in args]\n"
    "        n = ctypes.get_errno() if libc.syscall(ctypes.c_long(nr), *wide) == -1 else 0\n"
    "        if os.getpid() != me: os._exit(0)\n"
    "        os.write(500, b'%d ' % n)\n"
    "def results(todo):\n"
    "    'the error that each gives; None where it gave none'\n"
    "    r, w = os.pipe()\n"
    "    pid = os.fork()\n"
    "    if pid == 0:\n"
    "        try: child(todo, w)\n"
    "        finally: os._exit(0)\n"
    "    os.close(w)\n"
    "    os.waitpid(pid, 0)\n"
    "    try: os.killpg(pid, signal.SIGKILL)\n"
    "    except OSError: pass\n"
    "    with open(r) as f: said = [int(n) for n in f.read().split()]\n"
    "    return said + [None] * (len(said) < len(todo))\n"
    "todo = [(nr, args, refusals) for nr, (refusals, tries) in CALLS.items()\n"
    "        if not (X86 and nr in (335, 336))\n"
    "        for args in [(-1,) * 6, (0,) * 6, (1,) * 6] + tries]\n"
    "got = set()\n"
    "while todo:\n"
    "    part = todo[:200] # what they report fits a pipe\n"
    "    errors = results(part)\n"
    "    got |= {nr for (nr, _, refusals), e in zip(part, errors) if e not in refusals}\n"
    "    todo = [t for t in todo[len(errors):] if t[0] not in got]\n"
    "print(*sorted(got), sep='\\n')\n";

static void through(const char *out, bool got[LAST + 1]) {
    const char *p = out;
    char *end;

    for (;;) {
        long nr = strtol(p, &end, 10);
        if (end == p)
            break;
        assert_true(nr >= 0 && nr <= LAST);
        got[nr] = true;
        p = end;
    }
    assert_string_equal(p, "\n");
}

static mayfly_result *run_code(const struct buf *code) {
    char timeout[16];

    (void)snprintf(timeout, sizeof(timeout), "%d", (int)(120 * live_slow()));
    mayfly_result *r = live_python(code->data, "timeout", timeout, NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->err.data, "");
    return r;
}

static void compare_with(const char *section, const char *found);

static void every_call_that_gets_through_is_declared_and_each_declared_one_does(void **state) {
    struct profile p = read_profile();
    struct buf code = {0}, list = {0};
    bool got[LAST + 1] = {false};
    int n = 0, wrong = 0;

    (void)state;
    buf_printf(&code, "SLOW = %f\nX86 = %s\nCALLS = {\n", live_slow(),
               strcmp(seccomp_arch(), "amd64") == 0 ? "True" : "False");
    for (int nr = 0; nr <= LAST; nr++) {
        char *name = name_of(nr);
        describe_call(&p, nr, name, &code);
        free(name);
    }
    buf_printf(&code, "}\n%s", sweep_code);
    mayfly_result *r = run_code(&code);
    through(r->out.data, got);
    for (int nr = 0; nr <= LAST; nr++) {
        char *name = name_of(nr);
        if (got[nr])
            buf_printf(&list, "%s\n", name ? name : "?");
        n += got[nr];
        if (got[nr] != declared(&p, name)) {
            print_message("call %d, %s: %s\n", nr, name ? name : "?",
                          got[nr] ? "gets through and is not declared"
                                  : "is declared and does not get through");
            wrong++;
        }
        free(name);
    }
    assert_int_equal(wrong, 0);
    assert_in_range(n, 100, AIM);
    compare_with("calls", list.data);
    mayfly_result_free(r);
    arena_done(&p.arena);
    buf_done(&code);
    buf_done(&list);
}

/* ------------------------------------------------------------------ what calls are asked for */

/* With descriptor -1 a request that gets through is EBADF; those without one run in a child. */
static const char requests_code[] =
    "import ctypes, os, signal\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "def call(nr, *args):\n"
    "    wide = [ctypes.c_long(a) for a in args]\n"
    "    r = libc.syscall(ctypes.c_long(nr), *wide)\n"
    "    return ctypes.get_errno() if r == -1 else (0, r)\n"
    "EPERM, ENOSYS, EINVAL = 1, 38, 22\n"
    "def inside(function):\n"
    "    pid = os.fork()\n"
    "    if pid == 0:\n"
    "        n = 1\n"
    "        try: n = 0 if function() in (EPERM, ENOSYS) else 2\n"
    "        finally: os._exit(n)\n"
    "    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0\n"
    "for family in range(46):\n"
    "    types = []\n"
    "    for kind in range(16):\n"
    "        for flags in 0, 0o2000000, 0o4000, 0o2004000:\n"
    "            for high in 0, 1 << 32:\n"
    "                e = call(SOCKET, family | high, kind | flags | high, 0)\n"
    "                if isinstance(e, tuple): os.close(e[1])\n"
    "                if e not in (EPERM, ENOSYS) and kind not in types: types.append(kind)\n"
    "    if types: print('socket family', family, 'types', *types)\n"
    "    for kind in types:\n"
    "        made = {}\n"
    "        for protocol in range(300): made[protocol] = call(SOCKET, family, kind, protocol)\n"
    "        made = {p: e for p, e in made.items() if isinstance(e, tuple)}\n"
    "        for _, fd in made.values(): os.close(fd)\n"
    "        print('socket family', family, 'type', kind, 'protocols', *made)\n"
    "    e = call(SOCKETPAIR, family, 1, 0, 0)\n"
    "    if e not in (EPERM, ENOSYS): print('socketpair family', family)\n"
    "high = (0, 1 << 32, 1 << 63)\n"
    "def listed(numbers, attempt):\n"
    "    return ' '.join('%#x' % n for n in numbers if any(attempt(n | h) for h in high))\n"
    "requests = [*range(0x1000), *range(0x5400, 0x5500), *range(0x8900, 0x8a00), 0x80045430,\n"
    "            *(d << 30 | s << 16 | t << 8 | n for d in range(4) for s in (0, 4, 8, 44)\n"
    "              for t in (0x12, 0x54, 0x66, 0x94, 0xae, 0xb7, 0xff) for n in range(64))]\n"
    "print('ioctl', listed(dict.fromkeys(requests), lambda n: call(IOCTL, -1, n, 0) not in (EPERM, "
    "ENOSYS)))\n"
    "print('fcntl', listed(range(2048), lambda n: call(FCNTL, -1, n, 0) not in (EPERM, ENOSYS)))\n"
    "for level in range(300):\n"
    "    options = listed(range(256), lambda n: call(SETSOCKOPT, -1, level, n, 0, 0) not in "
    "(EPERM, ENOSYS))\n"
    "    if options: print('setsockopt level', level, 'options', options)\n"
    "print('prctl', listed([*range(100), 0x53564d41, 0x59616d61],\n"
    "      lambda n: inside(lambda: call(PRCTL, n, -1, -1, -1, -1))))\n"
    "# of no length: 0 where the advice is known. Those from 102 on are young; see test_seccomp\n"
    "print('madvise', listed(range(102), lambda n: call(MADVISE, 0, 0, n) == (0, 0)))\n"
    "print('personality', listed([0, 8, 0xffffffff, *(1 << b for b in range(32))],\n"
    "      lambda n: inside(lambda: call(PERSONALITY, n))))\n"
    "print('clone', listed([1 << b for b in range(8, 32)],\n"
    "      lambda n: inside(lambda: call(CLONE, n | 17, -1, -1, -1, -1))))\n"
    "print('chmod', ' '.join('%o' % m for m in range(0, 0o10000, 0o111) \n"
    "      if call(FCHMODAT, -1, -1, m) not in (EPERM, ENOSYS)))\n"
    "print('mknod', ' '.join('%o' % (m << 12) for m in range(16)\n"
    "      if call(MKNODAT, -1, -1, m << 12 | 0o600, 0) not in (EPERM, ENOSYS)))\n"
    "print('renameat2', listed(range(32), lambda n: call(RENAMEAT2, -1, -1, -1, -1, n) not in "
    "(EPERM, ENOSYS)))\n";

static void sockets_and_requests_that_get_through_are_the_listed_ones(void **state) {
    static const char *const names[] = {"socket",     "socketpair", "ioctl",   "fcntl",
                                        "setsockopt", "prctl",      "madvise", "personality",
                                        "clone",      "fchmodat",   "mknodat", "renameat2"};
    struct buf code = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        for (const char *c = names[i]; *c; c++)
            buf_printf(&code, "%c", *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
        buf_printf(&code, " = %d\n", seccomp_syscall_resolve_name(names[i]));
    }
    buf_printf(&code, "%s", requests_code);
    mayfly_result *r = run_code(&code);
    compare_with("requests", r->out.data);
    mayfly_result_free(r);
    buf_done(&code);
}

/* ------------------------------------------------------------------ x32 */

static void an_x32_call_ends_the_run_whatever_its_number(void **state) {
    (void)state;
#if defined(__x86_64__)
    static const int numbers[] = {0, 39, 41, 59, 101, 512, 547, 600};

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        char code[128];
        (void)snprintf(
            code, sizeof(code),
            "import ctypes\nctypes.CDLL(None).syscall(%d, -1, -1, -1, -1)\nprint('on')\n",
            numbers[i] | 0x40000000);
        mayfly_result *r = live_python(code, NULL);
        assert_int_equal(r->outcome, MAYFLY_SIGNALED);
        assert_string_equal(r->out.data, "");
        mayfly_result_free(r);
    }
#else
    print_message("SKIPPED: only x86-64 has x32\n");
    skip();
#endif
}

/* ------------------------------------------------------------------ the listing */

#if defined(__x86_64__)
/* The listing's sections start with "# NAME". */
static char *section_of(const char *text, const char *section, size_t *ret_len) {
    char head[64];

    (void)snprintf(head, sizeof(head), "# %s\n", section);
    char *at = strstr(text, head);
    if (!at)
        return NULL;
    at += strlen(head);
    char *end = strstr(at, "# ");
    *ret_len = end ? (size_t)(end - at) : strlen(at);
    return at;
}

static void write_section(const char *text, const char *section, const char *found) {
    size_t len = 0;
    char *at = section_of(text, section, &len);
    FILE *f = fopen(LISTING, "we");

    assert_non_null(f);
    if (at)
        (void)fprintf(f, "%.*s%s%s", (int)(at - text), text, found, at + len);
    else
        (void)fprintf(f, "%s# %s\n%s", text, section, found);
    assert_int_equal(fclose(f), 0);
}

/* Up to what this kernel has: an older one knows fewer requests, and none of them more. */
static void compare_with(const char *section, const char *found) {
    char *text = NULL;
    size_t len = 0;

    if (file_read_all_at(AT_FDCWD, LISTING, 1 << 20, &text, NULL) < 0)
        assert_non_null(text = strdup(""));
    if (getenv("MAYFLY_UPDATE_GOLDEN")) {
        write_section(text, section, found);
    } else {
        const char *want = section_of(text, section, &len);
        if (!want || strlen(found) != len || strncmp(want, found, len) != 0)
            fail_msg("what gets through differs from %s; found, as # %s:\n%s", LISTING, section,
                     found);
    }
    free(text);
}
#else
static void compare_with(const char *section, const char *found) {
    print_message("the listing is of x86-64; here are its %s:\n%s", section, found);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_that_gets_through_is_declared_and_each_declared_one_does),
        cmocka_unit_test(sockets_and_requests_that_get_through_are_the_listed_ones),
        cmocka_unit_test(an_x32_call_ends_the_run_whatever_its_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
