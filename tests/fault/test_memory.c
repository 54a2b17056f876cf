/*
 * test_memory.c: memory may run out at any allocation of the library's, in any call of its interface:
 * the error is said, nothing is lost, and the next call works.
 *
 * This program's own malloc and mmap stand before libc's; the k-th call fails, for every k. And its
 * clock_gettime stands before libc's, to see that the time of day is nobody's business.
 */
#include "live/live.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "json/result_json.h"
#include "linux/host.h"

#include "base/banned.h"

void *__libc_malloc(size_t size);           // NOLINT
void *__libc_calloc(size_t n, size_t size); // NOLINT
void *__libc_realloc(void *p, size_t size); // NOLINT
void __libc_free(void *p);                  // NOLINT

/* Hidden, as all else is by default, they would not stand before what libc and jansson call. */
#define EXPORTED __attribute__((visibility("default")))

/* volatile: the compiler believes that malloc and free touch nothing of ours. */
static volatile struct {
    bool armed;
    unsigned at, seen;
    long live;    /* blocks that are held */
    unsigned day; /* questions for the time of day */
} alloc;

static bool fails(void) { return alloc.armed && ++alloc.seen == alloc.at; }

EXPORTED void *malloc(size_t size) {
    void *p = fails() ? NULL : __libc_malloc(size);

    alloc.live += p != NULL;
    if (!p)
        errno = ENOMEM;
    return p;
}

EXPORTED void *calloc(size_t n, size_t size) {
    void *p = fails() ? NULL : __libc_calloc(n, size);

    alloc.live += p != NULL;
    if (!p)
        errno = ENOMEM;
    return p;
}

EXPORTED void *realloc(void *old, size_t size) {
    void *p = fails() ? NULL : __libc_realloc(old, size);

    alloc.live += p && !old;
    if (!p)
        errno = ENOMEM;
    return p;
}

EXPORTED void free(void *p) {
    alloc.live -= p != NULL;
    __libc_free(p);
}

EXPORTED void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset) {
    if (fails()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

/* A year forth and a year back, at every look. */
EXPORTED int clock_gettime(clockid_t clock, struct timespec *ret) {
    long r = syscall(SYS_clock_gettime, clock, ret);

    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
        ret->tv_sec += alloc.day % 2 ? 31536000 : -31536000;
        alloc.day++;
    }
    return (int)r;
}

/* ------------------------------------------------------------------ all of the interface */

static const char policy_text[] =
    "{\"memory\": \"64m\", \"env\": {\"A\": \"1\"}, \"timeout\": \"9s\", \"attest\": true}";

static int one_policy(mayfly_policy **ret, struct mayfly_error *e) {
    const char *args[] = {"one", "two", NULL};
    /* More than a pipe holds, so that the buffer grows. */
    const char *argv[] = {"sh", "-c", "printf %0100001d 0; exit 3", NULL};
    mayfly_policy *p = mayfly_policy_new();

    if (!p) {
        *e = (struct mayfly_error){.code = -ENOMEM, .message = "no policy"};
        return -ENOMEM;
    }
    *ret = p;
    int r = mayfly_policy_set(p, "rootfs", getenv("MAYFLY_ROOTFS"), e);
    if (r == 0 && !live_has_cgroups())
        r = mayfly_policy_set(p, "limits", "best-effort", e);
    r = r ? r : mayfly_policy_json(p, policy_text, strlen(policy_text), e);
    r = r ? r : mayfly_policy_python(p, args, e);
    return r ? r : mayfly_policy_command(p, argv, e);
}

/* 0, or the first error. */
static int everything(struct mayfly_error *e) {
    struct mayfly_input input = {.stdin_data = "in", .stdin_len = 2};
    struct mayfly_gc_report report;
    mayfly_policy *policy = NULL;
    mayfly_box *box = NULL;
    mayfly_result *result = NULL;
    char *json = NULL;
    int r = one_policy(&policy, e);

    r = r ? r : mayfly_open(policy, &box, e);
    r = r ? r : mayfly_start(box, &input, e);
    r = r ? r : mayfly_wait(box, &result, e);
    if (r == 0) {
        json = result_to_json(result);
        if (!json)
            *e = (struct mayfly_error){.code = r = -ENOMEM, .message = "no JSON"};
        /* Memory that runs out while output comes costs output, and the result says so. */
        else if (result->exit_code != 3 || (result->out.len != 100001 && !result->out.truncated) ||
                 result->out.total != 100001)
            *e = (struct mayfly_error){.code = r = -EBADMSG, .message = "a wrong result"};
    }
    free(json);
    mayfly_result_free(result);
    mayfly_close(box);
    char *text = NULL;
    r = r ? r : mayfly_plan_text(policy, &text, e);
    free(text);
    r = r ? r : mayfly_gc(0, &report, e);
    mayfly_policy_free(policy);
    return r;
}

static void any_allocation_may_fail(void **state) {
    struct mayfly_error e = {0};
    unsigned failed = 0, wrong = 0;

    (void)state;
    if (everything(&e) < 0)
        fail_msg("%s", e.message);
    struct live_host before = live_look();
    for (alloc.at = 1;; alloc.at++) {
        long held = alloc.live;
        e = (struct mayfly_error){0};
        alloc.seen = 0;
        alloc.armed = true;
        int r = everything(&e);
        alloc.armed = false;
        if (alloc.seen < alloc.at)
            break;
        failed += r < 0;
        if ((r < 0) != (e.code < 0) || (r < 0 && (!e.message[0] || e.code != -ENOMEM)) ||
            alloc.live != held) {
            wrong++;
            print_message("allocation %u: %d, %d %s, %ld blocks lost\n", alloc.at, r, e.code,
                          e.message, alloc.live - held);
        }
    }
    print_message("%u allocations, %u of them needed\n", alloc.at - 1, failed);
    if (wrong || failed < 20)
        fail_msg("%u of %u allocations were not answered rightly", wrong, alloc.at - 1);
    live_same(before);
}

/* The facts of the host are read once a process: so here, each time in a new one. */
static void memory_may_run_out_while_the_host_is_looked_at(void **state) {
    unsigned n = 0;

    (void)state;
    for (unsigned at = 1; at < 100; at++) {
        pid_t pid = fork(); /* a child has no facts */
        assert_true(pid >= 0);
        if (pid == 0) {
            alloc.at = at;
            alloc.seen = 0;
            alloc.armed = true;
            const struct host *first = host_facts();
            bool hit = alloc.seen >= at;
            alloc.armed = false;
            _exit(!hit ? 2 : first ? 1 : host_facts() ? 0 : 3);
        }
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WEXITSTATUS(status) == 2)
            break;
        n++;
        if (status != 0)
            fail_msg("allocation %u failed, and %s", at,
                     WEXITSTATUS(status) == 1 ? "the facts were believed" : "the next look, too");
    }
    assert_true(n > 0);
}

static void the_time_of_day_is_never_asked_for(void **state) {
    (void)state;
    alloc.day = 0;
    mayfly_result *r = live_sh("sleep 60", "timeout", "300ms", NULL);
    live_expect(r, MAYFLY_TIMED_OUT, 124);
    if (r->wall_ms < 300 || r->wall_ms > 300 + 2000 * live_slow())
        fail_msg("timed out after %.1f ms", r->wall_ms);
    mayfly_result_free(r);
    assert_int_equal(alloc.day, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(memory_may_run_out_while_the_host_is_looked_at),
        cmocka_unit_test(the_time_of_day_is_never_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
