// SPDX-License-Identifier: BSD-3-Clause
// nat44, inside: source NAT of UDP, TCP and ICMP queries with ports (NAPT, RFC 3022). A session is a mapping
// of one inside endpoint to one outside endpoint, whatever it talks to (RFC 4787 REQ-1, REQ-8). Sessions lie
// in one array; they are found by inside endpoint in chains from a keyed hash, by outside endpoint by direct
// index, and in the order of their last use in a list for each timeout.
//
// All memory is allocated and touched at open. Threads as vnf.h says. Not covered: reassembly, filters by
// remote address, one state for each of several TCP connections of one endpoint, application gateways.
#pragma once

#include <rte_branch_prediction.h>

#include "base/packet.h"
#include "base/random.h"
#include "nf/vnf.h"

// The settings of nat44 (docs/network-functions.md) as a C struct. Passive data; needs no EAL.

enum {
	NAT44_OUTSIDE_MAX = 64,
	NAT44_INSIDE_MAX = 64,
	NAT44_FORWARD_MAX = 256,
	NAT44_FORWARD_ADDRESSES_MAX = 64, // of forwards, that are not in "outside"
	NAT44_SESSIONS_MAX = 1 << 23,
};

enum nat44_protocol { NAT44_UDP, NAT44_TCP, NAT44_ICMP, NAT44_PROTOCOLS };

struct nat44_prefix {
	uint32_t address, mask; // host byte order
};

struct nat44_endpoint {
	uint32_t address; // host byte order
	uint16_t port;
};

struct nat44_forward {
	int protocol; // enum nat44_protocol
	struct nat44_endpoint outside, inside;
};

struct nat44_settings {
	struct vnf_settings vnf;
	struct nat44_outside {
		unsigned count;
		uint32_t addresses[NAT44_OUTSIDE_MAX]; // host byte order
	} outside;
	struct nat44_inside {
		unsigned count;
		struct nat44_prefix prefixes[NAT44_INSIDE_MAX];
	} inside;
	struct nat44_forwards {
		unsigned count;
		struct nat44_forward items[NAT44_FORWARD_MAX];
	} forward;
	uint32_t port_min, port_max;
	uint32_t sessions_max, sessions_per_host; // the latter 0: no limit
	uint32_t udp_s, tcp_established_s, tcp_transitory_s, icmp_s;
	bool hairpin, tcp_loose;
};

extern const struct nat44_settings nat44_defaults;
extern const struct field nat44_fields[];

// As in struct vnf_ops.
int nat44_settings_check(const struct config_task *config, const json_t *object, void *out, const char *where,
                         char *error);

enum { NAT44_INSIDE, NAT44_OUTSIDE }; // indexes of ports[]

enum nat44_drop {
	NAT44_IPV6 = PACKET_FAULTS,
	NAT44_FRAGMENT,
	NAT44_PROTOCOL,   // neither UDP, TCP nor ICMP
	NAT44_NOT_INSIDE, // from an inside host that is not to be translated
	NAT44_NOT_OURS,   // from outside, for an address that is none of the NAT's
	NAT44_ICMP_TYPE,  // neither a query in its direction nor an error about a packet
	NAT44_ICMP_ERROR, // checksum or embedded packet is wrong (RFC 5508 REQ-3)
	NAT44_NO_SESSION, // from inside: cannot begin one (TCP RST, an ICMP error)
	NAT44_NO_MAPPING, // to an outside endpoint that is mapped to nobody
	NAT44_HAIRPIN,    // from inside to an outside address, with hairpinning off
	NAT44_TABLE_FULL,
	NAT44_HOST_FULL, // sessions_per_host
	NAT44_NO_PORT,   // all of the host's outside address are in use
	NAT44_DROPS,
};

// A timeout each; sessions of one class are listed in order of their last use.
enum nat44_class {
	NAT44_CLASS_UDP,
	NAT44_CLASS_ESTABLISHED,
	NAT44_CLASS_TRANSITORY,
	NAT44_CLASS_ICMP,
	NAT44_CLASSES,
	NAT44_CLASS_STATIC = NAT44_CLASSES, // in no list, never expires
};

