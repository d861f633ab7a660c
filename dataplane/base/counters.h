// SPDX-License-Identifier: BSD-3-Clause
// Counters of a struct as a table: a line for each is all that reporting, clearing and handing over need. Control
// thread; whoever counts may go on meanwhile, for a counter has one writer.
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

// Its one writer counts; any thread reads it meanwhile.
static inline void counter_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static inline uint64_t counter_read(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

// An unsigned number of 2, 4 or 8 bytes, or an array of them. The last one of a table has no name.
struct counter {
	const char *name; // in a report; "object.name" is in an object of its own
	uint32_t offset;
	uint16_t bytes; // of one number
	uint16_t items; // of an array; else 0
};

#define COUNTER(name_, struct_, member_)                                                                     \
	{                                                                                                    \
		(name_), offsetof(struct_, member_), sizeof(((struct_ *)0)->member_), 0                      \
	}
#define COUNTER_ARRAY(name_, struct_, member_)                                                               \
	{                                                                                                    \
		(name_), offsetof(struct_, member_), sizeof(((struct_ *)0)->member_[0]),                     \
		        sizeof(((struct_ *)0)->member_) / sizeof(((struct_ *)0)->member_[0])                 \
	}

// Add the counters of base to object. since: another of its kind, which is subtracted; or NULL.
void counters_report(const struct counter *table, const void *base, const void *since, json_t *object);

void counters_clear(const struct counter *table, void *base);
