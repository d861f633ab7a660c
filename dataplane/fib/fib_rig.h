// SPDX-License-Identifier: BSD-3-Clause
// What the tests of the FIB have in common: making one, prefixes, hops that can be told apart, single
// lookups.
#pragma once

#include <arpa/inet.h>
#include <errno.h>

#include "fib/fib.h"
#include "test/unit.h"

static inline struct fib *fib_of(uint64_t routes4, uint64_t routes6)
{
	const struct fib_config config = {
	        .routes4 = routes4, .routes6 = routes6, .seed = 42, .pages = PAGES_4K};
	struct fib *fib = NULL;

	assert_int_equal(fib_create(&config, &fib), 0);
	assert_true(fib_trylock(fib));
	return fib;
}

static inline void vnf_of(struct fib *fib, uint16_t vnf, uint64_t routes, uint32_t hops)
{
	const struct fib_vnf_config config = {.vnf = vnf, .quota_routes = routes, .quota_hops = hops};

	assert_int_equal(fib_vnf_set(fib, &config), 0);
}

// "10.0.0.0/8", "2001:db8::/32"
static inline struct fib_prefix prefix_of(const char *text)
{
	struct fib_prefix prefix = {.family = strchr(text, ':') ? 6 : 4};
	char address[64];

	assert_int_equal(sscanf(text, "%63[^/]/%hhu", address, &prefix.length), 2);
	assert_int_equal(inet_pton(prefix.family == 4 ? AF_INET : AF_INET6, address, prefix.address), 1);
	return prefix;
}

// Every byte of it says the mark.
static inline struct fib_hop hop_of(uint8_t mark)
{
	struct fib_hop hop = {.kind = FIB_HOP_FORWARD, .port = mark};

	memset(hop.macs, mark, sizeof(hop.macs));
	return hop;
}

static inline void hop_put(struct fib *fib, uint16_t vnf, uint32_t session, uint16_t number, uint8_t mark)
{
	const struct fib_hop hop = hop_of(mark);

	assert_int_equal(fib_hop_set(fib, vnf, session, number, &hop), 0);
}

static inline int route_put(struct fib *fib, uint16_t vnf, uint32_t session, const char *text,
                            uint16_t number)
{
	const struct fib_prefix prefix = prefix_of(text);

	return fib_route_set(fib, vnf, session, FIB_REPLACE, &prefix, number);
}

static inline const struct fib_hop *find(const struct fib *fib, uint16_t vnf, const uint8_t *address,
                                         unsigned family)
{
	struct fib_query4 four = {.vnf = vnf};
	struct fib_query6 six = {.vnf = vnf};
	const struct fib_hop *hop;

	memcpy(&four.address, address, 4);
	four.address = ntohl(four.address);
	if (family == 4) {
		fib_find4(fib, &four, 1, &hop);
		return hop;
	}
	memcpy(six.address, address, 16);
	fib_find6(fib, &six, 1, &hop);
	return hop;
}

// The mark of the hop that a packet to the address takes; 0: none.
static inline uint8_t found(const struct fib *fib, uint16_t vnf, const char *address)
{
	unsigned family = strchr(address, ':') ? 6 : 4;
	const struct fib_hop *hop;
	uint8_t bytes[16];

	assert_int_equal(inet_pton(family == 4 ? AF_INET : AF_INET6, address, bytes), 1);
	hop = find(fib, vnf, bytes, family);
	return hop->kind == FIB_HOP_NONE ? 0 : hop->port;
}

static inline struct fib_vnf_stats stats_of(const struct fib *fib, uint16_t vnf)
{
	struct fib_vnf_stats stats;

	assert_true(fib_vnf_read(fib, vnf, &stats));
	return stats;
}

static inline uint64_t sweep_all(struct fib *fib)
{
	uint64_t removed = 0;

	while (fib_is_dirty(fib))
		removed += fib_sweep(fib, 64);
	return removed;
}
