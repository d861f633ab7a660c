// SPDX-License-Identifier: BSD-3-Clause
// Room for a key whose two buckets are full: a breadth-first search over the buckets that entries could move
// to, so that as few as possible move. Nothing changes before a whole path to an empty place is known.
#include <errno.h>

#include "lib/cuckoo_table.h"

// Buckets that are looked at. With 95 % of the ways of a narrow table in use a dozen are enough nearly
// always.
enum { NODES = 512 };

struct node {
	uint32_t bucket;
	int16_t parent; // node whose entry may move here, or -1
	uint16_t way;   // of that entry
};

struct search {
	struct node nodes[NODES];
	int count;
};

// A bucket comes once on a path: what moves from it is what was there when it was looked at.
static bool is_on_path(const struct search *search, int node, uint32_t bucket)
{
	for (; node >= 0; node = search->nodes[node].parent)
		if (search->nodes[node].bucket == bucket)
			return true;
	return false;
}

static void add(struct search *search, uint32_t bucket, int parent, unsigned way)
{
	if (search->count < NODES && !is_on_path(search, parent, bucket))
		search->nodes[search->count++] = (struct node){bucket, (int16_t)parent, (uint16_t)way};
}

// The buckets that the entries of a node could move to. Their cache misses overlap.
static void expand(const struct cuckoo *table, const struct cuckoo_shape *shape, struct search *search,
                   int node)
{
	for (unsigned way = 0; way < shape->ways && search->count < NODES; way++) {
		uint32_t bucket = shape->other(table, (struct cuckoo_place){search->nodes[node].bucket, way});

		cuckoo_fetch(table, bucket);
		add(search, bucket, node, way);
	}
}

// The nearest node with an empty way, or -1.
static int find_node(const struct cuckoo *table, const struct cuckoo_shape *shape, struct search *search,
                     int *way)
{
	int expanded = 0;

	for (int node = 0; node < search->count; node++) {
		*way = shape->free_way(table, search->nodes[node].bucket);
		if (*way >= 0)
			return node;
		// Those of one node are prefetched together, before the first of them is looked at.
		if (node == search->count - 1)
			while (expanded <= node && search->count == node + 1)
				expand(table, shape, search, expanded++);
	}
	return -1;
}

static uint32_t move_along(struct cuckoo *table, const struct cuckoo_shape *shape,
                           const struct search *search, int node, struct cuckoo_place *place)
{
	uint32_t length = 0;

	for (; search->nodes[node].parent >= 0; node = search->nodes[node].parent, length++) {
		struct cuckoo_place from = {search->nodes[search->nodes[node].parent].bucket,
		                            search->nodes[node].way};

		shape->copy(table, from, *place);
		// Whoever sees `from` overwritten sees this, and then the copy.
		atomic_store_explicit(&table->moves,
		                      atomic_load_explicit(&table->moves, memory_order_relaxed) + 1,
		                      memory_order_release);
		*place = from;
	}
	return length;
}

int cuckoo_make_room(struct cuckoo *table, uint64_t pair, struct cuckoo_place *place)
{
	const struct cuckoo_shape *shape = cuckoo_shape(table);
	struct search search;
	uint32_t length;
	int node, way;

	search.count = 0;
	add(&search, cuckoo_first(pair), -1, 0);
	if (cuckoo_second(pair) != cuckoo_first(pair))
		add(&search, cuckoo_second(pair), -1, 0);
	node = find_node(table, shape, &search, &way);
	if (node < 0)
		return -ENOSPC;
	*place = (struct cuckoo_place){search.nodes[node].bucket, (uint32_t)way};
	length = move_along(table, shape, &search, node, place);
	if (length > atomic_load_explicit(&table->longest_path, memory_order_relaxed))
		atomic_store_explicit(&table->longest_path, length, memory_order_relaxed);
	return 0;
}
