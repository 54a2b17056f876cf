/*
 * hints.c: see hints.h. Here are the facts, how a hint is worded, and the walls;
 * what a runtime's last words mean is in hints_words.c, what a refused call means
 * in hints_calls.c.
 */
#include "lib/hints.h"

#include <linux/audit.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/units.h"
#include "lib/hints_inner.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ wording */

void hint_add(struct hints *h, enum control_id control, const char *instead, const char *fmt, ...) {
    struct hint hint = {.control = control};
    char what[256];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    (void)snprintf(hint.sentence, sizeof(hint.sentence), "%s (control: %s); %s", what,
                   control_id_name(control), instead);
    for (size_t i = 0; i < h->n; i++)
        if (strcmp(h->list[i].sentence, hint.sentence) == 0)
            return;
    if (h->n < HINTS_MAX)
        h->list[h->n++] = hint;
}

bool hint_failed(const struct hint_source *s) {
    return (s->outcome == OUTCOME_EXITED && s->exit_code != 0) || s->outcome == OUTCOME_SIGNALED;
}

/* A name or path that is no text: it can hold no sentence to whoever reads the hint. */
static bool plain(struct span s) {
    static const char others[] = "/._-+=@%:,~";

    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alnum && (c == '\0' || !strchr(others, c)))
            return false;
    }
    return s.len > 0 && s.len <= 100;
}

static const char *shown(struct span s, const char *otherwise, char *out, size_t size) {
    if (plain(s))
        (void)snprintf(out, size, "%.*s", (int)s.len, s.at);
    else
        (void)snprintf(out, size, "%s", otherwise);
    return out;
}

/* An image's user may have another home, which is the image's and so read-only. */
static bool is_home(const struct plan *plan, const char *dir) {
    for (const char *const *e = plan->envp; e && *e; e++)
        if (strncmp(*e, "HOME=", 5) == 0)
            return strcmp(*e + 5, dir) == 0;
    return true;
}

/* Where the code may write, for the end of a sentence. */
static const char *write_instead(const struct plan *plan, char *out, size_t size) {
    const char *home = plan->home && strcmp(plan->home, "/tmp") != 0 ? plan->home : NULL;

    (void)snprintf(out, size, "write below /tmp%s%s",
                   !home                 ? ""
                   : is_home(plan, home) ? " or the home directory "
                                         : " or ",
                   home ? home : "");
    return out;
}

/* ------------------------------------------------------------------ places */

static bool below(struct span path, const char *dir) {
    size_t len = strlen(dir);

    return span_begins(path, dir) &&
           (path.len == len || path.at[len] == '/' || dir[len - 1] == '/');
}

enum place hint_place(const struct plan *plan, struct span path) {
    const struct policy *p = plan->policy;

    if (!path.len || *path.at != '/')
        return PLACE_UNKNOWN;
    if (span_holds(path, "/../") || span_ends(path, "/.."))
        return PLACE_UNKNOWN;
    for (int i = 0; i < p->n_bind; i++)
        if (below(path, p->bind[i].target))
            return PLACE_VOLUME;
    for (int i = 0; i < p->n_tmpfs; i++)
        if (below(path, p->tmpfs[i].path))
            return PLACE_TMPFS;
    if ((p->out && below(path, "/out")) || below(path, "/tmp") || below(path, "/dev/shm") ||
        (plan->image.has_home && below(path, "/home")))
        return PLACE_TMPFS;
    if (below(path, "/proc"))
        return PLACE_PROC;
    return below(path, "/dev") ? PLACE_DEV : PLACE_ROOT;
}

bool hint_noexec_place(const struct plan *plan, struct span path) {
    return hint_place(plan, path) == PLACE_TMPFS && !span_is(path, "/tmp") &&
           !span_is(path, "/dev/shm") && !span_is(path, "/home");
}

