// SPDX-License-Identifier: BSD-3-Clause
// How the control side takes something away from a running worker. The worker goes through the gate each time
// it uses the thing; when gate_shut() returns, the worker is outside and stays there until gate_open().
//
// The worker pays two plain stores and a load: the fence that this needs (each side writes one flag, then
// reads the other's) is made on the worker's CPU by the shutting thread, with membarrier(2). One worker, and
// one thread at a time that opens and shuts. A worker must not sleep inside.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include <rte_branch_prediction.h>

struct gate {
	_Atomic(bool) open;
	_Atomic(bool) inside;
};

// Once per process, before the first gate opens. Returns 0, or -errno if the kernel has no membarrier.
int gate_prepare(void);

void gate_open(struct gate *gate);
void gate_shut(struct gate *gate); // waits while the worker is inside; may be shut already

// True: the worker is inside until gate_leave(), and sees all that was written before gate_open(). False: it
// is outside.
static inline bool gate_enter(struct gate *gate)
{
	atomic_store_explicit(&gate->inside, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); // membarrier() makes this one real
	if (likely(atomic_load_explicit(&gate->open, memory_order_acquire)))
		return true;
	atomic_store_explicit(&gate->inside, false, memory_order_release);
	return false;
}

static inline void gate_leave(struct gate *gate)
{
	atomic_store_explicit(&gate->inside, false, memory_order_release);
}
