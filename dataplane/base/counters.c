// SPDX-License-Identifier: BSD-3-Clause
#include "base/counters.h"

#include <stdio.h>
#include <string.h>

static size_t bytes_of(const struct counter *counter)
{
	return (size_t)counter->bytes * (counter->items ? counter->items : 1);
}

static uint64_t read_at(const struct counter *counter, const void *base, unsigned item)
{
	const char *at = (const char *)base + counter->offset + (size_t)item * counter->bytes;

	switch (counter->bytes) {
	case sizeof(uint16_t):
		return __atomic_load_n((const uint16_t *)at, __ATOMIC_RELAXED);
	case sizeof(uint32_t):
		return __atomic_load_n((const uint32_t *)at, __ATOMIC_RELAXED);
	default:
		return __atomic_load_n((const uint64_t *)at, __ATOMIC_RELAXED);
	}
}

static json_t *json_of(const struct counter *counter, const void *base, const void *since, unsigned item)
{
	return json_integer(
	        (json_int_t)(read_at(counter, base, item) - (since ? read_at(counter, since, item) : 0)));
}

static json_t *array_of(const struct counter *counter, const void *base, const void *since)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < counter->items; i++)
		json_array_append_new(array, json_of(counter, base, since, i));
	return array;
}

// The object within object that the part of a name before its dot says; made if need be.
static json_t *object_within(json_t *object, const char *name, const char *dot)
{
	char part[32];
	json_t *within;

	snprintf(part, sizeof(part), "%.*s", (int)(dot - name), name);
	within = json_object_get(object, part);
	if (!within) {
		within = json_object();
		json_object_set_new(object, part, within);
	}
	return within;
}

void counters_report(const struct counter *table, const void *base, const void *since, json_t *object)
{
	for (; table && table->name; table++) {
		const char *dot = strchr(table->name, '.');

		json_object_set_new(
		        dot ? object_within(object, table->name, dot) : object, dot ? dot + 1 : table->name,
		        table->items ? array_of(table, base, since) : json_of(table, base, since, 0));
	}
}

void counters_clear(const struct counter *table, void *base)
{
	for (; table && table->name; table++)
		memset((char *)base + table->offset, 0, bytes_of(table));
}
