// SPDX-License-Identifier: BSD-3-Clause
// rate_limiter: forwards as l2fwd does what conforms to a token bucket, and drops the rest as "rate". One
// bucket for all, one for each direction, or one for each source or destination address.
//
// A bucket of an address that has had the time to fill up is as good as none, so its room may be had without
// anybody noticing: that is all the ageing there is. Addresses that find no room, and frames without (not IP,
// or not sound), share one bucket.
#include <errno.h>

#include "lib/clock.h"
#include "lib/flow_table.h"
#include "lib/log.h"
#include "lib/schema.h"
#include "lib/token_bucket.h"
#include "tasks/vnf/forward.h"
#include "tasks/vnf/vnf.h"

// --- Settings --------------------------------------------------------------------------------------------

// Credit has 63 bits: a burst of 2^27 bytes is 2^30 bits, at 2^33 ticks a second.
enum {
	BURST_BYTES_MIN = 1518, // RFC 2697 s2: at least the largest packet
	BURST_BYTES_MAX = 1 << 27,
	BURST_BYTES_DEFAULT = 1 << 20,
	BURST_PACKETS_MAX = 1 << 30,
	BURST_PACKETS_DEFAULT = 1024,
	BUCKETS_DEFAULT = 65536,
};
#define RATE_BPS_DEFAULT UINT64_C(100000000000) // lets the tester's traffic through
#define RATE_MAX         1e12

enum limiter_per { PER_ALL, PER_DIRECTION, PER_SOURCE, PER_DESTINATION };

struct limiter_settings {
	struct vnf_settings vnf;
	uint64_t rate_bps, rate_pps; // one of them is 0
	uint64_t burst_bytes, burst_packets;
	int per;
	uint32_t buckets_max;
	int directions;
};

static const char *const per_names[] = {"all", "direction", "source", "destination", NULL};
static const char *const direction_names[] = {"both", "from_clients", "from_servers", NULL};

static const struct field fields[] = {
        {UINT_FIELD("rate_bps", struct limiter_settings, rate_bps, 1, RATE_MAX)},
        {UINT_FIELD("rate_pps", struct limiter_settings, rate_pps, 1, RATE_MAX)},
        {UINT_FIELD("burst_bytes", struct limiter_settings, burst_bytes, BURST_BYTES_MIN, BURST_BYTES_MAX)},
        {UINT_FIELD("burst_packets", struct limiter_settings, burst_packets, 1, BURST_PACKETS_MAX)},
        {CHOICE_FIELD("per", struct limiter_settings, per, per_names)},
        {UINT_FIELD("buckets_max", struct limiter_settings, buckets_max, 1, FLOW_TABLE_MAX)},
        {CHOICE_FIELD("directions", struct limiter_settings, directions, direction_names)},
        {0},
};

static int check_keys(const char *where, const struct limiter_settings *settings, char *error)
{
	if (settings->rate_bps && settings->rate_pps)
		return config_error(
		        error, "%s: \"rate_bps\" and \"rate_pps\" exclude each other; leave one out", where);
	if (settings->rate_pps && settings->burst_bytes)
		return config_error(error, "%s.burst_bytes: a rate in packets has \"burst_packets\"", where);
	if (!settings->rate_pps && settings->burst_packets)
		return config_error(error, "%s.burst_packets: a rate in bits has \"burst_bytes\"", where);
	if (settings->buckets_max && settings->per != PER_SOURCE && settings->per != PER_DESTINATION)
		return config_error(error,
		                    "%s.buckets_max: only \"per\" source or destination has buckets to count",
		                    where);
	return 0;
}

static void defaults(struct limiter_settings *settings)
{
	if (!settings->rate_pps) {
		settings->rate_bps = settings->rate_bps ? settings->rate_bps : RATE_BPS_DEFAULT;
		settings->burst_bytes = settings->burst_bytes ? settings->burst_bytes : BURST_BYTES_DEFAULT;
	} else {
		settings->burst_packets =
		        settings->burst_packets ? settings->burst_packets : BURST_PACKETS_DEFAULT;
	}
	settings->buckets_max = settings->buckets_max ? settings->buckets_max : BUCKETS_DEFAULT;
}

static int limiter_settings_check(const struct config_task *config, const json_t *object, void *settings,
                                  const char *where, char *error)
{
	if (check_keys(where, settings, error) != 0)
		return -EINVAL;
	defaults(settings);
	return 0;
}

enum { DROP_RUNT, DROP_RATE };
enum { BOTH, FROM_CLIENTS, FROM_SERVERS };
enum { SIDES = 2 };

static const struct counter drops[] = {
        VNF_DROP_COUNTER(DROP_RUNT, "runt"), VNF_DROP_COUNTER(DROP_RATE, "rate"), {0}};

