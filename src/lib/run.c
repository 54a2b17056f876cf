/*
 * run.c: include/mayfly.h over the inner parts: policy → plan → box → result.
 *
 * This is the only file that knows all of them; each function here is the order
 * in which they are called, and the translation at the border.
 */
#include "mayfly.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "box/box.h"
#include "box/certificate.h"
#include "box/evidence.h"
#include "box/sweep.h"
#include "control/control.h"
#include "lib/building.h"
#include "lib/doctor.h"
#include "lib/files_out.h"
#include "lib/image_use.h"
#include "lib/planning.h"
#include "lib/report.h"
#include "lib/writable.h"
#include "policy/policy_json.h"
#include "policy/policy_text.h"

#include "base/banned.h"

/* While it sweeps, a run reads no output and watches no deadline. */
enum { RUN_SWEEP_MS = 50 };

struct mayfly_policy {
    struct policy *inner;
};

struct mayfly_box {
    struct host *host; /* facts of its own, where the policy names a cgroup; else NULL */
    struct image_use image;
    struct plan *plan;
    struct box *box;
    struct box_input input;
    struct hint_given given;
    struct remembered *remembered; /* with "attest": what the box had, to know it again */
    int out_dir;                   /* where files are brought; -1: nowhere */
    bool started, waited;
    struct mayfly_result *result; /* being put together */
};

const struct policy *policy_inner(const mayfly_policy *policy) { return policy->inner; }

const char *mayfly_version(void) { return MAYFLY_VERSION; }

void export_error(struct mayfly_error *error, const struct err *err) {
    if (!error)
        return;
    *error = (struct mayfly_error){.code = err->code, .kind = (enum mayfly_error_kind)err->kind};
    (void)str_copy(error->control, sizeof(error->control), err->control);
    (void)str_copy(error->message, sizeof(error->message), err->message);
}
_Static_assert((int)MAYFLY_E_INTERNAL == (int)ERR_INTERNAL, "the public kinds are the inner ones");
_Static_assert((int)MAYFLY_SETUP_FAILED == (int)OUTCOME_SETUP_FAILED, "and so are the outcomes");

static int done(int r, struct err *err, struct mayfly_error *error) {
    if (r < 0 && !err->code)
        (void)err_errno(err, ERR_INTERNAL, r, "", NULL, "mayfly");
    export_error(error, err);
    return r < 0 ? err->code : 0;
}

/* ------------------------------------------------------------------ policy */

mayfly_policy *mayfly_policy_new(void) {
    mayfly_policy *policy = calloc(1, sizeof(*policy));

    if (!policy)
        return NULL;
    policy->inner = policy_new();
    if (!policy->inner) {
        free(policy);
        return NULL;
    }
    return policy;
}

void mayfly_policy_free(mayfly_policy *policy) {
    if (!policy)
        return;
    policy_free(policy->inner);
    free(policy);
}

int mayfly_policy_set(mayfly_policy *policy, const char *name, const char *value,
                      struct mayfly_error *error) {
    struct err err = {0};

    return done(policy_set(policy->inner, name, value, &err), &err, error);
}

int mayfly_policy_json(mayfly_policy *policy, const char *text, size_t len,
                       struct mayfly_error *error) {
    struct err err = {0};

    return done(policy_from_json(policy->inner, text, len, &err), &err, error);
}

int mayfly_policy_command(mayfly_policy *policy, const char *const *argv,
                          struct mayfly_error *error) {
    struct err err = {0};

    return done(policy_set_argv(policy->inner, argv, NULL, &err), &err, error);
}

int mayfly_policy_python(mayfly_policy *policy, const char *const *args,
                         struct mayfly_error *error) {
    struct err err = {0};

    return done(policy_set_python(policy->inner, args, &err), &err, error);
}

int policy_write_to(mayfly_policy *policy, const char *dir, struct mayfly_error *error) {
    struct err err = {0};

    policy->inner->upper = arena_strdup(&policy->inner->arena, dir);
    return done(policy->inner->upper ? 0 : err_oom(&err), &err, error);
}

int policy_run_script(mayfly_policy *policy, const char *text, struct mayfly_error *error) {
    static const char *const argv[] = {POLICY_SCRIPT, NULL};
    struct err err = {0};

    policy->inner->script = arena_strdup(&policy->inner->arena, text);
    if (!policy->inner->script)
        return done(err_oom(&err), &err, error);
    return mayfly_policy_command(policy, argv, error);
}

void policy_share_network(mayfly_policy *policy) { policy->inner->controls &= ~BIT(CTL_NET); }

int mayfly_policy_file(mayfly_policy *policy, const char *name, const void *data, size_t len,
                       struct mayfly_error *error) {
    struct err err = {0};

    return done(policy_add_file(policy->inner, name, data, len, &err), &err, error);
}

