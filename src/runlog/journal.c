/*
 * journal.c: see journal.h. The protocol is that of systemd's "Native Journal
 * Protocol" document.
 */
#include "runlog/journal.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

#include "base/banned.h"

enum { DATAGRAM = 64 << 10 }; /* what fits into any socket's buffer */

static int failed(const char *path, int code, struct err *err) {
    return err_errno(err, ERR_USAGE, code, "", "name a file with --log=FILE",
                     "run log: the journal at %s", path);
}

static int open_socket(const char *path, int *ret, struct err *err) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int sock _cleanup_fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (!str_copy(address.sun_path, sizeof(address.sun_path), path))
        return failed(path, -ENAMETOOLONG, err);
    if (sock < 0 || connect(sock, (const void *)&address, sizeof(address)) < 0)
        return failed(path, -errno, err);
    *ret = TAKE_FD(sock);
    return 0;
}

int journal_check(const char *path, struct err *err) {
    int sock _cleanup_fd_ = -1;

    return open_socket(path, &sock, err);
}

/* With its length, so that a value may hold anything. */
static void add_field(struct buf *out, const char *name, const char *value, size_t len) {
    uint64_t size = htole64(len);

    buf_printf(out, "%s\n", name);
    buf_add(out, &size, sizeof(size));
    buf_add(out, value, len);
    buf_add(out, "\n", 1);
}

static void add_text(struct buf *out, const char *name, const json_t *record, const char *key) {
    const json_t *value = json_object_get(record, key);

    if (json_is_string(value))
        add_field(out, name, json_string_value(value), json_string_length(value));
}

static int send_file(int sock, const struct buf *fields) {
    int fd _cleanup_fd_ = memfd_create("mayfly-log", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return -errno;
    int r = fd_write_full(fd, fields->data, fields->len);
    if (r < 0)
        return r;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return -errno;
    return (int)fd_send(sock, NULL, 0, fd, 0);
}

int journal_send(const char *path, const json_t *record, struct err *err) {
    static const char identifier[] = "mayfly";
    int sock _cleanup_fd_ = -1;
    _cleanup_buf_ struct buf fields = {0}, message = {0};
    char *line _cleanup_free_ = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(12));
    const char *outcome = json_string_value(json_object_get(record, "outcome")),
               *id = json_string_value(json_object_get(record, "id"));
    bool fine = outcome && strcmp(outcome, "exited") == 0;

    if (!line)
        return err_oom(err);
    buf_printf(&message, "run %s: %s", id ? id : "?", outcome ? outcome : "?");
    add_field(&fields, "MESSAGE", message.data ? message.data : "", message.len);
    add_field(&fields, "PRIORITY", fine ? "6" : "5", 1);
    add_field(&fields, "SYSLOG_IDENTIFIER", identifier, strlen(identifier));
    add_text(&fields, "MAYFLY_ID", record, "id");
    add_text(&fields, "MAYFLY_OUTCOME", record, "outcome");
    add_text(&fields, "MAYFLY_SOURCE", record, "source");
    add_field(&fields, "MAYFLY_RECORD", line, strlen(line));
    if (fields.failed || message.failed)
        return err_oom(err);
    int r = open_socket(path, &sock, err);
    if (r < 0)
        return r;
    if (fields.len <= DATAGRAM && send(sock, fields.data, fields.len, MSG_NOSIGNAL) >= 0)
        return 0;
    r = fields.len > DATAGRAM || errno == EMSGSIZE || errno == ENOBUFS ? send_file(sock, &fields)
                                                                       : -errno;
    return r < 0 ? failed(path, r, err) : 0;
}
