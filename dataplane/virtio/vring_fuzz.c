// SPDX-License-Identifier: BSD-3-Clause
// Two malicious drivers (test/hostile.h) and the device between them: guest to guest, with offloads, through mbufs, and
// reading without taking. Under AddressSanitizer a byte read or written outside of a guest's memory ends the
// program, as does a hang; what a guest thinks of the result is its own business. Checked after every poll:
// the counts add up, mbufs are whole and all back, a sender's memory is written nowhere but in its ring.
//
// An input is which instruction set, then two drivers, then changes to their memory, with a poll after every
// few of them. test/fuzz.h says how it is run. Not covered: memory that changes during a poll.
#include <stdio.h>
#include <stdlib.h>

#include <rte_mempool.h>

#include "test/fixture.h"
#include "virtio/device_frames.h"
#include "virtio/offload.h"
#include "test/hostile.h"
#include "base/isa.h"

enum {
	CHANGES_MAX = 16, // before a poll
	MBUFS = 127,      // few, and small: running out, and chains, are the usual
	MBUF_DATA_BYTES = RTE_PKTMBUF_HEADROOM + 256,
};

static unsigned long forwarded, lost, no_mbuf, calls, faults[RING_FAULTS];
static struct rte_mempool *pool;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int rc = fixture_eal_init("vring_fuzz");

	if (rc)
		return rc;
	pool = rte_pktmbuf_pool_create("fuzz", MBUFS, 0, 0, MBUF_DATA_BYTES, SOCKET_ID_ANY);
	return pool ? 0 : -rte_errno;
}

static void must(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "vring_fuzz: not so: %s\n", what);
	abort();
}

static void poll_hop(struct device_ring *from, struct device_ring *to, unsigned n)
{
	struct xconnect_counts counts = xconnect(from, to, n);

	must(counts.received <= n && counts.forwarded <= counts.received, "forwarded <= received <= n");
	must(counts.too_long <= counts.forwarded, "too_long <= forwarded");
	must(to || counts.forwarded == 0, "nobody takes nothing");
	forwarded += counts.forwarded - counts.too_long;
	lost += counts.lost.bad + counts.lost.oversize + counts.too_long;
}

static unsigned into_ring(void *to, const struct frame *frames, const struct virtio_net_hdr *headers,
                          unsigned n)
{
	uint64_t too_long = 0;
	unsigned taken = headers ? deliver_offloads(to, frames, headers, n, &too_long)
	                         : deliver(to, frames, n, &too_long);

	must(taken <= n && too_long <= taken, "too_long <= taken <= n");
	lost += too_long;
	return taken;
}

// As if both had negotiated all offloads, or the receiver none.
static void poll_offloads(struct device_ring *from, struct device_ring *to, unsigned n, bool accepts)
{
	static struct offload_room room;
	struct frames_lost bad = {0};
	struct offload_sent sent;
	struct view view;

	from->offloads = OFFLOAD_CSUM | OFFLOAD_TSO4 | OFFLOAD_TSO6 | OFFLOAD_USO4 | OFFLOAD_USO6;
	to->offloads = accepts ? from->offloads : 0;
	if (offload_peek(from, &view, n, &bad, &room) == 0)
		return;
	must(view.count <= n && room.used <= view.count, "offloads <= frames <= n");
	sent = offload_send(&room, view.frames, view.count, to->offloads, into_ring, to);
	must(sent.taken <= sent.offered && sent.offered >= view.count, "taken <= offered");
	view_commit(from, &view);
	forwarded += sent.taken;
	lost += bad.bad + bad.oversize;
}

static void check_mbuf(const struct rte_mbuf *m)
{
	const char *reason = "";

	must(rte_mbuf_check(m, 1, &reason) == 0, reason);
	must(m->pkt_len > 0 && m->pkt_len <= FRAME_LENGTH_MAX, "a frame has a byte, and not too many");
	for (; m; m = m->next)
		must(m->data_len > 0 && m->data_off + m->data_len <= m->buf_len, "the data is in the mbuf");
}

