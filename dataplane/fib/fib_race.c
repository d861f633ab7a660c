// SPDX-License-Identifier: BSD-3-Clause
// Readers beside the writer: routes that are there throughout are found throughout, by a hop of their own VNF
// and never by a mixture, while these routes move between hops and sessions, hops change, others come, go,
// are flushed and swept. Where one of the others is not, the short prefix that lies over it is found. Also for ThreadSanitizer: meson setup -Db_sanitize=thread.
//
//     fib_race [ROUNDS]
#include <errno.h>
#include <pthread.h>
#include <rte_byteorder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fib/fib.h"

enum { VNFS = 3, QUICK = 3, READERS = 2, STAY = 64, COME = 192, BURST = 32 }; // QUICK: a VNF of few routes
enum { COVER = 63 }; // turn of the short prefix's hop

static struct fib *fib;
static atomic_bool stop;
static atomic_ulong looked, wrong;

static void must(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "fib_race: not so: %s\n", what);
	abort();
}

// The VNF and the turn are in every byte.
static struct fib_hop hop_of(uint16_t vnf, unsigned turn)
{
	struct fib_hop hop = {.kind = FIB_HOP_FORWARD, .port = (uint8_t)(vnf << 6 | turn % (COVER + 1))};

	memset(hop.macs, hop.port, sizeof(hop.macs));
	return hop;
}

static bool is_whole(const struct fib_hop *hop, uint16_t vnf)
{
	uint8_t macs[sizeof(hop->macs)];

	memset(macs, hop->port, sizeof(macs));
	return hop->kind == FIB_HOP_FORWARD && hop->port >> 6 == vnf &&
	       memcmp(macs, hop->macs, sizeof(macs)) == 0;
}

// Number i: a host if it is even, else a prefix of 24 bits in a network of its own.
static uint32_t address_of(unsigned i)
{
	return UINT32_C(10) << 24 | i << 8;
}

static struct fib_prefix prefix4(unsigned i)
{
	uint32_t address = rte_cpu_to_be_32(address_of(i));
	struct fib_prefix prefix = {.family = 4, .length = i % 2 ? 24 : 32};

	memcpy(prefix.address, &address, sizeof(address));
	return prefix;
}

static struct fib_prefix prefix6(unsigned i)
{
	uint32_t address = rte_cpu_to_be_32(address_of(i));
	struct fib_prefix prefix = {.family = 6, .length = i % 2 ? 56 : 128};

	memcpy(prefix.address, &address, sizeof(address));
	return prefix;
}

static unsigned which_of(unsigned first, unsigned i)
{
	return 1 + i % VNFS == QUICK ? i % 2 : (first + i) % (STAY + COME);
}

static void look(unsigned first)
{
	struct fib_query4 four[BURST];
	struct fib_query6 six[BURST] = {0};
	const struct fib_hop *hops[2][BURST];

	for (unsigned i = 0; i < BURST; i++) {
		unsigned which = which_of(first, i);
		struct fib_prefix prefix = prefix6(which);

		four[i] = (struct fib_query4){(uint16_t)(1 + i % VNFS), address_of(which)};
		six[i].vnf = four[i].vnf;
		memcpy(six[i].address, prefix.address, sizeof(six[i].address));
	}
	fib_find4(fib, four, BURST, hops[0]);
	fib_find6(fib, six, BURST, hops[1]);
	for (unsigned i = 0; i < BURST; i++)
		for (unsigned family = 0; family < 2; family++) {
			const struct fib_hop *hop =
			        family ? fib_of_flow6(fib, hops[1][i], &six[i], first, 0)
			               : fib_of_flow4(fib, hops[0][i], &four[i], first, 0);

			wrong += !is_whole(hop, four[i].vnf) ||
			         (which_of(first, i) < STAY && hop->port % (COVER + 1) == COVER);
		}
	looked += 2 * BURST;
}

static void *read_on(void *argument)
{
	int reader = fib_reader_add(fib);

	must(reader >= 0, "there is room for a reader");
	fib_reader_online(fib, reader);
	for (unsigned i = 0; !atomic_load(&stop); i++) {
		look(i);
		fib_reader_quiet(fib, reader);
	}
	fib_reader_offline(fib, reader);
	fib_reader_remove(fib, reader);
	return NULL;
}

static void route(uint16_t vnf, uint32_t session, unsigned i, uint16_t number)
{
	const struct fib_prefix prefixes[] = {prefix4(i), prefix6(i)};

	for (unsigned family = 0; family < 2; family++)
		while (fib_route_set(fib, vnf, session, FIB_REPLACE, &prefixes[family], number) == -EAGAIN)
			fib_sweep(fib, 16);
}

