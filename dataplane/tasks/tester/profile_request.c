// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/tester/profile_request.h"

#include <errno.h>
#include <rte_common.h>
#include <stdio.h>
#include <string.h>

#include "tasks/tester/frame.h"
#include "lib/schema.h"

static __attribute__((format(printf, 2, 3))) int fail(char *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, SCHEMA_ERROR_MAX, format, args);
	va_end(args);
	return -EINVAL;
}

static bool whole_within(const json_t *value, json_int_t min, json_int_t max)
{
	return json_is_integer(value) && json_integer_value(value) >= min && json_integer_value(value) <= max;
}

static int decode_sizes(const json_t *value, void *out, const char *where, char *error)
{
	struct profile_sizes *sizes = out;
	size_t n = json_array_size(value);

	if (!json_is_array(value) || n == 0 || n > PROFILE_SIZES_MAX)
		return fail(error, "%s: expected an array of 1 to %d pairs [frame_size_bytes, weight]", where,
		            PROFILE_SIZES_MAX);
	for (size_t i = 0; i < n; i++) {
		const json_t *pair = json_array_get(value, i);
		const json_t *size = json_array_get(pair, 0), *weight = json_array_get(pair, 1);

		if (json_array_size(pair) != 2 || !whole_within(size, FRAME_SIZE_MIN, FRAME_SIZE_MAX) ||
		    !whole_within(weight, 1, 1000000))
			return fail(
			        error,
			        "%s[%zu]: expected [frame_size_bytes, weight], whole numbers from %d to %d "
			        "and from 1 to 1000000",
			        where, i, FRAME_SIZE_MIN, FRAME_SIZE_MAX);
		sizes->of[i].frame_size_bytes = (uint16_t)json_integer_value(size);
		sizes->of[i].weight = (uint32_t)json_integer_value(weight);
	}
	sizes->count = (unsigned)n;
	return 0;
}

static int decode_macs(const json_t *value, void *out, const char *where, char *error)
{
	struct profile_macs *macs = out;
	size_t n = json_array_size(value);

	if (!json_is_array(value) || n == 0 || n > PROFILE_MACS_MAX)
		return fail(error, "%s: expected an array of 1 to %d MAC addresses", where, PROFILE_MACS_MAX);
	for (size_t i = 0; i < n; i++)
		if (!schema_mac(json_string_value(json_array_get(value, i)), macs->of[i]))
			return fail(error, "%s[%zu]: expected a MAC address like 02:00:00:00:00:01", where,
			            i);
	macs->count = (unsigned)n;
	return 0;
}

static int decode_ip(const json_t *value, void *out, const char *where, char *error)
{
	if (!whole_within(value, 4, 4) && !whole_within(value, 6, 6))
		return fail(error, "%s: expected 4 or 6", where);
	*(uint32_t *)out = (uint32_t)json_integer_value(value);
	return 0;
}

static const char *const transports[] = {"udp", "tcp", NULL};
static const char *const flow_draws[] = {"round_robin", "uniform", "zipf", NULL};
static const char *const processes[] = {"constant", "poisson", "on_off", NULL};
static const char *const timings[] = {"rate", "recorded", NULL};

#define MEMBER(type_, member_) FIELD(type_, struct profile_request, member_)

