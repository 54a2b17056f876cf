/*
 * peer.c: see peer.h. The attempts are made in a child with mounts of its own, which hands over what it found as JSON.
 */
#include "lab/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "lab/peer_exec.h"

#include "base/banned.h"

enum { PEERS_MAX = 16 };
static const char *const verdict_names[] = {"through", "stopped", "untestable"};

/* ------------------------------------------------------------------ one cell */

static json_t *cell_json(const struct finding_of *f, double ms) {
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:f}", "result", verdict_names[f->verdict], "call",
                     f->call, "errno", f->error, "detail", f->detail, "host", f->host, "ms", ms);
}

/* Text of a box's may be no UTF-8, which JSON must be. */
static void only_text(char *s) {
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || (unsigned char)*s > '~')
            *s = '?';
}

/* The lab's own end to a run is no wall of the peer's. */
static void judge_cut_off(const struct peer_launcher *l, const struct probe *probe,
                          struct finding_of *f) {
    if (!l->cut_off || f->verdict != VERDICT_STOPPED ||
        strcmp(f->error, mayfly_outcome_name(MAYFLY_TIMED_OUT)) != 0)
        return;
    f->verdict = lab_word(probe->stopped_by, "deadline") ? VERDICT_THROUGH : VERDICT_UNTESTABLE;
    f->error[0] = '\0';
    (void)snprintf(f->detail, sizeof(f->detail), "nothing of %s's ended it; the lab did",
                   l->peer->name);
}

/* `l` NULL: in mayfly, with everything on. */
static json_t *attempt_json(struct peer_launcher *l, const struct probe *probe) {
    struct finding_of f;
    uint64_t start = now_ns();

    if (l)
        l->cut_off = false;
    int r = lab_attempt_by(l ? &l->launcher : NULL, probe, l ? l->peer->without : "", &f);
    if (r < 0)
        f.verdict = VERDICT_UNTESTABLE;
    if (l)
        judge_cut_off(l, probe, &f);
    only_text(f.call);
    only_text(f.error);
    only_text(f.detail);
    only_text(f.host);
    return cell_json(&f, (double)(now_ns() - start) / 1e6);
}

/* ------------------------------------------------------------------ what differs, and why */

static const char *result_of(const json_t *cell) {
    const char *s = json_string_value(json_object_get(cell, "result"));

    return s ? s : "untestable";
}

static bool differs(const json_t *a, const json_t *b) {
    const char *x = result_of(a), *y = result_of(b);

    return strcmp(x, y) != 0 && strcmp(x, "untestable") != 0 && strcmp(y, "untestable") != 0;
}

/* "explain", and "fault" where there is no explanation to be had. */
static void explain(json_t *cell, const struct peer *peer, const struct probe *probe,
                    const json_t *mayfly) {
    bool other = differs(cell, mayfly), stopped = strcmp(result_of(cell), "stopped") == 0;
    _cleanup_free_ char *why = other ? peer_explain(peer, probe, stopped) : NULL;

    if (why)
        (void)json_object_set_new(cell, "explain", json_string(why));
    else if (other)
        (void)json_object_set_new(
            cell, "fault",
            json_sprintf("%s is %s in %s and %s in mayfly, and nothing explains it", probe->id,
                         result_of(cell), peer->name, result_of(mayfly)));
}

static json_t *one_cell(struct peer_launcher *l, const struct probe *probe,
                        const json_t *mayfly_cells) {
    const char *why_not = peer_not_applicable(l->peer, probe);
    struct probe tried = *probe;
    struct finding_of f = {.verdict = VERDICT_UNTESTABLE};

    if (why_not) {
        (void)str_copy(f.detail, sizeof(f.detail), why_not);
        return cell_json(&f, 0);
    }
    if (lab_word("SY9 SY10", probe->id))
        tried.judge = NULL; /* it holds mayfly to a hint */
    json_t *mayfly = json_incref(json_object_get(mayfly_cells, probe->id));
    if (!mayfly)
        mayfly = attempt_json(NULL, probe);
    json_t *cell = attempt_json(l, &tried);
    explain(cell, l->peer, probe, mayfly);
    json_decref(mayfly);
    return cell;
}

/* ------------------------------------------------------------------ one peer, in a child */

struct tries {
    const struct probe *const *probes;
    size_t n;
    const json_t *mayfly_cells;
    int out;
};

