// SPDX-License-Identifier: BSD-3-Clause
// Memory, outside addresses and their ports, and the inside hosts that have sessions. A port is chosen in a
// bitmap of 1024 words, from a random one on (RFC 6056 s3.1): bounded, and exact when nearly all are taken.
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/hugepages.h"
#include "tasks/nat44/nat44.h"

enum { WORD_BITS = 64, WORDS = NAT44_PORTS / WORD_BITS };

void *nat44_memory(struct nat44 *nat, size_t bytes)
{
	void *memory = hugepages_alloc(bytes);

	if (memory)
		nat->memory_bytes += hugepages_alloc_bytes(bytes);
	return memory;
}

// xorshift64 (Marsaglia 2003): ports need not be unpredictable to more than a guess.
uint64_t nat44_random(struct nat44 *nat)
{
	nat->random ^= nat->random << 13;
	nat->random ^= nat->random >> 7;
	nat->random ^= nat->random << 17;
	return nat->random;
}

// --- Addresses -------------------------------------------------------------------------------------------

static int address_add(struct nat44 *nat, uint32_t host_order)
{
	rte_be32_t ip = htonl(host_order);
	unsigned at = ip * 0x9e3779b1u >> 23;
	struct nat44_address *address = &nat->addresses[nat->address_count];

	while (nat->slots[at].ip)
		at = (at + 1) % NAT44_SLOTS;
	nat->slots[at].ip = ip;
	nat->slots[at].index = nat->address_count++;
	address->ip = ip;
	for (unsigned i = 0; i < NAT44_PROTOCOLS; i++) {
		struct nat44_ports *ports = &address->ports[i];

		ports->session = nat44_memory(nat, NAT44_PORTS * sizeof(*ports->session));
		ports->taken = nat44_memory(nat, WORDS * sizeof(*ports->taken));
		if (!ports->session || !ports->taken)
			return -ENOMEM;
	}
	return 0;
}

static int addresses_open(struct nat44 *nat)
{
	const struct nat44_settings *settings = &nat->settings;
	int status = 0;

	for (unsigned i = 0; i < settings->outside.count && status == 0; i++)
		status = address_add(nat, settings->outside.addresses[i]);
	nat->pool_count = nat->address_count;
	for (unsigned i = 0; i < settings->forward.count && status == 0; i++) {
		uint32_t address = settings->forward.items[i].outside.address;

		if (nat44_address_find(nat, htonl(address)) < 0)
			status = address_add(nat, address);
	}
	return status;
}

int nat44_ports_open(struct nat44 *nat)
{
	uint32_t hosts = nat->settings.sessions_max + 1; // a host has a session
	unsigned bits = 64 - nat->bucket_shift;

	for (uint32_t port = nat->settings.port_min; port <= nat->settings.port_max; port++)
		nat->in_range[port & 1]++;
	nat->hosts = nat44_memory(nat, hosts * sizeof(*nat->hosts));
	nat->host_buckets = nat44_memory(nat, (sizeof(*nat->host_buckets) << bits));
	if (!nat->hosts || !nat->host_buckets)
		return -ENOMEM;
	for (uint32_t i = hosts - 1; i > 0; i--) {
		nat->hosts[i].chain = nat->free_host;
		nat->free_host = i;
	}
	return addresses_open(nat);
}

void nat44_ports_close(struct nat44 *nat)
{
	for (unsigned i = 0; i < nat->address_count; i++)
		for (unsigned j = 0; j < NAT44_PROTOCOLS; j++) {
			free(nat->addresses[i].ports[j].session);
			free(nat->addresses[i].ports[j].taken);
		}
	free(nat->hosts);
	free(nat->host_buckets);
}

// --- Ports -----------------------------------------------------------------------------------------------

static bool in_range(const struct nat44 *nat, unsigned port)
{
	return port >= nat->settings.port_min && port <= nat->settings.port_max;
}

bool nat44_port_is_free(const struct nat44 *nat, unsigned address, enum nat44_protocol protocol,
                        uint16_t port)
{
	const struct nat44_ports *ports = &nat->addresses[address].ports[protocol];

	return in_range(nat, port) && !(ports->taken[port / WORD_BITS] >> port % WORD_BITS & 1);
}

