/*
 * delegate.c: the program mayfly-delegate: asks the systemd user manager for a cgroup subtree.
 *
 * On a systemd host every cgroup belongs to a manager, and who is not root gets a subtree of his own
 * by asking his manager for a scope with Delegate=yes. That is one D-Bus call and a wait for the job
 * it queues. It is a program of its own because mayfly is linked statically, and so that neither
 * libsystemd nor a bus is in the memory of the process that boxes are cloned from.
 *
 * The scope holds the process that is named, and ends with it: systemd removes the cgroup, and
 * whatever may be below it, when the last process is gone (CollectMode: also where it failed).
 *
 * It prints nothing where all went well, one line on stderr otherwise, and never takes longer than
 * the time it is given: a manager that hangs must not hang a run.
 *
 * Usage: mayfly-delegate PID TIMEOUT-MS
 * Exit status: 0 the process is in its scope · 2 wrong usage · 3 no bus · 4 refused · 5 no answer in time
 *
 * Sources: org.freedesktop.systemd1(5), StartTransientUnit and JobRemoved; systemd.resource-control(5),
 * Delegate=; sd-bus(3).
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <time.h>

#include "base/clock.h"

#include "base/banned.h"

enum { EXIT_USAGE = 2, EXIT_NO_BUS = 3, EXIT_REFUSED = 4, EXIT_TIMEOUT = 5 };

static const char manager[] = "org.freedesktop.systemd1";
static const char manager_path[] = "/org/freedesktop/systemd1";
static const char manager_interface[] = "org.freedesktop.systemd1.Manager";

struct job {
    const char *path; /* of ours; NULL: not queued yet */
    bool done;
    char result[32]; /* "done", "failed", "canceled", … */
};

static uint64_t now_usec(void) { return now_ns() / 1000; }

static int say(int status, const char *what, const char *why) {
    (void)fprintf(stderr, "%s: %s\n", what, why);
    return status;
}

static int job_removed(sd_bus_message *m, void *userdata, sd_bus_error *e) {
    struct job *job = userdata;
    const char *path = NULL, *unit = NULL, *result = NULL;
    uint32_t id = 0;

    (void)e;
    if (sd_bus_message_read(m, "uoss", &id, &path, &unit, &result) < 0)
        return 0;
    /* The signal may come before the answer to the call that names the job: but sd-bus hands out
     * signals only from sd_bus_process, which runs after that. */
    if (job->path && strcmp(path, job->path) == 0) {
        job->done = true;
        (void)snprintf(job->result, sizeof(job->result), "%s", result);
    }
    return 0;
}

/* StartTransientUnit("mayfly-PID-….scope", "fail", properties, none). */
static int ask(sd_bus *bus, uint32_t pid, uint64_t until, sd_bus_message **ret_reply,
               sd_bus_error *e) {
    sd_bus_message *m = NULL;
    char name[64];
    uint64_t now = now_usec();

    /* The time tells two of one pid apart, should the first's scope not be gone yet. */
    (void)snprintf(name, sizeof(name), "mayfly-%u-%llx.scope", pid, (unsigned long long)now);
    int r = sd_bus_message_new_method_call(bus, &m, manager, manager_path, manager_interface,
                                           "StartTransientUnit");
    r = r < 0 ? r : sd_bus_message_append(m, "ss", name, "fail");
    r = r < 0 ? r
              : sd_bus_message_append(
                    m, "a(sv)", 6, "Description", "s", "mayfly: boxes of one process", "PIDs", "au",
                    1, pid, "Slice", "s", "app.slice", "Delegate", "b", 1, "CollectMode", "s",
                    "inactive-or-failed", "TimeoutStopUSec", "t", (uint64_t)1000000);
    r = r < 0 ? r : sd_bus_message_append(m, "a(sa(sv))", 0);
    r = r < 0 ? r : sd_bus_call(bus, m, until > now ? until - now : 1, e, ret_reply);
    (void)sd_bus_message_unref(m);
    return r;
}

/* Until the job is done: then the process has been moved. 0, -ETIMEDOUT, or what the bus said. */
static int await(sd_bus *bus, const struct job *job, uint64_t until) {
    while (!job->done) {
        int r = sd_bus_process(bus, NULL);
        if (r < 0)
            return r;
        if (r > 0)
            continue;
        uint64_t now = now_usec();
        if (now >= until)
            return -ETIMEDOUT;
        r = sd_bus_wait(bus, until - now);
        if (r < 0 && r != -EINTR)
            return r;
    }
    return 0;
}

static int delegate(sd_bus *bus, uint32_t pid, uint64_t until) {
    sd_bus_error e = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    struct job job = {0};
    int status = 0;

    /* No sender: on the manager's own socket there are no names. */
    int r = sd_bus_match_signal_async(bus, NULL, NULL, manager_path, manager_interface,
                                      "JobRemoved", job_removed, NULL, &job);
    r = r < 0 ? r : ask(bus, pid, until, &reply, &e);
    r = r < 0 ? r : sd_bus_message_read(reply, "o", &job.path);
    r = r < 0 ? r : await(bus, &job, until);
    if (r == -ETIMEDOUT || r == -ETIME)
        status = say(EXIT_TIMEOUT, "the systemd user manager", "no answer in time");
    else if (r < 0)
        status = say(EXIT_REFUSED, "the systemd user manager",
                     sd_bus_error_is_set(&e) && e.message ? e.message : strerrordesc_np(-r));
    else if (strcmp(job.result, "done") != 0)
        status =
            say(EXIT_REFUSED, "the systemd user manager could not start the scope", job.result);
    (void)sd_bus_message_unref(reply);
    sd_bus_error_free(&e);
    return status;
}

static bool number(const char *text, unsigned long max, unsigned long *ret) {
    char *end = NULL;

    errno = 0;
    *ret = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno && *ret > 0 && *ret <= max;
}

/* The manager's own socket first, as systemctl does: it needs no bus daemon. */
static int connect_user(sd_bus **ret_bus) {
    const char *dir = getenv("XDG_RUNTIME_DIR");
    char address[512];
    sd_bus *bus = NULL;

    /* A path with what an address would have to escape is left to the other way. */
    if (dir && *dir == '/' && !dir[strcspn(dir, ",;%= \t\n")] &&
        snprintf(address, sizeof(address), "unix:path=%s/systemd/private", dir) <
            (int)sizeof(address)) {
        int r = sd_bus_new(&bus);
        r = r < 0 ? r : sd_bus_set_address(bus, address);
        r = r < 0 ? r : sd_bus_start(bus);
        if (r >= 0) {
            *ret_bus = bus;
            return 0;
        }
        (void)sd_bus_unref(bus);
    }
    return sd_bus_open_user(ret_bus);
}

int main(int argc, char **argv) {
    unsigned long pid = 0, timeout_ms = 0;
    sd_bus *bus = NULL;

    if (argc != 3 || !number(argv[1], INT32_MAX, &pid) || !number(argv[2], 600000, &timeout_ms)) {
        (void)fprintf(stderr, "usage: mayfly-delegate PID TIMEOUT-MS (mayfly starts it)\n");
        return EXIT_USAGE;
    }
    uint64_t until = now_usec() + (uint64_t)timeout_ms * 1000u;
    int r = connect_user(&bus);
    if (r < 0)
        return say(EXIT_NO_BUS, "the user's bus", strerrordesc_np(-r));
    int status = delegate(bus, (uint32_t)pid, until);
    /* Not flushed: a peer that does not read would hold us up. */
    (void)sd_bus_close_unref(bus);
    return status;
}
