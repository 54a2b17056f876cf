/*
 * policy.c: a policy's life: defaults, setting fields by name, argv, and what
 * must hold between fields. The fields themselves are in policy_fields.c.
 */
#include "policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/units.h"
#include "base/utf8.h"

#include "base/banned.h"

const char POLICY_CODE[] = "{code}";

struct policy *policy_new(void) {
    struct arena arena = {0};
    struct policy *p = arena_alloc(&arena, sizeof(*p));

    if (!p) {
        arena_done(&arena);
        return NULL;
    }
    *p = (struct policy){
        .arena = arena,
        .controls = BIT(CTL__N) - 1,
        .read_only = true,
        .code_name = "main.py",
        .hostname = "mayfly",
        .uid = 1000,
        .gid = 1000,
        .memory_bytes = UINT64_C(256) << 20,
        .cpu_milli = 1000,
        .pids = 128,
        .wall_ms = 10000,
        .output_bytes = UINT64_C(1) << 20,
        .tmp_bytes = UINT64_C(64) << 20,
        .tmp_inodes = 16384,
        .out_bytes = UINT64_C(64) << 20,
        .out_files = 1000,
        .nofile = 1024,
        .fsize_bytes = UINT64_C(1) << 30,
        .stack_bytes = UINT64_C(8) << 20,
        .msgqueue_bytes = 65536,
    };
    return p;
}

void policy_free(struct policy *p) {
    if (!p)
        return;
    /* It lies in its own arena. */
    struct arena arena = p->arena;
    arena_done(&arena);
}

const struct policy_field *policy_find(const char *name) {
    for (size_t i = 0; i < policy_n_fields; i++)
        if (strcmp(policy_fields[i].name, name) == 0)
            return &policy_fields[i];
    return NULL;
}

const struct policy_field *policy_find_flag(const char *flag) {
    for (size_t i = 0; i < policy_n_fields; i++) {
        const struct policy_field *f = &policy_fields[i];
        if (f->flag && strcmp(f->flag, flag) == 0)
            return f;
        if (f->letter && flag[0] == '-' && flag[1] == f->letter && !flag[2])
            return f;
    }
    return NULL;
}

/* ------------------------------------------------------------------ one field */

static int wrong(const struct policy_field *f, const char *value, const char *what,
                 struct err *err) {
    return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "%s: \"%s\" is not %s",
                   f->flag ? f->flag : f->name, value, what);
}

static void range_text(const struct policy_field *f, char *text, size_t size) {
    char low[32], high[32];

    if (f->kind == FIELD_BYTES)
        (void)snprintf(text, size, "between %s and %s", format_bytes(f->min, low, sizeof(low)),
                       format_bytes(f->max, high, sizeof(high)));
    else if (f->kind == FIELD_DURATION)
        (void)snprintf(text, size, "between %s and %s", format_ms(f->min, low, sizeof(low)),
                       format_ms(f->max, high, sizeof(high)));
    else if (f->kind == FIELD_MILLI)
        (void)snprintf(text, size, "between %g and %g", (double)f->min / 1000,
                       (double)f->max / 1000);
    else
        (void)snprintf(text, size, "between %llu and %llu", (unsigned long long)f->min,
                       (unsigned long long)f->max);
}

static int parse_number(const struct policy_field *f, const char *value, uint64_t *ret) {
    uint32_t small = 0;
    int r;

    switch (f->kind) {
    case FIELD_BYTES:
        return parse_bytes(value, ret);
    case FIELD_DURATION:
        return parse_duration_ms(value, ret);
    case FIELD_MILLI:
        r = parse_milli(value, &small);
        *ret = small;
        return r;
    default:
        return parse_u64(value, ret);
    }
}

