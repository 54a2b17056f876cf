/*
 * peer_table.c: the peers: how each is told to run code that one does not trust, and what it then has of each of
 * mayfly's controls.
 *
 * The words of a trait and of a reason go on after the peer's name. That they are true is what the attempts are for: a
 * control that has no entry here is taken to hold as mayfly's does, and a probe that gets past it is a fault.
 */
#include "lab/peer.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/banned.h"

#define WORDS(w, ...)                                                                              \
    for (const char *const *word_ = (const char *const[]){__VA_ARGS__, NULL}; *word_; word_++)     \
    words_add(w, "%s", *word_)

static void add_command(struct words *w, const struct policy *p) {
    for (const char *const *a = p->argv; a && *a; a++)
        words_add(w, "%s", *a);
}

/* ------------------------------------------------------------------ bubblewrap */

static void bwrap(struct words *w, const struct job *job) {
    const struct policy *p = job->policy;

    WORDS(w, "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
          "--clearenv", "--setenv", "PATH", POLICY_PATH, "--setenv", "HOME", "/tmp");
    for (int i = 0; i < p->n_env; i++) {
        size_t name = strcspn(p->env[i], "=");
        words_add(w, "--setenv");
        words_add(w, "%.*s", (int)name, p->env[i]);
        words_add(w, "%s", p->env[i][name] ? p->env[i] + name + 1 : "");
    }
    WORDS(w, "--ro-bind", job->rootfs, "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp");
    for (int i = 0; i < p->n_bind; i++)
        WORDS(w, p->bind[i].writable ? "--bind" : "--ro-bind", p->bind[i].source,
              p->bind[i].target);
    WORDS(w, "--chdir", p->workdir ? p->workdir : "/", "--");
    add_command(w, p);
}

static const struct trait bwrap_traits[] = {
    {CTL_DEV, "gives the code pseudo-terminals: a /dev/ptmx, of a devpts of its own", ANYBODYS},
    {CTL_UTS,
     "leaves the host's name to be read in its UTS namespace, unless it is given another "
     "(--hostname)",
     ANYBODYS},
    {CTL_MEMORY, "limits no memory", ANYBODYS},
    {CTL_CPU, "limits no processor time", ANYBODYS},
    {CTL_PIDS, "limits no number of processes", ANYBODYS},
    {CTL_DEADLINE, "ends nothing by itself: it has no time limit", ANYBODYS},
    {CTL_USER,
     "gives the code its caller's own user id (root's, where root starts it) in a new "
     "user namespace, and with it the caller's rights on the host; and it leaves further "
     "user namespaces open to the code (--disable-userns would close them)",
     ANYBODYS},
    {CTL_PROC, "mounts a /proc in which little is masked: a few of its directories are read-only",
     ANYBODYS},
    {CTL_TMP, "mounts a /tmp without noexec, and without a limit of its own on size or inodes",
     ANYBODYS},
    {CTL_RLIMITS, "sets no rlimits", ANYBODYS},
    {CTL_FDS, "hands on whatever descriptors its caller left open", ANYBODYS},
    {CTL_IDENTITY, "leaves the code the user it was started by", ANYBODYS},
    {CTL_LANDLOCK, "uses no Landlock", ANYBODYS},
    {CTL_SECCOMP, "loads no seccomp filter unless it is handed one (--seccomp)", ANYBODYS},
    {CTL_CAPTURE, "passes output through as it is", ANYBODYS},
    {0, NULL, ANYBODYS},
};
static const struct reason bwrap_reasons[] = {
    {"LK4", "hands on whatever descriptors its caller left open, here one of a file that is not in "
            "the sandbox"},
    {"PR7 LK3", "is process 1 in there itself, with its caller's environment and under the code's "
                "own user id, so the code "
                "may read it"},
    {"LK8",
     "returns when the command has ended, and what else was in there may live on for a moment"},
    {"SY6 SY6b", "is process 1 in there itself, under the code's own user id"},
    {"PS1b", "is process 1 in there itself, under the code's own user id, so the code may signal "
             "it, and only the kernel's "
             "care for a namespace's process 1 makes nothing of it"},
    {NULL, NULL},
};

/* ------------------------------------------------------------------ OCI runtimes */

