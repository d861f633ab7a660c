// SPDX-License-Identifier: BSD-3-Clause
// The clock of deadlines and rates: it only goes forward.
#pragma once

#include <stdint.h>
#include <time.h>

// Return milliseconds since some moment before the process began. Any thread.
static inline int64_t clock_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}