static int set_number(struct policy *p, const struct policy_field *f, const char *value,
                      struct err *err) {
    static const char *const examples[] = {[FIELD_BYTES] = "a size; write it like 256m or 1g",
                                           [FIELD_DURATION] = "a time; write it like 2s or 500ms",
                                           [FIELD_MILLI] =
                                               "a number of CPUs; write it like 1 or 0.5",
                                           [FIELD_COUNT] = "a whole number"};
    char range[96];
    uint64_t number = 0;
    int r = parse_number(f, value, &number);

    if (r == -EINVAL)
        return wrong(f, value, examples[f->kind], err);
    if (r < 0 || number < f->min || number > f->max) {
        range_text(f, range, sizeof(range));
        return wrong(f, value, range, err);
    }
    void *at = (char *)p + f->offset;
    if (f->kind == FIELD_MILLI || f->small)
        *(uint32_t *)at = (uint32_t)number;
    else
        *(uint64_t *)at = number;
    return 0;
}

static int set_bool(struct policy *p, const struct policy_field *f, const char *value,
                    struct err *err) {
    bool *at = (bool *)((char *)p + f->offset);

    if (strcmp(value, "true") == 0 || strcmp(value, "1") == 0)
        *at = true;
    else if (strcmp(value, "false") == 0 || strcmp(value, "0") == 0)
        *at = false;
    else
        return wrong(f, value, "true or false", err);
    return 0;
}

int policy_set(struct policy *p, const char *name, const char *value, struct err *err) {
    const struct policy_field *f = policy_find(name);

    if (!f)
        return err_set(err, ERR_USAGE, -EINVAL, "", "`mayfly run --help` lists them",
                       "\"%s\" is not a field of a policy", name);
    switch (f->kind) {
    case FIELD_BOOL:
        return set_bool(p, f, value, err);
    case FIELD_TEXT: {
        if (!*value)
            return wrong(f, value, "a value: it is empty", err);
        const char *copy = arena_strdup(&p->arena, value);
        if (!copy)
            return err_oom(err);
        *(const char **)((char *)p + f->offset) = copy;
        return 0;
    }
    case FIELD_CUSTOM:
        return f->set(p, value, err);
    default:
        return set_number(p, f, value, err);
    }
}

/* ------------------------------------------------------------------ the command */

int policy_set_argv(struct policy *p, const char *const *argv, const char *code_name,
                    struct err *err) {
    size_t n = 0;
    bool marked = false;

    for (; argv[n]; n++)
        marked |= argv[n] == POLICY_CODE;
    if (marked != (code_name != NULL))
        return err_set(err, ERR_INTERNAL, -EINVAL, "", NULL, "a code file that no argument names");
    if (n == 0 || !argv[0][0])
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "no command to run");
    const char **copy = arena_alloc(&p->arena, (n + 1) * sizeof(*copy));
    if (!copy)
        return err_oom(err);
    for (size_t i = 0; i < n; i++) {
        copy[i] = argv[i] == POLICY_CODE ? POLICY_CODE : arena_strdup(&p->arena, argv[i]);
        if (!copy[i])
            return err_oom(err);
    }
    if (code_name && !(p->code_name = arena_strdup(&p->arena, code_name)))
        return err_oom(err);
    p->argv = copy;
    p->takes_code = code_name != NULL;
    return 0;
}

int policy_set_python(struct policy *p, const char *const *args, struct err *err) {
    /* -I: nothing of the environment or the working directory is imported. -u: what was printed before a time-out is not
     * lost in a buffer. */
    static const char *const head[] = {"python3", "-I", "-u", POLICY_CODE};
    size_t n = 0;

    while (args && args[n])
        n++;
    const char **argv = arena_alloc(&p->arena, (ARRAY_LEN(head) + n + 1) * sizeof(*argv));
    if (!argv)
        return err_oom(err);
    memcpy(argv, head, sizeof(head));
    for (size_t i = 0; i < n; i++)
        argv[ARRAY_LEN(head) + i] = args[i];
    return policy_set_argv(p, argv, "main.py", err);
}

static bool has_part(const char *list, const char *part, size_t len) {
    for (const char *p = list;; p += strcspn(p, ":") + 1) {
        size_t n = strcspn(p, ":");
        if (n == len && memcmp(p, part, len) == 0)
            return true;
        if (!p[n])
            return false;
    }
}

