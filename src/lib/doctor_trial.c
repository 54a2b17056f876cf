/*
 * doctor_trial.c: the last word on whether a default run works: one.
 *
 * On no one's rootfs but its own, so that it is the host that is tried: a directory with the places
 * that a box needs and a program that makes the one system call exit_group(0), which is written here
 * byte by byte and so needs no library, no interpreter and no compiler.
 *
 * An interruption ends the trial, and takes effect when the directory is gone. Who is killed leaves it;
 * the directory is locked as long as its maker lives, so that the next doctor or gc can tell, and removes it.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/box.h"
#include "box/sweep.h"
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

/* ------------------------------------------------------------------ the directory */

enum { PLACES = 6 };
static const char prefix[] = "mayfly-doctor-";

static void places_find(const char *ret[PLACES]) {
    const char *const places[PLACES] = {getenv("TMPDIR"),          "/tmp", "/var/tmp", "/dev/shm",
                                        getenv("XDG_RUNTIME_DIR"), "/run"};

    memcpy(ret, places, sizeof(places));
}

/* Of the name that was just made. To a doctor that looks between the making and the lock it is a dead one's. */
static int lock_new(const char *path) {
    struct stat by_fd, by_name;
    int dir _cleanup_fd_ = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0 || flock(dir, LOCK_EX | LOCK_NB) < 0 || fstat(dir, &by_fd) < 0 ||
        lstat(path, &by_name) < 0 || by_fd.st_ino != by_name.st_ino)
        return -1;
    return TAKE_FD(dir);
}

/* In the first place that can hold it: writable, and not noexec. The descriptor is the directory's, and its lock. */
static int make_dir(char *ret, size_t size) {
    const char *places[PLACES];
    struct statvfs fs;

    places_find(places);
    for (size_t i = 0; i < PLACES; i++)
        for (int tries = 0; places[i] && tries < 3; tries++) {
            if (statvfs(places[i], &fs) < 0 || fs.f_flag & ST_NOEXEC ||
                snprintf(ret, size, "%s/%sXXXXXX", places[i], prefix) >= (int)size || !mkdtemp(ret))
                break;
            int dir = lock_new(ret);
            if (dir >= 0)
                return dir;
            (void)rmdir(ret);
        }
    return -1;
}

static int fill_dir(int dir) {
    const struct program p = program_make();

    if (fchmod(dir, 0755) < 0) /* the payload is another user */
        return -errno;
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (mkdirat(dir, dirs[i], 0755) < 0)
            return -errno;
    int fd _cleanup_fd_ = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    if (fd < 0 || fchmod(fd, 0755) < 0)
        return -errno;
    return fd_write_full(fd, &p, sizeof(p));
}

static bool remove_dir(int parent, const char *path, int dir) {
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        (void)unlinkat(dir, dirs[i], AT_REMOVEDIR);
    (void)unlinkat(dir, name, 0);
    return unlinkat(parent, path, AT_REMOVEDIR) == 0;
}

/* One that is ours, and that nobody holds. Nothing in it is followed, and only what a doctor makes is removed. */
static void collect_one(int parent, const char *path, struct sweep_report *report) {
    struct stat st;
    int dir _cleanup_fd_ = openat(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0 || fstat(dir, &st) < 0 || st.st_uid != geteuid())
        return;
    if (flock(dir, LOCK_EX | LOCK_NB) < 0) {
        report->living++;
        return;
    }
    report->found++;
    report->removed += remove_dir(parent, path, dir);
}

void doctor_collect(struct sweep_report *report) {
    const char *places[PLACES];

    places_find(places);
    for (size_t i = 0; i < PLACES; i++) {
        DIR *list = places[i] ? opendir(places[i]) : NULL;
        const struct dirent *e;

        while (list && (e = readdir(list)))
            if (strncmp(e->d_name, prefix, sizeof(prefix) - 1) == 0)
                collect_one(dirfd(list), e->d_name, report);
        if (list)
            (void)closedir(list);
    }
}

/* ------------------------------------------------------------------ the run */

static int run(const char *rootfs, const char *parent, int cancel_fd,
               struct mayfly_report *report) {
    static const char *const argv[] = {"/exit", NULL};
    mayfly_policy *policy = mayfly_policy_new();
    struct mayfly_error *error = &report->trial_error;
    const struct mayfly_input input = {.cancel_fd = cancel_fd};
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
    r = r < 0 ? r : mayfly_run(policy, &input, &result, error);
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

static void try_in_dir(const char *parent, int cancel_fd, struct mayfly_report *report) {
    char path[4096];
    int dir _cleanup_fd_ = make_dir(path, sizeof(path));

    if (dir < 0) {
        (void)str_copy(report->trial_error.message, sizeof(report->trial_error.message),
                       "not tried: no place for a program that may be executed, in $TMPDIR, /tmp, "
                       "/var/tmp or /dev/shm");
        return;
    }
    int r = fill_dir(dir);
    if (r == 0) {
        r = run(path, parent, cancel_fd, report);
        report->trial = r == 0;
    } else {
        (void)snprintf(report->trial_error.message, sizeof(report->trial_error.message),
                       "not tried: %.200s: %s", path, errno_words(r));
    }
    (void)remove_dir(AT_FDCWD, path, dir);
}

/* Until the directory is gone. The descriptor becomes readable when one of them came. */
static int hold_signals(sigset_t *ret_before) {
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        (void)sigaddset(&set, ends[i]);
    (void)pthread_sigmask(SIG_BLOCK, &set, ret_before);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void doctor_trial(const mayfly_policy *policy, struct mayfly_report *report) {
    const struct policy *asked = policy_inner(policy);
    sigset_t before;
    int signals _cleanup_fd_ = hold_signals(&before);

    report->trial = -1;
    for (size_t i = 0; i < report->n_checks; i++)
        report->trial_best_effort |=
            report->checks[i].answer == 0 && report->checks[i].best_effort[0];
    doctor_collect(&(struct sweep_report){0});
    try_in_dir(asked->cgroup_parent, signals, report);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* and one that came takes effect */
}
