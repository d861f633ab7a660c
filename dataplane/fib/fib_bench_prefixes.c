// SPDX-License-Identifier: BSD-3-Clause
// fib_bench_prefixes: longest-prefix match with a full table, drawn from a seed with lengths as routers of the Internet
// have them: the FIB, a lookup for each length in the cuckoo table (what the FIB did before), and DPDK's. One core;
// addresses are drawn evenly from the routes, before the clock runs; the cases are measured in turn, round by round.
// Every answer is compared. rte_lpm only where it is asked for: it looks through all rules of a length for each new one, so
// that a full table takes it minutes. JSON lines: one of each table, one a case and round.
//
//     fib_bench_prefixes [--family 4|6] [--routes N] [--vnfs N] [--only-fib] [--rte-lpm] [--rounds N] [--seconds S]
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "base/clock.h"
#include "base/random.h"
#include "fib/fib_bench_prefixes.h"
#include "test/fixture.h"

enum { BLOCKS_MAX = 1 << 14, ALLOCATIONS4 = 40000, ALLOCATIONS6 = 40000, EAL_MB = 3000 };

struct share {
	uint8_t length;
	uint16_t hundredths; // of a percent
};

// As route collectors see them, rounded.
static const struct share shares4[] = {{24, 6000}, {23, 1000}, {22, 1000}, {21, 550}, {20, 500}, {19, 350},
                                       {18, 200},  {17, 130},  {16, 220},  {15, 25},  {14, 12},  {13, 6},
                                       {12, 3},    {11, 1},    {10, 1},    {9, 1},    {8, 1}};
static const struct share shares6[] = {{48, 4500}, {32, 1500}, {44, 900}, {40, 800}, {36, 500}, {46, 400},
                                       {47, 300},  {33, 200},  {34, 150}, {29, 150}, {42, 120}, {45, 100},
                                       {38, 80},   {35, 80},   {43, 40},  {41, 30},  {39, 30},  {37, 30},
                                       {30, 20},   {31, 20},   {28, 20},  {64, 10},  {56, 10},  {27, 10}};

_Noreturn void bench_die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("fib_bench_prefixes: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(1);
}

static uint32_t below(struct bench *bench, uint32_t n)
{
	return draw_below(draw_hash(1, bench->random++), n);
}

// --- The table ----------------------------------------------------------------------------------------------

static unsigned length_draw(struct bench *bench)
{
	const struct share *share = bench->family == 4 ? shares4 : shares6;
	uint32_t at = below(bench, 10000);

	for (; at >= share->hundredths; share++)
		at -= share->hundredths;
	return share->length;
}

// Networks are not spread evenly: a quarter of the prefixes is in a sixteenth of what was allocated.
static uint32_t allocation_draw(struct bench *bench, uint32_t allocations)
{
	uint64_t drawn = below(bench, 1 << 16);

	return (uint32_t)(drawn * drawn * allocations >> 32);
}

static void bits_after(struct bench *bench, uint8_t *address, unsigned first, unsigned end)
{
	for (unsigned bit = first; bit < end; bit++) {
		address[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
		address[bit / 8] |= (uint8_t)(below(bench, 2) ? 0x80 >> bit % 8 : 0);
	}
}

static void prefix_draw(struct bench *bench, struct fib_prefix *prefix)
{
	static const uint16_t registries[] = {0x2001, 0x2400, 0x2600, 0x2800, 0x2a00, 0x2c00};

	*prefix =
	        (struct fib_prefix){.family = (uint8_t)bench->family, .length = (uint8_t)length_draw(bench)};
	if (bench->family == 4) {
		uint64_t block = draw_hash(2, allocation_draw(bench, ALLOCATIONS4));

		prefix->address[0] = (uint8_t)(1 + draw_below(block, 223));
		prefix->address[1] = (uint8_t)block;
		bits_after(bench, prefix->address, 16, prefix->length);
	} else {
		uint64_t block = draw_hash(3, allocation_draw(bench, ALLOCATIONS6));
		uint16_t registry = registries[draw_below(block, 6)];

		prefix->address[0] = (uint8_t)(registry >> 8);
		prefix->address[1] = (uint8_t)(registry | (registry & 0xff ? 0 : block & 15));
		memcpy(&prefix->address[2], (const uint8_t *)&block + 1, 2);
		bits_after(bench, prefix->address, 32, prefix->length);
	}
	for (unsigned bit = prefix->length; bit < 128; bit++)
		prefix->address[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
}

static int compare_routes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct fib_prefix));
}

