// SPDX-License-Identifier: BSD-3-Clause
#include "fib/prefix_tree.h"

#include <errno.h>
#include <rte_branch_prediction.h>
#include <rte_rcu_qsbr.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hugepages.h"

enum {
	DEPTHS = 16,
	DEPTH_DIRECT = 2, // its nodes are found by the directory
	DIRECTORY_SLOTS = PREFIX_SPACE_BYTES / sizeof(uint32_t),
	WORDS = 4,             // of a bitmap: 256 bits
	BLOCKS_MAX = 25,       // of a node: two bitmaps, 256 children, 255 values
	GIVEN_MAX = 1 << 16,   // nodes that readers may still be in
	GIVEN_AT_ONCE = DEPTHS // by one update
};

#define PARENT    (UINT32_C(1) << 31) // in a reference: the node has children
#define BYTES_MAX (UINT64_C(4) << 30)

// A reference is the number of a node's first block, with PARENT; 0 is none. The node is `inside`; of a parent
// then `beyond` and a reference for each bit of it; then a value for each bit of `inside`. Bit 2^r + i of inside: the
// prefix of r bits more than lead to the node, and these are i; bit 0 is unused. Bit i of beyond: a child for the 8 bits i.
struct node {
	uint64_t inside[WORDS], beyond[WORDS];
};

struct given {
	uint64_t token;
	uint32_t block, blocks;
};

struct prefix_tree {
	char *base;
	struct hugepages memory;
	struct rte_rcu_qsbr *readers;
	uint32_t fresh, end;           // blocks from fresh on were never used
	uint32_t free[BLOCKS_MAX + 1]; // by size: the first of a list, which goes on in the block itself
	_Atomic uint64_t used;         // blocks
	uint32_t head, given_count;    // of given, first in, first out
	struct given given[GIVEN_MAX];
};

static inline const struct node *node_of(const struct prefix_tree *tree, uint32_t reference)
{
	return (const struct node *)(tree->base + (uint64_t)(reference & ~PARENT) * PREFIX_BLOCK_BYTES);
}

static inline bool bit_of(const uint64_t *bits, unsigned bit)
{
	return bits[bit >> 6] >> (bit & 63) & 1;
}

static inline void bit_flip(uint64_t *bits, unsigned bit)
{
	bits[bit >> 6] ^= UINT64_C(1) << (bit & 63);
}

// How many bits are set below this one.
static inline unsigned rank_of(const uint64_t *bits, unsigned bit)
{
	unsigned word = bit >> 6, below = 0;

	for (unsigned i = 0; i < WORDS - 1; i++)
		below += (unsigned)__builtin_popcountll(bits[i] & -(uint64_t)(i < word));
	return below + (unsigned)__builtin_popcountll(bits[word] & ((UINT64_C(1) << (bit & 63)) - 1));
}

static inline unsigned count_of(const uint64_t *bits)
{
	unsigned count = 0;

	for (unsigned i = 0; i < WORDS; i++)
		count += (unsigned)__builtin_popcountll(bits[i]);
	return count;
}

static inline _Atomic uint32_t *children_of(const struct node *parent)
{
	return (_Atomic uint32_t *)(uintptr_t)(parent + 1);
}

static inline _Atomic uint16_t *values_of(const struct node *node, uint32_t reference)
{
	if (reference & PARENT)
		return (_Atomic uint16_t *)(children_of(node) + count_of(node->beyond));
	return (_Atomic uint16_t *)(uintptr_t)node->beyond;
}

// The 8 bits of an address by which a node of this depth goes on.
static inline unsigned byte_of(const struct prefix_key *key, unsigned depth)
{
	uint64_t shifted = depth < 8 ? key->high << 1 | key->low >> 63 : key->low << 1;

	return shifted >> (56 - depth % 8 * 8) & 0xff;
}

// --- Readers ------------------------------------------------------------------------------------------------

// The bits of the prefixes of up to five bits that five bits are in.
#define PATH(five)                                                                                           \
	(UINT64_C(2) | UINT64_C(1) << (2 | (five) >> 4) | UINT64_C(1) << (4 | (five) >> 3) |                 \
	 UINT64_C(1) << (8 | (five) >> 2) | UINT64_C(1) << (16 | (five) >> 1) |                              \
	 UINT64_C(1) << (32 | (five)))
