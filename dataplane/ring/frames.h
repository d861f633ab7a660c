// SPDX-License-Identifier: BSD-3-Clause
// Between mbufs and a guest's rings: one copy each way. Needs a pool, and no rte_vhost. One worker.
#pragma once

#include <rte_mbuf.h>

#include "ring/hop.h"

// Take up to n frames (at most RING_BATCH_MAX) from a guest's transmit ring. Returns how many; the caller
// owns them. A frame that is longer than the room of one mbuf comes in a chain of them. *no_mbuf counts
// frames that the pool had no mbufs for: they stay in the guest's ring and are tried again, but for one whose
// chain could not be ended: that is lost.
uint16_t frames_receive(struct ring *from, struct rte_mempool *pool, struct rte_mbuf **pkts, uint16_t n,
                        struct frames_lost *lost, uint64_t *no_mbuf);

// Copy up to n frames into a guest's receive ring, in order, and free them. Returns how many the ring took;
// the caller keeps the others. *too_long: as deliver().
uint16_t frames_send(struct ring *to, struct rte_mbuf **pkts, uint16_t n, uint64_t *too_long);

// What both have in common with any other place that frames come from or go to.

// Copy count frames into as many empty mbufs of the pool. What is not filled, since its chain could not be
// ended, is freed and counted. Returns how many are filled: the first ones of pkts.
uint16_t frames_fill(struct rte_mempool *pool, struct rte_mbuf **pkts, const struct frame *frames,
                     unsigned count, uint64_t *no_mbuf);

// Copies up to n (at most RING_BATCH_MAX) frames, in order; returns how many.
typedef unsigned frames_taker(void *to, const struct frame *frames, unsigned n);

// Offer n frames to a taker, and free those that it took. Returns how many; the caller keeps the others.
uint16_t frames_offer(struct rte_mbuf **pkts, uint16_t n, frames_taker *take, void *to);
