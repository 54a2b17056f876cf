/*
 * user.c: ids in the box are not ids on the host.
 *
 * A new user namespace maps the box's ids to unprivileged host ids of which no
 * other living box has any; host uid 0 is never among them. So what breaks out
 * of everything else still arrives on the host as nobody in particular. It is
 * also what lets mayfly build the rest without being root: init has every
 * capability, but only over the box's own namespaces.
 */
#include "control/all.h"
#include "control/readback.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

static enum probe_answer probe(const struct policy *policy UNUSED, const struct host *host,
                               struct probe *why) {
    const struct idmap_facts *ids = &host->ids;

    if (host->max_user_namespaces == 0)
        return (void)snprintf(why->why, sizeof(why->why), "user namespaces are switched off"),
               (void)snprintf(why->remedy, sizeof(why->remedy),
                              "sysctl user.max_user_namespaces=10000, as root"),
               PROBE_NO;
    if (ids->kind == IDMAP_SINGLE && ids->above == 0)
        return (void)snprintf(why->why, sizeof(why->why),
                              "your id alone could be mapped, and it is host uid 0%s%.200s",
                              ids->why_single[0] ? ": " : "", ids->why_single),
               PROBE_NO;
    if (host->privileged)
        return PROBE_YES;
    if (host->userns_clone_off)
        return (void)snprintf(why->why, sizeof(why->why),
                              "this kernel gives user namespaces to root only"),
               (void)snprintf(why->remedy, sizeof(why->remedy),
                              "sysctl kernel.unprivileged_userns_clone=1, as root"),
               PROBE_NO;
    if (host->userns_apparmor)
        return (void)snprintf(why->why, sizeof(why->why),
                              "AppArmor takes the capabilities out of users' namespaces here"),
               (void)snprintf(why->remedy, sizeof(why->remedy),
                              "sysctl kernel.apparmor_restrict_unprivileged_userns=0, as root, or "
                              "an AppArmor profile for mayfly that has 'userns,'"),
               PROBE_NO;
    if (ids->kind == IDMAP_SINGLE) /* can be put in force, and could be better */
        (void)snprintf(why->why, sizeof(why->why),
                       "the payload's id on the host is your own: %.200s", ids->why_single);
    return PROBE_YES;
}

static const char *map_text(struct plan *plan, const struct policy *policy,
                            const struct idmap_facts *ids) {
    switch (ids->kind) {
    case IDMAP_BLOCK:
        if (ids->block > 2)
            return plan_text(plan, "0 {lease} %u", ids->block);
        return plan_text(plan, "0 {lease} 1, %u {lease+1} 1", policy->uid);
    case IDMAP_SUBID:
        return plan_text(plan, "0 %u 1, %u {lease} 1", ids->uid, policy->uid);
    case IDMAP_SINGLE:
        break;
    }
    return plan_text(plan, "%u %u 1", policy->uid, ids->uid);
}

static int plan_user(const struct policy *policy, const struct host *host, struct plan *plan,
                     struct err *err UNUSED) {
    const struct idmap_facts *ids = &host->ids;
    bool single = ids->kind == IDMAP_SINGLE;

    if (!single)
        plan_add(plan, (struct op){.stage = STAGE_HOST,
                                   .kind = OP_ID_LEASE,
                                   .control = CTL_USER,
                                   .why = "two boxes with the same host ids could signal each "
                                          "other and read each other's files"});
    plan_add(plan,
             (struct op){.stage = STAGE_CLONE,
                         .kind = OP_NAMESPACE,
                         .control = CTL_USER,
                         .flags = CLONE_NEWUSER,
                         .why = "ids and capabilities that mean nothing outside the box",
                         .remedy = "check user.max_user_namespaces and whether this container "
                                   "allows unshare"});
    plan_add(plan, (struct op){.stage = STAGE_OUTSIDE,
                               .kind = OP_ID_MAP,
                               .control = CTL_USER,
                               .a = policy->uid,
                               .b = policy->gid,
                               .value = map_text(plan, policy, ids),
                               .why = "until it is mapped, an id in the box can own nothing"});
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_BECOME,
                               .control = CTL_USER,
                               .a = single ? policy->uid : 0,
                               .b = single ? policy->gid : 0,
                               .why = "until then init still runs under the caller's host id"});
    if (ids->groups_kept && host->extra_groups)
        buf_printf(&plan->warnings,
                   "user: the caller's %u extra groups stay in force in the box, since without "
                   "subordinate ids the kernel lets nobody drop them; %s\n",
                   host->extra_groups, ids->why_single);
    return 0;
}