#define PATHS(five) PATH(five), PATH((five) + 1), PATH((five) + 2), PATH((five) + 3)

static const uint64_t paths[32] = {PATHS(0),  PATHS(4),  PATHS(8),  PATHS(12),
                                   PATHS(16), PATHS(20), PATHS(24), PATHS(28)};

// The bit of the longest prefix of a node that the address is in; 0: none. Without branches: which it is cannot be
// foretold.
static inline unsigned longest(const uint64_t *inside, unsigned byte)
{
	unsigned six = 64 | byte >> 2, seven = 128 | byte >> 1;
	unsigned bit = 63 - (unsigned)__builtin_clzll((inside[0] & paths[byte >> 3]) | 1);

	bit ^= (bit ^ six) & -(unsigned)bit_of(inside, six);
	return bit ^ ((bit ^ seven) & -(unsigned)bit_of(inside, seven));
}

static inline unsigned slot_of(const struct prefix_key *key)
{
	return (unsigned)(key->high >> (64 - 8 * DEPTH_DIRECT - 1));
}

// Where a node that none leads to is referred to: by the first bits of an address.
static inline _Atomic uint32_t *root_of(const struct prefix_space *space, const struct prefix_key *key,
                                        unsigned depth)
{
	if (depth == 0)
		return (_Atomic uint32_t *)(uintptr_t)&space->nodes[key->high >> 63];
	return &space->directory[slot_of(key)];
}

static unsigned matches_from(const struct prefix_tree *tree, const struct prefix_space *space,
                             const struct prefix_key *key, unsigned depth, uint16_t *values)
{
	uint32_t reference = atomic_load_explicit(root_of(space, key, depth), memory_order_acquire);
	unsigned count = 0;

	for (; reference; depth++) {
		const struct node *node = node_of(tree, reference);
		unsigned byte = byte_of(key, depth);

		for (unsigned bits = 0; bits < 8; bits++) {
			unsigned bit = 1u << bits | byte >> (8 - bits);

			if (!bit_of(node->inside, bit))
				continue;
			values[count] =
			        atomic_load_explicit(&values_of(node, reference)[rank_of(node->inside, bit)],
			                             memory_order_acquire);
			count += values[count] != PREFIX_NONE;
		}
		if (!(reference & PARENT) || !bit_of(node->beyond, byte))
			break;
		reference = atomic_load_explicit(&children_of(node)[rank_of(node->beyond, byte)],
		                                 memory_order_acquire);
	}
	return count;
}

unsigned prefix_tree_matches(const struct prefix_tree *tree, const struct prefix_space *space,
                             struct prefix_key key, uint16_t *values)
{
	unsigned count;

	values[0] = atomic_load_explicit(&space->whole, memory_order_acquire);
	count = values[0] != PREFIX_NONE;
	count += matches_from(tree, space, &key, 0, &values[count]);
	if (space->directory)
		count += matches_from(tree, space, &key, DEPTH_DIRECT, &values[count]);
	return count;
}

// Lookups of a bulk that go down together.
struct bulk {
	const struct prefix_key *keys;
	uint32_t references[PREFIX_BULK_MAX]; // of the node to look at
	const _Atomic uint16_t *found[PREFIX_BULK_MAX];
	uint8_t pending[PREFIX_BULK_MAX];
	unsigned left; // of pending
};

// Of a parent the first references to children as well.
static inline void node_prefetch(const struct prefix_tree *tree, uint32_t reference)
{
	__builtin_prefetch(node_of(tree, reference));
	if (reference & PARENT)
		__builtin_prefetch((const void *)children_of(node_of(tree, reference)));
}

