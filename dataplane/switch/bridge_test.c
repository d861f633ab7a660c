// SPDX-License-Identifier: BSD-3-Clause
// bridge between up to four ring-backed ports: where frames go, and that each of them is counted once, as
// received and as copies.
#include "base/clock.h"
#include "switch/bridge_rig.h"

static void it_floods_until_it_knows(void **state)
{
	struct rig_config c = config(4);
	struct task *task = create(state, &c);

	assert_string_equal(pass(state, task, 0, B, A, UNTAGGED), "0111");
	assert_string_equal(pass(state, task, 1, A, B, UNTAGGED), "1000");
	assert_string_equal(pass(state, task, 0, B, A, UNTAGGED), "0100");
	assert_string_equal(pass(state, task, 2, A, B, UNTAGGED), "1000"); // B has moved
	assert_string_equal(pass(state, task, 0, B, A, UNTAGGED), "0010");
	assert_string_equal(pass(state, task, 2, B, C, UNTAGGED), "0000"); // where it came from
	assert_string_equal(pass(state, task, 3, C, NOBODY, 5), "0010");   // tags are not looked at
	assert_int_equal(reported(task, "drops.hairpin"), 1);
	assert_int_equal(reported(task, "bridge.learned"), 4);
	assert_int_equal(reported(task, "bridge.moved"), 1);
	assert_int_equal(reported(task, "bridge.entries"), 4);
	assert_int_equal(reported(task, "bridge.flooded"), 1);
	assert_int_equal(reported(task, "bridge.flood_copies"), 3);
	assert_int_equal(reported(task, "bridge.forwarded"), 5);
	task_clear(task);
	assert_int_equal(reported(task, "bridge.learned"), 0);
	assert_int_equal(reported(task, "bridge.entries"), 4);
	task->counters = (struct task_counters){0};
	finish(task);
}

static void groups_are_flooded_and_some_addresses_never_forwarded(void **state)
{
	static const struct {
		uint8_t to[6];
		const char *ports;
	} cases[] = {
	        {{255, 255, 255, 255, 255, 255}, "0110"},
	        {{1, 0, 0x5e, 0, 0, 1}, "0110"},
	        {{1, 0x80, 0xc2, 0, 0, 0}, "0000"},
	        {{1, 0x80, 0xc2, 0, 0, 0x0f}, "0000"},
	        {{1, 0x80, 0xc2, 0, 0, 0x10}, "0110"},
	        {{1, 0x80, 0xc2, 0, 1, 0}, "0110"},
	        {{0, 0, 0, 0, 0, 0}, "0110"},
	};
	struct rig_config c = config(3);
	struct task *task = create(state, &c);

	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		inject_to(*state, 0, cases[i].to, A, UNTAGGED, 0);
		assert_int_equal(poll(task), 1);
		assert_string_equal(came(*state), cases[i].ports);
	}
	assert_int_equal(reported(task, "drops.reserved"), 2);
	assert_int_equal(reported(task, "bridge.entries"), 1);
	finish(task);
}

// Neither a group nor the address 0 is ever a station.
static void odd_sources_are_not_learned(void **state)
{
	static const uint8_t sources[][6] = {{1, 0, 0, 0, 0, 7}, {0, 0, 0, 0, 0, 0}};
	struct fixture *f = *state;
	struct rig_config c = config(3);
	struct task *task = create(state, &c);

	for (unsigned i = 0; i < RTE_DIM(sources); i++) {
		uint8_t frame[128];
		struct rte_mbuf *m =
		        fixture_packet(f, frame, make_frame(frame, broadcast, sources[i], UNTAGGED, 0));

		assert_int_equal(ring_port_inject(&f->ports[0], &m, 1), 1);
		assert_int_equal(poll(task), 1);
		assert_string_equal(came(f), "0110");
	}
	assert_int_equal(reported(task, "bridge.learned"), 0);
	finish(task);
}

