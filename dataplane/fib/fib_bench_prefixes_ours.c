// SPDX-License-Identifier: BSD-3-Clause
// Ours: the FIB; and what it did before, a lookup in the cuckoo table for the host, then for each length that there is,
// longest first.
#include "fib/fib_bench_prefixes.h"
#include "fib/fib_state.h"

// --- The FIB: all of it, as a session's messages and a worker use it -----------------------------------------

static struct fib *fib;

static void fib_open(const struct bench *bench)
{
	static const struct fib_prefix own[] = {
	        {.family = 4, .length = 32, .address = {240, 0, 0, 1}},
	        {.family = 6, .length = 128, .address = {0x20, 0xff, [15] = 1}}};
	uint64_t routes = (uint64_t)(bench->count + 1) * bench->vnfs;
	const struct fib_config config = {.routes4 = bench->family == 4 ? routes : 0,
	                                  .routes6 = bench->family == 6 ? routes : 0,
	                                  .seed = 1,
	                                  .pages = PAGES_THP};

	if (fib_create(&config, &fib))
		bench_die("no FIB of %lu routes", routes);
	for (uint16_t vnf = 1; vnf <= bench->vnfs; vnf++) {
		const struct fib_vnf_config of = {
		        .vnf = vnf, .quota_routes = bench->count + 1, .quota_hops = HOPS};

		if (fib_vnf_set(fib, &of))
			bench_die("no memory for VNF %u", vnf);
		for (uint16_t value = 1; value <= HOPS; value++) {
			const struct fib_hop hop = {.kind = FIB_HOP_FORWARD, .port = (uint8_t)value};

			if (fib_hop_set(fib, vnf, FIB_OPERATOR, value, &hop))
				bench_die("no next hop %u", value);
		}
		if (fib_route_set(fib, vnf, FIB_OPERATOR, FIB_ADD, &own[bench->family == 6], 1))
			bench_die("no route to an address of the router");
	}
}

// Of every VNF while the table is built; then of the first.
static bool fib_put(const struct bench *bench, const struct bench_route *route, uint16_t value)
{
	static uint32_t puts;
	uint16_t vnfs = puts++ < bench->count ? bench->vnfs : 1;
	bool done = true;

	for (uint16_t vnf = 1; vnf <= vnfs; vnf++)
		done &= fib_route_set(fib, vnf, FIB_OPERATOR, FIB_REPLACE, &route->prefix, value) == 0;
	return done;
}

static void fib_drop(const struct bench *bench, const struct bench_route *route)
{
	fib_route_delete(fib, 1, &route->prefix);
}

static void fib_find_block(const struct bench *bench, uint16_t *values)
{
	const struct fib_hop *hops[CUCKOO_BULK_MAX];

	for (unsigned i = 0; i < BLOCK; i += CUCKOO_BULK_MAX) {
		if (bench->family == 4)
			fib_find4(fib, &bench->four[i], CUCKOO_BULK_MAX, hops);
		else
			fib_find6(fib, &bench->six[i], CUCKOO_BULK_MAX, hops);
		for (unsigned j = 0; j < CUCKOO_BULK_MAX; j++)
			values[i + j] = hops[j]->port;
	}
}

// Of the index alone; the table is the rounds' below.
static uint64_t fib_bytes(const struct bench *bench)
{
	return prefix_tree_bytes(fib->prefixes) + (uint64_t)bench->vnfs * PREFIX_SPACE_BYTES;
}

const struct bench_table bench_fib = {"fib", 0, fib_open, fib_put, fib_drop, fib_find_block, fib_bytes};

// --- A round for each length --------------------------------------------------------------------------------

static struct cuckoo *cuckoo;
static uint64_t lengths[2];

static void rounds_open(const struct bench *bench)
{
	const struct cuckoo_config config = {.width = bench->family == 4 ? CUCKOO_NARROW : CUCKOO_WIDE,
	                                     .entries = bench->count,
	                                     .seed = 1,
	                                     .pages = PAGES_THP};

	if (cuckoo_create(&config, &cuckoo))
		bench_die("no table");
}

static bool rounds_put(const struct bench *bench, const struct bench_route *route, uint16_t value)
{
	const struct fib_key key = fib_key_of(1, &route->prefix);
	uint16_t old;

	lengths[route->prefix.length / 64] |= UINT64_C(1) << route->prefix.length % 64;
	return (bench->family == 4 ? cuckoo_put(cuckoo, key.four, value, &old)
	                           : cuckoo_wide_put(cuckoo, &key.six, value, &old)) == 0;
}

static void rounds_drop(const struct bench *bench, const struct bench_route *route)
{
	const struct fib_key key = fib_key_of(1, &route->prefix);

	if (bench->family == 4)
		cuckoo_delete(cuckoo, key.four);
	else
		cuckoo_wide_delete(cuckoo, &key.six);
}

static unsigned round_of(const struct bench *bench, unsigned first, unsigned length, uint8_t *pending,
                         unsigned n, uint16_t *values)
{
	static struct cuckoo_wide_key wide[CUCKOO_BULK_MAX];
	static uint16_t found[CUCKOO_BULK_MAX];
	static uint64_t keys[CUCKOO_BULK_MAX];
	unsigned left = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned q = first + pending[i];

		if (bench->family == 4) {
			keys[i] = length == 32 ? fib_host_key4(1, bench->four[q].address)
			                       : fib_key4(1, bench->four[q].address, length);
			continue;
		}
		wide[i] = fib_host_key6(1, bench->six[q].address);
		if (length < 128)
			wide[i] = fib_key6(&wide[i], length);
	}
	if (bench->family == 4)
		cuckoo_find(cuckoo, keys, n, found);
	else
		cuckoo_wide_find(cuckoo, wide, n, found);
	for (unsigned i = 0; i < n; i++) {
		values[first + pending[i]] = found[i];
		pending[left] = pending[i];
		left += found[i] == CUCKOO_NONE;
	}
	return left;
}

static void rounds_find(const struct bench *bench, uint16_t *values)
{
	for (unsigned i = 0; i < BLOCK; i += CUCKOO_BULK_MAX) {
		uint8_t pending[CUCKOO_BULK_MAX];
		unsigned left = CUCKOO_BULK_MAX, host = bench->family == 4 ? 32 : 128;

		for (unsigned j = 0; j < CUCKOO_BULK_MAX; j++)
			pending[j] = (uint8_t)j;
		for (unsigned length = host; length <= host && left; length--)
			if (length == host || lengths[length / 64] >> length % 64 & 1)
				left = round_of(bench, i, length, pending, left, values);
	}
}

static uint64_t rounds_bytes(const struct bench *bench)
{
	struct cuckoo_stats stats;

	cuckoo_read_stats(cuckoo, &stats);
	return stats.bytes;
}

const struct bench_table bench_rounds = {"rounds",    0,           rounds_open, rounds_put,
                                         rounds_drop, rounds_find, rounds_bytes};
