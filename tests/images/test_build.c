/*
 * test_build.c: Dockerfiles are carried out as other tools read the result; the same input gives the same bytes; nothing
 * of the host gets into a RUN, and nothing of a failed build stays.
 *
 * The base is a shell with a few programs, so that a build takes some tens of milliseconds.
 */
#include "build/quota.h"
#include "layers.h"
#include "live/live.h"

#include <poll.h>

#include "base/banned.h"

static char rootfs[4096];
static struct place shared; /* its store has the base; contexts lie beside it */

/* ------------------------------------------------------------------ running things */

static char said[330000];    /* what the last one printed: its output, then its errors */
static char printed[262144]; /* its output alone */

static int mayfly(const char *const *argv) {
    struct live_output *o = live_program(argv, -1);
    int code = o->exit_code;

    (void)str_copy(printed, sizeof(printed), o->out);
    (void)(str_copy(said, sizeof(said), o->out) &&
           str_copy(said + strlen(said), sizeof(said) - strlen(said), o->err));
    free(o);
    return code;
}
#define MAYFLY(want, ...)                                                                          \
    do {                                                                                           \
        int code_ = mayfly((const char *const[]){__VA_ARGS__, NULL});                              \
        if (code_ != (want))                                                                       \
            fail_msg("exit %d, not %d: %s", code_, want, said);                                    \
    } while (0)
#define SAID(text)                                                                                 \
    do {                                                                                           \
        if (!strstr(said, text))                                                                   \
            fail_msg("\"%s\" does not hold \"%s\"", said, text);                                   \
    } while (0)

/* A script of the host's; its output in `said`. */
static int shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *fmt, ...) {
    char *script = NULL;
    int pipe_fd[2], status = -1;
    va_list ap;

    va_start(ap, fmt);
    assert_true(vasprintf(&script, fmt, ap) >= 0);
    va_end(ap);
    assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(pipe_fd[1], 1);
        (void)dup2(pipe_fd[1], 2);
        (void)execl("/bin/bash", "bash", "-euo", "pipefail", "-c", script, NULL);
        _exit(99);
    }
    (void)close(pipe_fd[1]);
    ssize_t n = fd_read_full(pipe_fd[0], said, sizeof(said) - 1);
    said[n > 0 ? n : 0] = '\0';
    (void)close(pipe_fd[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    free(script);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
#define SHELL(...)                                                                                 \
    do {                                                                                           \
        if (shell(__VA_ARGS__) != 0)                                                               \
            fail_msg("%s", said);                                                                  \
    } while (0)

/* A fresh context with that Dockerfile. */
static const char *context(const char *dockerfile) {
    static char dir[sizeof(shared.dir) + 16];
    char path[sizeof(dir) + 16];
    static int n;

    (void)snprintf(dir, sizeof(dir), "%s/c%d", shared.dir, n++);
    assert_int_equal(mkdir(dir, 0755), 0);
    (void)snprintf(path, sizeof(path), "%s/Dockerfile", dir);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, dockerfile, strlen(dockerfile)), 0);
    (void)close(fd);
    return dir;
}

static void add_file(const char *dir, const char *name, const char *text) {
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
    (void)close(fd);
}

static int set_store(void **state) {
    void *p = NULL;

    (void)state;
    if (set_place(&p) < 0)
        return -1;
    shared = *(struct place *)p;
    free(p);
    (void)umask(022);
    (void)str_copy(rootfs, sizeof(rootfs), live_env("MAYFLY_ROOTFS"));
    (void)live_has_cgroups();
    (void)unsetenv("MAYFLY_ROOTFS");
    (void)unsetenv("SOURCE_DATE_EPOCH");
    (void)setenv("MAYFLY_STORE", shared.store, 1);
    (void)setenv("XDG_CONFIG_HOME", shared.dir, 1);
    return shell(
               "cd %s && mkdir %s/base && cp -a --parents bin lib $([ ! -e lib64 ] || echo lib64) "
               "usr/bin/"
               "{sh,dash,cat,chmod,chown,cp,id,ln,ls,mkdir,mv,printenv,pwd,rm,sleep,touch,true,"
               "stat} "
               "usr/lib/*-linux-gnu/{libc.so.6,ld-linux*,libselinux.so.1,libpcre2-8.so.0*} "
               "usr/lib/*-linux-gnu/lib{acl,attr}.so.1* $(ls -d usr/lib64/ld* usr/lib/ld-linux* "
               "2>/dev/null) "
               "etc/passwd etc/group %s/base && echo gone > %s/base/etc/gone && mkdir "
               "%s/base/etc/d && "
               "echo x > %s/base/etc/d/x && \"$MAYFLY_BIN\" import --no-bytecode -t base %s/base",
               rootfs, shared.dir, shared.dir, shared.dir, shared.dir, shared.dir, shared.dir) == 0
               ? 0
               : (print_message("%s", said), -1);
}

static int drop_store(void **state) {
    (void)state;
    return tree_remove(AT_FDCWD, shared.dir, NULL);
}

/* ------------------------------------------------------------------ the instructions */

