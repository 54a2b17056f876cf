/*
 * cmd_image.c: the commands about images, which another program does: mayfly-fetch, which has the libraries for
 * archives and networks that this one is to do without.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/helper.h"
#include "cli/cli.h"
#include "json/config_json.h"

#include "base/banned.h"

extern char **environ;

enum { UNREACHABLE = 69 }; /* mayfly-fetch's exit status where no registry could be reached */

/* Where the store is, and where we are, for the box in which byte code is made. */
static void prepare(const char *store) {
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (store && *store)
        (void)setenv("MAYFLY_STORE", store, 0);
    if (n > 0) {
        self[n] = '\0';
        (void)setenv("MAYFLY_PROGRAM", self, 1);
    }
}

static bool find(char *path, size_t size) {
    if (helper_find("mayfly-fetch", path, size))
        return true;
    complain("the program mayfly-fetch is nowhere: it is built and installed with mayfly, and does "
             "what concerns images");
    return false;
}

int cmd_fetch(const struct command *self, int argc, char **argv) {
    char path[4200], **words = calloc((size_t)argc + 2, sizeof(*words));
    struct mayfly_error error = {0};
    struct config config;

    (void)self;
    if (!words) {
        complain("out of memory");
        return EXIT_MAYFLY;
    }
    if (config_read(&config, &error) < 0) {
        complain("%s", error.message);
    } else if (find(path, sizeof(path))) {
        prepare(config.store);
        words[0] = path;
        for (int i = 0; i < argc; i++)
            words[i + 1] = argv[i];
        (void)signal(SIGPIPE, SIG_DFL);
        (void)execv(path, words);
        complain("%s: %s", path, errno_words(errno));
    }
    free(words);
    return EXIT_MAYFLY;
}

void help_fetch(const struct command *self) {
    static const struct {
        const char *command, *flag, *metavar, *help;
    } flags[] = {
        {"import", "-t, --tag", "NAME", "the image's name (what the source says)"},
        {"pull import", "    --platform", "OS/ARCH",
         "which of several images to take (this machine's)"},
        {"pull", "    --missing", NULL, "ask nobody if there is one of that name"},
        {"pull", "    --plain-http", NULL, "speak to the registry without TLS"},
        {"pull", "    --tls-verify=false", NULL, "trust whatever certificate the registry has"},
        {"pull", "    --retry", "N", "how often to try again what fails for the moment (5)"},
        {"pull", "    --retry-delay", "TIME", "wait before the first try; doubles (500ms)"},
        {"pull", "    --stall-timeout", "TIME",
         "give up a server that is silent, or too slow, for so long (30s)"},
        {"pull", "    --speed-limit", "SIZE", "how much a second is too slow (1k)"},
        {"pull", "    --config", "FILE", "read the registries' settings from this file alone"},
        {"pull import", "    --no-bytecode", NULL, "make no byte code of Python's beside it"},
        {"build", "-t, --tag", "NAME", "the image's name; may be given many times"},
        {"build", "-f, --file", "FILE", "the Dockerfile; - is standard input (DIR/Dockerfile)"},
        {"build", "    --build-arg", "NAME=VALUE", "the value of an ARG"},
        {"build", "    --target", "STAGE", "the stage that is the image (the last)"},
        {"build", "    --no-cache", NULL, "carry every step out again"},
        {"build", "    --pull", "missing|always|never", "when to get the base images (missing)"},
        {"build", "    --platform", "OS/ARCH", "accepted if this machine can run it"},
        {"build", "    --network", "none|host", "what each RUN has (none); host is the host's own"},
        {"build", "    --max-disk", "SIZE", "what all RUNs may write to disk (10g)"},
        {"build", "    --max-output", "SIZE", "what each RUN's output is shown of (16m)"},
        {"build", "    --storage", "auto|overlay|copy", "what a RUN writes to (auto)"},
        {"build", "-m, --memory", "SIZE", "memory of each RUN (2g)"},
        {"build", "    --cpus", "N", "CPUs' worth of time of each RUN (2)"},
        {"build", "    --pids-limit", "N", "processes and threads of each RUN at once (1024)"},
        {"build", "    --timeout", "TIME", "wall clock of each RUN (1h)"},
        {"build", "    --limits", "strict|best-effort", "as of a run (strict)"},
        {"build", "    --no-bytecode", NULL, "make no byte code of Python's beside it"},
        {"build", "-q, --quiet", NULL, "print the digest only"},
        {"export", "-o, --output", "FILE", "where to write the archive (standard output)"},
        {"images", "-q, --quiet", NULL, "print digests only"},
        {"pull", "-q, --quiet", NULL, "print the image's full name only"},
        {"rmi prune", "-f, --force", NULL, "accepted for docker's sake: nothing is asked"},
        {"images inspect import build rmi prune", "    --json", NULL, "print JSON"},
        {"pull", "    --json", NULL, "print what happens, a JSON object a line"},
        {"pull images inspect import build export rmi prune", "    --store", "DIR",
         "where images are kept (~/.local/share/mayfly, for root /var/lib/mayfly)"},
    };

    help_short(self);
    (void)printf("\n");
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        const char *at = strstr(flags[i].command, self->name);
        size_t len = strlen(self->name);
        if (!at || (at != flags[i].command && at[-1] != ' ') || (at[len] && at[len] != ' '))
            continue;
        help_line(flags[i].flag, flags[i].metavar, flags[i].help);
    }
}

/* ------------------------------------------------------------------ a run's own pull */

/* mayfly-fetch pull …, whose standard output is not ours: that is the code's. */
static int start(const char *path, const char *store, const char *image, bool quiet, bool missing,
                 pid_t *ret) {
    const char *words[10] = {path, "pull"};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none;
    size_t n = 2;

    if (quiet)
        words[n++] = "--quiet";
    if (missing)
        words[n++] = "--missing"; /* another may have pulled it by the time it is our turn */
    if (store) {
        words[n++] = "--store";
        words[n++] = store;
    }
    words[n++] = "--";
    words[n] = image;
    if (posix_spawn_file_actions_init(&files) != 0)
        return ENOMEM;
    if (posix_spawnattr_init(&attr) != 0) {
        (void)posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    (void)sigemptyset(&none);
    int r = posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    r = r ? r : posix_spawnattr_setsigmask(&attr, &none);
    r = r ? r : posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    r = r ? r : posix_spawn(ret, path, &files, &attr, (char *const *)(uintptr_t)words, environ);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&files);
    return r;
}

int fetch_image(const mayfly_policy *policy, bool quiet, bool missing, struct mayfly_error *error) {
    const char *image = mayfly_policy_text(policy, "image"),
               *store = mayfly_policy_text(policy, "store");
    char path[4200];
    pid_t pid = 0;
    int status = 0;

    *error = (struct mayfly_error){.code = -ENOENT, .kind = MAYFLY_E_SETUP, .control = "image"};
    if (quiet)
        (void)snprintf(error->message, sizeof(error->message),
                       "image %.200s could not be pulled; standard error says why", image);
    if (!find(path, sizeof(path)))
        return -ENOENT;
    prepare(store);
    int r = start(path, store, image, quiet, missing, &pid);
    if (r) {
        complain("%s: %s", path, errno_words(r));
        return -ENOENT;
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -ENOENT;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == UNREACHABLE))
        (void)snprintf(error->message, sizeof(error->message),
                       "image %.200s could not be pulled; mayfly import takes it from a file, and "
                       "--rootfs DIR does without",
                       image);
    return -ENOENT;
}
