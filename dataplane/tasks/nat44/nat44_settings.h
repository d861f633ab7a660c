// SPDX-License-Identifier: BSD-3-Clause
// The settings of nat44 (docs/nf/nat44.md) as a C struct. Passive data; needs no EAL.
#pragma once

#include "runtime/config.h"

enum {
	NAT44_OUTSIDE_MAX = 64,
	NAT44_INSIDE_MAX = 64,
	NAT44_FORWARD_MAX = 256,
	NAT44_FORWARD_ADDRESSES_MAX = 64, // of forwards, that are not in "outside"
	NAT44_SESSIONS_MAX = 1 << 23,
};

enum nat44_protocol { NAT44_UDP, NAT44_TCP, NAT44_ICMP, NAT44_PROTOCOLS };

struct nat44_prefix {
	uint32_t address, mask; // host byte order
};

struct nat44_endpoint {
	uint32_t address; // host byte order
	uint16_t port;
};

struct nat44_forward {
	int protocol; // enum nat44_protocol
	struct nat44_endpoint outside, inside;
};

struct nat44_settings {
	struct nat44_outside {
		unsigned count;
		uint32_t addresses[NAT44_OUTSIDE_MAX]; // host byte order
	} outside;
	struct nat44_inside {
		unsigned count;
		struct nat44_prefix prefixes[NAT44_INSIDE_MAX];
	} inside;
	struct nat44_forwards {
		bool given;
		unsigned count;
		struct nat44_forward items[NAT44_FORWARD_MAX];
	} forward;
	uint32_t port_min, port_max;
	uint32_t sessions_max, sessions_per_host; // the latter 0: no limit
	uint32_t udp_s, tcp_established_s, tcp_transitory_s, icmp_s;
	bool hairpin, tcp_loose;
};

// Decode and validate a task's settings, defaults where there are none. Returns 0, or -EINVAL with a sentence
// in error.
int nat44_settings_decode(const struct config_task *config, struct nat44_settings *settings, char *error);
