// SPDX-License-Identifier: BSD-3-Clause
// What a task may rely on, whatever the kind of its port: a table of kinds, a table of cases, and each kind passes each case.
//
//     port_contract_test [PATTERN [BUT]]      "*: two workers*", "memif*": the cases that PATTERN matches, but for those of BUT
#include <dirent.h>
#include <linux/virtio_config.h>
#include <pthread.h>
#include <rte_log.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/listen_socket.h"
#include "port/port_rig.h"
#include "test/fail_call.h"
#include "test/netmap_fake.h"
#include "test/unit.h"

enum {
	SIZE = 64,
	BURST = 32,
	FRAME = RIG_FRAME,
	ROOM = RIG_ROOM - RTE_PKTMBUF_HEADROOM, // of a buffer that is lent
	QUIET_POLLS = 200,
	ROUND_16_BIT = 65536,
	RECONNECTS = 3,
	RECONNECT_MS = 20,
	WORKERS_FRAMES = 10000,
};

static const struct rig_kind kinds[] = {
        {.kind = "memif-server", .peer = "memif-client"},
        {.kind = "memif-client", .peer = "memif-server"},
        {.kind = "memif-client", .peer = "memif-server", .zero_copy = true},
        {.kind = "virtio-user", .peer = "vhost-user"},
        {.kind = "vhost-user", .peer = "virtio-user"},
        {.kind = "vhost-user", .peer = "virtio-user", .offloads = true},
        {.kind = "virtio-user", .peer = "vhost-user", .packed = true},
        {.kind = "vhost-user", .peer = "virtio-user", .packed = true, .ring_size = 67},
        {.kind = "virtio-user",
         .peer = "vhost-user",
         .peer_backend = "dpdk",
         .packed = true,
         .ring_size = 100},
        {.kind = "virtio-user", .peer = "vhost-user", .peer_backend = "dpdk"},
        {.kind = "vhost-user", .peer = "virtio-user", .backend = "dpdk"},
        {.kind = "virtio-user", .peer = "vhost-user", .backend = "dpdk"},
        {.kind = "netmap", .peer = "netmap", .device = "vale0:a", .peer_device = "vale0:b"},
        {.kind = "ethdev", .device = "net_ring0"},
        {.kind = "loop"},
};

static struct rig rig;

// One end is a driver of DPDK: what that counts is not ours.
static bool with_dpdk(void)
{
	return rig.port.port_id != RTE_MAX_ETHPORTS ||
	       (rig.kind->peer && rig.peer.port_id != RTE_MAX_ETHPORTS);
}

static struct port *other_end(void)
{
	return rig.kind->peer ? &rig.peer : &rig.port;
}

static unsigned ends(void)
{
	return rig.kind->peer ? 2 : 1;
}

static void a_filler_writes_nothing(uint8_t *data, uint32_t room)
{
}

// --- Numbered frames ----------------------------------------------------------------------------------------------------

// One direction. A frame begins with its number, and the other bytes follow from that.
struct line {
	struct port *from, *to;
	uint32_t length;   // of the frames that are sent; below 4: without a number
	uint32_t sent;     // that the port took
	uint32_t came;     // intact and in order
	uint32_t due;      // the number that is next
	uint32_t gap_most; // so many frames may be lost
	uint32_t gaps;     // that were
	uint32_t wrong;
};

static struct line line_of(struct port *from, struct port *to)
{
	return (struct line){.from = from, .to = to, .length = FRAME};
}

static struct line line_out(void)
{
	return line_of(&rig.port, other_end());
}

static struct line line_in(void)
{
	return line_of(other_end(), &rig.port);
}

static void write_frame(uint8_t *to, uint32_t number, uint32_t length)
{
	memset(to, (int)(number * 31 + length), length);
	if (length >= sizeof(number))
		memcpy(to, &number, sizeof(number));
}