/* The tmpfs at `path`, or, where that is empty, the smallest: an error without a path may be of any. */
static void tmpfs_size(const struct policy *p, struct span path, uint64_t *ret_bytes,
                       uint64_t *ret_inodes) {
    *ret_bytes = p->tmp_bytes;
    *ret_inodes = p->tmp_inodes;
    for (int i = 0; i < p->n_tmpfs; i++) {
        const struct policy_tmpfs *t = &p->tmpfs[i];
        bool smaller = !path.len && t->size_bytes && t->size_bytes < *ret_bytes;

        if (!smaller && !(path.len && below(path, t->path)))
            continue;
        *ret_bytes = t->size_bytes ? t->size_bytes : p->tmp_bytes;
        *ret_inodes = t->inodes ? t->inodes : p->tmp_inodes;
    }
}

/* The soft limit of a resource, UINT64_MAX: none. */
static uint64_t rlimit_of(const struct policy *p, int resource, uint64_t otherwise) {
    for (int i = p->n_ulimit - 1; i >= 0; i--)
        if (p->ulimit[i].resource == resource)
            return p->ulimit[i].soft;
    return otherwise;
}

/* ------------------------------------------------------------------ walls */

void hint_read_only(const struct hint_source *s, struct span path, struct hints *h) {
    char name[128], instead[160];

    (void)write_instead(s->plan, instead, sizeof(instead));
    (void)shown(path, "the file", name, sizeof(name));
    switch (hint_place(s->plan, path)) {
    case PLACE_PROC:
        hint_add(h, CTL_PROC, "go without it: kernel settings are the host's",
                 "%s cannot be written: all of /proc is read-only", name);
        break;
    case PLACE_DEV:
        hint_add(h, CTL_DEV, instead, "%s cannot be written: /dev is read-only but for /dev/shm",
                 name);
        break;
    case PLACE_VOLUME:
        hint_add(h, CTL_BINDS, instead, "%s cannot be written: it was handed in read-only", name);
        break;
    case PLACE_UNKNOWN:
        if (s->plan->policy->n_bind > 0) {
            hint_add(h, CTL_MOUNT, instead,
                     "a write was refused: the root file system, and a volume not handed in as "
                     "writable, are read-only");
            break;
        }
        /* fall through */
    default:
        hint_add(h, CTL_MOUNT, instead,
                 "%s cannot be written, made or removed: the root file system is read-only", name);
    }
}

void hint_no_access(const struct hint_source *s, struct span path, struct hints *h) {
    char name[128], instead[160];

    (void)shown(path, "the file", name, sizeof(name));
    (void)write_instead(s->plan, instead, sizeof(instead));
    if (hint_place(s->plan, path) == PLACE_PROC)
        hint_add(h, CTL_PROC, "go without it: it tells of the kernel or of others",
                 "%s is closed: a box sees its own processes only", name);
    else if (hint_place(s->plan, path) == PLACE_DEV)
        hint_add(h, CTL_DEV, instead, "%s is closed: /dev has null, zero, full and random only",
                 name);
    else if (hint_place(s->plan, path) == PLACE_ROOT && s->plan->policy->read_only)
        hint_add(h, CTL_IDENTITY, instead,
                 "%s is closed to the code, which is user %u and owns nothing of the root file "
                 "system",
                 name, s->plan->policy->uid);
}

void hint_noexec(struct hints *h) {
    hint_add(h, CTL_TMP, "give a script to its interpreter, as in: python3 /tmp/x.py, sh /tmp/x.sh",
             "no program or library in /tmp, /dev/shm or the home directory can be executed or "
             "loaded, these are noexec");
}

/* A cgroup does not refuse memory, it kills: a refusal is the kernel's word on an absurd size, unless a limit of each
 * process's memory holds. */
void hint_no_memory(const struct hint_source *s, struct hints *h) {
    const struct policy *p = s->plan->policy;
    uint64_t space = rlimit_of(p, RLIMIT_AS, UINT64_MAX),
             data = rlimit_of(p, RLIMIT_DATA, UINT64_MAX);
    char size[32];

    if (s->given.own_limits)
        return;
    if (MIN(space, data) != UINT64_MAX)
        hint_add(h, CTL_RLIMITS, "work on smaller pieces, or stream (or --ulimit)",
                 "an allocation failed: a process may have at most %s of %s",
                 format_bytes(MIN(space, data), size, sizeof(size)),
                 space <= data ? "address space" : "data");
    else if (s->plan->watch_memory_bytes)
        hint_add(h, CTL_MEMORY, "work on smaller pieces, or stream",
                 "an allocation failed: the box has %s of memory",
                 format_bytes(s->plan->watch_memory_bytes, size, sizeof(size)));
}