static void oci_run(struct words *w, const struct job *job, const char *const *flags) {
    words_add(w, "%s", flags[0]);
    for (const char *const *f = flags + 1; *f; f++)
        words_add(w, "%s", *f);
    words_add(w, "--root");
    words_add(w, "%s/runs", job->state);
    words_add(w, "run");
    words_add(w, "--bundle");
    words_add(w, "%s/bundle", job->state);
    words_add(w, "%s", job->id);
}

static void oci_delete(struct words *w, const struct job *job, const char *program) {
    words_add(w, "%s", program);
    words_add(w, "--root");
    words_add(w, "%s/runs", job->state);
    WORDS(w, "delete", "--force", job->id);
}

static void runc(struct words *w, const struct job *job) {
    oci_run(w, job, (const char *const[]){"runc", NULL});
}
static void runc_delete(struct words *w, const struct job *job) { oci_delete(w, job, "runc"); }
static void crun(struct words *w, const struct job *job) {
    oci_run(w, job, (const char *const[]){"crun", NULL});
}
static void crun_delete(struct words *w, const struct job *job) { oci_delete(w, job, "crun"); }
static void runsc(struct words *w, const struct job *job) {
    oci_run(w, job, (const char *const[]){"runsc", "--network=none", "--host-uds=none", NULL});
}
static void runsc_delete(struct words *w, const struct job *job) { oci_delete(w, job, "runsc"); }

/* clang-format off */
#define USERS_TRAITS \
    {CTL_MEMORY, "limits no memory where a user runs it who owns no cgroup", USERS}, \
    {CTL_CPU, "limits no processor time where a user runs it who owns no cgroup", USERS}, \
    {CTL_PIDS, "limits no number of processes where a user runs it who owns no cgroup", USERS}, \
    {CTL_IDENTITY, "leaves the code the user it was started by", USERS}, \
    {CTL_USER, "gives the code its caller's own user id in a new user namespace, and leaves further user namespaces " \
               "open to it", USERS}

#define OCI_TRAITS \
    USERS_TRAITS, \
    {CTL_DEV, "gives the code pseudo-terminals: a /dev/ptmx, of a devpts of its own", ANYBODYS}, \
    {CTL_DEADLINE, "ends nothing by itself: it has no time limit", ANYBODYS}, \
    {CTL_USER, "makes no user namespace unless the bundle asks for one, and `runc spec` does not: user ids in it are " \
               "the host's", ROOTS}, \
    {CTL_CGROUPNS, "shows the path of its cgroup on the host, where cgroups are v1", ANYBODYS}, \
    {CTL_RLIMITS, "limits the number of open files and nothing else of a process", ANYBODYS}, \
    {CTL_LANDLOCK, "uses no Landlock", ANYBODYS}, \
    {CTL_CAPTURE, "passes output through as it is", ANYBODYS}

#define ENGINE_TRAITS \
    USERS_TRAITS, \
    {CTL_DEV, "gives the code pseudo-terminals: a /dev/ptmx, of a devpts of its own", ANYBODYS}, \
    {CTL_USER, "makes no user namespace unless it is asked to (--userns, userns-remap): user ids in it are the " \
               "host's", ROOTS}, \
    {CTL_CGROUPNS, "shows the path of its cgroup on the host, where cgroups are v1", ANYBODYS}, \
    {CTL_RLIMITS, "limits the number of open files and of processes, and nothing else of a process", ANYBODYS}, \
    {CTL_LANDLOCK, "uses no Landlock", ANYBODYS}, \
    {CTL_SECCOMP, "has a default seccomp filter that must serve every image, and it lets this pass", ANYBODYS}, \
    {CTL_CAPTURE, "passes output through as it is", ANYBODYS}
/* clang-format on */

static const struct trait runc_traits[] = {
    OCI_TRAITS,
    {CTL_SECCOMP, "loads no seccomp filter unless the bundle has one, and `runc spec` writes none",
     ANYBODYS},
    {0, NULL, ANYBODYS},
};

/* clang-format off */
#define OCI_REASONS \
    {"PR3", "masks /proc/keys, kcore and timer_list, and leaves key-users and kallsyms"}, \
    {"PR4", "mounts the host's /sys, read-only"}, \
    {"FS12", "limits a tmpfs in size and not in inodes, unless it is told nr_inodes"}, \
    {"SK12", "gives an ordinary user's code the user id 0 of its namespace and process id 1, so it says the truth"}, \
    {"PS7b", "has no init: the code is process 1 itself, and orphans stay zombies until it waits for them"}
