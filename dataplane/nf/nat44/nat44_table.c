// SPDX-License-Identifier: BSD-3-Clause
// Sessions: made, found, listed by last use, ended. All O(1), but for chains of the hash, which are short,
// and the choice of a port.
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hugepages.h"
#include "base/random.h"
#include "nf/nat44/nat44.h"

// --- Ports -----------------------------------------------------------------------------------------------

// Memory, outside addresses and their ports, and the inside hosts that have sessions. A port is chosen in a
// bitmap of 1024 words, from a random one on (RFC 6056 s3.1): bounded, and exact when nearly all are taken.

enum { WORD_BITS = 64, WORDS = NAT44_PORTS / WORD_BITS };

// Allocated, zeroed and touched; counted in memory_bytes. NULL without.
static void *nat44_memory(struct nat44 *nat, size_t bytes)
{
	void *memory = hugepages_alloc(bytes);

	if (memory)
		nat->memory_bytes += hugepages_alloc_bytes(bytes);
	return memory;
}

// xorshift64 (Marsaglia 2003): ports need not be unpredictable to more than a guess.
static uint64_t nat44_random(struct nat44 *nat)
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
	unsigned at = ip * RANDOM_GOLDEN32 >> 23;
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

static int nat44_ports_open(struct nat44 *nat)
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

static void nat44_ports_close(struct nat44 *nat)
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

