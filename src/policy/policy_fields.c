/*
 * policy_fields.c: the table of fields: name, flag, parser, range, help. JSON, the
 * command line, its help and the library's policy_set are all made from it.
 *
 * The flags are docker run's where docker has one, with docker's meaning, but
 * for one: a volume is read-only unless it says rw.
 */
#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/units.h"

#include "base/banned.h"

static int bad(struct err *err, const char *flag, const char *value, const char *why) {
    return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "%s: \"%s\": %s", flag, value, why);
}

static int too_many(struct err *err, const char *flag, const char *value, int most) {
    return err_set(err, ERR_USAGE, -EINVAL, "", NULL,
                   "%s: \"%s\": too many of them, a box takes %d", flag, value, most);
}

static const char *copy(struct policy *p, const char *s, size_t len, struct err *err) {
    const char *c = arena_strndup(&p->arena, s, len);

    if (!c)
        (void)err_oom(err);
    return c;
}

/* A path in the box that something may be mounted on or started in: absolute, plain, and not the kernel's. */
static const char *path_fault(const char *path, bool mount) {
    static const char *const kernel[] = {"/proc", "/sys", "/dev"};

    if (path[0] != '/')
        return "must be an absolute path in the box";
    if (strlen(path) > 1024)
        return "is too long";
    for (const char *p = path; *p; p++) {
        if (*p != '/')
            continue;
        if (p[1] == '/' || (p[1] == '\0' && p != path))
            return "must be written plainly, without // and without a / at the end";
        if (p[1] == '.' && (p[2] == '/' || p[2] == '\0' || (p[2] == '.' && (p[3] == '/' || !p[3]))))
            return "must not hold . or .. parts";
    }
    for (const char *p = path; *p; p++)
        if ((unsigned char)*p < 32 || *p == ',' || *p == ':')
            return "must not hold control characters, commas or colons";
    if (mount && path[1] == '\0')
        return "is the root, which --rootfs sets";
    for (size_t i = 0; i < ARRAY_LEN(kernel); i++) {
        size_t len = strlen(kernel[i]);
        if (strncmp(path, kernel[i], len) == 0 && (path[len] == '\0' || path[len] == '/') &&
            strcmp(path, "/dev/shm") != 0)
            return "is below /proc, /sys or /dev, which are the box's own";
    }
    return NULL;
}

/* ------------------------------------------------------------------ limits */

static int set_memory_swap(struct policy *p, const char *value, struct err *err) {
    uint64_t total = 0;

    if (strcmp(value, "-1") == 0)
        return bad(err, "--memory-swap", value, "a box never has unlimited swap; name a size");
    if (parse_bytes(value, &total) < 0 || total > UINT64_C(2) << 40)
        return bad(err, "--memory-swap", value, "is not a size up to 2 TiB; write it like 512m");
    p->memory_swap_bytes = total;
    return 0;
}

static int set_output(struct policy *p, const char *value, struct err *err) {
    char size[64];
    const char *colon = strchr(value, ':');
    size_t len = colon ? (size_t)(colon - value) : strlen(value);
    uint64_t bytes = 0;

    if (len >= sizeof(size) || (colon && strcmp(colon, ":kill") != 0))
        return bad(err, "--max-output", value, "write SIZE, or SIZE:kill to end the run there");
    memcpy(size, value, len);
    size[len] = '\0';
    if (parse_bytes(size, &bytes) < 0 || bytes < 1 || bytes > UINT64_C(1) << 30)
        return bad(err, "--max-output", value, "is not a size between 1 byte and 1 GiB");
    p->output_bytes = bytes;
    p->output_kills = colon != NULL;
    return 0;
}

static int set_limits(struct policy *p, const char *value, struct err *err) {
    if (strcmp(value, "strict") != 0 && strcmp(value, "best-effort") != 0)
        return bad(err, "--limits", value, "is neither strict nor best-effort");
    p->best_effort = value[0] == 'b';
    return 0;
}

