// SPDX-License-Identifier: BSD-3-Clause
// A stream that a switch spreads over the queues of a port is seen by several monitors, each of which tells duplicates
// among its own frames only. Which numbers two of them have counted is looked up after the trial: meanwhile they share
// nothing.
//
// Control thread, no monitor runs.
#pragma once

#include <stdint.h>

#include "tester/frame.h"

struct port;
struct sequence;

// What a monitor has counted of each stream. The memory is the monitor's, which is among those of its port from
// monitor_queue_add() to monitor_queue_remove().
struct monitor_queue {
	struct monitor_queue *next;
	const struct port *port;
	const struct sequence *streams[FRAME_STREAMS];
};

void monitor_queue_add(struct monitor_queue *queue);
void monitor_queue_remove(struct monitor_queue *queue);

// How many frames of a stream are counted here and by a monitor of another queue of the port, too. Of several monitors
// that have counted a number all but one say so, so that the sum over them is what was counted too often. As
// sequence_shared(), of the last SEQUENCE_WINDOW numbers only.
uint64_t monitor_queue_elsewhere(const struct monitor_queue *queue, unsigned stream);