/* The map that was to be written, line by line. The kernel shows it in terms of the namespace above, which is ours: 0
 * there is the host's 0, unless we are in a namespace where we only are called so. */
static bool same_map(const char *text, const struct idmap_extent *want, int n, bool zero_is_host) {
    unsigned inside, outside, count;
    int used = 0;

    for (int i = 0; i < n; i++, text += used)
        if (sscanf(text, " %u %u %u%n", &inside, &outside, &count, &used) != 3 ||
            inside != want[i].inside || outside != want[i].outside || count != want[i].count ||
            (outside == 0 && zero_is_host))
            return false;
    return n > 0 && text[strspn(text, " \n")] == '\0';
}

/* The text on one line. */
static const char *one_line(const char *text, char *line, size_t size) {
    size_t n = 0;

    for (const char *p = text; *p && n + 1 < size; p++)
        if ((*p != ' ' && *p != '\n') || (n && line[n - 1] != ' '))
            line[n++] = *p == '\n' ? ' ' : *p;
    line[n] = '\0';
    return line;
}

static void verify(const struct view *view, struct finding *finding) {
    const struct policy *policy = view->plan->policy;
    const struct evidence *e = view->inside;
    struct idmap_extent uids[IDMAP_EXTENTS], gids[IDMAP_EXTENTS];
    int n_uids = idmap_extents(&view->plan->host->ids, view->lease, policy->uid, false, uids);
    int n_gids = idmap_extents(&view->plan->host->ids, view->lease, policy->gid, true, gids);
    char line[120];

    if (!readback_namespace(view, NS_USER, finding))
        return;
    const struct idmap_facts *ids = &view->plan->host->ids;
    if (!same_map(e->uid_map, uids, n_uids, ids->uid != 0 || ids->above == 0))
        return finding_set(finding, false, "uid_map %s", one_line(e->uid_map, line, sizeof(line)));
    if (!same_map(e->gid_map, gids, n_gids,
                  ids->kind != IDMAP_SINGLE)) /* a user's group may be 0 */
        return finding_set(finding, false, "gid_map %s", one_line(e->gid_map, line, sizeof(line)));
    /* "" where the kernel has no such limit, or where the box has no /proc. */
    if (e->max_user_namespaces[0] && strcmp(e->max_user_namespaces, "0\n") != 0)
        return finding_set(finding, false, "max_user_namespaces is %s",
                           one_line(e->max_user_namespaces, line, sizeof(line)));
    finding_set(finding, true, "user:[%llu]; uid_map %s; user namespaces below it: %s",
                (unsigned long long)e->ns[NS_USER], one_line(e->uid_map, line, sizeof(line)),
                e->max_user_namespaces[0] ? "0" : "not shown");
}

static void describe(const struct plan *plan, struct buf *out) {
    switch (plan->host->ids.kind) {
    case IDMAP_BLOCK:
        buf_puts(out, "ids in the box are a block of unprivileged host ids of its own");
        break;
    case IDMAP_SUBID:
        buf_puts(out, "the payload's id is a subordinate id of yours that no other box has");
        break;
    case IDMAP_SINGLE:
        buf_puts(out, "your own id, alone, under another name");
        break;
    }
}

const struct control control_user = {
    .id = CTL_USER,
    .summary = "ids and privileges of the box mean nothing on the host",
    .source = "user_namespaces(7)",
    .without = "Root in the box would be root on the host: files owned by uid 0, such as "
               "/proc/sys/kernel/core_pattern, could be written even without any capability.",
    .probe = probe,
    .plan = plan_user,
    .verify = verify,
    .describe = describe,
};
