/*
 * test_peers.c: the probes inside other programs of mayfly's kind.
 *
 * What bubblewrap and runc stop and do not stop with their usual flags are facts about them, and held to here: one that
 * changes is either a new version's doing, or a fault of the lab's. runsc and docker, which CI has not, are stood in
 * for by scripts: their command lines are tested, and not they.
 */
#include "live/live.h"

#include <limits.h>

#include "base/fd.h"
#include "lab/outer.h"
#include "lab/peer.h"

#include "base/banned.h"

enum { LIST_MAX = 64 };

struct fact {
    const char *id, *result, *error,
        *explained_by; /* error, explained_by: NULL is not looked at; a part of it */
};

static json_t *peers_of(const char *names, const char *const *ids, size_t n) {
    const struct probe *list[LIST_MAX];
    json_t *ret = NULL;
    struct err e = {0};

    for (size_t i = 0; i < n; i++) {
        list[i] = probe_find(ids[i]);
        assert_non_null(list[i]);
    }
    if (lab_peers(list, n, names, NULL, NULL, NULL, &ret, &e) < 0)
        fail_msg("%s", e.message);
    return ret;
}

static const char *text_of(const json_t *cell, const char *key) {
    const char *s = json_string_value(json_object_get(cell, key));

    return s ? s : "";
}

static void check_fact(const json_t *cells, const char *peer, const struct fact *f) {
    const json_t *cell = json_object_get(cells, f->id);
    const char *explain = text_of(cell, "explain");

    if (strcmp(text_of(cell, "result"), f->result) != 0 ||
        (f->error && !lab_sees(f->error, text_of(cell, "errno"))) || text_of(cell, "host")[0] ||
        text_of(cell, "fault")[0])
        fail_msg("%s in %s should be %s, and is: %s %s %s %s; host: %s; %s", f->id, peer, f->result,
                 text_of(cell, "result"), text_of(cell, "call"), text_of(cell, "errno"),
                 text_of(cell, "detail"), text_of(cell, "host"), text_of(cell, "fault"));
    if (f->explained_by ? !strstr(explain, f->explained_by) : explain[0] != '\0')
        fail_msg("%s in %s should be explained by \"%s\", and is: %s", f->id, peer,
                 f->explained_by ? f->explained_by : "", explain);
}