static const struct {
    const char *name;
    int resource;
} known_ulimits[] = {
    {"as", RLIMIT_AS},
    {"core", RLIMIT_CORE},
    {"cpu", RLIMIT_CPU},
    {"data", RLIMIT_DATA},
    {"fsize", RLIMIT_FSIZE},
    {"memlock", RLIMIT_MEMLOCK},
    {"msgqueue", RLIMIT_MSGQUEUE},
    {"nofile", RLIMIT_NOFILE},
    {"nproc", RLIMIT_NPROC},
    {"sigpending", RLIMIT_SIGPENDING},
    {"stack", RLIMIT_STACK},
};

const char *policy_ulimit_name(int resource) {
    for (size_t i = 0; i < ARRAY_LEN(known_ulimits); i++)
        if (known_ulimits[i].resource == resource)
            return known_ulimits[i].name;
    return "?";
}

static int set_ulimit(struct policy *p, const char *value, struct err *err) {
    struct policy_ulimit *u = &p->ulimit[p->n_ulimit];
    const char *eq = strchr(value, '=');
    char text[64];
    size_t i = 0;

    if (p->n_ulimit == POLICY_ULIMITS)
        return too_many(err, "--ulimit", value, POLICY_ULIMITS);
    while (eq && i < ARRAY_LEN(known_ulimits) &&
           (strlen(known_ulimits[i].name) != (size_t)(eq - value) ||
            strncmp(known_ulimits[i].name, value, (size_t)(eq - value)) != 0))
        i++;
    if (!eq || i == ARRAY_LEN(known_ulimits))
        return bad(
            err, "--ulimit", value,
            "write NAME=SOFT[:HARD] with NAME one of as core cpu data fsize memlock msgqueue "
            "nofile nproc sigpending stack");
    if (!str_copy(text, sizeof(text), eq + 1))
        return bad(err, "--ulimit", value, "is too long");
    char *hard = strchr(text, ':');
    if (hard)
        *hard++ = '\0';
    if (parse_u64(text, &u->soft) < 0 || parse_u64(hard ? hard : text, &u->hard) < 0 ||
        u->soft > u->hard)
        return bad(err, "--ulimit", value, "the limits are whole numbers, soft at most hard");
    if (known_ulimits[i].resource == RLIMIT_CORE && u->hard > 1)
        return bad(err, "--ulimit", value, "a core dump would run the host's handler");
    if (known_ulimits[i].resource == RLIMIT_NOFILE && u->soft < POLICY_LEAST_FILES)
        return bad(err, "--ulimit", value, "a box takes 16 open files to be built, so no fewer");
    u->resource = known_ulimits[i].resource;
    p->n_ulimit++;
    return 0;
}

/* ------------------------------------------------------------------ files */

/* The next of comma-separated options; false at the end. One that is too long for any meaning comes out empty, which no
 * option is. */
static bool next_option(const char **at, char *out, size_t size) {
    size_t len = strcspn(*at, ",");

    if (!**at)
        return false;
    if (len >= size)
        len = 0;
    memcpy(out, *at, len);
    out[len] = '\0';
    *at += strcspn(*at, ",");
    if (**at)
        (*at)++;
    return true;
}

/* strtoul would take a sign or blanks before it, too. */
static bool parse_mode(const char *s, uint32_t *ret) {
    size_t len = strspn(s, "01234567");

    if (len == 0 || len > 5 || s[len])
        return false;
    unsigned long mode = strtoul(s, NULL, 8);
    if (mode > 01777)
        return false;
    *ret = (uint32_t)mode;
    return true;
}