static void check_frame(struct line *line, const struct view *view, unsigned i)
{
	static _Thread_local uint8_t bytes[FRAME_LENGTH_MAX], expected[FRAME_LENGTH_MAX];
	uint32_t length = view_span(view, i).total, number = line->due;

	view_copy(view, i, bytes, length);
	if (length >= sizeof(number))
		memcpy(&number, bytes, sizeof(number));
	write_frame(expected, number, length);
	if (number - line->due > line->gap_most || length != line->length ||
	    memcmp(bytes, expected, length) != 0) {
		line->wrong++;
		return;
	}
	line->gaps += number - line->due;
	line->due = number + 1;
	line->came++;
}

// How a task sends, as rig_send().
static unsigned send_by(struct line *line, enum rig_way way, unsigned n)
{
	static _Thread_local uint8_t bytes[BURST * FRAME_LENGTH_MAX];
	struct piece pieces[BURST];
	struct frame frames[BURST];
	uint16_t lengths[BURST];
	uint8_t *data[BURST];
	unsigned taken;

	assert_in_range(n, 0, BURST);
	for (unsigned i = 0; i < n; i++) {
		uint8_t *at = bytes + i * line->length;

		lengths[i] = (uint16_t)line->length;
		write_frame(at, line->sent + i, line->length);
		pieces[i] = (struct piece){at, line->length};
		frames[i] = (struct frame){{&pieces[i], 0}, line->length, 0};
	}
	if (way == RIG_POLLED) {
		taken = port_deliver_polled(line->from, 0, frames, n);
	} else if (way == RIG_ALONE || !port_lends(line->from)) {
		taken = port_deliver(line->from, 0, frames, n);
	} else {
		taken = port_reserve(line->from, 0, lengths, data, n);
		for (unsigned i = 0; i < taken; i++)
			write_frame(data[i], line->sent + i, line->length);
		taken = taken ? port_publish(line->from, 0, taken) : 0;
	}
	line->sent += taken;
	return taken;
}

static unsigned take(struct line *line, unsigned n)
{
	struct view view;
	unsigned count = port_peek(line->to, 0, &view, n);

	for (unsigned i = 0; i < count; i++)
		check_frame(line, &view, i);
	if (count)
		port_release(line->to, 0, &view);
	return count;
}

// Until nothing comes any more. What is not polled makes no buffers available: both ends are.
static void take_all(struct line *line)
{
	port_flush(line->from, 0);
	for (unsigned quiet = 0; quiet < QUIET_POLLS; quiet++) {
		if (take(line, BURST))
			quiet = 0;
		if (line->from != line->to && quiet % 8 == 7)
			rig_take(line->from, 0);
	}
}

static void assert_all_came(struct line *line)
{
	take_all(line);
	assert_int_equal(line->wrong, 0);
	assert_int_equal(line->came, line->sent);
}

// The port is as good as new: frames pass, both ways.
static void assert_passes(void)
{
	struct line lines[] = {line_out(), line_in()};

	for (unsigned i = 0; i < RTE_DIM(lines); i++) {
		for (unsigned turn = 0; turn < 4; turn++) {
			assert_int_equal(send_by(&lines[i], RIG_POLLED, 5), 5);
			assert_all_came(&lines[i]);
		}
	}
}

// --- What was counted ---------------------------------------------------------------------------------------------------

// Of a direction, since it was read last.
struct counts {
	uint64_t sent, full, lost; // by the sender: taken and sent; not taken; taken, and dropped
	uint64_t came, bad;        // by the receiver: frames; buffers of the sender that made none
};

static struct counts counts_of(const struct line *line)
{
	struct port_counters from, to;

	port_read_counters(line->from, &from);
	port_read_counters(line->to, &to);
	return (struct counts){from.tx_packets, from.queues[0].tx_full, from.tx_errors, to.rx_packets,
	                       to.rx_errors + to.rx_missed + to.rx_nombuf};
}

static struct counts counts_since(const struct line *line, const struct counts *before)
{
	struct counts now = counts_of(line);

