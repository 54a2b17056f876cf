/*
 * binds.c: host directories and files that the operator hands in. Nothing is
 * handed in by default. Read-only unless asked otherwise, always nosuid and
 * nodev, and with everything mounted below them under the same flags.
 */
#include "control/all.h"
#include "control/files.h"
#include "control/readback.h"
#include "control/tree.h"

#include <errno.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"

/* The tmpfs of ours that `target` lies in, and the rest of the path; there a missing mount point can be made. */
static int home_slot(const struct plan *plan, const char *target, const char **ret_rest) {
    static const struct {
        const char *prefix;
        int slot;
    } places[] = {{"/tmp/", SLOT_TMP}, {"/home/", SLOT_HOME}, {"/dev/shm/", SLOT_SHM}};

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        size_t len = strlen(places[i].prefix);

        if (strncmp(target, places[i].prefix, len) != 0 || !plan_has(plan, CTL_TMP))
            continue;
        if (places[i].slot == SLOT_HOME && !plan->image.has_home)
            continue;
        *ret_rest = target + len;
        return places[i].slot;
    }
    return OP_AT_ROOT;
}

/* Every directory of `rest` but the last part, then the last part as a directory or file. */
static void target_rows(struct plan *plan, int slot, const char *rest, bool is_file) {
    for (const char *slash = strchr(rest, '/');; slash = strchr(slash + 1, '/')) {
        size_t len = slash ? (size_t)(slash - rest) : strlen(rest);
        bool last = !slash;

        plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                                   .kind = last && is_file ? OP_MKFILE : OP_MKDIR,
                                   .control = CTL_BINDS,
                                   .slot = slot,
                                   .path = plan_text(plan, "%.*s", (int)len, rest),
                                   .a = last && is_file ? 0444 : 0755,
                                   .b = OP_NO_OWNER,
                                   .flags2 = OP_F_OPTIONAL,
                                   .why = "a place to mount on"});
        if (last)
            return;
    }
}

static int plan_binds(const struct policy *policy, const struct host *host UNUSED,
                      struct plan *plan, struct err *err) {
    for (int i = 0; i < policy->n_bind; i++) {
        const struct policy_bind *bind = &policy->bind[i];
        const char *rest = NULL;
        struct stat st;

        if (stat(bind->source, &st) < 0)
            return err_errno(err, ERR_USAGE, -errno, "binds",
                             "name a directory or file that is there", "--volume: %s",
                             bind->source);
        size_t len = strlen(bind->target);
        if (plan->code_path && strncmp(plan->code_path, bind->target, len) == 0 &&
            (plan->code_path[len] == '/' || !plan->code_path[len]))
            return err_set(err, ERR_USAGE, -EINVAL, "binds", "choose another target",
                           "--volume: %s would cover the code itself, which is %s", bind->target,
                           plan->code_path);
        bool is_file = !S_ISDIR(st.st_mode);
        if (is_file && !S_ISREG(st.st_mode))
            return err_set(err, ERR_USAGE, -EINVAL, "binds",
                           "bind a directory or a regular file; a socket or device would be a "
                           "door out of the box",
                           "--volume: %s is neither a directory nor a regular file", bind->source);
        tree_rows(plan, CTL_BINDS, SLOT_BIND + i, bind->source,
                  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (bind->writable ? 0 : MOUNT_ATTR_RDONLY),
                  bind->writable ? "handed in by the operator, writable"
                                 : "handed in by the operator, to be read only");
        int slot = home_slot(plan, bind->target, &rest);
        if (slot != OP_AT_ROOT || !policy->read_only)
            target_rows(plan, slot == OP_AT_ROOT ? SLOT_ROOT : slot, rest ? rest : bind->target + 1,
                        is_file);
        plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                                   .kind = OP_TREE_ATTACH,
                                   .control = CTL_BINDS,
                                   .slot = SLOT_BIND + i,
                                   .slot2 = slot == OP_AT_ROOT ? SLOT_ROOT : slot,
                                   .path = rest ? rest : bind->target + 1,
                                   .flags2 = is_file ? OP_F_FILE : 0,
                                   .why = "where the operator wants it",
                                   .remedy = "the target must exist in the rootfs, or lie below "
                                             "/tmp or /home, where it is made"});
        if (host->ids.groups_kept && host->extra_groups)
            buf_printf(&plan->warnings, "binds: %s may be read through the caller's extra groups\n",
                       bind->source);
    }
    files_in_rows(plan);
    script_rows(plan);
    return 0;
}

static void verify(const struct view *view, struct finding *finding) {
    if (readback_mounts(view, CTL_BINDS, finding))
        finding_set(finding, true, "%d of the host's trees, as asked for",
                    view->plan->policy->n_bind);
}

const struct control control_binds = {
    .id = CTL_BINDS,
    .summary = "of the host's files only what the operator names, read-only unless said otherwise",
    .source = "open_tree(2), mount_setattr(2)",
    .without = "Nothing of the host's can be handed in.",
    .plan = plan_binds,
    .verify = verify,
};