static void out_full(const struct policy *p, bool no_inode, const char *name, struct hints *h) {
    char size[32];

    if (no_inode)
        hint_add(h, CTL_TMP, "make fewer files in /out (or --out-files)",
                 "%s could not be made: of what is in /out at most %llu files are brought back",
                 name, (unsigned long long)p->out_files);
    else
        hint_add(h, CTL_TMP, "write less into /out (or --out-size)",
                 "%s could not be written in full: /out holds at most %s", name,
                 format_bytes(p->out_bytes, size, sizeof(size)));
}

/* `no_inode`: something could not be made, so it is the number of files that ran out. */
void hint_full(const struct hint_source *s, struct span path, bool no_inode, struct hints *h) {
    const struct policy *p = s->plan->policy;
    enum place place = hint_place(s->plan, path);
    uint64_t bytes, inodes, peak = s->facts->usage.memory_peak_bytes;
    char size[32], name[128];

    /* A volume is the host's disk. Without a path it may be that, or /dev/full; but a tmpfs that is full has been
     * charged to the box's memory. */
    bool here = place == PLACE_TMPFS || (place == PLACE_ROOT && !p->read_only);
    if (here && p->out && below(path, "/out"))
        return out_full(p, no_inode, shown(path, "a file", name, sizeof(name)), h);
    tmpfs_size(p, here ? path : span_of(""), &bytes, &inodes);
    bool charged = !no_inode && peak != UINT64_MAX && peak >= bytes;
    /* A relative path may lie in a volume, if there is one; only where files are made is it never /dev/full. */
    here |= no_inode && place == PLACE_UNKNOWN && p->n_bind == 0;
    if (!here && (path.len || !charged))
        return;
    (void)shown(path, "a file", name, sizeof(name));
    if (no_inode)
        hint_add(h, CTL_TMP, "make fewer files, or remove them as you go (or --tmp-inodes)",
                 "%s could not be made: /tmp, /dev/shm and the home directory hold at most %llu "
                 "files each",
                 name, (unsigned long long)inodes);
    else
        hint_add(h, CTL_TMP, "write less, or remove files as you go (or --tmp-size)",
                 "%s could not be written in full: /tmp, /dev/shm and the home directory hold at "
                 "most %s each",
                 name, format_bytes(bytes, size, sizeof(size)));
}

void hint_no_network(bool name, struct hints *h) {
    hint_add(h, CTL_NET, "work with what is in the box, and have data handed in as files or input",
             name ? "host names cannot be looked up: a box has no network and no DNS, only its "
                    "own loopback"
                  : "the address cannot be reached: a box has no network, only its own loopback");
}

void hint_no_command(const struct hint_source *s, struct span name, struct hints *h) {
    const char *path = policy_narrow_path(s->plan->policy);
    char text[128], where[160];

    if (path && !span_holds(name, "/")) {
        hint_add(h, CTL_ENV,
                 "leave PATH as the box has it, or write the command with its whole path",
                 "the command %s is in no directory of the PATH that was set (%s)",
                 shown(name, "of that name", text, sizeof(text)),
                 *path ? shown(span_of(path), "not shown", where, sizeof(where)) : "empty");
        return;
    }
    if (span_holds(name, "/"))
        name.len = 0;
    hint_add(h, CTL_MOUNT,
             "use what is there, such as Python's standard library, or have the box started with "
             "a rootfs that has it",
             "there is no command %s in the box's root file system, and without a network none "
             "can be installed",
             shown(name, "of that name", text, sizeof(text)));
}

