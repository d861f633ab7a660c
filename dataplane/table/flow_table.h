// SPDX-License-Identifier: BSD-3-Clause
// What is known of flows: at most capacity of them, found by key, in the order in which they were last seen.
// A flow that was not seen for the timeout is idle: it is none any more, and whoever needs its room has it.
// If all are busy there is no room for a new one. So what is in the table depends on the packets alone, not
// on hashes: it can be specified, and compared with a model.
//
// Slots (half a hash, and the number of a flow) are probed linearly, at most half of them full; flows are one
// cache line each. A secret key makes the hash: guests choose addresses and ports.
//
// Threads: one, the worker of the task; the control thread while that worker is parked. Memory is the
// table's.
#pragma once

#include <arpa/inet.h>

#include "base/packet.h"

// --- Keys ------------------------------------------------------------------------------------------------

// What makes a flow: the 5-tuple of a packet, IPv4 or IPv6, in one form that can be compared, hashed and
// listed. As bytes (the hash of the load balancer and the order of lists are defined over them): source
// address (16; IPv4: its 4, then zeros), destination address (16), source port (2, network order),
// destination port (2), protocol (1), IP version (1), zeros (2).
//
// Pure. Ports are 0 where there are none: other protocols, and fragments but the first. VLANs make no flow.

enum { FLOW_KEY_WORDS = 5, FLOW_KEY_BYTES = 40, FLOW_ADDRESS_TEXT = INET6_ADDRSTRLEN };

struct flow_key {
	uint64_t words[FLOW_KEY_WORDS];
};

struct flow_key_bytes {
	uint8_t source[16], destination[16];
	rte_be16_t src_port, dst_port;
	uint8_t protocol, version, zero[2];
};

static_assert(sizeof(struct flow_key) == FLOW_KEY_BYTES && sizeof(struct flow_key_bytes) == FLOW_KEY_BYTES,
              "both are the same 40 bytes");

static inline void flow_key_addresses(struct flow_key *key, const uint8_t *data, const struct packet *p)
{
	const uint8_t *ip = data + p->l3;

	if (likely(p->version == 4)) {
		uint32_t addresses[2];

		memcpy(addresses, ip + 12, sizeof(addresses));
		key->words[0] = addresses[0];
		key->words[1] = 0;
		key->words[2] = addresses[1];
		key->words[3] = 0;
	} else {
		memcpy(key->words, ip + 8, 32);
	}
}

static inline void flow_key_of(struct flow_key *key, const uint8_t *data, const struct packet *p)
{
	flow_key_addresses(key, data, p);
	key->words[4] = p->src_port | (uint64_t)p->dst_port << 16 | (uint64_t)p->protocol << 32 |
	                (uint64_t)p->version << 40;
}

static inline bool flow_key_equal(const struct flow_key *a, const struct flow_key *b)
{
	return ((a->words[0] ^ b->words[0]) | (a->words[1] ^ b->words[1]) | (a->words[2] ^ b->words[2]) |
	        (a->words[3] ^ b->words[3]) | (a->words[4] ^ b->words[4])) == 0;
}

// An address of a key as text; text has FLOW_ADDRESS_TEXT bytes. Returns text.
static inline const char *flow_address(const uint8_t address[16], uint8_t version, char *text)
{
	return inet_ntop(version == 4 ? AF_INET : AF_INET6, address, text, FLOW_ADDRESS_TEXT);
}

// --- Table -----------------------------------------------------------------------------------------------

enum { FLOW_NONE = UINT32_MAX, FLOW_TABLE_MAX = 1 << 22, FLOW_TICK_MAX = 256 };

struct flow {
	struct flow_key key; // version 0: no flow
	uint64_t last_tsc;
	uint64_t value[2]; // the owner's; zero when the flow is new
} __attribute__((aligned(64)));

struct flow_link {
	uint32_t older, newer;
};

struct flow_table {
	uint64_t *slots; // hash << 32 | number of the flow + 1; 0: none
	struct flow *flows;
	struct flow_link *links; // links[capacity] is the ring's head: newer is the oldest, older the newest
	uint32_t mask, capacity, count, free;
	uint64_t timeout_tsc;
	uint64_t now_tsc; // the latest that the owner was told
	uint64_t secret[FLOW_KEY_WORDS + 1];
	void (*gone)(void *owner, const struct flow *flow); // of one that is about to be forgotten
	void *owner;
};