static void runts_are_dropped(void **state)
{
	static const uint16_t lengths[] = {1, 13, 14, 17, 18};
	struct fixture *f = *state;
	struct rig_config c = config(2);
	struct task *task = create(state, &c);
	uint8_t frame[128], from[6];

	station(from, A);
	for (unsigned i = 0; i < 2 * RTE_DIM(lengths); i++) {
		struct rte_mbuf *m;

		make_frame(frame, broadcast, from, i % 2 ? 7 : UNTAGGED, 0);
		m = fixture_packet(f, frame, lengths[i / 2]);
		assert_int_equal(ring_port_inject(&f->ports[0], &m, 1), 1);
	}
	assert_int_equal(poll(task), 10);
	assert_string_equal(came(f), "0400"); // 14 and 17 untagged, 18 both
	assert_int_equal(reported(task, "drops.runt"), 6);
	finish(task);
}

struct heard {
	double at_s;
	unsigned port, to, from;
	const char *ports;
};

// A is silent for 9.8 s, then for 10.1 s; B, at last, for 10.1 s, and comes back by another port.
static void stations_age(void **state)
{
	static const struct heard frames[] = {
	        {0, 0, NOBODY, A, "0110"}, {9.5, 1, A, B, "1000"},  {9.6, 0, B, A, "0100"},
	        {19.4, 1, A, B, "1000"},   {19.7, 1, A, B, "1010"}, {20, 0, B, A, "0100"},
	        {29.8, 2, A, B, "1000"},
	};
	struct fixture *f = *state;
	struct rig_config c = config(3);
	uint64_t begin = rte_rdtsc();
	struct task *task;

	c.bridge.ageing_s = 10;
	task = create(state, &c);
	for (unsigned i = 0; i < RTE_DIM(frames); i++) {
		inject(f, frames[i].port, frames[i].to, frames[i].from, UNTAGGED, 0);
		task->ops->poll(task, begin + (uint64_t)(frames[i].at_s * (double)clock_hz()));
		assert_string_equal(came(f), frames[i].ports);
	}
	assert_int_equal(reported(task, "bridge.aged"), 2); // not moved: nobody was there any more
	assert_int_equal(reported(task, "bridge.learned"), 4);
	assert_int_equal(reported(task, "bridge.moved"), 0);
	finish(task);
}

// Frames to several stations and to all, in one burst: each port gets its own, in order, whole.
static void order_is_kept_at_every_port(void **state)
{
	struct fixture *f = *state;
	struct rig_config c = config(4);
	struct task *task = create(state, &c);
	unsigned sizes = 0;

	for (unsigned port = 1; port < 4; port++)
		pass(state, task, port, NOBODY, port, UNTAGGED);
	for (unsigned k = 0; k < fixture_burst_count; k++) {
		struct rte_mbuf *out[64];

		for (unsigned i = 0; i < fixture_bursts[k]; i++)
			inject(f, 0, i % 5 == 4 ? NOBODY : 1 + i % 3, 50 + i % 2, UNTAGGED, (uint8_t)i);
		poll_all(task);
		for (unsigned port = 1; port < 4; port++) {
			unsigned n = ring_port_collect(&f->ports[port], out, 64), got = 0;

			for (unsigned i = 0; i < fixture_bursts[k]; i++) {
				if (i % 5 != 4 && 1 + i % 3 != port)
					continue;
				assert_true(got < n);
				assert_int_equal(rte_pktmbuf_pkt_len(out[got]), LENGTH);
				assert_int_equal(*rte_pktmbuf_mtod_offset(out[got], uint8_t *, LENGTH - 1),
				                 i);
				got++;
			}
			assert_int_equal(got, n);
			rte_pktmbuf_free_bulk(out, n);
			sizes += n;
		}
	}
	assert_true(sizes > 100);
	finish(task);
}