void hint_no_process(const struct hint_source *s, struct hints *h) {
    hint_add(h, CTL_PIDS, "start fewer at a time, and wait for those that have ended",
             "a process or thread could not be started: the box allows %u at once",
             s->plan->policy->pids);
}

void hint_open_files(const struct hint_source *s, struct hints *h) {
    uint64_t n = rlimit_of(s->plan->policy, RLIMIT_NOFILE, s->plan->policy->nofile);

    if (n != UINT64_MAX && !s->given.own_limits)
        hint_add(h, CTL_RLIMITS, "close each file when it is done with, as `with open(…)` does",
                 "a process can have at most %llu files and sockets open at once",
                 (unsigned long long)n);
}

void hint_file_size(const struct hint_source *s, struct hints *h) {
    uint64_t bytes = rlimit_of(s->plan->policy, RLIMIT_FSIZE, s->plan->policy->fsize_bytes);
    char size[32];

    if (bytes == UINT64_MAX || s->given.own_limits)
        return;
    hint_add(h, CTL_RLIMITS, "write several smaller files", "a single file may have at most %s",
             format_bytes(bytes, size, sizeof(size)));
}

/* ------------------------------------------------------------------ facts */

static void timed_out(const struct hint_source *s, struct hints *h) {
    const struct policy *p = s->plan->policy;
    uint64_t cpu = s->facts->usage.cpu_usec;
    uint64_t could = s->facts->wall_ns / 1000; /* µs of CPU that one thread could have had */
    char limit[32], used[32];

    if (p->cpu_milli && p->cpu_milli < 1000)
        could = could * p->cpu_milli / 1000;
    (void)format_ms(p->wall_ms, limit, sizeof(limit));
    (void)format_ms(cpu / 1000, used, sizeof(used));
    if (cpu == UINT64_MAX)
        hint_add(h, CTL_DEADLINE, "do less at once, and do not wait for input, time or a network",
                 "the run was killed after %s, its limit on the wall clock", limit);
    else if (cpu < could / 5)
        hint_add(h, CTL_DEADLINE,
                 s->given.stdin_kind == STDIN_STREAM
                     ? "do not wait for more input than comes, nor for time, a lock or a network"
                     : "do not sleep or wait for time, a lock or a network, and give each wait a "
                       "timeout of its own",
                 "the run was killed after %s, its limit on the wall clock, and was idle: it used "
                 "%s of CPU and otherwise waited",
                 limit, used);
    else if (cpu > could / 2)
        hint_add(h, CTL_DEADLINE, "look for a loop without an end, or do less at once",
                 "the run was killed after %s, its limit on the wall clock, and was busy: it used "
                 "%s of CPU",
                 limit, used);
    else
        hint_add(h, CTL_DEADLINE, "do less at once, and wait less",
                 "the run was killed after %s, its limit on the wall clock, of which it computed "
                 "for %s and waited for the rest",
                 limit, used);
}

static void cpu_limit(uint64_t limit_ms, struct hints *h) {
    char limit[32];

    hint_add(h, CTL_DEADLINE, "look for a loop without an end, or compute less",
             "the run was killed after %s of CPU time, counted over all its processes",
             format_ms(limit_ms, limit, sizeof(limit)));
}

static void out_of_memory(const struct hint_source *s, struct hints *h) {
    uint64_t bytes = s->plan->policy->memory_bytes;
    char size[32];

    if (!bytes)
        hint_add(h, CTL_MEMORY, "work on smaller pieces, or stream",
                 "the run was killed for using more memory than there is");
    else /* the supervisor's watch adds up processes; only a cgroup is charged for files as well */
        hint_add(h, CTL_MEMORY, "work on smaller pieces, or stream",
                 "the run was killed for using more than its %s of memory%s",
                 format_bytes(bytes, size, sizeof(size)),
                 s->plan->watch_memory_bytes ? "" : ", in which files in /tmp and /dev/shm count");
}

