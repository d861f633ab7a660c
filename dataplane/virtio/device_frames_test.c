// SPDX-License-Identifier: BSD-3-Clause
// Between mbufs and a guest in plain memory: every byte both ways, chains of mbufs, an empty pool, a full
// ring.
#include "test/fixture.h"
#include "virtio/device_frames.h"
#include "test/guest.h"
#include "test/each_isa.h"

#define BIT(n) (1ULL << (n))

static const uint64_t layouts[] = {BIT(VIRTIO_NET_F_MRG_RXBUF), BIT(VIRTIO_F_VERSION_1),
                                   BIT(VIRTIO_F_VERSION_1) | BIT(VIRTIO_NET_F_MRG_RXBUF),
                                   BIT(VIRTIO_F_VERSION_1) | BIT(VIRTIO_F_RING_PACKED)};

static uint8_t pattern[65600];

static void pattern_make(void)
{
	for (unsigned i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 7 + (i >> 8) * 3);
}

// A frame of length bytes in a chain of pieces of a buffer each.
static void offer(struct guest *g, uint32_t length)
{
	struct driver *d = &g->transmit;
	struct guest_range ranges[GUEST_TABLE_ENTRIES];
	unsigned header = d->ring.header_bytes, count = 0;

	for (uint32_t done = 0; done < length; count++) {
		uint32_t skip = count == 0 ? header : 0, run = GUEST_BUFFER_BYTES - skip;

		run = RTE_MIN(run, length - done);
		ranges[count] = (struct guest_range){driver_buffer(d, 32 + count), skip + run};
		memcpy((uint8_t *)guest_at(g, ranges[count].address) + skip, pattern + done, run);
		done += run;
	}
	assert_true(driver_offer(d, ranges, count, false) >= 0);
}

// Take up to n frames from a guest into mbufs. Returns how many.
static unsigned receive(struct device_ring *from, struct rte_mempool *pool, struct rte_mbuf **pkts,
                        unsigned n, struct frames_lost *lost, uint64_t *no_mbuf)
{
	struct view view;
	unsigned filled;

	assert_true(view_peek(from, &view, n, lost) > 0);
	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, pkts, view.count), 0);
	filled = frames_fill(pool, pkts, view.frames, view.count, no_mbuf);
	view_commit(from, &view);
	return filled;
}

static void frames_of_every_length_come_in(void **state)
{
	static const uint32_t lengths[] = {1, 60, 64, 1514, 2048, 2049, 4096, 9000, 65535};
	struct fixture *f = *state;

	for (unsigned l = 0; l < RTE_DIM(layouts); l++)
		for (unsigned i = 0; i < RTE_DIM(lengths); i++) {
			static uint8_t copy[65600];
			struct frames_lost lost = {0};
			uint64_t no_mbuf = 0;
			struct rte_mbuf *m;
			struct guest g;

			guest_open(&g, layouts[l], 64, false);
			offer(&g, lengths[i]);
			assert_int_equal(receive(&g.transmit.ring, f->pool, &m, 1, &lost, &no_mbuf), 1);
			assert_int_equal(rte_pktmbuf_pkt_len(m), lengths[i]);
			assert_int_equal(m->nb_segs, (lengths[i] + 2047) / 2048);
			rte_mbuf_sanity_check(m, 1);
			assert_memory_equal(rte_pktmbuf_read(m, 0, lengths[i], copy), pattern, lengths[i]);
			assert_true(driver_collect(&g.transmit, &(uint32_t){0}) >= 0);
			assert_true(lost.bad + lost.oversize + no_mbuf == 0);
			rte_pktmbuf_free(m);
			guest_close(&g);
		}
}

static void lost_frames_are_counted(void **state)
{
	struct fixture *f = *state;
	struct frames_lost lost = {0};
	struct rte_mbuf *pkts[8];
	uint64_t no_mbuf = 0;
	struct guest g;

	guest_open(&g, layouts[1], 64, false);
	driver_offer_own(&g.transmit, 2, RING_HEADER);
	offer(&g, 65536);
	offer(&g, 60);
	assert_int_equal(receive(&g.transmit.ring, f->pool, pkts, 8, &lost, &no_mbuf), 1);
	assert_true(lost.bad == 2 && lost.oversize == 1 && no_mbuf == 0);
	rte_pktmbuf_free(pkts[0]);
	guest_close(&g);
}