static void a_full_ring_takes_its_frames_only(void **state)
{
	struct fixture *f = *state;
	struct rig_config c = config(3);
	struct task *task = create(state, &c);

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 10; i++)
			inject(f, 0, NOBODY, A, UNTAGGED, 0);
		poll_all(task);
		if (round == 0)
			assert_int_equal(ring_port_drain(&f->ports[2]), 10);
	}
	assert_int_equal(reported(task, "drops_by_port.p1.tx_full"), 5);
	assert_int_equal(reported(task, "drops_by_port.p2.tx_full"), 0);
	assert_int_equal(task->counters.tx_packets, 35);
	came(f);
	finish(task);
}

static void an_empty_pool_loses_copies_not_frames(void **state)
{
	struct fixture *f = *state;
	struct rig_config c = config(4);
	struct task *task = create(state, &c);
	struct rte_mbuf *hoard[FIXTURE_MBUFS];
	unsigned hoarded = 0;

	while (hoarded < FIXTURE_MBUFS - 2)
		assert_non_null(hoard[hoarded++] = rte_pktmbuf_alloc(f->pool));
	inject(f, 0, NOBODY, A, UNTAGGED, 0);
	assert_int_equal(poll(task), 1); // one mbuf is left for two copies
	assert_string_equal(came(f), "0101");
	assert_int_equal(reported(task, "drops.no_mbuf"), 1);
	rte_pktmbuf_free_bulk(hoard, hoarded);
	finish(task);
}

// Random frames everywhere: whatever happens, it adds up, and no mbuf is lost (the fixture looks).
static void it_always_adds_up(void **state)
{
	struct fixture *f = *state;

	for (unsigned vlan = 0; vlan < 2; vlan++) {
		struct rig_config c = vlan ? config_vlan() : config(4);
		struct task *task = create(state, &c);
		uint64_t injected = 0, collected = 0, x = 5;

		for (unsigned i = 0; i < 3000; i++) {
			int tci;

			x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
			tci = x >> 63 ? (int)(x >> 50 & 0xe01f) : UNTAGGED;
			inject(f, x >> 40 & 3, x >> 20 & 15, x >> 30 & 15, tci, 0);
			injected++;
			if (x >> 45 & 1)
				while (poll(task))
					;
			for (unsigned port = 0; (x >> 46 & 7) == 0 && port < FIXTURE_PORTS; port++)
				collected += ring_port_drain(&f->ports[port]);
		}
		while (poll(task))
			;
		for (unsigned port = 0; port < FIXTURE_PORTS; port++)
			collected += ring_port_drain(&f->ports[port]);
		assert_int_equal(task->counters.rx_packets, injected);
		assert_int_equal(task->counters.tx_packets, collected);
		assert_true(reported(task, "bridge.forwarded") > 100 &&
		            reported(task, "drops.hairpin") > 100);
		finish(task);
	}
}

static json_int_t listed(struct task *task)
{
	json_t *list = call(task, "table", json_pack("{s:i}", "limit", 64));
	json_int_t n = (json_int_t)json_array_size(json_object_get(list, "entries"));

	json_decref(list);
	return n;
}

// What one learns the other knows; another name, other settings or no name: a table of its own.
static void a_table_is_shared_by_name(void **state)
{
	struct rig_config named = config(3), other, unnamed = config(3);
	struct task *tasks[5];

	snprintf(named.bridge.table, sizeof(named.bridge.table), "t");
	other = named;
	other.bridge.ageing_s = 7;
	tasks[0] = create(state, &named);
	tasks[1] = create(state, &named);
	tasks[2] = create(state, &other);
	tasks[3] = create(state, &unnamed);
	tasks[4] = create(state, &unnamed);
	assert_string_equal(pass(state, tasks[0], 2, NOBODY, A, UNTAGGED), "1100");
	for (unsigned i = 0; i < RTE_DIM(tasks); i++)
		assert_int_equal(listed(tasks[i]), i < 2);
	assert_string_equal(pass(state, tasks[1], 0, A, B, UNTAGGED), "0010");
	finish(tasks[0]);
	assert_int_equal(listed(tasks[1]), 2);
	json_decref(call(tasks[1], "flush", json_object()));
	assert_int_equal(listed(tasks[1]), 0);
	for (unsigned i = 1; i < RTE_DIM(tasks); i++)
		finish(tasks[i]);
}

