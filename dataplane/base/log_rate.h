// SPDX-License-Identifier: BSD-3-Clause
// How many log lines others can make us write: some at once, then a rate. Any thread.
#pragma once

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/bucket.h"

enum { LOG_UNSAID_BYTES = 64, LOG_RATE_PERIOD_MS = 60000 };

struct log_rate {
	pthread_mutex_t lock;
	struct bucket lines;
	uint64_t unsaid; // since the last line
};

static inline void log_rate_init(struct log_rate *rate, uint32_t burst, uint32_t per_minute, uint64_t now_ms)
{
	pthread_mutex_init(&rate->lock, NULL);
	rate->lines = bucket_full(burst, per_minute, LOG_RATE_PERIOD_MS, now_ms);
	rate->unsaid = 0;
}

// Whether a line may be logged now. Then unsaid, for its end, says how many were not since the last one; it is empty if
// all were.
static inline bool log_rate_take(struct log_rate *rate, uint64_t now_ms, char unsaid[static LOG_UNSAID_BYTES])
{
	bool may;

	pthread_mutex_lock(&rate->lock);
	may = bucket_take(&rate->lines, now_ms);
	*unsaid = '\0';
	if (may && rate->unsaid)
		snprintf(unsaid, LOG_UNSAID_BYTES, " (%" PRIu64 " such lines were left out)", rate->unsaid);
	rate->unsaid = may ? 0 : rate->unsaid + 1;
	pthread_mutex_unlock(&rate->lock);
	return may;
}
