// SPDX-License-Identifier: BSD-3-Clause
// Which frame number k is, for a burst at a time, and what of these the port took. Look-ups in large tables
// are begun for the whole burst before the first one is needed.
#include <rte_branch_prediction.h>
#include <rte_ip.h>
#include <rte_prefetch.h>
#include <rte_udp.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/random.h"
#include "tester/profile.h"

static inline struct profile_draw *slot(struct profile *p, uint64_t k)
{
	return &p->draws[k % PROFILE_DRAWS];
}

static void sizes_draw(struct profile *p, uint64_t k, unsigned n)
{
	uint32_t at = (uint32_t)(k % p->round_length);

	for (unsigned i = 0; i < n; i++) {
		uint8_t size = p->round[at];

		slot(p, k + i)->size = size;
		slot(p, k + i)->length = p->sizes[size].length;
		at = at + 1 == p->round_length ? 0 : at + 1;
	}
}

static void macs_draw(struct profile *p, uint64_t k, unsigned n)
{
	uint32_t at = (uint32_t)(k % p->mac_count);

	for (unsigned i = 0; i < n; i++) {
		slot(p, k + i)->mac = (uint16_t)at;
		at = at + 1 == p->mac_count ? 0 : at + 1;
	}
}

static inline void flow_set(struct profile *p, uint64_t k, uint32_t flow)
{
	slot(p, k)->flow = flow;
	rte_prefetch0(&p->ledger.flows[flow / 64]);
}

static void flows_zipf(struct profile *p, uint64_t k, unsigned n)
{
	uint64_t hashes[PROFILE_DRAWS];

	for (unsigned i = 0; i < n; i++) {
		hashes[i] = draw_hash(p->flow_key, k + i);
		rte_prefetch0(&p->alias[draw_below(hashes[i], p->flow_count)]);
	}
	for (unsigned i = 0; i < n; i++)
		flow_set(p, k + i, alias_draw(p->alias, draw_below(hashes[i], p->flow_count), hashes[i]));
}

static void flows_draw(struct profile *p, uint64_t k, unsigned n)
{
	uint32_t at;

	if (p->flow_draw == PROFILE_ZIPF) {
		flows_zipf(p, k, n);
		return;
	}
	if (p->flow_draw == PROFILE_UNIFORM) {
		for (unsigned i = 0; i < n; i++)
			flow_set(p, k + i, draw_below(draw_hash(p->flow_key, k + i), p->flow_count));
		return;
	}
	at = (uint32_t)(k % p->flow_count);
	for (unsigned i = 0; i < n; i++) {
		flow_set(p, k + i, at);
		at = at + 1 == p->flow_count ? 0 : at + 1;
	}
}

static void places_draw(struct profile *p, uint64_t k, unsigned n)
{
	unsigned words = p->version == 6 ? 4 : 1;

	for (unsigned i = 0; i < n; i++) {
		uint32_t place = draw_below(draw_hash(p->place_key, k + i), p->place_count);

		slot(p, k + i)->place = place;
		rte_prefetch0(p->addresses[(size_t)place * words]);
		rte_prefetch0(&p->ledger.places[place / 64]);
	}
}

static inline uint64_t range_place(const struct profile *p, uint64_t k)
{
	return draw_below_wide(draw_hash(p->place_key, k), p->range);
}

static void range_draw(struct profile *p, uint64_t k, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		slot(p, k + i)->place = p->first + (uint32_t)range_place(p, k + i);
}

static void capture_draw(struct profile *p, uint64_t k, unsigned n)
{
	uint32_t at = (uint32_t)(k % p->place_count);

	for (unsigned i = 0; i < n; i++) {
		slot(p, k + i)->place = at;
		slot(p, k + i)->length = p->capture->frames[at].length;
		at = at + 1 == p->place_count ? 0 : at + 1;
	}
}

void profile_draw(struct profile *p, uint64_t k, unsigned n)
{
	macs_draw(p, k, n);
	if (p->capture) {
		capture_draw(p, k, n);
		return;
	}
	flows_draw(p, k, n);
	if (p->range)
		range_draw(p, k, n);
	else if (p->place_count > 1)
		places_draw(p, k, n);
	sizes_draw(p, k, n);
}

static inline void bit_set(uint64_t *bits, uint32_t at)
{
	bits[at / 64] |= UINT64_C(1) << at % 64;
}

void profile_count(struct profile *p, uint64_t k, unsigned n)
{
	struct profile_ledger *ledger = &p->ledger;
	uint64_t bytes = 0;

	if (ledger->packets == 0)
		ledger->first = k;
	for (unsigned i = 0; i < n; i++) {
		const struct profile_draw *d = slot(p, k + i);

		bytes += d->length + FRAME_FCS_BYTES;
		ledger->lengths[d->length]++;
		ledger->macs[d->mac]++;
		bit_set(ledger->flows, d->flow);
		if (!p->range)
			bit_set(ledger->places, d->place);
	}
	ledger->bytes += bytes;
	ledger->packets += n;
}

