/*
 * test_run_image.c: a run from the store honours the image's config, under what was asked for; nothing takes the root
 * file system from under a box; where an image is missing, it is said, or pulled.
 */
#include "image/home.h"
#include "json/config_json.h"
#include "layers.h"
#include "lib/image_use.h"
#include "live/live.h"

#include "base/banned.h"

static char rootfs[4096];
static struct place shared; /* a store with the rootfs as an image, "base" */
static char layer[DIGEST_SIZE];
static int64_t layer_size;

static const char *said_by(const char *const *argv, int *ret_code) {
    static char said[70000];
    struct live_output *o = live_program(argv, -1);

    (void)(str_copy(said, sizeof(said), o->out) &&
           str_copy(said + strlen(said), sizeof(said) - strlen(said), o->err));
    *ret_code = o->exit_code;
    free(o);
    return said;
}

static const char *said_with(int want, const char *const *argv) {
    int code = 0;
    const char *said = said_by(argv, &code);

    if (code != want)
        fail_msg("exit %d, not %d: %s", code, want, said);
    return said;
}
#define SAID(want, ...) said_with(want, (const char *const[]){__VA_ARGS__, NULL})
#define SAYS(want, text, ...)                                                                      \
    do {                                                                                           \
        const char *said_ = SAID(want, __VA_ARGS__);                                               \
        if (!strstr(said_, text))                                                                  \
            fail_msg("\"%s\" does not hold \"%s\"", said_, text);                                  \
    } while (0)

static int set_store(void **state) {
    void *p = NULL;
    int code = 0;
    struct err err = {0};
    struct index_entry e;
    json_t *index = NULL;

    (void)state;
    if (set_place(&p) < 0)
        return -1;
    shared = *(struct place *)p;
    free(p);
    (void)str_copy(rootfs, sizeof(rootfs), live_env("MAYFLY_ROOTFS"));
    (void)live_has_cgroups();
    (void)unsetenv("MAYFLY_ROOTFS"); /* or it would be the root, and an image's name a command */
    (void)setenv("MAYFLY_STORE", shared.store, 1);
    (void)setenv("XDG_CONFIG_HOME", shared.dir, 1); /* where there is no configuration */
    const char *argv[] = {"import", "--no-bytecode", "-t", "base", rootfs, NULL};
    const char *said = said_by(argv, &code);
    if (code != 0)
        return print_message("%s", said), -1;
    struct store *s = open_place(&shared);
    _cleanup_buf_ struct buf text = {0};
    if (index_read(s->dir, &index, &err) < 0 || index_find(index, "base", &e, NULL, &err) < 0 ||
        blob_read_all(s, e.digest, 1 << 20, &text, &err) < 0)
        return -1;
    json_t *m = json_loads(text.data, 0, NULL);
    const json_t *l = json_array_get(json_object_get(m, "layers"), 0);
    (void)str_copy(layer, sizeof(layer), json_string_value(json_object_get(l, "digest")));
    layer_size = json_integer_value(json_object_get(l, "size"));
    json_decref(m);
    json_decref(index);
    store_close(s);
    return 0;
}

static int drop_store(void **state) {
    (void)state;
    return tree_remove(AT_FDCWD, shared.dir, NULL);
}

/* The same files, another config; by the name of `name`. */
static void make_image(const char *name, const char *config) {
    _cleanup_buf_ struct buf c = {0}, m = {0};
    struct store *s = open_place(&shared);
    char digest[DIGEST_SIZE], manifest[DIGEST_SIZE], full[REFERENCE_SIZE];
    struct reference r;
    struct err err = {0};

    buf_printf(
        &c,
        "{\"os\":\"linux\",\"config\":%s,\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"%s\"]}}",
        config, layer);
    put_blob(s, c.data, c.len, digest);
    buf_printf(&m,
               "{\"schemaVersion\":2,\"config\":{\"mediaType\":\"application/"
               "vnd.oci.image.config.v1+json\",\"digest\":\"%s\","
               "\"size\":%zu},\"layers\":[{\"mediaType\":\"application/"
               "vnd.oci.image.layer.v1.tar\",\"digest\":\"%s\",\"size\":"
               "%lld}]}",
               digest, c.len, layer, (long long)layer_size);
    put_blob(s, m.data, m.len, manifest);
    assert_ok(store_unpack(s, manifest, UNPACK_NO_BYTECODE, NULL, &err), err);
    assert_ok(reference_parse(name, &r, &err), err);
    assert_ok(store_tag(s, reference_full(&r, full), "application/vnd.oci.image.manifest.v1+json",
                        manifest, (int64_t)m.len, &err),
              err);
    store_close(s);
}

