// SPDX-License-Identifier: BSD-3-Clause
#include "shm/gate.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 20 };

int gate_prepare(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) ? -errno : 0;
}

void gate_open(struct gate *gate)
{
	atomic_store_explicit(&gate->open, true, memory_order_release);
}

bool gate_try_shut(struct gate *gate)
{
	const struct timespec pause = {.tv_nsec = 20000}; // the worker may have lost its CPU to us
	unsigned tries = 0;

	atomic_store_explicit(&gate->open, false, memory_order_relaxed);
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	while (atomic_load_explicit(&gate->inside, memory_order_acquire)) {
		if (tries++ == TRIES)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

void gate_shut(struct gate *gate)
{
	while (!gate_try_shut(gate))
		;
}

#ifdef PLANED_DEBUG
void gate_check_worker(struct gate *gate)
{
	pthread_t worker = atomic_load_explicit(&gate->worker, memory_order_relaxed), self = pthread_self();

	// No fence but the first time: it would hide that one is missing elsewhere.
	if (worker == self || (worker == 0 && atomic_compare_exchange_strong(&gate->worker, &worker, self)))
		return;
	fprintf(stderr, "gate %p: a second worker goes through it\n", (void *)gate);
	abort();
}

void gate_hand_over(struct gate *gate)
{
	if (atomic_load_explicit(&gate->inside, memory_order_relaxed)) {
		fprintf(stderr, "gate %p: handed over while its worker is inside\n", (void *)gate);
		abort();
	}
	atomic_store_explicit(&gate->worker, 0, memory_order_relaxed);
}
#else
void gate_hand_over(struct gate *gate)
{
}
#endif
