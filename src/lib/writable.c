/*
 * writable.c: see writable.h.
 */
#include "lib/writable.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "linux/reach.h"

#include "base/banned.h"

/* `least`: what of enum reach is refused. A volume that is not there is for its control to tell. */
static int refuse(const struct policy_bind *bind, const char *flag, const char *path,
                  enum reach least, struct err *err) {
    const char *colon = *flag ? ": " : "";
    int r = reach_look(path, bind->source);

    if (r == -ENOENT || (r >= 0 && (enum reach)r < least))
        return 0;
    if (r < 0)
        return err_errno(err, ERR_USAGE, r, "binds", NULL, "%s%s%.150s", flag, colon, path);
    return err_set(err, ERR_USAGE, -EPERM, "binds",
                   "name one elsewhere, or hand that volume in read-only",
                   "%s%s%.150s %s %s%.150s, which the code may write to, and where it could put a "
                   "link in its place",
                   flag, colon, path, r == REACH_TREE ? "is" : "lies in",
                   r == REACH_TREE ? "the volume " : "", bind->source);
}

int writable_refuse(const struct policy *policy, const char *flag, const char *path,
                    struct err *err) {
    int r = 0;

    for (int i = 0; i < policy->n_bind && r == 0; i++)
        if (policy->bind[i].writable)
            r = refuse(&policy->bind[i], flag, path, REACH_TREE, err);
    return r;
}

int writable_refuse_file(const struct policy *policy, const char *path, struct err *err) {
    const char *slash = strrchr(path, '/');
    char dir[PATH_MAX] = ".";
    int r = writable_refuse(policy, "", path, err);

    if (r < 0 || !policy->out || strcmp(policy->out, "-") == 0)
        return r;
    if (slash) /* with it: the root has nothing else */
        (void)str_copy(dir, MIN(sizeof(dir), (size_t)(slash - path) + 2), path);
    if (reach_look(dir, policy->out) != REACH_TREE)
        return 0;
    return err_set(err, ERR_USAGE, -EPERM, "binds", "name one elsewhere",
                   "%.150s lies where --out puts files that the code names, and one could be taken "
                   "for a part of it",
                   path);
}

/* `inner` is mounted over its own place in `outer`: the kernel renames and removes no mount point (EBUSY). A directory
 * on the way to it could be renamed, so there is none. */
static bool covers_itself(const struct policy_bind *inner, const struct policy_bind *outer) {
    size_t source = strlen(outer->source), target = strlen(outer->target);
    struct stat st;

    return strncmp(inner->source, outer->source, source) == 0 && inner->source[source] == '/' &&
           strncmp(inner->target, outer->target, target) == 0 &&
           strcmp(inner->source + source, inner->target + target) == 0 &&
           !strchr(inner->source + source + 1, '/') && lstat(inner->source, &st) == 0 &&
           !S_ISLNK(st.st_mode);
}

int writable_check(const struct policy *policy, struct err *err) {
    int r = policy->rootfs ? writable_refuse(policy, "rootfs", policy->rootfs, err) : 0;

    for (int i = 0; i < policy->n_bind; i++)
        for (int j = 0; j < policy->n_bind && r == 0; j++)
            if (i != j && policy->bind[j].writable &&
                !(j < i && covers_itself(&policy->bind[i], &policy->bind[j])))
                r = refuse(&policy->bind[j], "--volume", policy->bind[i].source, REACH_WITHIN, err);
    return r;
}
