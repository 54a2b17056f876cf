/*
 * fuzz_procfs.c: files of /proc. Each is read as it is; and then the input is what a process may
 * choose there, its name or the path of a mount, written as the kernel writes it: nothing that it
 * holds may move what stands beside it.
 */
#include "fuzz/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "linux/host.h"
#include "linux/procfs.h"

#include "base/banned.h"

static void stat_as_it_is(const char *text) {
    struct proc_stat st = {.pid = -7};
    int r = proc_parse_stat(text, &st);

    fuzz_must(r == 0 || r == -EINVAL, "%d", r);
    fuzz_must(r == 0 ? st.pid >= 0 && st.ppid >= 0 : st.pid == -7, "pid %d after %d", st.pid, r);
}

static void name_cannot_forge_a_stat(const char *name) {
    _cleanup_buf_ struct buf text = {0};
    struct proc_stat st;

    buf_printf(&text, "42 (%s) S 7", name);
    for (int field = 5; field <= 52; field++)
        buf_printf(&text, " %d", field == 8 ? -1 : field);
    buf_puts(&text, "\n");
    fuzz_must(proc_parse_stat(text.data, &st) == 0, "%s", text.data);
    fuzz_must(st.pid == 42 && st.ppid == 7 && st.state == 'S' && st.start_time == 22 &&
                  st.start_brk == 47 && st.arg_start == 48 && st.env_end == 51,
              "%s", text.data);
}

/* seq_escape of the kernel's. */
static void put_escaped(struct buf *text, const char *s, const char *which) {
    for (; *s; s++) {
        if (strchr(which, *s))
            buf_printf(text, "\\%03o", (unsigned)(unsigned char)*s);
        else
            buf_add(text, s, 1);
    }
}

static void name_cannot_forge_a_status(const char *name) {
    _cleanup_buf_ struct buf text = {0};
    char value[64];

    buf_puts(&text, "Name:\t");
    put_escaped(&text, name, "\n\\");
    buf_puts(&text, "\nUmask:\t0022\nCapEff:\t00000000deadbeef\n");
    fuzz_must(proc_field(text.data, "CapEff", value, sizeof(value)) &&
                  strcmp(value, "00000000deadbeef") == 0,
              "%s", text.data);
    fuzz_must(!proc_field(text.data, "Seccomp", value, sizeof(value)), "%s", text.data);
}

static void path_cannot_forge_a_mount(const char *path) {
    _cleanup_buf_ struct buf text = {0};
    struct mount_info m;

    buf_puts(&text, "36 35 98:0 /r");
    put_escaped(&text, path, " \t\n\\");
    buf_puts(&text, " /t");
    put_escaped(&text, path, " \t\n\\");
    buf_puts(&text, " rw,nodev shared:7 master:1 - ext4 ");
    put_escaped(&text, path, " \t\n\\#");
    buf_puts(&text, " rw,x\n");
    fuzz_must(proc_parse_mount(text.data, &m) == 0, "/%s", path);
    fuzz_must(m.id == 36 && m.parent == 35 && m.major == 98 && m.minor == 0, "/%s", path);
    fuzz_must(strcmp(m.root + 2, path) == 0 && strcmp(m.target + 2, path) == 0, "%s is %s", path,
              m.target);
    fuzz_must(strcmp(m.fstype, "ext4") == 0 && strcmp(m.source, path) == 0, "%s is %s", path,
              m.source);
    fuzz_must(mount_has_option(m.options, "nodev") && !mount_has_option(m.options, "node"), "%s",
              m.options);
    fuzz_must(strcmp(m.super_options, "rw,x") == 0, "%s", m.super_options);
}

/* Every mount lies in its line, whole and in order, and the walk ends. */
static void mountinfo_as_it_is(const char *text) {
    char line[256];
    struct mount_info m;
    size_t left = strlen(text);

    for (const char *at = text; proc_next_mount(&at, line, sizeof(line), &m);) {
        const char *const parts[] = {m.root,   m.target, m.options,
                                     m.fstype, m.source, m.super_options};
        const char *end = line;

        fuzz_must(strlen(at) < left, "the walk stands still at %zu", left);
        left = strlen(at);
        fuzz_must(m.id >= 0 && m.parent >= 0, "%d %d", m.id, m.parent);
        for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
            fuzz_must(parts[i] >= end && parts[i] < line + sizeof(line), "part %zu", i);
            end = parts[i] + strlen(parts[i]);
        }
        fuzz_must(!mount_has_option(m.options, ""), "the empty word");
    }
}

static void status_as_it_is(const char *text) {
    char value[16] = "untouched";

    if (!proc_field(text, "Seccomp", value, sizeof(value)))
        fuzz_must(strcmp(value, "untouched") == 0, "%s", value);
    else
        fuzz_must(!strpbrk(value, "\n") && strstr(text, value), "%s", value);
}

static void release_as_it_is(const char *text) {
    unsigned kernel = host_parse_release(text);
    char back[32];

    if (!kernel)
        return;
    int n = snprintf(back, sizeof(back), "%u.%u", kernel >> 16, kernel & 0xffff);
    while (*text == '0' && text[1] != '.') /* 06.01 is 6.1 */
        text++;
    const char *minor = strchr(text, '.') + 1;
    fuzz_must(strncmp(text, back, (size_t)(minor - text)) == 0, "%s is %s", text, back);
    while (*minor == '0' && minor[1] >= '0' && minor[1] <= '9')
        minor++;
    fuzz_must(strncmp(minor, strchr(back, '.') + 1, strlen(strchr(back, '.') + 1)) == 0 && n > 2,
              "%s is %s", text, back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    char *text _cleanup_free_ = fuzz_text(&in, -1);

    stat_as_it_is(text);
    status_as_it_is(text);
    mountinfo_as_it_is(text);
    release_as_it_is(text);
    name_cannot_forge_a_stat(text);
    name_cannot_forge_a_status(text);
    path_cannot_forge_a_mount(text);
    return 0;
}
