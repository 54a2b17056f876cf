/*
 * tmpfs.c: the tmp control. Places where the code may write: /tmp, /dev/shm and
 * its home, each in memory, of limited size and number of files, gone with the
 * box, and noexec: what is written there cannot be run or loaded as a library.
 * (A script given to an interpreter is data and runs; noexec never stops that.)
 */
#include "control/all.h"
#include "control/files.h"
#include "control/readback.h"

#include <linux/mount.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

static const uint64_t tmp_attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

/* A tmpfs in `slot`, attached at `path` below `slot2`. */
static void tmpfs_rows(struct plan *plan, int slot, int slot2, const char *path, uint64_t bytes,
                       uint64_t inodes, unsigned mode, const char *why) {
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_FS_NEW,
                               .control = CTL_TMP,
                               .slot = slot,
                               .path = "tmpfs",
                               .value = plan_text(plan, "size=%llu,nr_inodes=%llu,mode=%o",
                                                  (unsigned long long)bytes,
                                                  (unsigned long long)inodes, mode),
                               .flags = tmp_attrs,
                               .why = why});
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_TREE_ATTACH,
                               .control = CTL_TMP,
                               .slot = slot,
                               .slot2 = slot2,
                               .path = path,
                               .why = "programs look for it there",
                               .remedy = "the rootfs needs a real directory there to mount on"});
}

/* --tmpfs /tmp:… replaces the built-in one rather than covering it. */
static const struct policy_tmpfs *find(const struct policy *policy, const char *path) {
    for (int i = policy->n_tmpfs - 1; i >= 0; i--)
        if (strcmp(policy->tmpfs[i].path, path) == 0)
            return &policy->tmpfs[i];
    return NULL;
}

static void standard(struct plan *plan, const struct policy *policy, int slot, int slot2,
                     const char *path, const char *full, unsigned mode, const char *why) {
    const struct policy_tmpfs *own = find(policy, full);

    tmpfs_rows(plan, slot, slot2, path,
               own && own->size_bytes ? own->size_bytes : policy->tmp_bytes,
               own && own->inodes ? own->inodes : policy->tmp_inodes,
               own && own->mode ? own->mode : mode, why);
}

/* A place to start in that lies in a tmpfs of ours, where nothing is yet: made, as it would be in a container, and the
 * payload's. */
static void workdir_rows(struct plan *plan, const struct policy *policy, bool home, bool own) {
    const char *dir = policy->workdir ? policy->workdir : "";
    bool tmp = strncmp(dir, "/tmp/", 5) == 0;

    if (!tmp && !(home && strncmp(dir, "/home/", 6) == 0))
        return;
    const char *rest = dir + (tmp ? 5 : 6);
    for (const char *slash = strchrnul(rest, '/');; slash = strchrnul(slash + 1, '/')) {
        plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                                   .kind = OP_MKDIR,
                                   .control = CTL_TMP,
                                   .slot = tmp ? SLOT_TMP : SLOT_HOME,
                                   .path = plan_text(plan, "%.*s", (int)(slash - rest), rest),
                                   .a = 0755,
                                   .b = own ? policy->uid : 0,
                                   .c = own ? policy->gid : 0,
                                   .flags2 = OP_F_OPTIONAL,
                                   .why = "the command is to start there"});
        if (!*slash)
            return;
    }
}

static int plan_tmp(const struct policy *policy, const struct host *host, struct plan *plan,
                    struct err *err UNUSED) {
    bool home = plan->image.has_home && !policy->build;
    /* Without an identity of its own the payload is init's, and without capabilities it could not enter another's. */
    bool own = plan_has(plan, CTL_IDENTITY) ||
               (plan_has(plan, CTL_USER) && host->ids.kind == IDMAP_SINGLE);

    /* An image keeps its /tmp and /home, and its builders execute there what they have just made. */
    if (!policy->build)
        standard(plan, policy, SLOT_TMP, SLOT_ROOT, "tmp", "/tmp", 01777,
                 "the root is read-only and programs need somewhere to write");
    if (plan_has(plan, CTL_DEV))
        standard(plan, policy, SLOT_SHM, SLOT_DEV, "shm", "/dev/shm", 01777,
                 "POSIX shared memory and semaphores (multiprocessing) live there");
    if (home) {
        standard(plan, policy, SLOT_HOME, SLOT_ROOT, "home", "/home", 0755,
                 "programs write to their home directory");
        plan_add(plan,
                 (struct op){.stage = STAGE_INSIDE,
                             .kind = OP_MKDIR,
                             .control = CTL_TMP,
                             .slot = SLOT_HOME,
                             .path = "box",
                             .a = 0700,
                             .b = own ? policy->uid : 0,
                             .c = own ? policy->gid : 0,
                             .why = "the payload's home, where its code is and where it starts"});
    }
    workdir_rows(plan, policy, home, own);
    for (int i = 0; i < policy->n_tmpfs; i++) {
        const struct policy_tmpfs *t = &policy->tmpfs[i];

        if (strcmp(t->path, "/tmp") == 0 || strcmp(t->path, "/dev/shm") == 0 ||
            (home && strcmp(t->path, "/home") == 0) || find(policy, t->path) != t)
            continue;
        tmpfs_rows(plan, SLOT_TMPFS + i, SLOT_ROOT, t->path + 1,
                   t->size_bytes ? t->size_bytes : policy->tmp_bytes,
                   t->inodes ? t->inodes : policy->tmp_inodes, t->mode ? t->mode : 01777,
                   "asked for with --tmpfs");
    }
    if (policy->takes_code)
        plan_add(plan,
                 (struct op){.stage = STAGE_INSIDE,
                             .kind = OP_CODE_FILE,
                             .control = CTL_TMP,
                             .slot = home ? SLOT_HOME : SLOT_TMP,
                             .path = plan_text(plan, "%s%s", home ? "box/" : "", policy->code_name),
                             .a = 0444,
                             .b = OP_NO_OWNER,
                             .why = "code travels as a file: never in an argv, whatever its size"});
    files_out_rows(plan);
    plan_limit(plan, "tmp", policy->tmp_bytes, "bytes", "tmpfs");
    plan_limit(plan, "tmpInodes", policy->tmp_inodes, "count", "tmpfs");
    return 0;
}

static void verify(const struct view *view, struct finding *finding) {
    char line[2048];
    struct mount_info m;
    struct view_mount seen;

    if (!readback_mounts(view, CTL_TMP, finding))
        return;
    const char *at = view->plan->policy->build ? "/dev/shm" : "/tmp";
    if (!readback_mount_at(view, at, line, &m, &seen))
        return finding_set(finding, false, "nothing is mounted at %s", at);
    finding_set(finding, true, "%s is %s, %s, %llu bytes, %llu inodes; the others as wanted", at,
                m.fstype, m.options, (unsigned long long)seen.bytes,
                (unsigned long long)seen.inodes);
}

const struct control control_tmp = {
    .id = CTL_TMP,
    .summary = "/tmp, /dev/shm and home in memory: small, noexec, gone with the box",
    .source = "Documentation/filesystems/tmpfs.rst",
    .without = "There is nowhere to write, or, if the host's /tmp were shown, its files are in "
               "reach and what is written stays.",
    .plan = plan_tmp,
    .verify = verify,
};