static void every_instruction_does_what_it_says(void **state) {
    const char *dir = context(
        "# syntax=docker/dockerfile:1\n"
        "ARG BASE=none\n"
        "FROM ${BASE}\n"
        "ARG WHO=nobody\n"
        "ARG LATE=${WHO}-late\n"
        "ENV A=1 B=\"two words\" C=$WHO\n"
        "ENV OLD old form\n"
        "ENV A=2 D=$A\n"
        "LABEL one=1 \"two words\"='$A'\n"
        "WORKDIR /srv\n"
        "WORKDIR app\n"
        "COPY a.txt sub/ ./\n"
        "COPY [\"a.txt\", \"/x y\"]\n"
        "COPY *.txt /all/\n"
        "COPY a.txt /name\n"
        "ADD --chown=7:8 --chmod=640 a.txt /owned\n"
        "COPY sub /merge/sub\n"
        "COPY --chown=7:8 --chmod=711 over /merge/\n"
        "COPY --chown=7:8 a.txt /new/\n"
        "COPY <<EOF <<'RAW' /docs/\n"
        "A is $A\n"
        "EOF\n"
        "A is $A\n"
        "RAW\n"
        "RUN echo $A $B $C $LATE > /run-shell && \\\n"
        "    # a comment\n"
        "    pwd >> /run-shell; mkdir -m 777 /open\n"
        "RUN [\"/bin/sh\", \"-c\", \"echo json > /run-json\"]\n"
        "RUN <<EOF\n"
        "echo one > /run-doc\n"
        "echo two >> /run-doc\n"
        "EOF\n"
        "RUN <<'EOF'\n"
        "#!/bin/sh -u\n"
        "echo \"$0 $- $A\" > /run-script; touch $0\n"
        "true\n"
        "EOF\n"
        "RUN cat <<EOF > /run-cat\n"
        "$A\n"
        "EOF\n"
        "SHELL [\"/bin/sh\", \"-e\", \"-c\"]\n"
        "RUN echo $- > /run-e; chown 5:6 /run-e || true\n"
        "USER 33:44\n"
        "RUN id -u > /open/who && id -g >> /open/who\n"
        "RUN <<EOF\n#!/bin/sh\n/bin/id -u > /open/script\nEOF\n"
        "EXPOSE 80 90-91/udp\n"
        "VOLUME /data\n"
        "STOPSIGNAL SIGINT\n"
        "MAINTAINER $A body\n"
        "HEALTHCHECK --interval=1m30s --timeout=500ms --retries=2 CMD [\"/bin/true\", \"x\"]\n"
        "ENTRYPOINT [\"/bin/cat\"]\n"
        "CMD [\"/run-shell\"]\n");
    bool root = geteuid() == 0;

    (void)state;
    SHELL("cd %s && echo a > a.txt && echo b > b.txt && mkdir sub && echo s > sub/s && ln -s s "
          "sub/l && mkdir -p over/sub && touch over/sub/x",
          dir);
    MAYFLY(0, "build", "-t", "app", "-t", "app:2", "--build-arg", "BASE=base", "--build-arg=WHO=me",
           dir);
    SAID("docker.io/library/app:latest sha256:");
    SAID("docker.io/library/app:2 sha256:");
    MAYFLY(0, "run", "app");
    assert_string_equal(printed, "2 two words me me-late\n/srv/app\n");
    MAYFLY(0, "run", "--entrypoint=/bin/sh", "app", "-c",
           "pwd; id -u; cat a.txt s l '/x y' /all/a.txt /all/b.txt /name /docs/EOF /docs/RAW "
           "/run-json "
           "/run-doc /run-script /run-cat /open/who /open/script; printenv D OLD; stat -c '%u %g "
           "%a' /run-e /srv/app");
    assert_string_equal(
        printed, root ? "/srv/app\n33\na\ns\ns\na\na\nb\na\nA is 2\nA is "
                        "$A\njson\none\ntwo\n/dev/pipes/script u 2\n2\n33\n44\n33\n1\nold form\n"
                        "5 6 644\n0 0 755\n"
                      : "/srv/app\n33\na\ns\ns\na\na\nb\na\nA is 2\nA is "
                        "$A\njson\none\ntwo\n/dev/pipes/script u 2\n2\n33\n44\n33\n1\nold form\n"
                        "33 44 644\n33 44 755\n"); /* one id is all there is */
    MAYFLY(0, "run", "--user", "0", "--entrypoint=/bin/sh", "app", "-c",
           "cat /run-e; stat -c '%u %g %a' /owned /merge /merge/sub /new");
    SAID("e");
    SAID(root ? "7 8 640\n0 0 755\n7 8 711\n7 8 755\n" : "0 0 640\n0 0 755\n0 0 711\n0 0 755\n");
    SHELL("skopeo inspect --config oci:%s:docker.io/library/app:2", shared.store);
    SAID("\"author\": \"$A body\"");
    SAID("\"90/udp\": {}");
    SAID("\"91/udp\": {}");
    SAID("\"80/tcp\": {}");
    SAID("\"/data\": {}");
    SAID("\"StopSignal\": \"SIGINT\"");
    SAID("\"two words\": \"$A\"");
    SHELL("cd %s/blobs/sha256 && cat $(\"$MAYFLY_BIN\" inspect app | grep -o "
          "'\"config\":{[^}]*\"digest\":\"sha256:[0-9a-f]*' | grep -o '[0-9a-f]*$' || true) "
          "/dev/null; grep -l Healthcheck "
          "* | xargs cat",
          shared.store);
    SAID("\"Healthcheck\":{\"Interval\":90000000000,\"Retries\":2,\"Test\":[\"CMD\",\"/bin/"
         "true\",\"x\"],\"Timeout\":"
         "500000000}");
    SAID("\"Shell\":[\"/bin/sh\",\"-e\",\"-c\"]");
    SHELL("skopeo inspect --config oci:%s:docker.io/library/app:2", shared.store);
    SAID("\"created_by\": \"ADD --chown=7:8 --chmod=640 a.txt /owned\"");
}

/* What umoci makes of the layers is what we run; and each layer holds what its step changed, no more. */
static void a_layer_is_what_changed(void **state) {
    const char *dir = context(
        "FROM base\n"
        "RUN rm /etc/gone && rm -r /etc/d && echo new > /etc/new && echo x >> /etc/passwd\n"
        "RUN mkdir /etc/d && echo y > /etc/d/y && ln /etc/new /etc/link && ln -s new /etc/sym\n"
        "RUN rm -r /etc/d && echo file > /etc/d\n"
        "RUN true\n"
        "RUN chmod 600 /etc/new; mkdir -m 711 /run; touch -r /etc/new /etc/passwd\n");

    (void)state;
    MAYFLY(0, "build", "-t", "layers", dir);
    SHELL("cd %s && \"$MAYFLY_BIN\" export -o l.oci layers && rm -rf l l.dir && mkdir l.dir && tar "
          "xf l.oci -C l.dir && "
          "for l in $(skopeo inspect --raw oci:l.dir:docker.io/library/layers:latest | "
          "grep -o "
          "'\"sha256:[0-9a-f]*\",\"mediaType\":\"application/vnd.oci.image.layer.v1.tar+gzip\"' | "
          "cut -c9-72); do "
          "tar tzf l.dir/blobs/sha256/$l | tr '\\n' ' '; echo; done",
          shared.dir);
    assert_string_equal(said, "etc/.wh.d etc/.wh.gone etc/new etc/passwd \n"
                              "etc/d/ etc/d/y etc/link etc/new etc/sym \n"
                              "etc/d \n"
                              "etc/new etc/passwd run/ \n"); /* overlayfs parts links */
    if (geteuid() != 0)
        return;
    SHELL("cd %s && umoci unpack --image l.dir:docker.io/library/layers:latest l >/dev/null 2>&1; "
          "\"$MAYFLY_BIN\" inspect layers | grep -o '\"path\":\"[^\"]*' | cut -c9- > l.path; "
          "list() { (cd \"$1\" && find . -mindepth 1 ! -path ./dev ! -path ./proc ! -path ./tmp "
          "-printf '%%p %%y %%#m %%U %%G %%l' "
          "\\( -type f -printf ' %%s %%n %%Ts\\n' -o -printf '\\n' \\) | sort); }; "
          "list l/rootfs > l.umoci; list \"$(cat l.path)\" > l.ours; diff l.umoci l.ours && wc -l "
          "< l.ours",
          shared.dir);
    assert_true(strtol(said, NULL, 10) > 30);
}

/* ------------------------------------------------------------------ the same again */

static void digest_of(char ret[DIGEST_SIZE], const char *const *argv) {
    if (mayfly(argv) != 0)
        fail_msg("%s", said);
    printed[strcspn(printed, "\n")] = '\0';
    assert_true(digest_is_valid(printed));
    (void)str_copy(ret, DIGEST_SIZE, printed);
}
#define DIGEST(ret, ...) digest_of(ret, (const char *const[]){__VA_ARGS__, NULL})

static void the_same_input_gives_the_same_digest(void **state) {
    static const char text[] = "FROM base\nCOPY --chown=3:4 . /in\nRUN echo x > /made; mkdir -p "
                               "/d/e; echo $SOURCE_DATE_EPOCH > /d/f\n"
                               "RUN mkdir -p /m/0 && echo x > /m/0/f && chmod 0 /m/0/f /m/0\n"
                               "WORKDIR /w\nCOPY <<E /here\nE\nENV A=b\n";
    char one[DIGEST_SIZE], two[DIGEST_SIZE], first[96];

    (void)state;
    assert_int_equal(setenv("SOURCE_DATE_EPOCH", "1000000000", 1), 0);
    const char *dir = context(text);
    (void)str_copy(first, sizeof(first), dir);
    SHELL("mkdir %s/z && echo 1 > %s/z/1 && echo 2 > %s/2", dir, dir, dir);
    DIGEST(one, "build", "-q", "-t", "same", dir);
    DIGEST(two, "build", "-q", "-t", "same", dir);
    assert_string_equal(one, two);
    DIGEST(two, "build", "-q", "--no-cache", dir);
    assert_string_equal(one, two);
    dir = context(text);
    SHELL("echo 2 > %s/2 && mkdir %s/z && echo 1 > %s/z/1", dir, dir, dir);
    DIGEST(two, "build", "-q", "--no-cache", dir);
    assert_string_equal(one, two);
    MAYFLY(0, "run", "same", "stat", "-c", "%Y", "/made", "/in/2", "/d", "/d/f", "/here");
    assert_string_equal(printed, "1000000000\n1000000000\n1000000000\n1000000000\n0\n");
    /* As another user, in another store, where a user can reach what was built. */
    bool others =
        geteuid() == 0 &&
        shell("setpriv --reuid 1000 --regid 1000 --clear-groups test -x \"$MAYFLY_BIN\"") == 0;
    if (!others)
        print_message("not as another user: there is none, or the checkout is closed to others\n");
    if (others) {
        SHELL("mkdir %s/u && cp -r %s %s/u/c && chown -R 1000:1000 %s/u && chmod 711 %s && cd %s/u "
              "&& "
              "export MAYFLY_STORE=%s/u/store && as() { setpriv --reuid 1000 --regid 1000 "
              "--clear-groups \"$@\"; } && "
              "as \"$MAYFLY_BIN\" import --no-bytecode -t base %s/base >/dev/null && "
              "MAYFLY_STORE=%s \"$MAYFLY_BIN\" export base > base.oci && as \"$MAYFLY_BIN\" import "
              "--no-bytecode base.oci >/dev/null && "
              "as \"$MAYFLY_BIN\" build --limits best-effort -q c",
              shared.dir, first, shared.dir, shared.dir, shared.dir, shared.dir, shared.dir,
              shared.dir, shared.store);
        said[strcspn(said, "\n")] = '\0';
        assert_string_equal(said, one);
    }
    add_file(dir, "2", "other\n");
    DIGEST(two, "build", "-q", dir);
    assert_string_not_equal(one, two);
    assert_int_equal(unsetenv("SOURCE_DATE_EPOCH"), 0);
    assert_int_equal(setenv("SOURCE_DATE_EPOCH", "soon", 1), 0);
    MAYFLY(125, "build", dir);
    SAID("SOURCE_DATE_EPOCH: \"soon\"");
    assert_int_equal(unsetenv("SOURCE_DATE_EPOCH"), 0);
}