	return (struct counts){now.sent - before->sent, now.full - before->full, now.lost - before->lost,
	                       now.came - before->came, now.bad - before->bad};
}

// --- Cases --------------------------------------------------------------------------------------------------------------

// A burst without a frame is no burst: nothing is taken, counted or lost.
static void nothing(void)
{
	struct line lines[] = {line_out(), line_in()};

	for (unsigned i = 0; i < RTE_DIM(lines); i++) {
		struct line *line = &lines[i];
		struct counts before = counts_of(line), since;
		struct view none = {.count = 0, .held = VIEW_IN_RING}, none_in_mbufs = {0};
		struct placed placed;

		for (unsigned way = 0; way < RIG_WAYS; way++)
			assert_int_equal(send_by(line, way, 0), 0);
		assert_int_equal(port_pass(line->to, line->from, 0, &none_in_mbufs), 0);
		if (line->from->ops->deliver) {
			assert_int_equal(port_pass(line->to, line->from, 0, &none), 0);
			assert_int_equal(port_pass_shared(line->to, line->from, 0, &none), 0);
		}
		if (port_places(line->from))
			assert_int_equal(port_place(line->from, 0, none.frames, 0, true, &placed), 0);
		if (port_can_xconnect(line->from, line->from))
			assert_int_equal(port_xconnect(line->from, line->from, 0, 0).received, 0);
		port_warm(line->from, 0);
		port_flush(line->from, 0);
		assert_int_equal(take(line, 0), 0);
		assert_int_equal(take(line, BURST), 0);
		since = counts_since(line, &before);
		assert_memory_equal(&since, &(struct counts){0}, sizeof(since));
	}
	assert_passes();
}

// What was lent and not published is lent again, however often, and what is published then is whole.
static void reserve_without_publish(void)
{
	uint8_t *data[BURST];
	uint16_t lengths[BURST];
	struct line line = line_out();

	for (unsigned i = 0; i < BURST; i++)
		lengths[i] = FRAME;
	for (unsigned turn = 0; turn < 4 * SIZE; turn++) {
		unsigned publish = turn % 4, lent = port_reserve(&rig.port, 0, lengths, data, BURST);

		assert_int_equal(lent, BURST);
		for (unsigned i = 0; i < publish; i++)
			write_frame(data[i], line.sent + i, FRAME);
		assert_int_equal(port_publish(&rig.port, 0, publish), publish);
		line.sent += publish;
		assert_all_came(&line);
	}
	for (unsigned i = 0; i < 3; i++) {
		line.length = (const unsigned[]){1, 1500, ROOM}[i];
		assert_int_equal(send_by(&line, RIG_IN_PLACE, 3), 3);
		if (line.length == 1)
			line.due = line.came; // it has no number
		assert_all_came(&line);
	}
}

static void a_length_comes_or_is_counted(struct line *line, enum rig_way way, uint32_t length)
{
	struct counts before = counts_of(line), since;
	unsigned taken;

	line->length = length;
	line->sent = line->came = line->due = 0;
	taken = send_by(line, way, 3);
	take_all(line);
	since = counts_since(line, &before);
	assert_int_equal(line->wrong, 0);
	assert_int_equal(line->came + since.bad + since.lost, taken);
	assert_int_equal(since.came, line->came);
	if (!with_dpdk())
		assert_int_equal(since.full, 3 - taken);
	line->length = FRAME;
	line->sent = line->came = line->due = 0;
	assert_int_equal(send_by(line, RIG_ALONE, 1), 1);
	assert_all_came(line);
}