static void hop(uint16_t vnf, uint32_t session, uint16_t number, unsigned turn)
{
	const struct fib_hop new = hop_of(vnf, turn % COVER);
	int rc;

	while ((rc = fib_hop_set(fib, vnf, session, number, &new)) == -EAGAIN)
		fib_sweep(fib, 16);
	must(rc == 0, "a hop is set");
}

static void group(uint16_t vnf, uint32_t session, uint16_t number, unsigned count)
{
	const struct fib_member members[] = {{0, 1}, {1, 2}, {2, 1}};
	bool missing;
	int rc;

	while ((rc = fib_group_set(fib, vnf, session, number, members, count, &missing)) == -EAGAIN)
		fib_sweep(fib, 16);
	must(rc == 0, "a group is set");
}

static void leave(uint16_t vnf, unsigned i)
{
	const struct fib_prefix prefixes[] = {prefix4(i), prefix6(i)};

	for (unsigned family = 0; family < 2; family++)
		fib_route_delete(fib, vnf, &prefixes[family]);
}

// A session begins, announces again what stays, and more; then what is older goes.
static void round_of(uint16_t vnf, uint32_t session)
{
	must(fib_begin(fib, vnf, session) == 0, "a session begins");
	for (uint16_t number = 0; number < 4; number++)
		hop(vnf, session, number, session + number);
	group(vnf, session, 4, 3);
	for (unsigned i = 0; i < STAY + COME; i++) {
		route(vnf, session, i, (uint16_t)(i % 5));
		if (i % 16 == 8)
			group(vnf, session, 4, 1 + i / 16 % 3);
		if (i % 16 == 0)
			hop(vnf, session, (uint16_t)(i % 4), session + i);
	}
	fib_flush(fib, vnf, FIB_FLUSH_STALE);
	for (unsigned i = 0; i < STAY; i++)
		route(vnf, session, i, (uint16_t)((i + session) % 5));
	for (unsigned i = STAY; i < STAY + COME; i += 2)
		leave(vnf, i);
	fib_sweep(fib, 8);
}

// As quick as can be: what a reader is about to look at has moved, and is flushed where it was.
static void quick_round(uint32_t session)
{
	must(fib_begin(fib, QUICK, session) == 0, "a session begins");
	hop(QUICK, session, 0, session);
	group(QUICK, session, 1, 1);
	route(QUICK, session, 0, 1);
	route(QUICK, session, 1, 0);
	route(QUICK, session, 2 + session % 8, 0); // keeps the hop until its session is flushed
	fib_flush(fib, QUICK, FIB_FLUSH_STALE);
}

static void rounds_of(unsigned long rounds)
{
	uint32_t quick = 2;

	for (uint32_t session = 2; session < rounds + 2; session++) {
		for (uint16_t vnf = 1; vnf < QUICK; vnf++)
			round_of(vnf, session);
		for (unsigned i = 0; i < 500; i++)
			quick_round(quick++);
	}
}

// Over all others of a VNF, and there throughout.
static void cover(uint16_t vnf)
{
	const struct fib_prefix prefixes[] = {{.family = 4, .length = 7, .address = {10}},
	                                      {.family = 6, .length = 7, .address = {10}}};
	const struct fib_hop hop = hop_of(vnf, COVER);

	must(fib_hop_set(fib, vnf, FIB_OPERATOR, 0, &hop) == 0, "a hop is set");
	for (unsigned family = 0; family < 2; family++)
		must(fib_route_set(fib, vnf, FIB_OPERATOR, FIB_ADD, &prefixes[family], 0) == 0,
		     "a short prefix");
}

int main(int argc, char **argv)
{
	const struct fib_config config = {.routes4 = 1210, .routes6 = 1210, .seed = 1, .pages = PAGES_4K};
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 100;
	pthread_t readers[READERS];

	must(fib_create(&config, &fib) == 0 && fib_trylock(fib), "a FIB");
	for (uint16_t vnf = 1; vnf <= VNFS; vnf++) {
		const struct fib_vnf_config of = {.vnf = vnf, .quota_routes = 600, .quota_hops = 9};

		must(fib_vnf_set(fib, &of) == 0, "a VNF");
		if (vnf == QUICK) {
			quick_round(1);
			continue;
		}
		cover(vnf);
		round_of(vnf, 1);
	}
	for (unsigned i = 0; i < READERS; i++)
		must(pthread_create(&readers[i], NULL, read_on, NULL) == 0, "a reader");
	rounds_of(rounds);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);
	printf("%lu rounds, %lu lookups, %lu wrong\n", rounds, (unsigned long)looked, (unsigned long)wrong);
	fib_destroy(fib);
	return looked && wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
