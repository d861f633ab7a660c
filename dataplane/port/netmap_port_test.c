// SPDX-License-Identifier: BSD-3-Clause
// What a netmap port does when netmap lies: a registration that makes no sense is refused, a ring that breaks a rule stops,
// and each frame is sent, received, or in one counter. What it does otherwise is in port_contract_test.c.
#include <errno.h>

#include "port/port_rig.h"
#include "test/netmap_fake.h"
#include "test/unit.h"

enum { SIZE = 64 };

static const struct rig_kind kind = {
        .kind = "netmap", .peer = "netmap", .device = "vale0:a", .peer_device = "vale0:b"};
static struct rig rig;

static int set_up(void **state)
{
	netmap_fake_begin(NULL);
	return rig_open(&rig, &kind, SIZE) ? 0 : -1;
}

static int tear_down(void **state)
{
	netmap_fake_fail(0);
	rig_close(&rig);
	return 0;
}

static struct port_counters counters_of(const struct port *port)
{
	struct port_counters counters;

	port_read_counters(port, &counters);
	return counters;
}

// The ring that frames come in says so, of the frame that is next.
static struct netmap_slot *next_to_come(void)
{
	struct netmap_ring *ring = netmap_fake_ring("vale0:a", true);

	return &ring->slots[ring->head];
}

static void assert_receive_stopped(void)
{
	struct port_counters counters = counters_of(&rig.port);

	assert_int_equal(counters.broken_rings, 1);
	assert_false(port_link_up(&rig.port));
	assert_int_equal(rig_take(&rig.port, 32), 0);
	assert_int_equal(counters_of(&rig.port).broken_rings, 1);
	assert_int_equal(rig_send(&rig.port, RIG_ALONE, 2), 2); // the other one goes on
}

static void a_tail_outside_of_the_ring(void **state)
{
	static const uint32_t tails[] = {SIZE, UINT32_MAX};

	for (unsigned i = 0; i < RTE_DIM(tails); i++) {
		assert_int_equal(rig_send(&rig.peer, RIG_ALONE, 3), 3);
		netmap_fake_tail("vale0:a", true, tails[i]);
		assert_int_equal(rig_take(&rig.port, 32), 0);
		assert_receive_stopped();
		rig_close(&rig);
		assert_int_equal(set_up(state), 0);
	}
}

static void a_tail_that_goes_back(void **state)
{
	assert_int_equal(rig_send(&rig.peer, RIG_ALONE, 8), 8);
	assert_int_equal(rig_take(&rig.port, 2), 2);
	netmap_fake_tail("vale0:a", true, 4);
	assert_int_equal(rig_take(&rig.port, 32), 0);
	assert_receive_stopped();
}

// What comes before it is good, and is received.
static void a_buffer_outside_of_the_memory(void **state)
{
	static const uint32_t buffers[] = {2 * SIZE + 2, UINT32_MAX};

	for (unsigned i = 0; i < RTE_DIM(buffers); i++) {
		assert_int_equal(rig_send(&rig.peer, RIG_ALONE, 3), 3);
		assert_int_equal(rig_take(&rig.port, 1), 1);
		netmap_fake_ring("vale0:a", true)->slots[2].buffer = buffers[i];
		assert_int_equal(rig_take(&rig.port, 32), 1);
		assert_int_equal(counters_of(&rig.port).rx_packets, 2);
		assert_receive_stopped();
		rig_close(&rig);
		assert_int_equal(set_up(state), 0);
	}
}

static void a_frame_longer_than_its_buffer(void **state)
{
	assert_int_equal(rig_send(&rig.peer, RIG_ALONE, 1), 1);
	assert_int_equal(rig_take(&rig.port, 0), 0);
	assert_int_equal(rig_send(&rig.peer, RIG_ALONE, 1), 1);
	next_to_come()->length = NETMAP_FAKE_BUFFER_BYTES + 1;
	assert_int_equal(rig_take(&rig.port, 32), 0);
	assert_receive_stopped();
}

// No frame of ours, and no fault: counted, one for each frame.
static void frames_of_several_slots_and_of_none(void **state)
{
	struct netmap_ring *ring = netmap_fake_ring("vale0:a", true);

	assert_int_equal(rig_send(&rig.peer, RIG_ALONE, 6), 6);
	ring->slots[0].flags = ring->slots[1].flags = NETMAP_MORE_FRAGS; // with the third
	ring->slots[4].length = 0;
	assert_int_equal(rig_take(&rig.port, 32), 2);
	assert_int_equal(counters_of(&rig.port).rx_errors, 2);
	assert_int_equal(counters_of(&rig.port).rx_packets, 2);
	assert_int_equal(rig_send(&rig.peer, RIG_ALONE, 32), 32);
	assert_int_equal(rig_take(&rig.port, 32), 32);
}