// Each frame that was taken comes as it was, or one counter says that it was dropped; and the next one passes. DPDK's drivers
// are not asked for the first and the last length: net_vhost drops an empty frame unseen.
static void frames_of_every_length(void)
{
	static const uint32_t lengths[] = {0, 1, FRAME, 1500, ROOM, ROOM + 1, FRAME_LENGTH_MAX};
	struct line lines[] = {line_out(), line_in()};
	unsigned left_out = with_dpdk();

	for (unsigned i = left_out; i < RTE_DIM(lengths) - left_out; i++)
		for (unsigned way = RIG_POLLED; way <= RIG_ALONE; way++)
			for (unsigned l = 0; l < RTE_DIM(lines); l++)
				a_length_comes_or_is_counted(&lines[l], way, lengths[i]);
}

// A full ring takes nothing, says so, and takes as many again when it has been emptied.
static void full_ring(void)
{
	struct line lines[] = {line_out(), line_in()};

	for (unsigned i = 0; i < RTE_DIM(lines); i++)
		for (unsigned turn = 0; turn < 5; turn++) {
			struct line *line = &lines[i];
			struct counts before = counts_of(line);
			unsigned offered = 0, taken = 0, last;

			do {
				last = send_by(line, RIG_ALONE, BURST);
				offered += BURST;
				taken += last;
			} while (last == BURST && offered < 4 * RIG_MBUFS);
			assert_in_range(taken, SIZE - 1, RIG_MBUFS);
			assert_int_equal(send_by(line, RIG_POLLED, BURST), 0);
			if (line->from->port_id == RTE_MAX_ETHPORTS)
				assert_int_equal(counts_since(line, &before).full, offered + BURST - taken);
			assert_all_came(line);
		}
}

// Indices are of 16 bits.
static void wrap_around(void)
{
	struct line lines[] = {line_out(), line_in()};

	for (unsigned i = 0; i < RTE_DIM(lines); i++) {
		struct line *line = &lines[i];
		struct counts before = counts_of(line), since;

		for (unsigned turn = 0; line->sent < ROUND_16_BIT + 4 * SIZE; turn++) {
			unsigned n = 1 + turn % BURST, way = turn % RIG_WAYS;

			assert_int_equal(send_by(line, way, n), n);
			while (line->came < line->sent && line->wrong == 0)
				take(line, BURST);
		}
		assert_all_came(line);
		since = counts_since(line, &before);
		assert_memory_equal(&since, (&(struct counts){.sent = line->sent, .came = line->came}),
		                    sizeof(since));
	}
}

// Without mbufs for a copy nothing is taken, or all of it comes; nothing is held for ever.
static void no_mbufs(void)
{
	struct rte_mbuf *hoard[RIG_MBUFS];
	struct line lines[] = {line_out(), line_in()};
	unsigned hoarded = 0;

	while (rte_mempool_get(rig_pool, (void **)&hoard[hoarded]) == 0)
		hoarded++;
	for (unsigned i = 0; i < RTE_DIM(lines); i++) {
		send_by(&lines[i], RIG_ALONE, BURST);
		take_all(&lines[i]);
	}
	rte_mempool_put_bulk(rig_pool, (void **)hoard, hoarded);
	for (unsigned i = 0; i < RTE_DIM(lines); i++)
		assert_all_came(&lines[i]);
	assert_passes();
}

// --- The other end goes -------------------------------------------------------------------------------------------------

static void *close_peer(void *argument)
{
	port_take_back(&rig.peer, 0);
	rig_close_port(&rig.peer);
	return NULL;
}

static void open_peer(void)
{
	assert_true(rig_open_port(&rig.peer, &rig.config[1]));
	assert_true(rig_wait(&rig, true));
	assert_true(port_lend(&rig.peer, 0, a_filler_writes_nothing) >= 0);
}

static void reopen_peer(void)
{
	assert_true(rig_wait(&rig, false));
	open_peer();
	assert_passes();
}

