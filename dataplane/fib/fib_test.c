// SPDX-License-Identifier: BSD-3-Clause
// What fib.h promises, a sentence a test. fib_model_test.c has random updates against plain lists,
// fib_snapshot_test.c files, fib_race.c readers beside the writer.
#include <stdio.h>

#include "fib/fib_rig.h"

enum { A = 1, B = 2, SESSION = 7 };

static struct fib *two_vnfs(void)
{
	struct fib *fib = fib_of(1000, 1000);

	for (uint16_t vnf = A; vnf <= B; vnf++) {
		vnf_of(fib, vnf, 500, 16);
		assert_int_equal(fib_begin(fib, vnf, SESSION), 0);
	}
	return fib;
}

static void address_spaces_overlap(void **state)
{
	struct fib *fib = two_vnfs();

	hop_put(fib, A, SESSION, 1, 11);
	hop_put(fib, B, SESSION, 1, 22);
	assert_int_equal(route_put(fib, A, SESSION, "10.0.0.1/32", 1), 0);
	assert_int_equal(route_put(fib, B, SESSION, "10.0.0.1/32", 1), 0);
	assert_int_equal(route_put(fib, B, SESSION, "2001:db8::/32", 1), 0);
	assert_int_equal(found(fib, A, "10.0.0.1"), 11);
	assert_int_equal(found(fib, B, "10.0.0.1"), 22);
	assert_int_equal(found(fib, A, "2001:db8::1"), 0);
	assert_int_equal(found(fib, B, "2001:db8::1"), 22);
	assert_int_equal(found(fib, 3, "10.0.0.1"), 0);
	fib_destroy(fib);
}

