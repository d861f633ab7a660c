// SPDX-License-Identifier: BSD-3-Clause
// The flow table against a plain list in the order of use: what is found, what makes room, what is gone.
#include <stdlib.h>

#include "table/flow_table.h"
#include "test/unit.h"

enum { CAPACITY = 37, KEYS = 90, STEPS = 200000, TIMEOUT = 50 };

struct known {
	uint64_t key, last_tsc, count;
};

// From the oldest to the newest.
struct list {
	struct known items[CAPACITY];
	unsigned count;
};

static uint64_t gone_count;

static void gone(void *owner, const struct flow *flow)
{
	gone_count += flow->value[0];
}

static struct flow_key key_of(uint64_t number)
{
	return (struct flow_key){.words = {number % 7, 0, number / 7, 0, UINT64_C(4) << 40 | 17}};
}

static uint64_t list_remove(struct list *list, unsigned at)
{
	uint64_t count = list->items[at].count;

	list->count--;
	memmove(&list->items[at], &list->items[at + 1], (list->count - at) * sizeof(list->items[0]));
	return count;
}

static void list_expire(struct list *list, uint64_t now_tsc, uint64_t *expired)
{
	while (list->count && now_tsc - list->items[0].last_tsc >= TIMEOUT)
		*expired += list_remove(list, 0);
}

// Returns false if there is no room.
static bool list_see(struct list *list, uint64_t key, uint64_t now_tsc)
{
	struct known known = {.key = key, .last_tsc = now_tsc, .count = 1};

	for (unsigned i = 0; i < list->count; i++)
		if (list->items[i].key == key) {
			known.count += list_remove(list, i);
			break;
		}
	if (list->count == CAPACITY)
		return false;
	list->items[list->count++] = known;
	return true;
}

static bool table_see(struct flow_table *table, uint64_t number, uint64_t now_tsc)
{
	struct flow_key key = key_of(number);
	uint32_t hash = flow_table_hash(table, &key), index;

	flow_table_prefetch_slot(table, hash);
	flow_table_prefetch_flow(table, hash);
	index = flow_table_get(table, &key, hash, now_tsc);
	if (index == FLOW_NONE)
		return false;
	assert_true(flow_key_equal(&table->flows[index].key, &key));
	flow_table_touch(table, index, now_tsc);
	table->flows[index].value[0]++;
	return true;
}

static void assert_same(const struct flow_table *table, const struct list *list)
{
	uint32_t at = flow_table_oldest(table);

	assert_int_equal(table->count, list->count);
	for (unsigned i = 0; i < list->count; i++, at = table->links[at].newer) {
		struct flow_key key = key_of(list->items[i].key);

		assert_int_not_equal(at, FLOW_NONE);
		assert_memory_equal(&table->flows[at].key, &key, sizeof(key));
		assert_int_equal(table->flows[at].last_tsc, list->items[i].last_tsc);
		assert_int_equal(table->flows[at].value[0], list->items[i].count);
		assert_int_equal(flow_table_find(table, &key, flow_table_hash(table, &key)), at);
	}
	assert_int_equal(at, list->count ? table->capacity : FLOW_NONE);
}

static void open_table(struct flow_table *table, uint32_t capacity)
{
	*table = (struct flow_table){0};
	assert_int_equal(flow_table_open(table, capacity, TIMEOUT), 0);
	table->gone = gone;
	table->owner = table;
	gone_count = 0;
}

static void it_knows_what_a_list_knows(void **state)
{
	uint64_t now_tsc = 1000, expired = 0;
	struct list list = {.count = 0};
	struct flow_table table;

	open_table(&table, CAPACITY);
	srandom(1);
	for (unsigned step = 0; step < STEPS; step++) {
		uint64_t key = (uint64_t)random() % KEYS;

		now_tsc += (uint64_t)random() % 4;
		if (random() % 4 == 0)
			flow_table_expire(&table, now_tsc, UINT32_MAX);
		list_expire(&list, now_tsc, &expired);
		assert_int_equal(table_see(&table, key, now_tsc), list_see(&list, key, now_tsc));
		if (step % 64 == 0) {
			flow_table_expire(&table, now_tsc, UINT32_MAX);
			assert_same(&table, &list);
			assert_int_equal(gone_count, expired);
		}
	}
	flow_table_close(&table);
}

static void one_flow_is_a_table(void **state)
{
	struct flow_table table;

	open_table(&table, 1);
	assert_true(table_see(&table, 1, 10));
	assert_false(table_see(&table, 2, 10 + TIMEOUT - 1));
	assert_true(table_see(&table, 2, 10 + TIMEOUT));
	assert_true(table_see(&table, 2, 10)); // a time that is behind
	assert_int_equal(table.flows[flow_table_oldest(&table)].last_tsc, 10 + TIMEOUT);
	assert_true(table_see(&table, 2, 10 + 3 * TIMEOUT)); // begins anew
	assert_int_equal(table.flows[flow_table_oldest(&table)].value[0], 1);
	assert_int_equal(gone_count, 3);
	flow_table_close(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(it_knows_what_a_list_knows),
	        cmocka_unit_test(one_flow_is_a_table),
	};

	return cmocka_run_group_tests_name("flow_table", tests, NULL, NULL);
}
