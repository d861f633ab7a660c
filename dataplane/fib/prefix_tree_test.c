// SPDX-License-Identifier: BSD-3-Clause
// What prefix_tree.h promises: random updates of three spaces against plain lists; every length; a tree that is full;
// readers that do not let go.
#include "fib/prefix_tree.h"

#include <errno.h>
#include <rte_rcu_qsbr.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "test/unit.h"

enum { SPACES = 3, LISTED_MAX = 600, STEPS = 200000, READER = 0 };

struct listed {
	struct prefix_key key;
	unsigned length;
	uint16_t value;
};

static struct list {
	struct prefix_space space;
	struct listed prefixes[LISTED_MAX];
	unsigned count;
} lists[SPACES];

static struct rte_rcu_qsbr *readers;
static struct prefix_tree *tree;
static uint64_t random_state;

static unsigned draw(unsigned n)
{
	return (unsigned)(draw_hash(42, random_state++) >> 33) % n;
}

static void open_tree(uint64_t bytes)
{
	size_t size = rte_rcu_qsbr_get_memsize(1);

	memset(lists, 0, sizeof(lists));
	random_state = 0;
	readers = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(size, RTE_CACHE_LINE_SIZE));
	assert_int_equal(rte_rcu_qsbr_init(readers, 1), 0);
	tree = prefix_tree_create(bytes, readers);
	assert_non_null(tree);
	for (unsigned i = 0; i < SPACES; i++)
		assert_int_equal(prefix_space_open(&lists[i].space), 0);
}

static void close_tree(void)
{
	prefix_tree_destroy(tree);
	for (unsigned i = 0; i < SPACES; i++)
		prefix_space_close(&lists[i].space);
	free(readers);
}

static struct prefix_key cut(struct prefix_key key, unsigned length)
{
	if (length < 64)
		return (struct prefix_key){.high = length ? key.high & UINT64_MAX << (64 - length) : 0};
	return (struct prefix_key){key.high, length > 64 ? key.low & UINT64_MAX << (128 - length) : 0};
}

static bool is_in(struct prefix_key key, const struct listed *prefix)
{
	struct prefix_key of = cut(key, prefix->length);

	return of.high == prefix->key.high && of.low == prefix->key.low;
}

// Few addresses, so that prefixes lie in each other and come again. A third are IPv4's.
static struct prefix_key key_draw(void)
{
	struct prefix_key key = {.high = draw(2) ? UINT64_C(0xa5) << 56 : UINT64_C(0x5a) << 56};

	for (unsigned byte = 1; byte < 8; byte++)
		key.high |= (uint64_t)(draw(3) * 0x55) << (56 - 8 * byte);
	for (unsigned byte = 0; byte < 8; byte++)
		key.low |= (uint64_t)(draw(3) * 0x55) << (56 - 8 * byte);
	return draw(3) ? key : cut(key, 32);
}

static struct listed *listed_of(struct list *list, struct prefix_key key, unsigned length)
{
	for (unsigned i = 0; i < list->count; i++)
		if (list->prefixes[i].length == length && is_in(key, &list->prefixes[i]))
			return &list->prefixes[i];
	return NULL;
}

static uint16_t find(const struct list *list, struct prefix_key key)
{
	const struct prefix_space *space = &list->space;
	uint16_t value;

	prefix_tree_find(tree, &space, &key, 1, &value);
	return value;
}

static int compare_lengths(const void *a, const void *b)
{
	return (int)((const struct listed *)a)->length - (int)((const struct listed *)b)->length;
}

// A burst in all spaces mixed, and all prefixes that lie over one address.
static void check_lookups(unsigned n)
{
	const struct prefix_space *spaces[PREFIX_BULK_MAX] = {0};
	uint16_t values[PREFIX_BULK_MAX], all[PREFIX_MATCHES_MAX];
	struct prefix_key keys[PREFIX_BULK_MAX] = {0};
	struct list *of[PREFIX_BULK_MAX];

	for (unsigned i = 0; i < n; i++) {
		of[i] = &lists[draw(SPACES)];
		spaces[i] = &of[i]->space;
		keys[i] = key_draw();
	}
	prefix_tree_find(tree, spaces, keys, n, values);
	for (unsigned i = 0; i < n; i++) {
		struct listed over[LISTED_MAX];
		unsigned count = 0;

		for (unsigned p = 0; p < of[i]->count; p++)
			if (is_in(keys[i], &of[i]->prefixes[p]))
				over[count++] = of[i]->prefixes[p];
		qsort(over, count, sizeof(*over), compare_lengths);
		assert_int_equal(values[i], count ? over[count - 1].value : PREFIX_NONE);
		assert_int_equal(prefix_tree_matches(tree, spaces[i], keys[i], all), count);
		for (unsigned p = 0; p < count; p++)
			assert_int_equal(all[p], over[p].value);
	}
}

static void put(struct list *list, struct prefix_key key, unsigned length, uint16_t value)
{
	struct listed *listed = listed_of(list, key, length);

	if (listed == NULL && list->count == LISTED_MAX)
		return;
	assert_int_equal(prefix_tree_put(tree, &list->space, key, length, value), 0);
	if (listed == NULL)
		listed = &list->prefixes[list->count++];
	*listed = (struct listed){key, length, value};
}

static void delete (struct list *list, struct prefix_key key, unsigned length)
{
	struct listed *listed = listed_of(list, key, length);

	prefix_tree_delete(tree, &list->space, key, length);
	if (listed)
		*listed = list->prefixes[--list->count];
}