/* The box around the lab has those hierarchies of cgroups that boxes use; runc wants all that the kernel has as v1. */
static void more_cgroups(void) {
    char text[4096], dir[128], *save = NULL;

    if (file_read_at(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) < 0)
        return;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char names[64] = "";
        if (sscanf(line, "%*d:%63[^:]", names) != 1 || strchr(names, '='))
            continue;
        (void)snprintf(dir, sizeof(dir), "/sys/fs/cgroup/%s/tasks", names);
        bool mounted = access(dir, F_OK) == 0;
        *strrchr(dir, '/') = '\0';
        if (!mounted && (mkdir(dir, 0755) == 0 || errno == EEXIST))
            (void)mount("cgroup", dir, "cgroup", MS_NOSUID | MS_NOEXEC | MS_NODEV, names);
    }
}

/* The mounts that peers make, and a probe without the control mount, are not to be the machine's. */
static void own_mounts(void) {
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0)
        return;
    (void)mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    more_cgroups();
}

/* The first one's inode is a constant of the kernel's (PROC_PID_INIT_INO). */
static bool first_pid_namespace(void) {
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == 0xEFFFFFFC;
}

/* One that cannot run here at all would be taken for one that stops everything. */
static bool runs(struct peer_launcher *l, char *why, size_t size) {
    static const struct probe nothing = {.id = "nothing",
                                         .title = "nothing",
                                         .stopped_by = "",
                                         .kind = PAYLOAD_STATIC,
                                         .payload = "nothing"};
    struct finding_of f;

    if (l->peer->needs_host && !first_pid_namespace()) {
        (void)snprintf(why, size, "%s does not run here: %s; --where host has it tried",
                       l->peer->name, l->peer->needs_host);
        return false;
    }
    if (l->peer->image) {
        const char *rootfs = getenv("MAYFLY_ROOTFS");
        struct err err = {0};
        if (peer_image_make(l->peer, rootfs ? rootfs : "", &err) < 0) {
            (void)snprintf(why, size, "%s does not run here: %.300s", l->peer->name, err.message);
            return false;
        }
    }
    int r = lab_attempt_by(&l->launcher, &nothing, l->peer->without, &f);

    (void)snprintf(why, size, "%s does not run here: %s", l->peer->name, f.detail);
    return r == 0 && f.verdict == VERDICT_THROUGH;
}

/* One line of JSON a probe, as it is known; before them one that says why the peer cannot run, or null. */
static _Noreturn void try_all(const struct peer *peer, const struct tries *t) {
    struct peer_launcher l;
    char why[400] = "";

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    own_mounts();
    peer_launcher_init(&l, peer);
    bool can = runs(&l, why, sizeof(why));
    only_text(why);
    if (dprintf(t->out, "%s\n", can ? "" : why) < 0)
        _exit(1);
    for (size_t i = 0; can && i < t->n; i++) {
        json_t *cell = one_cell(&l, t->probes[i], t->mayfly_cells);
        _cleanup_free_ char *text = json_dumps(cell, JSON_COMPACT);
        json_decref(cell);
        if (!text || dprintf(t->out, "%s\n", text) < 0)
            break;
    }
    if (can && peer->image)
        peer_image_remove(peer);
    _exit(0);
}

static json_t *untestable(const char *why) {
    struct finding_of f = {.verdict = VERDICT_UNTESTABLE};

    (void)str_copy(f.detail, sizeof(f.detail), why);
    return cell_json(&f, 0);
}

struct reader {
    FILE *in;
    char *line;
    size_t room;
};

static void reader_done(struct reader *r) {
    free(r->line);
    if (r->in)
        (void)fclose(r->in);
}

static bool next_line(struct reader *r) {
    ssize_t n = getline(&r->line, &r->room, r->in);

    if (n > 0 && r->line[n - 1] == '\n')
        r->line[n - 1] = '\0';
    return n > 0;
}