enum nat44_state {     // of TCP
	NAT44_OPENING, // nothing came back yet
	NAT44_ESTABLISHED,
	NAT44_CLOSING, // FIN both ways: not refreshed any more (RFC 6146 s3.5.2.2)
	NAT44_RESET,   // RST: as good as new, if anything but a RST follows (RFC 7857 s2.2)
	NAT44_SHARED,  // several connections of one endpoint: only being idle ends it
	NAT44_STATIC,
	NAT44_STATES,
};

struct nat44_session {
	uint64_t key;        // inside endpoint (nat44_key); 0: free
	uint64_t used_tsc;   // last refresh: expires its timeout later, to the cycle
	uint64_t listed_tsc; // put at the new end of its list; used_tsc is less than granule_tsc later
	uint32_t chain;      // next of its bucket, or of the free ones
	uint32_t older, newer;
	uint32_t host; // 0: static
	rte_be32_t outside_ip;
	rte_be32_t remote_ip; // of the TCP connection that the state is of
	rte_be16_t outside_port, remote_port;
	uint16_t l3_out, l4_out; // what a source that becomes the outside endpoint adds to the checksums
	uint16_t l3_in, l4_in;   // what a destination that becomes the inside endpoint adds
	uint8_t address;         // index of addresses[]
	uint8_t class, state, fins;
};
static_assert(sizeof(struct nat44_session) == 64, "a cache line");

struct nat44_host {
	rte_be32_t ip;
	uint32_t chain;
	uint32_t sessions; // 0: free
	uint32_t address;  // paired pooling (RFC 4787 REQ-2)
};

enum { NAT44_ADDRESSES_MAX = NAT44_OUTSIDE_MAX + NAT44_FORWARD_ADDRESSES_MAX, NAT44_PORTS = 1 << 16 };

struct nat44_ports {
	uint32_t *session;  // by outside port as it lies in memory; 0: none
	uint64_t *taken;    // a bit for each port, host byte order
	uint32_t in_use[2]; // even, odd ones of the range
};

struct nat44_address {
	rte_be32_t ip;
	struct nat44_ports ports[NAT44_PROTOCOLS];
};

enum { NAT44_SLOTS = 512 };

struct nat44 {
	struct vnf vnf;
	struct nat44_session *sessions; // [0] is none
	uint32_t *buckets;
	unsigned bucket_shift; // of a 64-bit hash
	uint64_t seed[2];
	bool hairpin, tcp_loose;
	uint64_t granule_tsc, timeout_tsc[NAT44_CLASSES + 1];
	struct {
		rte_be32_t ip; // 0: empty
		uint32_t index;
	} slots[NAT44_SLOTS]; // of addresses, by ip
	struct nat44_address addresses[NAT44_ADDRESSES_MAX];

	uint32_t free_session, none; // none: always 0, what is not looked up in the pass of prefetches
	struct {
		uint32_t oldest, newest;
	} lists[NAT44_CLASSES];
	struct nat44_host *hosts; // [0] is none
	uint32_t *host_buckets, free_host;
	uint32_t in_range[2]; // even, odd ports
	unsigned address_count, pool_count;
	uint64_t random, memory_bytes;
	struct nat44_settings settings;

	uint64_t live[NAT44_PROTOCOLS]; // without static ones
	uint64_t created, expired, hairpinned;
};

static inline uint64_t nat44_key(rte_be32_t ip, rte_be16_t port, enum nat44_protocol protocol)
{
	return (uint64_t)ip << 32 | (uint64_t)port << 16 | (uint64_t)(protocol + 1);
}

static inline rte_be32_t nat44_key_ip(uint64_t key)
{
	return (rte_be32_t)(key >> 32);
}

static inline rte_be16_t nat44_key_port(uint64_t key)
{
	return (rte_be16_t)(key >> 16);
}

static inline enum nat44_protocol nat44_key_protocol(uint64_t key)
{
	return (enum nat44_protocol)((key & 0xffff) - 1);
}

