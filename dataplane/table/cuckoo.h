// SPDX-License-Identifier: BSD-3-Clause
// Exact match of very many short keys: a cuckoo hash table of two choices and buckets of one cache line
// (CuckooSwitch, CoNEXT 2013; MemC3, NSDI 2013). A value is 16 bits: what it means belongs to the caller.
//
// Two widths. NARROW: keys of 48 bits, eight 64-bit entries a bucket (key << 16 | value): IPv4 with 16 bits
// of owner, or a MAC. A billion entries take 8.6 GB. WIDE: keys of 144 bits, three entries of 20 bytes and a
// version a bucket: IPv6 with an owner, VNI + MAC with an owner.
//
// Threads: one writer at a time (cuckoo_put, _delete, _load, _clear: the caller sees to it), any number of
// readers without locks. A key that is present throughout a lookup is found, with a value that it had
// during it: entries move by copying first and erasing then, and a lookup that finds nothing looks at
// `moves` and looks again if an entry moved meanwhile. A narrow entry is one word; a wide bucket has a
// version, and a lookup waits while the writer is inside this bucket.
//
// Full: an insertion looks for room along a bounded breadth-first search and says -ENOSPC if there is none;
// the table is as it was. About 95 % of the entries of a narrow table can be used, 90 % of a wide one's.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hugepages.h"

enum {
	CUCKOO_WAYS = 8,
	CUCKOO_WIDE_WAYS = 3,
	CUCKOO_NONE = 0,      // not a value: nothing is known of this key
	CUCKOO_BULK_MAX = 64, // keys of one lookup
};

#define CUCKOO_ENTRIES_MAX (UINT64_C(1) << 33)

enum cuckoo_width { CUCKOO_NARROW, CUCKOO_WIDE };

// owner and two words: IPv6 in network order, or VNI and MAC. Compared as a whole.
struct cuckoo_wide_key {
	uint64_t high, low;
	uint16_t owner;
};

struct cuckoo_config {
	enum cuckoo_width width;
	uint64_t entries; // that must fit; the table has room for a few percent more
	uint64_t seed;    // of the hash: secret where keys come from strangers
	enum pages pages; // PAGES_BEST: the largest there are
};

struct cuckoo; // cuckoo_table.h

struct cuckoo_stats {
	uint64_t entries;      // there now
	uint64_t room;         // entries that would fit if every way could be used
	uint64_t bytes;        // of buckets
	uint64_t moves;        // entries moved to make room, since it was made
	uint32_t longest_path; // of moves for one insertion
	enum pages pages;      // that it got
};

// Returns 0 and *out, or -ENOMEM, or -EINVAL (entries 0, or more than CUCKOO_ENTRIES_MAX) after logging one line.
int cuckoo_create(const struct cuckoo_config *config, struct cuckoo **out);
void cuckoo_destroy(struct cuckoo *table); // NULL is nothing

// Bytes that a table for so many entries takes.
uint64_t cuckoo_bytes(enum cuckoo_width width, uint64_t entries);

// --- Readers. values[i]: of keys[i], or CUCKOO_NONE. n <= CUCKOO_BULK_MAX. Cache misses of one call overlap
// ---

void cuckoo_find(const struct cuckoo *table, const uint64_t *keys, unsigned n, uint16_t *values);
void cuckoo_wide_find(const struct cuckoo *table, const struct cuckoo_wide_key *keys, unsigned n,
                      uint16_t *values);

// --- The writer --------------------------------------------------------------------------------------------

// Have the buckets of a key in the cache soon: some 16 keys ahead, an update costs no cache miss.
void cuckoo_prefetch(const struct cuckoo *table, uint64_t key);
void cuckoo_wide_prefetch(const struct cuckoo *table, const struct cuckoo_wide_key *key);

// Add the key, or give it a new value (one store: readers see the old or the new). value is not CUCKOO_NONE.
// *old: the value it had, or CUCKOO_NONE. Returns 0, or -ENOSPC when it is new and there is no room.
int cuckoo_put(struct cuckoo *table, uint64_t key, uint16_t value, uint16_t *old);
int cuckoo_wide_put(struct cuckoo *table, const struct cuckoo_wide_key *key, uint16_t value, uint16_t *old);

// Returns the value that it had, or CUCKOO_NONE.
uint16_t cuckoo_delete(struct cuckoo *table, uint64_t key);
uint16_t cuckoo_wide_delete(struct cuckoo *table, const struct cuckoo_wide_key *key);

// Visit the entries of up to `buckets` buckets from *cursor on, moving it; at the end it becomes 0. keep()
// says whether an entry stays: what does not is deleted. Exactly one of the two is called, by the table's
// width. An entry that moves between calls may be missed or seen twice: whoever has to see all does not
// insert meanwhile. Returns how many were deleted.
struct cuckoo_visitor {
	bool (*keep)(void *context, uint64_t key, uint16_t value);
	bool (*keep_wide)(void *context, const struct cuckoo_wide_key *key, uint16_t value);
	void *context;
};
uint64_t cuckoo_visit(struct cuckoo *table, uint64_t *cursor, uint64_t buckets,
                      const struct cuckoo_visitor *visitor);

void cuckoo_clear(struct cuckoo *table);
void cuckoo_read_stats(const struct cuckoo *table, struct cuckoo_stats *stats); // any thread; a little stale

// --- Snapshots: the buckets as they are, with a checksum for each piece -----------------------------------

// Write the table to a file descriptor: no writer meanwhile. Returns 0, or -errno with a sentence in error
// (256 bytes).
int cuckoo_save(const struct cuckoo *table, int fd, char *error);

// Replace the table by what is read from one: NO WRITER AND NO READER meanwhile. A snapshot with as many
// buckets is read as it is, with its seed; any other is put entry by entry, which takes some ten times as
// long. Exactly the bytes that _save wrote are read. Returns 0, -EBADMSG with a sentence in error if it is
// not a snapshot of this width, is cut off or was damaged, -ENOSPC if it does not fit, or -errno; then the
// table is empty, or as it was if the head was refused. Values are whatever the file has.
int cuckoo_load(struct cuckoo *table, int fd, char *error);