// What a task holds when the other end goes is its own until it gives it back; what it sends then is counted.
static void release_after_disconnect(void)
{
	struct line out = line_out(), in = line_in();
	uint16_t lengths[] = {FRAME, FRAME};
	struct counts before;
	uint8_t *data[2];
	struct view view;
	pthread_t thread;

	assert_int_equal(send_by(&in, RIG_ALONE, 3), 3);
	assert_int_equal(port_peek(&rig.port, 0, &view, BURST), 3);
	pthread_create(&thread, NULL, close_peer, NULL);
	usleep(RECONNECT_MS * 1000);
	for (unsigned i = 0; i < view.count; i++)
		check_frame(&in, &view, i);
	port_release(&rig.port, 0, &view);
	pthread_join(thread, NULL);
	assert_int_equal(in.came, 3);
	assert_int_equal(in.wrong, 0);
	reopen_peer();
	if (!port_lends(&rig.port))
		return;
	port_read_counters(&rig.port, &(struct port_counters){0});
	out = line_of(&rig.port, &rig.port);
	before = counts_of(&out);
	assert_int_equal(port_reserve(&rig.port, 0, lengths, data, 2), 2);
	pthread_create(&thread, NULL, close_peer, NULL);
	usleep(RECONNECT_MS * 1000);
	for (unsigned i = 0; i < 2; i++)
		write_frame(data[i], i, FRAME);
	out.sent = port_publish(&rig.port, 0, 2);
	pthread_join(thread, NULL);
	before = counts_since(&out, &before);
	if (!with_dpdk())
		assert_int_equal(before.sent + before.lost + before.full, 2);
	reopen_peer();
}

// --- Two workers --------------------------------------------------------------------------------------------------------

static _Atomic(bool) over;

static void *send_on(void *argument)
{
	struct line *line = argument;

	for (unsigned i = 0; !atomic_load(&over); i++)
		if (send_by(line, i % RIG_WAYS == RIG_POLLED ? RIG_ALONE : i % RIG_WAYS, BURST) == 0) {
			port_warm(line->from, 0);
			sched_yield();
		}
	port_flush(line->from, 0);
	return NULL;
}

static void *receive_on(void *argument)
{
	while (!atomic_load(&over))
		if (take(argument, BURST) == 0)
			sched_yield();
	return NULL;
}

static void *read_counters(void *argument)
{
	struct port_counters counters;

	while (!atomic_load(&over)) {
		port_read_counters(&rig.port, &counters);
		usleep(1000);
	}
	return NULL;
}

static void work_at_peer(struct line *out, struct line *in)
{
	uint32_t until = out->came + WORKERS_FRAMES;

	while (out->came < until && out->wrong == 0) {
		send_by(in, RIG_POLLED, BURST);
		if (take(out, BURST) == 0)
			sched_yield();
	}
}

// One sends and one receives at the port. When they have stopped and the rings are empty, each frame that was taken has come;
// but for those that were in a ring when the other end went: at most as many as a ring has, each time.
static void work_with_two(unsigned reconnects)
{
	void *(*const mains[])(void *) = {send_on, receive_on, read_counters};
	struct line out = line_out(), in = line_in();
	bool alone = rig.kind->peer == NULL;
	void *const arguments[] = {&out, alone ? &out : &in, NULL};
	pthread_t threads[RTE_DIM(mains)];
	struct counts before = counts_of(&out), since;

	out.gap_most = in.gap_most = reconnects * rig.config[0].ring_size;
	atomic_store(&over, false);
	port_flush_all(&rig.port);
	for (unsigned i = 0; i < RTE_DIM(mains); i++)
		pthread_create(&threads[i], NULL, mains[i], arguments[i]);
	for (unsigned i = 0; i <= reconnects; i++) {
		if (i > 0) {
			close_peer(NULL);
			open_peer();
		}
		if (alone)
			usleep(5 * RECONNECT_MS * 1000);
		else
			work_at_peer(&out, &in);
	}
	atomic_store(&over, true);
	for (unsigned i = 0; i < RTE_DIM(mains); i++)
		pthread_join(threads[i], NULL);
	port_flush_all(&rig.port);
	take_all(&out);
	if (!alone)
		take_all(&in);
	assert_int_equal(out.wrong + in.wrong, 0);
	assert_int_equal(out.came + out.gaps, out.sent);
	assert_int_equal(in.came + in.gaps, in.sent);
	assert_in_range(out.gaps, 0, out.gap_most);
	assert_in_range(in.gaps, 0, in.gap_most);
	since = counts_since(&out, &before);
	if (!with_dpdk()) {
		assert_int_equal(since.sent + since.lost, out.sent);
		assert_in_range(since.lost, 0,
		                reconnects * BURST); // written into buffers whose ring was begun anew
	}
	assert_passes();
}

