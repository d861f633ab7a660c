// SPDX-License-Identifier: BSD-3-Clause
// l2fwd of conext19 for T4P4S: every frame is looked up by its destination MAC, and nothing learns sources.
//
// The entries are constant: the addresses that generators and VNFs of planebench write. The hops of a chain see the same
// addresses, so an entry does not have the number of a port, but what distinguishes both ports of a pair (0 and 1, 2 and
// 3, ...). Frames to other addresses are looked up as well, and have the same action by default.
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
    action forward(PortId_t difference) {
        SET_EGRESS_PORT(GET_INGRESS_PORT() ^ difference);
    }
    action forward_unknown() {
        SET_EGRESS_PORT(GET_INGRESS_PORT() ^ 1);
    }
    table dmac {
        actions = {
            forward;
            forward_unknown;
        }
        key = {
            hdr.ethernet.dstAddr: exact;
        }
        size = 512;
        const entries = {
            (0x020000000100): forward(1);
            (0x020000000101): forward(1);
            (0x020000000102): forward(1);
            (0x020000000103): forward(1);
            (0x020000000104): forward(1);
            (0x020000000105): forward(1);
            (0x020000000106): forward(1);
            (0x020000000107): forward(1);
        }
        default_action = forward_unknown;
    }
    apply { dmac.apply(); }
}

CTL_EMIT {
    apply { packet.emit(hdr.ethernet); }
}

#include "common-boilerplate-post.p4"