static void a_step_is_repeated_only_when_something_it_depends_on_changes(void **state) {
    const char *dir = context("FROM base\n"
                              "ARG V=1\n"
                              "COPY a /a\n"
                              "RUN cat /a > /copy; echo $V > /v\n"
                              "LABEL l=1\n"
                              "COPY b /b\n");

    (void)state;
    add_file(dir, "a", "1");
    add_file(dir, "b", "1");
    MAYFLY(0, "build", dir);
    SAID("0 of 3 steps cached");
    MAYFLY(0, "build", dir);
    SAID("3 of 3 steps cached");
    SHELL("touch -d 2001-01-01 %s/a", dir); /* a checkout is as good as another */
    MAYFLY(0, "build", dir);
    SAID("3 of 3 steps cached");
    add_file(dir, "b", "2");
    MAYFLY(0, "build", dir);
    SAID("2 of 3 steps cached");
    MAYFLY(0, "build", "--build-arg", "OTHER=2", dir); /* which no ARG takes */
    SAID("3 of 3 steps cached");
    SAID("--build-arg OTHER: no ARG takes it");
    MAYFLY(0, "build", "--build-arg", "V=2", dir);
    SAID("1 of 3 steps cached");
    SHELL("chmod 700 %s/a", dir);
    MAYFLY(0, "build", dir);
    SAID("0 of 3 steps cached");
    MAYFLY(0, "build", "--no-cache", "--json", dir);
    SAID("\"steps\":3,\"cached\":0}");
    MAYFLY(0, "prune");
    MAYFLY(0, "build", dir);
    SAID("0 of 3 steps cached");
    /* An entry whose layer is gone counts as none. */
    SHELL("cd %s && for e in build-cache/*; do rm -f blobs/sha256/$(grep -o "
          "'layer\":\"sha256:[0-9a-f]*' $e | cut -c16-); done",
          shared.store);
    MAYFLY(0, "build", dir);
    SAID("0 of 3 steps cached");
    SHELL("for e in %s/build-cache/*; do echo '{' > $e; done", shared.store);
    MAYFLY(0, "build", dir);
    SAID("0 of 3 steps cached");
}

/* ------------------------------------------------------------------ stages */

static void stages_are_made_when_they_are_needed(void **state) {
    const char *dir =
        context("FROM base AS one\n"
                "RUN echo 1 > /one; mkdir -p /deep/er; ln -s /deep /link; echo d > /deep/er/d\n"
                "COPY --chown=3:4 <<E /owned\n"
                "E\n"
                "FROM one AS two\n"
                "RUN cat /one > /two\n"
                "FROM base AS broken\n"
                "RUN false\n"
                "FROM scratch AS last\n"
                "COPY --from=two /two /\n"
                "COPY --from=0 /link/er /er\n"
                "COPY --from=0 /owned /kept\n"
                "COPY --from=0 --chown=5 /owned /given\n"
                "COPY --from=base etc/group /g/\n"
                "COPY --from=ONE /deep/../one /\n"
                "CMD [\"x\"]\n");

    (void)state;
    MAYFLY(0, "build", "-t", "last", dir);
    assert_null(strstr(said, "RUN false"));
    SHELL("find $(\"$MAYFLY_BIN\" inspect last | grep -o '\"path\":\"[^\"]*' | cut -c9-) -type f "
          "-printf '%%P ' | tr ' ' '\\n' | sort | tr '\\n' ' '");
    assert_string_equal(said, "er/d g/group given kept one two ");
    SHELL("cd %s/blobs/sha256 && for l in $(\"$MAYFLY_BIN\" inspect last | grep -o "
          "'\"digest\":\"sha256:[0-9a-f]*' | cut -c18-); do "
          "tar tvzf $l --numeric-owner 2>/dev/null || true; done",
          shared.store);
    SAID("3/4 ");
    SAID("5/5 ");
    /* The stage's files are not made again, and still have their owner. */
    SHELL("sed -i 's,^CMD.*,COPY --from=0 /owned /again,' %s/Dockerfile", dir);
    MAYFLY(0, "build", "-t", "last", dir);
    SAID("RUN echo 1 > /one; mkdir -p /deep/er; ln -s /deep /link; echo d > /deep/er/d (cached)");
    SHELL("cd %s/blobs/sha256 && tar tvzf $(\"$MAYFLY_BIN\" inspect last | grep -o "
          "'\"digest\":\"sha256:[0-9a-f]*' | tail -1 | cut -c18-) --numeric-owner",
          shared.store);
    SAID("3/4 ");
    SAID(" again");
    MAYFLY(0, "build", "-t", "two", "--target", "two", dir);
    MAYFLY(0, "run", "two", "cat", "/two");
    assert_string_equal(printed, "1\n");
    MAYFLY(0, "build", "--target", "0", dir);
    MAYFLY(1, "build", "--target", "broken", dir);
    SAID("mayfly: Dockerfile:8: RUN: exited with 1\n");
    MAYFLY(125, "build", "--target", "none", dir);
    SAID("has no stage none");
}

/* Debian's usual user. The work tree's owner is his one id, so no box of a build may ask newuidmap for others. */
static void a_user_with_subordinate_ids_builds(void **state) {
    (void)state;
    if (geteuid() != 0)
        live_skip("root", "who makes such a user");
    if (shell("command -v newuidmap && tests/hosts/as-user.sh -- true") != 0)
        live_skip("userns", "no newuidmap (package uidmap), or no mount namespace");
    SHELL(
        "tar -C %s/base -c . | tests/hosts/as-user.sh --subids -- bash -euc 'unset MAYFLY_STORE "
        "XDG_CONFIG_HOME; m=${MAYFLY_BUILD:-build}/mayfly; $m import --no-bytecode -t base - && "
        "mkdir /tmp/c && printf \"FROM base\\nRUN id -u > /who\\nRUN id -u >> /who; chmod 0 /who\\n"
        "RUN cat /who\\n\" > /tmp/c/Dockerfile && for way in overlay copy; do "
        "$m build --no-cache --no-bytecode --limits=best-effort --storage=$way /tmp/c; done'",
        shared.dir);
    SAID("Dockerfile:4: RUN cat /who\n0\n0\n");
    SAID("3 layers, 0 of 3 steps cached");
}

/* ------------------------------------------------------------------ what is said */