// Sorted, as many as asked for, none twice.
static void table_draw(struct bench *bench)
{
	uint32_t have = 0, wanted = bench->count;

	bench->routes = calloc(wanted, sizeof(*bench->routes));
	bench->shorter = calloc(wanted, sizeof(*bench->shorter));
	if (bench->routes == NULL || bench->shorter == NULL)
		bench_die("no memory for %u routes", wanted);
	for (unsigned turn = 0; have < wanted && turn < 64; turn++) {
		uint32_t kept = 0;

		while (have < wanted)
			prefix_draw(bench, &bench->routes[have++].prefix);
		qsort(bench->routes, have, sizeof(*bench->routes), compare_routes);
		for (uint32_t i = 0; i < have; i++)
			if (i == 0 || compare_routes(&bench->routes[i], &bench->routes[kept - 1]))
				bench->routes[kept++] = bench->routes[i];
		have = kept;
	}
	bench->count = have;
	for (uint32_t i = 0; i < have; i++)
		bench->routes[i].value = (uint16_t)(1 + below(bench, HOPS));
	for (uint32_t i = have; i-- > 1;) { // routers do not get them in order
		struct bench_route *other = &bench->routes[below(bench, i + 1)], route = bench->routes[i];

		bench->routes[i] = *other;
		*other = route;
	}
	for (uint32_t i = 0; i < have; i++)
		if (bench->routes[i].prefix.length <= (bench->family == 4 ? 16 : 31))
			bench->shorter[bench->shorter_count++] = i;
}

// --- Blocks -------------------------------------------------------------------------------------------------

static const struct bench_route *route_draw(struct bench *bench, bool of_few_bits)
{
	return &bench->routes[of_few_bits ? bench->shorter[below(bench, bench->shorter_count)]
	                                  : below(bench, bench->count)];
}

static void make_addresses(struct bench *bench, bool of_few_bits)
{
	for (unsigned i = 0; i < BLOCK; i++) {
		const struct fib_prefix *prefix = &route_draw(bench, of_few_bits)->prefix;
		uint64_t low[2] = {draw_hash(4, bench->random), draw_hash(5, bench->random++)};
		const uint8_t *random = (const uint8_t *)low;
		uint16_t vnf = (uint16_t)(1 + below(bench, bench->vnfs));
		uint8_t *address = bench->bytes[i];

		for (unsigned byte = 0; byte < 16; byte++) {
			unsigned kept = prefix->length > byte * 8 ? prefix->length - byte * 8 : 0;
			unsigned mask = kept >= 8 ? 0 : 0xff >> kept;

			address[byte] = (uint8_t)(prefix->address[byte] | (random[byte] & mask));
		}
		memcpy(&bench->words[i], address, 4);
		bench->words[i] = rte_be_to_cpu_32(bench->words[i]);
		bench->four[i] = (struct fib_query4){vnf, bench->words[i]};
		bench->six[i].vnf = vnf;
		memcpy(bench->six[i].address, address, 16);
	}
	bench_rounds.find(bench, bench->values);
}

static void make_updates(struct bench *bench, bool of_few_bits)
{
	for (unsigned i = 0; i < UPDATES; i++)
		bench->updated[i] = route_draw(bench, of_few_bits);
}

// --- Cases --------------------------------------------------------------------------------------------------