static void the_config_is_honoured(void **state) {
    (void)state;
    make_image("full",
               "{\"Entrypoint\":[\"/bin/"
               "echo\",\"entry\"],\"Cmd\":[\"cmd\"],\"Env\":[\"A=image\",\"B=image\",\"nonsense\"],"
               "\"WorkingDir\":\"/made/by//config/\",\"User\":\"7:8\"}");
    SAYS(0, "entry cmd\n", "run", "full");
    SAYS(0, "entry other words\n", "run", "full", "other", "words");
    SAYS(0, "/made/by/config", "run", "--entrypoint", "pwd", "full");
    SAYS(0, "image mine", "run", "--entrypoint=/bin/sh", "-e", "B=mine", "full", "-c",
         "echo $A $B");
    SAYS(0, "uid=7 gid=8", "run", "--entrypoint", "id", "full");
    SAYS(0, "uid=9 gid=9", "run", "-u", "9", "--entrypoint", "id", "full");
    SAYS(0, "/tmp", "run", "-w", "/tmp", "--entrypoint", "pwd", "full");
    SAYS(0, "PATH=/usr", "run", "--entrypoint=/bin/sh", "full", "-c",
         "echo PATH=$PATH"); /* the config has none */
    SAYS(0, "7\n", "python", "--image", "full", "-c", "import os; print(os.getuid())");
    SAYS(0, "\"image\":\"sha256:", "run", "--json", "full");
    SAYS(125, "no command", "run", "base");
    SAYS(125, "no command", "run", "--entrypoint=", "full");
    SAYS(0, "plain", "run", "base", "echo", "plain");
    SAYS(0, "uid=1000", "run", "base", "id");
    SAYS(0, "by digest", "run", "--image", "docker.io/library/base:latest", "echo", "by", "digest");
    make_image("path", "{\"Env\":[\"PATH=/nowhere\"],\"Cmd\":[\"sh\"]}");
    SAYS(127, "sh", "run", "path");
    /* Where the environment names the root, the first word is a command: said to who meant an image. */
    assert_int_equal(setenv("MAYFLY_ROOTFS", rootfs, 1), 0);
    SAYS(127, "--image NAME", "run", "base", "id");
    SAYS(0, "uid=1000", "run", "--image", "base", "id");
    assert_int_equal(unsetenv("MAYFLY_ROOTFS"), 0);
}

/* Where the box has a file system of its own over what the image has, and where not. */
static void a_working_directory_is_there_wherever_it_lies(void **state) {
    (void)state;
    make_image(
        "tmpdir",
        "{\"WorkingDir\":\"/tmp/a/b\",\"Cmd\":[\"sh\",\"-c\",\"pwd; echo x > y && cat y\"]}");
    make_image("homedir", "{\"WorkingDir\":\"/home/"
                          "node\",\"User\":\"5\",\"Cmd\":[\"sh\",\"-c\",\"pwd; ls; id -u\"]}");
    SAYS(0, "/tmp/a/b\nx\n", "run", "tmpdir");
    SAYS(0, "/home/node\n5\n", "run", "homedir");
    SAYS(0, "HOME=/home/box", "run", "base", "sh", "-c",
         "echo HOME=$HOME"); /* of the same layers */
    SAYS(0, "/tmp/q", "run", "-w", "/tmp/q", "base", "pwd");
    make_image("relative", "{\"WorkingDir\":\"./made//by/config\",\"Cmd\":[\"pwd\"]}");
    SAYS(0, "/made/by/config\n", "run", "relative"); /* of the same files as "full" */
    SAYS(0, "/usr/bin\n", "run", "-w", "//usr/./lib/../bin/", "base", "pwd");
    SAYS(125, "identity: the working directory /bin/sh: Not a directory; --workdir must be", "run",
         "-w", "/bin/sh", "base", "pwd");
    make_image("up", "{\"WorkingDir\":\"/usr/../../etc/"
                     "\",\"User\":\"5:\",\"Cmd\":[\"sh\",\"-c\",\"pwd; id -u\"]}");
    SAYS(0, "/etc\n5\n", "run", "up");
    SAYS(0, "from /\n", "run", "base", "sh", "-c", "echo from `pwd`");
    SAYS(0, "from /home/box\n", "python", "--image=relative", "-c",
         "import os; print('from', os.getcwd())");
}