// All that are pending, a depth at a time. Those for which nothing was found are pending then.
static inline __attribute__((always_inline)) void descend(const struct prefix_tree *tree, struct bulk *bulk,
                                                          unsigned depth)
{
	uint32_t at[PREFIX_BULK_MAX];
	uint8_t bits[PREFIX_BULK_MAX], nothing[PREFIX_BULK_MAX];
	unsigned missed = 0;

	for (unsigned p = 0; p < bulk->left; p++)
		bits[bulk->pending[p]] = 0;
	for (; bulk->left; depth++) {
		unsigned on = 0;

		for (unsigned p = 0; p < bulk->left; p++) {
			unsigned i = bulk->pending[p], byte = byte_of(&bulk->keys[i], depth);
			uint32_t reference = bulk->references[i];
			const struct node *node = node_of(tree, reference);
			unsigned bit = longest(node->inside, byte);

			at[i] = bit ? reference : at[i];
			bits[i] = bit ? (uint8_t)bit : bits[i];
			if (reference & PARENT && bit_of(node->beyond, byte)) {
				bulk->references[i] =
				        atomic_load_explicit(&children_of(node)[rank_of(node->beyond, byte)],
				                             memory_order_acquire);
				node_prefetch(tree, bulk->references[i]);
				bulk->pending[on++] = (uint8_t)i;
				continue;
			}
			nothing[missed] = (uint8_t)i;
			missed += bits[i] == 0;
			if (bits[i]) {
				node = node_of(tree, at[i]);
				bulk->found[i] = values_of(node, at[i]) + rank_of(node->inside, bits[i]);
				__builtin_prefetch((const void *)bulk->found[i]);
			}
		}
		bulk->left = on;
	}
	memcpy(bulk->pending, nothing, missed);
	bulk->left = missed;
}

void prefix_tree_find(const struct prefix_tree *tree, const struct prefix_space *const *spaces,
                      const struct prefix_key *keys, unsigned n, uint16_t *values)
{
	static const _Atomic uint32_t empty = 0;
	const _Atomic uint32_t *roots[PREFIX_BULK_MAX];
	struct bulk bulk = {.keys = keys};
	uint8_t undirected[PREFIX_BULK_MAX];
	unsigned others = 0, left = 0;

	for (unsigned i = 0; i < n; i++) {
		const _Atomic uint32_t *directory =
		        atomic_load_explicit(&spaces[i]->directory, memory_order_acquire);

		roots[i] = directory ? &directory[slot_of(&keys[i])] : &empty;
		__builtin_prefetch((const void *)roots[i]);
	}
	for (unsigned i = 0; i < n; i++) {
		bulk.references[i] = atomic_load_explicit(roots[i], memory_order_acquire);
		node_prefetch(tree, bulk.references[i]);
		bulk.pending[bulk.left] = undirected[others] = (uint8_t)i;
		bulk.left += bulk.references[i] != 0;
		others += bulk.references[i] == 0;
	}
	descend(tree, &bulk, DEPTH_DIRECT);
	memcpy(&bulk.pending[bulk.left], undirected, others);
	others += bulk.left;
	for (unsigned p = 0; p < others; p++) {
		unsigned i = bulk.pending[p];

		bulk.found[i] = &spaces[i]->whole;
		bulk.references[i] =
		        atomic_load_explicit(root_of(spaces[i], &keys[i], 0), memory_order_acquire);
		node_prefetch(tree, bulk.references[i]);
		bulk.pending[left] = (uint8_t)i;
		left += bulk.references[i] != 0;
	}
	bulk.left = left;
	descend(tree, &bulk, 0);
	for (unsigned i = 0; i < n; i++) {
		values[i] = atomic_load_explicit(bulk.found[i], memory_order_acquire);
		if (unlikely(values[i] == PREFIX_NONE && bulk.found[i] != &spaces[i]->whole)) {
			uint16_t matches
			        [PREFIX_MATCHES_MAX]; // it was deleted when there was no memory for a copy
			unsigned count = prefix_tree_matches(tree, spaces[i], keys[i], matches);

			values[i] = count ? matches[count - 1] : PREFIX_NONE;
		}
	}
}

// --- Blocks -------------------------------------------------------------------------------------------------

static uint32_t *link_of(const struct prefix_tree *tree, uint32_t block)
{
	return (uint32_t *)(uintptr_t)node_of(tree, block);
}

static void block_free(struct prefix_tree *tree, uint32_t block, uint32_t blocks)
{
	*link_of(tree, block) = tree->free[blocks];
	tree->free[blocks] = block;
	atomic_store_explicit(&tree->used, atomic_load_explicit(&tree->used, memory_order_relaxed) - blocks,
	                      memory_order_relaxed);
}