int mayfly_policy_print(const mayfly_policy *policy, char **ret_text, struct mayfly_error *error) {
    _cleanup_buf_ struct buf text = {0};
    struct err err = {0};

    policy_print(policy->inner, &text);
    char *taken = buf_take(&text);
    if (!taken)
        return done(err_oom(&err), &err, error);
    *ret_text = taken;
    return 0;
}

const char *mayfly_policy_text(const mayfly_policy *policy, const char *name) {
    const struct policy *p = policy->inner;
    const struct {
        const char *name, *text;
    } texts[] = {{"image", p->image}, {"rootfs", p->rootfs}, {"store", p->store}, {"out", p->out}};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (strcmp(texts[i].name, name) == 0)
            return texts[i].text;
    return NULL;
}

int mayfly_policy_field(size_t index, struct mayfly_field *ret_field) {
    if (index >= policy_n_fields)
        return -ENOENT;
    const struct policy_field *f = &policy_fields[index];
    *ret_field = (struct mayfly_field){.name = f->name,
                                       .flag = f->flag,
                                       .letter = f->letter,
                                       .is_switch = f->metavar == NULL,
                                       .is_list = f->list,
                                       .metavar = f->metavar,
                                       .help = f->help};
    return 0;
}

int mayfly_policy_outside(const mayfly_policy *policy, const char *path,
                          struct mayfly_error *error) {
    struct err err = {0};

    return done(writable_refuse_file(policy->inner, path, &err), &err, error);
}

/* ------------------------------------------------------------------ planning */

/* `use` outlives the plan. */
static int make_plan(const struct policy *policy, const struct host *host, struct image_use *use,
                     struct plan **ret_plan, struct err *err) {
    struct plan_image image = {0};
    int r = image_use(policy, use, err);

    r = r < 0 ? r : image_look(use->policy, &image, err);
    r = r < 0 ? r : writable_check(use->policy, err);
    image.digest = use->lease.digest[0] ? use->lease.digest : NULL;
    return r < 0 ? r : plan_make(use->policy, host, &image, ret_plan, err);
}

static int host_unread(int code, struct err *err) {
    return err_errno(err, ERR_SETUP, code, "", errno_remedy(code, NULL),
                     "looking at what this host has");
}

int pick_host(const struct policy *policy, const struct host **ret_host, struct host **ret_own,
              struct err *err) {
    struct host *own;

    *ret_own = NULL;
    if (!policy->cgroup_parent) {
        *ret_host = host_facts();
        return *ret_host ? 0 : host_unread(-errno, err);
    }
    own = calloc(1, sizeof(*own));
    if (!own)
        return err_oom(err);
    *ret_host = *ret_own = own;
    int r = host_read(own, policy->cgroup_parent);
    return r < 0 ? host_unread(r, err) : 0;
}

int mayfly_plan_text(const mayfly_policy *policy, char **ret_text, struct mayfly_error *error) {
    struct err err = {0};
    const struct host *host = NULL;
    _cleanup_free_ struct host *own = NULL;
    struct image_use use = {.lease.fd = -1};
    struct plan *plan = NULL;
    _cleanup_buf_ struct buf text = {0};
    int r = pick_host(policy->inner, &host, &own, &err);

    if (r == 0)
        r = make_plan(policy->inner, host, &use, &plan, &err);
    if (r == 0)
        plan_print(plan, &text);
    plan_free(plan);
    image_use_done(&use);
    if (r < 0)
        return done(r, &err, error);
    char *taken = buf_take(&text);
    if (!taken)
        return done(err_oom(&err), &err, error);
    *ret_text = taken;
    return 0;
}

/* ------------------------------------------------------------------ a box */

/* Reads every control that is on back from the kernel; a box that is not what was planned never runs. */
static int attest(mayfly_box *b, struct err *err) {
    struct evidence_host host _cleanup_evidence_host_;
    struct view view;

    evidence_view(b->box, b->plan, &host, &view);
    int r = report_controls(b->result, b->plan, &view, err);
    if (r == 0 && certificate_remember(b->box, &b->remembered) < 0)
        r = err_oom(err);
    return r;
}

/* Counts what is left, now that nothing should be. */
static int certify(mayfly_box *b, struct err *err) {
    struct certificate counted;

    if (!b->remembered)
        return 0;
    certificate_count(b->box, b->remembered, &counted);
    certificate_forget(TAKE_PTR(b->remembered));
    return report_certificate(b->result, &counted, err);
}

static void free_box(mayfly_box *b) {
    certificate_forget(b->remembered);
    box_close(b->box);
    plan_free(b->plan);
    mayfly_result_free(b->result);
    image_use_done(&b->image);
    fd_close(&b->out_dir);
    free(b->host);
    free(b);
}

static int given(int fd) { return fd > 0 ? fd : -1; }

static struct box_input take_input(const struct mayfly_input *input) {
    static const struct mayfly_input none;

