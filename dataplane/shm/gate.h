// SPDX-License-Identifier: BSD-3-Clause
// How the control side takes something away from a running worker. The worker goes through the gate each time
// it uses the thing; when gate_shut() returns, the worker is outside and stays there until gate_open().
//
// The worker pays two plain stores and a load: the fence that this needs (each side writes one flag, then
// reads the other's) is made on the worker's CPU by the shutting thread, with membarrier(2). One worker, and
// one thread at a time that opens and shuts. A worker must not sleep inside.
//
// Built with PLANED_DEBUG, a gate knows its worker, the first thread that goes through it, and ends the program when another
// one does.
#pragma once

#include <pthread.h>
#include <rte_branch_prediction.h>
#include <stdatomic.h>
#include <stdbool.h>

struct gate {
	_Atomic(bool) open;
	_Atomic(bool) inside;
#ifdef PLANED_DEBUG
	_Atomic(pthread_t) worker; // 0: none yet
#endif
};

// Once per process, before the first gate opens. Returns 0, or -errno if the kernel has no membarrier.
int gate_prepare(void);

void gate_open(struct gate *gate);
void gate_shut(struct gate *gate); // waits while the worker is inside; may be shut already

// The same, but waits no longer than a millisecond or so. Returns whether the worker is outside; if not, call again.
bool gate_try_shut(struct gate *gate);

// The worker has ended or is parked, or calls this itself: another one may be next.
void gate_hand_over(struct gate *gate);

#ifdef PLANED_DEBUG
void gate_check_worker(struct gate *gate);
#else
static inline void gate_check_worker(struct gate *gate)
{
}
#endif

// True: the worker is inside until gate_leave(), and sees all that was written before gate_open(). False: it
// is outside.
static inline bool gate_enter(struct gate *gate)
{
	gate_check_worker(gate);
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

// --- Why a ring has stopped ------------------------------------------------------------------------------

// Why a ring has stopped, as its worker leaves it for others to count and log, once. The fault and whether it
// was said are one word: who says it may race with others who would, and with who forgives it, and neither
// says a fault twice nor leaves the next one unsaid.
//
// The worker: fault_note(), behind the ring's gate. fault_set() and fault_forgive(): who has shut that gate.
// The rest: any thread. A fault is of any enum, not 0.
struct fault_word {
	_Atomic(unsigned) word;
};

enum { FAULT_SAID = 1 << 30 };

// What is there already stays: it is the same fault, and may have been said.
static inline void fault_note(struct fault_word *fault, unsigned what)
{
	if (atomic_load_explicit(&fault->word, memory_order_relaxed) == 0)
		atomic_store_explicit(&fault->word, what, memory_order_relaxed);
}

static inline void fault_set(struct fault_word *fault, unsigned what)
{
	atomic_store(&fault->word, what);
}

static inline void fault_forgive(struct fault_word *fault)
{
	atomic_store(&fault->word, 0);
}

static inline bool fault_there(struct fault_word *fault)
{
	return atomic_load(&fault->word) != 0;
}

// The fault, for the caller to say; 0 if there is none, or somebody else has said it.
static inline unsigned fault_take(struct fault_word *fault)
{
	unsigned what = atomic_load(&fault->word);

	if (what == 0 || what & FAULT_SAID ||
	    !atomic_compare_exchange_strong(&fault->word, &what, what | FAULT_SAID))
		return 0;
	return what;
}