static bool in_path(const char *program) {
    char full[PATH_MAX];

    for (const char *p = getenv("PATH"); p && *p;) {
        size_t n = strcspn(p, ":");
        (void)snprintf(full, sizeof(full), "%.*s/%s", (int)n, p, program);
        if (access(full, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

/* Its facts as root: what it does for a user hangs on the host. */
static void facts(const char *name, const struct fact *list, size_t n) {
    const char *ids[LIST_MAX], *version;
    char why[80];

    (void)snprintf(why, sizeof(why), "%s is not installed", name);
    if (geteuid() != 0)
        live_skip("root", "a peer is tried as root");
    if (!in_path(name))
        live_skip("root", why);
    for (size_t i = 0; i < n; i++)
        ids[i] = list[i].id;
    json_t *all = peers_of(name, ids, n), *peer = json_array_get(all, 0);
    version = text_of(peer, "version");
    assert_int_equal(json_array_size(all), 1);
    assert_string_equal(text_of(peer, "name"), name);
    if (!strpbrk(version, "0123456789") || !strstr(text_of(peer, "command"), name))
        fail_msg("version \"%s\", command \"%s\"", version, text_of(peer, "command"));
    for (size_t i = 0; i < n; i++)
        check_fact(json_object_get(peer, "cells"), name, &list[i]);
    json_decref(all);
}

static void bubblewrap_stops_what_it_says_and_no_more(void **state) {
    static const struct fact list[] = {
        {"FS1", "stopped", "EROFS", NULL},
        {"FS9", "stopped", "ENOENT", NULL},
        {"SK1", "stopped", "ECONNREFUSED|ENETUNREACH", NULL},
        {"PS3", "stopped", "ESRCH", NULL},
        {"NS9", "stopped", "EPERM", NULL},
        {"LK5", "stopped", "ECONNREFUSED", NULL}, /* with a second sandbox beside */
        {"SY17", "through", NULL, "no seccomp filter"},
        {"NS1", "through", NULL, "--disable-userns"},
        {"PR3", "through", NULL, "little is masked"},
        {"EX1", "through", NULL, "without noexec"},
        {"PS6", "through", NULL, "number of processes"},
        {"RS5", "through", NULL, "rlimits"},
        {"LK4", "through", NULL, "descriptors its caller left open"},
        {"LK3", "through", NULL, "caller's environment"},
        {"PO1", "untestable", NULL, NULL}, /* mayfly's own matter */
    };

    (void)state;
    facts("bwrap", list, ARRAY_LEN(list));
}

static void runc_stops_what_it_says_and_no_more(void **state) {
    static const struct fact list[] = {
        {"FS1", "stopped", "EROFS", NULL},
        {"FS9", "stopped", "ENOENT", NULL},
        {"PR1", "stopped", "EROFS", NULL},
        {"EX1", "stopped", "EACCES", NULL},
        {"PS6", "stopped", "EAGAIN", NULL},
        {"RS1", "stopped", "killed by SIGKILL", NULL},
        {"LK4", "stopped", NULL, NULL},
        {"SY17", "through", NULL, "no seccomp filter"},
        {"NS1", "through", NULL, "no user namespace"},
        {"PR4", "through", NULL, "/sys"},
        {"RS6b", "through", NULL, "no Landlock"},
        {"LK7", "through", NULL, "user ids in it are the host's"},
        {"PR7", "untestable", NULL, NULL}, /* there is no init */
    };

    (void)state;
    facts("runc", list, ARRAY_LEN(list));
}

/* ------------------------------------------------------------------ in the box around the lab */

/* In a process of its own, which does not come out again: its exit status says what was found. */
static _Noreturn void look_in_the_box(void) {
    const struct probe *probe = probe_find("SY17");
    char rootfs[PATH_MAX];
    json_t *all = NULL;
    struct err e = {0};
    size_t i;
    json_t *peer;

    if (!realpath(live_env("MAYFLY_ROOTFS"), rootfs) || lab_outer_enter("box", rootfs, &e) < 0 ||
        lab_peers(&probe, 1, "bwrap,runc", NULL, NULL, NULL, &all, &e) < 0) {
        print_message("%s\n", e.message);
        _exit(1);
    }
    json_array_foreach(all, i, peer) {
        const json_t *cell = json_object_get(json_object_get(peer, "cells"), "SY17");
        if (strcmp(text_of(cell, "result"), "through") != 0 || text_of(cell, "fault")[0]) {
            print_message("%s: %s %s %s\n", text_of(peer, "name"), text_of(cell, "result"),
                          text_of(cell, "detail"), text_of(cell, "fault"));
            _exit(1);
        }
    }
    _exit(json_array_size(all) == 2 ? 0 : 1);
}

static void peers_run_in_the_box_around_the_lab_one_after_the_other(void **state) {
    int status;

    (void)state;
    if (geteuid() != 0)
        live_skip("root", "a peer is tried as root");
    if (!in_path("bwrap") || !in_path("runc"))
        live_skip("root", "bwrap or runc is not installed");
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        look_in_the_box();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ------------------------------------------------------------------ stand-ins */

static char place[64], old_path[PATH_MAX];

static void write_script(const char *name, const char *text) {
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", place, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    assert_true(fd >= 0 && fd_write_full(fd, text, strlen(text)) == 0);
    (void)close(fd);
}

static char *read_file(const char *name) {
    char path[PATH_MAX], *text = NULL;
    size_t len;

    (void)snprintf(path, sizeof(path), "%s/%s", place, name);
    if (file_read_all_at(AT_FDCWD, path, 1 << 20, &text, &len) < 0)
        fail_msg("%s was not written", path);
    return text;
}

static int stand_in(void **state) {
    char path[PATH_MAX + 128];

    (void)state;
    (void)snprintf(place, sizeof(place), "/tmp/mayfly-peers-XXXXXX");
    (void)snprintf(old_path, sizeof(old_path), "%s", getenv("PATH"));
    if (!mkdtemp(place))
        return -1;
    (void)snprintf(path, sizeof(path), "%s:%s", place, old_path);
    return setenv("PATH", path, 1) | setenv("STAND_IN", place, 1);
}

static int stand_out(void **state) {
    static const char *const names[] = {"runsc", "docker", "argv", "config", "pid", "calls"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[PATH_MAX];
        (void)snprintf(path, sizeof(path), "%s/%s", place, names[i]);
        (void)unlink(path);
    }
    return rmdir(place) | setenv("PATH", old_path, 1);
}

#define SAYS_VERSION "#!/bin/sh\n[ \"$1\" != --version ] || { echo stand-in 1; exit; }\n"
#define SAYS_THROUGH "printf 'THROUGH\\tstand-in\\t\\t\\n'\n"

static const char *const one[] = {"SY17"};

static void an_oci_runtime_is_given_a_bundle_with_safe_settings(void **state) {
    json_error_t e;

    (void)state;
    write_script("runsc",
                 SAYS_VERSION "echo \"$*\" >$STAND_IN/argv\n"
                              "while [ $# -gt 0 ]; do [ \"$1\" != --bundle ] || cat $2/config.json "
                              ">$STAND_IN/config; shift; done\n" SAYS_THROUGH);
    json_t *all = peers_of("runsc", one, 1);
    const json_t *peer = json_array_get(all, 0);
    assert_string_equal(text_of(peer, "version"), "stand-in 1");
    assert_string_equal(text_of(json_object_get(json_object_get(peer, "cells"), "SY17"), "result"),
                        "through");
    json_decref(all);

    char *argv = read_file("argv"), *text = read_file("config");
    assert_non_null(strstr(argv, "--network=none"));
    assert_non_null(strstr(argv, " run --bundle "));
    json_t *spec = json_loads(text, 0, &e);
    const char *type;
    size_t i;
    json_t *entry;
    bool bounding = false;
    if (!spec)
        fail_msg("config.json: %s", e.text);
    json_t *process = json_object_get(spec, "process");
    assert_true(json_is_true(json_object_get(process, "noNewPrivileges")));
    assert_true(json_is_true(json_object_get(json_object_get(spec, "root"), "readonly")));
    const char *name;
    json_object_foreach(json_object_get(process, "capabilities"), name, entry) {
        assert_int_equal(json_array_size(entry), 0);
        bounding |= strcmp(name, "bounding") == 0;
    }
    assert_true(bounding);
    json_array_foreach(json_object_get(spec, "mounts"), i, entry) {
        type = text_of(entry, "destination");
        if (strcmp(type, "/tmp") == 0 || strcmp(type, "/mnt") == 0) {
            char *options = json_dumps(json_object_get(entry, "options"), JSON_COMPACT);
            assert_non_null(strstr(options, strcmp(type, "/tmp") == 0 ? "noexec" : "\"ro\""));
            free(options);
        }
    }
    json_decref(spec);
    free(argv);
    free(text);
}

static void docker_is_given_the_recommended_flags(void **state) {
    static const char *const flags[] = {"run --rm",
                                        "--network=none",
                                        "--read-only",
                                        "--cap-drop=all",
                                        "--security-opt=no-new-privileges",
                                        "--user=1000:1000",
                                        "--memory=268435456b",
                                        "--memory-swap=268435456b",
                                        "--cpus=1.000",
                                        "--pids-limit=128",
                                        "--tmpfs=/tmp:rw,noexec,nosuid,nodev",
                                        ":/mnt:ro",
                                        " " PEER_IMAGE " "};

    (void)state;
    write_script("docker",
                 SAYS_VERSION "echo \"$1 $3\" >>$STAND_IN/calls\n"
                              "[ \"$1\" != import ] || tar -tf $2 >$STAND_IN/config\n"
                              "[ \"$1\" != run ] || echo \"$*\" >$STAND_IN/argv\n" SAYS_THROUGH);
    json_t *all = peers_of("docker", one, 1);
    json_decref(all);
    char *argv = read_file("argv"), *calls = read_file("calls"), *files = read_file("config");
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (!strstr(argv, flags[i]))
            fail_msg("docker was not given %s but %s", flags[i], argv);
    assert_int_equal(
        strncmp(calls, "import " PEER_IMAGE "\nrun ", strlen("import " PEER_IMAGE "\nrun ")), 0);
    assert_non_null(strstr(calls, "\nrmi"));
    assert_non_null(strstr(files, "./usr/bin/python3\n"));
    free(argv);
    free(calls);
    free(files);
}

/* What hangs, and what it started, ends with the attempt; that the lab ended it does not count as the peer's wall. */
static void a_peer_that_hangs_is_ended_with_all_that_it_started(void **state) {
    static const char *const sleeps[] = {"RS4"};

    (void)state;
    if (geteuid() != 0)
        live_skip("root", "the cgroup that ends it");
    write_script(
        "runsc", SAYS_VERSION
        "case $* in\n*delete*) exit 0 ;;\nesac\n"
        "[ -e $STAND_IN/pid ] && { setsid sleep 1000 & echo $! >$STAND_IN/pid; sleep 1000; }\n"
        ">$STAND_IN/pid\n" SAYS_THROUGH);
    json_t *all = peers_of("runsc", sleeps, 1);
    const json_t *cell = json_object_get(json_object_get(json_array_get(all, 0), "cells"), "RS4");
    if (strcmp(text_of(cell, "result"), "through") != 0 ||
        !strstr(text_of(cell, "detail"), "the lab did"))
        fail_msg("%s %s", text_of(cell, "result"), text_of(cell, "detail"));
    assert_string_equal(text_of(cell, "host"), "");
    json_decref(all);
    char *pid = read_file("pid");
    assert_true(strtol(pid, NULL, 10) > 1);
    assert_true(kill((pid_t)strtol(pid, NULL, 10), 0) < 0 && errno == ESRCH);
    free(pid);
}

static void a_peer_that_cannot_run_says_so_in_every_cell(void **state) {
    (void)state;
    write_script("runsc", SAYS_VERSION "echo 'this host is not good enough' >&2\nexit 1\n");
    json_t *all = peers_of("runsc", one, 1);
    const json_t *cell = json_object_get(json_object_get(json_array_get(all, 0), "cells"), "SY17");
    assert_string_equal(text_of(cell, "result"), "untestable");
    if (!strstr(text_of(cell, "detail"), "runsc does not run here") ||
        !strstr(text_of(cell, "detail"), "not good enough"))
        fail_msg("%s", text_of(cell, "detail"));
    json_decref(all);
}

/* ------------------------------------------------------------------ names, and the table */

static void refused(const char *names, int code, const char *word) {
    const struct probe *probe = probe_find("SY17");
    json_t *ret = NULL;
    struct err e = {0};

    assert_int_equal(lab_peers(&probe, 1, names, NULL, NULL, NULL, &ret, &e), code);
    assert_null(ret);
    if (!strstr(e.message, word) || strchr(e.message, '\n'))
        fail_msg("%s: %s", names, e.message);
}

static void names_that_are_none_and_peers_that_are_missing_are_errors(void **state) {
    char *path = strdup(getenv("PATH"));

    (void)state;
    refused("docker,bubblewrap", -EINVAL,
            "no peer is called \"bubblewrap\"; there are bwrap, crun, runc");
    refused("", -EINVAL, "names no peer");
    refused(",", -EINVAL, "no peer is called \"\"");
    assert_int_equal(setenv("PATH", "/nonexistent", 1), 0);
    refused("bwrap", -ENOENT, "bwrap is not installed");
    refused("bwrap", -ENOENT, "the package bubblewrap");
    assert_int_equal(setenv("PATH", path, 1), 0);
    free(path);
}

/* An explanation is given where the walls are missing, and none is made up where one is there. */
static void a_difference_is_explained_or_a_fault(void **state) {
    const struct peer *bwrap = peer_find("bwrap");

    (void)state;
    char *why = peer_explain(bwrap, probe_find("RS1c"), false);
    assert_non_null(why);
    assert_string_equal(
        why,
        "bwrap limits no memory; it loads no seccomp filter unless it is handed one (--seccomp).");
    free(why);
    assert_null(peer_explain(bwrap, probe_find("FS7"), false)); /* it does drop capabilities */
    assert_null(peer_explain(bwrap, probe_find("SK1"), false)); /* it does unshare the network */
    assert_null(peer_explain(bwrap, probe_find("EX6"), true));
    assert_null(peer_explain(bwrap, probe_find("SK1e"),
                             false)); /* no control is named, and no reason written */
}

static void the_table_is_sound(void **state) {
    (void)state;
    for (size_t i = 0; i < lab_n_peers; i++) {
        const struct peer *p = &lab_peer_table[i];
        char line[WORDS_COMMAND];
        struct err e = {0};

        assert_ptr_equal(peer_find(p->name), p);
        if (peer_command_line(p, line, &e) < 0)
            fail_msg("%s", e.message);
        if (strncmp(line, p->program, strlen(p->program)) != 0 ||
            (!strstr(line, "COMMAND") && !strstr(line, "bundle")))
            fail_msg("%s: %s", p->name, line);
        for (const struct trait *t = p->traits; t->words; t++)
            for (const struct trait *u = t + 1; u->words; u++)
                if (t->control == u->control && (t->whose == u->whose || !t->whose || !u->whose))
                    fail_msg("%s: two traits for %s", p->name, control_id_name(t->control));
        for (const struct reason *r = p->reasons; r->probes; r++)
            for (const char *q = r->probes; *q;) {
                char id[16];
                size_t n = strcspn(q, " ");
                (void)snprintf(id, sizeof(id), "%.*s", (int)n, q);
                if (!probe_find(id))
                    fail_msg("%s: a reason for %s, which is no probe", p->name, id);
                q += n + (q[n] == ' ');
            }
    }
    assert_null(peer_find("none"));
}

static void a_command_line_can_be_typed(void **state) {
    struct words w = {0};
    char line[WORDS_COMMAND];

    (void)state;
    words_add(&w, "a");
    words_add(&w, "%s", "b c");
    words_add(&w, "%s", "");
    words_add(&w, "--x=/tmp:%d", 1);
    words_print(&w, line);
    assert_string_equal(line, "a 'b c' '' --x=/tmp:1");
    assert_false(w.failed);
    for (int i = 0; i < 300; i++)
        words_add(&w, "more");
    assert_true(w.failed);
    words_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_sound),
        cmocka_unit_test(a_command_line_can_be_typed),
        cmocka_unit_test(a_difference_is_explained_or_a_fault),
        cmocka_unit_test(names_that_are_none_and_peers_that_are_missing_are_errors),
        cmocka_unit_test_setup_teardown(an_oci_runtime_is_given_a_bundle_with_safe_settings,
                                        stand_in, stand_out),
        cmocka_unit_test_setup_teardown(docker_is_given_the_recommended_flags, stand_in, stand_out),
        cmocka_unit_test_setup_teardown(a_peer_that_hangs_is_ended_with_all_that_it_started,
                                        stand_in, stand_out),
        cmocka_unit_test_setup_teardown(a_peer_that_cannot_run_says_so_in_every_cell, stand_in,
                                        stand_out),
        cmocka_unit_test(bubblewrap_stops_what_it_says_and_no_more),
        cmocka_unit_test(runc_stops_what_it_says_and_no_more),
        cmocka_unit_test(peers_run_in_the_box_around_the_lab_one_after_the_other),
    };

    return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
