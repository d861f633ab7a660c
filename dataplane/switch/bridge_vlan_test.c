// SPDX-License-Identifier: BSD-3-Clause
// bridge with VLANs: which ports a frame leaves by, and with which tag; then the pieces that a frame in place
// leaves in, on plain memory.
#include "switch/bridge_forward.h"
#include "switch/bridge_rig.h"

// Where a frame goes, and with which tag: per port '.' nothing, 'u' untagged, 't' tagged with tci.
static const struct vlan_case {
	unsigned in;
	int tci;
	const char *ports;
	int tci_out;
} vlan_cases[] = {
        {0, UNTAGGED, "..tt", 10},        // access 10
        {0, 10, "....", 0},               // an access port takes no tag, not even its own
        {0, 0xe000, "..tt", 0xe000 | 10}, // but for a priority
        {1, UNTAGGED, "..tu", 20},        // access 20
        {2, 10, "u..t", 10},              // trunk
        {2, 0x7000 | 10, "u..t", 0x7000 | 10},
        {2, 20, ".u.u", 0},
        {2, 30, "....", 0},       // a VLAN it is not in
        {2, UNTAGGED, "....", 0}, // no native VLAN
        {2, 0x6000, "....", 0},
        {3, UNTAGGED, ".ut.", 20}, // native
        {3, 0x6000, ".ut.", 0x6000 | 20},
        {3, 20, ".ut.", 20}, // the native VLAN with a tag
        {3, 10, "u.t.", 10},
        {3, 4095, "....", 0},
};

static void assert_leaves(struct fixture *f, const struct vlan_case *k, unsigned port)
{
	uint8_t wanted[128], from[6];
	struct rte_mbuf *m;
	uint16_t length;

	if (k->ports[port] == '.') {
		assert_int_equal(ring_port_drain(&f->ports[port]), 0);
		return;
	}
	station(from, A);
	length = make_frame(wanted, broadcast, from, k->ports[port] == 't' ? k->tci_out : UNTAGGED, 9);
	assert_int_equal(ring_port_collect(&f->ports[port], &m, 1), 1);
	assert_int_equal(m->pkt_len, length);
	assert_memory_equal(rte_pktmbuf_mtod(m, void *), wanted, length);
	rte_pktmbuf_free(m);
}

static void vlans_are_kept_apart(void **state)
{
	struct fixture *f = *state;
	struct rig_config c = config_vlan();
	struct task *task = create(state, &c);
	unsigned dropped = 0;

	for (unsigned i = 0; i < RTE_DIM(vlan_cases); i++) {
		const struct vlan_case *k = &vlan_cases[i];

		inject_to(f, k->in, broadcast, A, k->tci, 9);
		assert_int_equal(poll(task), 1);
		for (unsigned port = 0; port < FIXTURE_PORTS; port++)
			assert_leaves(f, k, port);
		dropped += strcmp(k->ports, "....") == 0;
	}
	assert_int_equal(reported(task, "drops.vlan"), dropped);
	finish(task);
}

// A driver that leaves nothing before a frame: a copy of it has room for a tag, the frame itself has not.
static void no_room_for_a_tag_has_its_name(void **state)
{
	struct rig_config c = config_vlan();
	struct task *task = create(state, &c);
	struct fixture *f = *state;
	uint8_t frame[128], from[6];
	struct rte_mbuf *m;
	uint16_t length;

	station(from, A);
	length = make_frame(frame, broadcast, from, UNTAGGED, 9);
	m = fixture_packet(f, frame, length);
	m->data_off = 0;
	memcpy(rte_pktmbuf_mtod(m, void *), frame, length);
	assert_int_equal(ring_port_inject(&f->ports[0], &m, 1), 1);
	assert_int_equal(poll(task), 1);
	assert_string_equal(came(f), "0010");
	assert_int_equal(reported(task, "drops.no_headroom"), 1);
	assert_int_equal(reported(task, "drops.no_mbuf"), 0);
	finish(task);
}

// The same address in two VLANs is two stations.
static void a_station_is_known_by_vlan(void **state)
{
	struct rig_config c = config_vlan();
	struct task *task = create(state, &c);

	assert_string_equal(pass(state, task, 0, NOBODY, A, UNTAGGED), "0011");
	assert_string_equal(pass(state, task, 1, NOBODY, A, UNTAGGED), "0011");
	assert_string_equal(pass(state, task, 2, A, B, 10), "1000");
	assert_string_equal(pass(state, task, 2, A, B, 20), "0100");
	assert_int_equal(reported(task, "bridge.entries"), 4);
	assert_int_equal(reported(task, "bridge.moved"), 0);
	finish(task);
}

