// SPDX-License-Identifier: BSD-3-Clause
// fault_word: each fault is said once, whoever asks, and whenever it is forgiven.
#include <pthread.h>

#include "shm/gate.h"
#include "test/unit.h"

enum { ROUNDS = 100000 };

static struct fault_word fault;
static _Atomic(bool) ending;

static void it_is_said_once(void **state)
{
	struct fault_word one = {0};

	assert_false(fault_there(&one));
	assert_int_equal(fault_take(&one), 0);
	fault_note(&one, 3);
	assert_true(fault_there(&one));
	assert_int_equal(fault_take(&one), 3);
	assert_int_equal(fault_take(&one), 0);
	fault_note(&one, 3); // the worker leaves the ring again, and again
	assert_int_equal(fault_take(&one), 0);
	assert_true(fault_there(&one));
	fault_forgive(&one);
	assert_false(fault_there(&one));
	fault_set(&one, 4);
	assert_int_equal(fault_take(&one), 4);
	assert_int_equal(fault_take(&one), 0);
}

static void *ask(void *said)
{
	while (!atomic_load(&ending))
		*(unsigned *)said += fault_take(&fault) != 0;
	return NULL;
}

// The one that forgives a fault reports it first, unless the other was faster.
static void two_that_ask_say_each_fault_once(void **state)
{
	unsigned theirs = 0, ours = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, ask, &theirs), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		fault_note(&fault, 1 + i % 7);
		ours += fault_take(&fault) != 0;
		fault_forgive(&fault);
	}
	atomic_store(&ending, true);
	pthread_join(thread, NULL);
	assert_int_equal(ours + theirs, ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(it_is_said_once),
	        cmocka_unit_test(two_that_ask_say_each_fault_once),
	};

	return cmocka_run_group_tests_name("fault_word", tests, NULL, NULL);
}
