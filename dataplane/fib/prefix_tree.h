// SPDX-License-Identifier: BSD-3-Clause
// Longest-prefix match in many address spaces, IPv4 and IPv6: the index by which the FIB looks up prefixes. It is
// derived from the FIB's tables, and made anew with them; a value is 16 bits that belong to the caller.
//
// Trees of nodes with a stride of 8 bits and bitmaps in place of arrays (Eatherton, Varghese, Dittia: "Tree Bitmap",
// SIGCOMM CCR 34(2), 2004; ranks by popcount as in Asai, Ohara: "Poptrie", SIGCOMM 2015). A node of depth d is found by
// the first 8 d + 1 bits of an address. It has the prefixes of 8 d + 1 to 8 d + 8 bits, so that those of whole bytes,
// which are most, need no node below it. Nothing is pushed down: a prefix is in one place, and an update costs a copy
// of one node (at most 1.6 KB), or a new node for each depth that is missing, however many prefixes lie under it.
//
// Nodes of depth 2, of prefixes of 17 to 24 bits, are found by a directory, an array by the first 17 bits: it is asked
// first, and the nodes of depths 0 and 1 only where nothing longer was found. So a lookup reads the directory and a node
// for each depth below 2: one for an IPv4 /24, four for an IPv6 /48; and two nodes that are few for what is shorter.
// Nodes take blocks of 64 bytes; one without children and with up to 16 prefixes is one.
//
// Threads: one writer; readers without locks, that are known to `readers`. A node that readers may be in is not
// changed but copied, except for a value, which is one store; it is used again when all readers were quiet since.
// Memory belongs to the tree. Not in here: a prefix that lookups should not find, though it is here, because its value
// has lost its meaning: see prefix_tree_matches().
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct rte_rcu_qsbr;
struct prefix_tree; // the memory of all spaces

enum {
	PREFIX_NONE = 0, // not a value
	PREFIX_BULK_MAX = 64,
	PREFIX_MATCHES_MAX = 129,
	PREFIX_BLOCK_BYTES = 64,
	PREFIX_SPACE_BYTES = 4 << 17, // of an open space, besides its nodes
};

// Bits of an address from the left; IPv4: the upper half of high. Host byte order.
struct prefix_key {
	uint64_t high, low;
};

// An address space; zeroed: an empty one.
struct prefix_space {
	_Atomic uint32_t *_Atomic
	        directory; // nodes of prefixes of more than 16 bits, by the first 17 bits of an address
	_Atomic uint32_t nodes[2]; // of shorter ones, by the first bit
	_Atomic uint16_t whole;    // value of the prefix of no bits
	uint32_t blocks;           // that its nodes take: the writer's
};

// Memory for up to so many bytes of nodes is reserved, not used; at most 4 GiB, and less if the system says no. Returns
// NULL: no memory.
struct prefix_tree *prefix_tree_create(uint64_t bytes, struct rte_rcu_qsbr *readers);
void prefix_tree_destroy(struct prefix_tree *tree); // NULL is nothing
void prefix_tree_clear(struct prefix_tree *tree);   // no reader is in it; spaces are the caller's to clear
uint64_t prefix_tree_room(const struct prefix_tree *tree);  // bytes: what was reserved
uint64_t prefix_tree_bytes(const struct prefix_tree *tree); // of nodes, in use; any thread

// Zeroed memory becomes an empty space that prefixes can be put into: 512 KiB, of which the system gives what is used.
int prefix_space_open(struct prefix_space *space);   // -ENOMEM; an open one: nothing
void prefix_space_clear(struct prefix_space *space); // with the tree
void prefix_space_close(struct prefix_space *space); // an empty one that was not opened: nothing

// --- Readers ----------------------------------------------------------------------------------------------

// values[i]: of the longest prefix in spaces[i] that keys[i] is in, or PREFIX_NONE. n <= PREFIX_BULK_MAX. Cache misses
// of one call overlap.
void prefix_tree_find(const struct prefix_tree *tree, const struct prefix_space *const *spaces,
                      const struct prefix_key *keys, unsigned n, uint16_t *values);

// values: of all prefixes that the key is in, shortest first. Returns how many, at most PREFIX_MATCHES_MAX.
unsigned prefix_tree_matches(const struct prefix_tree *tree, const struct prefix_space *space,
                             struct prefix_key key, uint16_t *values);

// --- The writer -------------------------------------------------------------------------------------------

// Add a prefix of length bits (0 .. 128; bits behind it are 0), or give it a new value, which never fails. Returns 0,
// -ENOSPC, or -EAGAIN: readers have not let go of what was changed before.
int prefix_tree_put(struct prefix_tree *tree, struct prefix_space *space, struct prefix_key key,
                    unsigned length, uint16_t value);

bool prefix_tree_has(const struct prefix_tree *tree, struct prefix_space *space, struct prefix_key key,
                     unsigned length);

// A prefix that is not there: nothing.
void prefix_tree_delete(struct prefix_tree *tree, struct prefix_space *space, struct prefix_key key,
                        unsigned length);