// Ports of a word of the bitmap that are in the range, free, and of a parity.
static uint64_t word_free(const struct nat44 *nat, const struct nat44_ports *ports, unsigned word,
                          unsigned parity)
{
	unsigned first = word * WORD_BITS;
	uint64_t mask = UINT64_C(0x5555555555555555) << parity;

	if (nat->settings.port_min > first)
		mask &= UINT64_MAX << (nat->settings.port_min - first);
	if (nat->settings.port_max < first + WORD_BITS - 1)
		mask &= UINT64_MAX >> (first + WORD_BITS - 1 - nat->settings.port_max);
	return mask & ~ports->taken[word];
}

static uint16_t scan(struct nat44 *nat, const struct nat44_ports *ports, unsigned parity)
{
	unsigned low = nat->settings.port_min / WORD_BITS;
	unsigned words = nat->settings.port_max / WORD_BITS - low + 1;
	uint64_t random = nat44_random(nat);
	unsigned start = (unsigned)((random >> 32) * words >> 32), turn = random % WORD_BITS;

	for (unsigned i = 0; i < words; i++) {
		unsigned word = low + (start + i) % words;
		uint64_t found = word_free(nat, ports, word, parity);

		if (found) {
			found = found >> turn | found << (WORD_BITS - turn) % WORD_BITS;
			return (uint16_t)(word * WORD_BITS +
			                  ((unsigned)__builtin_ctzll(found) + turn) % WORD_BITS);
		}
	}
	return 0;
}

uint16_t nat44_port_choose(struct nat44 *nat, unsigned address, enum nat44_protocol protocol, uint16_t wanted)
{
	const struct nat44_ports *ports = &nat->addresses[address].ports[protocol];

	if (nat44_port_is_free(nat, address, protocol, wanted))
		return wanted;
	for (unsigned i = 0; i < 2; i++) {
		unsigned parity = (wanted ^ i) & 1;

		if (ports->in_use[parity] < nat->in_range[parity])
			return scan(nat, ports, parity);
	}
	return 0;
}

void nat44_port_mark(struct nat44 *nat, unsigned address, enum nat44_protocol protocol, uint16_t port,
                     uint32_t session)
{
	struct nat44_ports *ports = &nat->addresses[address].ports[protocol];
	uint64_t bit = UINT64_C(1) << port % WORD_BITS;

	ports->session[htons(port)] = session;
	ports->taken[port / WORD_BITS] = (ports->taken[port / WORD_BITS] & ~bit) | (session ? bit : 0);
	if (in_range(nat, port))
		ports->in_use[port & 1] += session ? 1 : UINT32_MAX;
}

// --- Hosts -----------------------------------------------------------------------------------------------

static uint32_t *host_bucket(const struct nat44 *nat, rte_be32_t ip)
{
	return &nat->host_buckets[nat44_hash(nat, ip)];
}

uint32_t nat44_host_find(const struct nat44 *nat, rte_be32_t ip)
{
	uint32_t index = *host_bucket(nat, ip);

	while (index && nat->hosts[index].ip != ip)
		index = nat->hosts[index].chain;
	return index;
}

uint32_t nat44_host_add(struct nat44 *nat, rte_be32_t ip, unsigned address)
{
	uint32_t index = nat->free_host, *bucket = host_bucket(nat, ip);
	struct nat44_host *host = &nat->hosts[index];

	nat->free_host = host->chain;
	*host = (struct nat44_host){.ip = ip, .chain = *bucket, .address = address};
	*bucket = index;
	return index;
}

void nat44_host_leave(struct nat44 *nat, uint32_t index)
{
	struct nat44_host *host = &nat->hosts[index];
	uint32_t *link = host_bucket(nat, host->ip);

	if (--host->sessions > 0)
		return;
	while (*link != index)
		link = &nat->hosts[*link].chain;
	*link = host->chain;
	host->chain = nat->free_host;
	nat->free_host = index;
}
