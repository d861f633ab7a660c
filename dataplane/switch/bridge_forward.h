// SPDX-License-Identifier: BSD-3-Clause
// Where the frames of a burst go: learning, lookup and VLANs. Pure but for the table and the counters of the bridge;
// worker only.
//
// The header of a frame is read once, into a head; all is decided from that. Frames in a row that have the
// same head have the same fate: between two stations, the table is looked into once a burst.
#pragma once

#include <rte_byteorder.h>
#include <rte_prefetch.h>

#include "switch/bridge.h"

enum {
	BRIDGE_HEAD_BYTES = 16, // addresses, type, tag
	BRIDGE_ADDRESS_BYTES = 12,
	BRIDGE_UNTAGGED_BYTES_MIN = 14,
	BRIDGE_TAGGED_BYTES_MIN = 18,
	BRIDGE_TAG_BYTES = 4,
	BRIDGE_LENGTH_MAX = FRAME_LENGTH_MAX - BRIDGE_TAG_BYTES,
};

// What more is done for a frame than for one between known stations, in such frames (task_charge()).
enum { BRIDGE_CHARGE_LEARN = 3, BRIDGE_CHARGE_COPY = 1, BRIDGE_CHARGE_MBUF = 3 };

// The first bytes of a frame; what a shorter one has not is 0.
union bridge_head {
	uint8_t bytes[BRIDGE_HEAD_BYTES];
	uint64_t words[2];
};

struct bridge_fate {
	uint32_t targets; // ports, one bit each; 0: dropped
	uint16_t tci;     // VLAN-aware: of the tag where it leaves with one
	uint8_t verdict;
	bool tagged; // VLAN-aware: it came with a tag
};

struct bridge_burst {
	unsigned count;
	uint32_t any;  // ports that some frame goes to
	bool together; // all frames go to one port, the same
	union bridge_head heads[CONFIG_BURST_MAX];
	uint32_t lengths[CONFIG_BURST_MAX];
	struct bridge_fate fates[CONFIG_BURST_MAX]; // of no use without VLANs, if all go together
};

static inline uint64_t bridge_destination(const union bridge_head *head)
{
	return head->words[0] & MAC_BITS;
}

static inline uint64_t bridge_source(const union bridge_head *head)
{
	return head->words[0] >> 48 | (head->words[1] & UINT32_MAX) << 16;
}

static inline bool bridge_has_tag(const union bridge_head *head)
{
	return (uint16_t)(head->words[1] >> 32) == RTE_BE16(0x8100);
}

static inline uint16_t bridge_tci(const union bridge_head *head)
{
	return rte_be_to_cpu_16((uint16_t)(head->words[1] >> 48));
}

// Whether no bit of the addresses differs and, with VLANs, none of the tag.
static inline bool bridge_is_same(uint64_t differ0, uint64_t differ1, bool vlan)
{
	return differ0 == 0 && (vlan ? differ1 : (uint32_t)differ1) == 0;
}

static inline bool bridge_same(const union bridge_head *a, const union bridge_head *b, bool vlan)
{
	return bridge_is_same(a->words[0] ^ b->words[0], a->words[1] ^ b->words[1], vlan);
}

static inline bool bridge_is_reserved(uint64_t destination)
{
	return (destination & UINT64_C(0xf0ffffffffff)) == UINT64_C(0x000000c28001);
}

// The VLAN of a frame as it came, or -1: not allowed there. A tag with VLAN 0 is only a priority (s9.6).
static inline int bridge_classify(const struct bridge *b, unsigned in, const union bridge_head *head,
                                  struct bridge_fate *fate)
{
	uint16_t vlan = b->ports[in].untagged_vlan;

	fate->tagged = bridge_has_tag(head);
	fate->tci = 0;
	if (fate->tagged) {
		fate->tci = bridge_tci(head);
		if (fate->tci & (BRIDGE_VLANS - 1)) {
			vlan = fate->tci & (BRIDGE_VLANS - 1);
			if (!b->ports[in].trunk)
				return -1;
		}
	}
	if (vlan == 0 || !(b->vlans[vlan].members & UINT32_C(1) << in))
		return -1;
	fate->tci = (fate->tci & 0xf000) | vlan;
	return vlan;
}

static inline void bridge_learn(struct bridge *b, unsigned in, uint64_t source, uint16_t vlan,
                                uint64_t now_tsc)
{
	uint64_t key = mac_key(source, vlan);

	if (likely(source && !mac_is_group(source)))
		mac_table_learn(b->table, mac_table_bucket(b->table, key), key, in, now_tsc, &b->learning);
}

