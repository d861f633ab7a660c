// SPDX-License-Identifier: BSD-3-Clause
// What differs between the releases of DPDK that planed is built with, 22.11 to 25.11.
//
// IPv6 addresses are arrays of 16 bytes before 24.11, and since then struct rte_ipv6_addr, which is such an array: a
// pointer to the bytes is right for both.
#pragma once

#include <rte_fib6.h>
#include <stdint.h>

static inline int fib6_add(struct rte_fib6 *fib, const uint8_t address[static 16], uint8_t length,
                           uint64_t next_hop)
{
	return rte_fib6_add(fib, (const void *)address, length, next_hop);
}

static inline int fib6_lookup(struct rte_fib6 *fib, uint8_t (*addresses)[16], uint64_t *next_hops, int n)
{
	return rte_fib6_lookup_bulk(fib, (void *)addresses, next_hops, n);
}