static void what_came_of_it_is_said_once_and_in_json_too(void **state) {
    const char *dir = context("FROM base\nLABEL a=1\n"), *said_once;
    char first[DIGEST_SIZE], json[DIGEST_SIZE + 32];

    (void)state;
    digest_of(first, (const char *[]){"build", "-q", "-t", "said", dir, NULL});
    add_file(dir, "Dockerfile", "FROM base\nLABEL a=2\n");
    MAYFLY(0, "build", "-t", "said", dir);
    SAID("had this name before and has none now");
    MAYFLY(0, "build", "-t", "said", dir);
    assert_null(strstr(said, "had this name"));
    add_file(dir, "Dockerfile", "FROM base\nLABEL a=1\n");
    MAYFLY(0, "build", "-t", "said", dir);
    add_file(dir, "Dockerfile", "FROM base\nLABEL a=3\n");
    MAYFLY(0, "build", "--json", "-t", "said", dir);
    (void)snprintf(json, sizeof(json), "\"unnamed\":[\"%s\"]", first);
    SAID(json);
    add_file(dir, "Dockerfile", "FROM base\nRUN exit 7\n");
    MAYFLY(1, "build", "--json", dir);
    assert_string_equal(printed,
                        "{\"error\":{\"message\":\"Dockerfile:2: RUN: exited with "
                        "7\",\"kind\":\"usage\",\"control\":null,\"code\":\"ECANCELED\"}}\n");
    add_file(dir, "Dockerfile", "FROM 127.0.0.1:1/x\n");
    MAYFLY(125, "build", dir);
    said_once =
        strstr(said, "mayfly: Dockerfile:1: FROM: image 127.0.0.1:1/x could not be pulled: ");
    assert_non_null(said_once);
    assert_null(strstr(said, "not in the store"));
    assert_null(strchr(strchr(said_once, '\n') + 1, '\n'));
    MAYFLY(125, "build", "-");
    SAID("a context on standard input is not supported");
    MAYFLY(0, "help", "build");
    SAID("--build-arg NAME=VALUE  ");
    SAID("--pull missing|always|never  ");
}

/* ------------------------------------------------------------------ what is refused */

static void what_cannot_be_is_refused_by_line(void **state) {
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"FROM base\nADD https://x/y /\n", "Dockerfile:2: ADD: https://x/y: only local files"},
        {"FROM base\nHEALTHCHECK --interval=soon CMD x\n",
         "Dockerfile:2: HEALTHCHECK: --interval=soon is no time"},
        {"FROM base\nHEALTHCHECK x\n", "Dockerfile:2: HEALTHCHECK: \"x\" is not understood"},
        {"FROM base\nHEALTHCHECK --start=1s CMD x\n",
         "Dockerfile:2: HEALTHCHECK: --start is not supported"},
        {"FROM base\nCOPY ignored .env /o\n",
         "Dockerfile:2: COPY: 2 sources go into a directory, and /o says nothing"},
        {"FROM base\nCOPY Docker* sec/k* /o\n", "Dockerfile:2: COPY: 2 sources go into"},
        {"FROM base\nCOPY <<A <<B /o\nA\nB\n", "Dockerfile:2: COPY: 2 sources go into"},
        {"FROM base\nCOPY [ef]* /o\n",
         "Dockerfile:2: COPY: 2 files match, and /o says nothing of a directory"},
        {"FROM base\nCOPY --chmod=4755 Dockerfile /\n", "--chmod=4755 is no mode"},
        {"FROM base\nRUN true\n\nONBUILD RUN x\n", "Dockerfile:4: ONBUILD: is not supported"},
        {"FROM base\nRUN --network=host x\n",
         "Dockerfile:2: RUN: --network=host: is not allowed by the command line"},
        {"FROM base\nRUN --network=mine x\n",
         "Dockerfile:2: RUN: --network=mine: takes none or host"},
        {"FROM base\nRUN --mount=type=secret x\n", "Dockerfile:2: RUN: --mount is not supported"},
        {"FROM base\nRUN <<EOF\n#!/no/such\nEOF\n", "Dockerfile:2: RUN: "},
        {"FROM base\nCOPY nothing /\n", "Dockerfile:2: COPY: the context: nothing: No such file"},
        {"FROM base\nCOPY no*thing /\n",
         "Dockerfile:2: COPY: nothing in the context matches no*thing"},
        {"FROM base\nCOPY ../x /\n", "Dockerfile:2: COPY: the context: ../x: lies outside of it"},
        {"FROM base\nCOPY out /\n",
         "Dockerfile:2: COPY: the context: out: a link on the way leads out"},
        {"FROM base\nCOPY up/etc/passwd /\n", "up/etc/passwd: a link on the way leads out"},
        {"FROM base\nCOPY ignored /\n", ".dockerignore leaves it out"},
        {"FROM base\nCOPY sec/deep/k2 /\n", ".dockerignore leaves it out"},
        {"FROM base\nCOPY .env /o/\n", ".dockerignore leaves it out"},
        {"FROM base\nCOPY Dockerfile /etc/passwd/x\n", "/etc/passwd is there and no directory"},
        {"FROM base\nCOPY sec /etc/passwd\n", "/etc/passwd is there and no directory"},
        {"FROM base\nWORKDIR /etc/passwd\n", "/etc/passwd is there and no directory"},
        {"FROM base AS a\nCOPY --from=a /etc /x\n", "that stage is this one"},
        {"FROM base AS a\nCOPY --from=b /etc /x\nFROM base AS b\nFROM a\n",
         "that stage is further down"},
        {"FROM base\nCOPY x\n", "wants a source and a destination"},
        {"FROM base\nCOPY --chmod=u+x Dockerfile /\n", "--chmod=u+x is no mode"},
        {"FROM base\nCOPY --chown=stranger Dockerfile /\n",
         "Dockerfile:2: COPY: the image knows no user \"stranger\""},
        {"FROM base\nCOPY --from=no/such:image a /\n",
         "Dockerfile:2: COPY: image no/such:image is not in the store"},
        {"FROM no/such:image\n", "Dockerfile:1: FROM: image no/such:image is not in the store"},
        {"FROM $X\n", "Dockerfile:1: FROM: \"$X\" stands for nothing"},
        {"FROM base AS\n", "Dockerfile:1: FROM: \"base AS\" is not understood"},
        {"FROM --platform=linux/mips base\n", "this machine cannot run that"},
        {"FROM base\nENV x\n", "Dockerfile:2: ENV: x has no value"},
        {"FROM base\nENV a=b c\n", "Dockerfile:2: ENV: \"c\" is no NAME=VALUE"},
        {"FROM base\nENV a=${b\n", "Dockerfile:2: ENV: \"${b\": } is missing"},
        {"FROM base\nLABEL a=\"b\n", "Dockerfile:2: LABEL: \"\"b\": the quote is not closed"},
        {"FROM base\nARG 1-2\n", "Dockerfile:2: ARG: \"1-2\" is no name"},
        {"FROM base\nEXPOSE http\n", "Dockerfile:2: EXPOSE: \"http\" is no port"},
        {"FROM base\nSHELL sh\n", "Dockerfile:2: SHELL: takes the JSON form only"},
        {"FROM base\nRUN [\"/no/such\"]\n", "Dockerfile:2: RUN: "},
        {"FROM base\nUSER stranger\nRUN true\n",
         "Dockerfile:3: RUN: the image knows no user \"stranger\""},
        {"FROM base\nRUN touch /.wh.x\n", "Dockerfile:2: RUN: .wh.x: no layer can hold"},
        {"FROM base\nRUN echo hello; exit 7\n", "Dockerfile:2: RUN: exited with 7"},
        {"FROM base\nRUN sleep 60\n",
         "Dockerfile:2: RUN: took longer than 500ms; give it more with --timeout"},
        {"FROM base\nRUN kill -9 $$\n", "Dockerfile:2: RUN: was ended by signal 9 (SIGKILL)"},
        {"FROM base\nRUN printf text; printf more >&2; exit 7\n",
         "\nmayfly: Dockerfile:2: RUN: exited with 7"},
    };

    (void)state;
    const char *dir = context("");
    /* One rule that keeps something makes nothing else of what is left out be there. */
    SHELL(
        "cd %s && touch e f ignored .env && ln -s /etc/passwd out && ln -s / up && mkdir -p "
        "sec/deep && "
        "touch sec/key sec/deep/k2 && printf 'ignored\\nsec\\n!sec/key\\n*.env\\n' > .dockerignore",
        dir);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        add_file(dir, "Dockerfile", cases[i].text);
        int code = mayfly((const char *const[]){"build", "--pull=never", "--timeout=500ms", "-t",
                                                "refused", dir, NULL});
        if ((code != 125 && code != 1) || !strstr(said, cases[i].why))
            fail_msg("exit %d, \"%s\", wanted \"%s\"", code, said, cases[i].why);
    }
    dir = context("FROM base\n");
    MAYFLY(125, "build", "--network=bridge", dir);
    SAID("--network: \"bridge\" is neither");
    MAYFLY(125, "build", "--max-disk=much", dir);
    SAID("--max-disk: \"much\" is no size");
    MAYFLY(125, "build", "--storage=disk", dir);
    SAID("--storage: \"disk\" is none of these");
    MAYFLY(125, "build", "-t",
           "x@sha256:0000000000000000000000000000000000000000000000000000000000000000", dir);
    MAYFLY(125, "build", "-t", "Upper", dir);
    MAYFLY(125, "build", "--platform=linux/mips", dir);
    MAYFLY(125, "build", "/no/such/directory");
    MAYFLY(125, "build", "-f", "/no/such/file", dir);
    MAYFLY(125, "build");
    MAYFLY(125, "build", dir, dir);
    MAYFLY(125, "build", "--memory", "much", dir);
    SAID("--memory: \"much\"");
}