// Page by page, whatever their size: every station once. The last page says that it is the last.
static void a_table_is_listed_in_pages(void **state)
{
	enum { STATIONS = 100 };
	struct rig_config c = config(2);
	struct task *task;

	c.bridge.table_size = 1 << 16; // wide enough that no five share a bucket, whatever the seed
	task = create(state, &c);
	for (unsigned i = 0; i < STATIONS; i++)
		assert_string_equal(pass(state, task, 0, NOBODY, 1000 + i, UNTAGGED), "0100");
	for (unsigned limit = MAC_TABLE_WAYS; limit < 3 * STATIONS; limit += 13) {
		bool seen[STATIONS] = {0};
		json_int_t from = 0;
		unsigned listed = 0;

		while (from >= 0) {
			json_t *page = call(task, "table",
			                    json_pack("{s:I, s:i}", "from", from, "limit", (int)limit));
			json_t *entries = json_object_get(page, "entries");

			assert_true(json_array_size(entries) <= limit);
			for (size_t i = 0; i < json_array_size(entries); i++, listed++) {
				const char *mac =
				        json_string_value(json_object_get(json_array_get(entries, i), "mac"));
				unsigned n = (unsigned)strtoul(mac + 12, NULL, 16) << 8 |
				             (unsigned)strtoul(mac + 15, NULL, 16);

				assert_false(seen[n - 1000]);
				seen[n - 1000] = true;
			}
			from = fixture_number(page, "next");
			json_decref(page);
		}
		assert_int_equal(listed, STATIONS);
	}
	assert_int_equal(reported(task, "bridge.entries"), STATIONS);
	finish(task);
}

// Two that share a table, and another.
static void entries_are_those_of_the_table(void **state)
{
	struct rig_config named = config(2), unnamed = config(2);
	struct task *tasks[3];

	snprintf(named.bridge.table, sizeof(named.bridge.table), "t");
	tasks[0] = create(state, &named);
	tasks[1] = create(state, &unnamed);
	tasks[2] = create(state, &named);
	assert_string_equal(pass(state, tasks[2], 0, NOBODY, A, UNTAGGED), "0100");
	for (unsigned i = 0; i < RTE_DIM(tasks); i++)
		assert_int_equal(reported(tasks[i], "bridge.entries"), i != 1);
	for (unsigned i = 0; i < RTE_DIM(tasks); i++)
		finish(tasks[i]);
}

// A task of the same name, ports and settings replaces it, as config.apply does; others learn anew.
static void an_unnamed_table_is_handed_over(void **state)
{
	struct rig_config same = config(2), other = config(2);
	struct task *old = create(state, &same), *new = create(state, &same), *differs;

	other.bridge.ageing_s = 7;
	differs = create(state, &other);
	assert_string_equal(pass(state, old, 0, NOBODY, A, UNTAGGED), "0100");
	differs->ops->adopt(differs, old);
	new->ops->adopt(new, old);
	finish(old);
	assert_int_equal(listed(new), 1);
	assert_int_equal(listed(differs), 0);
	finish(new);
	finish(differs);
}

// --- Port security ----------------------------------------------------------------------------------------

static struct rig_config config_secure(unsigned ports)
{
	struct rig_config c = config(ports);

	c.bridge.security_count = ports;
	return c;
}