static int tmpfs_option(struct policy_tmpfs *t, const char *option, const char *flag,
                        const char *value, struct err *err) {
    if (strncmp(option, "size=", 5) == 0 || strncmp(option, "tmpfs-size=", 11) == 0) {
        if (parse_bytes(strchr(option, '=') + 1, &t->size_bytes) < 0 || t->size_bytes < 4096)
            return bad(err, flag, value, "the size is not a size of at least 4k");
    } else if (strncmp(option, "inodes=", 7) == 0 || strncmp(option, "nr_inodes=", 10) == 0) {
        if (parse_u64(strchr(option, '=') + 1, &t->inodes) < 0 || t->inodes < 2)
            return bad(err, flag, value, "inodes is not a whole number of at least 2");
    } else if (strncmp(option, "mode=", 5) == 0 || strncmp(option, "tmpfs-mode=", 11) == 0) {
        if (!parse_mode(strchr(option, '=') + 1, &t->mode))
            return bad(err, flag, value, "mode is not an octal mode such as 1777");
    } else if (strcmp(option, "exec") == 0 || strcmp(option, "suid") == 0 ||
               strcmp(option, "dev") == 0) {
        return bad(err, flag, value, "a tmpfs in a box is always noexec, nosuid and nodev");
    } else if (strcmp(option, "noexec") != 0 && strcmp(option, "nosuid") != 0 &&
               strcmp(option, "nodev") != 0 && strcmp(option, "rw") != 0) {
        return bad(err, flag, value,
                   "takes size=, inodes=, mode= (and noexec,nosuid,nodev,rw, which it always is)");
    }
    return 0;
}

static int add_tmpfs(struct policy *p, struct policy_tmpfs t, const char *flag, const char *value,
                     struct err *err) {
    const char *why = path_fault(t.path, true);

    if (why)
        return bad(err, flag, value, why);
    if (p->n_tmpfs == POLICY_TMPFS)
        return too_many(err, flag, value, POLICY_TMPFS);
    p->tmpfs[p->n_tmpfs++] = t;
    return 0;
}

static int set_tmpfs(struct policy *p, const char *value, struct err *err) {
    size_t len = strcspn(value, ":");
    const char *at = value[len] ? value + len + 1 : value + len;
    struct policy_tmpfs t = {.path = copy(p, value, len, err)};
    char option[128];

    if (!t.path)
        return -ENOMEM;
    while (next_option(&at, option, sizeof(option))) {
        int r = tmpfs_option(&t, option, "--tmpfs", value, err);
        if (r < 0)
            return r;
    }
    return add_tmpfs(p, t, "--tmpfs", value, err);
}

static int add_bind(struct policy *p, const char *source, size_t source_len, const char *target,
                    size_t target_len, bool writable, const char *flag, const char *value,
                    struct err *err) {
    char given[4096], real[PATH_MAX];

    if (p->n_bind == POLICY_BINDS)
        return too_many(err, flag, value, POLICY_BINDS);
    if (source_len == 0 || source_len >= sizeof(given))
        return bad(err, flag, value, "names no source");
    memcpy(given, source, source_len);
    given[source_len] = '\0';
    if (given[0] != '/' && given[0] != '.')
        return bad(err, flag, value,
                   "there are no named volumes here: name a path that begins with / or ./");
    if (!realpath(given, real))
        return err_errno(err, ERR_USAGE, -errno, "binds", "name a directory or file that is there",
                         "%s: %s", flag, given);
    struct policy_bind b = {.source = copy(p, real, strlen(real), err),
                            .target = copy(p, target, target_len, err),
                            .writable = writable};
    if (!b.source || !b.target)
        return -ENOMEM;
    const char *why = path_fault(b.target, true);
    if (why)
        return bad(err, flag, value, why);
    p->bind[p->n_bind++] = b;
    return 0;
}

static int set_volume(struct policy *p, const char *value, struct err *err) {
    const char *target = strchr(value, ':');
    const char *options = target ? strchr(target + 1, ':') : NULL;
    bool writable = false;

    if (!target)
        return bad(err, "--volume", value, "write SOURCE:TARGET or SOURCE:TARGET:rw");
    if (options && strcmp(options, ":rw") == 0)
        writable = true;
    else if (options && strcmp(options, ":ro") != 0)
        return bad(err, "--volume", value, "takes the options ro and rw only");
    size_t len = options ? (size_t)(options - target - 1) : strlen(target + 1);
    return add_bind(p, value, (size_t)(target - value), target + 1, len, writable, "--volume",
                    value, err);
}

