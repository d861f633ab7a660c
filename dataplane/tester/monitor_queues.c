// SPDX-License-Identifier: BSD-3-Clause
#include "tester/monitor_queues.h"

#include <stddef.h>

#include "base/limits.h"
#include "tester/sequence.h"

static struct monitor_queue *queues; // of all ports, the last one added first

void monitor_queue_add(struct monitor_queue *queue)
{
	queue->next = queues;
	queues = queue;
}

void monitor_queue_remove(struct monitor_queue *queue)
{
	struct monitor_queue **at = &queues;

	while (*at && *at != queue)
		at = &(*at)->next;
	if (*at)
		*at = queue->next;
}

// Those added before this one: then each pair of monitors is looked at once.
uint64_t monitor_queue_elsewhere(const struct monitor_queue *queue, unsigned stream)
{
	const struct sequence *others[CONFIG_QUEUES_MAX];
	unsigned count = 0;

	for (const struct monitor_queue *q = queue->next; q && count < CONFIG_QUEUES_MAX; q = q->next)
		if (q->port == queue->port && q->streams[stream]->unique)
			others[count++] = q->streams[stream];
	return count ? sequence_shared(queue->streams[stream], others, count) : 0;
}
