// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <rte_cycles.h>

#include "tasks/rate_limiter/rate_limiter.h"
#include "lib/schema.h"

#define REFUSE(...) (snprintf(error, CONFIG_ERROR_MAX, __VA_ARGS__), -EINVAL)

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

static const char *const per_names[] = {"all", "direction", "source", "destination", NULL};
static const char *const direction_names[] = {"both", "from_clients", "from_servers", NULL};

static const struct field fields[] = {
        {.key = "rate_bps", FIELD(FIELD_UINT, struct limiter_settings, rate_bps), .min = 1, .max = RATE_MAX},
        {.key = "rate_pps", FIELD(FIELD_UINT, struct limiter_settings, rate_pps), .min = 1, .max = RATE_MAX},
        {.key = "burst_bytes",
         FIELD(FIELD_UINT, struct limiter_settings, burst_bytes),
         .min = BURST_BYTES_MIN,
         .max = BURST_BYTES_MAX},
        {.key = "burst_packets",
         FIELD(FIELD_UINT, struct limiter_settings, burst_packets),
         .min = 1,
         .max = BURST_PACKETS_MAX},
        {.key = "per", FIELD(FIELD_CHOICE, struct limiter_settings, per), .choices = per_names},
        {.key = "buckets_max",
         FIELD(FIELD_UINT, struct limiter_settings, buckets_max),
         .min = 1,
         .max = FLOW_TABLE_MAX},
        {.key = "directions",
         FIELD(FIELD_CHOICE, struct limiter_settings, directions),
         .choices = direction_names},
        {0},
};

static int check_keys(const char *where, const struct limiter_settings *settings, char *error)
{
	if (settings->rate_bps && settings->rate_pps)
		return REFUSE("%s: \"rate_bps\" and \"rate_pps\" exclude each other; leave one out", where);
	if (settings->rate_pps && settings->burst_bytes)
		return REFUSE("%s.burst_bytes: a rate in packets has \"burst_packets\"", where);
	if (!settings->rate_pps && settings->burst_packets)
		return REFUSE("%s.burst_packets: a rate in bits has \"burst_bytes\"", where);
	if (settings->buckets_max && settings->per != PER_SOURCE && settings->per != PER_DESTINATION)
		return REFUSE("%s.buckets_max: only \"per\" source or destination has buckets to count",
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

int limiter_decode(const struct config_task *config, struct limiter_settings *settings, char *error)
{
	char where[64];

	memset(settings, 0, sizeof(*settings)); // they are compared as a whole
	snprintf(where, sizeof(where), "task %s: settings", config->name);
	if (config->settings && schema_decode(config->settings, fields, settings, where, error) != 0)
		return -EINVAL;
	if (check_keys(where, settings, error) != 0)
		return -EINVAL;
	defaults(settings);
	return 0;
}

struct limiter_meter limiter_meter_of(const struct limiter_settings *settings, uint64_t tsc_hz)
{
	struct limiter_meter meter;

	if (settings->rate_pps)
		meter = (struct limiter_meter){
		        .rate = settings->rate_pps,
		        .full = settings->burst_packets * tsc_hz,
		        .cost_frame = tsc_hz,
		};
	else
		meter = (struct limiter_meter){
		        .rate = settings->rate_bps,
		        .full = settings->burst_bytes * 8 * tsc_hz,
		        .cost_frame = RTE_ETHER_CRC_LEN * 8 * tsc_hz,
		        .cost_byte = 8 * tsc_hz,
		};
	meter.full_tsc = (meter.full + meter.rate - 1) / meter.rate;
	return meter;
}