static inline void bridge_flood(const struct bridge *b, unsigned in, uint16_t vlan, struct bridge_fate *fate)
{
	fate->targets = b->vlans[vlan].members & ~(UINT32_C(1) << in);
	fate->verdict = fate->targets ? BRIDGE_FLOODED : BRIDGE_NO_MEMBER;
}

// One frame, long enough for its header.
static inline void bridge_decide(struct bridge *b, unsigned in, const union bridge_head *head,
                                 struct bridge_fate *fate, bool vlan, uint64_t now_tsc)
{
	uint64_t destination = bridge_destination(head), key;
	int of_vlan = vlan ? bridge_classify(b, in, head, fate) : 0;
	unsigned port = MAC_TABLE_NONE;

	fate->targets = 0;
	fate->verdict = BRIDGE_RESERVED;
	if (unlikely(bridge_is_reserved(destination)))
		return;
	fate->verdict = BRIDGE_VLAN;
	if (unlikely(of_vlan < 0))
		return;
	if (unlikely(b->secure)) {
		fate->verdict = (uint8_t)bridge_admit(b, in, bridge_source(head), (uint16_t)of_vlan, now_tsc);
		if (fate->verdict != BRIDGE_FORWARDED)
			return;
	} else {
		bridge_learn(b, in, bridge_source(head), (uint16_t)of_vlan, now_tsc);
	}
	key = mac_key(destination, (uint16_t)of_vlan);
	if (!mac_is_group(destination))
		port = mac_table_lookup(b->table, mac_table_bucket(b->table, key), key, now_tsc,
		                        &b->learning);
	if (port == MAC_TABLE_NONE) {
		bridge_flood(b, in, (uint16_t)of_vlan, fate);
	} else if (likely(port != in)) {
		fate->targets = UINT32_C(1) << port;
		fate->verdict = BRIDGE_FORWARDED;
	} else {
		fate->verdict = BRIDGE_HAIRPIN;
	}
}

// Lengths speak of one frame alone, whatever its head.
static inline bool bridge_length_fits(const union bridge_head *head, uint32_t length, bool vlan)
{
	if (unlikely(length < BRIDGE_TAGGED_BYTES_MIN))
		return length >= BRIDGE_UNTAGGED_BYTES_MIN && !bridge_has_tag(head);
	return !vlan || length <= BRIDGE_LENGTH_MAX;
}

static inline struct bridge_fate bridge_misfit(uint32_t length)
{
	return (struct bridge_fate){.verdict =
	                                    length < BRIDGE_TAGGED_BYTES_MIN ? BRIDGE_RUNT : BRIDGE_OVERSIZE};
}

// Without VLANs: with them the buckets are known only once the frame is classified.
static inline void bridge_prefetch(const struct bridge *b, const union bridge_head *head)
{
	rte_prefetch0(mac_table_bucket(b->table, mac_key(bridge_source(head), 0)));
	rte_prefetch0(mac_table_bucket(b->table, mac_key(bridge_destination(head), 0)));
}

static inline void bridge_count(struct bridge *b, const struct bridge_fate *fate, unsigned frames)
{
	b->verdicts[fate->verdict] += frames;
	if (fate->verdict == BRIDGE_FLOODED) {
		unsigned copies = frames * (unsigned)__builtin_popcount(fate->targets);

		b->flood_copies += copies;
		b->task.charge += BRIDGE_CHARGE_COPY * (copies - frames);
	}
}

// All frames of the burst have the same head, and nothing is wrong with their lengths.
static inline void bridge_decide_uniform(struct bridge *b, unsigned in, struct bridge_burst *burst, bool vlan,
                                         uint64_t now_tsc)
{
	struct bridge_fate *fates = burst->fates;

	bridge_decide(b, in, &burst->heads[0], &fates[0], vlan, now_tsc);
	bridge_count(b, &fates[0], burst->count);
	burst->any = fates[0].targets;
	burst->together = __builtin_popcount(burst->any) == 1;
	for (unsigned i = 1; (vlan || !burst->together) && i < burst->count; i++)
		fates[i] = fates[0];
}

