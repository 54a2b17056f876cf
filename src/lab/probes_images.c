/*
 * probes_images.c: images made by an enemy.
 *
 * Each is written byte by byte, taken in by the program that takes images in, and judged by facts: the canaries on the
 * host, what is in the root file system that was made of it, and, where that is what the image is after, what a box on it
 * is like. A refusal has to name what was wrong, or it would be anything's.
 */
#include "lab/families.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "lab/attempt.h"
#include "lab/host_watch.h"
#include "lab/hostile.h"
#include "lab/payload.h"
#include "lab/scratch.h"

#include "base/banned.h"

#define FILE_(path, content)                                                                       \
    { .type = '0', .name = (path), .text = (content) }
#define DIR_(path)                                                                                 \
    { .type = '5', .name = (path) }
#define LINK_(path, to)                                                                            \
    { .type = '2', .name = (path), .link = (to) }
#define HARD_(path, to)                                                                            \
    { .type = '1', .name = (path), .link = (to) }
#define LAYER(...)                                                                                 \
    (const struct image_entry[]) {                                                                 \
        __VA_ARGS__, { 0 }                                                                         \
    }
#define LAYERS(...) ((const struct image_entry *const[]){__VA_ARGS__, NULL})

/* Where the payload is in an image, and an image's config that runs it. */
#define PAYLOAD                                                                                    \
    { .type = '0', .name = "helper", .text = lab_helper, .len = lab_helper_len, .mode = 0755 }

/* ------------------------------------------------------------------ taking it in */

/* Names on the host that an image would like to reach: a->dir is short, so they fit an entry's 100 bytes. */
struct places {
    char dir[96], new[96], secret[96], open[96]; /* absolute */
    char up_dir[96], up_new[96], up_secret[96];  /* by way of .., from wherever a root is */
};

static struct places places_of(const struct attempt *a) {
    static const char up[] = "../../../../../../../../..";
    struct places p;

    (void)snprintf(p.dir, sizeof(p.dir), "%.60s/canary", a->dir);
    (void)snprintf(p.new, sizeof(p.new), "%.60s/canary/new", a->dir);
    (void)snprintf(p.secret, sizeof(p.secret), "%.60s/canary/secret", a->dir);
    (void)snprintf(p.open, sizeof(p.open), "%.60s/canary/open", a->dir);
    (void)snprintf(p.up_dir, sizeof(p.up_dir), "%s%.50s/canary", up, a->dir);
    (void)snprintf(p.up_new, sizeof(p.up_new), "%s%.50s/canary/new", up, a->dir);
    (void)snprintf(p.up_secret, sizeof(p.up_secret), "%s%.50s/canary/secret", up, a->dir);
    return p;
}

static bool cannot(struct attempt *a, const char *why) {
    (void)snprintf(a->problem, sizeof(a->problem), "import: %.280s", why);
    return false;
}

/* False, with the finding or the problem filled, unless it was taken in (*ret_taken) or refused in words that have
 * `word` in them (NULL: it must be taken in). */
static bool take_in(struct attempt *a, struct finding_of *f, struct hostile *h, const char *word,
                    bool *ret_taken) {
    char words[300];
    int r = hostile_import(a, h, words, sizeof(words));

    if (r == -ENOENT)
        return lab_untestable(f, "mayfly-fetch, which takes images in, is nowhere");
    if (r < 0)
        return cannot(a, strerrordesc_np(-r));
    if (ret_taken)
        *ret_taken = r == 0;
    if (r == 0)
        return true;
    if (!word || !strstr(words, word))
        return cannot(a, words);
    lab_found(f, VERDICT_STOPPED, "import", "refused", words);
    return true;
}