static void a_vlan_of_one_port_goes_nowhere(void **state)
{
	struct rig_config c = config(2);
	struct task *task;

	c.bridge.vlan = true;
	c.bridge.port_count = 2;
	c.bridge.ports[0].untagged_vlan = 1;
	c.bridge.ports[1].untagged_vlan = 2;
	task = create(state, &c);
	assert_string_equal(pass(state, task, 0, B, A, UNTAGGED), "0000");
	assert_int_equal(reported(task, "drops.no_member"), 1);
	finish(task);
}

// --- In place
// ------------------------------------------------------------------------------------------------

// A frame of some length, cut into pieces at every place, with and without a tag before and after.
static void pieces_have_the_frame(void **state)
{
	static const struct {
		int in, out;
	} tags[] = {{UNTAGGED, UNTAGGED}, {UNTAGGED, 0x2000 | 9}, {9, UNTAGGED}, {0xe000, 0xe000 | 9}};
	uint8_t frame[128], wanted[128], got[128], to_mac[6], from_mac[6];

	station(to_mac, B);
	station(from_mac, A);
	for (unsigned k = 0; k < RTE_DIM(tags); k++) {
		unsigned length = make_frame(frame, to_mac, from_mac, tags[k].in, 3);
		unsigned wanted_length = make_frame(wanted, to_mac, from_mac, tags[k].out, 3);

		for (unsigned first = 1; first < length; first++)
			for (unsigned second = 1; first + second < length; second += 5) {
				const struct piece pieces[] = {{frame, first},
				                               {frame + first, second},
				                               {frame + first + second,
				                                length - first - second}},
				                   into = {got, sizeof(got)};
				struct bridge_fate fate = {.tagged = tags[k].in != UNTAGGED,
				                           .tci = (uint16_t)tags[k].out};
				struct scatter to = {&into, 0};
				struct view view = {.count = 1, .held = VIEW_IN_PIECES};
				struct bridge_leaving leaving = {.piece_count = 0};
				struct bridge_burst burst;

				view.frames[0] = (struct frame){{pieces, 0}, length, 0};
				bridge_read_heads(&view, &burst);
				assert_memory_equal(burst.heads[0].bytes, frame, BRIDGE_HEAD_BYTES);
				view_part_begin(&leaving.part, &view);
				view_part_add(&leaving.part, &view, 0);
				assert_true(bridge_set_head(&leaving, &burst.heads[0], &fate,
				                            tags[k].out != UNTAGGED));
				assert_int_equal(leaving.part.frames[0].length, wanted_length);
				scatter_copy(&to, &leaving.part.frames[0].at, wanted_length);
				assert_memory_equal(got, wanted, wanted_length);
			}
	}
}

// What the sender makes of its frame once it is read does not get out: not another VLAN, nor another address.
static void a_head_that_changes_is_sent_as_it_was(void **state)
{
	uint8_t bytes[128], was[128], from_mac[6];
	struct piece piece = {bytes, 0};
	struct bridge_fate fate = {.tagged = true, .tci = 10};
	struct bridge_leaving leaving = {.piece_count = 0};
	struct view view = {.count = 1, .held = VIEW_IN_PIECES};
	struct bridge_burst burst;

	station(from_mac, A);
	piece.length = make_frame(bytes, broadcast, from_mac, 10, 3);
	view.frames[0] = (struct frame){{&piece, 0}, piece.length, 0};
	memcpy(was, bytes, sizeof(was));
	bridge_read_heads(&view, &burst);
	memset(bytes, 0xee, BRIDGE_HEAD_BYTES);
	view_part_begin(&leaving.part, &view);
	view_part_add(&leaving.part, &view, 0);
	assert_true(bridge_set_head(&leaving, &burst.heads[0], &fate, true));
	assert_memory_equal(leaving.pieces[0].data, was, BRIDGE_HEAD_BYTES);
	assert_true(leaving.pieces[0].length == BRIDGE_HEAD_BYTES && leaving.piece_count == 2);
	assert_ptr_equal(leaving.pieces[1].data, bytes + BRIDGE_HEAD_BYTES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(vlans_are_kept_apart),
	        TEST(no_room_for_a_tag_has_its_name),
	        TEST(a_station_is_known_by_vlan),
	        TEST(a_vlan_of_one_port_goes_nowhere),
	        cmocka_unit_test(pieces_have_the_frame),
	        cmocka_unit_test(a_head_that_changes_is_sent_as_it_was),
	};

	if (fixture_eal_init("bridge_vlan") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("bridge_vlan", tests, NULL, NULL);
}