/* ------------------------------------------------------------------ the context */

static void the_context_is_what_dockerignore_leaves(void **state) {
    const char *dir = context("FROM scratch\nCOPY . /\nCOPY d*/k?ep /m/\n");

    (void)state;
    SHELL("cd %s && mkdir -p d/e skip/kept && touch d/keep d/x.log d/e/y skip/a skip/kept/b 'sp "
          "ace' && ln -s /etc/passwd d/link && "
          "mkfifo d/fifo && printf "
          "'*.log\\n**/*.log\\nskip\\n!skip/kept\\nDockerfile\\n.dockerignore\\n' > .dockerignore",
          dir);
    MAYFLY(0, "build", "-t", "ctx", dir);
    SHELL("cd $(\"$MAYFLY_BIN\" inspect ctx | grep -o '\"path\":\"[^\"]*' | cut -c9-) && find . ! "
          "-type d | sort | tr '\\n' ' '");
    assert_string_equal(said, "./d/e/y ./d/keep ./d/link ./m/keep ./skip/kept/b ./sp ace ");
    /* A Dockerfile of another name has rules of its own; one from elsewhere builds on this context. */
    SHELL("cd %s && printf 'FROM scratch\\nCOPY . /\\n' > Other && echo '*' > Other.dockerignore "
          "&& echo '!d/keep' >> Other.dockerignore",
          dir);
    SHELL("cd %s && \"$MAYFLY_BIN\" build -q -t ctx -f Other . && cat Other | \"$MAYFLY_BIN\" "
          "build -q -t piped -f - .",
          dir);
    SHELL("cd $(\"$MAYFLY_BIN\" inspect ctx | grep -o '\"path\":\"[^\"]*' | cut -c9-) && find . ! "
          "-type d | sort | tr '\\n' ' '");
    assert_string_equal(said, "./d/keep ");
}

/* No link of the image's leads a COPY out of the image: not in the tree that is made, and not on the host. */
static void links_in_the_image_lead_nowhere_else(void **state) {
    char text[600];

    (void)state;
    (void)snprintf(text, sizeof(text),
                   "FROM base\nRUN ln -s %s/host /abs && ln -s ../../../../../..%s/host /up && "
                   "mkdir /in && ln -s /in /to-in\n"
                   "COPY f /abs/f\nCOPY f /up/g\nCOPY f /to-in/\nCOPY f /to-in\n",
                   shared.dir, shared.dir);
    const char *dir = context(text);
    add_file(dir, "f", "f");
    SHELL("mkdir %s/host", shared.dir);
    MAYFLY(0, "build", "-t", "links", dir);
    SHELL("[ -z \"$(ls -A %s/host)\" ] && cd $(\"$MAYFLY_BIN\" inspect links | grep -o "
          "'\"path\":\"[^\"]*' | cut -c9-) && "
          "ls .%s/host/f .%s/host/g in/f && [ -L to-in ]",
          shared.dir, shared.dir, shared.dir);
}

/* ------------------------------------------------------------------ RUN's box */

static void a_run_has_the_image_and_nothing_else(void **state) {
    const char *dir = context(
        "FROM base\n"
        "RUN cat /proc/self/status > /status; cat /proc/net/dev > /net; ls / > /root-list\n"
        "USER 9\n"
        "RUN cat /proc/self/status > /tmp/status9; echo x > /etc/passwd; touch /etc/y; true\n"
        "USER 0\n"
        "RUN chown 12:13 /tmp/status9; chmod 4755 /status; cat /proc/1/environ > /env; true\n");

    (void)state;
    add_file(dir, "secret", "of the context");
    SHELL("cd %s/unpacked && ls > %s/roots && tar c $(cat %s/roots) | sha256sum > %s/before",
          shared.store, shared.dir, shared.dir, shared.dir);
    MAYFLY(0, "build", "-t", "held", dir);
    SHELL("cd %s/unpacked && tar c $(cat %s/roots) | sha256sum | diff - %s/before", shared.store,
          shared.dir, shared.dir);
    assert_string_equal(said, ""); /* the base that others run on */
    MAYFLY(0, "run", "-u", "0", "held", "cat", "/status");
    SAID("CapEff:\t000000000000001b\n"); /* chown, dac_override, fowner, fsetid */
    SAID("CapBnd:\t000000000000001b\n");
    SAID("CapAmb:\t0000000000000000\n");
    SAID("NoNewPrivs:\t1\n");
    SAID("Seccomp:\t2\n");
    MAYFLY(0, "run", "-u", "0", "held", "cat", "/tmp/../net", "/root-list");
    assert_null(strstr(printed, "eth"));
    assert_null(strstr(said, "secret"));
    SHELL("cd $(\"$MAYFLY_BIN\" inspect held | grep -o '\"path\":\"[^\"]*' | cut -c9-) && grep "
          "CapBnd tmp/status9 && "
          "{ [ $UID != 0 ] || [ ! -e etc/y ]; } && [ \"$(stat -c %%a status)\" != 4755 ] && [ ! -s "
          "env ]");
    SAID("0000000000000000");
}

/* The policy's field that makes such a box, by itself: all of its controls are read back from the kernel. */
static void a_root_that_is_written_is_attested_like_any_other(void **state) {
    char root[sizeof(shared.dir) + 16];

    (void)state;
    (void)snprintf(root, sizeof(root), "%s/written", shared.dir);
    SHELL("cp -a %s/base %s && mkdir %s/dev %s/proc %s/tmp", shared.dir, root, root, root, root);
    MAYFLY(0, "run", "--json", "--attest", "--build", "-u", "0", "-w", "/", "--rootfs", root,
           "/bin/sh", "-c", "echo in > /made; echo in > /tmp/made; id -u; pwd; [ ! -e /home ]");
    SAID("\"exitCode\":0");
    SAID("\"stdout\":\"0\\n/\\n\"");
    SAID("\"inForce\":true");
    if (live_has_cgroups())
        assert_null(strstr(said, "\"inForce\":false"));
    SHELL("cat %s/made %s/tmp/made", root, root);
    assert_string_equal(said, "in\nin\n");
    if (geteuid() == 0) { /* overlayfs cannot be id-mapped: its owners would be nobody in the box */
        assert_int_equal(
            shell("cd %s && mkdir -p m up work && unshare -m sh -c 'mount -t overlay -o "
                  "lowerdir=written,upperdir=up,workdir=work o m && "
                  "\"$MAYFLY_BIN\" run --build -u 0 -w / --limits best-effort --rootfs m true'",
                  shared.dir),
            125);
        SAID("a file system that can be id-mapped");
    }
    MAYFLY(125, "run", "--build", "base", "true");
    SAID("--build would change an image that others run");
    MAYFLY(125, "python", "--build", "--rootfs", root, "-c", "1");
    SAID("--build is for commands");
}