/* As Docker has it: USER's home and name are those of the image's passwd, unless ENV says otherwise. What passwd says is
 * the image's word, so it may be anything. */
static void a_users_home_is_the_one_that_passwd_has(void **state) {
    static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\napp:x:70:71::/srv/app:/bin/sh\n"
                                 "odd:x:72:1::not/absolute:\nnone:x:73:1\n:x:74:1::/x:\n";
    static const struct {
        const char *user, *name, *home;
    } cases[] = {
        {"root", "root", "/root"},   {"0", "root", "/root"}, {"app:staff", "app", "/srv/app"},
        {"70:5", "app", "/srv/app"}, {"odd", "odd", "/"},    {"none", "none", "/"},
        {"74", "74", "/x"},          {"4711", "4711", "/"}};
    static const char show[] = "echo $HOME $USER $LOGNAME";

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct user_login login;
        user_login(cases[i].user, passwd, &login);
        assert_string_equal(login.name, cases[i].name);
        assert_string_equal(login.home, cases[i].home);
        user_login(cases[i].user, NULL, &login);
        assert_string_equal(login.home, "/");
    }
    make_image("login", "{\"User\":\"root\",\"Entrypoint\":[\"/bin/sh\",\"-c\"]}");
    SAYS(0, "/root root root\n", "run", "login", show);
    SAYS(0, "/ 7 7\n", "run", "-u", "7777:0", "-e", "USER=7", "-e", "LOGNAME=7", "login", show);
    SAYS(0, "/ 7777 7777\n", "run", "-u", "7777", "login", show);
    SAYS(0, "/mine root root\n", "run", "-e", "HOME=/mine", "login", show);
    SAYS(0, "/home/box root\n", "python", "--image=login", "-c",
         "import os; print(os.environ['HOME'], os.environ['USER'])");
    SAYS(2, "write below /tmp or /home/box\n", "run", "login", "echo > /root/x");
    make_image("env", "{\"User\":\"root\",\"Env\":[\"HOME=/opt/h\",\"USER=u\"],"
                      "\"Entrypoint\":[\"/bin/sh\",\"-c\"]}");
    SAYS(0, "/opt/h u root\n", "run", "env", show);
    SAYS(0, "/opt/h\n", "python", "--image=env", "-c", "import os; print(os.environ['HOME'])");
    SAYS(0, "/home/box box box\n", "run", "base", "sh", "-c", show); /* nobody of the image's */
}

/* By name, by digest, by the first digits that `images` prints; an id is never asked for at a registry. */
static void an_image_without_a_name_is_used_by_its_id(void **state) {
    static const char absent[] =
        "sha256:00000000000000000000000000000000000000000000000000000000000000ff";
    char digest[DIGEST_SIZE], lengths[][16] = {"sha256:", ""}, text[DIGEST_SIZE], out[200];
    struct store *s;
    struct index_entry e;
    struct err err = {0};

    (void)state;
    make_image("unnamed", "{\"User\":\"77\",\"Cmd\":[\"id\"]}");
    s = open_place(&shared);
    assert_ok(store_untag(s, "unnamed", &e, &err), err);
    (void)str_copy(digest, sizeof(digest), e.digest);
    assert_ok(store_tag(s, NULL, e.media_type, digest, e.size, &err), err);
    store_close(s);
    (void)snprintf(out, sizeof(out), "%s/unnamed.tar", shared.dir);
    for (size_t i = 0; i < 2; i++)
        for (int digits = 64; digits >= 6; digits -= 29) {
            (void)snprintf(text, sizeof(text), "%s%.*s", lengths[i], digits, digest + 7);
            SAYS(0, "uid=77 ", "run", text);
            SAYS(0, digest, "inspect", text);
            SAID(0, "export", "-o", out, text);
        }
    SAYS(125, "has that id; mayfly images", "run", absent);
    SAYS(125, "has that id; mayfly images", "run", absent + 7);
    SAYS(125, "has that id; mayfly images", "inspect", "sha256:00ff");
    SAYS(125, "is an id, not a name", "pull", absent);
    SAYS(125, "is an id, not a name", "import", "-t", "sha256:00ff", rootfs);
    (void)snprintf(text, sizeof(text), "%.20s", digest + 7);
    SAYS(0, digest, "rmi", text);
    SAYS(125, "has that id", "run", digest);
}