const char *policy_narrow_path(const struct policy *p) {
    const char *path = NULL;

    for (int i = 0; i < p->n_env; i++)
        if (strncmp(p->env[i], "PATH=", 5) == 0)
            path = p->env[i] + 5;
    for (const char *usual = POLICY_PATH; path && *usual;) {
        size_t len = strcspn(usual, ":");
        if (!has_part(path, usual, len))
            return path;
        usual += len + (usual[len] == ':');
    }
    return NULL;
}

/* ------------------------------------------------------------------ files by content */

const char *policy_name_fault(const char *name) {
    enum { NAME_BYTES = 1000, PART_BYTES = 255 };

    if (!*name)
        return "is empty";
    if (*name == '/')
        return "is not relative";
    if (strlen(name) > NAME_BYTES)
        return "is too long";
    if (!utf8_valid(name, strlen(name)))
        return "is not UTF-8";
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p < 32 || *p == 127)
            return "has a control character in it";
    for (const char *part = name;; part++) {
        size_t len = strcspn(part, "/");
        if (len == 0)
            return "has a part without a name";
        if (len > PART_BYTES)
            return "has a part that is too long";
        if (part[0] == '.' && (len == 1 || (len == 2 && part[1] == '.')))
            return "has a part . or ..";
        part += len;
        if (!*part)
            return NULL;
    }
}

/* "a" and "a/b" cannot both be files. */
static bool clashes(const char *a, const char *b) {
    size_t n = MIN(strlen(a), strlen(b));

    return strncmp(a, b, n) == 0 && (!a[n] || a[n] == '/') && (!b[n] || b[n] == '/');
}

int policy_add_file(struct policy *p, const char *name, const void *data, size_t len,
                    struct err *err) {
    const char *why = policy_name_fault(name);

    for (int i = 0; i < p->n_file && !why; i++)
        if (clashes(p->file[i].name, name))
            why = "there is a file of that name already";
    if (why)
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "--file: \"%.300s\": %s", name, why);
    if (p->n_file == POLICY_FILES)
        return err_set(err, ERR_USAGE, -EINVAL, "", "hand a directory in with --volume",
                       "--file: \"%.300s\": a box takes %d of them", name, POLICY_FILES);
    if (len > POLICY_FILES_BYTES - p->file_bytes)
        return err_set(err, ERR_USAGE, -EINVAL, "", "hand it in with --volume",
                       "--file: \"%.300s\": more than 64 MiB in all", name);
    if (!p->file && !(p->file = arena_alloc(&p->arena, POLICY_FILES * sizeof(*p->file))))
        return err_oom(err);
    struct policy_file f = {.name = arena_strdup(&p->arena, name),
                            .data = arena_memdup(&p->arena, data, len),
                            .len = len};
    if (!f.name || !f.data)
        return err_oom(err);
    p->file[p->n_file++] = f;
    p->file_bytes += len;
    return 0;
}

/* ------------------------------------------------------------------ between fields */

