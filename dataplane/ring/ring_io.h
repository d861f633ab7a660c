// SPDX-License-Identifier: BSD-3-Clause
// The data path of a ring of either kind: one branch that always goes the same way.
#pragma once

#include "ring/ring.h"

// Split virtqueues, virtio 1.2 s2.7: a descriptor table, a ring of what is available, a ring of what is used. As
// ring_peek() and ring_commit().
unsigned ring_split_peek(struct ring *ring, struct ring_batch *batch, unsigned n);
void ring_split_commit(struct ring *ring, const struct ring_batch *batch, unsigned n);

// Packed virtqueues, s2.8: one ring of descriptors, each either the driver's or the device's by two bits that change
// their meaning each time around.
unsigned ring_packed_peek(struct ring *ring, struct ring_batch *batch, unsigned n);
void ring_packed_commit(struct ring *ring, const struct ring_batch *batch, unsigned n);

// Read ahead up to n (at most RING_BATCH_MAX) buffers that the guest has made available. Returns how many, in
// batch. A chain that cannot be read ends the batch; if it is the first one it stops the ring, and the fault
// says why.
static inline unsigned ring_peek(struct ring *ring, struct ring_batch *batch, unsigned n)
{
	return ring->packed ? ring_packed_peek(ring, batch, n) : ring_split_peek(ring, batch, n);
}

// Hand the first n buffers of a batch back to the guest, each with the bytes written to it. The batch must be
// of the last peek, and is spent.
static inline void ring_commit(struct ring *ring, const struct ring_batch *batch, unsigned n)
{
	if (ring->packed)
		ring_packed_commit(ring, batch, n);
	else
		ring_split_commit(ring, batch, n);
}