// What all readers have let go of is free.
static void take_back(struct prefix_tree *tree)
{
	while (tree->given_count && rte_rcu_qsbr_check(tree->readers, tree->given[tree->head].token, false)) {
		block_free(tree, tree->given[tree->head].block, tree->given[tree->head].blocks);
		tree->head = (tree->head + 1) % GIVEN_MAX;
		tree->given_count--;
	}
}

static uint32_t block_take(struct prefix_tree *tree, uint32_t blocks)
{
	uint32_t block = tree->free[blocks];

	if (block)
		tree->free[blocks] = *link_of(tree, block);
	else if (tree->end - tree->fresh >= blocks) {
		block = tree->fresh;
		tree->fresh += blocks;
	}
	if (block)
		atomic_store_explicit(&tree->used,
		                      atomic_load_explicit(&tree->used, memory_order_relaxed) + blocks,
		                      memory_order_relaxed);
	return block;
}

// --- Nodes, as the writer changes them ----------------------------------------------------------------------

struct draft {
	struct node bits;
	uint32_t children[256];
	uint16_t values[256];
};

static uint32_t bytes_of(unsigned children, unsigned values)
{
	unsigned bytes = children ? sizeof(struct node) + children * 4 : sizeof(struct node) / 2;

	return bytes + values * 2;
}

static uint32_t blocks_of(unsigned children, unsigned values)
{
	return (bytes_of(children, values) + PREFIX_BLOCK_BYTES - 1) / PREFIX_BLOCK_BYTES;
}

static void draft_read(const struct prefix_tree *tree, uint32_t reference, struct draft *draft)
{
	const struct node *node = node_of(tree, reference);
	unsigned children;

	memset(&draft->bits, 0, sizeof(draft->bits));
	if (reference == 0)
		return;
	memcpy(draft->bits.inside, node->inside, sizeof(node->inside));
	if (reference & PARENT)
		memcpy(draft->bits.beyond, node->beyond, sizeof(node->beyond));
	children = count_of(draft->bits.beyond);
	memcpy(draft->children, (const void *)children_of(node), children * sizeof(*draft->children));
	memcpy(draft->values, (const void *)values_of(node, reference),
	       count_of(draft->bits.inside) * sizeof(*draft->values));
}

// Returns its reference, which is 0 without memory.
static uint32_t draft_write(struct prefix_tree *tree, struct prefix_space *space, const struct draft *draft)
{
	unsigned children = count_of(draft->bits.beyond), values = count_of(draft->bits.inside);
	uint32_t blocks = blocks_of(children, values);
	uint32_t reference = block_take(tree, blocks);
	struct node *node = (struct node *)(uintptr_t)node_of(tree, reference);

	if (reference == 0)
		return 0;
	reference |= children ? PARENT : 0;
	memcpy(node->inside, draft->bits.inside, sizeof(node->inside));
	if (children) {
		memcpy(node->beyond, draft->bits.beyond, sizeof(node->beyond));
		memcpy((void *)children_of(node), draft->children, children * sizeof(*draft->children));
	}
	memcpy((void *)values_of(node, reference), draft->values, values * sizeof(*draft->values));
	space->blocks += blocks;
	return reference;
}

static bool draft_is_empty(const struct draft *draft)
{
	return count_of(draft->bits.inside) + count_of(draft->bits.beyond) == 0;
}

// Sets a bit of a bitmap, and makes room for its entry among those of the others; returns its place.
static unsigned entry_add(uint64_t *bits, unsigned bit, void *entries, size_t bytes)
{
	unsigned rank = rank_of(bits, bit), count = count_of(bits);
	char *at = (char *)entries + rank * bytes;

	memmove(at + bytes, at, (count - rank) * bytes);
	bit_flip(bits, bit);
	return rank;
}

static void entry_remove(uint64_t *bits, unsigned bit, void *entries, size_t bytes)
{
	unsigned rank = rank_of(bits, bit), count = count_of(bits);
	char *at = (char *)entries + rank * bytes;

	memmove(at, at + bytes, (count - rank - 1) * bytes);
	bit_flip(bits, bit);
}

static uint32_t node_blocks(const struct prefix_tree *tree, uint32_t reference)
{
	const struct node *node = node_of(tree, reference);

	return blocks_of(reference & PARENT ? count_of(node->beyond) : 0, count_of(node->inside));
}