static void a_home_with_something_in_it_is_the_images(void **state) {
    char home[128], box[160], own[160];

    (void)state;
    (void)snprintf(home, sizeof(home), "%s/home", shared.dir);
    (void)snprintf(box, sizeof(box), "%s/box", home);
    (void)snprintf(own, sizeof(own), "%s/node", home);
    assert_false(home_is_free(AT_FDCWD, home));
    assert_int_equal(symlink("/tmp", home), 0);
    assert_false(home_is_free(AT_FDCWD, home));
    assert_int_equal(unlink(home) | mkdir(home, 0755), 0);
    assert_true(home_is_free(AT_FDCWD, home));
    assert_int_equal(mkdir(box, 0755), 0);
    assert_true(home_is_free(AT_FDCWD, home));
    assert_int_equal(mkdir(own, 0755), 0);
    assert_false(home_is_free(AT_FDCWD, home));
}

static void users_are_those_of_the_image(void **state) {
    (void)state;
    make_image("named", "{\"User\":\"root\",\"Cmd\":[\"id\"]}");
    make_image("nobody", "{\"User\":\"no-such-user\",\"Cmd\":[\"id\"]}");
    SAYS(0, "uid=0", "run", "named");
    SAYS(125, "no-such-user", "run", "nobody");
    SAYS(0, "uid=3", "run", "-u", "3", "nobody");
    SAYS(0, "uid=0", "run", "--rootfs", rootfs, "-u", "root", "id");
    SAYS(125, "\"nosuch\"", "run", "--rootfs", rootfs, "-u", "nosuch", "id");
}

static void users_are_looked_up_as_docker_does(void **state) {
    static const char passwd[] =
        "root:x:0:0:root:/root:/bin/sh\n:x:5:5::\nbroken\napp:x:70:71:An app:/app:/bin/false\n"
        "bad:x:-1:5::\nhuge:x:99999999999:1::\n1234:x:9:9::\nlast:x:80:81";
    static const char group[] = "root:x:0:\nstaff:x:50:app\nodd:x:no:\n";
    static const struct {
        const char *user;
        uint32_t uid, gid; /* uid UINT32_MAX: refused */
    } cases[] = {{"root", 0, 0},
                 {"app", 70, 71},
                 {"app:staff", 70, 50},
                 {"app:5", 70, 5},
                 {"70", 70, 71},
                 {"70:staff", 70, 50},
                 {"12", 12, 0},
                 {"12:13", 12, 13},
                 {"70:", 70, 71},
                 {":", UINT32_MAX, 0},
                 {"1234", 1234, 0},
                 {"last", 80, 81},
                 {"bad", UINT32_MAX, 0},
                 {"huge", UINT32_MAX, 0},
                 {"", UINT32_MAX, 0},
                 {"nosuch", UINT32_MAX, 0},
                 {"app:nosuch", UINT32_MAX, 0},
                 {"app:odd", UINT32_MAX, 0},
                 {":staff", UINT32_MAX, 0},
                 {"5000000000", UINT32_MAX, 0},
                 {"4294967295", UINT32_MAX, 0}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint32_t uid = 42, gid = 42;
        struct err err = {0};
        int r = user_lookup(cases[i].user, passwd, group, &uid, &gid, &err);
        if ((r < 0) != (cases[i].uid == UINT32_MAX) ||
            (r == 0 && (uid != cases[i].uid || gid != cases[i].gid)))
            fail_msg("%s: %d, %u:%u %s", cases[i].user, r, uid, gid, err.message);
        assert_true(r == 0 || (uid == 42 && gid == 42 && err.message[0]));
    }
    uint32_t uid, gid;
    assert_int_equal(user_lookup("7", NULL, NULL, &uid, &gid, NULL), 0);
    assert_true(user_lookup("x", NULL, NULL, &uid, &gid, NULL) < 0);
}

