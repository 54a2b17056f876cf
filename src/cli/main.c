/*
 * main.c: the table of commands.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/cli.h"

#include "base/banned.h"

const struct command commands[] = {
    {"python", "[FLAGS] (-c CODE | FILE | -) [ARGS…]", "run Python code in a fresh box", cmd_run,
     help_run},
    {"run", "[FLAGS] (IMAGE [COMMAND…] | --rootfs DIR COMMAND…)", "run a command in a fresh box",
     cmd_run, help_run},
    {"plan", "(python|run) …", "print the system calls that such a run would make, and why",
     cmd_plan, help_run},
    {"pull", "[FLAGS] IMAGE", "get an image from its registry", cmd_fetch, help_fetch},
    {"images", "[FLAGS]", "list the images that are in the store", cmd_fetch, help_fetch},
    {"import", "[FLAGS] (FILE | DIR | -)",
     "take images from an archive (docker save, docker export, OCI), an OCI layout, or a root file "
     "system's directory",
     cmd_fetch, help_fetch},
    {"build", "[FLAGS] DIR", "make an image from a Dockerfile, each RUN in a box", cmd_fetch,
     help_fetch},
    {"export", "[FLAGS] IMAGE…", "write images to an OCI archive, which Docker reads too",
     cmd_fetch, help_fetch},
    {"inspect", "[FLAGS] IMAGE…", "say what the store knows of images, as JSON", cmd_fetch,
     help_fetch},
    {"rmi", "[FLAGS] IMAGE…", "remove images from the store", cmd_fetch, help_fetch},
    {"prune", "[FLAGS]", "remove what no image in the store needs", cmd_fetch, help_fetch},
    {"mcp", "[FLAGS]", "offer boxes to language models as a tool, by the Model Context Protocol",
     cmd_mcp, help_mcp},
    {"agent", "[FLAGS] QUESTION",
     "have a language model answer a question by code that it runs in boxes", cmd_agent,
     help_agent},
    {"doctor", "[--verbose] [--json]",
     "say what this host can put in force and how, what is missing, the remedy, and what it costs",
     cmd_doctor, help_short},
    {"log", "[verify] [FLAGS]",
     "show the run log that --log writes, sum it up, or look whether it is whole", cmd_program,
     help_program},
    {"lab", "[explain | trace] [FLAGS]",
     "try known attacks with each control on and off, and show what each control really stops",
     cmd_program, help_program},
    {"gc", "[--all] [--json]", "collect what killed runs left behind", cmd_gc, help_gc},
    {"version", "", "print the version", cmd_version, help_short},
    {NULL, NULL, NULL, NULL, NULL},
};

/* A caller that closed it wants none of what the command prints, and gets the command's status; but an answer of our own
 * that goes nowhere is an error. */
static bool stdout_was_closed;

bool output_is_gone(void) {
    if (stdout_was_closed)
        complain("standard output is closed, and the answer was for it");
    return stdout_was_closed;
}

int flush_output(void) {
    if (__fpending(stdout) > 0 && output_is_gone()) {
        __fpurge(stdout);
        return EXIT_MAYFLY;
    }
    /* A stream that failed earlier has left its reason in errno, as all that came after it went well. */
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    if (errno == EPIPE)
        return 128 + SIGPIPE;
    complain("writing to standard output: %s", errno_words(errno ? errno : EIO));
    clearerr(stdout);
    return EXIT_MAYFLY;
}

void help_short(const struct command *self) {
    (void)printf("mayfly %s %s\n\n%s.\n", self->name, self->usage, self->summary);
}

static const struct command *find(const char *name) {
    for (const struct command *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static void help_all(FILE *to) {
    (void)fputs(
        "mayfly: run code you do not trust in a box made for that one run and thrown away.\n\n",
        to);
    for (const struct command *c = commands; c->name; c++)
        (void)fprintf(to, "  mayfly %-8s %-40s\n  %-16s%s\n", c->name, c->usage, "", c->summary);
    (void)fputs("\n  mayfly help COMMAND   the flags, with defaults and examples\n", to);
}

/* 0, 1 and 2 must be open, or a pipe of ours would take their place. */
static void open_standard_fds(void) {
    stdout_was_closed = fcntl(STDOUT_FILENO, F_GETFD) < 0;
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd ? O_WRONLY : O_RDONLY); // NOLINT(android-cloexec-open)
}

static int command(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    const struct command *c = find(name);

    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        c = argc > 2 ? find(argv[2]) : NULL;
        if (argc > 2 && !c) {
            complain("%.64s: no such command; see mayfly help", argv[2]);
            return EXIT_MAYFLY;
        }
        if (c)
            c->help(c);
        else
            help_all(stdout);
        return 0;
    }
    if (strcmp(name, "--version") == 0)
        c = find("version");
    if (!c) {
        if (*name)
            complain("%.64s: no such command; see mayfly help", name);
        else
            help_all(stderr);
        return EXIT_MAYFLY;
    }
    if (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0)) {
        c->help(c);
        return 0;
    }
    return c->run(c, argc - 1, argv + 1);
}

int main(int argc, char **argv) {
    open_standard_fds();
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(
        SIGXFSZ,
        SIG_IGN); /* a file that may not be so large is told of, as one that does not fit */
    int status = command(argc, argv), written = flush_output();
    return written ? written : status;
}