static void poll_mbufs(struct device_ring *from, struct device_ring *to, unsigned n)
{
	struct rte_mbuf *pkts[BURST_FRAMES_MAX];
	struct frames_lost bad = {0};
	struct piece pieces[PIECES_MAX];
	struct frame frames[BURST_FRAMES_MAX];
	uint64_t empty = 0, too_long = 0;
	struct view view;
	unsigned got, sent;

	if (view_peek(from, &view, n, &bad) == 0)
		return;
	must(view.count <= n, "frames <= n");
	got = rte_pktmbuf_alloc_bulk(pool, pkts, view.count)
	              ? 0
	              : frames_fill(pool, pkts, view.frames, view.count, &empty);
	view_commit(from, &view);
	for (unsigned i = 0; i < got; i++)
		check_mbuf(pkts[i]);
	sent = deliver(to, frames, frames_describe(pkts, got, frames, pieces), &too_long);
	must(sent <= got && too_long <= sent, "too_long <= sent <= received");
	rte_pktmbuf_free_bulk(pkts, got);
	must(rte_mempool_avail_count(pool) == MBUFS, "all mbufs are back");
	forwarded += sent - too_long;
	no_mbuf += empty;
	lost += bad.bad + bad.oversize + too_long;
}

// Frames are changed in the receiver's buffers, then all or none of them are sent.
static void poll_placed(struct device_ring *from, struct device_ring *to, unsigned n, bool send)
{
	struct frames_lost bad = {0};
	struct placed placed;
	struct view view;
	unsigned count;

	if (view_peek(from, &view, n, &bad) == 0)
		return;
	count = ring_place(to, view.frames, view.count, &placed);
	must(count <= view.count, "placed <= frames");
	for (unsigned i = 0; i < count; i++)
		memset(placed.frames[i].data, 0x5a, placed.frames[i].length);
	ring_send_placed(to, &placed, send ? count : 0);
	view_commit(from, &view);
	forwarded += send ? count : 0;
	lost += bad.bad + bad.oversize;
}

// Look at all and take some: the others are there the next time.
static void poll_partly(struct device_ring *ring, unsigned n)
{
	struct ring_batch batch, again;
	unsigned count = device_ring_peek(ring, &batch, n), take = (count + 1) / 2;

	must(count <= n && batch.piece_count <= PIECES_MAX, "a batch has its bounds");
	must(device_ring_peek(ring, &again, n) == count, "peeking changes nothing");
	for (unsigned i = 0; i < take; i++) {
		must(batch.buffers[i].length && batch.buffers[i].id == again.buffers[i].id,
		     "the same buffers");
		batch.buffers[i].written = 0;
	}
	if (take)
		device_ring_commit(ring, &batch, take);
	// It need not be as it was: a ring may lie in its own buffers.
	must(device_ring_peek(ring, &again, count - take) <= count - take, "no more than were asked for");
}

static void poll(struct hostile *a, struct hostile *b, uint8_t how)
{
	bool sends = how >> 6 & 1;
	static uint8_t was[HOSTILE_BYTES];
	unsigned n = 1 + (how >> 3) % 8 * 9; // 1 to 64

	hostile_remember(a, was);
	device_ring_warm(&a->ring); // as an idle poll does
	device_ring_warm(&b->ring);
	switch (how & 7) {
	case 0:
		poll_hop(&a->ring, NULL, n);
		break;
	case 1:
		poll_partly(&a->ring, n);
		break;
	case 2:
		poll_partly(&b->ring, n);
		break;
	case 3:
		poll_mbufs(&a->ring, &b->ring, n);
		break;
	case 4:
		poll_placed(&a->ring, &b->ring, n, sends);
		break;
	case 6:
	case 7:
		poll_offloads(&a->ring, &b->ring, n, how & 1);
		break;
	default:
		poll_hop(&a->ring, &b->ring, n);
	}
	must(hostile_untouched(a, was), "a sender's memory is its own");
	calls += doorbell_poll(&a->ring.bell, true) + doorbell_poll(&b->ring.bell, true);
	faults[hostile_revive(a)]++;
	faults[hostile_revive(b)]++;
}

static void choose_isa(uint8_t byte)
{
	enum isa isa = (enum isa)(byte % ISA_COUNT);

	isa_force(isa_text(isa_supported(isa) ? isa : ISA_SCALAR));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct hostile a, b;

	choose_isa(input_byte(&in));
	hostile_open(&a, &in, false);
	hostile_open(&b, &in, true);
	while (in.left) {
		uint8_t how = input_byte(&in);
		unsigned changes = 1 + input_byte(&in) % CHANGES_MAX;

		for (unsigned i = 0; i < changes && in.left; i++)
			hostile_change(input_byte(&in) & 1 ? &a : &b, &in);
		poll(&a, &b, how);
	}
	hostile_close(&a);
	hostile_close(&b);
	return 0;
}

void fuzz_report(void)
{
	printf("%lu frames forwarded, %lu lost, %lu without an mbuf, %lu calls\n", forwarded, lost, no_mbuf,
	       calls);
	for (unsigned i = RING_OK + 1; i < RING_BAD_LAYOUT; i++)
		printf("%8lu times %s\n", faults[i], ring_fault_text(i));
}