static void foreign_call(const struct box_facts *f, struct hints *h) {
    bool x32 = f->foreign_arch == AUDIT_ARCH_X86_64;

    hint_add(h, CTL_SECCOMP, "use the machine's native system calls",
             "the code made system call %d of the %s interface, which a box does not allow",
             x32 ? f->foreign_nr & ~0x40000000 : f->foreign_nr,
             x32                                  ? "x32"
             : f->foreign_arch == AUDIT_ARCH_I386 ? "32-bit x86 (int 0x80)"
                                                  : "a foreign architecture's");
}

/* RLIMIT_CPU is a process's, and the code can send the signal to itself: what the cgroup counted decides. */
static bool cpu_used_up(const struct hint_source *s, uint64_t limit_s) {
    uint64_t used = s->facts->usage.cpu_usec;

    return limit_s != UINT64_MAX && used != UINT64_MAX && used / 1000000 + 1 >= limit_s;
}

static void killed_by_signal(const struct hint_source *s, struct hints *h) {
    const struct policy *p = s->plan->policy;
    uint64_t cpu_s = rlimit_of(p, RLIMIT_CPU, p->cpu_ms ? p->cpu_ms / 1000 : UINT64_MAX);

    if (s->facts->foreign_call)
        foreign_call(s->facts, h);
    else if (s->signal == SIGSYS && p->seccomp_profile)
        hint_add(h, CTL_SECCOMP, "find the call by leaving it out, or ask for another profile",
                 "the run was killed by SIGSYS, for a system call that its seccomp profile does "
                 "not allow");
    else if (s->signal == SIGXFSZ && !s->given.own_signals)
        hint_file_size(s, h);
    else if ((s->signal == SIGXCPU || s->signal == SIGKILL) && cpu_used_up(s, cpu_s))
        cpu_limit(cpu_s * 1000, h);
}

static void output_cut(const struct hint_source *s, struct hints *h) {
    const char *which = s->out_cut && s->err_cut ? "stdout and of stderr"
                        : s->out_cut             ? "stdout"
                                                 : "stderr";
    char size[32];

    (void)format_bytes(s->plan->policy->output_bytes, size, sizeof(size));
    if (s->outcome == OUTCOME_OUTPUT_LIMIT)
        hint_add(h, CTL_CAPTURE, "print less: a summary, or the end of it",
                 "the run was killed for printing more than %s", size);
    else
        hint_add(h, CTL_CAPTURE, "print less: a summary, or the end of it",
                 "only the first %s of %s are kept", size, which);
}

static void facts(const struct hint_source *s, struct hints *h) {
    uint64_t refused = s->facts->usage.pids_refused;

    switch (s->outcome) {
    case OUTCOME_TIMED_OUT:
        timed_out(s, h);
        break;
    case OUTCOME_CPU_LIMIT:
        cpu_limit(s->plan->policy->cpu_ms, h);
        break;
    case OUTCOME_OOM_KILLED:
        out_of_memory(s, h);
        break;
    case OUTCOME_SIGNALED:
        killed_by_signal(s, h);
        break;
    case OUTCOME_SETUP_FAILED:
        if (s->not_found && s->plan->argv)
            hint_no_command(s, span_of(s->plan->argv[0]), h);
        break;
    default:
        break;
    }
    if (refused != UINT64_MAX && refused > 0)
        hint_no_process(s, h);
    if (s->out_cut || s->err_cut)
        output_cut(s, h);
}

/* The traceback that standard error ends with, and what Python names as its direct cause. */
static void words(const struct hint_source *s, struct hints *h) {
    struct traceback t;
    char room[8192];
    size_t before = h->n;
    bool python = last_traceback(bare_words(s->err, room, sizeof(room)), &t);

    if (!python)
        hints_of_shell(s, h);
    for (int depth = 0; python && depth < 4 && h->n == before; depth++) {
        hints_of_python(s, &t, h);
        python = last_cause(&t, &t);
    }
}

void hints_find(const struct hint_source *s, struct hints *ret) {
    *ret = (struct hints){0};
    facts(s, ret);
    hints_of_calls(s, ret);
    /* The last words of a stream that was cut are not the last. */
    if (s->outcome == OUTCOME_EXITED && s->exit_code != 0 && !s->err_cut)
        words(s, ret);
}