/* clang-format on */

static const struct reason runc_reasons[] = {OCI_REASONS, {NULL, NULL}};

static const struct trait runsc_traits[] = {
    {CTL_DEADLINE, "ends nothing by itself: it has no time limit", ANYBODYS},
    {CTL_USER, "has user ids of its own kernel", ANYBODYS},
    {CTL_RLIMITS, "limits the number of open files and nothing else of a process", ANYBODYS},
    {CTL_LANDLOCK,
     "has no Landlock inside: what the code asks for is answered by its own kernel, Sentry",
     ANYBODYS},
    {CTL_SECCOMP, "answers the call itself, by its own kernel, Sentry; the host's never sees it",
     ANYBODYS},
    {CTL_CAPTURE, "passes output through as it is", ANYBODYS},
    {0, NULL, ANYBODYS},
};
static const struct reason runsc_reasons[] = {
    {"PR4", "shows a /sys of its own making"},
    {"PS7b",
     "has no init: the code is process 1 itself, and orphans stay zombies until it waits for them"},
    {NULL, NULL},
};

/* ------------------------------------------------------------------ Docker and Podman */

static void engine_flags(struct words *w, const struct job *job) {
    const struct policy *p = job->policy;

    WORDS(w, "run", "--rm", "--network=none", "--read-only", "--cap-drop=all",
          "--security-opt=no-new-privileges");
    words_add(w, "--user=%u:%u", p->uid, p->gid);
    words_add(w, "--memory=%llub", (unsigned long long)p->memory_bytes);
    words_add(w, "--memory-swap=%llub", (unsigned long long)p->memory_bytes);
    words_add(w, "--cpus=%u.%03u", p->cpu_milli / 1000, p->cpu_milli % 1000);
    words_add(w, "--pids-limit=%u", p->pids);
    words_add(w, "--ulimit=nproc=%d:%d", 1024, 1024);
    bool nofile = false;
    for (int i = 0; i < p->n_ulimit; i++) {
        const struct policy_ulimit *u = &p->ulimit[i];
        words_add(w, "--ulimit=%s=%lld:%lld", policy_ulimit_name(u->resource), (long long)u->soft,
                  (long long)u->hard);
        nofile |= u->resource == RLIMIT_NOFILE;
    }
    if (!nofile)
        words_add(w, "--ulimit=nofile=%llu:%llu", (unsigned long long)p->nofile,
                  (unsigned long long)p->nofile);
    words_add(w, "--tmpfs=/tmp:rw,noexec,nosuid,nodev,size=%llu", (unsigned long long)p->tmp_bytes);
    for (int i = 0; i < p->n_bind; i++)
        words_add(w, "--volume=%s:%s:%s", p->bind[i].source, p->bind[i].target,
                  p->bind[i].writable ? "rw" : "ro");
    for (int i = 0; i < p->n_env; i++)
        words_add(w, "--env=%s", p->env[i]);
    words_add(w, "--workdir=%s", p->workdir ? p->workdir : "/");
    words_add(w, "--name=%s", job->id);
}

/* Its default runtime, crun, wants all cgroups to be of one version. */
static bool hybrid(void) { return access("/sys/fs/cgroup/cgroup.controllers", F_OK) < 0; }

static void podman_stores(struct words *w, const struct job *job) {
    words_add(w, "podman");
    words_add(w, "--root=%s/store", job->state);
    words_add(w, "--runroot=%s/runs", job->state);
    WORDS(w, "--storage-driver=vfs", "--cgroup-manager=cgroupfs", "--events-backend=none");
    if (hybrid() && access("/usr/sbin/runc", X_OK) == 0)
        words_add(w, "--runtime=runc");
}

static void podman(struct words *w, const struct job *job) {
    const struct policy *p = job->policy;

    podman_stores(w, job);
    engine_flags(w, job);
    WORDS(w, "--cgroups=no-conmon", "--log-driver=none");
    words_add(w, "--cgroup-parent=%s/%s", job->cgroups, job->id);
    words_add(w, "--timeout=%llu", (unsigned long long)(p->wall_ms + 999) / 1000);
    WORDS(w, "--rootfs", job->rootfs);
    add_command(w, p);
}

static void podman_remove(struct words *w, const struct job *job) {
    podman_stores(w, job);
    WORDS(w, "rm", "--force", "--time=0", "--ignore", job->id);
}