static void random_updates(void **state)
{
	static const unsigned bursts[] = {0, 1, 3, 31, 32, 33, 63, 64};

	open_tree(1 << 24);
	for (unsigned i = 0; i < STEPS; i++) {
		struct list *list = &lists[draw(SPACES)];
		struct prefix_key key = key_draw();
		unsigned length = draw(4) ? draw(129) : draw(33);
		bool known = list->count && draw(2);

		key = cut(key, length);
		if (known) {
			const struct listed *listed = &list->prefixes[draw(list->count)];

			key = listed->key;
			length = listed->length;
		}
		if (draw(2))
			put(list, key, length, (uint16_t)(1 + draw(65535)));
		else
			delete (list, key, length);
		if (i % 128 == 0)
			check_lookups(bursts[i / 128 % 8]);
	}
	for (unsigned space = 0; space < SPACES; space++) {
		struct list *list = &lists[space];

		assert_true(list->space.blocks > 0);
		while (list->count)
			delete (list, list->prefixes[0].key, list->prefixes[0].length);
		assert_int_equal(list->space.blocks, 0);
		assert_int_equal(list->space.nodes[0] | list->space.nodes[1], 0);
	}
	prefix_tree_delete(tree, &lists[0].space, (struct prefix_key){0}, 0);
	check_lookups(64);
	close_tree();
}

// A node with all the prefixes and all the children that one can have.
static void a_full_node(void **state)
{
	struct list *list = &lists[0];

	open_tree(1 << 24);
	for (unsigned length = 9; length <= 17; length++)
		for (uint64_t i = 0; i < 1u << (length - 9); i++)
			put(list, (struct prefix_key){.high = UINT64_C(0x8080) << 48 | i << (64 - length)},
			    length, (uint16_t)(length << 8 | i));
	assert_int_equal(list->count, 511);
	for (uint64_t i = 0; i < 256; i++)
		assert_int_equal(find(list, (struct prefix_key){.high = UINT64_C(0x8080) << 48 | i << 47}),
		                 17 << 8 | i);
	for (uint64_t i = 0; i < 256; i++) {
		delete (list, (struct prefix_key){.high = UINT64_C(0x8080) << 48 | i << 47}, 17);
		assert_int_equal(find(list, (struct prefix_key){.high = UINT64_C(0x8080) << 48 | i << 47}),
		                 16 << 8 | i >> 1);
	}
	assert_int_equal(list->space.blocks,
	                 10 + 1); // 255 values in a node, and the one child of the node above it
	close_tree();
}

// Without room nothing new comes in; what is there changes and goes.
static void a_full_tree(void **state)
{
	struct list *list = &lists[0];
	uint64_t i = 0;
	int rc;

	open_tree(64 * PREFIX_BLOCK_BYTES);
	put(list, (struct prefix_key){.high = UINT64_C(0xa) << 60}, 4, 9);
	do
		rc = prefix_tree_put(tree, &list->space,
		                     (struct prefix_key){.high = UINT64_C(0xa0) << 56 | i << 32}, 31,
		                     (uint16_t)(i + 1));
	while (rc == 0 && (i += 2));
	assert_int_equal(rc, -ENOSPC);
	assert_true(i > 40);
	assert_in_range(prefix_tree_bytes(tree), 1, 64 * PREFIX_BLOCK_BYTES);
	for (uint64_t at = 0; at < i; at += 2) {
		const struct prefix_key key = {.high = UINT64_C(0xa0) << 56 | at << 32};

		assert_int_equal(find(list, key), at + 1);
		assert_int_equal(prefix_tree_put(tree, &list->space, key, 31, 7), 0);
		assert_int_equal(find(list, key), 7);
		prefix_tree_delete(tree, &list->space, key, 31);
		assert_int_equal(find(list, key), 9);
	}
	close_tree();
}

// A reader that is not quiet keeps what it may be in: for so long new prefixes are refused, and others go all the same.
static void readers_that_stay(void **state)
{
	const struct prefix_key key = {.high = UINT64_C(10) << 56}, other = {.high = UINT64_C(11) << 56};
	struct list *list = &lists[0];
	int rc = 0;

	open_tree(1 << 26);
	rte_rcu_qsbr_thread_register(readers, READER);
	rte_rcu_qsbr_thread_online(readers, READER);
	put(list, other, 0, 3);
	put(list, other, 16, 4);
	for (uint64_t i = 0; i < 100000 && rc == 0; i++) {
		const struct prefix_key next = {.high = key.high | i << 32};

		rc = prefix_tree_put(tree, &list->space, next, 32, 5);
		prefix_tree_delete(tree, &list->space, next, 32);
		assert_int_equal(find(list, next), 3);
	}
	assert_int_equal(rc, -EAGAIN);
	prefix_tree_delete(tree, &list->space, other, 16);
	assert_int_equal(find(list, other), 3);
	assert_int_equal(prefix_tree_put(tree, &list->space, other, 16, 6), 0); // its place is still there
	assert_int_equal(find(list, other), 6);
	rte_rcu_qsbr_quiescent(readers, READER);
	put(list, key, 24, 7);
	assert_int_equal(find(list, key), 7);
	rte_rcu_qsbr_thread_offline(readers, READER);
	rte_rcu_qsbr_thread_unregister(readers, READER);
	close_tree();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(random_updates),
	        cmocka_unit_test(a_full_node),
	        cmocka_unit_test(a_full_tree),
	        cmocka_unit_test(readers_that_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
