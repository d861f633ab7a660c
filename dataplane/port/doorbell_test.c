// SPDX-License-Identifier: BSD-3-Clause
// Doorbells of each kind of port: who sleeps is woken, whatever else happens, and by its sender's worker alone.
#include <pthread.h>

#include "port/port_rig.h"
#include "test/unit.h"

enum { SIZE = 64, FLOOD = 32, IDLE_POLLS = 3000 };

static struct rig rig;

// Another thread than the one that gives a ring calls its driver, once and for all of what it missed, and may do so later.
static void wait_for_first_call(void)
{
	for (unsigned ms = 0; ms < RIG_UP_MS; ms++) {
		if (rig_rung(rig_sink(&rig.port)))
			return;
		usleep(1000);
	}
	fail_msg("a driver that was given its ring is not called");
}

static void open_rig(unsigned k)
{
	assert_true(rig_open(&rig, &rig_kinds[k], SIZE));
	if (strcmp(rig_kinds[k].kind, "vhost-user") == 0)
		wait_for_first_call();
	rig_no_gap(&rig.port);
	rig_sleeps(rig_sink(&rig.port), false);
	rig_sleeps(rig_source(&rig.port), false);
	while (rig_send(&rig.peer, RIG_POLLED, 1) == 0) // a guest has to make buffers available
		rig_take(&rig.peer, 1);
	while (rig_take(&rig.port, FLOOD) == 0)
		;
	for (unsigned i = 0; i < 4; i++) {
		rig_take(&rig.port, FLOOD);
		rig_take(&rig.peer, FLOOD);
	}
	port_flush(&rig.port, 0);
	rig_rung(rig_sink(&rig.port));
}

// --- What a look without a fence misses ---------------------------------------------------------------------------------

static unsigned overtaken;

// The other end had seen nothing, and sleeps by the time that the look is over.
static void falls_asleep(const struct doorbell *bell)
{
	if (bell != &rig_sink(&rig.port)->bell)
		return;
	rig_sleeps(rig_sink(&rig.port), true);
	doorbell_overtaken = NULL;
	overtaken++;
}

// How the task goes on that has nothing more to send.
enum ending { POLLS, WARMS, FLUSHES, ENDS, ENDINGS };

static void end_by(enum ending ending)
{
	switch (ending) {
	case POLLS:
		rig_take(&rig.port, FLOOD);
		rig_take(&rig.port, FLOOD);
		break;
	case WARMS:
		port_warm(&rig.port, 0);
		break;
	case FLUSHES:
		port_flush(&rig.port, 0);
		break;
	default:
		port_flush_all(&rig.port);
	}
}

static void who_falls_asleep_behind_a_look_is_woken_once(void **state)
{
	for (unsigned k = 0; k < RIG_KINDS; k++)
		for (unsigned way = 0; way < RIG_WAYS; way++)
			for (unsigned ending = 0; ending < ENDINGS; ending++) {
				if (ending == POLLS && way != RIG_POLLED)
					continue; // its receiver is another worker
				open_rig(k);
				overtaken = 0;
				doorbell_overtaken = falls_asleep;
				for (unsigned i = 0; overtaken == 0 && i < SIZE / 2; i++)
					assert_int_equal(rig_send(&rig.port, way, 1), 1);
				doorbell_overtaken = NULL;
				assert_int_equal(overtaken, 1);
				assert_int_equal(rig_rung(rig_sink(&rig.port)), 0);
				end_by(ending);
				assert_int_equal(rig_rung(rig_sink(&rig.port)), 1);
				end_by(ending);
				assert_int_equal(rig_rung(rig_sink(&rig.port)), 0);
				rig_close(&rig);
			}
}

// --- One-way load -------------------------------------------------------------------------------------------------------

// One frame goes out against a flood that comes in: an answer to ARP, say.
static void who_sends_all_the_time_is_woken_for_an_answer(void **state)
{
	for (unsigned k = 0; k < RIG_KINDS; k++) {
		open_rig(k);
		rig_sleeps(rig_sink(&rig.port), true);
		assert_int_equal(rig_send(&rig.peer, RIG_POLLED, FLOOD), FLOOD);
		assert_int_equal(rig_send(&rig.port, RIG_POLLED, 1), 1);
		for (unsigned poll = 0; poll < 2; poll++) {
			assert_int_equal(rig_take(&rig.port, FLOOD), FLOOD);
			rig_send(&rig.peer, RIG_POLLED, FLOOD);
		}
		assert_int_equal(rig_rung(rig_sink(&rig.port)), 1);
		rig_close(&rig);
	}
}

