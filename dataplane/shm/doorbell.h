// SPDX-License-Identifier: BSD-3-Clause
// How a worker wakes the other end of a ring: when it has to, and the eventfd that it writes to.
//
// We publish, then look whether the other end polls. It says that it sleeps, then looks whether there is something. Without
// a fence our look may overtake what we published: then it says "awake", and the other end has seen nothing and sleeps. So
// there is one rule for every ring, of vhost, virtio and memif, at either end:
//
// - What is published leaves a debt (doorbell_owe()).
// - While there is more to publish, a look without a fence is enough (doorbell_look()). One that says "asleep" rings and
//   settles the debt; one that says "awake" leaves it.
// - The first poll with nothing to do pays it behind a fence (doorbell_pay()), and so does the second poll after the last
//   time that something was sent, whatever was received meanwhile.
//
// A doorbell is its sender's: only the worker that sends looks at it, pays it or rings it.
#pragma once

#include <rte_branch_prediction.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct doorbell {
	bool owed;
	int fd;               // an eventfd of the other end, or -1
	const uint16_t *word; // the other end's, in shared memory
};

// In the word: the other end polls, and is not to be woken. The same bit in all rings: VRING_AVAIL_F_NO_INTERRUPT,
// VRING_USED_F_NO_NOTIFY, VRING_PACKED_EVENT_FLAG_DISABLE, MEMIF_MASK_DOORBELL.
enum { DOORBELL_AWAKE = 1 };

// For tests of builds with PLANED_DEBUG: what the other end does between a look without a fence and the moment in which it
// sees what was published before that.
#ifdef PLANED_DEBUG
extern void (*doorbell_overtaken)(const struct doorbell *bell);
#endif

static inline bool doorbell_asleep(const struct doorbell *bell)
{
	return !(__atomic_load_n(bell->word, __ATOMIC_RELAXED) & DOORBELL_AWAKE);
}

static inline void doorbell_owe(struct doorbell *bell)
{
	bell->owed = true;
}

// Whether to ring now, as far as can be seen without a fence.
static inline bool doorbell_look(struct doorbell *bell)
{
	if (!bell->owed)
		return false;
	if (unlikely(doorbell_asleep(bell))) {
		bell->owed = false;
		return true;
	}
#ifdef PLANED_DEBUG
	if (doorbell_overtaken)
		doorbell_overtaken(bell);
#endif
	return false;
}

// Whether to ring; afterwards nothing is owed.
static inline bool doorbell_pay(struct doorbell *bell)
{
	if (likely(!bell->owed))
		return false;
	bell->owed = false;
	atomic_thread_fence(memory_order_seq_cst);
	return doorbell_asleep(bell);
}

// The same, at the end of each poll; moved: it has published something.
static inline bool doorbell_poll(struct doorbell *bell, bool moved)
{
	if (!moved)
		return doorbell_pay(bell);
	doorbell_owe(bell);
	return doorbell_look(bell);
}

// --- The eventfd of the other end: it must not block, but its flags belong to the other end, too -------------------------

// Wake the other end, if there is one to be written to.
void doorbell_ring(const struct doorbell *bell);

// Whether a descriptor is an eventfd.
bool doorbell_is(int fd);

// Whether it is, and does not block from now on.
bool doorbell_take(int fd);

// Make it non-blocking again, and wake who stands in a write to it. Returns whether it had been made to block, or is full:
// who stands there may have come while it blocked. No other end has a reason for either. fd -1: false.
bool doorbell_unblock(int fd);