// Which chain a number hangs in. The seed is secret: an inside host cannot make its sessions collide.
static inline uint64_t nat44_hash(const struct nat44 *nat, uint64_t key)
{
	uint64_t h = (key ^ nat->seed[0]) * nat->seed[1];

	return (h ^ h >> 32) * RANDOM_GOLDEN >> nat->bucket_shift;
}

// The index of one of the NAT's own addresses, or -1.
static inline int nat44_address_find(const struct nat44 *nat, rte_be32_t ip)
{
	unsigned at = ip * RANDOM_GOLDEN32 >> 23;

	for (; nat->slots[at].ip; at = (at + 1) % NAT44_SLOTS)
		if (nat->slots[at].ip == ip)
			return (int)nat->slots[at].index;
	return -1;
}

// Put a session at the new end of the list of a class, which may be another than before, as used now.
void nat44_relist(struct nat44 *nat, struct nat44_session *s, enum nat44_class class, uint64_t now_tsc);

// Outbound traffic keeps a session (RFC 4787 REQ-6). It moves in its list once in a granule only, for that
// touches its neighbours.
static inline void nat44_refresh(struct nat44 *nat, struct nat44_session *s, uint64_t now_tsc)
{
	s->used_tsc = now_tsc;
	if (unlikely(now_tsc >= s->listed_tsc + nat->granule_tsc))
		nat44_relist(nat, s, s->class, now_tsc);
}

void nat44_expire(struct nat44 *nat, struct nat44_session *s);

static inline bool nat44_is_over(const struct nat44 *nat, const struct nat44_session *s, uint64_t now_tsc)
{
	return now_tsc >= s->used_tsc + nat->timeout_tsc[s->class];
}

// The session of an inside endpoint, NULL without one. cell: the bucket of key.
static inline struct nat44_session *nat44_find_inside(struct nat44 *nat, const uint32_t *cell, uint64_t key,
                                                      uint64_t now_tsc)
{
	struct nat44_session *s;

	for (uint32_t index = *cell; index; index = s->chain) {
		s = &nat->sessions[index];
		if (likely(s->key == key)) {
			if (likely(!nat44_is_over(nat, s, now_tsc)))
				return s;
			nat44_expire(nat, s);
			return NULL;
		}
	}
	return NULL;
}

// The session of an outside endpoint, by its cell in addresses[].ports[].session.
static inline struct nat44_session *nat44_find_outside(struct nat44 *nat, const uint32_t *cell,
                                                       uint64_t now_tsc)
{
	struct nat44_session *s = &nat->sessions[*cell];

	if (unlikely(*cell == 0))
		return NULL;
	if (likely(!nat44_is_over(nat, s, now_tsc)))
		return s;
	nat44_expire(nat, s);
	return NULL;
}

// --- nat44_table.c ---------------------------------------------------------------------------------------

int nat44_table_open(struct nat44 *nat);
void nat44_table_close(struct nat44 *nat);

// What a new session of an inside endpoint will look at.
static inline void nat44_create_prefetch(const struct nat44 *nat, uint64_t key)
{
	__builtin_prefetch(&nat->host_buckets[nat44_hash(nat, nat44_key_ip(key))], 1);
}

// A session for an inside endpoint that has none. NULL and why not in *drop.
struct nat44_session *nat44_create(struct nat44 *nat, uint64_t key, uint64_t now_tsc, enum nat44_drop *drop);

// Take over a session of another NAT, if it fits here, as the one of its class that is idle longest.
bool nat44_take_over(struct nat44 *nat, const struct nat44_session *old);

// End a dynamic session.
void nat44_remove(struct nat44 *nat, struct nat44_session *s);

// End what is over, looking at no more than looks sessions of each class.
void nat44_reap(struct nat44 *nat, uint64_t now_tsc, unsigned looks);

// --- nat44_control.c --------------------------------------------------------------------------------------

void nat44_adopt(struct task *task, struct task *old);
extern const struct counter nat44_counters[];
void nat44_report(const struct task *task, json_t *object, uint64_t now_tsc);
extern const struct task_method nat44_methods[];