static bool nat44_port_is_free(const struct nat44 *nat, unsigned address, enum nat44_protocol protocol,
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

// An outside port, host byte order: the wanted one if it is free (RFC 4787 s4.2.1), else one of its parity (REQ-4), else any.
// 0 if the range is used up.
static uint16_t nat44_port_choose(struct nat44 *nat, unsigned address, enum nat44_protocol protocol,
                                  uint16_t wanted)
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

static void nat44_port_mark(struct nat44 *nat, unsigned address, enum nat44_protocol protocol, uint16_t port,
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

// The index of a host that has sessions, or 0.
static uint32_t nat44_host_find(const struct nat44 *nat, rte_be32_t ip)
{
	uint32_t index = *host_bucket(nat, ip);

	while (index && nat->hosts[index].ip != ip)
		index = nat->hosts[index].chain;
	return index;
}

static uint32_t nat44_host_add(struct nat44 *nat, rte_be32_t ip, unsigned address)
{
	uint32_t index = nat->free_host, *bucket = host_bucket(nat, ip);
	struct nat44_host *host = &nat->hosts[index];

	nat->free_host = host->chain;
	*host = (struct nat44_host){.ip = ip, .chain = *bucket, .address = address};
	*bucket = index;
	return index;
}

// One session less.
static void nat44_host_leave(struct nat44 *nat, uint32_t index)
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

// --- Sessions --------------------------------------------------------------------------------------------

enum {
	CHAIN_MAX = 64,    // nobody who does not know the seed gets near it
	CHARGE_CREATE = 2, // see task_charge()
	REAP_CREATE = 2,   // each new session pays for the end of two
	REAP_SHORT = 64,   // before one is refused
};

// --- Lists -----------------------------------------------------------------------------------------------

static void list_unlink(struct nat44 *nat, struct nat44_session *s)
{
	if (s->older)
		nat->sessions[s->older].newer = s->newer;
	else
		nat->lists[s->class].oldest = s->newer;
	if (s->newer)
		nat->sessions[s->newer].older = s->older;
	else
		nat->lists[s->class].newest = s->older;
}

static void list_append(struct nat44 *nat, struct nat44_session *s)
{
	uint32_t index = (uint32_t)(s - nat->sessions), newest = nat->lists[s->class].newest;

	s->older = newest;
	s->newer = 0;
	if (newest)
		nat->sessions[newest].newer = index;
	else
		nat->lists[s->class].oldest = index;
	nat->lists[s->class].newest = index;
}

static void list_prepend(struct nat44 *nat, struct nat44_session *s)
{
	uint32_t index = (uint32_t)(s - nat->sessions), oldest = nat->lists[s->class].oldest;

	s->newer = oldest;
	s->older = 0;
	if (oldest)
		nat->sessions[oldest].older = index;
	else
		nat->lists[s->class].newest = index;
	nat->lists[s->class].oldest = index;
}

void nat44_relist(struct nat44 *nat, struct nat44_session *s, enum nat44_class class, uint64_t now_tsc)
{
	list_unlink(nat, s);
	s->class = (uint8_t) class;
	s->used_tsc = s->listed_tsc = now_tsc;
	list_append(nat, s);
}

// Where a list begins those are that were listed first, and used within a granule after.
static void reap_class(struct nat44 *nat, unsigned class, uint64_t now_tsc, unsigned looks)
{
	uint32_t next, index = nat->lists[class].oldest;

	for (; index && looks > 0; index = next, looks--) {
		struct nat44_session *s = &nat->sessions[index];

		if (now_tsc < s->listed_tsc + nat->timeout_tsc[class])
			return;
		next = s->newer;
		if (nat44_is_over(nat, s, now_tsc))
			nat44_expire(nat, s);
	}
}

void nat44_reap(struct nat44 *nat, uint64_t now_tsc, unsigned looks)
{
	for (unsigned class = 0; class < NAT44_CLASSES; class ++)
		reap_class(nat, class, now_tsc, looks);
}

// --- In and out of the table -----------------------------------------------------------------------------

static bool chain_is_long(const struct nat44 *nat, uint64_t key)
{
	unsigned length = 0;

	for (uint32_t i = nat->buckets[nat44_hash(nat, key)]; i; i = nat->sessions[i].chain)
		length++;
	return length >= CHAIN_MAX;
}

// What replacing one endpoint by another adds to a checksum, folded: never 0, for no address of an outside
// endpoint is (RFC 1624 eqn. 3). As words lie in memory.
static uint16_t change(rte_be32_t was_ip, uint32_t was_port, rte_be32_t is_ip, uint32_t is_port)
{
	uint32_t sum = (~was_ip & 0xffff) + (~was_ip >> 16) + (is_ip & 0xffff) + (is_ip >> 16);

	sum += (uint16_t)~was_port + is_port;
	return (uint16_t)checksum_fold32(sum);
}

static void endpoints_set(struct nat44 *nat, struct nat44_session *s, uint64_t key, unsigned address,
                          uint16_t port)
{
	rte_be32_t inside_ip = nat44_key_ip(key), outside_ip = nat->addresses[address].ip;
	rte_be16_t inside_port = nat44_key_port(key), outside_port = htons(port);

	s->key = key;
	s->address = (uint8_t)address;
	s->outside_ip = outside_ip;
	s->outside_port = outside_port;
	s->l3_out = change(inside_ip, 0, outside_ip, 0);
	s->l3_in = change(outside_ip, 0, inside_ip, 0);
	s->l4_out = change(inside_ip, inside_port, outside_ip, outside_port);
	s->l4_in = change(outside_ip, outside_port, inside_ip, inside_port);
}

// The next free session, in its chain and at its port, in no list.
static struct nat44_session *session_take(struct nat44 *nat, uint64_t key, unsigned address, uint16_t port)
{
	uint32_t index = nat->free_session, *bucket = &nat->buckets[nat44_hash(nat, key)];
	struct nat44_session *s = &nat->sessions[index];

	nat->free_session = s->chain;
	memset(s, 0, sizeof(*s));
	endpoints_set(nat, s, key, address, port);
	s->chain = *bucket;
	*bucket = index;
	nat44_port_mark(nat, address, nat44_key_protocol(key), port, index);
	return s;
}

static struct nat44_session *session_add(struct nat44 *nat, uint64_t key, uint32_t host, unsigned address,
                                         uint16_t port)
{
	struct nat44_session *s = session_take(nat, key, address, port);

	s->host = host ? host : nat44_host_add(nat, nat44_key_ip(key), address);
	nat->hosts[s->host].sessions++;
	nat->live[nat44_key_protocol(key)]++;
	return s;
}

void nat44_remove(struct nat44 *nat, struct nat44_session *s)
{
	uint32_t index = (uint32_t)(s - nat->sessions), *link = &nat->buckets[nat44_hash(nat, s->key)];

	while (*link != index)
		link = &nat->sessions[*link].chain;
	*link = s->chain;
	list_unlink(nat, s);
	nat44_host_leave(nat, s->host);
	nat44_port_mark(nat, s->address, nat44_key_protocol(s->key), ntohs(s->outside_port), 0);
	nat->live[nat44_key_protocol(s->key)]--;
	s->key = 0;
	s->chain = nat->free_session;
	nat->free_session = index;
}

void nat44_expire(struct nat44 *nat, struct nat44_session *s)
{
	nat->expired++;
	nat44_remove(nat, s);
}

// --- A new one -------------------------------------------------------------------------------------------

static bool is_inside(const struct nat44 *nat, rte_be32_t ip)
{
	const struct nat44_inside *inside = &nat->settings.inside;

	for (unsigned i = 0; i < inside->count; i++)
		if ((ntohl(ip) & inside->prefixes[i].mask) == inside->prefixes[i].address)
			return true;
	return false;
}

// Why an inside endpoint gets no session whatever its port, or NAT44_DROPS.
static enum nat44_drop refusal(const struct nat44 *nat, uint64_t key, uint32_t host)
{
	uint32_t limit = nat->settings.sessions_per_host;

	if (!is_inside(nat, nat44_key_ip(key)))
		return NAT44_NOT_INSIDE;
	if (limit && host && nat->hosts[host].sessions >= limit)
		return NAT44_HOST_FULL;
	if (!nat->free_session || chain_is_long(nat, key))
		return NAT44_TABLE_FULL;
	return NAT44_DROPS;
}

// A port at the host's address; a new host gets an address by its own, or the next that has a port.
static uint16_t choose(struct nat44 *nat, uint64_t key, uint32_t host, unsigned *address)
{
	enum nat44_protocol protocol = nat44_key_protocol(key);
	unsigned tries = host ? 1 : nat->pool_count;
	uint32_t mixed = ntohl(nat44_key_ip(key)) * RANDOM_GOLDEN32;
	uint16_t port = 0;

	*address = host ? nat->hosts[host].address : (unsigned)((uint64_t)mixed * nat->pool_count >> 32);
	for (unsigned i = 0; i < tries && !port; i++) {
		*address = (*address + (i > 0)) % (host ? nat->address_count : nat->pool_count);
		port = nat44_port_choose(nat, *address, protocol, ntohs(nat44_key_port(key)));
	}
	return port;
}

static struct nat44_session *try(struct nat44 *nat, uint64_t key, uint64_t now_tsc, enum nat44_drop *drop)
{
	static const uint8_t classes[] = {[NAT44_UDP] = NAT44_CLASS_UDP,
	                                  [NAT44_TCP] = NAT44_CLASS_TRANSITORY,
	                                  [NAT44_ICMP] = NAT44_CLASS_ICMP};
	uint32_t host = nat44_host_find(nat, nat44_key_ip(key));
	struct nat44_session *s;
	unsigned address;
	uint16_t port;

	*drop = refusal(nat, key, host);
	if (*drop != NAT44_DROPS)
		return NULL;
	port = choose(nat, key, host, &address);
	if (!port) {
		*drop = NAT44_NO_PORT;
		return NULL;
	}
	s = session_add(nat, key, host, address, port);
	s->class = classes[nat44_key_protocol(key)];
	s->used_tsc = s->listed_tsc = now_tsc;
	list_append(nat, s);
	nat->created++;
	return s;
}

struct nat44_session *nat44_create(struct nat44 *nat, uint64_t key, uint64_t now_tsc, enum nat44_drop *drop)
{
	struct nat44_session *s;

	nat->vnf.task.charge += CHARGE_CREATE;
	nat44_reap(nat, now_tsc, REAP_CREATE);
	s = try(nat, key, now_tsc, drop);
	if (s || *drop == NAT44_NOT_INSIDE)
		return s;
	nat44_reap(nat, now_tsc, REAP_SHORT);
	return try(nat, key, now_tsc, drop);
}

// --- From another NAT ------------------------------------------------------------------------------------

// Whether an inside endpoint has a session, over or not.
static bool is_known(const struct nat44 *nat, uint64_t key)
{
	uint32_t index = nat->buckets[nat44_hash(nat, key)];

	while (index && nat->sessions[index].key != key)
		index = nat->sessions[index].chain;
	return index;
}

bool nat44_take_over(struct nat44 *nat, const struct nat44_session *old)
{
	int address = nat44_address_find(nat, old->outside_ip);
	uint32_t host = nat44_host_find(nat, nat44_key_ip(old->key));
	uint16_t port = ntohs(old->outside_port);
	struct nat44_session *s;

	if (address < 0 || (unsigned)address >= nat->pool_count || is_known(nat, old->key) ||
	    (host && nat->hosts[host].address != (unsigned)address) ||
	    refusal(nat, old->key, host) != NAT44_DROPS ||
	    !nat44_port_is_free(nat, (unsigned)address, nat44_key_protocol(old->key), port))
		return false;
	s = session_add(nat, old->key, host, (unsigned)address, port);
	s->used_tsc = old->used_tsc;
	s->listed_tsc = old->listed_tsc;
	s->remote_ip = old->remote_ip;
	s->remote_port = old->remote_port;
	s->class = old->class;
	s->state = old->state;
	s->fins = old->fins;
	list_prepend(nat, s);
	return true;
}

// --- Opened and closed -----------------------------------------------------------------------------------

static void forwards_add(struct nat44 *nat)
{
	const struct nat44_forwards *forwards = &nat->settings.forward;

	for (unsigned i = 0; i < forwards->count; i++) {
		const struct nat44_forward *f = &forwards->items[i];
		uint64_t key = nat44_key(htonl(f->inside.address), htons(f->inside.port),
		                         (enum nat44_protocol)f->protocol);
		unsigned address = (unsigned)nat44_address_find(nat, htonl(f->outside.address));
		struct nat44_session *s = session_take(nat, key, address, f->outside.port);

		s->class = NAT44_CLASS_STATIC;
		s->state = NAT44_STATIC;
		s->listed_tsc = INT64_MAX; // never moved in a list
	}
}

static void timeouts_set(struct nat44 *nat)
{
	const struct nat44_settings *settings = &nat->settings;
	uint64_t hz = clock_hz();

	nat->granule_tsc = hz;
	nat->timeout_tsc[NAT44_CLASS_UDP] = settings->udp_s * hz;
	nat->timeout_tsc[NAT44_CLASS_ESTABLISHED] = settings->tcp_established_s * hz;
	nat->timeout_tsc[NAT44_CLASS_TRANSITORY] = settings->tcp_transitory_s * hz;
	nat->timeout_tsc[NAT44_CLASS_ICMP] = settings->icmp_s * hz;
	nat->timeout_tsc[NAT44_CLASS_STATIC] = INT64_MAX;
}

static void seed(struct nat44 *nat)
{
	nat->seed[0] = random_secret();
	nat->seed[1] = random_secret() | 1;
	nat->random = random_secret() | 1;
}

int nat44_table_open(struct nat44 *nat)
{
	uint32_t count = nat->settings.sessions_max + nat->settings.forward.count + 1;
	unsigned bits = 64 - (unsigned)__builtin_clzll(count);
	int status;

	nat->bucket_shift = 63 - bits; // two buckets a session, or up to four
	nat->sessions = nat44_memory(nat, count * sizeof(*nat->sessions));
	nat->buckets = nat44_memory(nat, sizeof(*nat->buckets) << (bits + 1));
	if (!nat->sessions || !nat->buckets)
		return -ENOMEM;
	seed(nat);
	for (uint32_t i = count - 1; i > 0; i--) {
		nat->sessions[i].chain = nat->free_session;
		nat->free_session = i;
	}
	timeouts_set(nat);
	status = nat44_ports_open(nat);
	if (status == 0)
		forwards_add(nat);
	return status;
}

void nat44_table_close(struct nat44 *nat)
{
	nat44_ports_close(nat);
	free(nat->sessions);
	free(nat->buckets);
}
