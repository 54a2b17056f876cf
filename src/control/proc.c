/*
 * proc.c: a /proc that shows the box's processes and little of the host.
 *
 * A proc mount of this pid namespace, wholly read-only (so that no sysctl, irq
 * or sysrq file can be written, whoever owns it) and with hidepid, so that the
 * payload cannot even see init. What the kernel shows of itself or of other
 * tenants to anyone is masked: empty, not missing, so that programs which open
 * it do not stumble. There is no sysfs at all.
 */
#include "control/all.h"
#include "control/readback.h"

#include <linux/mount.h>
#include <stdio.h>
#include <string.h>

#include "linux/procfs.h"

#include "base/banned.h"

/* The masked paths of the OCI runtime specification's default, as far as read-only and ownership do not cover them, and
 * three more: key-users, kallsyms, interrupts (a known side channel for keystroke timing). Knowingly left: cpuinfo,
 * meminfo, stat, loadavg, uptime and version, which honest programs read and which tell the host's size and load. */
static const char *const masked[] = {
    "acpi", "asound",        "interrupts",  "kallsyms", "kcore",      "key-users",
    "keys", "latency_stats", "sched_debug", "scsi",     "timer_list", "timer_stats",
};

static enum probe_answer probe(const struct policy *policy UNUSED, const struct host *host,
                               struct probe *why) {
    if (!host->proc_masked)
        return PROBE_YES;
    if (host->proc_missing)
        return (void)snprintf(why->why, sizeof(why->why),
                              "no proc is mounted on this host's /proc, and the "
                              "kernel then refuses a fresh one to a user namespace"),
               (void)snprintf(why->remedy, sizeof(why->remedy),
                              "mount -t proc proc /proc, as root"),
               PROBE_NO;
    (void)snprintf(why->why, sizeof(why->why),
                   "parts of this host's /proc are covered by other mounts (a container does so), "
                   "and the kernel then refuses a fresh proc to a user namespace");
    (void)snprintf(
        why->remedy, sizeof(why->remedy),
        "start the container with an unmasked /proc: --security-opt "
        "systempaths=unconfined (docker), --security-opt unmask=ALL (podman), procMount: "
        "Unmasked (Kubernetes)");
    return PROBE_NO;
}

/* How many kernel objects of a kind the box's user namespace may have. */
static void count_row(struct plan *plan, const char *path, const char *value, const char *why) {
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_WRITE,
                               .control = CTL_USER,
                               .slot = SLOT_PROC,
                               .path = path,
                               .value = value,
                               .flags2 = OP_F_OPTIONAL,
                               .why = why});
}

static int plan_proc(const struct policy *policy UNUSED, const struct host *host UNUSED,
                     struct plan *plan, struct err *err UNUSED) {
    uint64_t attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

    if (plan_has(plan, CTL_PID)) {
        plan_add(plan, (struct op){
                           .stage = STAGE_INSIDE,
                           .kind = OP_FS_NEW,
                           .control = CTL_PROC,
                           .slot = SLOT_PROC,
                           .path = "proc",
                           .value = "hidepid=2",
                           .flags = attrs,
                           .why = "Python, and much else, needs /proc; the host's would show "
                                  "every process with its arguments",
                           .remedy = "a container's masked /proc forbids it: see `mayfly doctor`"});
    } else { /* a new proc shows the pid namespace it is mounted from, and the host's is not the box's to show */
        plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                                   .kind = OP_TREE_OPEN,
                                   .control = CTL_PROC,
                                   .slot = SLOT_PROC,
                                   .path = "/proc",
                                   .why = "Python, and much else, needs /proc"});
        plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                                   .kind = OP_TREE_ATTR,
                                   .control = CTL_PROC,
                                   .slot = SLOT_PROC,
                                   .flags = attrs,
                                   .why = "as a proc of its own would have them"});
    }
    if (plan_has(plan, CTL_USER)) {
        count_row(
            plan, "sys/user/max_user_namespaces", "0",
            "a nested user namespace opens kernel code to the payload; seccomp refuses it too");
        count_row(plan, "sys/user/max_inotify_instances", "8",
                  "what the box has counts for the caller as well, who has 128 in all: root's own "
                  "services would get none");
        count_row(plan, "sys/user/max_inotify_watches", "8192", "the same, of some 100,000");
    }
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_TREE_ATTR,
                               .control = CTL_PROC,
                               .slot = SLOT_PROC,
                               .flags = MOUNT_ATTR_RDONLY,
                               .why = "sysctls, sysrq-trigger, irq and bus must not be written"});
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_TREE_ATTACH,
                               .control = CTL_PROC,
                               .slot = SLOT_PROC,
                               .slot2 = SLOT_ROOT,
                               .path = "proc",
                               .why = "programs look for it there",
                               .remedy = "the rootfs needs a real directory /proc, not a link"});
    for (size_t i = 0; i < ARRAY_LEN(masked); i++)
        plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                                   .kind = OP_MASK,
                                   .control = CTL_PROC,
                                   .slot = SLOT_PROC,
                                   .path = masked[i],
                                   .why = "it tells of the kernel or of the host's other users"});
    return 0;
}

static void verify(const struct view *view, struct finding *finding) {
    char line[2048];
    struct mount_info m;
    struct view_mount seen;
    unsigned masks = 0;

    if (!readback_mounts(view, CTL_PROC, finding))
        return;
    if (!readback_mount_at(view, "/proc", line, &m, &seen))
        return finding_set(finding, false, "nothing is mounted at /proc");
    if (!mount_has_option(m.super_options, "hidepid=invisible") &&
        !mount_has_option(m.super_options, "hidepid=2"))
        return finding_set(finding, false, "/proc shows other users' processes: %s",
                           m.super_options);
    for (size_t i = 0; i < ARRAY_LEN(masked); i++) {
        char path[64], other[2048];
        struct mount_info mask;
        (void)snprintf(path, sizeof(path), "/proc/%s", masked[i]);
        masks += readback_mount_at(view, path, other, &mask, &seen);
    }
    finding_set(finding, true, "/proc is %s, %s; %u paths masked", m.options, m.super_options,
                masks);
}

const struct control control_proc = {
    .id = CTL_PROC,
    .summary = "a read-only /proc of its own processes, parts masked; no /sys",
    .source = "proc(5), hidepid; OCI runtime specification, linux.maskedPaths",
    .without = "The host's /proc shows every process's command line, and its writable files are "
               "ways to the host's root: core_pattern, sysrq-trigger, binfmt_misc.",
    .probe = probe,
    .plan = plan_proc,
    .verify = verify,
};
