// SPDX-License-Identifier: BSD-3-Clause
// The gate between a worker and whoever takes its ring away: never both at once, however often it shuts.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/gate.h"
#include "test/unit.h"

enum { ROUNDS = 500 }; // each may wait for a whole time slice where cores are shared

static struct gate gate;
static int owner; // plain on purpose: what the gate protects
static _Atomic(unsigned) violations, entries;
static _Atomic(bool) end;

static void *worker(void *argument)
{
	while (!atomic_load(&end)) {
		if (!gate_enter(&gate))
			continue;
		*(volatile int *)&owner = 1;
		for (volatile int i = 0; i < 20; i++)
			;
		if (*(volatile int *)&owner != 1)
			atomic_fetch_add(&violations, 1);
		atomic_fetch_add(&entries, 1);
		gate_leave(&gate);
	}
	return NULL;
}

static void the_worker_is_outside_when_it_is_shut(void **state)
{
	pthread_t thread;

	assert_int_equal(gate_prepare(), 0);
	assert_int_equal(pthread_create(&thread, NULL, worker, NULL), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned before = atomic_load(&entries);

		gate_open(&gate);
		while (atomic_load(&entries) == before)
			;
		gate_shut(&gate);
		before = atomic_load(&entries);
		*(volatile int *)&owner = 2;
		for (volatile int k = 0; k < 100; k++)
			;
		assert_int_equal(*(volatile int *)&owner, 2);
		assert_int_equal(atomic_load(&entries), before);
	}
	atomic_store(&end, true);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&violations), 0);
}

static void a_shut_gate_lets_nobody_in(void **state)
{
	struct gate own = {0};

	assert_false(gate_enter(&own));
	gate_shut(&own); // shut already: returns at once
	gate_open(&own);
	assert_true(gate_enter(&own));
	gate_leave(&own);
	gate_shut(&own);
	assert_false(gate_enter(&own));
}

// --- Its worker ----------------------------------------------------------------------------------------------------------

static struct gate known;

static void *go_through(void *argument)
{
	if (gate_enter(&known))
		gate_leave(&known);
	return NULL;
}

// How a program ends in which two threads go through a gate, the second after gate_hand_over() or not.
static int ends_by(bool handed_over)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		pthread_t thread;

		close(STDERR_FILENO);
		gate_open(&known);
		go_through(NULL);
		if (handed_over)
			gate_hand_over(&known);
		pthread_create(&thread, NULL, go_through, NULL);
		pthread_join(thread, NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void a_gate_knows_its_worker(void **state)
{
	assert_int_equal(ends_by(true), 0);
	assert_int_equal(ends_by(false), SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_shut_gate_lets_nobody_in),
	        cmocka_unit_test(the_worker_is_outside_when_it_is_shut),
	        cmocka_unit_test(a_gate_knows_its_worker),
	};

	return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
