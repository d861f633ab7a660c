// SPDX-License-Identifier: BSD-3-Clause
// fib_bench: how fast the cuckoo table is when it has all the entries that it was made for. One core; keys
// are drawn uniformly from those that are there, before the clock runs; the cases are measured in turn, round
// by round, so that what disturbs them disturbs all. JSON lines: one of the table, one of building it, one a
// case and round.
//
//     fib_bench [--entries N] [--width narrow|wide] [--pages NAME] [--rounds N] [--seconds S] [--rte-hash]
//               [--snapshot FILE]
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>

#include "base/clock.h"
#include "table/cuckoo_table.h"
#include "fib/fib_bench.h"
#include "test/fixture.h"
#include "base/isa.h"

enum { BLOCKS_MAX = 1 << 16 };

uint64_t bench_cycles(void)
{
	return rte_rdtsc_precise();
}

_Noreturn void bench_die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("fib_bench: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(1);
}

static _Noreturn void usage(void)
{
	bench_die("fib_bench [--entries N] [--width narrow|wide] [--pages best|1G|2M|thp|4K] [--rounds N] "
	          "[--seconds S] [--rte-hash] [--snapshot FILE]");
}

static void set_option(struct bench_options *options, int option)
{
	switch (option) {
	case 'e':
		options->entries = strtoull(optarg, NULL, 0);
		break;
	case 'w':
		options->width = strcmp(optarg, "wide") == 0 ? CUCKOO_WIDE : CUCKOO_NARROW;
		break;
	case 'p':
		if (hugepages_from_name(optarg, &options->pages))
			usage();
		break;
	case 'r':
		options->rounds = (unsigned)strtoul(optarg, NULL, 0);
		break;
	case 's':
		options->seconds = strtod(optarg, NULL);
		break;
	case 'h':
		options->rte_hash = true;
		break;
	case 'f':
		options->snapshot = optarg;
		break;
	default:
		usage();
	}
}

static struct bench_options read_options(int argc, char **argv)
{
	static const struct option names[] = {
	        {"entries", required_argument, NULL, 'e'},  {"width", required_argument, NULL, 'w'},
	        {"pages", required_argument, NULL, 'p'},    {"rounds", required_argument, NULL, 'r'},
	        {"seconds", required_argument, NULL, 's'},  {"rte-hash", no_argument, NULL, 'h'},
	        {"snapshot", required_argument, NULL, 'f'}, {NULL, 0, NULL, 0}};
	struct bench_options options = {.entries = 1000000, .pages = PAGES_BEST, .rounds = 9, .seconds = 0.2};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
		set_option(&options, option);
	if (optind != argc || (options.rte_hash && options.width == CUCKOO_WIDE))
		usage();
	return options;
}

static void make_block(struct bench *bench, bool absent)
{
	for (unsigned i = 0; i < BLOCK; i++) {
		uint64_t n = any_below(&bench->random, bench->entries) + (absent ? bench->entries : 0);

		bench->ns[i] = n;
		bench->keys[i] = any_key(&bench->any, n);
		if (bench->any.width == CUCKOO_WIDE)
			bench->wide[i] = any_wide_key(&bench->any, n);
		bench->at[i] = any_below(&bench->random, bench->lines) * 64;
	}
}

// A lookup that is wrong is no lookup.
static void check_block(const struct bench *bench, const struct bench_case *c)
{
	if (strstr(c->name, "find") == NULL && !c->absent)
		return;
	for (unsigned i = 0; i < BLOCK; i++)
		if (bench->values[i] != (c->absent ? CUCKOO_NONE : bench_value(bench->ns[i])))
			bench_die("%s: key %lu has value %u", c->name, bench->ns[i], bench->values[i]);
}