// No lookup that begins now comes to it.
static void node_give(struct prefix_tree *tree, struct prefix_space *space, uint32_t reference)
{
	uint32_t blocks = node_blocks(tree, reference);

	tree->given[(tree->head + tree->given_count++) % GIVEN_MAX] = (struct given){
	        .token = rte_rcu_qsbr_start(tree->readers), .block = reference & ~PARENT, .blocks = blocks};
	space->blocks -= blocks;
}

// --- The writer ---------------------------------------------------------------------------------------------

// The way to a prefix: down to the node that has it, or as far as there are nodes.
struct way {
	_Atomic uint32_t *slots[DEPTHS]; // where the node of a depth is referred to
	uint32_t references[DEPTHS];     // 0: none, and none below it
	unsigned root, depth, bit;       // depths of the first node and of the prefix's; which of it
};

static struct way way_to(const struct prefix_tree *tree, struct prefix_space *space,
                         const struct prefix_key *key, unsigned length)
{
	struct way way = {.root = length > 8 * DEPTH_DIRECT ? DEPTH_DIRECT : 0, .depth = (length - 1) / 8};
	_Atomic uint32_t *slot = root_of(space, key, way.root);
	unsigned bits = (length - 1) % 8;

	way.bit = 1u << bits | byte_of(key, way.depth) >> (8 - bits);
	for (unsigned depth = way.root; depth <= way.depth; depth++) {
		uint32_t reference = atomic_load_explicit(slot, memory_order_relaxed);
		const struct node *node = node_of(tree, reference);
		unsigned byte = byte_of(key, depth);

		way.slots[depth] = slot;
		way.references[depth] = reference;
		if (!(reference & PARENT) || !bit_of(node->beyond, byte))
			break;
		slot = &children_of(node)[rank_of(node->beyond, byte)];
	}
	return way;
}

// Where the value of the prefix is; NULL: it is not there.
static _Atomic uint16_t *place_of(const struct prefix_tree *tree, const struct way *way)
{
	uint32_t reference = way->references[way->depth];
	const struct node *node = node_of(tree, reference);

	if (reference == 0 || !bit_of(node->inside, way->bit))
		return NULL;
	return values_of(node, reference) + rank_of(node->inside, way->bit);
}

static void publish(_Atomic uint32_t *slot, uint32_t reference)
{
	atomic_store_explicit(slot, reference, memory_order_release);
}

// From the prefix up to the lowest node that is there: that is copied.
static int prefix_add(struct prefix_tree *tree, struct prefix_space *space, const struct prefix_key *key,
                      const struct way *way, uint16_t value)
{
	uint32_t made[DEPTHS], reference = 0;
	unsigned count = 0, depth = way->depth;
	struct draft draft;

	for (;; depth--) {
		draft_read(tree, way->references[depth], &draft);
		if (depth == way->depth)
			draft.values[entry_add(draft.bits.inside, way->bit, draft.values, sizeof(value))] =
			        value;
		else
			draft.children[entry_add(draft.bits.beyond, byte_of(key, depth), draft.children,
			                         sizeof(reference))] = reference;
		reference = draft_write(tree, space, &draft);
		if (reference == 0)
			break;
		made[count++] = reference;
		if (way->references[depth] || depth == way->root) {
			publish(way->slots[depth], reference);
			if (way->references[depth])
				node_give(tree, space, way->references[depth]);
			return 0;
		}
	}
	while (count--) {
		uint32_t blocks = node_blocks(tree, made[count]);

		space->blocks -= blocks;
		block_free(tree, made[count] & ~PARENT, blocks);
	}
	return -ENOSPC;
}

static bool may_give(struct prefix_tree *tree)
{
	take_back(tree);
	return tree->given_count + GIVEN_AT_ONCE <= GIVEN_MAX;
}

int prefix_tree_put(struct prefix_tree *tree, struct prefix_space *space, struct prefix_key key,
                    unsigned length, uint16_t value)
{
	_Atomic uint16_t *place = &space->whole;
	struct way way;

	if (length) {
		way = way_to(tree, space, &key, length);
		place = place_of(tree, &way);
	}
	if (place) {
		atomic_store_explicit(place, value, memory_order_release);
		return 0;
	}
	return may_give(tree) ? prefix_add(tree, space, &key, &way, value) : -EAGAIN;
}

