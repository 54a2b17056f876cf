/*
 * idmap.c: finding out which host ids boxes may have, and dealing them out.
 *
 * Detection is arithmetic on the texts of a few files. Which extents a slot then
 * means is a pure function of the facts, so the plan can show it. Only the lease
 * touches the host: one byte of one file per slot, locked.
 * Writing the maps is in idmap_write.c.
 */
#include "linux/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

/* Root's ids: above what people, services, systemd-nspawn and the usual subordinate ranges use,
 * below 2^31, where old file formats and tools still go wrong. */
enum { BLOCK_START = 0x70000000, BLOCK_IDS = 65536, BLOCK_SLOTS = 4096 };
_Static_assert((uint64_t)BLOCK_START + (uint64_t)BLOCK_IDS * BLOCK_SLOTS <= UINT64_C(1) << 31,
               "ids stay below 2^31");

enum { TEXT_LIMIT_BYTES = 4 << 20 };
static const uint32_t ALL_IDS = UINT32_MAX; /* 0 to 2^32 - 2 */

/* ------------------------------------------------------------------ text */

/* A decimal number up to `stop`s; NULL if it is none or too large for an id. */
static const char *take_id(const char *p, const char *stops, uint32_t *ret) {
    uint64_t n = 0;
    const char *start = p;

    for (; *p >= '0' && *p <= '9'; p++)
        if ((n = n * 10 + (uint64_t)(*p - '0')) > UINT32_MAX)
            return NULL;
    if (p == start || (*p && !strchr(stops, *p)))
        return NULL;
    *ret = (uint32_t)n;
    return p;
}

/* The largest range of this user in a subuid(5) text. One that holds id 0 would map the host's
 * root: never taken. Nor is one that holds the user's `own` id, which is behind 0 in the box: the kernel
 * refuses a map with one host id in it twice. */
static struct idmap_range sub_range(const char *text, const char *user_name, uint32_t uid,
                                    uint32_t own) {
    struct idmap_range ret = {0};

    for (const char *line = text; line && *line;) {
        const char *colon = strpbrk(line, ":\n");
        const char *end = strchrnul(line, '\n');
        struct idmap_range r;
        uint32_t number;

        if (colon && *colon == ':') {
            size_t len = (size_t)(colon - line);
            bool ours = user_name && strlen(user_name) == len && !memcmp(line, user_name, len);
            const char *p = take_id(line, ":", &number);

            ours = ours || (p == colon && number == uid);
            p = ours ? take_id(colon + 1, ":", &r.start) : NULL;
            p = p && *p == ':' ? take_id(p + 1, "\n \t\r", &r.count) : NULL;
            bool apart = p && r.start > 0 && (own < r.start || own - r.start >= r.count);
            if (apart && r.count > ret.count && r.count <= ALL_IDS - r.start)
                ret = r;
        }
        line = *end ? end + 1 : end;
    }
    return ret;
}

/* The largest extent of our own user namespace, seen from inside. *ret_above: `id` as the namespace above knows it, which
 * stays as it is where no extent has it. */
static struct idmap_range largest_extent(const char *map, uint32_t id, uint32_t *ret_above) {
    struct idmap_range ret = {0};

    for (const char *line = map; *line;) {
        const char *end = strchrnul(line, '\n');
        struct idmap_range r;
        uint32_t outside;
        const char *p = take_id(line + strspn(line, " \t"), " \t", &r.start);

        p = p ? take_id(p + strspn(p, " \t"), " \t", &outside) : NULL;
        p = p ? take_id(p + strspn(p, " \t"), " \t\n", &r.count) : NULL;
        if (p && r.count > ALL_IDS - r.start)
            p = NULL;
        if (p && id >= r.start && id - r.start < r.count)
            *ret_above = outside + (id - r.start);
        if (p && r.count > ret.count)
            ret = r;
        line = *end ? end + 1 : end;
    }
    return ret;
}

static bool is_whole(struct idmap_range r) { return r.start == 0 && r.count == ALL_IDS; }

/* ------------------------------------------------------------------ detection */

