// SPDX-License-Identifier: BSD-3-Clause
// The object "profile" of traffic.start, decoded and checked, but for the files that it names. Control
// thread.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tasks/generator/pacer.h"

enum {
	PROFILE_SIZES_MAX = 256,
	PROFILE_MACS_MAX = 4096,
	PROFILE_FLOWS_MAX = 1 << 24,
	PROFILE_ADDRESSES_MAX = 1 << 24,
	PROFILE_PATH_MAX = 1024,
};

enum profile_flow_draw { PROFILE_ROUND_ROBIN, PROFILE_UNIFORM, PROFILE_ZIPF };
enum profile_timing { PROFILE_TIMING_RATE, PROFILE_TIMING_RECORDED };

struct profile_sizes {
	unsigned count; // 0: not given
	struct {
		uint16_t frame_size_bytes;
		uint32_t weight;
	} of[PROFILE_SIZES_MAX];
};

struct profile_macs {
	unsigned count; // 0: not given
	uint8_t of[PROFILE_MACS_MAX][6];
};

struct profile_request {
	struct profile_sizes sizes;
	uint32_t ip, vlan; // vlan 0: no tag
	int transport;     // 0 UDP, 1 TCP
	struct {
		uint32_t count;
		int draw;
		double exponent;
	} flows;
	struct profile_macs macs;
	uint32_t mac_count; // 0: not given
	char addresses_path[PROFILE_PATH_MAX];
	struct {
		int process;
		uint64_t on_ns, off_ns;
	} arrival;
	struct {
		char path[PROFILE_PATH_MAX];
		int timing;
		double time_scale;
	} pcap;
	uint64_t seed;
};

// Decode source into *out. Returns 0, or -EINVAL with a sentence in error (SCHEMA_ERROR_MAX).
int profile_request_decode(const json_t *source, struct profile_request *out, const char *where, char *error);
