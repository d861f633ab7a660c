// SPDX-License-Identifier: BSD-3-Clause
// driver_bench: what a burst costs a switch with a virtio driver of ours on one side or both, in TSC cycles a
// packet of busy polls: "in", driver to guest; "out", guest to driver; "pass", driver to driver. The other
// core plays planed's tester on each driver's wire (it writes all of a frame, by deliver(), and reads all of
// one) and the guest (test/lean_driver.h). One JSON line a case; packets_per_poll
// is of the last round. Not covered: ports and gates.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <rte_common.h>
#include <rte_cycles.h>

#include "virtio/driver_ring.h"
#include "test/lean_driver.h"
#include "test/pin.h"
#include "virtio/device_frames.h"

enum { RING_SIZE = 256, BURST = 32, FCS_BYTES = 4, ROOM = 2048, LINE = 64, ROUNDS_MAX = 100 };
enum way { IN, OUT, PASS, WAYS };

#define FEATURES                                                                                             \
	(UINT64_C(1) << VIRTIO_F_VERSION_1 | UINT64_C(1) << VIRTIO_NET_F_MRG_RXBUF |                         \
	 UINT64_C(1) << VIRTIO_F_IN_ORDER)

// A ring of ours and its device.
struct wire {
	struct driver_ring driver;
	struct device_ring device;
	struct piece pieces[RING_SIZE];
};

static struct bench {
	enum way way;
	bool packed;
	uint32_t length;
	struct lean_end guest;
	struct wire receive, transmit;
	struct guest_memory memory;
	uint8_t *bytes;
	size_t size;
	struct view view; // the wire's
	atomic_bool stop;
	uint64_t seen;
} bench;

static void wire_open(struct wire *w, bool receive, uint8_t *at)
{
	size_t stride = shm_pool_stride(ROOM);
	uint8_t *buffers = at + driver_ring_bytes(RING_SIZE);
	uint64_t packed = bench.packed;

	for (unsigned i = 0; i < RING_SIZE; i++)
		w->pieces[i].data = buffers + i * stride + LINE;
	driver_ring_init(&w->driver, receive, RING_SIZE, ROOM, at, w->pieces);
	driver_ring_reset(&w->driver, true, bench.packed);
	if (device_ring_init(
	            &w->device,
	            &(struct device_ring_layout){.desc = w->driver.desc,
	                                         .driver = w->driver.avail,
	                                         .device = w->driver.used,
	                                         .size = RING_SIZE,
	                                         .features = FEATURES | packed << VIRTIO_F_RING_PACKED,
	                                         .base = packed ? 1 << 15 : 0,
	                                         .writable = receive},
	            &bench.memory))
		abort();
}