static int compare_costs(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

// The median of the blocks of a round: a block is some tens of microseconds, and what took the core away in
// the middle of one is no cost of the table.
static void run_case(struct bench *bench, const struct bench_case *c, double seconds, unsigned round)
{
	static double costs[BLOCKS_MAX];
	unsigned blocks = 0;
	uint64_t end = bench_cycles() + (uint64_t)(seconds * bench->tsc_hz);

	while (blocks == 0 || (blocks < BLOCKS_MAX && bench_cycles() < end)) {
		uint64_t begun, operations;

		make_block(bench, c->absent);
		begun = bench_cycles();
		operations = c->run(bench);
		costs[blocks++] = (double)(bench_cycles() - begun) / (double)operations;
		check_block(bench, c);
	}
	qsort(costs, blocks, sizeof(*costs), compare_costs);
	printf("{\"case\": \"%s\", \"round\": %u, \"per_second\": %.0f, \"cycles\": %.2f, \"blocks\": %u}\n",
	       c->name, round, bench->tsc_hz / costs[blocks / 2], costs[blocks / 2], blocks);
	fflush(stdout);
}

static double share_in_first(const struct bench *bench)
{
	enum { SAMPLE = 100000 };
	uint64_t random = 1, first = 0;

	for (unsigned i = 0; i < SAMPLE; i++) {
		uint64_t n = any_below(&random, bench->entries);
		struct cuckoo_wide_key wide = any_wide_key(&bench->any, n);
		uint64_t key = any_key(&bench->any, n);
		const struct cuckoo *table = bench->any.table;

		first += bench->any.width == CUCKOO_WIDE
		                 ? cuckoo_wide_bucket_find(
		                           &table->wide[cuckoo_first(cuckoo_wide_pair(table, &wide))],
		                           &wide) != CUCKOO_NONE
		                 : cuckoo_bucket_find(&table->narrow[cuckoo_first(cuckoo_pair(table, key))],
		                                      key) != CUCKOO_NONE;
	}
	return (double)first / SAMPLE;
}

static void print_table(const struct bench *bench)
{
	struct cuckoo_stats stats = any_stats(&bench->any);

	printf("{\"case\": \"table\", \"width\": \"%s\", \"entries\": %lu, \"room\": %lu, \"bytes\": %lu, "
	       "\"pages\": \"%s\", \"isa\": \"%s\", \"moves\": %lu, \"longest_path\": %u, \"in_first\": "
	       "%.4f, "
	       "\"tsc_hz\": %.0f}\n",
	       bench->any.width == CUCKOO_WIDE ? "wide" : "narrow", stats.entries, stats.room, stats.bytes,
	       hugepages_name(stats.pages), isa_text(isa_current()), stats.moves, stats.longest_path,
	       share_in_first(bench), bench->tsc_hz);
	fflush(stdout);
}

static void open_bench(struct bench *bench, const struct bench_options *options)
{
	bench->any.kind = ANY_OVERLAP;
	bench->entries = options->entries;
	bench->random = UINT64_C(0x2545f4914f6cdd1d);
	bench->tsc_hz = (double)clock_hz();
	if (any_create(&bench->any, options->width, options->entries, 1, options->pages))
		exit(1); // it has said why
	bench->lines = bench->any.table->bucket_count;
	bench->memory = bench->any.table->bytes;
}

int main(int argc, char **argv)
{
	static struct bench bench;
	struct bench_options options = read_options(argc, argv);
	// rte_hash takes some 40 bytes an entry; it is given memory, not made to use it.
	unsigned eal_mb = 64 + (options.rte_hash ? (unsigned)(options.entries * 128 >> 20) : 0);

	if (fixture_eal_init_sized("fib", eal_mb))
		bench_die("EAL does not start with %u MB", eal_mb);
	clock_start();
	open_bench(&bench, &options);
	bench_build(&bench);
	print_table(&bench);
	if (options.rte_hash)
		bench_rte_build(&bench);
	for (unsigned round = 0; round < options.rounds; round++) {
		for (unsigned i = 0; i < bench_case_count; i++)
			run_case(&bench, &bench_cases[i], options.seconds, round);
		for (unsigned i = 0; bench.hash && i < bench_rte_case_count; i++)
			run_case(&bench, &bench_rte_cases[i], options.seconds, round);
	}
	if (options.snapshot)
		bench_snapshot(&bench, options.snapshot);
	cuckoo_destroy(bench.any.table);
	return 0;
}