struct limiter {
	struct vnf vnf;
	struct limiter_settings settings;
	struct token_meter meter;
	bool limits[SIDES];
	struct token_bucket buckets[SIDES]; // by direction; [0] is the one for all, and the shared one
	struct flow_table table;            // of addresses. value[]: credit, and 1 when there is any
	uint64_t passed_packets[SIDES], passed_bytes[SIDES];
	uint64_t overflow_packets, no_address_packets;
};

// --- Made and ended --------------------------------------------------------------------------------------

static bool has_table(const struct limiter *limiter)
{
	return limiter->settings.per == PER_SOURCE || limiter->settings.per == PER_DESTINATION;
}

static int limiter_open(struct vnf *vnf, const struct config_task *config)
{
	struct limiter *limiter = (struct limiter *)vnf;
	const struct limiter_settings *settings = &limiter->settings;

	limiter->settings = *(const struct limiter_settings *)config->settings;
	limiter->meter =
	        settings->rate_pps
	                ? token_meter_of_packets(settings->rate_pps, settings->burst_packets, clock_hz())
	                : token_meter_of_bits(settings->rate_bps, settings->burst_bytes, clock_hz());
	limiter->limits[0] = settings->directions != FROM_SERVERS;
	limiter->limits[1] = settings->directions != FROM_CLIENTS;
	for (unsigned i = 0; i < SIDES; i++)
		limiter->buckets[i].credit = limiter->meter.full;
	if (has_table(limiter) &&
	    flow_table_open(&limiter->table, settings->buckets_max, limiter->meter.full_tsc) != 0) {
		LOG_ERROR("task %s: no memory for %u buckets", config->name, settings->buckets_max);
		return -ENOMEM;
	}
	return 0;
}

static void limiter_close(struct vnf *vnf)
{
	flow_table_close(&((struct limiter *)vnf)->table);
}

// Credit of the same settings stays; others begin with a full burst.
static void limiter_adopt(struct task *task, struct task *before)
{
	struct limiter *limiter = (struct limiter *)task, *old = (struct limiter *)before;
	struct flow_table mine = limiter->table;

	if (memcmp(&limiter->settings, &old->settings, sizeof(old->settings)) != 0)
		return;
	memcpy(limiter->buckets, old->buckets, sizeof(old->buckets));
	limiter->table = old->table;
	old->table = mine;
}

// --- Frames ----------------------------------------------------------------------------------------------

static inline uint8_t decide(struct limiter *limiter, unsigned in, const struct vnf_frame *frame,
                             uint64_t *credit, uint64_t *seen_tsc, uint64_t now_tsc)
{
	if (!token_bucket_take(&limiter->meter, credit, seen_tsc, frame->total, now_tsc))
		return VNF_DROP | DROP_RATE;
	limiter->passed_packets[in]++;
	limiter->passed_bytes[in] += frame->total + RTE_ETHER_CRC_LEN;
	vnf_write_macs(&limiter->vnf, limiter->vnf.out[in], frame->data);
	return limiter->vnf.out[in];
}

static bool by_bucket(struct limiter *limiter, unsigned in, const struct vnf_frame *frames, unsigned n,
                      uint64_t now_tsc, uint8_t *verdicts)
{
	struct token_bucket *bucket = &limiter->buckets[limiter->settings.per == PER_DIRECTION ? in : 0];
	unsigned left = 0;

	for (unsigned i = 0; i < n; i++) {
		if (i + FORWARD_AHEAD < n)
			__builtin_prefetch(frames[i + FORWARD_AHEAD].data, 1);
		verdicts[i] = VNF_DROP | DROP_RUNT;
		if (likely(frames[i].length >= RTE_ETHER_HDR_LEN))
			verdicts[i] =
			        decide(limiter, in, &frames[i], &bucket->credit, &bucket->seen_tsc, now_tsc);
		left += !(verdicts[i] & VNF_DROP);
	}
	return left == n;
}

// The address that a frame is counted by, alone in a key. Returns false if it has none.
static inline bool address_of(const struct limiter *limiter, const struct vnf_frame *frame,
                              struct flow_key *key)
{
	struct packet p;

	if (unlikely(packet_parse(frame, &p) != PACKET_FINE))
		return false;
	flow_key_addresses(key, frame->data, &p);
	if (limiter->settings.per == PER_DESTINATION)
		memcpy(key->words, key->words + 2, 2 * sizeof(key->words[0]));
	key->words[2] = key->words[3] = 0;
	key->words[4] = p.version;
	return true;
}

struct look {
	struct flow_key key;
	uint32_t hash;
	bool has_address;
};

