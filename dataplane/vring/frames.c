// SPDX-License-Identifier: BSD-3-Clause
#include "frames.h"

#include <rte_memcpy.h>

#include "view.h"

// All or nothing: a chain of as many mbufs as the frame needs behind head.
static __attribute__((noinline)) bool copy_chained(struct rte_mempool *pool, struct rte_mbuf *head,
                                                   const struct frame *frame)
{
	struct scatter at = frame->at;
	struct rte_mbuf *last = head;
	uint32_t left = frame->length;

	for (;;) {
		uint32_t room = rte_pktmbuf_tailroom(last), run = RTE_MIN(left, room);
		const struct ring_piece piece = {rte_pktmbuf_mtod(last, uint8_t *), run};
		struct scatter to = {&piece, 0};

		scatter_copy(&to, &at, run);
		last->data_len = (uint16_t)run;
		left -= run;
		if (left == 0)
			break;
		last->next = rte_pktmbuf_alloc(pool);
		if (last->next == NULL)
			return false; // what is chained so far goes with the head
		last = last->next;
		head->nb_segs++;
	}
	head->pkt_len = frame->length;
	return true;
}

static inline bool copy_in(struct rte_mempool *pool, struct rte_mbuf *m, const struct frame *frame)
{
	const struct scatter *at = &frame->at;

	if (unlikely(frame->length > rte_pktmbuf_tailroom(m) ||
	             at->piece->length - at->offset < frame->length))
		return copy_chained(pool, m, frame);
	rte_memcpy(rte_pktmbuf_mtod(m, void *), at->piece->data + at->offset, frame->length);
	m->data_len = (uint16_t)frame->length;
	m->pkt_len = frame->length;
	return true;
}

// The first count mbufs of pkts are empty ones; what is not filled is freed. Returns how many are filled.
static inline uint16_t fill(struct rte_mempool *pool, struct rte_mbuf **pkts, const struct frame *frames,
                            unsigned count, uint64_t *no_mbuf)
{
	uint16_t filled = 0;

	for (unsigned i = 0; i < count; i++) {
		struct rte_mbuf *m = pkts[i];

		if (likely(copy_in(pool, m, &frames[i]))) {
			pkts[filled++] = m;
		} else {
			rte_pktmbuf_free(m);
			++*no_mbuf;
		}
	}
	return filled;
}

uint16_t frames_receive(struct ring *from, struct rte_mempool *pool, struct rte_mbuf **pkts, uint16_t n,
                        struct frames_lost *lost, uint64_t *no_mbuf)
{
	struct frames_lost now = {0};
	struct view view;
	unsigned count;

	if (view_peek(from, &view, n, &now) == 0)
		return 0;
	count = view.count;
	if (unlikely(count && rte_pktmbuf_alloc_bulk(pool, pkts, count) != 0)) {
		*no_mbuf += count;
		return 0;
	}
	lost->bad += now.bad;
	lost->oversize += now.oversize;
	count = fill(pool, pkts, view.frames, count, no_mbuf);
	view_commit(from, &view);
	return (uint16_t)count;
}

unsigned frames_describe(struct rte_mbuf **pkts, unsigned n, struct frame *frames,
                         struct ring_piece pieces[static RING_PIECES_MAX])
{
	unsigned used = 0;

	for (unsigned i = 0; i < n; i++) {
		if (unlikely(used + pkts[i]->nb_segs > RING_PIECES_MAX))
			return i;
		frames[i] = (struct frame){{&pieces[used], 0}, pkts[i]->pkt_len};
		for (const struct rte_mbuf *m = pkts[i]; m; m = m->next)
			pieces[used++] = (struct ring_piece){rte_pktmbuf_mtod(m, uint8_t *), m->data_len};
	}
	return n;
}

uint16_t frames_send(struct ring *to, struct rte_mbuf **pkts, uint16_t n, uint64_t *too_long)
{
	struct ring_piece pieces[RING_PIECES_MAX];
	struct frame frames[RING_BATCH_MAX];
	uint16_t sent = 0;

	while (sent < n) {
		unsigned count =
		        frames_describe(&pkts[sent], RTE_MIN(n - sent, RING_BATCH_MAX), frames, pieces);
		unsigned taken = deliver(to, frames, count, too_long);

		if (taken)
			rte_pktmbuf_free_bulk(&pkts[sent], taken);
		sent += (uint16_t)taken;
		if (taken < count || count == 0)
			break;
	}
	return sent;
}
