// SPDX-License-Identifier: BSD-3-Clause
#include "shm/frames.h"

#include <rte_common.h>
#include <rte_memcpy.h>

#include "base/counters.h"

// --- Bytes that lie in several pieces --------------------------------------------------------------------

void scatter_copy(struct scatter *to, struct scatter *from, uint32_t length)
{
	while (length) {
		uint32_t run = RTE_MIN(to->piece->length - to->offset, from->piece->length - from->offset);

		run = RTE_MIN(run, length);
		rte_memcpy(scatter_start(to), scatter_start(from), run);
		scatter_move_on(to, run);
		scatter_move_on(from, run);
		length -= run;
	}
}

uint32_t view_copy(const struct view *view, unsigned i, uint8_t *to, uint32_t length)
{
	if (view_in_mbufs(view)) {
		const uint8_t *from;

		length = RTE_MIN(length, view->pkts[i]->pkt_len);
		from = rte_pktmbuf_read(view->pkts[i], 0, length, to);
		if (from != to)
			memcpy(to, from, length);
	} else {
		const struct piece room = {to, length};
		struct scatter at = {&room, 0}, from = view->frames[i].at;

		length = RTE_MIN(length, view->frames[i].length);
		scatter_copy(&at, &from, length);
	}
	return length;
}

unsigned frames_describe(struct rte_mbuf *const *pkts, unsigned n,
                         struct frame frames[static BURST_FRAMES_MAX], struct piece pieces[static PIECES_MAX])
{
	unsigned used = 0;

	for (unsigned i = 0; i < n; i++) {
		if (unlikely(used + pkts[i]->nb_segs > PIECES_MAX))
			return i;
		frames[i] = (struct frame){{&pieces[used], 0}, pkts[i]->pkt_len, 0};
		for (const struct rte_mbuf *m = pkts[i]; m; m = m->next)
			pieces[used++] = (struct piece){rte_pktmbuf_mtod(m, uint8_t *), m->data_len};
	}
	return n;
}

// --- To mbufs -----------------------------------------------------------------------------------

// All or nothing: a chain of as many mbufs as the frame needs behind head.
static __attribute__((noinline)) bool copy_chained(struct rte_mempool *pool, struct rte_mbuf *head,
                                                   const struct frame *frame)
{
	struct scatter at = frame->at;
	struct rte_mbuf *last = head;
	uint32_t left = frame->length;

	for (;;) {
		uint32_t room = rte_pktmbuf_tailroom(last), run = RTE_MIN(left, room);
		const struct piece piece = {rte_pktmbuf_mtod(last, uint8_t *), run};
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
	rte_memcpy(rte_pktmbuf_mtod(m, void *), scatter_start(at), frame->length);
	m->data_len = (uint16_t)frame->length;
	m->pkt_len = frame->length;
	return true;
}

uint16_t frames_fill(struct rte_mempool *pool, struct rte_mbuf **pkts, const struct frame *frames,
                     unsigned count, uint64_t *no_mbuf)
{
	uint16_t filled = 0;

	for (unsigned i = 0; i < count; i++) {
		struct rte_mbuf *m = pkts[i];

		if (likely(copy_in(pool, m, &frames[i]))) {
			pkts[filled++] = m;
		} else {
			rte_pktmbuf_free(m);
			counter_add(no_mbuf, 1);
		}
	}
	return filled;
}