bool prefix_tree_has(const struct prefix_tree *tree, struct prefix_space *space, struct prefix_key key,
                     unsigned length)
{
	const _Atomic uint16_t *place = &space->whole;
	struct way way;

	if (length) {
		way = way_to(tree, space, &key, length);
		place = place_of(tree, &way);
	}
	return place && atomic_load_explicit(place, memory_order_relaxed) != PREFIX_NONE;
}

// Nodes that have become empty go with it. Without memory for the copy of the one that stays the prefix keeps its
// place, without a value.
void prefix_tree_delete(struct prefix_tree *tree, struct prefix_space *space, struct prefix_key key,
                        unsigned length)
{
	_Atomic uint16_t *place = &space->whole;
	unsigned depth;
	struct draft draft;
	uint32_t copy = 0;
	struct way way;

	if (length) {
		way = way_to(tree, space, &key, length);
		place = place_of(tree, &way);
	}
	if (place == NULL)
		return;
	if (length == 0 || !may_give(tree)) {
		atomic_store_explicit(place, PREFIX_NONE, memory_order_release);
		return;
	}
	depth = way.depth;
	draft_read(tree, way.references[depth], &draft);
	entry_remove(draft.bits.inside, way.bit, draft.values, sizeof(*draft.values));
	while (draft_is_empty(&draft) && depth > way.root) {
		draft_read(tree, way.references[--depth], &draft);
		entry_remove(draft.bits.beyond, byte_of(&key, depth), draft.children,
		             sizeof(*draft.children));
	}
	if (!draft_is_empty(&draft))
		copy = draft_write(tree, space, &draft);
	if (copy == 0 && !draft_is_empty(&draft)) {
		atomic_store_explicit(place, PREFIX_NONE, memory_order_release);
		return;
	}
	publish(way.slots[depth], copy);
	for (; depth <= way.depth; depth++)
		node_give(tree, space, way.references[depth]);
}

// --- Making it ----------------------------------------------------------------------------------------------

int prefix_space_open(struct prefix_space *space)
{
	if (space->directory == NULL)
		space->directory = calloc(1, PREFIX_SPACE_BYTES);
	return space->directory ? 0 : -ENOMEM;
}

void prefix_space_clear(struct prefix_space *space)
{
	_Atomic uint32_t *directory = space->directory;

	for (unsigned i = 0; i < DIRECTORY_SLOTS && space->blocks; i++)
		if (directory[i]) // else a page that was never written to would come into being
			directory[i] = 0;
	memset(space, 0, sizeof(*space));
	space->directory = directory;
}

void prefix_space_close(struct prefix_space *space)
{
	free(space->directory);
}

// Block 0 is not used: its number says that there is none.
void prefix_tree_clear(struct prefix_tree *tree)
{
	memset(tree->free, 0, sizeof(tree->free));
	tree->head = tree->given_count = 0;
	tree->fresh = 1;
	atomic_store_explicit(&tree->used, 0, memory_order_relaxed);
}

struct prefix_tree *prefix_tree_create(uint64_t bytes, struct rte_rcu_qsbr *readers)
{
	struct prefix_tree *tree = calloc(1, sizeof(*tree));

	if (tree == NULL)
		return NULL;
	bytes = bytes < BYTES_MAX ? bytes + PREFIX_BLOCK_BYTES : BYTES_MAX;
	while (hugepages_reserve(&tree->memory, bytes) && bytes > PREFIX_BLOCK_BYTES)
		bytes /= 2;
	if (tree->memory.base == NULL) {
		free(tree);
		return NULL;
	}
	tree->base = tree->memory.base;
	tree->end = (uint32_t)(tree->memory.bytes / PREFIX_BLOCK_BYTES);
	tree->readers = readers;
	prefix_tree_clear(tree);
	return tree;
}

void prefix_tree_destroy(struct prefix_tree *tree)
{
	if (tree == NULL)
		return;
	hugepages_unmap(&tree->memory);
	free(tree);
}

uint64_t prefix_tree_room(const struct prefix_tree *tree)
{
	return (uint64_t)tree->end * PREFIX_BLOCK_BYTES;
}

uint64_t prefix_tree_bytes(const struct prefix_tree *tree)
{
	return atomic_load_explicit(&tree->used, memory_order_relaxed) * PREFIX_BLOCK_BYTES;
}
