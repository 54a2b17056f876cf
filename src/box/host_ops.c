/*
 * host_ops.c: the supervisor's rows: cgroups, the lease of host ids, id maps, and
 * the trees that only a privileged mayfly can map.
 */
#include "box/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "linux/sys.h"

#include "base/banned.h"

void op_ctx_init(struct op_ctx *ctx, const struct host *host) {
    *ctx = (struct op_ctx){.host = host,
                           .step = "",
                           .oom_event = -1,
                           .lease_fd = -1,
                           .init = -1,
                           .userns_fd = -1,
                           .pipe = {-1, -1, -1},
                           .report = -1,
                           .go = -1,
                           .listener = -1,
                           .outside = -1,
                           .outside_socket = -1,
                           .status = -1};
    for (size_t i = 0; i < ARRAY_LEN(ctx->slot); i++)
        ctx->slot[i] = -1;
    for (size_t i = 0; i < ARRAY_LEN(ctx->cgroup); i++)
        ctx->cgroup[i] = (struct op_cgroup){.parent = -1, .dir = -1};
}

static int open_parent(const struct op *op, struct op_ctx *ctx) {
    struct op_cgroup *cg = &ctx->cgroup[op->slot];

    if (cg->parent >= 0)
        return 0;
    cg->parent = open(op->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cg->parent < 0) {
        ctx->step = "open";
        return -errno;
    }
    return 0;
}

/* Out of the way of the no-internal-processes rule, into a leaf that carries our name, so that it is collected after us.
 * Slow (a grace period), and done once a process: the leaf is there the second time. */
static int op_cgroup_leaf(const struct op *op, struct op_ctx *ctx) {
    char name[CG_NAME], file[CG_NAME + 16];
    int r = open_parent(op, ctx);

    if (r < 0)
        return r;
    cg_name(&ctx->host->self, 0, name);
    if (mkdirat(ctx->cgroup[op->slot].parent, name, 0755) < 0) {
        if (errno == EEXIST)
            return 0;
        ctx->step = "mkdir";
        return -errno;
    }
    (void)snprintf(file, sizeof(file), "%s/cgroup.procs", name);
    r = file_write_at(ctx->cgroup[op->slot].parent, file, "0", 1);
    if (r < 0)
        ctx->step = "write cgroup.procs";
    return r;
}

static int op_cgroup_make(const struct op *op, struct op_ctx *ctx) {
    struct op_cgroup *cg = &ctx->cgroup[op->slot];
    int r = open_parent(op, ctx);

    if (r < 0)
        return r;
    cg->in_ledger = true;
    if (mkdirat(cg->parent, ctx->cgroup_name, 0755) < 0) {
        ctx->step = "mkdir";
        return -errno;
    }
    cg->dir = openat(cg->parent, ctx->cgroup_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cg->dir < 0) {
        ctx->step = "open";
        return -errno;
    }
    return 0;
}

static int op_cgroup_set(const struct op *op, struct op_ctx *ctx) {
    int r = file_write_at(ctx->cgroup[op->slot].dir, op->path, op->value, strlen(op->value));

    if (r == -ENOENT && op->flags2 & OP_F_OPTIONAL)
        return 0;
    if (r < 0)
        ctx->step = "write";
    return r;
}

static int op_cgroup_enable(const struct op *op, struct op_ctx *ctx) {
    int r = open_parent(op, ctx);

    if (r < 0)
        return r;
    r = file_write_at(ctx->cgroup[op->slot].parent, "cgroup.subtree_control", op->value,
                      strlen(op->value));
    if (r < 0)
        ctx->step = "write cgroup.subtree_control";
    return r;
}

static int op_cgroup_watch(const struct op *op, struct op_ctx *ctx) {
    int fd = cg_v1_oom_eventfd(ctx->cgroup[op->slot].dir);

    if (fd < 0) {
        ctx->step = "cgroup.event_control";
        return fd;
    }
    ctx->oom_event = fd;
    return 0;
}

static int op_id_map(const struct op *op, struct op_ctx *ctx, struct err *err) {
    const struct idmap_facts *ids = &ctx->host->ids;
    struct idmap_extent uids[IDMAP_EXTENTS], gids[IDMAP_EXTENTS];
    int n_uids = idmap_extents(ids, ctx->lease, (uint32_t)op->a, false, uids);
    int n_gids = idmap_extents(ids, ctx->lease, (uint32_t)op->b, true, gids);

    ctx->step = "write id maps";
    return idmap_write(ids, ctx->init, uids, n_uids, gids, n_gids, err);
}

static int keep_userns(struct op_ctx *ctx) {
    char path[40];

    if (ctx->userns_fd >= 0)
        return 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)ctx->init);
    ctx->userns_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (ctx->userns_fd >= 0)
        return 0;
    ctx->step = "open ns/user";
    return -errno;
}

static int op_tree_idmap(const struct op *op, struct op_ctx *ctx) {
    int r = keep_userns(ctx);

    if (r < 0)
        return r;
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (unsigned)ctx->userns_fd};
    if (sys_mount_setattr(ctx->slot[op->slot], "", AT_EMPTY_PATH | AT_RECURSIVE, &attr) == 0)
        return 0;
    /* EINVAL: this file system cannot be mapped; EPERM: nor may we, in a smaller user namespace. */
    if (op->flags2 & OP_F_OPTIONAL && (errno == EINVAL || errno == EPERM || errno == EOPNOTSUPP))
        return 0;
    ctx->step = "mount_setattr";
    return -errno;
}

int op_run_host(const struct op *op, struct op_ctx *ctx, struct err *err) {
    switch (op->kind) {
    case OP_CGROUP_LEAF:
        return op_cgroup_leaf(op, ctx);
    case OP_CGROUP_ENABLE:
        return op_cgroup_enable(op, ctx);
    case OP_CGROUP_MAKE:
        return op_cgroup_make(op, ctx);
    case OP_CGROUP_SET:
        return op_cgroup_set(op, ctx);
    case OP_CGROUP_WATCH:
        return op_cgroup_watch(op, ctx);
    case OP_ID_LEASE:
        ctx->step = "fcntl(F_OFD_SETLK)";
        return idmap_lease(&ctx->host->ids, &ctx->lease, &ctx->lease_fd, err);
    case OP_ID_MAP:
        return op_id_map(op, ctx, err);
    case OP_USERNS_KEEP:
        return keep_userns(ctx);
    case OP_TREE_IDMAP:
        return op_tree_idmap(op, ctx);
    default:
        return op_run(op, ctx);
    }
}