// What a range would cost to count while frames are sent, a look at a large table each, is done here: frames are drawn again.
static int64_t touched_count(const struct profile *p, uint64_t first, uint64_t frames)
{
	uint64_t entries = profile_entries(p), touched = 0;
	uint64_t *bits = entries <= PROFILE_COUNTED_MAX ? calloc(entries / 64 + 1, sizeof(*bits)) : NULL;

	if (!bits)
		return -1;
	for (uint64_t k = first; k < first + frames && touched < entries; k++) {
		uint64_t at = range_place(p, k) + (p->of_each_mac ? k % p->mac_count * p->range : 0);

		touched += !(bits[at / 64] >> at % 64 & 1);
		bits[at / 64] |= UINT64_C(1) << at % 64;
	}
	free(bits);
	return (int64_t)touched;
}

int64_t profile_touched(struct profile *p)
{
	uint64_t packets = p->ledger.packets, first = p->ledger.first;

	if (p->touched.packets != packets || p->touched.first != first) {
		p->touched.count = touched_count(p, first, RTE_MIN(packets, (uint64_t)PROFILE_REDRAWN_MAX));
		p->touched.packets = packets;
		p->touched.first = first;
	}
	return p->touched.count;
}

// --- Writing ---------------------------------------------------------------------------------------------

// Writing the frames that were drawn. The checksums are worked out from sums of what a frame is made of: the
// headers, the size with its pattern, the flow, the address and the number (one's complement sums add up, RFC
// 1071). A frame costs the same whatever its size.

enum {
	IPV4_LENGTH = 2,
	IPV4_CHECKSUM = 10,
	IPV4_SRC = 12,
	IPV6_LENGTH = 4,
	IPV6_SRC_LOW = 20,
	IPV6_DST = 24,
	UDP_LENGTH = 4,
	UDP_CHECKSUM = 6,
	TCP_CHECKSUM = 16,
	FIRST_PORT = 49152, // of the dynamic ports (RFC 6335)
};

static inline uint32_t words(uint32_t value)
{
	return (value & 0xffff) + (value >> 16);
}

static inline uint32_t words_of_16(const uint8_t *at)
{
	uint64_t a = load64(at), b = load64(at + 8);

	return checksum_fold((a & UINT32_MAX) + (a >> 32) + (b & UINT32_MAX) + (b >> 32));
}

// Write the addresses; returns what they add to the transport's sum.
static inline uint32_t ipv4_write(const struct profile *p, uint8_t *ip, const struct profile_size *size,
                                  uint32_t src_be, uint32_t dst_be)
{
	uint32_t sum = words(src_be) + words(dst_be);

	store16(ip + IPV4_LENGTH, size->ip_bytes_be);
	store16(ip + IPV4_CHECKSUM, checksum_of(p->ip_sum + size->ip_sum + sum, false));
	store32(ip + IPV4_SRC, src_be);
	store32(ip + IPV4_SRC + 4, dst_be);
	return sum;
}

static inline uint32_t ipv6_write(uint8_t *ip, const struct profile_size *size, uint32_t src_low_be,
                                  const uint8_t *dst)
{
	store16(ip + IPV6_LENGTH, size->ip_bytes_be);
	store32(ip + IPV6_SRC_LOW, src_low_be);
	memcpy(ip + IPV6_DST, dst, 16);
	return words(src_low_be) + words_of_16(dst);
}

// v6, udp and store are known where this is inlined.
static inline __attribute__((always_inline)) void frame_make(const struct profile *p, uint8_t *data,
                                                             const struct profile_draw *d, uint32_t number_be,
                                                             bool v6, bool udp, unsigned store)
{
	const struct profile_size *size = &p->sizes[d->size];
	uint32_t host = d->flow % PROFILE_FLOW_HOSTS, other = d->flow / PROFILE_FLOW_HOSTS;
	uint32_t src_be = rte_cpu_to_be_32(p->src_low + host);
	uint16_t port_be =
	        rte_cpu_to_be_16((uint16_t)(FIRST_PORT + (p->stream + host + other) % PROFILE_FLOW_PORTS));
	uint32_t sum = p->l4_sum + size->l4_sum + port_be + words(number_be);
	uint8_t *l4 = data + p->l4;

	memcpy(data, p->image, store);
	memcpy(data, p->macs[d->mac], 6);
	if (v6)
		sum += ipv6_write(data + p->l3, size, src_be, p->addresses[4 * (size_t)d->place]);
	else
		sum += ipv4_write(p, data + p->l3, size, src_be,
		                  p->range ? rte_cpu_to_be_32(d->place) : load32(p->addresses[d->place]));
	store16(l4, port_be);
	if (udp)
		store16(l4 + UDP_LENGTH, size->l4_bytes_be);
	store16(l4 + (udp ? UDP_CHECKSUM : TCP_CHECKSUM), checksum_of(sum, udp));
	store32(data + p->own + FRAME_OWN_SEQUENCE, number_be);
}