/* passwd as a link, which is the image's own word for a place in the image. */
static void no_file_of_the_hosts_names_a_user(void **state) {
    struct store *s = open_place(&shared);
    struct test_image i = {.config = "{\"User\":\"secret\",\"Cmd\":[\"x\"]}"};
    char outside[128];
    struct err err = {0};

    (void)state;
    (void)snprintf(outside, sizeof(outside), "%s/passwd", shared.dir);
    int fd = open(outside, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_int_equal(fd_write_full(fd, "secret:x:66:66::\n", 17), 0);
    (void)close(fd);
    LAYER(&i, {.type = '2', .name = "etc/passwd", .link = outside});
    put_image(s, &i);
    assert_ok(store_unpack(s, i.manifest, 0, NULL, &err), err);
    assert_ok(store_tag(s, "docker.io/library/linked:latest",
                        "application/vnd.oci.image.manifest.v1+json", i.manifest, i.manifest_size,
                        &err),
              err);
    store_close(s);
    SAYS(125, "knows no user \"secret\"", "run", "linked");
}

/* Whatever is mounted in a box is mounted in its own directory, or not at all. */
static void no_mount_follows_a_link_of_the_images(void **state) {
    static const char *const places[] = {"proc", "dev", "tmp", "home", "sys"};
    char outside[128];

    (void)state;
    (void)snprintf(outside, sizeof(outside), "%s/outside", shared.dir);
    assert_int_equal(mkdir(outside, 0777), 0);
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct store *s = open_place(&shared);
        struct test_image image = {.config = "{\"Cmd\":[\"/none\"]}"};
        struct err err = {0};
        int code = 0;
        LAYER(&image, {.type = '5', .name = "usr"},
              {.type = '2', .name = places[i], .link = outside});
        put_image(s, &image);
        assert_ok(store_unpack(s, image.manifest, 0, NULL, &err), err);
        assert_ok(store_tag(s, "docker.io/library/links:latest",
                            "application/vnd.oci.image.manifest.v1+json", image.manifest,
                            image.manifest_size, &err),
                  err);
        store_close(s);
        const char *said = said_by((const char *const[]){"run", "links", NULL}, &code);
        /* home and sys need not be there: then there is only no such command. */
        if (i < 3 ? code != 125 || !strstr(said, places[i]) : code != 127)
            fail_msg("%s: exit %d: %s", places[i], code, said);
        assert_int_equal(count_in(AT_FDCWD, outside), 0);
    }
    SAYS(0, "removed", "rmi", "links");
}

static int by_time(const void *a, const void *b) {
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* What a run from the store takes more than one from a directory. */
static void finding_an_image_takes_a_fifth_of_a_millisecond_at_most(void **state) {
    enum { TIMES = 301 };
    static double ms[TIMES];
    struct err err = {0};

    (void)state;
    for (int i = 0; i < TIMES; i++) {
        struct image_lease lease;
        double begin = live_now_ms();
        assert_ok(image_lease(NULL, "full", true, &lease, &err), err);
        ms[i] = live_now_ms() - begin;
        image_release(&lease);
    }
    qsort(ms, TIMES, sizeof(ms[0]), by_time);
    print_message("finding an image: %.3f ms at the median\n", ms[TIMES / 2]);
    assert_true(ms[TIMES / 20] < 0.2 * live_slow()); /* what else runs here only adds to it */
}

static void a_root_that_a_box_runs_on_stays(void **state) {
    const char *run[] = {"run", "--timeout=60", "base",
                         "sh",  "-c",           "echo up; sleep 50 & wait; ls /bin/sh"};
    int pipe_fds[2], status = -1;
    char up[8] = "";

    (void)state;
    make_image("kept", "{}"); /* another name for the files, which goes at the end */
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    pid_t pid =
        live_spawn((const char *const[]){run[0], run[1], "kept", run[3], run[4], run[5], NULL}, -1,
                   pipe_fds[1], 2);
    (void)close(pipe_fds[1]);
    assert_int_equal(read(pipe_fds[0], up, 3), 3);
    char *names[] = {"base",   "full",    "path",     "named", "nobody", "other",
                     "tmpdir", "homedir", "relative", "up",    "login",  "env"};
    struct store *s = open_place(&shared);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        (void)store_untag(s, names[i], NULL, NULL);
    store_close(s);
    SAYS(0, "boxes still run on 1", "rmi", "kept");
    SAYS(0, "boxes still run on 1", "prune");
    SAYS(125, "not in the store", "run", "--pull=never", "kept", "id");
    s = open_place(&shared);
    assert_true(count_in(s->dir, "unpacked") >= 1);
    assert_int_equal(kill(pid, SIGKILL), 0); /* and with it the hold */
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)close(pipe_fds[0]);
    store_close(s);
    for (int i = 0; i < 100; i++) { /* the box dies with its supervisor, in a moment */
        if (!strstr(SAID(0, "prune"), "still run"))
            break;
        live_sleep_ms(20);
    }
    s = open_place(&shared);
    assert_int_equal(count_in(s->dir, "images"), 1); /* "linked", of the test before */
    assert_int_equal(count_in(s->dir, "unpacked"), 1);
    store_close(s);
}

