/*
 * peer_oci.c: the bundle that an OCI runtime is given: `runc spec` (opencontainers/runc, libcontainer/specconv) as of
 * 1.1, with these changes, all of them towards safety: no terminal, no capabilities, the policy's user and limits, and
 * a /tmp in memory. It has no user namespace and no seccomp filter, because `runc spec` has none: what Docker and
 * Podman put on top of it is theirs.
 */
#include "lab/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

static json_t *strings(const char *const *list, size_t n) {
    json_t *array = json_array();

    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(array, json_string(list[i]));
    return array;
}
#define STRINGS(...)                                                                               \
    strings((const char *const[]){__VA_ARGS__},                                                    \
            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* ------------------------------------------------------------------ what is executed, and as whom */

/* As `runc spec` has it, but for what the probe lowers. */
static json_t *rlimits(const struct policy *p) {
    json_t *array = json_pack("[{s:s, s:I, s:I}]", "type", "RLIMIT_NOFILE", "hard",
                              (json_int_t)p->nofile, "soft", (json_int_t)p->nofile);

    for (int i = 0; i < p->n_ulimit; i++) {
        const struct policy_ulimit *u = &p->ulimit[i];
        char type[32] = "RLIMIT_";
        const char *name = policy_ulimit_name(u->resource);
        size_t k = strlen(type);

        if (strcmp(name, "nofile") == 0)
            (void)json_array_clear(array);
        for (; *name && k < sizeof(type) - 1; name++)
            type[k++] = (char)(*name - ('a' <= *name && *name <= 'z') * ('a' - 'A'));
        type[k] = '\0';
        (void)json_array_append_new(array,
                                    json_pack("{s:s, s:I, s:I}", "type", type, "hard",
                                              (json_int_t)u->hard, "soft", (json_int_t)u->soft));
    }
    return array;
}

static json_t *process(const struct job *job) {
    const struct policy *p = job->policy;
    json_t *env = json_pack("[s, s]", "PATH=" POLICY_PATH, "HOME=/tmp"), *args = json_array();

    for (int i = 0; i < p->n_env; i++)
        (void)json_array_append_new(env, json_string(p->env[i]));
    for (const char *const *a = p->argv; a && *a; a++)
        (void)json_array_append_new(args, json_string(*a));
    /* Who is not root has one id to give, which the container sees as 0. */
    return json_pack(
        "{s:b, s:{s:i, s:i}, s:o, s:o, s:s, s:{s:[], s:[], s:[], s:[], s:[]}, s:o, s:b}",
        "terminal", 0, "user", "uid", job->root ? (int)p->uid : 0, "gid",
        job->root ? (int)p->gid : 0, "args", args, "env", env, "cwd", p->workdir ? p->workdir : "/",
        "capabilities", "bounding", "effective", "permitted", "inheritable", "ambient", "rlimits",
        rlimits(p), "noNewPrivileges", 1);
}

/* ------------------------------------------------------------------ what is mounted */

static json_t *mount_of(const char *where, const char *type, const char *source, json_t *options) {
    json_t *m = json_pack("{s:s, s:s, s:s}", "destination", where, "type", type, "source", source);

    if (options)
        (void)json_object_set_new(m, "options", options);
    return m;
}

static json_t *mounts(const struct job *job) {
    const struct policy *p = job->policy;
    char size[48];
    json_t *all = json_array();

    (void)snprintf(size, sizeof(size), "size=%llu", (unsigned long long)p->tmp_bytes);
    (void)json_array_append_new(all, mount_of("/proc", "proc", "proc", NULL));
    (void)json_array_append_new(
        all, mount_of("/dev", "tmpfs", "tmpfs",
                      STRINGS("nosuid", "strictatime", "mode=755", "size=65536k")));
    (void)json_array_append_new(all,
                                mount_of("/dev/pts", "devpts", "devpts",
                                         job->root ? STRINGS("nosuid", "noexec", "newinstance",
                                                             "ptmxmode=0666", "mode=0620", "gid=5")
                                                   : STRINGS("nosuid", "noexec", "newinstance",
                                                             "ptmxmode=0666", "mode=0620")));
    (void)json_array_append_new(
        all, mount_of("/dev/shm", "tmpfs", "shm",
                      STRINGS("nosuid", "noexec", "nodev", "mode=1777", "size=65536k")));
    (void)json_array_append_new(
        all, mount_of("/dev/mqueue", "mqueue", "mqueue", STRINGS("nosuid", "noexec", "nodev")));
    (void)json_array_append_new(
        all, job->root
                 ? mount_of("/sys", "sysfs", "sysfs", STRINGS("nosuid", "noexec", "nodev", "ro"))
                 : mount_of("/sys", "none", "/sys",
                            STRINGS("rbind", "nosuid", "noexec", "nodev", "ro")));
    if (job->root)
        (void)json_array_append_new(
            all, mount_of("/sys/fs/cgroup", "cgroup", "cgroup",
                          STRINGS("nosuid", "noexec", "nodev", "relatime", "ro")));
    (void)json_array_append_new(all,
                                mount_of("/tmp", "tmpfs", "tmpfs",
                                         STRINGS("nosuid", "noexec", "nodev", "mode=1777", size)));
    for (int i = 0; i < p->n_bind; i++)
        (void)json_array_append_new(all,
                                    mount_of(p->bind[i].target, "bind", p->bind[i].source,
                                             STRINGS("rbind", p->bind[i].writable ? "rw" : "ro")));
    return all;
}

/* ------------------------------------------------------------------ namespaces, limits, masks */

static json_t *resources(const struct job *job) {
    const struct policy *p = job->policy;
    const int period_us = 100000;

    if (!job->root) /* as `runc spec --rootless`: it owns no cgroup */
        return NULL;
    return json_pack("{s:[{s:b, s:s}], s:{s:I, s:I}, s:{s:I, s:i}, s:{s:i}}", "devices", "allow", 0,
                     "access", "rwm", "memory", "limit", (json_int_t)p->memory_bytes, "swap",
                     (json_int_t)p->memory_bytes, "cpu", "quota",
                     (json_int_t)p->cpu_milli * period_us / 1000, "period", period_us, "pids",
                     "limit", (int)p->pids);
}

static json_t *linux_part(const struct job *job) {
    json_t *part = json_pack(
        "{s:[{s:s}, {s:s}, {s:s}, {s:s}, {s:s}], s:o, s:o}", "namespaces", "type", "pid", "type",
        "network", "type", "ipc", "type", "uts", "type", "mount", "maskedPaths",
        STRINGS("/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
                "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/sys/firmware",
                "/proc/scsi"),
        "readonlyPaths",
        STRINGS("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"));
    json_t *namespaces = json_object_get(part, "namespaces"), *limits = resources(job);
    char path[1024];

    if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) ==
        0) /* so does `runc spec`, on pure v2 */
        (void)json_array_append_new(namespaces, json_pack("{s:s}", "type", "cgroup"));
    if (limits)
        (void)json_object_set_new(part, "resources", limits);
    if (job->cgroups[0]) {
        (void)snprintf(path, sizeof(path), "%.700s/%.200s", job->cgroups, job->id);
        (void)json_object_set_new(part, "cgroupsPath", json_string(path));
    }
    if (!job->root) {
        (void)json_array_append_new(namespaces, json_pack("{s:s}", "type", "user"));
        (void)json_object_update_new(
            part, json_pack("{s:[{s:i, s:i, s:i}], s:[{s:i, s:i, s:i}]}", "uidMappings",
                            "containerID", 0, "hostID", (int)geteuid(), "size", 1, "gidMappings",
                            "containerID", 0, "hostID", (int)getegid(), "size", 1));
    }
    return part;
}

int peer_bundle(const struct job *job) {
    char path[PATH_MAX];
    json_t *spec = json_pack("{s:s, s:o, s:{s:s, s:b}, s:s, s:o, s:o}", "ociVersion", "1.0.2",
                             "process", process(job), "root", "path", job->rootfs, "readonly", 1,
                             "hostname", "peer", "mounts", mounts(job), "linux", linux_part(job));
    _cleanup_free_ char *text = spec ? json_dumps(spec, JSON_INDENT(2)) : NULL;

    json_decref(spec);
    if (!text)
        return -ENOMEM;
    (void)snprintf(path, sizeof(path), "%.3800s/bundle", job->state);
    if (mkdir(path, 0700) < 0)
        return -errno;
    (void)snprintf(path, sizeof(path), "%.3800s/bundle/config.json", job->state);
    int fd _cleanup_fd_ = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd_write_full(fd, text, strlen(text));
}
