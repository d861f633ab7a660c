// SPDX-License-Identifier: BSD-3-Clause
// Which frame number k is, for a burst at a time, and what of these the port took. Look-ups in large tables
// are begun for the whole burst before the first one is needed.
#include <rte_prefetch.h>

#include "lib/alias.h"
#include "lib/draw.h"
#include "tasks/tester/profile.h"

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
		rte_prefetch0(&p->alias[alias_row(hashes[i], p->flow_count)]);
	}
	for (unsigned i = 0; i < n; i++)
		flow_set(p, k + i, alias_draw(p->alias, alias_row(hashes[i], p->flow_count), hashes[i]));
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
	if (p->place_count > 1)
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

	for (unsigned i = 0; i < n; i++) {
		const struct profile_draw *d = slot(p, k + i);

		bytes += d->length + FRAME_FCS_BYTES;
		ledger->lengths[d->length]++;
		ledger->macs[d->mac]++;
		bit_set(ledger->flows, d->flow);
		bit_set(ledger->places, d->place);
	}
	ledger->bytes += bytes;
	ledger->packets += n;
}
