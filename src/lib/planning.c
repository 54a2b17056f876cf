/*
 * planning.c: the order of planning. Checked first, so that a faulty request is
 * refused with all its faults before any control speaks of the host.
 */
#include "lib/planning.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "control/control.h"
#include "image/home.h"
#include "plan/command.h"

#include "base/banned.h"

/* A real one: nothing is mounted on what a link leads to. */
static bool has_directory(const char *rootfs, const char *name) {
    char path[4352];
    struct stat st;

    return snprintf(path, sizeof(path), "%s/%s", rootfs, name) < (int)sizeof(path) &&
           lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int image_look(const struct policy *policy, struct plan_image *ret_image, struct err *err) {
    char path[4352];
    struct stat st;

    if (!policy->rootfs) /* policy_check says so, with whatever else is wrong */
        return 0;
    if (stat(policy->rootfs, &st) < 0)
        return err_errno(err, ERR_USAGE, -errno, "mount", "`make rootfs` builds one", "rootfs %s",
                         policy->rootfs);
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_USAGE, -ENOTDIR, "mount", "name the directory that holds /usr",
                       "rootfs %s: not a directory", policy->rootfs);
    if (snprintf(path, sizeof(path), "%s/home", policy->rootfs) >= (int)sizeof(path))
        return err_set(err, ERR_USAGE, -ENAMETOOLONG, "mount", NULL,
                       "rootfs: the path is too long");
    ret_image->has_home = home_is_free(AT_FDCWD, path);
    if (policy->n_file || policy->out) {
        ret_image->has_in = has_directory(policy->rootfs, "in");
        ret_image->has_out = has_directory(policy->rootfs, "out");
    }
    return 0;
}

int plan_make(const struct policy *policy, const struct host *host, const struct plan_image *image,
              struct plan **ret_plan, struct err *err) {
    struct plan *plan = plan_alloc(policy, host);

    if (!plan)
        return err_oom(err);
    plan->image = *image;
    int r = policy_check(policy, &plan->warnings, err);
    if (r == 0)
        r = plan_places(plan, err);
    if (r == 0)
        r = controls_plan(plan, err);
    if (r == 0)
        r = plan_command(plan, err);
    if (r < 0) {
        plan_free(plan);
        return r;
    }
    *ret_plan = plan;
    return 0;
}
