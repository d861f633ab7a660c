// SPDX-License-Identifier: BSD-3-Clause
#include "ring/frames.h"

#include <rte_memcpy.h>

#include "ring/view.h"

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
	count = frames_fill(pool, pkts, view.frames, count, no_mbuf);
	view_commit(from, &view);
	return (uint16_t)count;
}

// Describe n frames in mbufs. Returns how many: all, unless they have more segments than there are pieces.
static unsigned describe(struct rte_mbuf **pkts, unsigned n, struct frame *frames,
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

uint16_t frames_offer(struct rte_mbuf **pkts, uint16_t n, frames_taker *take, void *to)
{
	struct ring_piece pieces[RING_PIECES_MAX];
	struct frame frames[RING_BATCH_MAX];
	uint16_t sent = 0;

	while (sent < n) {
		unsigned count = describe(&pkts[sent], RTE_MIN(n - sent, RING_BATCH_MAX), frames, pieces);
		unsigned taken = take(to, frames, count);

		if (taken)
			rte_pktmbuf_free_bulk(&pkts[sent], taken);
		sent += (uint16_t)taken;
		if (taken < count || count == 0)
			break;
	}
	return sent;
}

struct guest_sink {
	struct ring *ring;
	uint64_t *too_long;
};

static unsigned take(void *to, const struct frame *frames, unsigned n)
{
	const struct guest_sink *sink = to;

	return deliver(sink->ring, frames, n, sink->too_long);
}

uint16_t frames_send(struct ring *to, struct rte_mbuf **pkts, uint16_t n, uint64_t *too_long)
{
	return frames_offer(pkts, n, take, &(struct guest_sink){to, too_long});
}
