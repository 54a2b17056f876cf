/*
 * dev.c: a /dev with the five harmless devices and nothing else.
 *
 * A fresh tmpfs, so that whatever the image has in /dev is ignored; the devices
 * are bind mounts of the host's, since a user namespace may not make nodes. No
 * terminal, no disk, no ptmx; made read-only once it is furnished.
 */
#include "control/all.h"
#include "control/readback.h"

#include <linux/mount.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

static const char *const devices[] = {"null", "zero", "full", "random", "urandom"};
static const struct {
    const char *link, *target;
} links[] = {
    {"fd", "/proc/self/fd"},
    {"stdin", "/proc/self/fd/0"},
    {"stdout", "/proc/self/fd/1"},
    {"stderr", "/proc/self/fd/2"},
};

static void device_rows(struct plan *plan, const char *name) {
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_MKFILE,
                               .control = CTL_DEV,
                               .slot = SLOT_DEV,
                               .path = name,
                               .a = 0444,
                               .b = OP_NO_OWNER,
                               .why = "a file to mount the device on"});
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_TREE_OPEN,
                               .control = CTL_DEV,
                               .slot = SLOT_SCRATCH,
                               .path = plan_text(plan, "/dev/%s", name),
                               .why = "programs need it, and it gives nothing away"});
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_TREE_ATTACH,
                               .control = CTL_DEV,
                               .slot = SLOT_SCRATCH,
                               .slot2 = SLOT_DEV,
                               .path = name,
                               .flags2 = OP_F_FILE,
                               .why = "nodes cannot be made in a user namespace, only shown"});
}

static void place_row(struct plan *plan, const char *name, const char *why) {
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_MKDIR,
                               .control = CTL_DEV,
                               .slot = SLOT_DEV,
                               .path = name,
                               .a = 0755,
                               .b = OP_NO_OWNER,
                               .why = why});
}

static int plan_dev(const struct policy *policy, const struct host *host UNUSED, struct plan *plan,
                    struct err *err UNUSED) {
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_FS_NEW,
                               .control = CTL_DEV,
                               .slot = SLOT_DEV,
                               .path = "tmpfs",
                               .value = "mode=755,size=65536,nr_inodes=32",
                               .flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
                               .why = "the image's own /dev could hold anything"});
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_TREE_ATTACH,
                               .control = CTL_DEV,
                               .slot = SLOT_DEV,
                               .slot2 = SLOT_ROOT,
                               .path = "dev",
                               .why = "programs look for it there",
                               .remedy = "the rootfs needs a real directory /dev, not a link"});
    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        device_rows(plan, devices[i]);
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                                   .kind = OP_SYMLINK,
                                   .control = CTL_DEV,
                                   .slot = SLOT_DEV,
                                   .path = links[i].link,
                                   .value = links[i].target,
                                   .why = "shells and scripts use it"});
    place_row(plan, "shm", "a place to mount shared memory on");
    if (policy->script)
        place_row(plan, "pipes", "a place to mount the script on");
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_TREE_ATTR,
                               .control = CTL_DEV,
                               .slot = SLOT_DEV,
                               .flags = MOUNT_ATTR_RDONLY,
                               .why = "furnished: nothing in it has to change any more"});
    return 0;
}

static void verify(const struct view *view, struct finding *finding) {
    static const unsigned minors[] = {3, 5, 7, 8, 9};
    _Static_assert(ARRAY_LEN(minors) == ARRAY_LEN(devices), "mem(4), null(4), full(4), random(4)");

    if (!readback_mounts(view, CTL_DEV, finding))
        return;
    for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
        char path[32], line[2048];
        struct mount_info m;
        struct view_mount seen = {0};

        (void)snprintf(path, sizeof(path), "/dev/%s", devices[i]);
        if (!readback_mount_at(view, path, line, &m, &seen) || !seen.is_char || seen.major != 1 ||
            seen.minor != minors[i])
            return finding_set(finding, false, "%s is not device 1:%u", path, minors[i]);
    }
    finding_set(finding, true, "/dev is a read-only tmpfs with devices 1:3, 1:5, 1:7, 1:8, 1:9");
}

const struct control control_dev = {
    .id = CTL_DEV,
    .summary = "a /dev with null, zero, full, random, urandom and shm only",
    .source = "OCI runtime specification, default devices; open_tree(2)",
    .without = "The image's /dev would be used as it is, and with it any device node that the "
               "image brings.",
    .plan = plan_dev,
    .verify = verify,
};
