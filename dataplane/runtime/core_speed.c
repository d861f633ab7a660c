// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/core_speed.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

// A sample: so many turns of a loop of additions, and of one of multiplications, each of which waits for the one before.
// Another hyperthread takes places of additions, but none of a chain that leaves most of the core idle: the chain is the
// clock. A multiplication takes three cycles on all cores of x86 since 2008; on another, figures differ by a factor.
enum { SAMPLES = 15, TURNS = 4000, ADDITIONS = 16, MULTIPLICATIONS = 4, MULTIPLICATION_CYCLES = 3 };

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// Values that the compiler cannot know, so that it keeps each addition.
#define KEEP(a, b, c, d, e, f, g, h)                                                                         \
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h))

// Nanoseconds that TURNS times ADDITIONS take, eight of which can always go on.
static uint64_t add(void)
{
	uint64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0, begin = now_ns();

	for (unsigned i = 0; i < TURNS; i++)
#pragma GCC unroll 2
		for (unsigned k = 0; k < ADDITIONS / 8; k++) {
			a += 3, b += 3, c += 3, d += 3, e += 3, f += 3, g += 3, h += 3;
			KEEP(a, b, c, d, e, f, g, h);
		}
	return now_ns() - begin;
}

// Nanoseconds that TURNS times MULTIPLICATIONS take, one after the other.
static uint64_t multiply(void)
{
	uint64_t product = 1, factor = 3, begin = now_ns();

	__asm__ volatile("" : "+r"(factor));
	for (unsigned i = 0; i < TURNS; i++)
#pragma GCC unroll 4
		for (unsigned k = 0; k < MULTIPLICATIONS; k++) {
			product *= factor;
			__asm__ volatile("" : "+r"(product));
		}
	return now_ns() - begin;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double median(uint64_t samples[static SAMPLES])
{
	qsort(samples, SAMPLES, sizeof(samples[0]), by_value);
	return (double)samples[SAMPLES / 2];
}

double core_speed_measure(void)
{
	uint64_t added[SAMPLES], multiplied[SAMPLES];
	double cycle_ns, turn_ns;

	for (unsigned i = 0; i < SAMPLES; i++) {
		added[i] = add();
		multiplied[i] = multiply();
	}
	cycle_ns = median(multiplied) / (TURNS * MULTIPLICATIONS * MULTIPLICATION_CYCLES);
	turn_ns = median(added) / TURNS;
	return turn_ns > 0 ? ADDITIONS * cycle_ns / turn_ns : -1;
}
