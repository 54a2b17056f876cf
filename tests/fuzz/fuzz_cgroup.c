/*
 * fuzz_cgroup.c: what the kernel says of cgroups: /proc/self/cgroup and mountinfo (parted by an empty
 * line, with the first line being `v2` or not and --cgroup-parent), the flat files of a cgroup, and
 * the names that boxes' cgroups have.
 */
#include "fuzz/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "linux/cgroup.h"
#include "linux/cgroup_hier.h"

#include "base/banned.h"

/* A controller is driven by one hierarchy, or there is a reason. */
static void must_be_a_layout(const struct cg_layout *l) {
    fuzz_must(l->n >= 0 && l->n <= CG_HIERS, "%d hierarchies", l->n);
    for (int c = 0; c < CG__N; c++) {
        int at = l->where[c];

        fuzz_must(at >= -1 && at < l->n, "%s is in hierarchy %d of %d", cg_controller_names[c], at,
                  l->n);
        fuzz_must(at >= 0 ? (l->hier[at].controllers & BIT(c)) && !l->why[c][0] : l->why[c][0] != 0,
                  "%s: %s", cg_controller_names[c], l->why[c]);
    }
    for (int i = 0; i < l->n; i++) {
        const struct cg_hier *h = &l->hier[i];

        fuzz_must(h->version == 1 || (h->version == 2 && i == 0), "version %d at %d", h->version,
                  i);
        fuzz_must(h->parent[0] == '/' && !strstr(h->parent, "/../"), "in %s", h->parent);
        fuzz_must((h->enable & ~h->controllers) == 0, "enables 0x%x of 0x%x", h->enable,
                  h->controllers);
    }
}

static void layout(const char *first, const char *self_cgroup, const char *mountinfo) {
    const char *parent = strchr(first, ' ');
    struct cg_layout l;

    /* No tree of the real host's is asked: a find must be one everywhere. */
    const struct cg_source source = {.fs_root = "/nonexistent/cgroup",
                                     .self_cgroup = self_cgroup,
                                     .mountinfo = mountinfo,
                                     .assume_v2 = first[0] == 'v',
                                     .parent = parent ? parent + 1 : NULL};
    cg_detect(&source, &l);
    must_be_a_layout(&l);
}

static void own_path(const char *self_cgroup) {
    char path[CG_PATH];

    for (int c = -1; c < CG__N; c++)
        if (cg_own_path(self_cgroup, c < 0 ? "" : cg_controller_names[c], path)) {
            fuzz_must(path[0] == '/' && strlen(path) < CG_PATH && !strchr(path, '\n'), "%s", path);
            fuzz_must(strstr(self_cgroup, path), "%s is not there", path);
        }
}

/* The name and what it says are one: made again from that, all but the random part is as it was. */
static void name(const char *text) {
    struct cg_owner owner;
    char again[CG_NAME];

    if (!cg_parse_name(text, &owner))
        return;
    fuzz_must(owner.pid > 0, "pid %d", owner.pid);
    cg_name(&owner, 1, again);
    size_t len = (size_t)(strrchr(again, '-') - again) + 1;
    fuzz_must(strncmp(again, text, len) == 0 && !strchr(text + len, '-'), "%s is read as %s", text,
              again);
    fuzz_must(cg_parse_name(again, NULL), "%s is no name", again);
}

/* A number is what it says, or there is none: never what is left of one that is too large. */
static void must_not_wrap(const char *digits, uint64_t got, const char *what) {
    uint64_t value = 0;
    int r = parse_u64(digits, &value);

    fuzz_must(r == 0 && value == got, "%s: %s is read as %llu", what, digits,
              (unsigned long long)got);
}

static void flat_files(const char *text, const uint8_t *data, size_t size) {
    char path[32], digits[64];
    uint64_t n = 0, kills = cg_keyed(text, "oom_kill");
    int fd = memfd_create("file", MFD_CLOEXEC);

    if (fd < 0 || (size && fd_write_full(fd, data, size) < 0))
        abort();
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int r = cg_read_number(AT_FDCWD, path, &n);
    if (r == 0) {
        size_t len = strcspn(text, "\n");
        fuzz_must(len < sizeof(digits), "%zu digits", len);
        memcpy(digits, text, len);
        digits[len] = '\0';
        must_not_wrap(digits, n, "a number");
    }
    fuzz_must(kills == UINT64_MAX || strstr(text, "oom_kill "), "%llu", (unsigned long long)kills);
    if (kills != UINT64_MAX) {
        const char *at = text;
        while (strncmp(at, "oom_kill ", 9) != 0)
            at = strchr(at, '\n') + 1;
        (void)snprintf(digits, sizeof(digits), "%.*s", (int)MIN(strspn(at + 9, "0123456789"), 60),
                       at + 9);
        must_not_wrap(digits, kills, "a key");
    }
    (void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    char *first _cleanup_free_ = fuzz_text(&in, '\n');
    char *rest _cleanup_free_ = fuzz_text(&in, -1);
    char *parted = strstr(rest, "\n\n");
    struct fuzz_input whole = {data, size};
    char *text _cleanup_free_ = fuzz_text(&whole, -1);

    fuzz_must((cg_parse_controllers(text) & ~(unsigned)(BIT(CG__N) - 1)) == 0, "a stray bit");
    flat_files(text, data, size);
    own_path(text);
    name(text);
    if (parted)
        parted[1] = '\0';
    layout(first, rest, parted ? parted + 2 : "");
    return 0;
}