static inline void bridge_decide_each(struct bridge *b, unsigned in, struct bridge_burst *burst, bool vlan,
                                      uint64_t now_tsc)
{
	uint32_t any = 0, all = UINT32_MAX;
	unsigned run = 0;    // frames before this one that share a fate and are not counted yet
	bool fitted = false; // the one before
	uint64_t slow = b->learning.slow;

	for (unsigned i = 0; !vlan && i < burst->count; i++)
		bridge_prefetch(b, &burst->heads[i]);
	for (unsigned i = 0; i < burst->count; i++, run++) {
		const union bridge_head *head = &burst->heads[i];
		struct bridge_fate *fate = &burst->fates[i];
		bool fits = bridge_length_fits(head, burst->lengths[i], vlan);

		if (fits && fitted && bridge_same(head, head - 1, vlan)) {
			*fate = *(fate - 1);
			continue;
		}
		if (run)
			bridge_count(b, fate - 1, run);
		run = 0;
		fitted = fits;
		if (likely(fits))
			bridge_decide(b, in, head, fate, vlan, now_tsc);
		else
			*fate = bridge_misfit(burst->lengths[i]);
		any |= fate->targets;
		all &= fate->targets;
	}
	bridge_count(b, &burst->fates[burst->count - 1], run);
	b->task.charge += BRIDGE_CHARGE_LEARN * (uint32_t)(b->learning.slow - slow);
	burst->any = any;
	burst->together = all == any && __builtin_popcount(all) == 1;
}

// Plain loops over arrays: the compiler makes vectors of them.
static inline bool bridge_is_uniform(const struct bridge_burst *burst, bool vlan)
{
	uint64_t differ0 = 0, differ1 = 0;
	uint32_t shortest = UINT32_MAX, longest = 0;

	for (unsigned i = 1; i < burst->count; i++) {
		differ0 |= burst->heads[i].words[0] ^ burst->heads[0].words[0];
		differ1 |= burst->heads[i].words[1] ^ burst->heads[0].words[1];
	}
	for (unsigned i = 0; i < burst->count; i++) {
		shortest = RTE_MIN(shortest, burst->lengths[i]);
		longest = RTE_MAX(longest, burst->lengths[i]);
	}
	return bridge_is_same(differ0, differ1, vlan) && shortest >= BRIDGE_TAGGED_BYTES_MIN &&
	       longest <= BRIDGE_LENGTH_MAX;
}

// Fates for the heads of a burst that came by port in, in order, and what they have in common.
static inline void bridge_decide_burst(struct bridge *b, unsigned in, struct bridge_burst *burst, bool vlan,
                                       uint64_t now_tsc)
{
	if (likely(bridge_is_uniform(burst, vlan)))
		bridge_decide_uniform(b, in, burst, vlan, now_tsc);
	else
		bridge_decide_each(b, in, burst, vlan, now_tsc);
}

// The head of a frame as it leaves: returns its bytes, which replace the first bridge_head_skip() ones of it.
static inline unsigned bridge_retag(const union bridge_head *head, const struct bridge_fate *fate,
                                    bool with_tag, uint8_t out[static BRIDGE_HEAD_BYTES])
{
	const uint16_t tag[2] = {RTE_BE16(0x8100), rte_cpu_to_be_16(fate->tci)};

	__builtin_memcpy(out, head->bytes, BRIDGE_ADDRESS_BYTES);
	if (!with_tag)
		return BRIDGE_ADDRESS_BYTES;
	__builtin_memcpy(out + BRIDGE_ADDRESS_BYTES, tag, sizeof(tag));
	return BRIDGE_ADDRESS_BYTES + sizeof(tag);
}

static inline unsigned bridge_head_skip(const struct bridge_fate *fate)
{
	return BRIDGE_ADDRESS_BYTES + (fate->tagged ? BRIDGE_TAG_BYTES : 0);
}

// Read the first bytes of the frames of a view, once. What a frame has not is 0.
void bridge_read_heads(const struct view *view, struct bridge_burst *burst);

// Frames of a burst as they leave by one port. The pieces of a batch are PIECES_MAX at most; each frame in a ring
// has one more, its head.
struct bridge_leaving {
	struct view part;
	unsigned piece_count;
	struct piece pieces[PIECES_MAX + 2 * CONFIG_BURST_MAX];
	uint8_t heads[CONFIG_BURST_MAX][BRIDGE_HEAD_BYTES];
};

// Give the frame that was added last its head, with a tag or without. Returns false without room for it before a frame
// in an mbuf.
bool bridge_set_head(struct bridge_leaving *to, const union bridge_head *head, const struct bridge_fate *fate,
                     bool with_tag);