/* ADD unpacks what is an archive by its content, in any compression; COPY never does. */
static void an_archive_is_unpacked_by_add(void **state) {
    const char *dir = context("FROM base\n"
                              "ADD a.tar b.tar.gz c.bz2 d.xz e.zst /un/packed\n"
                              "ADD --chown=5:6 own.tar /own/\n"
                              "ADD own.tar /as-is\n"
                              "ADD text.gz plain.tar /files/\n"
                              "COPY a.tar /copied\n"
                              "RUN chmod 755 /as-is/f\n");

    (void)state;
    SHELL("cd %s && sed -i 's,/un/packed,&/,' Dockerfile && mkdir -p d/e t/gz t/bz2 t/xz t/zst && "
          "echo t > d/e/t && ln -s e/t d/l && ln d/e/t d/h && tar cf a.tar d && cd t && "
          "echo gzip > gz/f && tar czf ../b.tar.gz gz && echo bzip2 > bz2/f && tar cjf ../c.bz2 "
          "bz2 && "
          "echo xz > xz/f && tar cJf ../d.xz xz && echo zstd > zst/f && tar cf ../e.zst --zstd zst "
          "&& "
          "cd .. && echo f > f && mkfifo p && tar cf own.tar --owner=7 --group=8 f p && "
          "gzip < f > text.gz && echo no > plain.tar",
          dir);
    MAYFLY(0, "build", "-t", "added", dir);
    SAID("own.tar: left out: 1 device files");
    MAYFLY(0, "run", "-u", "0", "added", "cat", "/un/packed/d/e/t", "/un/packed/d/l",
           "/un/packed/d/h", "/un/packed/gz/f", "/un/packed/bz2/f", "/un/packed/zst/f",
           "/un/packed/xz/f", "/own/f", "/as-is/f", "/files/plain.tar");
    assert_string_equal(printed, "t\nt\nt\ngzip\nbzip2\nzstd\nxz\nf\nf\nno\n");
    SHELL("cd $(\"$MAYFLY_BIN\" inspect added | grep -o '\"path\":\"[^\"]*' | cut -c9-) && cmp "
          "files/text.gz %s/text.gz && "
          "cmp copied %s/a.tar && [ un/packed/d/e/t -ef un/packed/d/h ] && [ ! -e own/p ]",
          dir, dir);
    SHELL("cd %s/blobs/sha256 && for l in $(\"$MAYFLY_BIN\" inspect added | grep -o "
          "'\"digest\":\"sha256:[0-9a-f]*' | "
          "cut -c18-); do tar tvzf $l --numeric-owner 2>/dev/null || true; done | grep ' [oa][ws]' "
          "| awk '{print $2, $6}'",
          shared.store);
    SAID("5/6 own/f");
    SAID("7/8 as-is/f");
}

/* Stranger's archives: nothing of them lands elsewhere, and a bad one is no half of a step. */
static void an_archive_that_is_hostile_harms_nothing(void **state) {
    static const struct {
        const char *make, *why;
    } cases[] = {
        {"tar cPf x.tar f --transform 's,f,../../x,'", "Dockerfile:2: ADD: "},
        {"tar cPf x.tar f --transform 's,f,a/../../../x,'", "Dockerfile:2: ADD: "},
        {"tar cf x.tar f --transform 's,f,.wh.f,'",
         "no layer can hold a file whose name begins with .wh."},
        {"tar cf y.tar big && head -c 100000 y.tar > x.tar", "Dockerfile:2: ADD: the archive: "},
        {"truncate -s 30m z && tar czf x.tar z", "holds more than a build may write"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *dir = context("FROM base\nADD x.tar /un/\n");
        SHELL("cd %s && echo f > f && head -c 300000 /dev/urandom > big && %s 2>&1", dir,
              cases[i].make);
        MAYFLY(125, "build", "--max-disk=20m", dir);
        SAID(cases[i].why);
    }
    const char *dir = context("FROM base\nADD x.tar /un/\nADD y.tar /un/\n");
    SHELL("cd %s && mkdir %s/target && ln -s %s/target d && tar cf x.tar d && rm d && mkdir d && "
          "echo f > d/f && tar cf "
          "y.tar d/f",
          dir, shared.dir, shared.dir);
    MAYFLY(0, "build", "-t", "hostile", dir);
    SHELL("[ -z \"$(ls -A %s/target)\" ]", shared.dir);
}

/* Whatever mode a RUN gives its files, the layer has it, and the next step can be made; also as a user. */
static void a_run_gives_any_mode(void **state) {
    const char *dir = context(
        "FROM base\n"
        "RUN mkdir -p /m/none/in /m/write && echo x > /m/none/in/f && echo y > /m/write/g && "
        "echo z > /m/h && chmod 0 /m/none/in/f /m/none/in /m/none && chmod 0311 /m/write && "
        "chmod 0200 /m/h\n"
        "RUN cat /m/h /m/write/g /m/none/in/f > /all; rm -r /m/write\n"
        "COPY Dockerfile /m/none/\n"
        "FROM base\n"
        "COPY --from=0 /m /m\n"
        "COPY --from=0 /all /all\n");
    static const char *const storages[] = {"--storage=overlay", "--storage=copy"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(storages); i++) {
        MAYFLY(0, "build", "--no-cache", storages[i], "--target=0", "-t", "modes", dir);
        SHELL("cd %s/blobs/sha256 && for l in $(\"$MAYFLY_BIN\" inspect modes | grep -o "
              "'\"digest\":\"sha256:[0-9a-f]*' | cut -c18- | tail -n +2 | awk '!seen[$0]++'); do "
              "tar tvzf $l 2>/dev/null | grep ' m/' || true; done",
              shared.store);
        SAID("d--------- ");
        SAID("d-wx--x--x ");
        SAID("--w------- ");
        SAID("---------- ");
        MAYFLY(0, "build", "--no-cache", storages[i], "-t", "modes", dir);
        MAYFLY(0, "run", "-u", "0", "modes", "cat", "/all");
        assert_string_equal(printed, "z\ny\nx\n");
    }
    struct store *s = open_place(&shared);
    assert_int_equal(count_in(s->dir, "tmp"), 0);
    store_close(s);
}

/* What RUN makes is the same whether it writes to an overlay or to a copy of all files. */
static void an_overlay_and_a_copy_give_the_same_layers(void **state) {
    char one[DIGEST_SIZE], two[DIGEST_SIZE];
    const char *dir = context("FROM base\n"
                              "RUN rm -r /etc/d && mkdir /etc/d && echo 1 > /etc/d/y && rm "
                              "/etc/gone && mkdir -p /n/a/b && echo 2 > "
                              "/n/a/f\n"
                              "COPY Dockerfile /n/a/\n"
                              "RUN rm -r /n/a && mkdir /n/a && echo 3 > /n/a/g && mv /etc/d "
                              "/etc/moved && ln -s x /etc/d && mkdir "
                              "/.wheel && chmod 700 /n\n"
                              "RUN rm /etc/d && mkdir /etc/d && rm -r /n && echo file > /n && echo "
                              "x >> /etc/passwd && mkdir /etc/gone "
                              "&& touch /a-b /a /a.b && ln /a /b\n"
                              "RUN true\n"
                              "FROM 0\n"
                              "RUN echo 4 > /etc/passwd; rm /a-b\n");

    (void)state;
    assert_int_equal(setenv("SOURCE_DATE_EPOCH", "1000000000", 1), 0);
    MAYFLY(0, "build", "--no-cache", "--storage=overlay", "-t", "over", dir);
    assert_null(strstr(said, "writes to a copy"));
    DIGEST(one, "build", "-q", "--no-cache", "--storage=overlay", dir);
    DIGEST(two, "build", "-q", "--no-cache", "--storage=copy", dir);
    assert_string_equal(one, two);
    MAYFLY(0, "run", "over", "ls", "/etc", "/etc/d", "/etc/moved", "/etc/gone");
    assert_string_equal(strstr(printed, "/etc/d:"), "/etc/d:\n\n/etc/gone:\n\n/etc/moved:\ny\n");
    assert_int_equal(unsetenv("SOURCE_DATE_EPOCH"), 0);
    if (geteuid() != 0 ||
        shell("setpriv --reuid 1000 --regid 1000 --clear-groups test -x \"$MAYFLY_BIN\"") != 0)
        return;
    /* A store on an overlay, which can hold no upper directory: the copy is fallen back on, and that is said. */
    SHELL("cd %s && chmod 711 . && mkdir -p ov/m ov/up ov/work && cp -a store ov/low && chown -R "
          "1000:1000 ov && "
          "unshare -m sh -c 'mount -t overlay -o lowerdir=ov/low,upperdir=ov/up,workdir=ov/work o "
          "ov/m && setpriv "
          "--reuid 1000 --regid 1000 --clear-groups \"$MAYFLY_BIN\" build --limits best-effort "
          "--store ov/m %s'; "
          "rm -rf ov",
          shared.dir, dir);
    SAID("RUN writes to a copy of all files, since overlayfs cannot be had");
}

/* What is written is limited over all RUNs, also what has no name any more. */
static void the_disk_is_limited(void **state) {
    static const char *const runs[] = {
        "RUN cat /z /z /z /z /z /z > /big\n",
        "RUN cat /z /z /z > /one\nRUN cat /z /z /z > /two\n",
        "RUN i=0; while [ $i -lt 2500 ]; do : > /f$i; i=$((i+1)); done\n",
        "RUN exec 3> /gone; rm /gone; cat /z /z /z /z /z /z >&3\n",
        "RUN i=0; while [ $i -lt 400 ]; do mkdir d; cd d; i=$((i+1)); done; sleep 60\n",
    };
    char text[300];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        (void)snprintf(text, sizeof(text), "FROM base\nCOPY z /\n%s", runs[i]);
        const char *dir = context(text);
        SHELL("head -c 200000 /dev/urandom > %s/z", dir);
        MAYFLY(1, "build", "--max-disk=1m", dir);
        SAID("RUN: has written more to disk than the 1 MiB that all RUNs may together; allow more "
             "with --max-disk");
    }
}