/* As take_in(); `inside`: what is in the root then. Whatever the canaries are, they were before. */
static bool harmless(struct attempt *a, struct finding_of *f, struct hostile *h, const char *word,
                     const char *inside) {
    struct places p = places_of(a);
    _cleanup_free_ char *before = lab_canaries(p.dir), *after = NULL;
    bool taken = false, fine = take_in(a, f, h, word, &taken);

    after = lab_canaries(p.dir);
    if (!before || !after || strcmp(before, after) != 0)
        lab_found(f, VERDICT_THROUGH, "import", "", "the canaries are not what they were");
    else if (fine && taken && inside && hostile_has(a, inside))
        lab_found(f, VERDICT_STOPPED, "import", "inside", inside);
    else if (fine && taken)
        lab_found(f, VERDICT_THROUGH, "import", "", "it was taken in");
    else if (fine && hostile_has(a, ""))
        lab_found(f, VERDICT_THROUGH, "import", "", "it was refused, and left a root behind");
    return fine;
}

/* One image of one or two layers. */
static bool one(struct attempt *a, struct finding_of *f, const struct image_entry *const *layers,
                const char *word, const char *inside) {
    _cleanup_hostile_ struct hostile h = {0};

    hostile_add(&h, "lab:1", "", layers);
    return harmless(a, f, &h, word, inside);
}

static bool names_up(struct attempt *a, struct finding_of *f) {
    struct places p = places_of(a);

    return one(a, f, LAYERS(LAYER(FILE_(p.up_new, "x"))), "..", NULL);
}

static bool names_absolute(struct attempt *a, struct finding_of *f) {
    struct places p = places_of(a);

    return one(a, f, LAYERS(LAYER(FILE_(p.new, "x"))), "absolute", NULL);
}

/* Absolute, and by way of .., in the layer of the link and in the one above. */
static bool through_links(struct attempt *a, struct finding_of *f) {
    struct places p = places_of(a);

    return one(a, f,
               LAYERS(LAYER(LINK_("absolute", p.dir), FILE_("absolute/new", "x"),
                            LINK_("relative", p.up_dir), FILE_("relative/new2", "x"),
                            LINK_("file", p.open), FILE_("file", "x")),
                      LAYER(FILE_("absolute/open", "x"), FILE_("relative/secret", "x"))),
               NULL, p.new + 1);
}

static bool hard_link_out(struct attempt *a, struct finding_of *f) {
    struct places p = places_of(a);

    return one(a, f, LAYERS(LAYER(DIR_("d"), HARD_("stolen", p.up_secret))), "stolen", NULL);
}

static bool hard_link_through(struct attempt *a, struct finding_of *f) {
    struct places p = places_of(a);

    return one(a, f, LAYERS(LAYER(LINK_("d", p.dir), HARD_("stolen", "d/secret"))), "stolen", NULL);
}

/* What is then written to the new name must not go where the link leads. */
static bool hard_link_to_link(struct attempt *a, struct finding_of *f) {
    struct places p = places_of(a);

    return one(a, f,
               LAYERS(LAYER(LINK_("l", p.open), HARD_("same", "l")), LAYER(FILE_("same", "x"))),
               NULL, "same");
}

static bool bare_whiteout(struct attempt *a, struct finding_of *f) {
    return one(a, f, LAYERS(LAYER(DIR_("d")), LAYER(FILE_("d/.wh.", ""))), "whiteout", NULL);
}

static bool whiteout_of_above(struct attempt *a, struct finding_of *f) {
    return one(a, f, LAYERS(LAYER(DIR_("d")), LAYER(FILE_("d/.wh...", ""))), "whiteout", NULL);
}

static bool whiteouts_through_links(struct attempt *a, struct finding_of *f) {
    struct places p = places_of(a);

    return one(a, f,
               LAYERS(LAYER(LINK_("l", p.dir), LINK_("up", p.up_dir), FILE_("kept", "x")),
                      LAYER(FILE_("l/.wh.open", ""), FILE_("l/.wh..wh..opq", ""),
                            FILE_("up/.wh.secret", ""))),
               NULL, "kept");
}

/* An entry for what is a link already gives its mode, its time and its attributes to something. */
static bool attributes_through_links(struct attempt *a, struct finding_of *f) {
    struct places p = places_of(a);

    return one(a, f,
               LAYERS(LAYER(LINK_("d", p.dir), LINK_("l", p.open), LINK_("up", p.up_dir)),
                      LAYER({.type = 'x', .name = "SCHILY.xattr.user.lab", .text = "x"},
                            {.type = '5', .name = "d/", .mode = 01777},
                            {.type = 'x', .name = "SCHILY.xattr.user.lab", .text = "x"},
                            {.type = '5', .name = "up/mount-here", .mode = 0700},
                            {.type = 'x', .name = "SCHILY.xattr.user.lab", .text = "x"},
                            {.type = '2', .name = "l", .link = p.open, .mode = 04777})),
               NULL, "l");
}