static int set_mount(struct policy *p, const char *value, struct err *err) {
    char option[4200], type[16] = "bind", source[4096] = "", target[1100] = "";
    struct policy_tmpfs t = {0};
    bool writable = true, fits = true;
    const char *at = value;

    if (strncmp(value, "type=tmpfs,", 11) == 0 || strstr(value, ",type=tmpfs"))
        (void)str_copy(type, sizeof(type), "tmpfs"); /* its options may come before it */
    while (next_option(&at, option, sizeof(option))) {
        const char *eq = strchr(option, '=');
        size_t len = eq ? (size_t)(eq - option) : strlen(option);
        const char *v = eq ? eq + 1 : "";
#define NAMED(word) (len == sizeof(word) - 1 && strncmp(option, word, len) == 0)
        if (NAMED("type"))
            fits = str_copy(type, sizeof(type), v);
        else if (NAMED("src") || NAMED("source"))
            fits = str_copy(source, sizeof(source), v);
        else if (NAMED("dst") || NAMED("target") || NAMED("destination"))
            fits = str_copy(target, sizeof(target), v);
        else if (NAMED("readonly") || NAMED("ro"))
            writable = strcmp(v, "false") == 0 || strcmp(v, "0") == 0;
        else if (strcmp(type, "tmpfs") == 0) {
            int r = tmpfs_option(&t, option, "--mount", value, err);
            if (r < 0)
                return r;
        } else
            return bad(err, "--mount", value, "takes type=, src=, dst=, readonly, tmpfs-size=");
#undef NAMED
        if (!fits)
            return bad(err, "--mount", value, "a part of it is too long");
    }
    if (strcmp(type, "tmpfs") == 0) {
        if (!writable || source[0])
            return bad(err, "--mount", value,
                       "a tmpfs has no source, and nothing to be read in it");
        t.path = copy(p, target, strlen(target), err);
        return t.path ? add_tmpfs(p, t, "--mount", value, err) : -ENOMEM;
    }
    if (strcmp(type, "bind") != 0)
        return bad(err, "--mount", value, "its type is neither bind nor tmpfs");
    return add_bind(p, source, strlen(source), target, strlen(target), writable, "--mount", value,
                    err);
}

/* What the file holds now, as the caller may read it: a pipe will do too, as `<(command)` gives one. */
static int set_file(struct policy *p, const char *value, struct err *err) {
    const char *eq = strchr(value, '=');
    char name[1025], *text _cleanup_free_ = NULL;
    size_t len = 0;

    if (!eq || eq == value || !eq[1])
        return bad(err, "--file", value, "write NAME=PATH: PATH is shown as /in/NAME");
    if ((size_t)(eq - value) >= sizeof(name))
        return bad(err, "--file", value, "the name is too long");
    memcpy(name, value, (size_t)(eq - value));
    name[eq - value] = '\0';
    int r = file_read_all_at(AT_FDCWD, eq + 1, POLICY_FILES_BYTES, &text, &len);
    if (r == -EFBIG)
        return bad(err, "--file", value, "is over 64 MiB; hand it in with --volume");
    if (r < 0)
        return err_errno(err, ERR_USAGE, r, "", r == -EISDIR ? "hand it in with --volume" : NULL,
                         "--file: %.300s", eq + 1);
    return policy_add_file(p, name, text, len, err);
}

static int set_out(struct policy *p, const char *value, struct err *err) {
    if (!*value)
        return bad(err, "--out", value, "names no directory");
    p->out = copy(p, value, strlen(value), err);
    return p->out ? 0 : -ENOMEM;
}

static int set_rootfs(struct policy *p, const char *value, struct err *err) {
    char real[PATH_MAX];

    if (!*value || !realpath(value, real))
        return err_errno(err, ERR_USAGE, *value ? -errno : -EINVAL, "mount",
                         "`make rootfs` builds one", "--rootfs: %s", value);
    p->rootfs = copy(p, real, strlen(real), err);
    p->image = NULL; /* the last word on what is the root */
    return p->rootfs ? 0 : -ENOMEM;
}

/* What is a valid name is for the store to say, which finds it. */
static int set_image(struct policy *p, const char *value, struct err *err) {
    size_t len = strlen(value);

    if (!len || len > 1024)
        return bad(err, "--image", value, "names no image; write it like python:3.12-slim");
    p->image = copy(p, value, len, err);
    p->rootfs = NULL;
    return p->image ? 0 : -ENOMEM;
}