static void a_port_has_so_many_stations(void **state)
{
	struct rig_config c = config_secure(3);
	struct task *task;

	c.bridge.security[0].max_stations = 2;
	task = create(state, &c);
	assert_string_equal(pass(state, task, 0, NOBODY, A, UNTAGGED), "0110");
	assert_string_equal(pass(state, task, 0, NOBODY, B, UNTAGGED), "0110");
	for (unsigned i = 0; i < 100; i++) // as a flood of made-up addresses
		assert_string_equal(pass(state, task, 0, NOBODY, 1000 + i, UNTAGGED), "0000");
	assert_string_equal(pass(state, task, 0, NOBODY, A, UNTAGGED), "0110"); // those that it has may go on
	assert_string_equal(pass(state, task, 1, A, C, UNTAGGED), "1000");      // and others learn as before
	assert_int_equal(reported(task, "drops.station_limit"), 100);
	assert_int_equal(reported(task, "bridge.entries"), 3);
	assert_string_equal(pass(state, task, 2, NOBODY, B, UNTAGGED), "1100");    // moves away
	assert_string_equal(pass(state, task, 0, NOBODY, 1000, UNTAGGED), "0110"); // has its place
	assert_string_equal(pass(state, task, 0, NOBODY, 1001, UNTAGGED), "0000");
	assert_int_equal(reported(task, "drops.station_limit"), 101);
	finish(task);
}

// The table of a name goes on where the task is replaced, and so do the stations that its ports have in it.
static void a_limit_stays_where_a_named_table_does(void **state)
{
	struct rig_config c = config_secure(2);
	struct task *old, *new;

	snprintf(c.bridge.table, sizeof(c.bridge.table), "t");
	c.bridge.security[0].max_stations = 1;
	old = create(state, &c);
	assert_string_equal(pass(state, old, 0, NOBODY, A, UNTAGGED), "0100");
	new = create(state, &c);
	new->ops->adopt(new, old);
	finish(old);
	assert_string_equal(pass(state, new, 0, NOBODY, B, UNTAGGED), "0000");
	assert_string_equal(pass(state, new, 0, NOBODY, A, UNTAGGED), "0100");
	finish(new);
}

static void a_limited_port_takes_back_a_station_that_was_forgotten(void **state)
{
	struct rig_config c = config_secure(2);
	struct task *task;

	c.bridge.security[0].max_stations = 1;
	task = create(state, &c);
	for (unsigned i = 0; i < 3; i++) {
		assert_string_equal(pass(state, task, 0, NOBODY, A, UNTAGGED), "0100");
		json_decref(call(task, "flush", json_object()));
	}
	assert_string_equal(pass(state, task, 0, NOBODY, B, UNTAGGED),
	                    "0100"); // A is forgotten, and its place free
	assert_string_equal(pass(state, task, 0, NOBODY, A, UNTAGGED), "0000");
	finish(task);
}

static void a_locked_port_has_its_stations_and_nobody_else_has_them(void **state)
{
	struct rig_config c = config_secure(3);
	struct task *task;

	c.bridge.security[0].locked = true;
	c.bridge.security[0].station_count = 1;
	station(c.bridge.security[0].stations[0], A);
	task = create(state, &c);
	assert_string_equal(pass(state, task, 1, A, A, UNTAGGED), "0000"); // before it has ever spoken
	assert_string_equal(pass(state, task, 0, NOBODY, A, UNTAGGED), "0110");
	assert_string_equal(pass(state, task, 0, NOBODY, B, UNTAGGED), "0000");
	assert_string_equal(pass(state, task, 1, NOBODY, A, UNTAGGED), "0000"); // would move it
	assert_string_equal(pass(state, task, 2, A, B, UNTAGGED), "1000");      // is where it was
	assert_int_equal(reported(task, "drops.locked"), 3);
	assert_int_equal(reported(task, "bridge.moved"), 0);
	assert_int_equal(reported(task, "bridge.entries"), 2);
	finish(task);
}

// Returns how many polls do no work until a waiting frame is taken.
static unsigned rests(struct task *task, uint64_t now_tsc)
{
	unsigned n = 0;

	while (task->ops->poll(task, now_tsc) == 0)
		assert_true(++n < UINT8_MAX);
	return n;
}