static void docker(struct words *w, const struct job *job) {
    words_add(w, "docker");
    engine_flags(w, job);
    words_add(w, PEER_IMAGE);
    add_command(w, job->policy);
}

static void docker_remove(struct words *w, const struct job *job) {
    WORDS(w, "docker", "rm", "--force", job->id);
}

static const struct trait podman_traits[] = {
    ENGINE_TRAITS,
    {CTL_DEADLINE, "has a time limit in whole seconds (--timeout), and none on processor time",
     ANYBODYS},
    {0, NULL, ANYBODYS},
};
static const struct trait docker_traits[] = {
    ENGINE_TRAITS,
    {CTL_DEADLINE, "ends nothing by itself: it has no time limit", ANYBODYS},
    {0, NULL, ANYBODYS},
};

/* ------------------------------------------------------------------ Firejail */

static void firejail(struct words *w, const struct job *job) {
    static const struct {
        int resource;
        const char *flag;
    } flags[] = {
        {RLIMIT_NOFILE, "nofile"}, {RLIMIT_FSIZE, "fsize"}, {RLIMIT_SIGPENDING, "sigpending"}};
    const struct policy *p = job->policy;
    char out[PATH_MAX];

    WORDS(w, "firejail", "--quiet", "--noprofile", "--net=none", "--caps.drop=all", "--nonewprivs");
    if (!job->root)
        words_add(w, "--noroot");
    WORDS(w, "--seccomp", "--protocol=unix,inet,inet6", "--ipc-namespace", "--private",
          "--private-dev", "--private-tmp", "--disable-mnt", "--read-only=/");
    words_add(w, "--whitelist=%s/box", job->dir);
    (void)snprintf(out, sizeof(out), "%.3000s/out", job->dir);
    if (access(out, F_OK) == 0) {
        words_add(w, "--whitelist=%s", out);
        words_add(w, "--read-write=%s", out);
    }
    for (int i = 0; i < p->n_ulimit; i++)
        for (size_t k = 0; k < ARRAY_LEN(flags); k++)
            if (p->ulimit[i].resource == flags[k].resource)
                words_add(w, "--rlimit-%s=%llu", flags[k].flag,
                          (unsigned long long)p->ulimit[i].hard);
    for (int i = 0; i < p->n_env; i++)
        if (strncmp(p->env[i], "LAB_TMP=", 8) != 0) /* its /tmp is its own, whatever the tree is */
            words_add(w, "--env=%s", p->env[i]);
    if (p->wall_ms <
        5000) { /* with it, firejail looks but once a second whether the command has ended */
        unsigned seconds = (unsigned)(p->wall_ms + 999) / 1000;
        words_add(w, "--timeout=00:00:%02u", seconds);
    }
    words_add(w, "--");
    add_command(w, p);
}

static const struct trait firejail_traits[] = {
    {CTL_UTS,
     "leaves the host's name to be read in its UTS namespace, unless it is given another "
     "(--hostname)",
     ANYBODYS},
    {CTL_SESSION, "leaves the code in its caller's session, at its caller's terminal", ANYBODYS},
    {CTL_DEV, "gives the code pseudo-terminals: a /dev/ptmx, of a devpts of its own", ANYBODYS},
    {CTL_MEMORY, "limits no memory", ANYBODYS},
    {CTL_CPU, "limits no processor time", ANYBODYS},
    {CTL_PIDS, "limits no number of processes", ANYBODYS},
    {CTL_DEADLINE, "has a time limit in whole seconds (--timeout), and none on processor time",
     ANYBODYS},
    {CTL_USER, "leaves the code the user it was started by", ANYBODYS},
    {CTL_CGROUPNS, "makes no cgroup namespace", ANYBODYS},
    {CTL_MOUNT,
     "runs the code in the host's own tree, read-only, with what is not to be seen covered",
     ANYBODYS},
    {CTL_PROC, "masks little of /proc", ANYBODYS},
    {CTL_TMP, "mounts a /tmp without noexec, and without a limit of its own on size or inodes",
     ANYBODYS},
    {CTL_ENV, "hands on its caller's environment", ANYBODYS},
    {CTL_RLIMITS, "sets no rlimits unless it is asked to", ANYBODYS},
    {CTL_IDENTITY, "leaves the code the user it was started by", ANYBODYS},
    {CTL_LANDLOCK, "uses no Landlock in this version", ANYBODYS},
    {CTL_SECCOMP,
     "has a default seccomp filter that is a list of forbidden calls, and this is not in it",
     ANYBODYS},
    {CTL_CAPTURE, "passes output through as it is", ANYBODYS},
    {0, NULL, ANYBODYS},
};
static const struct reason firejail_reasons[] = {
    {"PR7 LK3", "is process 1 in there itself, and its command line and environment can be read"},
    {"PS1b", "is process 1 in there itself, under the code's own user id, so the code may signal "
             "it, and only the kernel's "
             "care for a namespace's process 1 makes nothing of it"},
    {"PS8 PS8b", "leaves the code in its caller's session, at its caller's terminal, and its "
                 "filter lets the call pass"},
    {"PS4 PS10",
     "lasts until the last process in the sandbox has ended, not only until the command has"},
    {NULL, NULL},
};

