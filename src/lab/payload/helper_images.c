/*
 * helper_images.c: what a box made of an image is like, seen from inside.
 */
#include "lab/payload/helper.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/banned.h"

static int found_right(const char *call, const char *what) {
    printf("STOPPED\t%s\t%s\t\n", call, what);
    return fflush(stdout) == 0 ? 0 : 1;
}

/* The /dev that the box brings, or the image's? */
HELPER(fresh_dev) {
    struct stat null, console;

    (void)argc, (void)argv;
    if (lstat("/dev/null", &null) < 0)
        return stopped("lstat /dev/null", errno, "");
    if (!S_ISCHR(null.st_mode) || null.st_rdev != makedev(1, 3))
        return through("lstat /dev/null", "it is the image's");
    if (lstat("/dev/console", &console) == 0 && S_ISLNK(console.st_mode))
        return through("lstat /dev/console", "it is the image's");
    return found_right("lstat", "fresh");
}

/* Up from where it starts, to where there is no higher. */
HELPER(starts_inside) {
    struct stat root, here, above;
    int dir = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char cwd[256];

    (void)argc, (void)argv;
    if (dir < 0 || fstat(dir, &above) < 0 || stat("/", &root) < 0)
        return stopped("open .", errno, "");
    do {
        here = above;
        int up = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)close(dir);
        dir = up;
        if (dir < 0 || fstat(dir, &above) < 0)
            return stopped("openat ..", errno, "");
    } while (above.st_ino != here.st_ino || above.st_dev != here.st_dev);
    if (above.st_ino != root.st_ino || above.st_dev != root.st_dev)
        return through("openat ..", "its directory is outside the root");
    return found_right("getcwd", getcwd(cwd, sizeof(cwd)) && cwd[0] == '/' ? "inside" : "nowhere");
}

/* Whether something is mounted on argv[1], without a /proc to ask. */
HELPER(mounted_on) {
    struct statx x;

    if (argc != 2 || statx(AT_FDCWD, argv[1], 0, 0, &x) < 0)
        return stopped("statx", errno, "");
    if (!(x.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
        return untestable("this kernel does not tell where mounts are");
    if (x.stx_attributes & STATX_ATTR_MOUNT_ROOT)
        return through("statx", argv[1]);
    return stopped("statx", 0, "nothing is mounted there");
}

/* ------------------------------------------------------------------ all that a policy decides */

static void copy_lines(const char *path, const char *const *skip) {
    char line[1024];
    FILE *file = fopen(path, "re");

    while (file && fgets(line, sizeof(line), file)) {
        const char *const *s = skip;
        while (*s && strncmp(line, *s, strlen(*s)) != 0)
            s++;
        if (!*s)
            (void)fputs(line, stdout);
    }
    if (file)
        (void)fclose(file);
}

/* Without numbers that differ from box to box, and without where in a store the root is. */
static void print_mounts(void) {
    char line[1024], place[256], options[256];
    FILE *file = fopen("/proc/self/mountinfo", "re");

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "%*d %*d %*s %*s %255s %255s", place, options) == 2)
            printf("%s %s\n", place, options);
    if (file)
        (void)fclose(file);
}

/* Not those outside, of which each box has its own. */
static void print_ids(void) {
    FILE *file = fopen("/proc/self/uid_map", "re");
    unsigned inside, count;

    while (file && fscanf(file, "%u %*u %u", &inside, &count) == 2)
        printf("ids %u %u\n", inside, count);
    if (file)
        (void)fclose(file);
}

static void print_interfaces(void) {
    char line[512];
    FILE *file = fopen("/proc/net/dev", "re");

    while (file && fgets(line, sizeof(line), file)) {
        char *colon = strchr(line, ':');
        if (colon)
            printf("interface %.*s\n", (int)(colon - line), line);
    }
    if (file)
        (void)fclose(file);
}

HELPER(all_that_is) {
    static const char *const counts[] = {"Pid:",         "PPid:",
                                         "Tgid:",        "NS",
                                         "Ngid:",        "Vm",
                                         "Rss",          "Sig",
                                         "Cpus_allowed", "voluntary_ctxt",
                                         "Mems_allowed", "nonvoluntary_ctxt",
                                         "FDSize:",      "HugetlbPages:",
                                         "State:",       NULL};
    static const char *const none[] = {NULL};
    char name[256];

    (void)argc, (void)argv;
    copy_lines("/proc/self/status", counts);
    copy_lines("/proc/self/limits", none);
    print_ids();
    print_mounts();
    print_interfaces();
    for (char **e = environ; *e; e++)
        puts(*e);
    if (getcwd(name, sizeof(name)))
        puts(name);
    if (gethostname(name, sizeof(name)) == 0)
        puts(name);
    return found_right("read", "all that is");
}