// capacity: 1 .. FLOW_TABLE_MAX. gone may be NULL. Returns 0, or -ENOMEM.
int flow_table_open(struct flow_table *table, uint32_t capacity, uint64_t timeout_tsc);
void flow_table_close(struct flow_table *table); // of one that is zero, too

// --- On the data path ------------------------------------------------------------------------------------

// NH (Black et al., UMAC, CRYPTO 1999) under a secret key, then multiply-shift: two keys meet by chance only,
// whoever chose them.
static inline uint32_t flow_table_hash(const struct flow_table *table, const struct flow_key *key)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < FLOW_KEY_WORDS; i++) {
		uint32_t low = (uint32_t)key->words[i] + (uint32_t)table->secret[i];
		uint32_t high = (uint32_t)(key->words[i] >> 32) + (uint32_t)(table->secret[i] >> 32);

		sum += (uint64_t)low * high;
	}
	return (uint32_t)(((sum ^ sum >> 32) * table->secret[FLOW_KEY_WORDS]) >> 32);
}

static inline void flow_table_prefetch_slot(const struct flow_table *table, uint32_t hash)
{
	__builtin_prefetch(&table->slots[hash & table->mask]);
}

// When the slot has come.
static inline void flow_table_prefetch_flow(const struct flow_table *table, uint32_t hash)
{
	uint64_t slot;

	for (uint32_t at = hash & table->mask; (slot = table->slots[at]); at = (at + 1) & table->mask)
		if (slot >> 32 == hash) {
			__builtin_prefetch(&table->flows[(uint32_t)slot - 1], 1);
			__builtin_prefetch(&table->links[(uint32_t)slot - 1], 1);
			return;
		}
}

static inline uint32_t flow_table_find(const struct flow_table *table, const struct flow_key *key,
                                       uint32_t hash)
{
	uint64_t slot;

	for (uint32_t at = hash & table->mask; (slot = table->slots[at]); at = (at + 1) & table->mask)
		if (slot >> 32 == hash && flow_key_equal(&table->flows[(uint32_t)slot - 1].key, key))
			return (uint32_t)slot - 1;
	return FLOW_NONE;
}

// Time may come from another CPU and be a little behind what was noted.
static inline bool flow_is_idle(const struct flow_table *table, uint32_t index, uint64_t now_tsc)
{
	return (int64_t)(now_tsc - table->flows[index].last_tsc) >= (int64_t)table->timeout_tsc;
}

// A flow that is not in the table; the one that is idle longest makes room. FLOW_NONE: none is.
uint32_t flow_table_add(struct flow_table *table, const struct flow_key *key, uint32_t hash,
                        uint64_t now_tsc);

// An idle flow begins anew.
void flow_table_renew(struct flow_table *table, uint32_t index);

// The flow of a key, new if need be; FLOW_NONE: no room.
static inline uint32_t flow_table_get(struct flow_table *table, const struct flow_key *key, uint32_t hash,
                                      uint64_t now_tsc)
{
	uint32_t index = flow_table_find(table, key, hash);

	if (unlikely(index == FLOW_NONE))
		return flow_table_add(table, key, hash, now_tsc);
	if (unlikely(flow_is_idle(table, index, now_tsc)))
		flow_table_renew(table, index);
	return index;
}

static inline void flow_table_link_newest(struct flow_table *table, uint32_t index)
{
	struct flow_link *head = &table->links[table->capacity];

	table->links[index] = (struct flow_link){.older = head->older, .newer = table->capacity};
	table->links[head->older].newer = index;
	head->older = index;
}

static inline void flow_table_unlink(struct flow_table *table, uint32_t index)
{
	struct flow_link link = table->links[index];

	table->links[link.older].newer = link.newer;
	table->links[link.newer].older = link.older;
}

// A packet of the flow was seen.
static inline void flow_table_touch(struct flow_table *table, uint32_t index, uint64_t now_tsc)
{
	struct flow *flow = &table->flows[index];

	if (likely((int64_t)(now_tsc - flow->last_tsc) > 0))
		flow->last_tsc = now_tsc;
	if (table->links[table->capacity].older == index)
		return;
	flow_table_unlink(table, index);
	flow_table_link_newest(table, index);
}

// Forget flows that are idle, at most max of them, and note the time.
void flow_table_expire(struct flow_table *table, uint64_t now_tsc, uint32_t max);

// The flow that was not seen for longest; FLOW_NONE: there is none.
uint32_t flow_table_oldest(const struct flow_table *table);