static void fault(struct buf *faults, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void fault(struct buf *faults, const char *fmt, ...) {
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    buf_printf(faults, "%s%s", faults->len ? "; " : "", text);
}

static void check_tmpfs(const struct policy *p, struct buf *warn) {
    char size[32], limit[32];
    uint64_t largest = MAX(p->tmp_bytes, p->out ? p->out_bytes : 0);

    for (int i = 0; i < p->n_tmpfs; i++)
        largest = MAX(largest, p->tmpfs[i].size_bytes);
    if (warn && largest > p->memory_bytes)
        buf_printf(warn,
                   "tmp: a tmpfs of %s in a box of %s memory: filling it ends in an OOM kill, "
                   "not in \"no space left\"\n",
                   format_bytes(largest, size, sizeof(size)),
                   format_bytes(p->memory_bytes, limit, sizeof(limit)));
}

static bool is_below(const char *path, const char *top) {
    size_t len = strlen(top);

    return strncmp(path, top, len) == 0 && (path[len] == '/' || !path[len]);
}

static void check_targets(const struct policy *p, struct buf *faults) {
    for (int i = 0; i < p->n_tmpfs; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(p->tmpfs[i].path, p->tmpfs[j].path) == 0)
                fault(faults, "--tmpfs: %s is named twice", p->tmpfs[i].path);
    for (int i = 0; i < p->n_bind + p->n_tmpfs; i++) {
        const char *path = i < p->n_bind ? p->bind[i].target : p->tmpfs[i - p->n_bind].path;
        if ((p->n_file && is_below(path, "/in")) || (p->out && is_below(path, "/out")))
            fault(faults, "%s: is where --%s has its place", path, path[1] == 'i' ? "file" : "out");
    }
    for (int i = 0; i < p->n_bind; i++) {
        for (int j = 0; j < i; j++)
            if (strcmp(p->bind[i].target, p->bind[j].target) == 0)
                fault(faults, "--volume: two sources for %s", p->bind[i].target);
        for (int j = 0; j < p->n_tmpfs; j++)
            if (strcmp(p->bind[i].target, p->tmpfs[j].path) == 0)
                fault(faults, "--volume and --tmpfs both want %s", p->bind[i].target);
    }
}

/* The kernel's MAX_ARG_STRLEN: past it execve says no more than that a list is too long. */
static size_t longest_text(void) {
    long page = sysconf(_SC_PAGESIZE);

    return 32 * (size_t)(page > 0 ? page : 4096);
}

static void check_lengths(const struct policy *p, struct buf *faults) {
    const size_t most = longest_text();
    char limit[32];

    (void)format_bytes(most, limit, sizeof(limit));
    for (int i = 0; i < p->n_env; i++) /* the value may be a secret */
        if (strlen(p->env[i]) >= most)
            fault(faults,
                  "--env: %.*s: is longer than the kernel's %s for one variable; hand it in as a "
                  "file, with "
                  "--volume",
                  (int)MIN(strcspn(p->env[i], "="), 64u), p->env[i], limit);
    for (size_t i = 0; p->argv && p->argv[i]; i++)
        if (p->argv[i] != POLICY_CODE && strlen(p->argv[i]) >= most)
            fault(faults,
                  "argument %zu of the command is longer than the kernel's %s for one; hand it in "
                  "as a file, "
                  "with --volume, or on standard input, with -i",
                  i, limit);
}

/* Their content is written by the box's own init, so it counts in its memory. */
static void check_files(const struct policy *p, struct buf *faults) {
    char size[32], limit[32];

    if (p->build && (p->n_file || p->out))
        fault(faults, "--build has no use for --file and --out: what is written stays in the root");
    if (p->n_file && p->memory_bytes && p->file_bytes >= p->memory_bytes)
        fault(faults, "--file: %s of files do not fit into --memory %s",
              format_bytes(p->file_bytes, size, sizeof(size)),
              format_bytes(p->memory_bytes, limit, sizeof(limit)));
}

int policy_check(const struct policy *p, struct buf *warn, struct err *err) {
    _cleanup_buf_ struct buf faults = {0};

    if (!p->rootfs)
        fault(&faults, "--rootfs: which root file system? `make rootfs` builds one");
    if (!p->argv)
        fault(&faults, "no command to run");
    if (p->build && p->image)
        fault(&faults, "--build would change an image that others run; copy its files, and name "
                       "the copy with --rootfs");
    if (p->build && p->takes_code)
        fault(&faults, "--build is for commands: code has no place of its own there");
    if (p->memory_swap_bytes && p->memory_swap_bytes < p->memory_bytes)
        fault(&faults, "--memory-swap is memory and swap together, so at least --memory");
    check_lengths(p, &faults);
    check_targets(p, &faults);
    check_files(p, &faults);
    check_tmpfs(p, warn);
    if (faults.failed)
        return err_oom(err);
    if (faults.len)
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "%s", faults.data);
    return 0;
}
