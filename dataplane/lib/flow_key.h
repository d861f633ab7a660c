// SPDX-License-Identifier: BSD-3-Clause
// What makes a flow: the 5-tuple of a packet, IPv4 or IPv6, in one form that can be compared, hashed and
// listed. As bytes (the hash of the load balancer and the order of lists are defined over them): source
// address (16; IPv4: its 4, then zeros), destination address (16), source port (2, network order),
// destination port (2), protocol (1), IP version (1), zeros (2).
//
// Pure. Ports are 0 where there are none: other protocols, and fragments but the first. VLANs make no flow.
#pragma once

#include <arpa/inet.h>

#include "lib/packet.h"

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