static const char *text_of(const char *given, const char *path, char **owned,
                           struct idmap_facts *f) {
    if (given)
        return given;
    int r = file_read_all_at(AT_FDCWD, path, TEXT_LIMIT_BYTES, owned, NULL);
    if (r == 0)
        return *owned;
    if (err_is_passing(r))
        f->unread = r;
    return "";
}

/* The user's name in /etc/passwd; getpwuid would pull in NSS, and with it shared libraries. */
static bool own_name(struct idmap_facts *f, char *ret, size_t size) {
    char *text _cleanup_free_ = NULL;
    uint32_t number;

    for (const char *line = text_of(NULL, "/etc/passwd", &text, f); *line;) {
        const char *end = strchrnul(line, '\n');
        const char *name_end = memchr(line, ':', (size_t)(end - line));
        const char *id = name_end ? memchr(name_end + 1, ':', (size_t)(end - name_end - 1)) : NULL;

        if (id && take_id(id + 1, ":", &number) && number == f->uid &&
            (size_t)(name_end - line) < size) {
            *(char *)mempcpy(ret, line, (size_t)(name_end - line)) = '\0';
            return true;
        }
        line = *end ? end + 1 : end;
    }
    return false;
}

static bool may_set_ids(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {0};
    uint32_t need = (uint32_t)(BIT(CAP_SETUID) | BIT(CAP_SETGID));

    return syscall(SYS_capget, &header, caps) == 0 && (caps[0].effective & need) == need;
}

/* The first user namespace, where every id is mapped to itself, has had this inode number since
 * Linux 3.8 (PROC_USER_INIT_INO); asking for it costs a quarter of reading two maps. */
static bool in_first_userns(void) {
    struct stat st;

    return stat("/proc/self/ns/user", &st) == 0 && st.st_ino == 0xEFFFFFFD;
}

/* 65,536 ids a box: every id that an image's files have is one of the box's own. */
static void take_big_blocks(struct idmap_facts *f) {
    f->kind = IDMAP_BLOCK;
    f->block = BLOCK_IDS;
    f->slots = BLOCK_SLOTS;
    f->sub_uid = f->sub_gid = (struct idmap_range){BLOCK_START, (uint32_t)BLOCK_IDS * BLOCK_SLOTS};
}

static void detect_root(const struct idmap_source *src, bool first, struct idmap_range u,
                        struct idmap_facts *f) {
    char *gid_text _cleanup_free_ = NULL;
    const char *gids = src->gid_map ? src->gid_map : src->uid_map;
    uint32_t unused;

    if (src->uid < 0 && !may_set_ids()) {
        (void)snprintf(f->why_single, sizeof(f->why_single),
                       "root without CAP_SETUID and CAP_SETGID can map no id but its own, 0; keep "
                       "them, or run mayfly as an ordinary user");
        return;
    }
    if (first) {
        take_big_blocks(f);
        return;
    }
    struct idmap_range g =
        largest_extent(text_of(gids, "/proc/self/gid_map", &gid_text, f), 0, &unused);
    if (is_whole(u) && is_whole(g)) {
        take_big_blocks(f);
        return;
    }
    if (u.count < 4 || g.count < 4) {
        (void)snprintf(f->why_single, sizeof(f->why_single),
                       "root of a user namespace with %u uids and %u gids, too few for any but 0; "
                       "run mayfly outside of it, or map a range of ids into it",
                       u.count, g.count);
        return;
    }
    /* The upper half leaves the lower to what else lives here, and cannot hold 0. */
    f->kind = IDMAP_BLOCK;
    f->block = 2;
    f->sub_uid = (struct idmap_range){u.start + u.count / 2, u.count - u.count / 2};
    f->sub_gid = (struct idmap_range){g.start + g.count / 2, g.count - g.count / 2};
    f->slots = MIN(f->sub_uid.count, f->sub_gid.count) / 2;
}

static const char *helper_path(const char *name, char ret[32]) {
    static const char *const dirs[] = {"/usr/bin", "/bin"};

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        (void)snprintf(ret, 32, "%s/%s", dirs[i], name);
        if (access(ret, X_OK) == 0)
            return ret;
    }
    return NULL;
}