/* Many files that are open and have no name are seen by the space that is gone. */
static void what_has_no_name_counts_as_well(void **state) {
    void *p = NULL;
    char chunk[1 << 16] = "";
    struct quota quota;
    struct err err = {0};
    uint64_t bytes = 0;

    (void)state;
    assert_int_equal(set_fast_place(&p), 0);
    int dir = open(((struct place *)p)->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(dir, "f", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_ok(quota_begin(&quota, dir, 4 << 20, &err), err);
    assert_int_equal(unlinkat(dir, "f", 0), 0);
    struct pollfd full = {.fd = quota.full_fd, .events = POLLIN};
    for (int i = 0; i < 1000 && poll(&full, 1, 0) == 0;
         i++) /* what others free meanwhile is made up for */
        assert_int_equal(fd_write_full(fd, chunk, sizeof(chunk)) | usleep(1000), 0);
    assert_int_equal(poll(&full, 1, 0), 1);
    assert_int_equal(quota_end(&quota, &bytes), -EDQUOT);
    (void)close(fd);
    (void)close(dir);
    assert_int_equal(drop_place(&p), 0);
}

static void output_is_shown_to_its_limit_and_ours_begins_at_the_margin(void **state) {
    const char *dir = context("FROM base\nRUN printf 'no end'\n"
                              "RUN for i in 1 2 3 4 5 6 7 8 9 10; do cat /etc/passwd; done\n");

    (void)state;
    MAYFLY(0, "build", "--max-output=1k", dir);
    SAID("\nno end\n");
    SAID("\nDockerfile:3: RUN for");
    SAID("\nmayfly: warning: ");
    SAID(" of RUN's output are not shown; --max-output takes more\n");
}

static void a_run_has_the_hosts_network_where_that_is_asked_for(void **state) {
    const char *dir =
        context("FROM base\n"
                "RUN cat /proc/net/dev > /dev-host; cat /etc/resolv.conf > /resolv; cat /etc/hosts "
                "> /hosts; true\n"
                "RUN --network=none cat /proc/net/dev > /dev-none; [ ! -s /etc/resolv.conf ]\n"
                "RUN --network=default echo \"$http_proxy\" > /proxy\n"
                "RUN --network=none ln -s ../run/none/x /etc/resolv.conf\n"
                "RUN cat /etc/resolv.conf > /resolv-linked; true\n");

    (void)state;
    MAYFLY(0, "build", "--no-cache", "--network=host", "--build-arg=http_proxy=http://p:1", "-t",
           "net", dir);
    SAID("Dockerfile:2: with the host's network");
    MAYFLY(0, "run", "net", "cat", "/resolv", "/hosts");
    char *names = strdup(printed);
    SHELL("cat /etc/resolv.conf /etc/hosts");
    assert_string_equal(names, said);
    free(names);
    MAYFLY(0, "run", "net", "cat", "/dev-none");
    const char *lo = strstr(printed, "lo:");
    assert_non_null(lo);
    assert_null(strchr(lo + 3, ':'));
    MAYFLY(0, "run", "net", "cat", "/dev-host");
    char *devices = strdup(printed);
    SHELL("cat /proc/net/dev");
    for (const char *p = said; (p = strchr(p, ':'));
         p++) { /* the same devices; their counters go on */
        const char *name = p;
        while (name > said && name[-1] != ' ' && name[-1] != '\n')
            name--;
        char device[40];
        (void)snprintf(device, sizeof(device), "%.*s", (int)(p - name) + 1, name);
        assert_non_null(strstr(devices, device));
    }
    free(devices);
    MAYFLY(0, "run", "net", "cat", "/proxy");
    assert_string_equal(printed, "http://p:1\n");
    /* Nothing of it is in the image, and no run can have it. */
    SHELL("\"$MAYFLY_BIN\" inspect net | grep -c p:1 || true");
    assert_string_equal(said, "0\n");
    MAYFLY(0, "run", "net", "ls", "-l", "/etc");
    assert_null(strstr(printed, "hosts"));
    assert_non_null(strstr(printed, "resolv.conf -> ../run/none/x")); /* it gave way for a RUN */
    SHELL("cat /etc/resolv.conf");
    char *servers = strdup(said);
    MAYFLY(0, "run", "net", "cat", "/resolv-linked");
    assert_string_equal(printed, servers);
    free(servers);
    MAYFLY(0, "build", dir); /* without it: another cache entry */
    SAID("0 of 5 steps cached");
    MAYFLY(125, "run", "--network=host", "net", "true");
    MAYFLY(125, "run", "--build", "--network=host", "--rootfs", rootfs, "true");
}

static pid_t start_build(const char *dir) {
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        (void)dup2(null, 1);
        (void)dup2(null, 2);
        (void)execl(live_env("MAYFLY_BIN"), "mayfly", "build", "--limits=best-effort", dir, NULL);
        _exit(99);
    }
    return pid;
}

static void nothing_of_a_failed_build_stays(void **state) {
    const char *dir = context("FROM base\nRUN echo x > /x\nRUN sleep 30\n");
    struct store *s = open_place(&shared);

    (void)state;
    MAYFLY(0, "images", "-q");
    char *before = strdup(printed);
    MAYFLY(1, "build", "--timeout", "300ms", "-t", "failed", dir);
    MAYFLY(0, "images", "-q");
    assert_string_equal(printed, before);
    free(before);
    assert_int_equal(count_in(s->dir, "tmp"), 0);
    /* Killed in the middle of a step: the next writer removes what it left. */
    pid_t pid = start_build(dir);
    for (int i = 0; i < 500 && count_in(s->dir, "tmp") == 0; i++)
        (void)usleep(10000);
    (void)usleep(300000);
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_not_equal(count_in(s->dir, "tmp"), 0);
    /* Interrupted: it removes that itself, and dies of the signal. */
    pid = start_build(dir);
    (void)usleep(live_slow() > 1 ? 3000000 : 800000);
    int status = 0;
    (void)kill(pid, SIGINT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    assert_int_equal(count_in(s->dir, "tmp"), 0);
    store_close(s);
    dir = context("FROM base\n");
    MAYFLY(0, "build", dir);
    s = open_place(&shared);
    assert_int_equal(count_in(s->dir, "tmp"), 0);
    store_close(s);
}

static const char busy[] =
    "FROM base AS a\nCOPY . /c\nRUN cp -r /c /d && rm -r /c/f\nADD a.tar /e/\nRUN chmod -R 700 /e; "
    "mkdir "
    "/e/f/x\nFROM base\nCOPY --from=a /e /e\nCOPY --from=a /d /d\nRUN rm -r /d/f && mkdir /d/f\n";

/* Killed anywhere, a build leaves nothing that another takes for whole. */
static void a_build_that_is_killed_leaves_the_cache_right(void **state) {
    const char *dir = context(busy), *limits = live_has_cgroups() ? "" : "--limits=best-effort";

    (void)state;
    SHELL("cd %s && mkdir f && for i in 1 2 3 4 5 6 7 8 9; do echo $i > f/$i; done && "
          "head -c 300000 /dev/urandom > big && tar cf a.tar f big && "
          "export SOURCE_DATE_EPOCH=1000000000 && build() { \"$MAYFLY_BIN\" build %s -q .; } && "
          "want=$(build) && for i in 5 30 80 130 200; do rm -r %s/build-cache; "
          "\"$MAYFLY_BIN\" build %s -q . > /dev/null 2>&1 & sleep $(printf 0.%%03d $i); kill -9 $! "
          "2> /dev/null || true; "
          "wait $! 2> /dev/null || true; got=$(build); [ \"$got\" = \"$want\" ] || "
          "{ echo killed after $i ms: $got, $want; exit 1; }; done; "
          /* What a box that is just dying still held, the next one takes. */
          "sleep 0.2; build; ls -A %s/tmp | sed 's/^/left: /'",
          dir, limits, shared.store, limits, shared.store);
    assert_null(strstr(said, "left: "));
}

static void builds_at_once_do_not_disturb_each_other(void **state) {
    const char *dir = context(busy);

    (void)state;
    SHELL("cd %s && mkdir f && echo f > f/1 && echo big > big && tar cf a.tar f big && export "
          "SOURCE_DATE_EPOCH=1000000000 && "
          "p=; for i in 1 2 3 4; do \"$MAYFLY_BIN\" build %s -q -t \"at-once:$((i %% 2))\" . > "
          "out.$i 2>&1 & p=\"$p $!\"; done; "
          "for i in $p; do wait $i; done; cat out.* | sort -u",
          dir, live_has_cgroups() ? "" : "--limits=best-effort");
    assert_int_equal(strlen(said), strlen("sha256:") + 64 + 1); /* one digest */
}

static void a_full_disk_is_said_and_the_store_stays_as_it_was(void **state) {
    const char *dir = context("FROM scratch\nCOPY a /\nCOPY big /\n");

    (void)state;
    if (geteuid() != 0)
        live_skip("root", "mounting a small disk takes root");
    assert_int_equal(
        shell("cd %s && echo a > a && head -c 3000000 /dev/urandom > big && mkdir -p small && "
              "unshare -m bash -c '"
              "mount -t tmpfs -o size=2m t small && export MAYFLY_STORE=small/store && "
              "! \"$MAYFLY_BIN\" build -t full . && ls small/store/tmp && \"$MAYFLY_BIN\" images "
              "-q && "
              "echo big > .dockerignore && \"$MAYFLY_BIN\" build -t full --target 0 -f - . "
              "<<<$(head -2 Dockerfile)'",
              dir),
        0);
    SAID("Dockerfile:3: COPY: ");
    SAID("No space left on device; make room");
    SAID("1 layers, 1 of 1 steps cached");
}

/* The reason for all of it: a library that the code then imports. */
static void a_library_is_installed_and_imported(void **state) {
    const char *dir = context("FROM base\n"
                              "COPY python /\n"
                              "WORKDIR /opt/lib\n"
                              "COPY pkg pkg\n"
                              "RUN python3 -m compileall -q pkg\n"
                              /* As by a kernel without it: useradd gives up on any other answer. */
                              "RUN python3 -c 'import _socket; _socket.socket(16, 3, 0)' 2>&1 | "
                              "while read l; do echo \"$l\" > /netlink; done\n"
                              "ENV PYTHONPATH=/opt/lib\n"
                              "USER 1000\n");

    (void)state;
    SHELL("mkdir %s/pkg %s/python && echo 'def hello(): return \"from the image\"' > "
          "%s/pkg/__init__.py && cd %s && "
          "tar c --exclude=__pycache__ usr/bin/python3* usr/lib/*-linux-gnu/lib{m,z,expat}.so.* "
          "usr/lib/python3*/{*.py,collections,concurrent,encodings,importlib,re,urllib} | tar x -C "
          "%s/python",
          dir, dir, dir, rootfs, dir);
    MAYFLY(0, "build", "--no-bytecode", "-t", "lib", dir);
    MAYFLY(0, "run", "lib", "python3", "-c", "import pkg; print(pkg.hello(), pkg.__cached__)");
    SAID("from the image /opt/lib/pkg/__pycache__/");
    MAYFLY(0, "run", "lib", "cat", "/netlink");
    SAID("[Errno 97]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_does_what_it_says),
        cmocka_unit_test(a_layer_is_what_changed),
        cmocka_unit_test(the_same_input_gives_the_same_digest),
        cmocka_unit_test(a_step_is_repeated_only_when_something_it_depends_on_changes),
        cmocka_unit_test(stages_are_made_when_they_are_needed),
        cmocka_unit_test(a_user_with_subordinate_ids_builds),
        cmocka_unit_test(what_came_of_it_is_said_once_and_in_json_too),
        cmocka_unit_test(what_cannot_be_is_refused_by_line),
        cmocka_unit_test(the_context_is_what_dockerignore_leaves),
        cmocka_unit_test(links_in_the_image_lead_nowhere_else),
        cmocka_unit_test(a_run_has_the_image_and_nothing_else),
        cmocka_unit_test(a_root_that_is_written_is_attested_like_any_other),
        cmocka_unit_test(an_archive_is_unpacked_by_add),
        cmocka_unit_test(an_archive_that_is_hostile_harms_nothing),
        cmocka_unit_test(a_run_gives_any_mode),
        cmocka_unit_test(an_overlay_and_a_copy_give_the_same_layers),
        cmocka_unit_test(the_disk_is_limited),
        cmocka_unit_test(what_has_no_name_counts_as_well),
        cmocka_unit_test(output_is_shown_to_its_limit_and_ours_begins_at_the_margin),
        cmocka_unit_test(a_run_has_the_hosts_network_where_that_is_asked_for),
        cmocka_unit_test(nothing_of_a_failed_build_stays),
        cmocka_unit_test(a_build_that_is_killed_leaves_the_cache_right),
        cmocka_unit_test(builds_at_once_do_not_disturb_each_other),
        cmocka_unit_test(a_full_disk_is_said_and_the_store_stays_as_it_was),
        cmocka_unit_test(a_library_is_installed_and_imported),
    };
    return cmocka_run_group_tests(tests, set_store, drop_store);
}