static int compare_costs(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static uint64_t find(struct bench *bench, const struct bench_table *table)
{
	static uint16_t values[BLOCK];
	uint64_t begun = rte_rdtsc_precise(), cycles;

	table->find(bench, values);
	cycles = rte_rdtsc_precise() - begun;
	for (unsigned i = 0; i < BLOCK; i++)
		if (values[i] != bench->values[i])
			bench_die("%s: %u is %u, not %u", table->name, i, values[i], bench->values[i]);
	return cycles;
}

// Each gets another value, then its own again.
static uint64_t replace(struct bench *bench, const struct bench_table *table)
{
	uint64_t begun = rte_rdtsc_precise();
	bool done = true;

	for (unsigned i = 0; i < UPDATES; i++)
		done &= table->put(bench, bench->updated[i], (uint16_t)(bench->updated[i]->value % HOPS + 1));
	for (unsigned i = 0; i < UPDATES; i++)
		done &= table->put(bench, bench->updated[i], bench->updated[i]->value);
	if (!done)
		bench_die("%s: a route could not be replaced", table->name);
	return rte_rdtsc_precise() - begun;
}

static uint64_t delete_put(struct bench *bench, const struct bench_table *table)
{
	uint64_t begun = rte_rdtsc_precise();
	bool done = true;

	for (unsigned i = 0; i < UPDATES; i++)
		table->drop(bench, bench->updated[i]);
	for (unsigned i = 0; i < UPDATES; i++)
		done &= table->put(bench, bench->updated[i], bench->updated[i]->value);
	if (!done)
		bench_die("%s: no room for a route", table->name);
	return rte_rdtsc_precise() - begun;
}

enum { FIND, FIND_SHORT, REPLACE, REPLACE_SHORT, DELETE_PUT, CASES };

static const char *const case_names[CASES] = {"find", "find_short", "replace", "replace_short", "delete_put"};

static void run_case(struct bench *bench, const struct bench_table *table, unsigned c, double seconds,
                     unsigned round)
{
	static double costs[BLOCKS_MAX];
	uint64_t end = rte_rdtsc() + (uint64_t)(seconds * bench->tsc_hz);
	bool is_find = c == FIND || c == FIND_SHORT;
	unsigned blocks = 0;
	double cost;

	while (blocks == 0 || (blocks < BLOCKS_MAX && rte_rdtsc() < end)) {
		uint64_t cycles;

		if (is_find)
			make_addresses(bench, c == FIND_SHORT);
		else
			make_updates(bench, c == REPLACE_SHORT);
		cycles = is_find           ? find(bench, table)
		         : c == DELETE_PUT ? delete_put(bench, table)
		                           : replace(bench, table);
		costs[blocks++] = (double)cycles / (is_find ? BLOCK : 2 * UPDATES);
	}
	qsort(costs, blocks, sizeof(*costs), compare_costs);
	cost = costs[blocks / 2];
	printf("{\"case\": \"%s_%s\", \"round\": %u, \"per_second\": %.0f, \"cycles\": %.2f, \"cycles_least_tenth\": %.2f, "
	       "\"blocks\": %u}\n",
	       table->name, case_names[c], round, bench->tsc_hz / cost, cost, costs[blocks / 10], blocks);
	fflush(stdout);
}

static void build(struct bench *bench, const struct bench_table *table)
{
	uint64_t begun = rte_rdtsc_precise(), entries = bench->count;

	table->open(bench);
	for (uint32_t i = 0; i < bench->count; i++)
		if (!table->put(bench, &bench->routes[i], bench->routes[i].value))
			bench_die("%s: no room for route %u", table->name, i);
	printf("{\"case\": \"%s\", \"entries\": %lu, \"bytes\": %lu, \"seconds\": %.3f}\n", table->name,
	       entries, table->bytes(bench), (double)(rte_rdtsc_precise() - begun) / bench->tsc_hz);
	fflush(stdout);
}

static struct bench *read_options(int argc, char **argv, unsigned *rounds, double *seconds)
{
	static const struct option names[] = {
	        {"family", required_argument, NULL, 'f'}, {"routes", required_argument, NULL, 'n'},
	        {"vnfs", required_argument, NULL, 'v'},   {"only-fib", no_argument, NULL, 'o'},
	        {"rounds", required_argument, NULL, 'r'}, {"seconds", required_argument, NULL, 's'},
	        {"rte-lpm", no_argument, NULL, 'l'},      {NULL, 0, NULL, 0}};
	static struct bench bench = {.family = 4, .vnfs = 1};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'f')
			bench.family = strcmp(optarg, "6") ? 4 : 6;
		else if (option == 'n')
			bench.count = (uint32_t)strtoul(optarg, NULL, 0);
		else if (option == 'o')
			bench.only_fib = true;
		else if (option == 'l')
			bench.rte_lpm = true;
		else if (option == 'v')
			bench.vnfs = (uint16_t)strtoul(optarg, NULL, 0);
		else if (option == 'r')
			*rounds = (unsigned)strtoul(optarg, NULL, 0);
		else if (option == 's')
			*seconds = strtod(optarg, NULL);
		else
			exit(1);
	}
	if (bench.count == 0)
		bench.count = bench.family == 4 ? 1000000 : 200000;
	return &bench;
}

static bool is_compared(const struct bench *bench, const struct bench_table *table)
{
	if (table == &bench_lpm && !bench->rte_lpm)
		return false;
	return table->family == 0 || (table->family == bench->family && !bench->only_fib);
}

int main(int argc, char **argv)
{
	const struct bench_table *const tables[] = {&bench_rounds, &bench_fib, &bench_dir24, &bench_lpm,
	                                            &bench_fib6};
	double seconds = 0.2;
	unsigned rounds = 5;
	struct bench *bench = read_options(argc, argv, &rounds, &seconds);

	if (fixture_eal_init_sized("fib", EAL_MB))
		bench_die("EAL does not start with %u MB", EAL_MB);
	clock_start();
	bench->tsc_hz = (double)clock_hz();
	table_draw(bench);
	for (unsigned i = 0; i < RTE_DIM(tables); i++)
		if (is_compared(bench, tables[i]))
			build(bench, tables[i]);
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned c = 0; c < CASES; c++)
			for (unsigned i = 0; i < RTE_DIM(tables); i++)
				if (is_compared(bench, tables[i]))
					run_case(bench, tables[i], c, seconds, round);
	return 0;
}