/* What the child says, as it says it. */
static int read_cells(struct reader *r, const struct peer *peer, const struct tries *t,
                      peers_progress *progress, void *data, json_t *cells, struct err *err) {
    bool can = next_line(r) && !r->line[0];
    _cleanup_free_ char *why = can || !r->line ? NULL : strdup(r->line);

    for (size_t i = 0; i < t->n; i++) {
        const char *id = t->probes[i]->id;
        if (progress)
            progress(data, peer->name, id, i, t->n);
        json_t *cell = can && next_line(r) ? json_loads(r->line, 0, NULL)
                       : why               ? untestable(why)
                                           : NULL;
        if (!cell)
            return err_set(err, ERR_INTERNAL, -EPROTO, "", "try it alone with --probe",
                           "the attempts in %s broke off at %s", peer->name, id);
        (void)json_object_set_new(cells, id, cell);
    }
    return 0;
}

static int collect(const struct peer *peer, struct tries *t, peers_progress *progress, void *data,
                   json_t *cells, struct err *err) {
    struct reader reader __attribute__((cleanup(reader_done))) = {0};
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, ERR_INTERNAL, -errno, "", NULL, "a pipe");
    t->out = ends[1];
    pid_t pid = fork();
    if (pid == 0)
        try_all(peer, t);
    (void)close(ends[1]);
    reader.in = pid < 0 ? NULL : fdopen(ends[0], "re");
    if (!reader.in) {
        (void)close(ends[0]);
        return err_errno(err, ERR_INTERNAL, -errno, "", NULL, "a process for the attempts in %s",
                         peer->name);
    }
    int r = read_cells(&reader, peer, t, progress, data, cells, err);
    if (r < 0)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}

/* ------------------------------------------------------------------ all of them */

/* All names are looked at before anything is tried. */
static int pick(const char *names, const struct peer *ret[], size_t *ret_n, struct err *err) {
    *ret_n = 0;
    for (const char *p = names; *p;) {
        char name[32], known[200] = "";
        size_t n = strcspn(p, ","), len = 0;

        (void)snprintf(name, sizeof(name), "%.*s", (int)n, p);
        const struct peer *peer = peer_find(name);
        for (size_t i = 0; i < lab_n_peers; i++)
            len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", i ? ", " : "",
                                    lab_peer_table[i].name);
        if (!peer)
            return err_set(err, ERR_USAGE, -EINVAL, "", NULL,
                           "--with: no peer is called \"%s\"; there are %s", name, known);
        bool twice = false;
        for (size_t i = 0; i < *ret_n; i++)
            twice |= ret[i] == peer;
        if (!twice)
            ret[(*ret_n)++] = peer;
        p += n + (p[n] == ',');
    }
    return *ret_n ? 0 : err_set(err, ERR_USAGE, -EINVAL, "", NULL, "--with: names no peer");
}

static int one_peer(const struct peer *peer, struct tries *t, peers_progress *progress, void *data,
                    json_t *all, struct err *err) {
    char version[128] = "", command[WORDS_COMMAND];
    json_t *cells = json_object();
    int r = peer_version(peer, version, sizeof(version), err);

    only_text(version);
    if (r == 0)
        r = peer_command_line(peer, command, err);
    if (r == 0)
        r = collect(peer, t, progress, data, cells, err);
    if (r == 0 &&
        json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:s, s:O}", "name", peer->name,
                                             "version", version, "command", command, "note",
                                             peer->note, "cells", cells)) < 0)
        r = err_oom(err);
    json_decref(cells);
    return r;
}

int lab_peers_check(const char *names, struct err *err) {
    const struct peer *peers[PEERS_MAX];
    char version[128];
    size_t n = 0;
    int r = pick(names, peers, &n, err);

    for (size_t i = 0; r == 0 && i < n; i++)
        r = peer_version(peers[i], version, sizeof(version), err);
    return r;
}

int lab_peers(const struct probe *const *probes, size_t n, const char *names,
              const json_t *mayfly_cells, peers_progress *progress, void *data, json_t **ret,
              struct err *err) {
    const struct peer *peers[PEERS_MAX];
    struct tries t = {.probes = probes, .n = n, .mayfly_cells = mayfly_cells};
    json_t *all = json_array();
    size_t n_peers = 0;
    int r = all ? pick(names, peers, &n_peers, err) : err_oom(err);

    if (r == 0)
        r = lab_peers_check(names, err);
    for (size_t i = 0; r == 0 && i < n_peers; i++)
        r = one_peer(peers[i], &t, progress, data, all, err);
    if (r < 0) {
        json_decref(all);
        return r;
    }
    *ret = all;
    return 0;
}