/* ------------------------------------------------------------------ a box on it */

static bool has_root(const struct attempt *a, struct finding_of *f) {
    return !lab_off(a, "mount") ||
           lab_untestable(f, "mount is off: the box has no root of its own, and so no image's");
}

/* A run of an image's own command. False: the attempt has a problem. A refusal is one in words, or a set-up that failed. */
static bool run_policy(struct attempt *a, struct finding_of *f, char *out, size_t size) {
    struct mayfly_error e = {0};
    mayfly_result *r = NULL;

    if (a->problem[0])
        return false;
    if (mayfly_run(a->policy, NULL, &r, &e) < 0)
        lab_found(f, VERDICT_STOPPED, "mayfly", "refused", e.message);
    else if (r->outcome == MAYFLY_SETUP_FAILED)
        lab_found(f, VERDICT_STOPPED, "mayfly", "refused", r->error.message);
    else if (!attempt_verdict(r, f))
        (void)snprintf(a->problem, sizeof(a->problem), "the box said nothing: %.60s, exit %d",
                       mayfly_outcome_name(r->outcome), r->exit_code);
    if (out)
        (void)str_copy(out, size, r ? r->out.data : "");
    mayfly_result_free(r);
    return !a->problem[0];
}

static bool run_image(struct attempt *a, struct finding_of *f, const char *name, char *out,
                      size_t size) {
    mayfly_policy_free(a->policy);
    if (attempt_bare_policy(a) < 0)
        return cannot(a, "out of memory");
    lab_set(a, "store", "%s/" HOSTILE_STORE, a->dir);
    lab_set(a, "image", "%s", name);
    return run_policy(a, f, out, size);
}

/* Takes one in, which has to be possible, and runs it. */
static bool run_one(struct attempt *a, struct finding_of *f, const char *command,
                    const struct image_entry *layer) {
    _cleanup_hostile_ struct hostile h = {0};
    char config[200];
    bool taken = false;

    if (!has_root(a, f))
        return false;
    (void)snprintf(config, sizeof(config), "\"Cmd\":[\"/helper\",%.150s]", command);
    hostile_add(&h, "lab:1", config, LAYERS(layer));
    return take_in(a, f, &h, NULL, &taken) && run_image(a, f, "lab:1", NULL, 0);
}

/* Of a control that mounts what the image has a link for: without it nothing is mounted. */
static bool is_on(const struct attempt *a, struct finding_of *f, const char *control) {
    return !lab_off(a, control) ||
           lab_untestable(f, "%s is off: nothing of it is mounted", control);
}

/* The box may be refused; where it is made nothing may be mounted where the link leads. */
static bool link_for(struct attempt *a, struct finding_of *f, const char *control) {
    return is_on(a, f, control) && run_one(a, f, "\"mounted_on\",\"/etc\"",
                                           LAYER(PAYLOAD, DIR_("etc"), LINK_(control, "etc")));
}

static bool link_for_proc(struct attempt *a, struct finding_of *f) {
    return link_for(a, f, "proc");
}
static bool link_for_dev(struct attempt *a, struct finding_of *f) { return link_for(a, f, "dev"); }

static bool link_for_sys(struct attempt *a, struct finding_of *f) {
    struct places p = places_of(a);

    return run_one(a, f, "\"open_one\",\"/sys/secret\",\"/sys/kernel\"",
                   LAYER(PAYLOAD, LINK_("sys", p.dir)));
}

static bool devices_as_links(struct attempt *a, struct finding_of *f) {
    struct places p = places_of(a);

    return is_on(a, f, "dev") &&
           run_one(a, f, "\"fresh_dev\"",
                   LAYER(PAYLOAD, LINK_("dev/null", p.open),
                         LINK_("dev/console", "/proc/sys/kernel/core_pattern")));
}

