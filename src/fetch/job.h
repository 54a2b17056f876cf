/*
 * job.h: what mayfly-fetch and mayfly-unpack say to each other.
 *
 * Layers are hostile, and the process that reads them may come under their authors' rule. So it is a program of its own,
 * executed anew: in its memory and its environment there is nothing of the one that knows credentials. It has the
 * socket to this one as descriptor 0, the directory that it may change as 1, and gets the rest through the socket: a
 * head, then a message with a descriptor for each archive, when that is there and verified. Its verdict is the one
 * message that comes back; it is believed as little as the data it read, and shown.
 */
#ifndef MAYFLY_FETCH_JOB_H
#define MAYFLY_FETCH_JOB_H

#include <sys/types.h>

#include "base/err.h"
#include "fetch/tmp.h"
#include "fetch/unpack.h"

enum { JOB_SOCKET = 0, JOB_DIR = 1 };
#define JOB_PART "bytecode.part" /* becomes STORE_BYTECODE when it is whole */
#define JOB_TRASH "trash"        /* in that directory, as STORE_FS and STORE_BYTECODE are */

enum job_kind {
    JOB_LAYERS = 1, /* an image's, into fs/ */
    JOB_BYTECODE,   /* JOB_PART: the files of fs/, and those of one archive */
};

struct job_head {
    char version[16]; /* both are of one build, or do not speak to each other */
    uint32_t size, kind, layers;
    pid_t parent;
    uint64_t max_bytes, max_entries;
    char workdir[4096]; /* which a box is to start in; "": none */
};

struct job_layer {
    char diff_id[DIGEST_SIZE]; /* "": not to be verified */
    char digest[24];           /* of the blob, for errors */
};

struct job_verdict {
    int code;
    struct unpack_summary sum;
    char message[480];
};

/* The one that is asked. */
struct job {
    pid_t pid;
    int socket;
    struct job_verdict verdict;
    bool heard;
};

/* Starts the program, and tells it the head, but for what is the same for all. */
int job_start(struct job *j, int dir, struct job_head *head, struct err *err);
/* The next archive. 1 if it was taken; 0 if not `wait`, and it would have to wait; or -errno, with what the program
 * itself says where it has ended. */
int job_layer(struct job *j, const struct job_layer *layer, int fd, bool wait, struct err *err);
/* Has it failed already? 0, or its error. Does not wait. */
int job_look(struct job *j, struct err *err);
/* Waits for its end. */
int job_end(struct job *j, struct unpack_summary *ret, struct err *err);
/* Ends it, wherever it is. Accepts one that never started (pid 0), or has ended. */
void job_drop(struct job *j);

#endif