static int set_workdir(struct policy *p, const char *value, struct err *err) {
    char plain[PATH_MAX] = "/";
    /* As an image's WORKDIR is read, and Docker reads both. */
    bool fits = value[0] != '/' || path_plain(value, true, plain + 1, sizeof(plain) - 1);
    const char *dir = value[0] == '/' ? plain : value,
               *why = fits ? path_fault(dir, false) : "is too long";

    if (why)
        return bad(err, "--workdir", value, why);
    p->workdir = copy(p, dir, strlen(dir), err);
    return p->workdir ? 0 : -ENOMEM;
}

/* ------------------------------------------------------------------ the payload */

static int set_env(struct policy *p, const char *value, struct err *err) {
    const char *eq = strchr(value, '=');

    if (!eq || eq == value)
        return bad(err, "--env", value, "write NAME=VALUE");
    if (p->n_env == POLICY_ENV) /* the value may be a secret */
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "--env: %.*s: more than %d of them",
                       (int)MIN(eq - value, 64), value, POLICY_ENV);
    const char *c = copy(p, value, strlen(value), err);
    if (!c)
        return -ENOMEM;
    p->env[p->n_env++] = c;
    return 0;
}

/* "1000", "1000:100", "www-data", "app:staff": at most one colon, and nothing empty. */
static bool is_user(const char *value) {
    const char *colon = strchr(value, ':');
    size_t len = strlen(value);

    return len && len < 128 && value[0] != ':' && value[len - 1] != ':' && value[0] != '-' &&
           (!colon || !strchr(colon + 1, ':')) &&
           strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-$:") ==
               len;
}

static int set_user(struct policy *p, const char *value, struct err *err) {
    char text[128];
    uint32_t uid = 0, gid = 0;

    if (!is_user(value))
        return bad(err, "--user", value, "write UID, UID:GID, or names that the image knows");
    (void)str_copy(text, sizeof(text), value);
    char *colon = strchr(text, ':');
    if (colon)
        *colon++ = '\0';
    bool number = text[strspn(text, "0123456789")] == '\0',
         group = colon && colon[strspn(colon, "0123456789")] == '\0';
    if ((number && (parse_u32(text, &uid) < 0 || uid > 4000000000u)) ||
        (group && (parse_u32(colon, &gid) < 0 || gid > 4000000000u)))
        return bad(err, "--user", value, "an id is a number up to 4000000000");
    p->user = copy(p, value, strlen(value), err);
    /* Where there are names, the library asks the root for them. */
    p->uid = uid;
    p->gid = group ? gid : uid;
    return p->user ? 0 : -ENOMEM;
}

static int set_entrypoint(struct policy *p, const char *value, struct err *err) {
    p->entrypoint = copy(p, value, strlen(value), err);
    return p->entrypoint ? 0 : -ENOMEM;
}

