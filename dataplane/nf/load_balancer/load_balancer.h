// SPDX-License-Identifier: BSD-3-Clause
// The parts of load_balancer: the data path (load_balancer.c); settings, tables and methods
// (load_balancer_services.c).
//
// A service owns a Maglev table of numbers of its backends, which lie together in lb->backends, by name. A
// connection is a flow; value[0] is the number of its backend in lb->backends, plus 1.
#pragma once

#include <rte_hash_crc.h>
#include <stdbool.h>
#include <stdint.h>

#include "table/flow_table.h"
#include "base/random.h"
#include "nf/vnf.h"

// Maglev's consistent hashing (Eisenbud et al., NSDI 2016, section 3.4): a lookup table of prime size that is
// shared out evenly, and changes little when a backend comes or goes. Pure; memory is the caller's.
//
// Hashes, so that others build the same table: of a name, Jenkins' lookup3 (hashlittle) with the initial
// values 0 for the offset and 1 for the skip; of a flow, CRC-32C (maglev_hash).

enum {
	MAGLEV_NONE = UINT16_MAX,
	MAGLEV_BACKENDS_MAX = 4096,
	MAGLEV_SIZE_MIN = 101,
	MAGLEV_SIZE_MAX = 1 << 20
};

struct maglev_backend {
	uint32_t offset, skip; // of its permutation
	uint32_t weight;       // turns that it takes where the others take one each; 0: out
	uint32_t at;           // scratch: where its permutation has come to
};

// The paper's hash of the 5-tuple: CRC-32C over the bytes of the key, from 0, not inverted at either end.
static inline uint32_t maglev_hash(const struct flow_key *key)
{
	uint32_t hash = 0;

	for (unsigned i = 0; i < FLOW_KEY_WORDS; i++)
		hash = rte_hash_crc_8byte(key->words[i], hash);
	return hash;
}

enum {
	LB_SERVICES_MAX = 256,
	LB_BACKENDS_MAX = 16384,
	LB_BUCKETS = 1024,
	LB_NONE = UINT16_MAX,
	LB_IPV6_NEXT = 6
};
enum lb_protocol { LB_UDP, LB_TCP, LB_ANY };

struct lb_backend {
	uint64_t packets, bytes, connections;
	uint8_t mac[RTE_ETHER_ADDR_LEN];
	bool up;
	char name[CONFIG_NAME_MAX];
	struct maglev_backend maglev;
	uint32_t weight;
	uint32_t slots; // entries of its service's table
};

struct lb_service {
	uint64_t address[2];       // as in a key; IPv4: words[1] is 0
	uint8_t version, protocol; // protocol: 0 is any
	rte_be16_t port;           // 0: all, also what has none
	bool live;                 // a backend is up
	uint16_t next;             // service of the same bucket, in the order of the settings, or LB_NONE
	uint16_t count;            // of its backends
	uint32_t first;            // in lb->backends
	uint16_t *table;           // of table_size numbers, from first on
};

struct lb_settings {
	struct vnf_settings vnf;
	uint32_t table_size, connections, connection_timeout_s;
	int other; // 0: forward, 1: drop
	unsigned service_count;
	uint32_t backend_count;
	struct lb_service *services;
	struct lb_backend *backends;
};

// What is done with frames, beside what is counted for each backend.
struct lb_counts {
	uint64_t new_connections, // begun
	        moved,            // connections whose backend was gone: begun again with another one
	        untracked,        // packets that found the table of connections full
	        fragments,        // balanced by 3-tuple
	        other;            // packets to no service that were forwarded
};

struct lb {
	struct vnf vnf;
	struct lb_settings settings;
	struct flow_table connections; // capacity 0: none
	struct lb_counts counts;
	uint16_t buckets[LB_BUCKETS]; // first service of those whose address has this hash
};

extern const struct lb_settings lb_defaults;
extern const struct field lb_fields[];

// As in struct vnf_ops and struct task_ops.
int lb_settings_check(const struct config_task *config, const json_t *object, void *out, const char *where,
                      char *error);
void lb_settings_free(void *out);

// Make the tables of all services, and what finds them. Returns 0 or -ENOMEM.
int lb_build(struct lb *lb);

static inline unsigned lb_bucket(uint64_t a, uint64_t b)
{
	return (unsigned)(((a ^ b * 3) * RANDOM_GOLDEN) >> 54);
}

// The first service that a packet of this key is for, or LB_NONE. A port that is none is 0, and no service's.
static inline unsigned lb_find(const struct lb *lb, const struct flow_key *key)
{
	uint8_t protocol = (uint8_t)(key->words[4] >> 32), version = (uint8_t)(key->words[4] >> 40);
	rte_be16_t port = (rte_be16_t)(key->words[4] >> 16);
	unsigned i = lb->buckets[lb_bucket(key->words[2], key->words[3])];

	for (; i != LB_NONE; i = lb->settings.services[i].next) {
		const struct lb_service *service = &lb->settings.services[i];

		if (service->address[0] == key->words[2] && service->address[1] == key->words[3] &&
		    service->version == version && (!service->protocol || service->protocol == protocol) &&
		    (!service->port || service->port == port))
			break;
	}
	return i;
}

extern const struct counter lb_counters[];
void lb_report(const struct task *task, json_t *object, uint64_t now_tsc);
extern const struct task_method lb_methods[];

// The protocol that all fragments of a datagram name: of IPv6 the next header of the Fragment header, which
// may be one more extension. packet_parse() has found that the headers are there. In place a peer may write
// meanwhile, so what the lengths say now is bounded by l4 again: 255 (reserved) where they lead beyond it.
static inline uint8_t lb_fragment_protocol(const uint8_t *data, const struct packet *p)
{
	const uint8_t *ip = data + p->l3;
	unsigned at = sizeof(struct rte_ipv6_hdr);
	uint8_t next = ip[LB_IPV6_NEXT];

	if (p->version == 4)
		return p->protocol;
	while (next != IPPROTO_FRAGMENT && p->l3 + at < p->l4) {
		const uint8_t *extension = ip + at;

		at += next == IPPROTO_AH ? (extension[1] + 2u) * 4 : (extension[1] + 1u) * 8;
		next = extension[0];
	}
	return p->l3 + at < p->l4 ? ip[at] : UINT8_MAX;
}
