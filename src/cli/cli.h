/*
 * cli.h: what the commands share. A command parses its arguments into a request,
 * calls the library, prints, and picks the exit status; nothing else does.
 */
#ifndef MAYFLY_CLI_CLI_H
#define MAYFLY_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/complain.h"
#include "json/settings.h"
#include "mayfly.h"

enum { EXIT_TIMEOUT = 124, EXIT_MAYFLY = 125 };

struct command {
    const char *name, *usage, *summary;
    int (*run)(const struct command *self, int argc,
               char **argv); /* argv[0] is the command's name */
    void (*help)(const struct command *self);
};
extern const struct command commands[]; /* ends with name NULL */

int cmd_run(const struct command *self, int argc, char **argv); /* run and python */
int cmd_plan(const struct command *self, int argc, char **argv);
int cmd_gc(const struct command *self, int argc, char **argv);
int cmd_doctor(const struct command *self, int argc, char **argv);
int cmd_fetch(const struct command *self, int argc, char **argv); /* all that mayfly-fetch does */
int cmd_mcp(const struct command *self, int argc, char **argv);
int cmd_program(const struct command *self, int argc,
                char **argv); /* log, lab: mayfly-NAME does it */
int cmd_agent(const struct command *self, int argc, char **argv);
int cmd_version(const struct command *self, int argc, char **argv);
void help_run(const struct command *self);
void help_mcp(const struct command *self);
void help_agent(const struct command *self);
void help_fetch(const struct command *self);
void help_program(const struct command *self);
void help_short(const struct command *self);
void help_gc(const struct command *self);

/* A flag of a command that hands its settings to another program: it is handed on as it is. */
struct front_flag {
    const char *flag, *metavar, *help; /* flag NULL: the end; metavar NULL: a switch */
};
enum { FRONT_WORDS = 64 };
#define FRONT_WORD "" /* as a flag: the one word after the flags, handed on as --question */
/* Of a command that logs unless it is told not to. A metavar that begins with "[=": the value may be left out. */
#define LOG_FLAGS                                                                                  \
    {"--log", "[=FILE|=journald]", "where each call is logged (the usual file; see mayfly log)"},  \
        {"--log-code", "full|digest|none", "what the log has of the code (full)"},                 \
        {"--log-size", "SIZE", "a log that would grow beyond is rotated (64m)"},                   \
        {"--log-keep", "N", "rotated logs that are kept (10)"}, {                                  \
        "--no-log", NULL, "log nothing"                                                            \
    }

/* What a command line asked for, beyond the policy. */
struct request {
    mayfly_policy *policy;
    bool python; /* the command is Python with code, else an argv */
    bool json, stats, help;
    bool keep_stdin; /* -i */
    bool pull_given; /* --pull */
    enum pull { PULL_MISSING, PULL_ALWAYS, PULL_NEVER } pull;
    bool env_root; /* MAYFLY_ROOTFS named the root */
    bool
        default_image; /* nobody named a root: where this one is missing, an unpacked one will do */
    char *code;        /* malloc'ed */
    size_t code_len;
    /* Of a command with flags of its own: */
    const struct front_flag *front;
    const char *words[FRONT_WORDS]; /* its flags and their values, of argv */
    size_t n_words;
    struct settings settings; /* all that was set in the policy */
    const char *const *
        command; /* of `run`: the words behind the flags; borrowed from argv. NULL: the image's own */
    bool log;    /* --log, and what its flags say; NULL: nothing. Borrowed from argv */
    const char *log_target, *log_code, *log_size, *log_keep;
};

/* Parses `python …` or `run …` (argv[0] is that word) into *rq, which request_done releases, also after an error. 0, or
 * -errno with the error's message set. --help sets rq->help and stops. */
int request_parse(struct request *rq, int argc, char **argv, struct mayfly_error *error);
/* `NAME …` of a command that takes flags only, `front` among them. */
int request_parse_front(struct request *rq, int argc, char **argv, const struct front_flag *front,
                        struct mayfly_error *error);
void request_done(struct request *rq);
void front_help(const struct command *self, const struct front_flag *front);
/* The whole of such a command: the program takes this process's place, or it is said why not. */
int front_command(const struct command *self, int argc, char **argv, const struct front_flag *front,
                  const char *program);

/* A root that somebody made or installed at one of the usual places, in place of the policy's image. -ENOENT: none. */
int request_usual_rootfs(struct request *rq, struct mayfly_error *error);
/* Finds the policy's root as a run would, pulls it if need be, and asks for a cgroup. */
int request_root(struct request *rq, struct mayfly_error *error);
/* Has the policy's image pulled, by mayfly-fetch, which says what goes wrong; then the error has a message only if there
 * is more to say, or if `quiet`, which is for JSON. `missing`: unless it is there by then. */
int fetch_image(const mayfly_policy *policy, bool quiet, bool missing, struct mayfly_error *error);

/* A flag in the help; all flags of the policy's; the front end's own for what a policy is made of. */
void help_line(const char *flag, const char *metavar, const char *help);
void help_fields(void);
void help_sources(void);
/* mayfly-log, beside a run that is to be logged. */
struct logging {
    pid_t pid;   /* 0: there is none */
    int in, out; /* its standard input and output; -1 */
};
/* Where the request says so, starts it and has it say that the log can be written. After an error, too, logging_done is
 * due. */
int logging_start(struct logging *l, const struct request *rq, struct mayfly_error *error);
/* Hands it the result as JSON, and waits until it is written. */
int logging_finish(struct logging *l, const char *facts, struct mayfly_error *error);
/* Without logging_finish before: it logs that the run was lost. */
void logging_done(struct logging *l);

/* Sees to it that what was printed is out: 0, or an exit status; says why unless it is that the reader is gone. */
int flush_output(void);
/* Before another program is started whose whole purpose is what it prints: true, and said, if that would go nowhere. */
bool output_is_gone(void);
/* An unknown flag, in words: the whole line for the user. */
int no_such_flag(const char *flag, struct mayfly_error *error);

#endif
