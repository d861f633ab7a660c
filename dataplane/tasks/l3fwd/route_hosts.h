// SPDX-License-Identifier: BSD-3-Clause
// Host routes (/32, /128) by exact match: cuckoo tables of IPv4 and IPv6, asked before the prefixes are
// (route_table.h). A host route takes 9 bytes there, of IPv6 24; in DIR24_8 it takes 400 and, alone in its
// /24, another 1024.
//
// A value of the tables is the number of a next hop, from 1: routes with the same port and MAC share one, and
// its count. So there are 65535 different ones at most, and packets are counted by next hop, not by route.
//
// Lookups on one worker; everything else on the control thread while that worker is parked. Nothing changes
// once it is there.
#pragma once

#include <stdbool.h>

#include "lib/cuckoo.h"
#include "tasks/l3fwd/route_file.h"

enum { ROUTE_HOPS_MAX = UINT16_MAX };

struct route_hosts {
	struct cuckoo *v4, *v6; // NULL: no host route of this version
	size_t count4, count6;
	unsigned hops;
	uint32_t *first; // of hops: first[n - 1] is the list's first route to hop n
};

static inline bool route_is_host(const struct route *route)
{
	return route->length == (route->version == 4 ? 32 : 128);
}

// Whether the host routes of a list have no more next hops than there are numbers: 0, -ENOSPC or -ENOMEM.
int route_hosts_check(const struct route_list *list);

// The tables of a list's host routes. Returns 0 or -errno; close all the same.
int route_hosts_open(struct route_hosts *hosts, const struct route_list *list);
void route_hosts_close(struct route_hosts *hosts);

// Say early that an address will be looked up. There is a table of this version.
void route_hosts_prefetch6(const struct route_hosts *hosts, const uint8_t address[static 16]);

// The hops of n addresses (1 .. CUCKOO_BULK_MAX); 0: no host route. There is a table of this version.
void route_hosts_find4(const struct route_hosts *hosts, const uint32_t *addresses, uint16_t *hops,
                       unsigned n);
void route_hosts_find6(const struct route_hosts *hosts, uint8_t (*addresses)[16], uint16_t *hops, unsigned n);
