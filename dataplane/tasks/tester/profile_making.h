// SPDX-License-Identifier: BSD-3-Clause
// What making a profile needs, for profile_make.c and profile_sizes.c. Control thread.
#pragma once

#include <errno.h>
#include <stdio.h>

#include "lib/draw.h"
#include "tasks/tester/profile.h"
#include "lib/schema.h"

// Purposes of random numbers.
enum {
	KEY_FLOW = 1, // purposes of random numbers
	KEY_PLACE,
	KEY_ROUND,
	KEY_ARRIVAL,
};

struct making {
	struct profile *p;
	struct profile_request *r;
	const struct frame_flow *flow;
	uint32_t room;
	const char *where;
	char *error;
};

// Sizes, their round and their mean, once the layout is known. Returns 0, or -errno with a sentence in error.
int profile_sizes_make(struct making *m);

static inline int profile_no_memory(const struct making *m, const char *what)
{
	snprintf(m->error, SCHEMA_ERROR_MAX, "%s: no memory for its %s", m->where, what);
	return -ENOMEM;
}

static inline uint64_t profile_key(const struct making *m, unsigned purpose)
{
	return draw_key(m->r->seed, purpose, m->flow->stream);
}