static void what_is_missing_is_said(void **state) {
    (void)state;
    SAYS(125, "is not in the store", "run", "--pull=never", "nothere", "id");
    SAYS(125, "could not be pulled", "run", "localhost:1/nothere", "id");
    SAYS(125, "\"control\":\"image\"", "run", "--json", "--pull", "never", "nothere", "id");
    SAYS(125, "none of missing", "run", "--pull=sometimes", "x", "id");
    SAYS(125, "upper-case", "run", "--pull=never", "UPPER", "id");
    SAYS(125, "what?", "run");
    SAYS(125, "-1", "run", "-u", "-1", "base", "id");
}

/* ------------------------------------------------------------------ the configuration */

static void the_configuration_chooses(void **state) {
    char path[200];

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/mayfly", shared.dir);
    assert_int_equal(mkdir(path, 0755), 0);
    (void)snprintf(path, sizeof(path), "%s/mayfly/config.json", shared.dir);
    static const char text[] = "{\"image\": \"full\", \"pull\": \"never\", \"registries\": {}}";
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
    (void)close(fd);
    make_image("full", "{\"User\":\"7:8\"}");
    make_image("other", "{\"User\":\"17:8\"}");
    SAYS(0, "7\n", "python", "-c", "import os; print(os.getuid())");
    assert_int_equal(setenv("MAYFLY_IMAGE", "other", 1), 0);
    SAYS(0, "17\n", "python", "-c", "import os; print(os.getuid())");
    SAYS(0, "7\n", "python", "--image=full", "-c", "import os; print(os.getuid())");
    SAYS(125, "nothere", "python", "--image=nothere", "-c", "1"); /* pull is never */
    assert_int_equal(unsetenv("MAYFLY_IMAGE"), 0);
    fd = open(path, O_TRUNC | O_WRONLY | O_CLOEXEC);
    assert_int_equal(fd_write_full(fd, "{\"image\": 7}", 12), 0);
    (void)close(fd);
    SAYS(125, "config.json: image: is no text", "python", "-c", "1");
    assert_int_equal(unlink(path), 0);
}

static void a_configuration_that_is_wrong_is_refused(void **state) {
    static const char *const texts[] = {
        "", "{", "[]", "null", "{\"image\":[]}", "{\"store\":\"\"}", "{\"pull\":null}"};
    struct mayfly_error error;
    struct config c;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        c = (struct config){0};
        assert_int_equal(config_from_json(texts[i], strlen(texts[i]), "file", &c, &error), -EINVAL);
        assert_non_null(strstr(error.message, "file: "));
    }
    static const char first[] = "{\"image\":\"a\"}",
                      second[] = "{\"image\":\"b\",\"store\":\"/s\"}";
    c = (struct config){0};
    assert_int_equal(config_from_json(first, strlen(first), "f", &c, &error), 0);
    assert_int_equal(config_from_json(second, strlen(second), "f", &c, &error), 0);
    assert_string_equal(c.image, "a"); /* the first file's word counts */
    assert_string_equal(c.store, "/s");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_config_is_honoured),
        cmocka_unit_test(users_are_those_of_the_image),
        cmocka_unit_test(a_home_with_something_in_it_is_the_images),
        cmocka_unit_test(a_working_directory_is_there_wherever_it_lies),
        cmocka_unit_test(users_are_looked_up_as_docker_does),
        cmocka_unit_test(a_users_home_is_the_one_that_passwd_has),
        cmocka_unit_test(an_image_without_a_name_is_used_by_its_id),
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(the_configuration_chooses),
        cmocka_unit_test(a_configuration_that_is_wrong_is_refused),
        cmocka_unit_test(finding_an_image_takes_a_fifth_of_a_millisecond_at_most),
        cmocka_unit_test(no_mount_follows_a_link_of_the_images),
        cmocka_unit_test(no_file_of_the_hosts_names_a_user),
        cmocka_unit_test(a_root_that_a_box_runs_on_stays),
    };
    return cmocka_run_group_tests(tests, set_store, drop_store);
}