// Two mbufs for a frame that needs three: it is lost, and nothing leaks.
static void a_frame_without_mbufs_is_lost(void **state)
{
	struct fixture *f = *state;
	struct rte_mbuf *hoard[FIXTURE_MBUFS], *pkts[4];
	struct frames_lost lost = {0};
	uint64_t no_mbuf = 0;
	struct guest g;

	guest_open(&g, layouts[1], 64, false);
	assert_int_equal(rte_pktmbuf_alloc_bulk(f->pool, hoard, FIXTURE_MBUFS - 2), 0);
	offer(&g, 5000);
	assert_int_equal(receive(&g.transmit.ring, f->pool, pkts, 4, &lost, &no_mbuf), 0);
	assert_int_equal(no_mbuf, 1);
	rte_pktmbuf_free_bulk(hoard, FIXTURE_MBUFS - 2);
	guest_close(&g);
}

// Copy mbufs into a ring and free those that it took. Returns how many.
static unsigned send_mbufs(struct device_ring *to, struct rte_mbuf **pkts, unsigned n)
{
	struct piece pieces[PIECES_MAX];
	struct frame frames[BURST_FRAMES_MAX];
	uint64_t too_long = 0;
	unsigned sent;

	assert_int_equal(frames_describe(pkts, n, frames, pieces), n);
	sent = deliver(to, frames, n, &too_long);
	assert_int_equal(too_long, 0);
	rte_pktmbuf_free_bulk(pkts, sent);
	return sent;
}

static struct rte_mbuf *chain(struct fixture *f, unsigned segments, unsigned each)
{
	struct rte_mbuf *head = fixture_packet(f, pattern, (uint16_t)each);

	for (unsigned i = 1; i < segments; i++)
		assert_int_equal(
		        rte_pktmbuf_chain(head, fixture_packet(f, pattern + i * each, (uint16_t)each)), 0);
	return head;
}

static void frames_of_any_segments_go_out(void **state)
{
	struct fixture *f = *state;

	for (unsigned l = 0; l < RTE_DIM(layouts); l++)
		for (unsigned segments = 1; segments < 20; segments += 3) {
			struct rte_mbuf *m = chain(f, segments, 100);
			struct guest g;
			uint32_t written;
			uint8_t *data;

			guest_open(&g, layouts[l], 64, false);
			driver_offer_own(&g.receive, 1, 4000);
			assert_int_equal(send_mbufs(&g.receive.ring, &m, 1), 1);
			assert_int_equal(driver_collect(&g.receive, &written), 0);
			assert_int_equal(written, g.receive.ring.header_bytes + segments * 100);
			data = guest_at(&g, driver_buffer(&g.receive, 0));
			assert_memory_equal(data + g.receive.ring.header_bytes, pattern, segments * 100);
			guest_close(&g);
		}
}

static void bursts_go_out_and_the_rest_stays_with_the_caller(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < fixture_burst_count; i++) {
		struct rte_mbuf *pkts[64];
		unsigned n = fixture_bursts[i];
		unsigned sent;
		struct guest g;

		guest_open(&g, layouts[i % RTE_DIM(layouts)], 64, true);
		for (unsigned k = 0; k < n; k++)
			pkts[k] = fixture_packet(f, pattern, 60);
		driver_offer_own(&g.receive, 31, 2048);
		sent = send_mbufs(&g.receive.ring, pkts, n);
		assert_int_equal(sent, RTE_MIN(n, 31u));
		for (unsigned k = 0; k < sent; k++)
			assert_true(driver_collect(&g.receive, &(uint32_t){0}) >= 0);
		assert_int_equal(driver_collect(&g.receive, &(uint32_t){0}), -1);
		rte_pktmbuf_free_bulk(&pkts[sent], n - sent);
		guest_close(&g);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(frames_of_every_length_come_in),
	        TEST(lost_frames_are_counted),
	        TEST(a_frame_without_mbufs_is_lost),
	        TEST(frames_of_any_segments_go_out),
	        TEST(bursts_go_out_and_the_rest_stays_with_the_caller),
	};

	pattern_make();
	if (fixture_eal_init("frames") != 0)
		return 99; // for meson: could not be run
	return RUN_FOR_EACH_ISA("frames", tests);
}