// Offsets of these are in the whole request: out of an inner object is its base.
static const struct field flow_fields[] = {
        {.key = "count", MEMBER(FIELD_UINT, flows.count), .min = 1, .max = PROFILE_FLOWS_MAX},
        {.key = "draw", MEMBER(FIELD_CHOICE, flows.draw), .choices = flow_draws},
        {.key = "exponent", MEMBER(FIELD_REAL, flows.exponent), .min = 0.1, .max = 4},
        {0},
};
static const struct field arrival_fields[] = {
        {.key = "process", MEMBER(FIELD_CHOICE, arrival.process), .choices = processes, .required = true},
        {.key = "on_ns", MEMBER(FIELD_UINT, arrival.on_ns), .min = 100, .max = 3600e9},
        {.key = "off_ns", MEMBER(FIELD_UINT, arrival.off_ns), .min = 100, .max = 3600e9},
        {0},
};
static const struct field pcap_fields[] = {
        {.key = "path", MEMBER(FIELD_STRING, pcap.path), .required = true},
        {.key = "timing", MEMBER(FIELD_CHOICE, pcap.timing), .choices = timings},
        {.key = "time_scale", MEMBER(FIELD_REAL, pcap.time_scale), .min = 1e-6, .max = 1e6},
        {0},
};
static const struct field fields[] = {
        {.key = "sizes", MEMBER(FIELD_CUSTOM, sizes), .decode = decode_sizes},
        {.key = "ip", MEMBER(FIELD_CUSTOM, ip), .decode = decode_ip},
        {.key = "transport", MEMBER(FIELD_CHOICE, transport), .choices = transports},
        {.key = "vlan", MEMBER(FIELD_UINT, vlan), .min = 1, .max = 4094},
        {.key = "flows", .type = FIELD_OBJECT, .fields = flow_fields},
        {.key = "dst_macs", MEMBER(FIELD_CUSTOM, macs), .decode = decode_macs},
        {.key = "dst_mac_count", MEMBER(FIELD_UINT, mac_count), .min = 1, .max = PROFILE_MACS_MAX},
        {.key = "dst_ips_file", MEMBER(FIELD_STRING, addresses_path)},
        {.key = "arrival", .type = FIELD_OBJECT, .fields = arrival_fields},
        {.key = "pcap", .type = FIELD_OBJECT, .fields = pcap_fields},
        {.key = "seed", MEMBER(FIELD_UINT, seed), .max = 9007199254740991.0},
        {0},
};

static int check_pcap(const json_t *source, const struct profile_request *r, const char *where, char *error)
{
	static const char *const own[] = {"sizes", "ip", "transport", "vlan", "flows", "dst_ips_file"};
	const json_t *pcap = json_object_get(source, "pcap");

	if (!pcap)
		return 0;
	for (size_t i = 0; i < RTE_DIM(own); i++)
		if (json_object_get(source, own[i]))
			return fail(error, "%s.%s: a capture has its own; take it out, or \"pcap\"", where,
			            own[i]);
	if (r->pcap.timing == PROFILE_TIMING_RECORDED && r->arrival.process != PACER_CONSTANT)
		return fail(error, "%s.arrival: recorded times are the arrivals; take one of them out",
		            where);
	if (r->pcap.timing != PROFILE_TIMING_RECORDED && json_object_get(pcap, "time_scale"))
		return fail(error, "%s.pcap.time_scale: is for \"timing\": \"recorded\" only", where);
	return 0;
}

static int check(const json_t *source, const struct profile_request *r, const char *where, char *error)
{
	bool on_off = r->arrival.process == PACER_ON_OFF;

	if (r->macs.count && r->mac_count)
		return fail(error, "%s: give dst_macs or dst_mac_count, not both", where);
	if (on_off && (r->arrival.on_ns == 0 || r->arrival.off_ns == 0))
		return fail(error, "%s.arrival: on_off needs on_ns and off_ns", where);
	if (!on_off && (r->arrival.on_ns || r->arrival.off_ns))
		return fail(error, "%s.arrival: on_ns and off_ns are for \"process\": \"on_off\" only",
		            where);
	if (json_object_get(json_object_get(source, "flows"), "exponent") && r->flows.draw != PROFILE_ZIPF)
		return fail(error, "%s.flows.exponent: is for \"draw\": \"zipf\" only", where);
	return check_pcap(source, r, where, error);
}

int profile_request_decode(const json_t *source, struct profile_request *out, const char *where, char *error)
{
	*out = (struct profile_request){
	        .ip = 4, .flows = {.count = 1, .exponent = 1}, .pcap = {.time_scale = 1}};
	if (schema_decode(source, fields, out, where, error) != 0)
		return -EINVAL;
	return check(source, out, where, error);
}
