// SPDX-License-Identifier: BSD-3-Clause
// Packed virtqueues, virtio 1.2 s2.8: one ring of descriptors, each either the driver's or the device's by
// two bits that change their meaning each time around. Use ring_io.h, which chooses.
#pragma once

#include "ring/ring.h"

// As ring_peek() and ring_commit().
unsigned ring_packed_peek(struct ring *ring, struct ring_batch *batch, unsigned n);
void ring_packed_commit(struct ring *ring, const struct ring_batch *batch, unsigned n);