static int set_hostname(struct policy *p, const char *value, struct err *err) {
    size_t len = strlen(value);

    if (len == 0 || len > 63 ||
        strspn(value, "abcdefghijklmnopqrstuvwxyz"
                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") != len)
        return bad(err, "--hostname", value, "takes 1 to 63 letters, digits, dots and dashes");
    p->hostname = copy(p, value, len, err);
    return p->hostname ? 0 : -ENOMEM;
}

/* ------------------------------------------------------------------ what is always so, and what can never be */

static int set_network(struct policy *p, const char *value, struct err *err) {
    (void)p;
    return strcmp(value, "none") == 0 ? 0
                                      : bad(err, "--network", value,
                                            "a box has no network; fetch what the code needs "
                                            "first, and hand it in with --volume");
}

static int set_cap_drop(struct policy *p, const char *value, struct err *err) {
    (void)p, (void)value, (void)err;
    return 0; /* all are dropped, always */
}

static int set_security_opt(struct policy *p, const char *value, struct err *err) {
    static const char *const always[] = {"no-new-privileges", "no-new-privileges=true",
                                         "no-new-privileges:true"};

    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        if (strcmp(value, always[i]) == 0)
            return 0;
    if (strncmp(value, "seccomp=", 8) != 0 || !value[8])
        return bad(err, "--security-opt", value,
                   "takes seccomp=FILE (a profile in Docker's format) "
                   "and no-new-privileges, which is always on");
    if (strcmp(value + 8, "unconfined") == 0)
        return bad(err, "--security-opt", value,
                   "a box never runs without a filter; name a profile that allows what you need");
    if (strcmp(value + 8, "builtin") == 0) {
        p->seccomp_profile = NULL;
        return 0;
    }
    p->seccomp_profile = copy(p, value + 8, strlen(value + 8), err);
    return p->seccomp_profile ? 0 : -ENOMEM;
}

#ifdef MAYFLY_LAB
/* Only in a build of the lab's own: to see what a control does, it has to be possible to do without it. */
static int set_without(struct policy *p, const char *value, struct err *err) {
    for (int i = 0; i < CTL__N; i++)
        if (strcmp(control_id_name((enum control_id)i), value) == 0) {
            p->controls &= ~BIT(i);
            return 0;
        }
    return bad(err, "--without", value, "is no control; `mayfly doctor` lists them");
}
#endif

/* ------------------------------------------------------------------ the table */

#define AT(member) offsetof(struct policy, member)
#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define HOUR_MS UINT64_C(3600000)

const struct policy_field policy_fields[] = {
    {"memory", "--memory", 'm', FIELD_BYTES, AT(memory_bytes), MIB, 1024 * GIB, .metavar = "SIZE",
     .help = "memory of the whole box, files in /tmp included (256m)"},
    {"memory-swap", "--memory-swap", 0, FIELD_CUSTOM, .metavar = "SIZE", .set = set_memory_swap,
     .help = "memory and swap together (as --memory: no swap)"},
    {"cpus", "--cpus", 0, FIELD_MILLI, AT(cpu_milli), 10, 1024000, .metavar = "N",
     .help = "CPUs' worth of time (1)"},
    {"pids-limit", "--pids-limit", 0, FIELD_COUNT, AT(pids), 2, 4194304, .small = true,
     .metavar = "N", .help = "processes and threads at once (128)"},
    {"timeout", "--timeout", 0, FIELD_DURATION, AT(wall_ms), 1, 168 * HOUR_MS, .metavar = "TIME",
     .help = "wall clock until the run is killed (10s)"},
    {"cpu-time", "--cpu-time", 0, FIELD_DURATION, AT(cpu_ms), 0, 168 * HOUR_MS, .metavar = "TIME",
     .help = "CPU time of all processes together (no limit but --timeout)"},
    {"max-output", "--max-output", 0, FIELD_CUSTOM, .metavar = "SIZE[:kill]", .set = set_output,
     .help = "bytes kept of each of stdout and stderr; :kill ends the run there (1m)"},
    {"tmp-size", "--tmp-size", 0, FIELD_BYTES, AT(tmp_bytes), 4 * KIB, 1024 * GIB,
     .metavar = "SIZE", .help = "size of /tmp, /dev/shm and home, each (64m)"},
    {"tmp-inodes", "--tmp-inodes", 0, FIELD_COUNT, AT(tmp_inodes), 16, 100000000, .metavar = "N",
     .help = "files in each of them (16384)"},
    {"ulimit", "--ulimit", 0, FIELD_CUSTOM, .list = true, .metavar = "NAME=SOFT[:HARD]",
     .set = set_ulimit, .help = "a limit of each process, as setrlimit(2) has them (nofile=1024)"},
    {"limits", "--limits", 0, FIELD_CUSTOM, .metavar = "strict|best-effort", .set = set_limits,
     .help = "what to do when a limit cannot be put in force: refuse, or say so (strict)"},
    {"cgroup-parent", "--cgroup-parent", 0, FIELD_TEXT, AT(cgroup_parent), .metavar = "DIR",
     .help = "cgroup below which the box's is made (found)"},

    {"rootfs", "--rootfs", 0, FIELD_CUSTOM, .metavar = "DIR", .set = set_rootfs,
     .help = "directory that is the box's root"},
    {"image", "--image", 0, FIELD_CUSTOM, .metavar = "NAME", .set = set_image,
     .help = "image of the store whose files are the box's root"},
    {"store", "--store", 0, FIELD_TEXT, AT(store), .metavar = "DIR",
     .help = "where images are kept (~/.local/share/mayfly, for root /var/lib/mayfly)"},
    {"read-only", "--read-only", 0, FIELD_BOOL, AT(read_only),
     .help = "the root cannot be written; "
             "=false keeps writes in memory and throws them away (true)"},
    {"build", "--build", 0, FIELD_BOOL, AT(build),
     .help =
         "the rootfs is an image being made: what is written stays, and uid 0 may chown (false)"},
    {"volume", "--volume", 'v', FIELD_CUSTOM, .list = true, .metavar = "SOURCE:TARGET[:rw]",
     .set = set_volume, .help = "show a directory or file of the host's, read-only unless :rw"},
    {"mount", "--mount", 0, FIELD_CUSTOM, .list = true,
     .metavar = "type=bind,src=…,dst=…[,readonly]", .set = set_mount,
     .help = "the same in docker's long form (writable unless readonly), or type=tmpfs"},
    {"tmpfs", "--tmpfs", 0, FIELD_CUSTOM, .list = true, .metavar = "PATH[:size=…,inodes=…,mode=…]",
     .set = set_tmpfs, .help = "one more place in memory, always noexec"},
    {"file", "--file", 0, FIELD_CUSTOM, .list = true, .metavar = "NAME=PATH", .set = set_file,
     .help = "put a copy of a file in, as /in/NAME, read-only"},
    {"out", "--out", 0, FIELD_CUSTOM, .metavar = "DIR", .set = set_out,
     .help = "bring back what the code leaves in /out; - with --json: in the result"},
    {"out-size", "--out-size", 0, FIELD_BYTES, AT(out_bytes), 4 * KIB, GIB, .metavar = "SIZE",
     .help = "size of /out, and the most that is brought back (64m)"},
    {"out-files", "--out-files", 0, FIELD_COUNT, AT(out_files), 1, 100000, .metavar = "N",
     .help = "the most files that are brought back (1000)"},
    {"workdir", "--workdir", 'w', FIELD_CUSTOM, .metavar = "DIR", .set = set_workdir,
     .help = "where the command starts (the image's, or /; else its home, /home/box)"},

    {"entrypoint", "--entrypoint", 0, FIELD_CUSTOM, .metavar = "COMMAND", .set = set_entrypoint,
     .help = "what runs in place of the image's ENTRYPOINT and CMD; empty: neither"},
    {"env", "--env", 'e', FIELD_CUSTOM, .list = true, .metavar = "NAME=VALUE", .set = set_env,
     .help = "a variable; nothing of the caller's environment is passed on its own"},
    {"user", "--user", 'u', FIELD_CUSTOM, .metavar = "USER[:GROUP]", .set = set_user,
     .help = "who the code is in the box, by number or name (the image's USER, else 1000)"},
    {"hostname", "--hostname", 0, FIELD_CUSTOM, .metavar = "NAME", .set = set_hostname,
     .help = "the box's host name (mayfly)"},
    {"interactive", "--interactive", 'i', FIELD_BOOL, AT(keep_stdin),
     .help = "pass standard input on (without: an end of file)"},
    {"attest", "--attest", 0, FIELD_BOOL, AT(attest),
     .help =
         "read every control back from the kernel before the code runs, and say so in the result"},

    {"network", "--network", 0, FIELD_CUSTOM, .metavar = "none", .set = set_network,
     .help = "accepted for docker's sake: none is all there is"},
    {"cap-drop", "--cap-drop", 0, FIELD_CUSTOM, .list = true, .metavar = "CAP", .set = set_cap_drop,
     .help = "accepted: all are dropped, always"},
    {"security-opt", "--security-opt", 0, FIELD_CUSTOM, .list = true, .metavar = "seccomp=FILE",
     .set = set_security_opt, .help = "another seccomp profile, in Docker's format"},
#ifdef MAYFLY_LAB
    {"without", "--without", 0, FIELD_CUSTOM, .list = true, .metavar = "CONTROL",
     .set = set_without, .help = "leave a control out"},
#endif
};
const size_t policy_n_fields = ARRAY_LEN(policy_fields);