static void two_workers(void)
{
	work_with_two(0);
}

static void two_workers_and_a_peer_that_comes_and_goes(void)
{
	work_with_two(RECONNECTS);
}

// --- What runs out ------------------------------------------------------------------------------------------------------

static unsigned descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

// Each call that takes memory, a descriptor or a thread fails once while port and peer are opened and connect: a port is
// refused and leaves nothing behind, or does without. Opened again, it works.
static void what_runs_out(void)
{
	unsigned before, failures = 0;
	bool failed;

	rig_close(&rig);
	before = descriptors();
	do {
		struct port *ports[] = {&rig.port, &rig.peer};
		bool first = !rig.port.ops->listens, done[2];

		fail_call(++failures);
		for (unsigned i = 0; i < 2; i++) {
			unsigned which = i ^ first;

			done[which] = rig_open_port(ports[which], &rig.config[which]);
			if (!done[which])
				assert_true(rig_open_port(ports[which], &rig.config[which]));
		}
		assert_true(rig_wait(&rig, true));
		failed = fail_call_done();
		assert_passes();
		rig_close(&rig);
		assert_int_equal(descriptors(), before);
	} while (failed);
	assert_true(failures > 4);
	assert_true(rig_open(&rig, rig.kind, SIZE));
}

// --- Another process takes over ---------------------------------------------------------------------------------------------

static ino_t socket_of(const struct config_port *config)
{
	struct stat file;

	return stat(config->path, &file) ? 0 : file.st_ino;
}

// A port that opens beside the socket of another one takes its place, or leaves it alone; the other one then ends alone.
static void taken_over(void)
{
	bool is_peer = !rig.port.ops->listens;
	struct port *old = is_peer ? &rig.peer : &rig.port, next;
	const struct config_port *config = &rig.config[is_peer];
	ino_t before = socket_of(config);

	listen_sockets_beside();
	assert_true(rig_open_port(&next, config));
	rig_close_port(&next);
	assert_int_equal(socket_of(config), before);
	listen_sockets_in_place();
	assert_int_equal(socket_of(config), before);
	listen_sockets_beside();
	assert_true(rig_open_port(&next, config));
	listen_sockets_in_place();
	assert_int_not_equal(socket_of(config), before);
	rig_close_port(old);
	assert_int_not_equal(socket_of(config), 0);
	rig_close_port(&next);
	assert_int_equal(socket_of(config), 0);
	assert_true(rig_open_port(old, config));
	assert_true(rig_wait(&rig, true));
}

// --- The table ----------------------------------------------------------------------------------------------------------

// NEEDS_OWN: of rings of our own. NEEDS_PEER: of a port whose other end can go and come again. NEEDS_LOAN: of one that lends.
// NEEDS_SOCKET: of one that meets its other end at a socket of ours.
enum { NEEDS_OWN = 1, NEEDS_PEER = 2, NEEDS_LOAN = 4, NEEDS_SOCKET = 8 };

static const struct {
	const char *name;
	void (*run)(void);
	unsigned needs;
} cases[] = {
        {"nothing", nothing, 0},
        {"reserve without publish", reserve_without_publish, NEEDS_LOAN},
        {"frames of every length", frames_of_every_length, 0},
        {"full ring", full_ring, 0},
        {"wrap around", wrap_around, 0},
        {"no mbufs", no_mbufs, 0},
        {"release after disconnect", release_after_disconnect, NEEDS_PEER},
        {"two workers", two_workers, 0},
        {"two workers and a peer that comes and goes", two_workers_and_a_peer_that_comes_and_goes,
         NEEDS_PEER},
        {"what runs out", what_runs_out, NEEDS_OWN},
        {"taken over", taken_over, NEEDS_SOCKET},
};