    if (!input)
        input = &none;
    return (struct box_input){
        .code = input->code,
        .code_len = input->code_len,
        .stdin_data = input->stdin_data,
        .stdin_len = input->stdin_data ? input->stdin_len : 0,
        .stdin_fd = input->stdin_fd == MAYFLY_STDIN_INHERIT ? STDIN_FILENO : given(input->stdin_fd),
        .stdout_fd = given(input->stdout_fd),
        .stderr_fd = given(input->stderr_fd),
        .cancel_fd = given(input->cancel_fd)};
}

/* With `rush` the box is started as well. */
static int open_box(const mayfly_policy *policy, const struct box_input *rush, mayfly_box **ret_box,
                    struct mayfly_error *error) {
    struct err err = {0};
    const struct host *host = NULL;
    mayfly_box *b = calloc(1, sizeof(*b));

    if (!b)
        return done(err_oom(&err), &err, error);
    b->out_dir = -1;
    int r = pick_host(policy->inner, &host, &b->host, &err);
    if (r == 0)
        r = make_plan(policy->inner, host, &b->image, &b->plan, &err);
    if (r == 0)
        r = files_out_open(policy->inner, &b->out_dir, &err);
    if (r == 0)
        r = report_new(b->plan, &b->result, &err);
    if (r == 0)
        r = box_open(b->plan, rush, &b->box, &err);
    if (r == 0 && policy->inner->attest)
        r = attest(b, &err);
    if (r != 0) {
        free_box(b);
        return done(r, &err, error);
    }
    if (rush) {
        b->input = *rush;
        b->given = report_given(b->plan, &b->input);
        b->started = true;
    }
    *ret_box = b;
    return 0;
}

int mayfly_open(const mayfly_policy *policy, mayfly_box **ret_box, struct mayfly_error *error) {
    return open_box(policy, NULL, ret_box, error);
}

int mayfly_start(mayfly_box *b, const struct mayfly_input *input, struct mayfly_error *error) {
    struct err err = {0};

    if (!b || b->started)
        return done(err_set(&err, ERR_USAGE, -EINVAL, "", "open a box for every run",
                            "this box has been started already"),
                    &err, error);
    b->input = take_input(input);
    b->given = report_given(b->plan, &b->input);
    int r = box_start(b->box, &b->input, &err);
    b->started = r == 0;
    return done(r, &err, error);
}

int mayfly_wait(mayfly_box *b, mayfly_result **ret_result, struct mayfly_error *error) {
    struct err err = {0};
    struct box_output output = {0};
    struct sweep_report swept = {0};

    if (!b || !b->started || b->waited)
        return done(
            err_set(&err, ERR_USAGE, -EINVAL, "", NULL, "a box is waited for once, when started"),
            &err, error);
    b->waited = true;
    /* The command is on its way and needs nothing of us yet: the moment to look for what the dead left. */
    sweep_near(b->plan->host, RUN_SWEEP_MS, &swept);
    int r = box_supervise(b->box, &b->input, &output, &err);
    if (r == 0) {
        box_reap(b->box);
        r = files_out_bring(b->box, b->out_dir, b->result, &err);
        r = r < 0 ? r : certify(b, &err);
    }
    if (r == 0) {
        /* A command that was executed and whose end is not known has no result. */
        if (b->box->untold && b->box->state == BOX_ENDED)
            r = err_set(&err, ERR_INTERNAL, -EIO, "", "run it again",
                        "how the command ended could not be told by the box's init");
        else
            r = report_finish(b->result, b->box, &b->given, &output, &err);
    }
    capture_done(&output.out);
    capture_done(&output.err);
    if (r == 0)
        *ret_result = TAKE_PTR(b->result);
    return done(r, &err, error);
}

void mayfly_cancel(mayfly_box *b) { box_cancel(b->box); }

void mayfly_close(mayfly_box *b) {
    if (b)
        free_box(b);
}

int mayfly_run(const mayfly_policy *policy, const struct mayfly_input *input,
               mayfly_result **ret_result, struct mayfly_error *error) {
    struct box_input taken = take_input(input);
    bool parks = policy->inner->attest; /* it is looked at before it may go */
    mayfly_box *b = NULL;
    int r = open_box(policy, parks ? NULL : &taken, &b, error);

    if (r < 0)
        return r;
    if (parks)
        r = mayfly_start(b, input, error);
    if (r == 0)
        r = mayfly_wait(b, ret_result, error);
    mayfly_close(b);
    return r;
}

/* ------------------------------------------------------------------ looking, and cleaning up */

int mayfly_gc(int all, struct mayfly_gc_report *ret_report, struct mayfly_error *error) {
    struct err err = {0};
    struct sweep_report report = {0};
    const struct host *host = host_facts();

    if (!host)
        return done(host_unread(-errno, &err), &err, error);
    if (all)
        sweep_all(host, &report);
    else
        sweep_near(host, 0, &report);
    doctor_collect(&report);
    *ret_report = (struct mayfly_gc_report){.found = report.found,
                                            .removed = report.removed,
                                            .living = report.living,
                                            .foreign = report.foreign};
    return done(0, &err, error);
}
