/*
 * doctor_trial.c: the last word on whether a default run works: one.
 *
 * On no one's rootfs but its own, so that it is the host that is tried: a directory with the places
 * that a box needs and a program that makes the one system call exit_group(0), which is written here
 * byte by byte and so needs no library, no interpreter and no compiler.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/box.h"
#include "lib/doctor.h"
#include "lib/report.h"

#include "base/banned.h"

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
static const unsigned char code[] = {0x31, 0xff,                   /* xor edi, edi */
                                     0xb8, 0xe7, 0x00, 0x00, 0x00, /* mov eax, 231 */
                                     0x0f, 0x05};                  /* syscall */
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
static const unsigned char code[] = {0x00, 0x00, 0x80, 0xd2,  /* mov x0, 0 */
                                     0xc8, 0x0b, 0x80, 0xd2,  /* mov x8, 94 */
                                     0x01, 0x00, 0x00, 0xd4}; /* svc 0 */
#endif

struct program {
    Elf64_Ehdr head;
    Elf64_Phdr load;
    unsigned char code[16];
};

static const char *const dirs[] = {"proc", "dev", "tmp"};
static const char name[] = "exit";

static struct program program_make(void) {
    const uint64_t base = 0x400000;
    struct program p = {.head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
                                             ELFDATA2LSB, EV_CURRENT},
                                 .e_type = ET_EXEC,
                                 .e_machine = MACHINE,
                                 .e_version = EV_CURRENT,
                                 .e_entry = base + offsetof(struct program, code),
                                 .e_phoff = offsetof(struct program, load),
                                 .e_ehsize = sizeof(Elf64_Ehdr),
                                 .e_phentsize = sizeof(Elf64_Phdr),
                                 .e_phnum = 1},
                        .load = {.p_type = PT_LOAD,
                                 .p_flags = PF_R | PF_X,
                                 .p_vaddr = base,
                                 .p_paddr = base,
                                 .p_filesz = sizeof(struct program),
                                 .p_memsz = sizeof(struct program),
                                 .p_align = 0x1000}};

    memcpy(p.code, code, sizeof(code));
    return p;
}

/* The first place that can hold it: writable, and not noexec. */
static bool make_dir(char *ret, size_t size) {
    const char *const places[] = {getenv("TMPDIR"),          "/tmp", "/var/tmp", "/dev/shm",
                                  getenv("XDG_RUNTIME_DIR"), "/run"};
    struct statvfs fs;

    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (places[i] && statvfs(places[i], &fs) == 0 && !(fs.f_flag & ST_NOEXEC) &&
            snprintf(ret, size, "%s/mayfly-doctor-XXXXXX", places[i]) < (int)size && mkdtemp(ret))
            return true;
    return false;
}

static int fill_dir(const char *path) {
    const struct program p = program_make();
    int dir _cleanup_fd_ = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0 || fchmod(dir, 0755) < 0) /* the payload is another user */
        return -errno;
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (mkdirat(dir, dirs[i], 0755) < 0)
            return -errno;
    int fd _cleanup_fd_ = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    if (fd < 0 || fchmod(fd, 0755) < 0)
        return -errno;
    return fd_write_full(fd, &p, sizeof(p));
}

static void remove_dir(const char *path) {
    int dir _cleanup_fd_ = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; dir >= 0 && i < ARRAY_LEN(dirs); i++)
        (void)unlinkat(dir, dirs[i], AT_REMOVEDIR);
    if (dir >= 0)
        (void)unlinkat(dir, name, 0);
    (void)rmdir(path);
}

static int run(const char *rootfs, const char *parent, struct mayfly_report *report) {
    static const char *const argv[] = {"/exit", NULL};
    mayfly_policy *policy = mayfly_policy_new();
    struct mayfly_error *error = &report->trial_error;
    mayfly_result *result = NULL;

    if (!policy)
        return -ENOMEM;
    int r = mayfly_policy_set(policy, "rootfs", rootfs, error);
    r = r < 0 || !parent ? r : mayfly_policy_set(policy, "cgroup-parent", parent, error);
    r = r < 0 ? r : mayfly_policy_command(policy, argv, error);
    r = r < 0 || !report->trial_best_effort
            ? r
            : mayfly_policy_set(policy, "limits", "best-effort", error);
    uint64_t start = now_ns();
    r = r < 0 ? r : mayfly_run(policy, NULL, &result, error);
    report->trial_ms = (double)(now_ns() - start) / 1e6;
    if (r == 0 && (result->outcome != MAYFLY_EXITED || result->exit_code != 0)) {
        *error = result->error;
        if (!error->code)
            *error = (struct mayfly_error){.code = -EPROTO, .kind = MAYFLY_E_INTERNAL};
        if (!error->message[0])
            (void)snprintf(error->message, sizeof(error->message),
                           "a program that exits with 0 %s, exit code %d",
                           mayfly_outcome_name(result->outcome), result->exit_code);
        r = error->code;
    }
    mayfly_result_free(result);
    mayfly_policy_free(policy);
    return r;
}

void doctor_trial(const mayfly_policy *policy, struct mayfly_report *report) {
    const struct policy *asked = policy_inner(policy);
    char path[4096];
    int r = -ENOENT;

    report->trial = -1;
    for (size_t i = 0; i < report->n_checks; i++)
        report->trial_best_effort |=
            report->checks[i].answer == 0 && report->checks[i].best_effort[0];
    if (!make_dir(path, sizeof(path))) {
        (void)str_copy(report->trial_error.message, sizeof(report->trial_error.message),
                       "not tried: no place for a program that may be executed, in $TMPDIR, /tmp, "
                       "/var/tmp or /dev/shm");
        return;
    }
    r = fill_dir(path);
    if (r == 0) {
        r = run(path, asked->cgroup_parent, report);
        report->trial = r == 0;
    } else {
        (void)snprintf(report->trial_error.message, sizeof(report->trial_error.message),
                       "not tried: %.200s: %s", path, errno_words(r));
    }
    remove_dir(path);
}