struct entry {
	unsigned kind, run;
	char name[128];
};

static unsigned has(const struct rig_kind *kind)
{
	const char *backend = kind->backend ? kind->backend : "";
	bool dpdk = strcmp(backend, "dpdk") == 0;
	const struct port_ops *ops = port_ops_find(kind->kind, backend);
	bool comes_back = !dpdk || ops->listens; // DPDK's drivers do not connect again
	bool meets = kind->device == NULL;       // its peer: a port of netmap meets a switch
	bool own = kind->peer && !dpdk && !kind->peer_backend;
	bool listens = own && (ops->listens || port_ops_find(kind->peer, "")->listens);

	return (own ? NEEDS_OWN : 0) | (listens ? NEEDS_SOCKET : 0) |
	       (kind->peer && comes_back && meets ? NEEDS_PEER : 0) | (ops->reserve ? NEEDS_LOAN : 0);
}

static int set_up(void **state)
{
	const struct entry *entry = *state;
	const struct rig_kind *kind = &kinds[entry->kind];
	struct port *virtio = strcmp(kind->kind, "virtio-user") == 0 ? &rig.port : &rig.peer;
	struct negotiated found;

	if (!rig_open(&rig, kind, SIZE))
		return -1;
	for (unsigned i = 0; i < ends(); i++)
		if (port_lend(i ? &rig.peer : &rig.port, 0, a_filler_writes_nothing) < 0)
			return -1;
	if (kind->packed)
		return port_negotiated(virtio, &found) && found.features >> VIRTIO_F_RING_PACKED & 1 ? 0 : -1;
	return 0;
}

static void run_entry(void **state)
{
	const struct entry *entry = *state;

	cases[entry->run].run();
}

static int tear_down(void **state)
{
	for (unsigned i = 0; i < ends(); i++) {
		port_flush_all(i ? &rig.peer : &rig.port);
		port_take_back(i ? &rig.peer : &rig.port, 0);
	}
	rig_close(&rig);
	return 0;
}

int main(int argc, char **argv)
{
	static struct entry entries[RTE_DIM(kinds) * RTE_DIM(cases)];
	static struct CMUnitTest tests[RTE_DIM(entries)];
	size_t count = 0;
	int failed;

	rig_begin("port_contract");
	netmap_fake_begin(NULL);
	rte_log_set_level_pattern("*", RTE_LOG_ERR);
	for (unsigned k = 0; k < RTE_DIM(kinds); k++)
		for (unsigned c = 0; c < RTE_DIM(cases); c++) {
			const struct rig_kind *kind = &kinds[k];
			struct entry *entry = &entries[count];

			if (cases[c].needs & ~has(kind))
				continue;
			*entry = (struct entry){k, c, ""};
			snprintf(
			        entry->name, sizeof(entry->name), "%s%s%s%s%s%s: %s", kind->kind,
			        // Where a frame crosses as an mbuf: DPDK's fences are none to ThreadSanitizer.
			        kind->backend || kind->peer == NULL ? " dpdk" : "",
			        kind->zero_copy ? " zero_copy" : "", kind->offloads ? " offloads" : "",
			        kind->packed ? " packed" : "", kind->peer_backend ? " to dpdk" : "",
			        cases[c].name);
			tests[count++] =
			        (struct CMUnitTest){entry->name, run_entry, set_up, tear_down, entry};
		}
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (argc > 2)
		cmocka_set_skip_filter(argv[2]);
	failed = _cmocka_run_group_tests("port_contract", tests, count, NULL, NULL);
	rig_end();
	return failed;
}