static void bench_open(enum way way, bool packed, uint32_t length)
{
	size_t half = driver_ring_bytes(RING_SIZE) + RING_SIZE * shm_pool_stride(ROOM);

	memset(&bench, 0, sizeof(bench));
	bench.way = way;
	bench.packed = packed;
	bench.length = length;
	bench.size = 2 * half;
	bench.bytes = mmap(NULL, bench.size, PROT_READ | PROT_WRITE,
	                   MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (bench.bytes == MAP_FAILED ||
	    guest_memory_add(&bench.memory, (uintptr_t)bench.bytes, bench.size, bench.bytes))
		abort();
	wire_open(&bench.receive, true, bench.bytes);
	wire_open(&bench.transmit, false, bench.bytes + half);
	lean_open(&bench.guest, FEATURES, RING_SIZE, length, LEAN_TEST, true);
}

static void bench_close(void)
{
	munmap(bench.bytes, bench.size);
	lean_close(&bench.guest);
}

// --- The other core --------------------------------------------------------------------------------------

static void wire_send(void)
{
	static uint8_t bytes[ROOM];
	struct piece piece = {bytes, sizeof(bytes)};
	struct frame frames[BURST];
	uint64_t too_long = 0;

	for (unsigned i = 0; i < BURST; i++)
		frames[i] = (struct frame){{&piece, 0}, bench.length, 0};
	deliver(&bench.receive.device, frames, BURST, &too_long);
}

static void wire_receive(void)
{
	struct frames_lost lost = {0};

	if (view_peek(&bench.transmit.device, &bench.view, BURST, &lost) == 0)
		return;
	for (unsigned i = 0; i < bench.view.count; i++)
		for (uint32_t at = 0; at < bench.length; at += LINE)
			bench.seen += *(volatile uint8_t *)(bench.view.frames[i].at.piece->data + at);
	view_commit(&bench.transmit.device, &bench.view);
}

static void *others(void *unused)
{
	pin(1);
	while (!atomic_load_explicit(&bench.stop, memory_order_relaxed)) {
		if (bench.way == OUT)
			lean_drive(&bench.guest.transmit);
		else
			wire_send();
		if (bench.way == IN)
			lean_drive(&bench.guest.receive);
		else
			wire_receive();
	}
	return NULL;
}

// --- The switch ------------------------------------------------------------------------------------------

static unsigned poll_out(void)
{
	struct device_ring *from = &bench.guest.transmit.ring;
	struct frames_lost lost = {0};
	uint64_t too_long = 0;
	struct view view;
	unsigned n = 0;

	if (view_peek(from, &view, BURST, &lost)) {
		n = driver_ring_deliver(&bench.transmit.driver, view.frames, view.count, &too_long);
		view_commit(from, &view);
	}
	doorbell_poll(&from->bell, n > 0);
	return n;
}

static unsigned poll_from_driver(void)
{
	struct driver_ring *from = &bench.receive.driver;
	struct device_ring *guest = &bench.guest.receive.ring;
	struct frame frames[BURST];
	unsigned count, empty, taken, n = driver_ring_peek(from, BURST, frames, &count, &empty);
	uint64_t too_long = 0;

	if (n == 0)
		return 0;
	if (bench.way == PASS) {
		taken = driver_ring_pass(from, &bench.transmit.driver, frames, count);
	} else {
		taken = deliver(guest, frames, count, &too_long);
		doorbell_poll(&guest->bell, taken > 0); // as a pass to a vhost port
	}
	driver_ring_release(from, n);
	return taken;
}

static double measure(uint64_t packets, double *batch)
{
	uint64_t busy = 0, moved = 0, polls = 0, give_up = rte_rdtsc() + 4 * UINT64_C(1000000000);

	while (moved < packets && rte_rdtsc() < give_up) {
		uint64_t start = rte_rdtsc();
		unsigned n = bench.way == OUT ? poll_out() : poll_from_driver();

		if (n)
			busy += rte_rdtsc() - start;
		polls += n > 0;
		moved += n;
	}
	*batch = (double)moved / (double)polls;
	return (double)busy / (double)moved;
}

static int compare(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static double run_one(enum way way, bool packed, uint32_t length, unsigned packets, double *batch)
{
	pthread_t thread;
	double cycles;

	bench_open(way, packed, length);
	pthread_create(&thread, NULL, others, NULL);
	measure(packets / 10, batch); // warm
	cycles = measure(packets, batch);
	atomic_store(&bench.stop, true);
	pthread_join(thread, NULL);
	bench_close();
	return cycles;
}

int main(int argc, char **argv)
{
	static const char *const names[WAYS] = {"in", "out", "pass"};
	static const unsigned sizes[] = {64, 256, 1024, 1518};
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 5;
	unsigned packets = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 30000;
	static double cycles[2][WAYS][RTE_DIM(sizes)][ROUNDS_MAX], batch[2][WAYS][RTE_DIM(sizes)];

	if (rounds == 0 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: driver_bench [ROUNDS (5) [PACKETS (30000)]]\n");
		return EXIT_FAILURE;
	}
	pin(0);
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned run = 0; run < 2 * WAYS * RTE_DIM(sizes); run++) {
			unsigned packed = run % 2, way = run / 2 % WAYS, size = run / 2 / WAYS;

			cycles[packed][way][size][round] =
			        run_one((enum way)way, packed, sizes[size] - FCS_BYTES, packets,
			                &batch[packed][way][size]);
		}
	for (unsigned run = 0; run < 2 * WAYS * RTE_DIM(sizes); run++) {
		unsigned packed = run / (WAYS * RTE_DIM(sizes)), way = run / RTE_DIM(sizes) % WAYS,
		         size = run % RTE_DIM(sizes);
		double *each = cycles[packed][way][size];

		qsort(each, rounds, sizeof(double), compare);
		printf("{\"kind\": \"%s%s\", \"directions\": 1, \"frame_size_bytes\": %u, \"burst\": %u, "
		       "\"cycles_per_packet\": %.3f, \"packets_per_poll\": %.1f}\n",
		       names[way], packed ? "-packed" : "", sizes[size], BURST, each[rounds / 2],
		       batch[packed][way][size]);
	}
	return 0;
}
