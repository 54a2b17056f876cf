/*
 * cgroup_hier.h: what cgroup.c asks of its two versions. Private to the three
 * cgroup files; everyone else uses cgroup.h.
 */
#ifndef MAYFLY_LINUX_CGROUP_HIER_H
#define MAYFLY_LINUX_CGROUP_HIER_H

#include "linux/cgroup.h"

/* What a controller is for, in a sentence: "so no memory limit". */
extern const char *const cg_uses[CG__N];

/* One mounted hierarchy. */
struct cg_mount {
    char target[CG_PATH]; /* "" : none found */
    char root[CG_PATH]; /* the cgroup that the mount shows as its top: "/" unless it is a bind mount
                         */
};

/* What a bit set of controllers says in words: parses "cpu memory pids" (blanks or commas between).
 */
unsigned cg_parse_controllers(const char *text);
/* Our own cgroup in the hierarchy whose /proc/self/cgroup line carries `controller` ("": v2).
 * False: no such line. */
bool cg_own_path(const char *self_cgroup, const char *controller, char ret[CG_PATH]);
/* mount + cgroup path, as a directory; the mount's own top where the path is not below it. False:
 * too long. */
bool cg_join(const struct cg_mount *m, const char *path, char ret[CG_PATH]);
/* Like cg_join for --cgroup-parent, which may also be a directory below the mount. False: not below
 * it. */
bool cg_join_parent(const struct cg_mount *m, const char *parent, char ret[CG_PATH]);
/* access(2) for our effective ids, relative to a directory. 0 or -errno. */
int cg_access(int dirfd, const char *path, int mode);
/* Adds a hierarchy to the layout (or finds the one with that parent) and gives it the controllers.
 */
void cg_place(struct cg_layout *l, const struct cg_hier *h);
/* Remembers an error that says nothing of the host, only of the moment. Any other is ignored here. */
void cg_unread(struct cg_layout *l, int code);
/* Writes why[c] unless a reason is there already. */
void cg_why(struct cg_layout *l, enum cg_controller c, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Value of "key N" in a flat keyed file's text; UINT64_MAX if it is not there. */
uint64_t cg_keyed(const char *text, const char *key);
/* A file that holds one number; 0 or -errno. */
int cg_read_number(int dirfd, const char *file, uint64_t *ret);
/* "key N" of a flat keyed file; -ENODATA if the key is not there. */
int cg_read_keyed(int dirfd, const char *file, const char *key, uint64_t *ret);

/* Both place those of `want` (BIT(CG_*)) that can be had and say of the others why not. `own` is
 * NULL when unknown, `parent` is --cgroup-parent or NULL. */
void cg_v2_detect(const struct cg_mount *m, const char *own, const char *parent, unsigned want,
                  struct cg_layout *ret);
void cg_v1_detect(const struct cg_mount *m, const char *own, const char *parent,
                  enum cg_controller c, struct cg_layout *ret);

int cg_v2_settings(enum cg_controller c, const struct cg_limits *l,
                   struct cg_setting out[CG_SETTINGS]);
int cg_v1_settings(enum cg_controller c, const struct cg_limits *l,
                   struct cg_setting out[CG_SETTINGS]);
int cg_set(struct cg_setting *s, const char *file, bool optional, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

void cg_v2_read_usage(unsigned controllers, int dirfd, struct cg_usage *ret);
void cg_v1_read_usage(unsigned controllers, int dirfd, struct cg_usage *ret);
int cg_v2_read_oom_kills(int dirfd, uint64_t *ret);
int cg_v1_read_oom_kills(int dirfd, uint64_t *ret);
int cg_v1_read_cpu_usec(int dirfd, uint64_t *ret);
int cg_v2_read_cpu_usec(int dirfd, uint64_t *ret);

#endif