/* A directory of the host's that the caller let slip, and what the supervisor might have open. */
static bool workdir_by_fd(struct attempt *a, struct finding_of *f) {
    enum { HIGH = 40, IMAGES = 5 };
    _cleanup_hostile_ struct hostile h = {0};
    const struct image_entry *layer = LAYER(PAYLOAD);
    char name[IMAGES][16], config[320], dir[IMAGES][48];
    bool taken = false;

    if (!has_root(a, f))
        return false;
    a->fd[0] = open(a->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    a->fd[1] = fcntl(a->fd[0], F_DUPFD, HIGH); // NOLINT(android-cloexec-dup): to be inherited
    if (a->fd[1] < 0)
        return lab_untestable(f, "%s: %s", a->dir, strerrordesc_np(errno));
    (void)snprintf(dir[0], sizeof(dir[0]), "/proc/self/fd/%d", a->fd[1]);
    (void)snprintf(dir[1], sizeof(dir[1]), "/proc/self/fd/%d/canary", a->fd[1]);
    (void)snprintf(dir[2], sizeof(dir[2]), "/proc/1/fd/%d", a->fd[1]);
    (void)snprintf(dir[3], sizeof(dir[3]), "/proc/self/fd/7");
    (void)snprintf(dir[4], sizeof(dir[4]), "/proc/self/fd/8");
    for (int i = 0; i < IMAGES; i++) {
        (void)snprintf(name[i], sizeof(name[i]), "lab:%d", i);
        (void)snprintf(config, sizeof(config),
                       "\"WorkingDir\":\"%s\",\"Cmd\":[\"/helper\",\"starts_inside\"]", dir[i]);
        hostile_add(&h, name[i], config, LAYERS(layer));
    }
    if (!take_in(a, f, &h, NULL, &taken))
        return false;
    for (int i = 0; i < IMAGES; i++)
        if (!run_image(a, f, name[i], NULL, 0))
            return false;
        else if (f->verdict != VERDICT_STOPPED)
            break;
    return true;
}

/* ------------------------------------------------------------------ what looks like a policy */

#define ASKS "{\"network\":\"host\",\"without\":[\"seccomp\"],\"memory\":\"64g\",\"user\":\"0\"}"

/* A box on it is to be the box on an image without any of that, down to what it can see of itself. */
static bool policies_inside(struct attempt *a, struct finding_of *f) {
    enum { TEXT = 16384 };
    static const char command[] = "\"Cmd\":[\"/helper\",\"all_that_is\"]";
    static const char labels[] =
        ",\"Labels\":{\"mayfly.network\":\"host\",\"mayfly.policy\":\"{}\",\"mayfly.without\":"
        "\"seccomp user\",\"com.docker.security\":\"privileged\"},\"Volumes\":{\"/host\":{}},"
        "\"HostConfig\":{\"Privileged\":true,\"Binds\":[\"/:/host\"]}";
    _cleanup_hostile_ struct hostile h = {0};
    _cleanup_free_ char *plain = malloc(TEXT), *asking = malloc(TEXT);
    char config[600];
    bool taken = false;

    if (!has_root(a, f))
        return false;
    if (!plain || !asking)
        return cannot(a, "out of memory");
    (void)snprintf(config, sizeof(config), "%s%s", command, labels);
    hostile_add(&h, "lab:plain", command, LAYERS(LAYER(PAYLOAD)));
    hostile_add(
        &h, "lab:asking", config,
        LAYERS(LAYER(PAYLOAD, FILE_("mayfly.json", ASKS), FILE_("policy.json", ASKS),
                     FILE_(".mayfly/policy.json", ASKS), FILE_(".mayfly.json", ASKS),
                     FILE_("etc/mayfly/config.json", ASKS), FILE_("etc/mayfly/policy.json", ASKS),
                     FILE_("root/.config/mayfly/config.json", ASKS),
                     FILE_("etc/subuid", "root:0:4294967295\n"), FILE_(".dockerenv", ""))));
    if (!take_in(a, f, &h, NULL, &taken) || !run_image(a, f, "lab:plain", plain, TEXT) ||
        !run_image(a, f, "lab:asking", asking, TEXT))
        return false;
    if (f->verdict == VERDICT_STOPPED && strcmp(f->error, "refused") != 0)
        lab_found(f, strcmp(plain, asking) == 0 ? VERDICT_STOPPED : VERDICT_THROUGH, "mayfly",
                  strcmp(plain, asking) == 0 ? "ignored" : "", "the box on an image without them");
    return true;
}

/* ------------------------------------------------------------------ a root that changes meanwhile */

struct race {
    _Atomic(const char *) name; /* what is swapped; NULL: nothing */
    atomic_long swaps;
};

/* Ends with its parent; or by itself. */
static _Noreturn void swap_on(struct race *race, int root) {
    const uint64_t end = now_ns() + UINT64_C(20000000000);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (now_ns() < end) {
        const char *name = atomic_load(&race->name);
        if (name && renameat2(root, name, root, "link", RENAME_EXCHANGE) == 0)
            (void)atomic_fetch_add(&race->swaps, 1);
    }
    _exit(0);
}

/* dir/box/rootfs, with the payload in it, and "link", which leads to its /etc. */
static int make_root(struct attempt *a, int *ret) {
    char path[PATH_MAX];
    int r = scratch_rootfs(a);

    r = r < 0 ? r : scratch_file(a, "rootfs/helper", lab_helper, lab_helper_len, 0755);
    (void)snprintf(path, sizeof(path), "%s/box/rootfs", a->dir);
    *ret = r < 0 ? r : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret >= 0 && symlinkat("etc", *ret, "link") == 0)
        return 0;
    return r < 0 ? r : -errno;
}