/* ------------------------------------------------------------------ the table */

const struct peer lab_peer_table[] = {
    {
        .name = "bwrap",
        .program = "bwrap",
        .package = "bubblewrap",
        .note = "bubblewrap, a tool to build sandboxes with: it does what it is told to, and its "
                "manual says that the "
                "safety is its caller's business. Here as the manual's examples and the projects "
                "that use it have it; no "
                "filter is handed to it.",
        .without = "rlimits",
        .command = bwrap,
        .traits = bwrap_traits,
        .reasons = bwrap_reasons,
    },
    {
        .name = "crun",
        .program = "crun",
        .package = "crun",
        .note = "an OCI runtime, given what `runc spec` writes, with no capabilities, the policy's "
                "limits and a /tmp.",
        .without = "rlimits",
        .no_init = true,
        .command = crun,
        .clean_up = crun_delete,
        .traits = runc_traits,
        .reasons = runc_reasons,
    },
    {
        .name = "runc",
        .program = "runc",
        .package = "runc",
        .note = "the OCI runtime, given what `runc spec` writes, with no capabilities, the "
                "policy's limits and a /tmp.",
        .without = "rlimits",
        .no_init = true,
        .command = runc,
        .clean_up = runc_delete,
        .traits = runc_traits,
        .reasons = runc_reasons,
    },
    {
        .name = "runsc",
        .program = "runsc",
        .package = "runsc",
        .note = "gVisor: an OCI runtime whose containers have a kernel of their own, written in "
                "Go, between the code and "
                "the host's. Given what runc is.",
        .without = "rlimits",
        .no_init = true,
        .command = runsc,
        .clean_up = runsc_delete,
        .traits = runsc_traits,
        .reasons = runsc_reasons,
    },
    {
        .name = "podman",
        .program = "podman",
        .package = "podman",
        .note = "a container engine, with the flags that are recommended for code that one does "
                "not trust, and its "
                "default seccomp profile.",
        .without = "rlimits",
        .no_init = true,
        .late_code = 255,
        .command = podman,
        .clean_up = podman_remove,
        .traits = podman_traits,
        .reasons = runc_reasons,
    },
    {
        .name = "docker",
        .program = "docker",
        .package = "docker.io",
        .note = "Docker Engine, with the flags that are recommended for code that one does not "
                "trust, and its default "
                "seccomp profile; the rootfs as an image, mayfly-lab-peer.",
        .without = "rlimits",
        .no_init = true,
        .image = true,
        .command = docker,
        .clean_up = docker_remove,
        .traits = docker_traits,
        .reasons = runc_reasons,
    },
    {
        .name = "firejail",
        .program = "firejail",
        .package = "firejail",
        .note = "Firejail, made for programs of the host's own: the code runs in the host's tree, "
                "not in the rootfs "
                "(its --chroot is switched off where it is installed). The flags are those of its "
                "default profile, "
                "without a network and read-only.",
        .without = "mount rlimits",
        .needs_host = "where it sees that it is in a container already it runs its program as it "
                      "is, without a sandbox",
        .late_code = 1,
        .command = firejail,
        .traits = firejail_traits,
        .reasons = firejail_reasons,
    },
};
const size_t lab_n_peers = ARRAY_LEN(lab_peer_table);

const struct peer *peer_find(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(lab_peer_table); i++)
        if (strcmp(lab_peer_table[i].name, name) == 0)
            return &lab_peer_table[i];
    return NULL;
}