#define WRITE(v6, udp, store)                                                                                \
	for (unsigned i = 0; i < n; i++)                                                                     \
	frame_make(p, data[i], profile_drawn(p, k + i), rte_cpu_to_be_32((uint32_t)(k + i)), v6, udp, store)

static void write_plain(const struct profile *p, uint8_t *const *data, uint64_t k, unsigned n)
{
	WRITE(false, true, FRAME_STORE_BYTES);
}

static void write_other(const struct profile *p, uint8_t *const *data, uint64_t k, unsigned n)
{
	if (p->version == 6 && p->protocol == IPPROTO_UDP)
		WRITE(true, true, PROFILE_STORE_MAX);
	else if (p->version == 6)
		WRITE(true, false, PROFILE_STORE_MAX);
	else if (p->protocol == IPPROTO_UDP)
		WRITE(false, true, PROFILE_STORE_MAX);
	else
		WRITE(false, false, PROFILE_STORE_MAX);
}

// The capture's headers, ours, and the pattern.
static void capture_write(const struct profile *p, uint8_t *data, const struct profile_draw *d,
                          uint32_t number_be)
{
	const struct capture_frame *f = &p->capture->frames[d->place];
	unsigned tail = f->own + FRAME_OWN_BYTES;

	memcpy(data, f->head, sizeof(f->head));
	memcpy(data + f->own, p->image, FRAME_OWN_BYTES);
	memcpy(data + tail, frame_pattern() + tail, PROFILE_STORE_MAX - tail);
	if (p->macs_given)
		memcpy(data, p->macs[d->mac], 6);
	store32(data + f->own + FRAME_OWN_SEQUENCE, number_be);
	store16(data + f->checksum, checksum_of(p->l4_sum + f->l4_sum + words(number_be), f->udp));
}

void profile_write(const struct profile *p, uint8_t *const *data, uint64_t k, unsigned n)
{
	if (p->capture)
		for (unsigned i = 0; i < n; i++)
			capture_write(p, data[i], profile_drawn(p, k + i),
			              rte_cpu_to_be_32((uint32_t)(k + i)));
	else if (p->store == FRAME_STORE_BYTES)
		write_plain(p, data, k, n);
	else
		write_other(p, data, k, n);
}

// The words that change go into the checksum as it is (RFC 1624 eqn. 3).
void profile_stamp(const struct profile *p, uint8_t *data, uint64_t k, uint64_t tsc, uint8_t flags)
{
	const struct capture_frame *f = p->capture ? &p->capture->frames[profile_drawn(p, k)->place] : NULL;
	bool udp = f ? f->udp : p->protocol == IPPROTO_UDP;
	uint8_t *own = data + (f ? f->own : p->own);
	uint8_t *checksum = data + (f ? f->checksum : p->l4 + (udp ? UDP_CHECKSUM : TCP_CHECKSUM));
	uint64_t nonce_be, stamp_be;
	uint32_t sum;

	nonce_be = load64(own + FRAME_OWN_TSC);
	stamp_be = nonce_be ^ rte_cpu_to_be_64(tsc);
	sum = (uint16_t)~load16(checksum) + ((uint32_t)flags << 8);
	sum += frame_words(stamp_be) + frame_words(~nonce_be);
	own[FRAME_OWN_FLAGS] = flags;
	memcpy(own + FRAME_OWN_TSC, &stamp_be, sizeof(stamp_be));
	store16(checksum, checksum_of(sum, udp));
}

// --- A trial's sums --------------------------------------------------------------------------------------

static void own_write(uint8_t *own, const struct frame_flow *flow)
{
	uint64_t nonce_be = rte_cpu_to_be_64(flow->nonce);

	memset(own, 0, FRAME_OWN_BYTES);
	put_be16(own, FRAME_MAGIC);
	own[FRAME_OWN_STREAM] = flow->stream;
	put_be16(own + FRAME_OWN_EPOCH, flow->epoch);
	memcpy(own + FRAME_OWN_TSC, &nonce_be, sizeof(nonce_be));
}

// Sum what is the same in the headers of all frames: the rest of the image is 0.
static void sums_set(struct profile *p)
{
	const uint8_t *ip = p->image + p->l3;
	unsigned addresses = p->version == 6 ? 32 : 8;
	uint64_t sum = checksum_add(p->image + p->l4 - addresses, addresses) + (uint64_t)(p->protocol << 8);

	p->ip_sum = checksum_fold(checksum_add(ip, sizeof(struct rte_ipv4_hdr)));
	p->l4_sum = checksum_fold(sum + checksum_add(p->image + p->l4, p->own + FRAME_OWN_BYTES - p->l4));
}

void profile_begin(struct profile *p, const struct frame_flow *flow)
{
	profile_clear(p);
	if (p->capture) { // the image is our bytes, and nothing else
		own_write(p->image, flow);
		p->l4_sum = checksum_fold(checksum_add(p->image, FRAME_OWN_BYTES));
		return;
	}
	own_write(p->image + p->own, flow);
	sums_set(p);
}
