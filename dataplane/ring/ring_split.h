// SPDX-License-Identifier: BSD-3-Clause
// Split virtqueues, virtio 1.2 s2.7: a descriptor table, a ring of what is available, a ring of what is used.
// Use ring_io.h, which chooses.
#pragma once

#include "ring/ring.h"

// As ring_peek() and ring_commit().
unsigned ring_split_peek(struct ring *ring, struct ring_batch *batch, unsigned n);
void ring_split_commit(struct ring *ring, const struct ring_batch *batch, unsigned n);