static bool set_raced(struct attempt *a) {
    const char *argv[] = {"/helper", "mounted_on", "/etc", NULL};
    struct mayfly_error e = {0};

    mayfly_policy_free(a->policy);
    if (attempt_bare_policy(a) < 0)
        return false;
    lab_set(a, "rootfs", "%s/box/rootfs", a->dir);
    lab_set(a, "volume", "%s/tmp:/mnt:ro", a->dir);
    return !a->problem[0] && mayfly_policy_command(a->policy, argv, &e) == 0;
}

/* So many set-ups, of which each sees hundreds of swaps; until there were MAYFLY_LAB_RACES of those, for who has the
 * time. With controls off there is no more to be learnt of the race than that it still ends well. */
static bool run_raced(struct attempt *a, struct finding_of *f, struct race *race) {
    static const char *const names[] = {"proc", "dev", "tmp", "mnt", "home"};
    const char *value = getenv("MAYFLY_LAB_RACES");
    long wanted = value ? strtol(value, NULL, 10) : 0, boxes = a->without[0] ? 5 : 20;
    long refused = 0, n = 0;
    char text[120];

    while (n < boxes || atomic_load(&race->swaps) < wanted) {
        atomic_store(&race->name, names[n++ % (long)ARRAY_LEN(names)]);
        if (!run_policy(a, f, NULL, 0))
            return false;
        refused += strcmp(f->error, "refused") == 0;
        if (f->verdict != VERDICT_STOPPED)
            return true;
    }
    (void)snprintf(text, sizeof(text), "%ld boxes, %ld of them refused, over %ld swaps", n, refused,
                   atomic_load(&race->swaps));
    lab_found(f, VERDICT_STOPPED, "mount", "not followed", text);
    return true;
}

static bool swapped_targets(struct attempt *a, struct finding_of *f) {
    int root = -1;

    if (!has_root(a, f))
        return false;
    int r = make_root(a, &root);
    a->fd[0] = root;
    struct race *race =
        mmap(NULL, sizeof(*race), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r < 0 || race == MAP_FAILED || !set_raced(a))
        return r < 0 ? cannot(a, strerrordesc_np(-r)) : cannot(a, "the root to race for");
    a->pid[0] = fork();
    if (a->pid[0] == 0)
        swap_on(race, root);
    bool made =
        a->pid[0] > 0 ? run_raced(a, f, race) : lab_untestable(f, "no process to race with");
    long swaps = atomic_load(&race->swaps);
    (void)munmap(race, sizeof(*race));
    if (made && swaps == 0)
        return lab_untestable(f, "names cannot be exchanged here");
    return made;
}

