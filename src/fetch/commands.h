/*
 * commands.h: what mayfly-fetch can be asked to do; argv[0] is the command's name. Each returns an exit status.
 */
#ifndef MAYFLY_FETCH_COMMANDS_H
#define MAYFLY_FETCH_COMMANDS_H

enum {
    EXIT_FETCH = 125,
    EXIT_UNREACHABLE = 69,  /* no registry could be reached */
    EXIT_READER_GONE = 141, /* as a shell has it for SIGPIPE, which would have come */
};

int fetch_pull(int argc, char **argv);

int fetch_images(int argc, char **argv);
int fetch_inspect(int argc, char **argv);
int fetch_rmi(int argc, char **argv);
int fetch_prune(int argc, char **argv);
int fetch_import(int argc, char **argv);
int fetch_export(int argc, char **argv);
int fetch_build(int argc, char **argv); /* of src/build */

#endif
