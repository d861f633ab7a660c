// SPDX-License-Identifier: BSD-3-Clause
// A patch for T4P4S: ports 0 and 1, 2 and 3, ... are connected. It has no table.
#include "common-boilerplate-pre.p4"

struct metadata {}
struct headers { ethernet_t ethernet; }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

CTL_MAIN {
    apply { SET_EGRESS_PORT(GET_INGRESS_PORT() ^ 1); }
}

CTL_EMIT {
    apply { packet.emit(hdr.ethernet); }
}

#include "common-boilerplate-post.p4"
