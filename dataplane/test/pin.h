// SPDX-License-Identifier: BSD-3-Clause
// A thread of a measuring program, on its CPU.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static inline void pin(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set) != 0)
		fprintf(stderr, "cannot run on CPU %u; the numbers will be noisy\n", cpu);
}
