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
    if (host->privileged)
        return PROBE_YES;
    if (host->userns_clone_off)
        return (void)snprintf(why->why, sizeof(why->why),
                              "this kernel gives user namespaces to root only"),
               (void)snprintf(why->remedy, sizeof(why->remedy),
                              "sysctl kernel.unprivileged_userns_clone=1, as root"),
               PROBE_NO;
    if (ids->kind == IDMAP_SINGLE && ids->uid == 0)
        return (void)snprintf(why->why, sizeof(why->why), "%s",
                              ids->why_single[0] ? ids->why_single
                                                 : "host uid 0 would have to be mapped"),
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

static void verify(const struct view *view, struct finding *finding) {
    /* No line of the map may reach host id 0. */
    const char *p = view->uid_map;
    bool zero = false;
    unsigned inside = 0, outside = 0, count = 0;
    int used = 0, lines = 0;

    while (sscanf(p, " %u %u %u%n", &inside, &outside, &count, &used) == 3) {
        zero |= outside == 0;
        p += used;
        lines++;
    }
    bool own = view->ns[NS_USER] && view->ns[NS_USER] != view->host_ns[NS_USER];
    finding_set(finding, own && lines > 0 && !zero,
                "user:[%llu], host user:[%llu]; uid_map %u %u %u",
                (unsigned long long)view->ns[NS_USER], (unsigned long long)view->host_ns[NS_USER],
                inside, outside, count);
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
