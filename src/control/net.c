/*
 * net.c: no network. A network namespace of its own has no device but a
 * loopback, so there is nothing to reach and nothing to be reached from; the
 * loopback is brought up, since a program may well talk to itself.
 */
#include "control/all.h"
#include "control/readback.h"

#include <sched.h>
#include <string.h>

#include "base/banned.h"

static int plan_net(const struct policy *policy UNUSED, const struct host *host UNUSED,
                    struct plan *plan, struct err *err UNUSED) {
    plan_add(plan, (struct op){.stage = STAGE_APART,
                               .kind = OP_UNSHARE,
                               .control = CTL_NET,
                               .flags = CLONE_NEWNET,
                               .why = "the code could talk to the host, the local network, the "
                                      "cloud's metadata service and the world",
                               .remedy = "check user.max_net_namespaces"});
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_LOOPBACK,
                               .control = CTL_NET,
                               .why = "a new namespace's loopback is down, and a client and a "
                                      "server inside the box should work"});
    return 0;
}

static void verify(const struct view *view, struct finding *finding) {
    const char *up = view->inside->interfaces_up;

    if (!readback_namespace(view, NS_NET, finding))
        return;
    finding_set(finding, strcmp(up, "lo") == 0, "net:[%llu], host net:[%llu]; up: %s",
                (unsigned long long)view->inside->ns[NS_NET],
                (unsigned long long)view->host_ns[NS_NET], up[0] ? up : "nothing");
}

const struct control control_net = {
    .id = CTL_NET,
    .summary = "no network: a loopback of its own and nothing else",
    .source = "network_namespaces(7)",
    .without = "The code reaches every address the host reaches: services bound to localhost, the "
               "cloud metadata address with its credentials, and the place it wants to send data.",
    .plan = plan_net,
    .verify = verify,
};