// 33 and 129 prefixes lie one in the other: the longest that is left is found.
static void every_length(void **state)
{
	static const char *const addresses[] = {"170.170.170.170", "aaaa:aaaa:aaaa:aaaa:aaaa:aaaa:aaaa:aaaa"};
	struct fib *fib = two_vnfs();

	for (uint16_t number = 0; number <= 128; number++) {
		vnf_of(fib, A, 500, 200);
		hop_put(fib, A, SESSION, number, (uint8_t)(number + 1));
	}
	for (unsigned family = 4; family <= 6; family += 2) {
		const char *address = addresses[family == 6];
		unsigned bits = family == 4 ? 32 : 128;
		struct fib_prefix prefixes[129];

		for (unsigned length = 0; length <= bits; length++) {
			char text[64];

			snprintf(text, sizeof(text), "%s/%u", address, length);
			prefixes[length] = prefix_of(text);
			for (unsigned bit = length; bit < bits; bit++)
				prefixes[length].address[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
			assert_int_equal(
			        fib_route_set(fib, A, SESSION, FIB_ADD, &prefixes[length], (uint16_t)length),
			        0);
			assert_int_equal(found(fib, A, address), length + 1);
		}
		for (unsigned length = bits; length <= bits; length--) {
			assert_int_equal(found(fib, A, address), length + 1);
			assert_int_equal(fib_route_delete(fib, A, &prefixes[length]), 0);
		}
		assert_int_equal(found(fib, A, address), 0);
	}
	assert_int_equal(stats_of(fib, A).routes4 + stats_of(fib, A).routes6, 0);
	fib_destroy(fib);
}

static void adding_what_is_there(void **state)
{
	const struct fib_prefix prefix = prefix_of("10.0.0.0/8"), absent = prefix_of("11.0.0.0/8");
	struct fib_prefix loose = prefix_of("10.1.0.0/16");
	struct fib *fib = two_vnfs();

	loose.length = 8;
	hop_put(fib, A, SESSION, 1, 1);
	hop_put(fib, A, SESSION, 2, 2);
	assert_int_equal(fib_route_set(fib, A, SESSION, FIB_ADD, &prefix, 1), 0);
	assert_int_equal(fib_route_set(fib, A, SESSION, FIB_ADD, &prefix, 2), -EEXIST);
	assert_int_equal(found(fib, A, "10.1.1.1"), 1);
	assert_int_equal(fib_route_set(fib, A, SESSION, FIB_REPLACE, &prefix, 2), 0);
	assert_int_equal(found(fib, A, "10.1.1.1"), 2);
	assert_int_equal(fib_route_set(fib, A, SESSION, FIB_ADD, &absent, 3), -ENOENT);
	assert_int_equal(fib_route_set(fib, A, SESSION + 1, FIB_ADD, &absent, 1), -ENOENT);
	assert_int_equal(fib_route_set(fib, A, SESSION, FIB_ADD, &loose, 1), -EINVAL);
	assert_int_equal(fib_route_set(fib, A, SESSION, FIB_DELETE, &absent, 1), -EINVAL);
	assert_int_equal(fib_route_set(fib, 9, SESSION, FIB_ADD, &absent, 1), -EINVAL);
	assert_int_equal(fib_route_delete(fib, A, &absent), -ENOENT);
	assert_int_equal(fib_route_delete(fib, B, &prefix), -ENOENT);
	assert_int_equal(stats_of(fib, A).routes4, 1);
	fib_destroy(fib);
}

static void hops_change_and_go(void **state)
{
	const struct fib_prefix prefix = prefix_of("10.0.0.0/8");
	struct fib_hop none = {.kind = FIB_HOP_NONE}, hop = hop_of(5);
	struct fib *fib = two_vnfs();

	hop_put(fib, A, SESSION, 1, 1);
	assert_int_equal(fib_route_set(fib, A, SESSION, FIB_ADD, &prefix, 1), 0);
	hop_put(fib, A, SESSION, 1, 9);
	assert_int_equal(found(fib, A, "10.0.0.1"), 9);
	assert_int_equal(fib_hop_delete(fib, A, SESSION, 1), -EBUSY);
	assert_int_equal(fib_route_delete(fib, A, &prefix), 0);
	assert_int_equal(fib_hop_delete(fib, A, SESSION, 1), 0);
	assert_int_equal(fib_hop_delete(fib, A, SESSION, 1), -ENOENT);
	assert_int_equal(fib_hop_set(fib, A, SESSION, 4096, &hop), -EINVAL);
	assert_int_equal(fib_hop_set(fib, A, SESSION, 1, &none), -EINVAL);
	assert_int_equal(fib_hop_set(fib, A, SESSION + 1, 1, &hop), -ENOENT);
	assert_int_equal(stats_of(fib, A).hops, 0);
	fib_destroy(fib);
}

// A route of the session is behind one of the session before, and both behind a prefix.
static void sessions_and_flush(void **state)
{
	struct fib *fib = two_vnfs();

	hop_put(fib, A, SESSION, 1, 1);
	assert_int_equal(route_put(fib, A, SESSION, "10.0.0.1/32", 1), 0);
	assert_int_equal(route_put(fib, A, SESSION, "10.0.0.2/32", 1), 0);
	assert_int_equal(fib_begin(fib, A, SESSION + 1), 0);
	assert_int_equal(stats_of(fib, A).stale, 2);
	assert_int_equal(found(fib, A, "10.0.0.1"), 1);
	hop_put(fib, A, SESSION + 1, 1, 2);
	assert_int_equal(route_put(fib, A, SESSION + 1, "10.0.0.0/24", 1), 0);
	assert_int_equal(route_put(fib, A, SESSION + 1, "10.0.0.2/32", 1), 0);
	assert_int_equal(stats_of(fib, A).stale, 1);
	hop_put(fib, A, FIB_OPERATOR, 1, 3);
	assert_int_equal(route_put(fib, A, FIB_OPERATOR, "10.0.0.3/32", 1), 0);

	fib_flush(fib, A, FIB_FLUSH_STALE);
	assert_int_equal(found(fib, A, "10.0.0.1"), 2); // the dead host route does not hide the prefix
	assert_int_equal(found(fib, A, "10.0.0.2"), 2);
	assert_int_equal(found(fib, A, "10.0.0.3"), 3);
	assert_int_equal(stats_of(fib, A).routes4, 3);
	assert_int_equal(stats_of(fib, A).stale, 0);
	assert_true(fib_is_dirty(fib));

	fib_flush(fib, A, FIB_FLUSH_SESSIONS);
	assert_int_equal(found(fib, A, "10.0.0.1"), 0);
	assert_int_equal(found(fib, A, "10.0.0.3"), 3);
	fib_flush(fib, A, FIB_FLUSH_ALL);
	assert_int_equal(found(fib, A, "10.0.0.3"), 0);
	assert_int_equal(stats_of(fib, A).hops, 0);
	assert_int_equal(sweep_all(fib), 4);
	assert_int_equal(fib_sweep(fib, 64), 0);
	fib_destroy(fib);
}

// The VNF that sets a route last has it; over a dead entry it takes its place.
static void a_dead_entry_is_taken_over(void **state)
{
	struct fib *fib = two_vnfs();

	hop_put(fib, A, SESSION, 1, 1);
	assert_int_equal(route_put(fib, A, SESSION, "10.0.0.1/32", 1), 0);
	fib_flush(fib, A, FIB_FLUSH_ALL);
	hop_put(fib, A, SESSION, 1, 2);
	assert_int_equal(route_put(fib, A, SESSION, "10.0.0.1/32", 1), 0);
	assert_false(fib_is_dirty(fib));
	assert_int_equal(found(fib, A, "10.0.0.1"), 2);
	assert_int_equal(stats_of(fib, A).routes4, 1);
	hop_put(fib, A, FIB_OPERATOR, 1, 3);
	assert_int_equal(route_put(fib, A, FIB_OPERATOR, "10.0.0.1/32", 1), 0);
	fib_flush(fib, A, FIB_FLUSH_SESSIONS);
	assert_int_equal(found(fib, A, "10.0.0.1"), 3);
	fib_destroy(fib);
}

static void quota_of_routes(void **state)
{
	struct fib *fib = two_vnfs();

	vnf_of(fib, A, 2, 16);
	for (unsigned turn = 0; turn < 2; turn++) {
		hop_put(fib, A, SESSION, 1, 1);
		assert_int_equal(route_put(fib, A, SESSION, turn ? "10.0.1.1/32" : "10.0.0.1/32", 1), 0);
		assert_int_equal(route_put(fib, A, SESSION, turn ? "10.1.0.0/16" : "10.2.0.0/16", 1), 0);
		assert_int_equal(route_put(fib, A, SESSION, "2001:db8::/32", 1), -EDQUOT);
		assert_int_equal(stats_of(fib, A).routes4, 2);
		fib_flush(fib, A, FIB_FLUSH_SESSIONS);
	}
	// Four dead entries are twice the quota: that is all the room it may take.
	hop_put(fib, A, SESSION, 1, 1);
	assert_int_equal(route_put(fib, A, SESSION, "10.0.2.1/32", 1), -EAGAIN);
	assert_int_equal(route_put(fib, A, SESSION, "10.0.1.1/32", 1), 0);
	assert_int_equal(sweep_all(fib), 3);
	assert_int_equal(route_put(fib, A, SESSION, "10.0.2.1/32", 1), 0);
	assert_int_equal(stats_of(fib, B).routes4, 0);
	fib_destroy(fib);
}

// A VNF that flushes routes of one family again and again does not keep those of the other from being swept.
static void families_are_swept_in_turn(void **state)
{
	struct fib *fib = two_vnfs();

	vnf_of(fib, A, 1, 16);
	for (unsigned turn = 0; turn < 3; turn++) {
		char text[] = "2001:db8::0/128";

		text[10] = (char)('1' + turn);
		hop_put(fib, A, SESSION, 1, 1);
		assert_int_equal(route_put(fib, A, SESSION, text, 1), turn < 2 ? 0 : -EAGAIN);
		fib_flush(fib, A, FIB_FLUSH_SESSIONS);
	}
	for (unsigned turn = 0; turn < 1000; turn++) {
		char text[32];

		snprintf(text, sizeof(text), "10.0.%u.1/32", turn % 256);
		hop_put(fib, B, SESSION, 1, 1);
		assert_int_equal(route_put(fib, B, SESSION, text, 1), 0);
		fib_flush(fib, B, FIB_FLUSH_SESSIONS);
		fib_sweep(fib, 64);
	}
	hop_put(fib, A, SESSION, 1, 1);
	assert_int_equal(route_put(fib, A, SESSION, "2001:db8::3/128", 1), 0);
	fib_destroy(fib);
}

// A prefix that shares nothing with others takes several nodes of the index. One VNF's may take no more of it than
// its quota is of all routes; the other VNF's come in all the same.
static void quota_of_the_index(void **state)
{
	struct fib *fib = fib_of(10000, 10000);
	unsigned count = 0;
	char text[64];
	int rc;

	vnf_of(fib, A, 1000, 16);
	vnf_of(fib, B, 1000, 16);
	for (uint16_t vnf = A; vnf <= B; vnf++) {
		assert_int_equal(fib_begin(fib, vnf, SESSION), 0);
		hop_put(fib, vnf, SESSION, 1, (uint8_t)vnf);
	}
	do {
		snprintf(text, sizeof(text), "%x:%x::1:0/127", 0x2000 + count * 7, count * 31);
		rc = route_put(fib, A, SESSION, text, 1);
	} while (rc == 0 && ++count);
	assert_int_equal(rc, -EDQUOT);
	assert_in_range(count, 100, 999);
	assert_int_equal(stats_of(fib, A).routes6, count);
	assert_int_equal(route_put(fib, A, SESSION, "10.0.0.0/8", 1), -EDQUOT);
	assert_int_equal(route_put(fib, B, SESSION, text, 1), 0);
	fib_flush(fib, B, FIB_FLUSH_SESSIONS); // what is swept is no room for A
	assert_int_equal(route_put(fib, A, SESSION, "10.0.0.0/8", 1), -EDQUOT);
	fib_flush(fib, A, FIB_FLUSH_SESSIONS);
	hop_put(fib, A, SESSION, 1, A);
	assert_int_equal(route_put(fib, A, SESSION, "10.0.0.0/8", 1), -EAGAIN);
	assert_int_equal(sweep_all(fib), count + 1);
	hop_put(fib, A, SESSION, 1, A);
	assert_int_equal(route_put(fib, A, SESSION, text, 1), 0);
	for (unsigned i = 0; i < 999; i++) { // what lies together takes little
		snprintf(text, sizeof(text), "2001:db8:%x::/48", i);
		assert_int_equal(route_put(fib, A, SESSION, text, 1), 0);
	}
	fib_destroy(fib);
}

static void quota_of_hops(void **state)
{
	const struct fib_hop hop = hop_of(1);
	struct fib *fib = two_vnfs();
	uint32_t session = SESSION;
	char text[32];

	vnf_of(fib, A, 500, 2);
	hop_put(fib, A, FIB_OPERATOR, 1, 1);
	hop_put(fib, A, SESSION, 1, 1);
	assert_int_equal(fib_hop_set(fib, A, SESSION, 2, &hop), -EDQUOT);
	hop_put(fib, A, SESSION, 1, 2);
	// Stale ones with routes stay; three times the quota of them all is the most.
	for (unsigned i = 0; i < 5; i++) {
		hop_put(fib, A, session, 1, 1);
		snprintf(text, sizeof(text), "10.0.0.%u/32", i);
		assert_int_equal(route_put(fib, A, session, text, 1), 0);
		assert_int_equal(fib_begin(fib, A, ++session), 0);
	}
	assert_int_equal(stats_of(fib, A).hops, 6);
	assert_int_equal(fib_hop_set(fib, A, session, 1, &hop), -EAGAIN);
	fib_flush(fib, A, FIB_FLUSH_STALE);
	assert_int_equal(fib_hop_set(fib, A, session, 1, &hop), -EAGAIN);
	assert_int_equal(sweep_all(fib), 5);
	assert_int_equal(fib_hop_set(fib, A, session, 1, &hop), 0);
	fib_destroy(fib);
}

static unsigned fill(struct fib *fib, unsigned from, int *rc)
{
	char text[32];
	unsigned i = from;

	do {
		snprintf(text, sizeof(text), "10.%u.%u.%u/32", i >> 16, i >> 8 & 255, i & 255);
		*rc = route_put(fib, A, SESSION, text, 1);
	} while (*rc == 0 && ++i);
	return i - from;
}

static void a_full_table(void **state)
{
	struct fib *fib = fib_of(256, 0);
	unsigned count;
	int rc;

	vnf_of(fib, A, 1000000, 16);
	assert_int_equal(fib_begin(fib, A, SESSION), 0);
	hop_put(fib, A, SESSION, 1, 1);
	assert_int_equal(route_put(fib, A, SESSION, "2001:db8::/32", 1), -ENOSPC);
	count = fill(fib, 0, &rc);
	assert_int_equal(rc, -ENOSPC);
	assert_true(count >= 256);
	assert_int_equal(stats_of(fib, A).routes4, count);
	assert_int_equal(found(fib, A, "10.0.0.0"), 1);
	fib_flush(fib, A, FIB_FLUSH_ALL);
	hop_put(fib, A, SESSION, 1, 2);
	fill(fib, 1 << 20, &rc);
	assert_int_equal(rc, -EAGAIN);
	fib_flush(fib, A, FIB_FLUSH_ALL);
	sweep_all(fib);
	hop_put(fib, A, SESSION, 1, 3);
	assert_true(fill(fib, 1 << 20, &rc) >= 256);
	assert_int_equal(found(fib, A, "10.16.0.0"), 3);
	fib_destroy(fib);
}

// A hop that a reader holds does not change under it, whatever happens to the hop.
static void readers_keep_what_they_hold(void **state)
{
	struct fib *fib = two_vnfs();
	int reader = fib_reader_add(fib), rc = 0;
	const uint8_t address[16] = {10, 0, 0, 1};
	const struct fib_hop *held;
	struct fib_hop hop;

	assert_true(reader >= 0);
	hop_put(fib, A, SESSION, 1, 1);
	assert_int_equal(route_put(fib, A, SESSION, "10.0.0.1/32", 1), 0);
	fib_reader_online(fib, reader);
	held = find(fib, A, address, 4);
	for (unsigned i = 0; i < 200000 && rc == 0; i++) {
		hop = hop_of((uint8_t)(2 + i % 2));
		rc = fib_hop_set(fib, A, SESSION, 1, &hop);
		assert_int_equal(held->port, 1);
	}
	assert_int_equal(rc, -EAGAIN); // all records wait for the reader
	fib_reader_quiet(fib, reader);
	hop_put(fib, A, SESSION, 1, 4);
	assert_int_equal(found(fib, A, "10.0.0.1"), 4);
	fib_reader_offline(fib, reader);
	fib_reader_remove(fib, reader);
	fib_destroy(fib);
}

// --- Groups ---------------------------------------------------------------------------------------------

enum { FLOWS = 256 };

// Members 1, 2, ... with these weights, as "112".
static int group_put(struct fib *fib, uint32_t session, uint16_t number, const char *weights)
{
	struct fib_member members[FIB_MEMBERS_MAX];
	unsigned count = 0;
	bool missing;

	for (unsigned i = 0; weights[i]; i++)
		if (weights[i] != '0')
			members[count++] =
			        (struct fib_member){(uint16_t)(i + 1), (uint8_t)(weights[i] - '0')};
	return fib_group_set(fib, A, session, number, members, count, &missing);
}

// Which mark each flow to 10.0.0.1 takes, and how many take each.
static void flows(const struct fib *fib, uint32_t down, uint8_t *marks, unsigned *counts)
{
	const uint8_t address[16] = {10, 0, 0, 1};
	const struct fib_hop *group = find(fib, A, address, 4);

	memset(counts, 0, 8 * sizeof(*counts));
	assert_int_equal(group->kind, FIB_HOP_GROUP);
	for (uint32_t flow = 0; flow < FLOWS; flow++) {
		marks[flow] = fib_hop_of_flow(fib, group, flow, down)->port;
		counts[marks[flow] % 8]++;
	}
}

static struct fib *grouped(const char *weights)
{
	struct fib *fib = two_vnfs();

	for (uint8_t mark = 1; mark <= 4; mark++)
		hop_put(fib, A, SESSION, mark, mark);
	assert_int_equal(group_put(fib, SESSION, 9, weights), 0);
	assert_int_equal(route_put(fib, A, SESSION, "10.0.0.0/24", 9), 0);
	return fib;
}

static void flows_are_spread_by_weight_and_stay(void **state)
{
	struct fib *fib = grouped("112");
	uint8_t before[FLOWS], now[FLOWS];
	unsigned counts[8];

	flows(fib, 0, before, counts);
	assert_true(counts[1] == FLOWS / 4 && counts[2] == FLOWS / 4 && counts[3] == FLOWS / 2);
	assert_int_equal(group_put(fib, SESSION, 9, "110"), 0); // one goes: its flows move
	flows(fib, 0, now, counts);
	assert_true(counts[1] == FLOWS / 2 && counts[2] == FLOWS / 2);
	for (unsigned i = 0; i < FLOWS; i++)
		assert_true(now[i] == before[i] || before[i] == 3);
	memcpy(before, now, sizeof(before));
	assert_int_equal(group_put(fib, SESSION, 9, "1101"), 0); // one comes: flows move to it
	flows(fib, 0, now, counts);
	for (unsigned i = 0; i < FLOWS; i++)
		assert_true(now[i] == before[i] || now[i] == 4);
	assert_true(counts[4] >= FLOWS / 4);
	hop_put(fib, A, SESSION, 4, 5); // a member changes: as a plain one
	flows(fib, 0, now, counts);
	assert_true(counts[4] == 0 && counts[5] >= FLOWS / 4);
	fib_destroy(fib);
}

static void flows_of_a_port_that_is_down_take_others(void **state)
{
	struct fib *fib = grouped("111");
	uint8_t before[FLOWS], now[FLOWS];
	unsigned counts[8];

	flows(fib, 0, before, counts);
	flows(fib, 1u << 2, now, counts);
	for (unsigned i = 0; i < FLOWS; i++)
		assert_true(before[i] == 2 ? now[i] == 1 || now[i] == 3 : now[i] == before[i]);
	assert_true(counts[1] > FLOWS / 3 && counts[3] > FLOWS / 3);
	flows(fib, 1u << 1 | 1u << 2 | 1u << 3, now, counts);
	assert_memory_equal(now, before, sizeof(now));
	fib_destroy(fib);
}

static void groups_refuse(void **state)
{
	struct fib *fib = grouped("11");
	const struct fib_member twice[] = {{1, 1}, {1, 1}}, group = {9, 1}, none = {77, 1},
	                        weightless = {1, 0};
	bool missing;

	assert_int_equal(fib_group_set(fib, A, SESSION, 8, twice, 2, &missing), -EINVAL);
	assert_int_equal(fib_group_set(fib, A, SESSION, 8, &group, 1, &missing), -EINVAL);
	assert_int_equal(fib_group_set(fib, A, SESSION, 8, &weightless, 1, &missing), -EINVAL);
	assert_int_equal(fib_group_set(fib, A, SESSION, 8, twice, 0, &missing), -EINVAL);
	assert_int_equal(fib_group_set(fib, A, SESSION, 3, twice, 1, &missing), 0);
	assert_int_equal(fib_group_set(fib, A, SESSION, 1, &twice[1], 1, &missing), -EINVAL);
	assert_int_equal(fib_group_set(fib, A, SESSION, 2, twice, 1, &missing), -EBUSY); // a member
	assert_false(missing);
	assert_int_equal(fib_group_set(fib, A, SESSION, 8, &none, 1, &missing), -ENOENT);
	assert_true(missing);
	assert_int_equal(fib_group_set(fib, A, SESSION + 1, 8, twice, 1, &missing), -ENOENT);
	assert_false(missing);
	assert_int_equal(fib_hop_delete(fib, A, SESSION, 2), -EBUSY);
	assert_int_equal(group_put(fib, SESSION, 9, "1"), 0);
	assert_int_equal(fib_hop_delete(fib, A, SESSION, 2), 0);
	hop_put(fib, A, SESSION, 9, 6); // no group any more
	assert_int_equal(found(fib, A, "10.0.0.1"), 6);
	assert_int_equal(fib_hop_delete(fib, A, SESSION, 3), 0);
	assert_int_equal(fib_hop_delete(fib, A, SESSION, 1), 0);
	fib_destroy(fib);
}

// A stale group goes on forwarding with its members, and goes with them; what they took is there for others.
static void groups_live_and_die_with_their_session(void **state)
{
	struct fib *fib = grouped("11");
	uint8_t marks[FLOWS];
	unsigned counts[8];
	uint32_t session = SESSION;

	assert_int_equal(fib_begin(fib, A, ++session), 0);
	flows(fib, 0, marks, counts);
	assert_true(counts[1] && counts[2]);
	assert_int_equal(stats_of(fib, A).hops, 3); // those that lead nowhere are gone
	hop_put(fib, A, session, 1, 7);
	assert_int_equal(route_put(fib, A, session, "10.0.0.0/24", 1), 0);
	assert_int_equal(stats_of(fib, A).hops, 1); // with the last route
	for (unsigned round = 0; round < 40000; round++) {
		hop_put(fib, A, session, 2, 2);
		assert_int_equal(group_put(fib, session, 9, round % 2 ? "11" : "12"), 0);
		assert_int_equal(route_put(fib, A, session, "10.0.0.0/24", 9), 0);
		assert_int_equal(route_put(fib, A, session, "10.0.0.2/32", round % 3 ? 1 : 9), 0);
		if (round % 5 == 0)
			fib_flush(fib, A, FIB_FLUSH_SESSIONS);
		assert_int_equal(fib_begin(fib, A, ++session), 0);
		if (round % 2)
			fib_flush(fib, A, FIB_FLUSH_STALE);
		hop_put(fib, A, session, 1, 1);
		sweep_all(fib);
	}
	fib_flush(fib, A, FIB_FLUSH_ALL);
	sweep_all(fib);
	assert_int_equal(stats_of(fib, A).hops, 0);
	fib_destroy(fib);
}

static void lists_in_pages(void **state)
{
	struct fib *fib = two_vnfs();
	struct fib_route routes[8];
	bool seen[100] = {false};
	unsigned count, all = 0, pages = 0;
	uint64_t cursor = 0;
	char text[32];

	hop_put(fib, A, SESSION, 3, 1);
	hop_put(fib, B, SESSION, 3, 1);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), i % 2 ? "10.0.0.%u/32" : "2001:db8:%x::/48", i);
		assert_int_equal(route_put(fib, A, SESSION, text, 3), 0);
		assert_int_equal(route_put(fib, B, SESSION, text, 3), 0);
	}
	do {
		count = fib_list(fib, A, &cursor, 4, routes, 8);
		for (unsigned i = 0; i < count; i++) {
			bool four = routes[i].prefix.family == 4;
			unsigned which = routes[i].prefix.address[four ? 3 : 5];

			assert_int_equal(routes[i].prefix.length, four ? 32 : 48);
			assert_int_equal(routes[i].number, 3);
			assert_int_equal(routes[i].session, SESSION);
			assert_int_equal(routes[i].hop.port, 1);
			assert_false(seen[which] || routes[i].stale);
			seen[which] = true;
		}
		all += count;
		pages++;
	} while (cursor);
	assert_int_equal(all, 100);
	assert_true(pages > 12);
	fib_destroy(fib);
}

static void one_writer(void **state)
{
	struct fib *fib = fib_of(16, 0);

	assert_false(fib_trylock(fib));
	fib_unlock(fib);
	assert_true(fib_trylock(fib));
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(address_spaces_overlap),
	        cmocka_unit_test(every_length),
	        cmocka_unit_test(adding_what_is_there),
	        cmocka_unit_test(hops_change_and_go),
	        cmocka_unit_test(sessions_and_flush),
	        cmocka_unit_test(a_dead_entry_is_taken_over),
	        cmocka_unit_test(quota_of_routes),
	        cmocka_unit_test(quota_of_hops),
	        cmocka_unit_test(families_are_swept_in_turn),
	        cmocka_unit_test(quota_of_the_index),
	        cmocka_unit_test(a_full_table),
	        cmocka_unit_test(readers_keep_what_they_hold),
	        cmocka_unit_test(flows_are_spread_by_weight_and_stay),
	        cmocka_unit_test(flows_of_a_port_that_is_down_take_others),
	        cmocka_unit_test(groups_refuse),
	        cmocka_unit_test(groups_live_and_die_with_their_session),
	        cmocka_unit_test(lists_in_pages),
	        cmocka_unit_test(one_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