// A peer that sleeps while frames are sent to it is woken after some sends, and again when it falls asleep again.
static void who_only_receives_is_woken(void **state)
{
	for (unsigned k = 0; k < RIG_KINDS; k++)
		for (unsigned way = 0; way < RIG_WAYS; way++) {
			open_rig(k);
			for (unsigned time = 0; time < 3; time++) {
				unsigned sends = 0;

				rig_rung(rig_sink(&rig.port));
				rig_sleeps(rig_sink(&rig.port), true);
				do {
					assert_int_equal(rig_send(&rig.port, way, 1), 1);
					sends++;
				} while (rig_rung(rig_sink(&rig.port)) == 0 && sends < SIZE / 2);
				assert_in_range(sends, 1, MEMIF_LOOK_EACH + 1);
				while (rig_take(&rig.peer, FLOOD))
					;
			}
			rig_close(&rig);
		}
}

// A ring that is full, with an other end that sleeps.
static void who_sleeps_behind_a_full_ring_is_woken(void **state)
{
	for (unsigned k = 0; k < RIG_KINDS; k++) {
		open_rig(k);
		rig_sleeps(rig_sink(&rig.port), true);
		for (unsigned i = 0; i < 2 * SIZE; i++)
			rig_send(&rig.port, RIG_ALONE, 1);
		assert_true(rig_rung(rig_sink(&rig.port)) > 0);
		rig_close(&rig);
	}
}

// --- Two workers --------------------------------------------------------------------------------------------------------

static void *send_some(void *argument)
{
	for (unsigned i = 0; i < 4; i++)
		rig_send(&rig.port, i & 1 ? RIG_IN_PLACE : RIG_ALONE, 1);
	return NULL;
}

// The gates of the library that this is linked to end the program if the receiver goes through the sender's.
static void a_receiver_leaves_the_doorbell_to_the_sender(void **state)
{
	for (unsigned k = 0; k < RIG_KINDS; k++) {
		pthread_t sender;

		open_rig(k);
		port_flush_all(&rig.port);
		rig_sleeps(rig_sink(&rig.port), true);
		assert_int_equal(pthread_create(&sender, NULL, send_some, NULL), 0);
		pthread_join(sender, NULL);
		for (unsigned i = 0; i < IDLE_POLLS; i++)
			rig_take(&rig.port, FLOOD);
		port_flush(&rig.port, 0); // the control thread, while the sender is parked
		assert_true(rig_rung(rig_sink(&rig.port)) > 0);
		rig_close(&rig);
	}
}

// --- Who makes it block -------------------------------------------------------------------------------------------------

// Who stands in it may have come while it blocked, if it does not any more.
static void who_stands_in_a_full_eventfd_is_woken(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK);

	assert_false(doorbell_unblock(-1));
	assert_false(doorbell_unblock(fd));
	assert_int_equal(eventfd_write(fd, UINT64_MAX - 1), 0);
	assert_true(doorbell_unblock(fd));
	assert_int_equal(eventfd_write(fd, 1), 0);
	assert_false(doorbell_unblock(fd));
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	assert_true(doorbell_unblock(fd));
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(who_falls_asleep_behind_a_look_is_woken_once),
	        cmocka_unit_test(who_sends_all_the_time_is_woken_for_an_answer),
	        cmocka_unit_test(who_only_receives_is_woken),
	        cmocka_unit_test(who_sleeps_behind_a_full_ring_is_woken),
	        cmocka_unit_test(a_receiver_leaves_the_doorbell_to_the_sender),
	        cmocka_unit_test(who_stands_in_a_full_eventfd_is_woken),
	};
	int failed;

	rig_begin("doorbell");
	failed = cmocka_run_group_tests_name("doorbell", tests, NULL, NULL);
	rig_end();
	return failed;
}
