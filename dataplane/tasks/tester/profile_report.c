// SPDX-License-Identifier: BSD-3-Clause
// What was sent of a profile: its counts, and their end.
#include <string.h>

#include "tasks/tester/profile.h"

static size_t words(uint32_t bits)
{
	return bits / 64 + 1;
}

void profile_clear(struct profile *p)
{
	uint64_t *flows = p->ledger.flows, *places = p->ledger.places;

	if (p->ledger.packets == 0)
		return;
	memset(p->draws, 0, sizeof(p->draws));
	memset(flows, 0, words(p->flow_count) * sizeof(*flows));
	memset(places, 0, words(p->place_count) * sizeof(*places));
	memset(&p->ledger, 0, sizeof(p->ledger));
	p->ledger.flows = flows;
	p->ledger.places = places;
}

static json_int_t distinct(const uint64_t *bits, uint32_t count)
{
	json_int_t sum = 0;

	for (size_t i = 0; i < words(count); i++)
		sum += __builtin_popcountll(bits[i]);
	return sum;
}

static json_t *sizes_report(const struct profile *p)
{
	json_t *sizes = json_array();

	for (uint32_t length = 0; length <= p->longest; length++)
		if (p->ledger.lengths[length])
			json_array_append_new(sizes, json_pack("[i, I]", (int)(length + FRAME_FCS_BYTES),
			                                       (json_int_t)p->ledger.lengths[length]));
	return sizes;
}

static json_t *macs_report(const struct profile *p)
{
	json_t *macs = json_array();

	for (uint32_t i = 0; i < p->mac_count; i++)
		json_array_append_new(macs, json_integer((json_int_t)p->ledger.macs[i]));
	return macs;
}

json_t *profile_report(const struct profile *p)
{
	const struct profile_ledger *ledger = &p->ledger;
	json_t *report = json_pack("{sI sf so}", "bytes", (json_int_t)ledger->bytes, "mean_frame_bytes",
	                           ledger->packets ? (double)ledger->bytes / (double)ledger->packets : 0.0,
	                           "sizes", sizes_report(p));

	if (!p->capture || p->macs_given)
		json_object_set_new(report, "dst_macs", macs_report(p));
	if (p->arrival.process == PACER_ON_OFF)
		json_object_set_new(report, "bursts", json_integer((json_int_t)ledger->bursts));
	if (p->capture) {
		json_object_set_new(report, "pcap", capture_report(p->capture, ledger->packets));
		return report;
	}
	json_object_set_new(report, "flows_sent", json_integer(distinct(ledger->flows, p->flow_count)));
	json_object_set_new(report, "dst_ips_sent", json_integer(distinct(ledger->places, p->place_count)));
	return report;
}