// A burst that becomes many copies is paid in polls without work; other ports have them.
static void who_floods_many_ports_is_polled_less_often(void **state)
{
	const unsigned charge = 32 * (2 * BRIDGE_CHARGE_COPY + 2 * BRIDGE_CHARGE_MBUF);
	struct rig_config c = config(4);
	struct task *task = create(state, &c);

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 32; i++)
			inject(*state, 0, NOBODY, A, UNTAGGED, (uint8_t)i);
		assert_int_equal(poll(task), 32);
		inject(*state, 0, NOBODY, A, UNTAGGED, 0);
		inject(*state, 1, NOBODY, B, UNTAGGED, 0);
		assert_int_equal(poll(task), 1); // of the other port
		assert_int_equal(rests(task, rte_rdtsc()), charge / 32 - 1);
		for (unsigned port = 0; port < 4; port++)
			ring_port_drain(&((struct fixture *)*state)->ports[port]);
	}
	finish(task);
}

// To one other port, as between two, it is no more than forwarding.
static void who_floods_one_port_does_not_rest(void **state)
{
	struct rig_config c = config(2);
	struct task *task = create(state, &c);

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 32; i++)
			inject(*state, 0, NOBODY, A, UNTAGGED, (uint8_t)i);
		assert_int_equal(rests(task, rte_rdtsc()), 0);
		ring_port_drain(&((struct fixture *)*state)->ports[1]);
	}
	finish(task);
}

// 64 stations that begin at once: all are learned and no frame is lost, but their port rests in between; another one does
// not. From then on it does not, either.
static void new_stations_rest_and_lose_nothing(void **state)
{
	const uint64_t now_tsc = rte_rdtsc(); // nothing is noted again
	struct rig_config c = config(4);
	struct task *task;

	c.bridge.table_size = 1 << 16; // no bucket is full
	task = create(state, &c);
	pass(state, task, 1, NOBODY, B, UNTAGGED);
	for (unsigned i = 0; i < 64; i++)
		inject(*state, 0, B, 100 + i, UNTAGGED, (uint8_t)i);
	assert_int_equal(rests(task, now_tsc), 0);
	inject(*state, 1, 100, B, UNTAGGED, 0);
	assert_int_equal(poll(task), 1);
	assert_int_equal(rests(task, now_tsc), BRIDGE_CHARGE_LEARN - 1);
	assert_int_equal(ring_port_drain(&((struct fixture *)*state)->ports[0]), 1);
	assert_int_equal(ring_port_drain(&((struct fixture *)*state)->ports[1]), 64);
	assert_int_equal(reported(task, "bridge.learned"), 65);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 32; i++)
			inject(*state, 0, B, 100 + i, UNTAGGED, (uint8_t)i);
		assert_int_equal(rests(task, now_tsc), round ? 0 : BRIDGE_CHARGE_LEARN);
		ring_port_drain(&((struct fixture *)*state)->ports[1]);
	}
	finish(task);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(it_floods_until_it_knows),
	        TEST(groups_are_flooded_and_some_addresses_never_forwarded),
	        TEST(odd_sources_are_not_learned),
	        TEST(runts_are_dropped),
	        TEST(stations_age),
	        TEST(order_is_kept_at_every_port),
	        cmocka_unit_test_setup_teardown(a_full_ring_takes_its_frames_only, fixture_setup_small,
	                                        fixture_teardown),
	        TEST(an_empty_pool_loses_copies_not_frames),
	        TEST(it_always_adds_up),
	        TEST(a_table_is_shared_by_name),
	        TEST(a_table_is_listed_in_pages),
	        TEST(entries_are_those_of_the_table),
	        TEST(an_unnamed_table_is_handed_over),
	        TEST(a_port_has_so_many_stations),
	        TEST(a_limit_stays_where_a_named_table_does),
	        TEST(a_limited_port_takes_back_a_station_that_was_forgotten),
	        TEST(a_locked_port_has_its_stations_and_nobody_else_has_them),
	        TEST(who_floods_many_ports_is_polled_less_often),
	        TEST(who_floods_one_port_does_not_rest),
	        TEST(new_stations_rest_and_lose_nothing),
	};

	if (fixture_eal_init("bridge") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("bridge", tests, NULL, NULL);
}
