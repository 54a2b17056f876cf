/*
 * test_protocol.c: every state × sender × message of the box's protocol, and how a message travels.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/protocol.h"

#include "base/banned.h"

/* The whole of what is legal, written down a second time and by hand: "state sender message -> state". */
static const char *const expected[] = {
    "cloned supervisor MAPPED building",
    "cloned init FAILED failed",
    "cloned init EOF failed",
    "building init CODE_FILE building",
    "building init TREE building",
    "building payload LISTENER building",
    "building payload READY parked",
    "building init FAILED failed",
    "building payload FAILED failed",
    "building init EXIT failed",
    "building init EOF failed",
    "building payload EOF failed",
    "building supervisor GO rushed",
    "rushed init TREE rushed",
    "rushed payload LISTENER rushed",
    "rushed payload READY going",
    "rushed init FAILED failed",
    "rushed payload FAILED failed",
    "rushed init EXIT failed",
    "rushed init EOF failed",
    "rushed payload EOF failed",
    "parked supervisor GO going",
    "parked init EXIT failed",
    "parked init EOF failed",
    "parked payload EOF failed",
    "going payload EXEC_FAILED refused",
    "going payload EOF running",
    "going init EXIT ended",
    "going init EOF ended",
    "refused payload EOF refused",
    "refused init EXIT refused",
    "refused init EOF refused",
    "running init EXIT ended",
    "running init EOF ended",
    "ended init EOF ended",
    "ended payload EOF ended",
    "failed init EXIT failed",
    "failed init EOF failed",
    "failed payload EOF failed",
};

static void every_combination_is_legal_or_refused_as_written(void **unused) {
    static const char *const senders[SENDER__N] = {"supervisor", "init", "payload"};
    size_t legal = 0;

    (void)unused;
    for (int state = 0; state < BOX__N; state++)
        for (int sender = 0; sender < SENDER__N; sender++)
            for (int kind = 0; kind < MSG__N; kind++) {
                char row[96] = "";
                enum box_state next = BOX__N;
                bool found = false;

                if (!protocol_next((enum box_state)state, (enum sender)sender, (enum msg_kind)kind,
                                   &next)) {
                    assert_int_equal(next, BOX__N); /* untouched when refused */
                    continue;
                }
                (void)snprintf(row, sizeof(row), "%s %s %s %s",
                               box_state_name((enum box_state)state), senders[sender],
                               msg_name((enum msg_kind)kind), box_state_name(next));
                for (size_t i = 0; i < ARRAY_LEN(expected); i++)
                    found |= strcmp(expected[i], row) == 0;
                if (!found)
                    fail_msg("legal but not expected: %s", row);
                legal++;
            }
    assert_int_equal(legal, ARRAY_LEN(expected));
}

static void nothing_but_the_supervisor_starts_the_payload(void **unused) {
    enum box_state next;

    (void)unused;
    for (int state = 0; state < BOX__N; state++)
        for (int sender = FROM_INIT; sender < SENDER__N; sender++)
            assert_false(protocol_next((enum box_state)state, (enum sender)sender, MSG_GO, &next));
}

static void a_message_arrives_whole_and_with_its_descriptor(void **unused) {
    int pair[2], got = -1;
    struct msg sent = {.kind = MSG_CODE_FILE, .row = 7, .code = -EPERM, .bits = 1u << 13}, back;
    struct stat a, b;

    (void)unused;
    (void)str_copy(sent.step, sizeof(sent.step), "mount_setattr");
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(null >= 0);
    assert_int_equal(msg_send(pair[0], &sent, null), 0);
    assert_int_equal(msg_recv(pair[1], &back, &got), 1);
    assert_memory_equal(&sent, &back, sizeof(sent));
    assert_int_equal(fstat(null, &a), 0);
    assert_int_equal(fstat(got, &b), 0);
    assert_int_equal(a.st_rdev, b.st_rdev);
    assert_true(fcntl(got, F_GETFD) & FD_CLOEXEC);
    fd_close(&got);
    assert_int_equal(msg_send(pair[0], &sent, -1), 0);
    assert_int_equal(msg_recv(pair[1], &back, &got), 1);
    assert_int_equal(got, -1);
    (void)close(null);
    (void)close(pair[0]);
    assert_int_equal(msg_recv(pair[1], &back, &got), 0); /* end of file */
    (void)close(pair[1]);
}

