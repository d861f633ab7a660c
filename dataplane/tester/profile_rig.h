// SPDX-License-Identifier: BSD-3-Clause
// What the tests of profiles have in common: one made of text, and a frame of it. Included once in each.
#pragma once

#include <rte_ip.h>
#include <stdio.h>

#include "tester/profile.h"
#include "test/unit.h"

enum { ROOM = 2048, BURST = 32, EPOCH = 0xabcd, STREAM = 3 };

static const struct frame_flow flow = {
        .src_mac = {2, 0, 0, 0, 0, STREAM},
        .dst_mac = {2, 0, 0, 0, 1, STREAM},
        .src_ip = RTE_IPV4(198, 18, 3, 1),
        .dst_ip = RTE_IPV4(198, 19, 3, 1),
        .stream = STREAM,
        .epoch = EPOCH,
        .frame_size_bytes = 128,
};

static inline struct profile *try_make(const char *text, char *error)
{
	json_t *source = json_loads(text, 0, NULL);
	struct profile *p;

	assert_non_null(source);
	p = profile_make(source, &flow, ROOM, "generators[0].profile", error);
	json_decref(source);
	if (p)
		profile_begin(p, &flow);
	return p;
}

static inline struct profile *make(const char *text)
{
	char error[256] = "";
	struct profile *p = try_make(text, error);

	if (!p)
		fail_msg("%s: %s", text, error);
	return p;
}

// One frame, in a buffer with the pattern. Returns its length.
static inline uint32_t frame_of(struct profile *p, uint64_t k, uint64_t tsc, uint8_t *data)
{
	frame_fill_payload(data, ROOM);
	profile_draw(p, k, 1);
	profile_write(p, &data, k, 1);
	if (tsc)
		profile_stamp(p, data, k, tsc, FRAME_FLAG_PROBE);
	return profile_drawn(p, k)->length;
}
