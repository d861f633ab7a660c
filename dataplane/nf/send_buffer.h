// SPDX-License-Identifier: BSD-3-Clause
// Frames that wait in a network function until there are enough of them to send, as in DPDK's l2fwd: a port's frames
// leave when there are send_burst of them, and all that wait leave each drain_us (examples/l2fwd/main.c:
// MAX_PKT_BURST, BURST_TX_DRAIN_US; rte_eth_tx_buffer()). A frame waits up to
// (send_burst - 1) / 2r, r being the rate, or drain_us / 2 on average, whichever is less: the latency of conext19 and
// can17 at low load.
//
// Frames are copied, since the buffers of a ring go back within the poll. Worker; made and freed by the control thread
// while that worker is parked. What waits then is dropped.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shm/frames.h"

enum { SEND_BURST_MAX = 64, DRAIN_US_MAX = 1000, DRAIN_US_DEFAULT = 100 };

struct port;
struct stamps;

struct send_buffer;

// For frames of at most room bytes, burst (1 .. SEND_BURST_MAX) of them at most. NULL without memory.
struct send_buffer *send_buffer_create(unsigned burst, uint32_t room);
void send_buffer_free(struct send_buffer *buffer); // NULL is none

// Frames that wait.
unsigned send_buffer_count(const struct send_buffer *buffer);

// Copy frame i of a view to the end of the buffer, which must not be full. stamps: of the task, or NULL; the entry
// that was made of this frame in this poll, if it is a probe, gets its time when the frame leaves. Returns false for a
// frame longer than the room: it is not in the buffer.
bool send_buffer_add(struct send_buffer *buffer, const struct view *view, unsigned i,
                     const struct stamps *stamps);

bool send_buffer_full(const struct send_buffer *buffer);

// Send all that waits. Returns how many frames the port took; the others are dropped.
unsigned send_buffer_flush(struct send_buffer *buffer, const struct port *to, uint16_t queue,
                           struct stamps *stamps);
