// SPDX-License-Identifier: BSD-3-Clause
// A list of rules as tries of DPDK's rte_acl, and what a burst of packets matches in them. Packets with ports
// and packets without are looked up in tries of their own, IPv4 and IPv6 too: four classes. A rule that names
// ports is only in those of packets that have them.
//
// Memory: EAL's for the tries, the heap's while they are built. Control thread, except
// firewall_acl_classify().
#pragma once

#include <netinet/in.h>
#include <rte_acl.h>
#include <string.h>

#include "lib/packet.h"
#include "tasks/firewall/rule_file.h"

enum firewall_class {
	FIREWALL_V4,          // with ports
	FIREWALL_V4_PORTLESS, // ICMP, fragments but the first, and protocols that have none
	FIREWALL_V6,
	FIREWALL_V6_PORTLESS,
	FIREWALL_CLASSES,
};

// What a packet is looked up by begins at its protocol and has the layout of a header without options: in
// most packets it need not be gathered.
enum {
	FIREWALL_V4_KEY = 9, // offset in an IPv4 header: protocol, TTL's checksum, addresses, ports
	FIREWALL_V6_KEY = 6, // in an IPv6 header: next header, hop limit, addresses, ports
	FIREWALL_V4_PORTS = 20 - FIREWALL_V4_KEY,
	FIREWALL_V6_PORTS = 40 - FIREWALL_V6_KEY,
	FIREWALL_KEY_BYTES = FIREWALL_V6_PORTS + 4,
};

struct firewall_acl {
	struct rte_acl_ctx *classes[FIREWALL_CLASSES]; // NULL where no rule is
	enum rte_acl_classify_alg method;
};

// Build from a list. Returns 0, or -errno after logging one line; firewall_acl_free() in any case.
int firewall_acl_build(struct firewall_acl *acl, const struct rule_list *list, const char *task);
void firewall_acl_free(struct firewall_acl *acl);

// Which rule each of n packets of one class matches first: 1 is the list's first, 0 none. Any thread.
static inline void firewall_acl_classify(const struct firewall_acl *acl, enum firewall_class which,
                                         const uint8_t **keys, unsigned n, uint32_t *rules)
{
	if (likely(acl->classes[which]))
		rte_acl_classify_alg(acl->classes[which], keys, rules, n, 1, acl->method);
	else
		memset(rules, 0, n * sizeof(*rules));
}
