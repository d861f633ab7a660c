// SPDX-License-Identifier: BSD-3-Clause
// Why a ring has stopped, as its worker leaves it for others to count and log, once. The fault and whether it
// was said are one word: who says it may race with others who would, and with who forgives it, and neither
// says a fault twice nor leaves the next one unsaid.
//
// The worker: fault_note(), behind the ring's gate. fault_set() and fault_forgive(): who has shut that gate.
// The rest: any thread. A fault is of any enum, not 0.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

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
