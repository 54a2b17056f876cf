/*
 * files.c: see files.h.
 *
 * /in is a file system in memory of its own, filled by init from the policy's
 * memory and then made read-only, so what is handed in costs the box's memory
 * and cannot be changed by the code. /out is one that the code may write to. Its
 * mount is sent to the supervisor, by whose descriptor it outlives the box: what
 * is in it is read when nothing of the box lives any more.
 */
#include "control/files.h"

#include <linux/mount.h>
#include <string.h>

#include "base/banned.h"

enum { PAGE = 4096, SPARE_INODES = 8, INODES_A_FILE = 4 };

const char *const *files_places(struct plan *plan) {
    const struct policy *policy = plan->policy;
    const char **names = arena_alloc(&plan->arena, 3 * sizeof(*names));
    size_t n = 0;

    if (!names) {
        plan->failed = true;
        return NULL;
    }
    if (policy->n_file && !plan->image.has_in)
        names[n++] = "in";
    if (policy->out && !plan->image.has_out)
        names[n++] = "out";
    return n ? names : NULL;
}

static void attach_row(struct plan *plan, enum control_id id, int slot, int below,
                       const char *path) {
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_TREE_ATTACH,
                               .control = id,
                               .slot = slot,
                               .slot2 = below,
                               .path = path,
                               .why = "the place that the code is told of",
                               .remedy = "the rootfs needs a real directory there to mount on"});
}

/* A directory on the way to a file, unless an earlier file lies below it too. */
static bool is_new(const struct policy *policy, int i, size_t len) {
    for (int j = 0; j < i; j++)
        if (strncmp(policy->file[j].name, policy->file[i].name, len + 1) == 0)
            return false;
    return true;
}

/* Returns how many inodes that takes. */
static unsigned file_rows(struct plan *plan, int i) {
    const struct policy_file *file = &plan->policy->file[i];
    unsigned inodes = 1;

    for (const char *slash = file->name; (slash = strchr(slash, '/')); slash++) {
        size_t len = (size_t)(slash - file->name);

        if (!is_new(plan->policy, i, len))
            continue;
        inodes++;
        plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                                   .kind = OP_MKDIR,
                                   .control = CTL_BINDS,
                                   .slot = SLOT_IN,
                                   .path = plan_text(plan, "%.*s", (int)len, file->name),
                                   .a = 0755,
                                   .b = OP_NO_OWNER,
                                   .why = "a file that is handed in lies there"});
    }
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_FILE,
                               .control = CTL_BINDS,
                               .slot = SLOT_IN,
                               .path = file->name,
                               .a = 0444,
                               .b = file->len,
                               .data = file->data,
                               .why = "handed in by the operator, by content"});
    return inodes;
}

void files_in_rows(struct plan *plan) {
    const struct policy *policy = plan->policy;
    uint64_t bytes = PAGE;
    unsigned inodes = SPARE_INODES;

    if (!policy->n_file)
        return;
    for (int i = 0; i < policy->n_file; i++)
        bytes += (policy->file[i].len + PAGE - 1) / PAGE * PAGE;
    size_t made = plan->n_ops;
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_FS_NEW,
                               .control = CTL_BINDS,
                               .slot = SLOT_IN,
                               .path = "tmpfs",
                               .flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
                               .why = "files that are handed in are copies: the host's own are "
                                      "out of reach"});
    for (int i = 0; i < policy->n_file; i++)
        inodes += file_rows(plan, i);
    if (plan->failed)
        return;
    plan->ops[made].value =
        plan_text(plan, "size=%llu,nr_inodes=%u,mode=755", (unsigned long long)bytes, inodes);
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_TREE_ATTR,
                               .control = CTL_BINDS,
                               .slot = SLOT_IN,
                               .flags = MOUNT_ATTR_RDONLY,
                               .why = "they are to be read only"});
    attach_row(plan, CTL_BINDS, SLOT_IN, SLOT_ROOT, "in");
}

/* Not in the root, of which each change gets into the image; and not in /dev, where nothing is executed. */
void script_rows(struct plan *plan) {
    const char *script = plan->policy->script;

    if (!script || !plan_has(plan, CTL_DEV))
        return;
    plan_add(plan,
             (struct op){.stage = STAGE_INSIDE,
                         .kind = OP_FS_NEW,
                         .control = CTL_BINDS,
                         .slot = SLOT_IN,
                         .path = "tmpfs",
                         .value = plan_text(plan, "size=%zu,nr_inodes=%d,mode=755",
                                            strlen(script) / PAGE * PAGE + 2 * PAGE, SPARE_INODES),
                         .flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                         .why = "the script must be a file, and none of the image's"});
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_FILE,
                               .control = CTL_BINDS,
                               .slot = SLOT_IN,
                               .path = strrchr(POLICY_SCRIPT, '/') + 1,
                               .a = 0755,
                               .b = strlen(script),
                               .data = script,
                               .why = "the kernel finds its interpreter"});
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_TREE_ATTR,
                               .control = CTL_BINDS,
                               .slot = SLOT_IN,
                               .flags = MOUNT_ATTR_RDONLY,
                               .why = "it is to be read only"});
    attach_row(plan, CTL_BINDS, SLOT_IN, SLOT_DEV, "pipes");
}

void files_out_rows(struct plan *plan) {
    const struct policy *policy = plan->policy;

    if (!policy->out)
        return;
    if (plan_has(plan, CTL_USER))
        plan_add(plan, (struct op){.stage = STAGE_OUTSIDE,
                                   .kind = OP_USERNS_KEEP,
                                   .control = CTL_TMP,
                                   .why = "who reads /out afterwards is its root, and nothing "
                                          "else: whatever the files' modes are"});
    plan_add(plan,
             (struct op){.stage = STAGE_INSIDE,
                         .kind = OP_FS_NEW,
                         .control = CTL_TMP,
                         .slot = SLOT_OUT,
                         .path = "tmpfs",
                         .value = plan_text(plan, "size=%llu,nr_inodes=%llu,mode=1777",
                                            (unsigned long long)policy->out_bytes,
                                            (unsigned long long)(INODES_A_FILE * policy->out_files +
                                                                 SPARE_INODES)),
                         .flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
                         .why = "what the code leaves there is brought back"});
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_TREE_SEND,
                               .control = CTL_TMP,
                               .slot = SLOT_OUT,
                               .why = "it is read when nothing of the box lives any more"});
    attach_row(plan, CTL_TMP, SLOT_OUT, SLOT_ROOT, "out");
    plan_limit(plan, "out", policy->out_bytes, "bytes", "tmpfs");
    plan_limit(plan, "outFiles", policy->out_files, "count", "supervisor");
}
