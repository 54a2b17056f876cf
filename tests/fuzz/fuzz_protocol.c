/*
 * fuzz_protocol.c: a supervisor whose box sends what it likes: packets of any length and content
 * with any descriptors, from either process, in any state. An answer is one of the states; what
 * fails has an error; and no descriptor stays behind that nobody has.
 *
 * A packet is: who sends it and how many descriptors are with it (a byte, see below), the length (a
 * byte), the bytes.
 */
#include "fuzz/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/box.h"

#include "base/banned.h"

enum {
    HOW_PAYLOAD = 1, /* from the payload's process, else from init */
    HOW_FDS = 6,     /* 0 to 3 descriptors, times two */
    HOW_CLOSE = 8,   /* the sender's end is closed instead */
    HOW_TRIM = 16,   /* the packet is of the right length, whatever the length says */
    HOW_GO = 32,     /* before it, the supervisor says what is its to say now */
};

struct peers {
    int init, payload; /* their ends */
};

static struct op rows[] = {
    {.stage = STAGE_INSIDE, .kind = OP_MKDIR, .control = CTL_MOUNT, .path = "tmp", .a = 0755},
    {.stage = STAGE_SEAL, .kind = OP_SESSION, .control = CTL_SESSION, .remedy = "do without"},
};
static const char *const argv[] = {"true", NULL};

static struct box open_box(const struct plan *plan, struct peers *ret) {
    struct box box = {.plan = plan, .state = BOX_CLONED};
    int pair[2][2];

    box.pidfd = box.report = box.go = box.in = box.out = box.err = -1;
    box.code = box.listener = box.cancel = -1;
    op_ctx_init(&box.ctx, plan->host);
    for (int i = 0; i < 2; i++)
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair[i]) < 0)
            abort();
    box.report = pair[0][0];
    ret->init = pair[0][1];
    box.go = pair[1][0];
    ret->payload = pair[1][1];
    return box;
}

static void send_packet(int sock, const uint8_t *bytes, size_t len, int n_fds) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))] = {0};
    const int fds[3] = {0, 0, 0};
    struct iovec iov = {(void *)(uintptr_t)bytes, len};
    struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};

    if (n_fds) {
        header.msg_control = control;
        header.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, (size_t)n_fds * sizeof(int));
    }
    (void)sendmsg(sock, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* MAPPED, or GO: then the state is what box.c makes of it. */
static void supervisor_speaks(struct box *box) {
    if (!protocol_next(box->state, FROM_SUPERVISOR, MSG_MAPPED, &box->state))
        (void)protocol_next(box->state, FROM_SUPERVISOR, MSG_GO, &box->state);
}

static void must_be_sound(const struct box *box, enum box_state before, int r) {
    fuzz_must(box->state >= BOX_CLONED && box->state < BOX__N, "state %d", (int)box->state);
    fuzz_must(r <= 1, "%d", r);
    fuzz_must(r >= 0 || box->state == BOX_FAILED, "%d, and the box is %s", r,
              box_state_name(box->state));
    if (box->state == BOX_FAILED || box->state == BOX_REFUSED)
        fuzz_refusal(&box->failure, box->failure.code, "");
    fuzz_must(before != BOX_FAILED || box->state == BOX_FAILED, "it came back as %s",
              box_state_name(box->state));
    fuzz_must(box->state != BOX_PARKED || before == BOX_BUILDING || before == BOX_PARKED,
              "parked after %s", box_state_name(before));
}

static void one_packet(struct fuzz_input *in, struct box *box, struct peers *peers) {
    uint8_t how = fuzz_byte(in), wanted = fuzz_byte(in);
    bool payload = how & HOW_PAYLOAD;
    int *peer = payload ? &peers->payload : &peers->init;
    const int *ours = payload ? &box->go : &box->report;
    size_t len = MIN(how & HOW_TRIM ? sizeof(struct msg) : wanted, in->left);
    uint8_t bytes[256] = {0};

    if (len)
        memcpy(bytes, in->at, len);
    in->at += len;
    in->left -= len;
    if (how & HOW_GO)
        supervisor_speaks(box);
    if (*ours < 0) /* we have seen its end already */
        return;
    if (how & HOW_CLOSE)
        fd_close(peer);
    else
        send_packet(*peer, bytes, how & HOW_TRIM ? sizeof(struct msg) : len, (how & HOW_FDS) / 2);
    enum box_state before = box->state;
    must_be_sound(box, before, box_receive(box, payload ? FROM_PAYLOAD : FROM_INIT));
}

static int count_fds(void) {
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    if (!dir)
        abort();
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    struct host host = {.cg.where = {-1, -1, -1, -1}};
    static const struct policy policy;
    struct plan plan = {
        .ops = rows, .n_ops = ARRAY_LEN(rows), .host = &host, .argv = argv, .policy = &policy};
    struct peers peers;
    int before = count_fds();
    struct box box = open_box(&plan, &peers);

    for (int i = 0; i < 32 && in.left; i++)
        one_packet(&in, &box, &peers);
    fd_close(&peers.init);
    fd_close(&peers.payload);
    fd_close(&box.report);
    fd_close(&box.go);
    fd_close(&box.code);
    fd_close(&box.listener);
    int left = count_fds() - before;
    fuzz_must(left == 0, "%d descriptors are left", left);
    return 0;
}