static inline uint8_t decide_shared(struct limiter *limiter, unsigned in, const struct vnf_frame *frame,
                                    uint64_t *counter, uint64_t now_tsc)
{
	struct token_bucket *bucket = &limiter->buckets[0];

	if (frame->length < RTE_ETHER_HDR_LEN)
		return VNF_DROP | DROP_RUNT;
	(*counter)++;
	return decide(limiter, in, frame, &bucket->credit, &bucket->seen_tsc, now_tsc);
}

static inline uint8_t decide_by_address(struct limiter *limiter, unsigned in, const struct vnf_frame *frame,
                                        const struct look *look, uint64_t now_tsc)
{
	uint64_t seen_tsc;
	struct flow *flow;
	uint32_t index;

	if (unlikely(!look->has_address))
		return decide_shared(limiter, in, frame, &limiter->no_address_packets, now_tsc);
	index = flow_table_get(&limiter->table, &look->key, look->hash, now_tsc);
	if (unlikely(index == FLOW_NONE))
		return decide_shared(limiter, in, frame, &limiter->overflow_packets, now_tsc);
	flow = &limiter->table.flows[index];
	if (unlikely(flow->value[1] == 0)) {
		flow->value[0] = limiter->meter.full;
		flow->value[1] = 1;
	}
	seen_tsc = flow->last_tsc;
	flow_table_touch(&limiter->table, index, now_tsc);
	return decide(limiter, in, frame, &flow->value[0], &seen_tsc, now_tsc);
}

static bool by_address(struct limiter *limiter, unsigned in, const struct vnf_frame *frames, unsigned n,
                       uint64_t now_tsc, uint8_t *verdicts)
{
	struct look looks[CONFIG_BURST_MAX];
	unsigned left = 0;

	for (unsigned i = 0; i < n; i++) {
		if (i + FORWARD_AHEAD < n)
			__builtin_prefetch(frames[i + FORWARD_AHEAD].data, 1);
		looks[i].has_address = address_of(limiter, &frames[i], &looks[i].key);
		if (unlikely(!looks[i].has_address))
			continue;
		looks[i].hash = flow_table_hash(&limiter->table, &looks[i].key);
		flow_table_prefetch_slot(&limiter->table, looks[i].hash);
	}
	for (unsigned i = 0; i < n; i++)
		if (likely(looks[i].has_address))
			flow_table_prefetch_flow(&limiter->table, looks[i].hash);
	for (unsigned i = 0; i < n; i++) {
		verdicts[i] = decide_by_address(limiter, in, &frames[i], &looks[i], now_tsc);
		left += !(verdicts[i] & VNF_DROP);
	}
	return left == n;
}

static bool limiter_process(struct vnf *vnf, unsigned in, const struct vnf_frame *frames, unsigned n,
                            uint64_t now_tsc, uint8_t *verdicts)
{
	struct limiter *limiter = (struct limiter *)vnf;

	limiter->table.now_tsc = now_tsc;
	if (!limiter->limits[in])
		return forward_burst(vnf, in, frames, n, DROP_RUNT, verdicts);
	if (has_table(limiter))
		return by_address(limiter, in, frames, n, now_tsc, verdicts);
	return by_bucket(limiter, in, frames, n, now_tsc, verdicts);
}

static void limiter_tick(struct vnf *vnf, uint64_t now_tsc)
{
	flow_table_expire(&((struct limiter *)vnf)->table, now_tsc, FLOW_TICK_MAX);
}

// --- What is seen of it ----------------------------------------------------------------------------------

// Passed: of the directions that are limited.
static const struct counter counters[] = {
        COUNTER_ARRAY("passed_packets", struct limiter, passed_packets),
        COUNTER_ARRAY("passed_bytes", struct limiter, passed_bytes),
        COUNTER("overflow_packets", struct limiter, overflow_packets),
        COUNTER("no_address_packets", struct limiter, no_address_packets),
        {0},
};

static void limiter_report(const struct task *task, json_t *object, uint64_t now_tsc)
{
	struct flow_table *table = &((struct limiter *)(uintptr_t)task)->table;

	flow_table_expire(table, table->now_tsc, UINT32_MAX);
	json_object_set_new(object, "buckets", json_integer(table->count));
}

static const struct vnf_ops rate_limiter_vnf = {
        .size = sizeof(struct limiter),
        .dear = true,
        .settings_fields = fields,
        .settings_check = limiter_settings_check,
        .open = limiter_open,
        .close = limiter_close,
        .process = limiter_process,
        .tick = limiter_tick,
};

static const struct task_ops rate_limiter_ops = {
        VNF_TASK_OPS("rate_limiter", &rate_limiter_vnf, drops, vnf_keys, struct limiter_settings),
        .adopt = limiter_adopt,
        .counters = counters,
        .report = limiter_report,
        .ports_min = 2,
        .ports_max = 2,
};
TASK_KIND(rate_limiter_ops)