#define IMAGE .family = "images", .stopped_by = "", .kind = PAYLOAD_HOST, .payload = ""

const struct probe probes_images[] = {
    {IMAGE, .id = "IM1", .title = "an image whose /proc is a link", .sees = "refused",
     .echo = "CVE-2019-19921: runc followed an image's link in place of /proc",
     .prepare = link_for_proc},
    {IMAGE, .id = "IM1b", .title = "an image whose /dev is a link", .sees = "refused",
     .echo = "CVE-2015-1335: lxc-start mounted through a container's links",
     .prepare = link_for_dev},
    {IMAGE, .id = "IM1c", .title = "an image whose /sys is a link to a directory of the host",
     .sees = "ENOENT", .echo = "CVE-2023-28642: a link in place of /proc got past AppArmor",
     .prepare = link_for_sys},
    {IMAGE, .id = "IM2", .title = "an image whose /dev/null and /dev/console are links",
     .sees = "fresh",
     .echo = "CVE-2025-31133: runc masked files with the container's own /dev/null",
     .prepare = devices_as_links},
    {IMAGE, .id = "IM3", .title = "an image that starts in /proc/self/fd/N", .sees = "refused",
     .echo = "CVE-2024-21626: a workdir of /proc/self/fd/N was the host's",
     .prepare = workdir_by_fd},
    {IMAGE, .id = "IM5", .title = "a mount's target swapped for a link while the box is set up",
     .sees = "not followed", .echo = "CVE-2021-30465: runc mounted on a target swapped for a link",
     .prepare = swapped_targets},
    {IMAGE, .id = "IM6", .title = "files and labels in an image that look like a policy",
     .sees = "ignored",
     .echo = "CVE-2025-59536: an agent ran a project's code before it was trusted",
     .prepare = policies_inside},
    {IMAGE, .id = "IM7", .title = "a layer with .. in a name", .sees = "refused",
     .echo = "Zip Slip, 2018: archives with .. in a name wrote anywhere", .prepare = names_up},
    {IMAGE, .id = "IM7b", .title = "a layer with an absolute name", .sees = "refused",
     .echo = "CVE-2021-32804: node-tar took off one leading slash of several",
     .prepare = names_absolute},
    {IMAGE, .id = "IM8", .title = "a link, and then a file written through it", .sees = "inside",
     .echo = "CVE-2014-6407: Docker followed an image's links as it unpacked",
     .prepare = through_links},
    {IMAGE, .id = "IM9", .title = "a hard link to a file outside", .sees = "refused",
     .echo = "CVE-2014-6407: Docker unpacked hard links to the host's files",
     .prepare = hard_link_out},
    {IMAGE, .id = "IM9b", .title = "a hard link to a file outside, by a symbolic one",
     .sees = "refused", .echo = "CVE-2026-26960: node-tar's hard links got out by symbolic ones",
     .prepare = hard_link_through},
    {IMAGE, .id = "IM9c", .title = "a hard link to a symbolic one, and a file written to it",
     .sees = "inside", .echo = "CVE-2016-5418: libarchive wrote a hard link's data anywhere",
     .prepare = hard_link_to_link},
    {IMAGE, .id = "IM10", .title = "a whiteout of no name", .sees = "refused",
     .echo = "stereoscope pull 647: a bare .wh. deleted its whole directory",
     .prepare = bare_whiteout},
    {IMAGE, .id = "IM10b", .title = "a whiteout of the directory above", .sees = "refused",
     .prepare = whiteout_of_above},
    {IMAGE, .id = "IM10c", .title = "whiteouts, one of them opaque, through a link",
     .sees = "inside", .echo = "CVE-2021-29136: umoci unpacked a layer through its own links",
     .prepare = whiteouts_through_links},
    {IMAGE, .id = "IM11", .title = "mode, time and attributes given to a link", .sees = "inside",
     .echo = "CVE-2024-12718: tarfile changed times and modes outside the target",
     .prepare = attributes_through_links},
    {.id = NULL},
};