static void a_message_of_another_size_or_kind_is_refused(void **unused) {
    int pair[2], got = -1;
    struct msg m = {.kind = MSG_EOF}, back;

    (void)unused;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(write(pair[0], "short", 5), 5);
    assert_int_equal(msg_recv(pair[1], &back, &got), -EPROTO);
    assert_int_equal(msg_send(pair[0], &m, -1), 0);
    assert_int_equal(msg_recv(pair[1], &back, &got), -EPROTO);
    m.kind = 4000000000u;
    assert_int_equal(msg_send(pair[0], &m, -1), 0);
    assert_int_equal(msg_recv(pair[1], &back, &got), -EPROTO);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

/* With `n` descriptors and `len` bytes of a message that is as it must be. */
static void send_raw(int sock, size_t len, size_t n) {
    static const struct msg m = {.kind = MSG_CODE_FILE};
    char bytes[256] = {0};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))] = {0};
    struct iovec iov = {bytes, len};
    struct msghdr header = {.msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = CMSG_SPACE(n * sizeof(int))};
    struct cmsghdr *c = CMSG_FIRSTHDR(&header);

    memcpy(bytes, &m, sizeof(m));
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(n * sizeof(int)); /* of fd 0, as often */
    assert_int_equal(sendmsg(sock, &header, 0), len);
}

/* The lowest free one: the same before and after where none was left. */
static int lowest_free(void) {
    int fd = dup(0);

    assert_true(fd >= 0);
    (void)close(fd);
    return fd;
}

static void no_descriptor_that_came_along_is_left_behind(void **unused) {
    static const struct {
        size_t len, n;
        int result;
    } cases[] = {
        {sizeof(struct msg), 2, 1},       {0, 1, 0},         {0, 2, 0}, {5, 1, -EPROTO},
        {sizeof(struct msg), 3, -EPROTO}, {200, 1, -EPROTO},
    };
    int pair[2];

    (void)unused;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    int before = lowest_free();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct msg back;
        int got = -1;

        send_raw(pair[0], cases[i].len, cases[i].n);
        assert_int_equal(msg_recv(pair[1], &back, &got), cases[i].result);
        assert_int_equal(got >= 0, cases[i].result == 1);
        fd_close(&got);
        assert_int_equal(lowest_free(), before);
    }
    (void)close(pair[0]);
    (void)close(pair[1]);
}

static void a_failure_without_an_errno_is_no_message(void **unused) {
    static const enum msg_kind kinds[] = {MSG_FAILED, MSG_EXEC_FAILED};
    int pair[2], got = -1;
    struct msg back;

    (void)unused;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        for (int code = -1; code <= 1; code++) {
            const struct msg m = {.kind = kinds[i], .code = code};
            assert_int_equal(msg_send(pair[0], &m, -1), 0);
            assert_int_equal(msg_recv(pair[1], &back, &got), code < 0 ? 1 : -EPROTO);
        }
    (void)close(pair[0]);
    (void)close(pair[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_combination_is_legal_or_refused_as_written),
        cmocka_unit_test(nothing_but_the_supervisor_starts_the_payload),
        cmocka_unit_test(a_message_arrives_whole_and_with_its_descriptor),
        cmocka_unit_test(a_message_of_another_size_or_kind_is_refused),
        cmocka_unit_test(no_descriptor_that_came_along_is_left_behind),
        cmocka_unit_test(a_failure_without_an_errno_is_no_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