static void a_buffer_to_send_outside_of_the_memory(void **state)
{
	for (unsigned way = 0; way < RIG_WAYS; way++) {
		netmap_fake_ring("vale0:a", false)->slots[2].buffer = UINT32_MAX;
		assert_int_equal(rig_send(&rig.port, way, 5), 2);
		assert_int_equal(counters_of(&rig.port).queues[0].tx_full, 3);
		assert_int_equal(counters_of(&rig.port).tx_packets + counters_of(&rig.port).tx_errors, 2);
		assert_int_equal(counters_of(&rig.port).broken_rings, 1);
		assert_int_equal(rig_send(&rig.port, way, 5), 0);
		assert_int_equal(counters_of(&rig.port).queues[0].tx_full, 8);
		rig_close(&rig);
		assert_int_equal(set_up(state), 0);
	}
}

// The kernel refuses: what was handed to it is lost, and nothing is taken any more.
static void a_system_call_that_fails(void **state)
{
	netmap_fake_fail(EIO);
	assert_int_equal(rig_send(&rig.port, RIG_ALONE, 5), 5);
	assert_int_equal(rig_send(&rig.port, RIG_ALONE, 5), 0);
	assert_int_equal(rig_take(&rig.port, 32), 0);
	netmap_fake_fail(0);
	assert_int_equal(rig_take(&rig.port, 32), 0);
	assert_int_equal(counters_of(&rig.port).tx_errors, 5);
	assert_int_equal(counters_of(&rig.port).queues[0].tx_full, 5);
	assert_int_equal(counters_of(&rig.port).broken_rings, 2);
	assert_false(port_link_up(&rig.port));
}

// --- Registrations -----------------------------------------------------------------------------------------

static unsigned lie;

static void tell(struct netmap_register *made, struct netmap_interface *interface, struct netmap_ring *tx,
                 struct netmap_ring *rx)
{
	switch (lie) {
	case 0:
		made->rx_rings = 2;
		break;
	case 1:
		made->offset = made->bytes;
		break;
	case 2:
		made->offset = UINT64_MAX - 7;
		break;
	case 3:
		interface->tx_rings = UINT32_MAX;
		break;
	case 4:
		interface->rings[1] = (int64_t)made->bytes;
		break;
	case 5:
		interface->rings[0] = INT64_MIN;
		break;
	case 6:
		tx->size = UINT32_MAX;
		break;
	case 7:
		rx->size = 1;
		break;
	case 8:
		tx->buffer_bytes = 0;
		break;
	case 9:
		rx->buffers = (int64_t)made->bytes;
		break;
	case 10:
		rx->tail = SIZE;
		break;
	case 11:
		tx->head = SIZE;
		break;
	case 12:
		tx->size = SIZE / 2;
		break;
	default:
		made->bytes = 0;
	}
}

static void a_registration_that_makes_no_sense(void **state)
{
	struct port port;

	rig_config(&rig, &kind, SIZE);
	netmap_fake_begin(tell);
	for (lie = 0; lie < 14; lie++)
		assert_false(rig_open_port(&port, &rig.config[0]));
	netmap_fake_begin(NULL);
	netmap_fake_fail(ENXIO);
	assert_false(rig_open_port(&port, &rig.config[0]));
	netmap_fake_fail(0);
	rig.config[0].queues = 2;
	assert_false(rig_open_port(&port, &rig.config[0]));
	rig.config[0].queues = 1;
	memset(rig.config[0].device, 'x', NETMAP_NAME_MAX);
	assert_false(rig_open_port(&port, &rig.config[0]));
}

int main(void)
{
#define WITH_PORTS(test_) cmocka_unit_test_setup_teardown(test_, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	        WITH_PORTS(a_tail_outside_of_the_ring),
	        WITH_PORTS(a_tail_that_goes_back),
	        WITH_PORTS(a_buffer_outside_of_the_memory),
	        WITH_PORTS(a_frame_longer_than_its_buffer),
	        WITH_PORTS(frames_of_several_slots_and_of_none),
	        WITH_PORTS(a_buffer_to_send_outside_of_the_memory),
	        WITH_PORTS(a_system_call_that_fails),
	        cmocka_unit_test(a_registration_that_makes_no_sense),
	};
	int failed;

	rig_begin("netmap_port");
	failed = cmocka_run_group_tests_name("netmap_port", tests, NULL, NULL);
	rig_end();
	return failed;
}