static void detect_user(const struct idmap_source *src, struct idmap_facts *f) {
    char *uid_text _cleanup_free_ = NULL, *gid_text _cleanup_free_ = NULL;
    char name[256], path[32];
    bool look = src->have_helpers < 0;
    bool helpers = look ? helper_path("newuidmap", path) && helper_path("newgidmap", path)
                        : src->have_helpers > 0;
    const char *user = src->user_name;
    if (!user)
        user = own_name(f, name, sizeof(name)) ? name : NULL;

    f->sub_uid = sub_range(text_of(src->subuid, "/etc/subuid", &uid_text, f), user, f->uid, f->uid);
    f->sub_gid = sub_range(text_of(src->subgid, "/etc/subgid", &gid_text, f), user, f->uid, f->gid);
    f->slots = MIN(f->sub_uid.count, f->sub_gid.count);
    if (!f->slots)
        (void)snprintf(f->why_single, sizeof(f->why_single),
                       "no subordinate ids in %s; as root: usermod --add-subuids 100000-165535 "
                       "--add-subgids 100000-165535 %.64s",
                       f->sub_uid.count ? "/etc/subgid" : "/etc/subuid", user ? user : "USER");
    else if (!helpers)
        (void)snprintf(f->why_single, sizeof(f->why_single),
                       "newuidmap and newgidmap are not installed; as root: apt-get install uidmap "
                       "(Debian, Ubuntu) or install shadow-utils (others)");
    else if (look && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        (void)snprintf(f->why_single, sizeof(f->why_single),
                       "no_new_privs is set, so newuidmap has no privilege to use; start mayfly "
                       "from a process without it");
    else
        f->kind = IDMAP_SUBID;
}

static void choose_lock_dir(struct idmap_facts *f, bool root) {
    struct stat st;
    char run[40];

    (void)snprintf(run, sizeof(run), "/run/user/%u", f->uid);
    if (root)
        (void)snprintf(f->lock_dir, sizeof(f->lock_dir), "/run/mayfly");
    else if (stat(run, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == f->uid)
        (void)snprintf(f->lock_dir, sizeof(f->lock_dir), "%s/mayfly", run);
    else
        (void)snprintf(f->lock_dir, sizeof(f->lock_dir), "/tmp/mayfly-%u", f->uid);
}

void idmap_detect(const struct idmap_source *src, struct idmap_facts *ret) {
    struct idmap_facts f = {
        .kind = IDMAP_SINGLE,
        .uid = src->uid < 0 ? geteuid() : (uint32_t)src->uid,
        .gid = src->gid < 0 ? getegid() : (uint32_t)src->gid,
    };

    char *text _cleanup_free_ = NULL;
    bool first = !src->uid_map && in_first_userns();
    struct idmap_range uids = {0};

    f.above = f.uid;
    if (!first)
        uids =
            largest_extent(text_of(src->uid_map, "/proc/self/uid_map", &text, &f), f.uid, &f.above);
    if (f.uid == 0)
        detect_root(src, first, uids, &f);
    else
        detect_user(src, &f);
    if (f.kind == IDMAP_SINGLE) {
        f.sub_uid = f.sub_gid = (struct idmap_range){0};
        f.block = 0;
        f.slots = 0;
        f.groups_kept = true;
    } else if (f.kind == IDMAP_SUBID) {
        f.block = 1;
    }
    choose_lock_dir(&f, f.uid == 0);
    *ret = f;
}

/* ------------------------------------------------------------------ extents */

int idmap_extents(const struct idmap_facts *f, uint32_t slot, uint32_t payload_id, bool groups,
                  struct idmap_extent out[IDMAP_EXTENTS]) {
    const struct idmap_range *range = groups ? &f->sub_gid : &f->sub_uid;
    uint32_t own = groups ? f->gid : f->uid;
    uint32_t first = range->start + slot * f->block;

    switch (f->kind) {
    case IDMAP_BLOCK:
        if (f->block > 2 && payload_id < f->block) {
            out[0] = (struct idmap_extent){0, first, f->block};
            return 1;
        }
        if (f->block > 2) { /* the block's last id stands for one above the others */
            out[0] = (struct idmap_extent){0, first, f->block - 1};
            out[1] = (struct idmap_extent){payload_id, first + f->block - 1, 1};
            return 2;
        }
        out[0] = (struct idmap_extent){0, first, 1};
        if (payload_id == 0)
            return 1;
        out[1] = (struct idmap_extent){payload_id, first + 1, 1};
        return 2;
    case IDMAP_SUBID:
        out[0] = (struct idmap_extent){0, own, 1};
        if (payload_id == 0 && !groups)
            return 1;
        /* A gid map with no subordinate id in it makes newgidmap deny setgroups, and then the
         * caller's extra groups could not be dropped: so there is always one, used or not. */
        out[1] = (struct idmap_extent){payload_id ? payload_id : 1, first, 1};
        return 2;
    case IDMAP_SINGLE:
        break;
    }
    out[0] = (struct idmap_extent){payload_id, own, 1};
    return 1;
}

/* ------------------------------------------------------------------ lease */

/* What to do about a directory or file of locks that cannot be opened: by default it is one that is in the way. */
static const char *lock_remedy(int code) {
    switch (code) {
    case EROFS:
        return "remount that file system writable, or mount a tmpfs on the "
               "directory above";
    case ENOSPC:
    case EDQUOT:
        return "free some space, or inodes, there";
    case EACCES:
    case EPERM:
        return "root that lacks CAP_DAC_OVERRIDE may not go where it owns nothing: give it back, "
               "or chown the "
               "directory";
    default:
        return errno_remedy(code, "remove it; mayfly makes it anew");
    }
}

/* The directory must be ours alone: who can write there can take our slots, or lead us to another
 * file. */
static int open_lock_dir(const char *path, struct err *err) {
    struct stat st;

    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_errno(err, ERR_SETUP, -errno, "user",
                         errno == EROFS || errno == ENOSPC
                             ? lock_remedy(errno)
                             : "its parent must exist and be writable",
                         "mkdir %s", path);
    int fd _cleanup_fd_ = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
        return err_set(err, ERR_SETUP, -ENOTDIR, "user", "remove it; mayfly makes it anew",
                       "%s is a symbolic link or not a directory", path);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(err, ERR_SETUP, -errno, "user", lock_remedy(errno), "open %s", path);
    if (st.st_uid != geteuid())
        return err_set(err, ERR_SETUP, -EPERM, "user", "its owner or root must remove it",
                       "%s belongs to uid %u, not to uid %u", path, st.st_uid, geteuid());
    if (st.st_mode & 022)
        return err_set(err, ERR_SETUP, -EPERM, "user", "chmod 700 it, or remove it",
                       "%s may be written by others (mode %03o)", path, st.st_mode & 0777);
    return TAKE_FD(fd);
}

int idmap_lease(const struct idmap_facts *f, uint32_t *ret_slot, int *ret_fd, struct err *err) {
    struct timespec now;

    if (f->kind == IDMAP_SINGLE) {
        *ret_slot = 0;
        *ret_fd = -1;
        return 0;
    }
    int dir _cleanup_fd_ = open_lock_dir(f->lock_dir, err);
    if (dir < 0)
        return dir;
    int fd _cleanup_fd_ = openat(dir, "ids.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, ERR_SETUP, -errno, "user", lock_remedy(errno), "open %s/ids.lock",
                         f->lock_dir);

    /* Boxes started at the same time begin at different slots, so they do not walk through each
     * other's locks. */
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    uint32_t at = ((uint32_t)getpid() * 2654435761u) ^ (uint32_t)now.tv_nsec;
    for (uint32_t i = 0; i < f->slots; i++) {
        uint32_t slot = (uint32_t)(((uint64_t)at + i) % f->slots);
        struct flock lock = {
            .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)slot, .l_len = 1};

        if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
            *ret_slot = slot;
            *ret_fd = TAKE_FD(fd);
            return 0;
        }
        if (errno != EAGAIN && errno != EACCES)
            return err_errno(err, ERR_SETUP, -errno, "user",
                             "the directory must be on a file system that can lock",
                             "lock a byte of %s/ids.lock", f->lock_dir);
    }
    return err_set(err, ERR_SETUP, -EAGAIN, "user", "wait for a box to end, or add subordinate ids",
                   "all %u slots of ids are taken by living boxes", f->slots);
}
