// SPDX-License-Identifier: BSD-3-Clause
// A connection of the vhost-user protocol without a port: what a driver may say, in which order, and what each message
// does to the rings of the workers; and that every malformed one is refused, whole, with nothing left behind.
#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <stdio.h>

#include "base/limits.h"
#include "virtio/vhost_device.h"
#include "virtio/vhost_link.h"
#include "test/unit.h"
#include "test/vhost_peer.h"

enum { RINGS = 4, GIVEN_BASE = 77 };

static const uint64_t offered = VHOST_BIT(VIRTIO_F_VERSION_1) | VHOST_BIT(VHOST_F_PROTOCOL_FEATURES) |
                                VHOST_BIT(VIRTIO_NET_F_MQ) | VHOST_BIT(VIRTIO_F_RING_PACKED);

// A device with two pairs, its driver, and the worker: it has every ring that is ready.
struct rig {
	int peer, memory, event;
	struct vhost_link link;
	struct vhost_device device;
	bool given[RINGS];
	unsigned takes, settles;
	bool gone;
	enum peer_refusal why;
	struct vhost_message reply;
};

static bool take(struct vhost_device *device, unsigned ring, uint16_t *base)
{
	struct rig *r = device->owner;
	bool had = r->given[ring];

	assert_true(ring < RINGS);
	r->takes += had;
	r->given[ring] = false;
	if (had)
		*base = GIVEN_BASE;
	return had;
}

static void settled(struct vhost_device *device)
{
	struct rig *r = device->owner;
	struct device_ring_layout layout;
	struct device_ring ring;

	r->settles++;
	for (unsigned i = 0; i < RINGS; i++)
		r->given[i] = r->given[i] ||
		              (vhost_device_ready(device, i) && vhost_device_layout(device, i, &layout) &&
		               device_ring_init(&ring, &layout, &device->memory.guest) == 0);
}

static void gone(struct vhost_device *device)
{
	struct rig *r = device->owner;

	for (unsigned i = 0; i < RINGS; i++)
		assert_false(r->given[i]);
	r->gone = true;
}

static const struct vhost_device_ops ops = {take, settled, gone};

static void rig_open(struct rig *r)
{
	int pair[2];

	memset(r, 0, sizeof(*r));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	r->peer = pair[0];
	r->link.fd = pair[1];
	r->memory = peer_memory(0, PEER_MEMORY);
	r->event = eventfd(0, EFD_CLOEXEC);
	vhost_device_begin(&r->device, &ops, r, RINGS / 2, offered);
}

static void rig_close(struct rig *r)
{
	vhost_device_end(&r->device);
	assert_true(r->gone);
	peer_memory_close(&r->device.memory);
	for (unsigned i = 0; i < r->link.files.count; i++)
		close(r->link.files.fds[i]);
	close(r->peer);
	close(r->link.fd);
	close(r->memory);
	close(r->event);
}

// Handle all that was sent, until a message is refused.
static enum peer_refusal hear(struct rig *r)
{
	r->why = PEER_ACCEPTED;
	for (;;) {
		enum vhost_read read = vhost_link_read(&r->link, r->device.protocol_features, &r->why);

		if (read != VHOST_READ_WHOLE)
			return r->why;
		r->why = vhost_device_handle(&r->device, &r->link.message, &r->link.files, &r->reply);
		if (r->why)
			return r->why;
		peer_memory_close(&r->device.replaced);
		vhost_link_next(&r->link);
	}
}

static void share(struct rig *r)
{
	const struct peer_region region = {PEER_GUEST, PEER_MEMORY, PEER_USER, 0};

	assert_true(peer_send_table(r->peer, &region, 1, &r->memory, 1));
}

static void set_up(struct rig *r, unsigned ring)
{
	peer_send_ring(r->peer, VHOST_USER_SET_VRING_NUM, ring, PEER_RING);
	peer_send_ring(r->peer, VHOST_USER_SET_VRING_BASE, ring, 0);
	peer_send_address(r->peer, ring, 0);
	peer_send_file(r->peer, VHOST_USER_SET_VRING_CALL, ring, r->event);
	peer_send_file(r->peer, VHOST_USER_SET_VRING_KICK, ring, r->event);
}

static void run(struct rig *r, uint64_t features)
{
	rig_open(r);
	peer_send(r->peer, VHOST_USER_SET_OWNER, NULL, 0, NULL, 0);
	peer_send_number(r->peer, VHOST_USER_SET_FEATURES, features);
	share(r);
	for (unsigned i = 0; i < RINGS; i++)
		set_up(r, i);
	assert_int_equal(hear(r), PEER_ACCEPTED);
}

static void assert_given(const struct rig *r, const char *which)
{
	for (unsigned i = 0; i < RINGS; i++)
		assert_int_equal(r->given[i], which[i] == '+');
}

// --- What is right ---------------------------------------------------------------------------------------

// Without VHOST_USER_F_PROTOCOL_FEATURES a kick starts a ring; with it, the driver says when.
static void rings_start(void **state)
{
	struct rig r;

	run(&r, VHOST_BIT(VIRTIO_F_VERSION_1));
	assert_given(&r, "++++");
	rig_close(&r);
	run(&r, VHOST_BIT(VIRTIO_F_VERSION_1) | VHOST_BIT(VHOST_F_PROTOCOL_FEATURES));
	assert_given(&r, "----");
	peer_send_ring(r.peer, VHOST_USER_SET_VRING_ENABLE, 2, 1);
	assert_int_equal(hear(&r), PEER_ACCEPTED);
	assert_given(&r, "--+-");
	assert_int_equal(r.takes, 0);
	rig_close(&r);
}

// A message takes the rings that it is about from the worker, and no other.
static void a_message_takes_what_it_changes(void **state)
{
	struct rig r;

	run(&r, VHOST_BIT(VIRTIO_F_VERSION_1));
	peer_send(r.peer, VHOST_USER_GET_FEATURES, NULL, 0, NULL, 0);
	peer_send_number(r.peer, VHOST_USER_SET_FEATURES, VHOST_BIT(VIRTIO_F_VERSION_1));
	peer_send_file(r.peer, VHOST_USER_SET_VRING_ERR, 0, r.event);
	hear(&r);
	assert_int_equal(r.takes, 0);
	peer_send_address(r.peer, 1, 0);
	peer_send_ring(r.peer, VHOST_USER_SET_VRING_NUM, 1, PEER_RING);
	peer_send_file(r.peer, VHOST_USER_SET_VRING_CALL, 1, r.event);
	hear(&r);
	assert_int_equal(r.takes, 3);
	assert_int_equal(r.device.rings[1].base, GIVEN_BASE);
	assert_int_equal(r.device.rings[0].base, 0);
	share(&r);
	hear(&r);
	assert_int_equal(r.takes, 3 + RINGS);
	assert_given(&r, "++++");
	peer_send_ring(r.peer, VHOST_USER_SET_VRING_ENABLE, 3, 0);
	hear(&r);
	assert_given(&r, "+++-");
	rig_close(&r);
}

// GET_VRING_BASE says where the worker left it, and the ring needs a kick to go on.
static void a_ring_stops_and_starts_again(void **state)
{
	struct rig r;

	run(&r, VHOST_BIT(VIRTIO_F_VERSION_1));
	peer_send_ring(r.peer, VHOST_USER_GET_VRING_BASE, 1, 0);
	assert_int_equal(hear(&r), PEER_ACCEPTED);
	assert_given(&r, "+-++");
	assert_int_equal(r.reply.flags, VHOST_FLAG_VERSION | VHOST_FLAG_REPLY);
	assert_int_equal(r.reply.ring.index, 1);
	assert_int_equal(r.reply.ring.number, GIVEN_BASE);
	assert_int_equal(r.device.rings[1].call_fd, -1);
	peer_send_ring(r.peer, VHOST_USER_SET_VRING_ENABLE, 1, 1);
	hear(&r);
	assert_given(&r, "+-++");
	peer_send_file(r.peer, VHOST_USER_SET_VRING_KICK, 1, r.event);
	hear(&r);
	assert_given(&r, "++++");
	rig_close(&r);
}

// Both sides of a packed ring are where the worker left it.
static void the_position_of_a_packed_ring(void **state)
{
	struct rig r;

	run(&r, VHOST_BIT(VIRTIO_F_VERSION_1) | VHOST_BIT(VIRTIO_F_RING_PACKED));
	peer_send_ring(r.peer, VHOST_USER_GET_VRING_BASE, 0, 0);
	hear(&r);
	assert_int_equal(r.reply.ring.number, GIVEN_BASE | GIVEN_BASE << 16);
	rig_close(&r);
}

// Memory without the rings: they wait for a table that has them again.
static void memory_goes_and_comes(void **state)
{
	const struct peer_region away = {PEER_GUEST, 4096, PEER_USER + PEER_MEMORY, 0};
	struct rig r;

	run(&r, VHOST_BIT(VIRTIO_F_VERSION_1));
	peer_send_table(r.peer, &away, 1, &r.memory, 1);
	assert_int_equal(hear(&r), PEER_ACCEPTED);
	assert_given(&r, "----");
	share(&r);
	hear(&r);
	assert_given(&r, "++++");
	peer_send_table(r.peer, &away, 0, NULL, 0);
	assert_int_equal(hear(&r), PEER_ACCEPTED);
	assert_given(&r, "----");
	rig_close(&r);
}

// With device status, a driver that is not ready has no ring.
static void the_status_starts_and_stops(void **state)
{
	struct rig r;

	run(&r, VHOST_BIT(VIRTIO_F_VERSION_1));
	peer_send_number(r.peer, VHOST_USER_SET_PROTOCOL_FEATURES, VHOST_BIT(VHOST_PROTOCOL_F_STATUS));
	hear(&r);
	assert_given(&r, "----");
	peer_send_number(r.peer, VHOST_USER_SET_STATUS, 15);
	peer_send(r.peer, VHOST_USER_GET_STATUS, NULL, 0, NULL, 0);
	hear(&r);
	assert_given(&r, "++++");
	assert_int_equal(r.reply.value, 15);
	peer_send_number(r.peer, VHOST_USER_SET_STATUS, 0);
	hear(&r);
	assert_given(&r, "----");
	rig_close(&r);
}

static void a_reset_forgets_the_rings(void **state)
{
	struct rig r;

	run(&r, VHOST_BIT(VIRTIO_F_VERSION_1));
	peer_send(r.peer, VHOST_USER_RESET_OWNER, NULL, 0, NULL, 0);
	assert_int_equal(hear(&r), PEER_ACCEPTED);
	assert_given(&r, "----");
	for (unsigned i = 0; i < RINGS; i++)
		peer_send_file(r.peer, VHOST_USER_SET_VRING_KICK, i, r.event);
	hear(&r);
	assert_given(&r, "----");
	rig_close(&r);
}

// Only where it was negotiated, and after the message was done.
static void acknowledgements(void **state)
{
	struct vhost_message message = {.request = VHOST_USER_SET_OWNER,
	                                .flags = VHOST_FLAG_VERSION | VHOST_FLAG_NEED_REPLY};
	struct rig r;

	run(&r, VHOST_BIT(VIRTIO_F_VERSION_1));
	peer_send_bytes(r.peer, &message, VHOST_MESSAGE_HEADER, NULL, 0);
	hear(&r);
	assert_int_equal(r.reply.flags, 0);
	peer_send_number(r.peer, VHOST_USER_SET_PROTOCOL_FEATURES, VHOST_BIT(VHOST_PROTOCOL_F_REPLY_ACK));
	peer_send_bytes(r.peer, &message, VHOST_MESSAGE_HEADER, NULL, 0);
	hear(&r);
	assert_int_equal(r.reply.request, VHOST_USER_SET_OWNER);
	assert_int_equal(r.reply.flags, VHOST_FLAG_VERSION | VHOST_FLAG_REPLY);
	assert_int_equal(r.reply.size, sizeof(uint64_t));
	assert_int_equal(r.reply.value, 0);
	assert_true(vhost_link_reply(&r.link, &r.reply));
	rig_close(&r);
}

static void what_is_offered(void **state)
{
	static const struct {
		uint32_t request;
		uint64_t pairs[2]; // the answer with one pair, with two
	} questions[] = {
	        {VHOST_USER_GET_FEATURES, {offered, offered}},
	        {VHOST_USER_GET_PROTOCOL_FEATURES, {1 << 3 | 1 << 16, 1 << 3 | 1 << 16 | 1}},
	        {VHOST_USER_GET_QUEUE_NUM, {1, 2}},
	};

	for (unsigned pairs = 1; pairs <= 2; pairs++)
		for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
			struct rig r;

			rig_open(&r);
			vhost_device_begin(&r.device, &ops, &r, pairs, offered);
			peer_send(r.peer, questions[i].request, NULL, 0, NULL, 0);
			hear(&r);
			assert_int_equal(r.reply.value, questions[i].pairs[pairs - 1]);
			rig_close(&r);
		}
}

// Rings that the port has not cost nothing, and are told of once.
static void rings_beyond_the_port(void **state)
{
	unsigned before, with;
	struct rig r;

	run(&r, VHOST_BIT(VIRTIO_F_VERSION_1));
	before = open_files();
	for (unsigned i = RINGS; i < VHOST_RINGS_MAX; i++)
		set_up(&r, i);
	assert_int_equal(hear(&r), PEER_ACCEPTED);
	with = open_files();
	assert_int_equal(with, before);
	assert_int_equal(r.device.beyond, RINGS);
	rig_close(&r);
}

// A message that comes a byte at a time, its descriptor with the last one.
static void a_message_in_bytes(void **state)
{
	const uint32_t kick[] = {VHOST_USER_SET_VRING_CALL, VHOST_FLAG_VERSION, 8, 0, 0};
	struct rig r;

	run(&r, VHOST_BIT(VIRTIO_F_VERSION_1));
	for (unsigned i = 0; i < sizeof(kick); i++) {
		unsigned takes = r.takes;

		peer_send_bytes(r.peer, (const char *)kick + i, 1, &r.event, i == sizeof(kick) - 1);
		assert_int_equal(hear(&r), PEER_ACCEPTED);
		assert_int_equal(r.takes - takes, i == sizeof(kick) - 1);
	}
	rig_close(&r);
}

// --- What is wrong ---------------------------------------------------------------------------------------

enum file { NONE, MEMORY, EVENT, PIPE, NULL_DEVICE, FOLDER, PROC, READ_ONLY, SEALED_WRITE };

static int open_file(enum file kind)
{
	int fd, pair[2];

	switch (kind) {
	case EVENT:
		return eventfd(0, EFD_CLOEXEC);
	case PIPE:
		assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
		close(pair[0]);
		return pair[1];
	case NULL_DEVICE:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case FOLDER:
		return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	case PROC: // a regular file, of a file system that answers when it likes
		return open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	case READ_ONLY: {
		char path[32];
		int memory = peer_memory(0, PEER_MEMORY);

		snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		close(memory);
		return fd;
	}
	case SEALED_WRITE:
		fd = peer_memory(MFD_ALLOW_SEALING, PEER_MEMORY);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
		return fd;
	default:
		return peer_memory(0, PEER_MEMORY);
	}
}

struct bad {
	enum peer_refusal why;
	uint32_t request, size;
	uint64_t payload[5];
	enum file file;
	unsigned files;
};

// Sizes and descriptors as the sender has them.
static const struct bad bad_messages[] = {
        // Audit findings 1, 2 and 7, and whatever else no port offers.
        {PEER_REFUSED_NOT_OFFERED, 0, 0, {0}, NONE, 0},
        {PEER_REFUSED_NOT_OFFERED, 6, 16, {0}, MEMORY, 1}, // SET_LOG_BASE
        {PEER_REFUSED_NOT_OFFERED, 7, 0, {0}, EVENT, 1},   // SET_LOG_FD
        {PEER_REFUSED_NOT_OFFERED, 19, 8, {0}, NONE, 0},   // SEND_RARP
        {PEER_REFUSED_NOT_OFFERED, 20, 8, {0}, NONE, 0},   // NET_SET_MTU
        {PEER_REFUSED_NOT_OFFERED, 21, 0, {0}, PIPE, 1},   // SET_BACKEND_REQ_FD
        {PEER_REFUSED_NOT_OFFERED, 22, 32, {0}, NONE, 0},  // IOTLB_MSG
        {PEER_REFUSED_NOT_OFFERED, 23, 8, {0}, NONE, 0},   // SET_VRING_ENDIAN
        {PEER_REFUSED_NOT_OFFERED, 24, 12, {0}, NONE, 0},  // GET_CONFIG
        {PEER_REFUSED_NOT_OFFERED, 25, 12, {0}, NONE, 0},  // SET_CONFIG
        {PEER_REFUSED_NOT_OFFERED, 28, 0, {0}, NONE, 0},   // POSTCOPY_ADVISE
        {PEER_REFUSED_NOT_OFFERED, 28, 0, {0}, EVENT, 8},
        {PEER_REFUSED_NOT_OFFERED, 29, 0, {0}, NONE, 0},    // POSTCOPY_LISTEN
        {PEER_REFUSED_NOT_OFFERED, 30, 0, {0}, NONE, 0},    // POSTCOPY_END
        {PEER_REFUSED_NOT_OFFERED, 31, 24, {0}, NONE, 0},   // GET_INFLIGHT_FD
        {PEER_REFUSED_NOT_OFFERED, 32, 24, {0}, MEMORY, 1}, // SET_INFLIGHT_FD
        {PEER_REFUSED_NOT_OFFERED, 33, 0, {0}, MEMORY, 1},  // GPU_SET_SOCKET
        {PEER_REFUSED_NOT_OFFERED, 34, 0, {0}, NONE, 0},    // RESET_DEVICE
        {PEER_REFUSED_NOT_OFFERED, 36, 0, {0}, NONE, 0},    // GET_MAX_MEM_SLOTS
        {PEER_REFUSED_NOT_OFFERED, 37, 40, {0}, MEMORY, 1}, // ADD_MEM_REG
        {PEER_REFUSED_NOT_OFFERED, 38, 40, {0}, NONE, 0},   // REM_MEM_REG
        {PEER_REFUSED_NOT_OFFERED, 41, 0, {0}, NONE, 0},
        {PEER_REFUSED_NOT_OFFERED, UINT32_MAX, 0, {0}, NONE, 0},
        {PEER_REFUSED_NOT_NEGOTIATED, VHOST_USER_SET_STATUS, 8, {0}, NONE, 0},
        {PEER_REFUSED_NOT_NEGOTIATED, VHOST_USER_GET_STATUS, 0, {0}, NONE, 0},
        // Sizes, numbers of descriptors, rings.
        {PEER_REFUSED_SIZE, VHOST_USER_GET_FEATURES, 8, {0}, NONE, 0},
        {PEER_REFUSED_SIZE, VHOST_USER_SET_FEATURES, 0, {0}, NONE, 0},
        {PEER_REFUSED_SIZE, VHOST_USER_SET_VRING_ADDR, 8, {0}, NONE, 0},
        {PEER_REFUSED_SIZE, VHOST_USER_SET_MEM_TABLE, 0, {0}, NONE, 0},
        {PEER_REFUSED_SIZE, VHOST_USER_SET_MEM_TABLE, 9, {0}, NONE, 0},
        {PEER_REFUSED_SIZE, VHOST_USER_SET_MEM_TABLE, 8, {1}, NONE, 0},
        {PEER_REFUSED_SIZE, VHOST_USER_SET_MEM_TABLE, 8, {1000}, NONE, 0},
        {PEER_REFUSED_SIZE, VHOST_USER_SET_MEM_TABLE, 8, {UINT32_MAX}, NONE, 0},
        {PEER_REFUSED_FILES, VHOST_USER_GET_FEATURES, 0, {0}, EVENT, 1},
        {PEER_REFUSED_FILES, VHOST_USER_SET_VRING_KICK, 8, {0}, NONE, 0},
        {PEER_REFUSED_FILES, VHOST_USER_SET_VRING_KICK, 8, {0}, EVENT, 2},
        {PEER_REFUSED_FILES, VHOST_USER_SET_VRING_CALL, 8, {VHOST_NO_FILE}, EVENT, 1},
        {PEER_REFUSED_FILES, VHOST_USER_SET_MEM_TABLE, 8, {0}, MEMORY, 1},
        {PEER_REFUSED_FILES, VHOST_USER_SET_MEM_TABLE, 8, {0}, MEMORY, PEER_FDS_MAX},
        {PEER_REFUSED_RING, VHOST_USER_SET_VRING_NUM, 8, {VHOST_RINGS_MAX | 16LLU << 32}, NONE, 0},
        {PEER_REFUSED_RING, VHOST_USER_SET_VRING_ADDR, 40, {UINT32_MAX}, NONE, 0},
        {PEER_REFUSED_RING, VHOST_USER_GET_VRING_BASE, 8, {77}, NONE, 0},
        {PEER_REFUSED_RING, VHOST_USER_SET_VRING_CALL, 8, {VHOST_RINGS_MAX}, EVENT, 1},
        // Values.
        {PEER_REFUSED_VALUE, VHOST_USER_SET_VRING_KICK, 8, {0x200}, EVENT, 1},
        {PEER_REFUSED_VALUE, VHOST_USER_SET_VRING_NUM, 8, {0}, NONE, 0},
        {PEER_REFUSED_VALUE, VHOST_USER_SET_VRING_NUM, 8, {32769LLU << 32}, NONE, 0},
        {PEER_REFUSED_VALUE, VHOST_USER_SET_VRING_ENABLE, 8, {2LLU << 32}, NONE, 0},
        {PEER_REFUSED_VALUE, VHOST_USER_SET_VRING_ADDR, 40, {1LLU << 32}, NONE, 0}, // dirty logging
        {PEER_REFUSED_FEATURES, VHOST_USER_SET_FEATURES, 8, {1LLU << 26}, NONE, 0}, // VHOST_F_LOG_ALL
        {PEER_REFUSED_FEATURES, VHOST_USER_SET_PROTOCOL_FEATURES, 8, {1 << 12}, NONE, 0},
        // Descriptors of another kind (finding 6).
        {PEER_REFUSED_NO_EVENTFD, VHOST_USER_SET_VRING_CALL, 8, {0}, PIPE, 1},
        {PEER_REFUSED_NO_EVENTFD, VHOST_USER_SET_VRING_CALL, 8, {0}, NULL_DEVICE, 1},
        {PEER_REFUSED_NO_EVENTFD, VHOST_USER_SET_VRING_KICK, 8, {0}, MEMORY, 1},
        {PEER_REFUSED_NO_EVENTFD, VHOST_USER_SET_VRING_ERR, 8, {31}, FOLDER, 1},
        // Memory (findings 5, 8 and 9).
        {PEER_REFUSED_MEMORY_FILE, VHOST_USER_SET_MEM_TABLE, 40, {1, PEER_GUEST, 4096, 0, 0}, EVENT, 1},
        {PEER_REFUSED_MEMORY_FILE, VHOST_USER_SET_MEM_TABLE, 40, {1, PEER_GUEST, 4096, 0, 0}, PIPE, 1},
        {PEER_REFUSED_MEMORY_FILE, VHOST_USER_SET_MEM_TABLE, 40, {1, PEER_GUEST, 4096, 0, 0}, NULL_DEVICE, 1},
        {PEER_REFUSED_MEMORY_FILE, VHOST_USER_SET_MEM_TABLE, 40, {1, PEER_GUEST, 4096, 0, 0}, FOLDER, 1},
        {PEER_REFUSED_MEMORY_FILE, VHOST_USER_SET_MEM_TABLE, 40, {1, PEER_GUEST, 4096, 0, 0}, PROC, 1},
        {PEER_REFUSED_MEMORY_MAP, VHOST_USER_SET_MEM_TABLE, 40, {1, PEER_GUEST, 4096, 0, 0}, READ_ONLY, 1},
        {PEER_REFUSED_MEMORY_MAP, VHOST_USER_SET_MEM_TABLE, 40, {1, PEER_GUEST, 4096, 0, 0}, SEALED_WRITE, 1},
        {PEER_REFUSED_MEMORY_END,
         VHOST_USER_SET_MEM_TABLE,
         40,
         {1, PEER_GUEST, PEER_MEMORY + 1, 0, 0},
         MEMORY,
         1},
        {PEER_REFUSED_MEMORY_END,
         VHOST_USER_SET_MEM_TABLE,
         40,
         {1, PEER_GUEST, 4096, 0, PEER_MEMORY},
         MEMORY,
         1},
        {PEER_REFUSED_MEMORY_END,
         VHOST_USER_SET_MEM_TABLE,
         40,
         {1, PEER_GUEST, 4096, 0, -4095LLU},
         MEMORY,
         1},
        {PEER_REFUSED_MEMORY_END, VHOST_USER_SET_MEM_TABLE, 40, {1, PEER_GUEST, 0, 0, 0}, MEMORY, 1},
        {PEER_REFUSED_MEMORY_OVERLAP, VHOST_USER_SET_MEM_TABLE, 40, {1, -4095LLU, 4096, 0, 0}, MEMORY, 1},
        {PEER_REFUSED_MEMORY_OVERLAP, VHOST_USER_SET_MEM_TABLE, 40, {1, 0, 4096, -4095LLU, 0}, MEMORY, 1},
        {PEER_REFUSED_MEMORY_END, VHOST_USER_SET_MEM_TABLE, 40, {1, 0, 1LLU << 63, 0, 0}, MEMORY, 1},
};

// Refused as a whole: the rings stay with the worker, nothing is mapped, each descriptor is the caller's.
static void malformed_messages_are_refused(void **state)
{
	for (size_t i = 0; i < sizeof(bad_messages) / sizeof(bad_messages[0]); i++) {
		const struct bad *bad = &bad_messages[i];
		unsigned before, settles, takes;
		int fds[PEER_FDS_MAX];
		struct rig r;

		run(&r, VHOST_BIT(VIRTIO_F_VERSION_1));
		before = open_files();
		settles = r.settles;
		takes = r.takes;
		for (unsigned k = 0; k < bad->files; k++)
			fds[k] = open_file(bad->file);
		assert_true(peer_send(r.peer, bad->request, bad->payload, bad->size, fds, bad->files));
		for (unsigned k = 0; k < bad->files; k++)
			close(fds[k]);
		if (hear(&r) != bad->why)
			fail_msg("message %zu, request %u: %s instead of %s", i, bad->request,
			         r.why ? peer_refusal_key(r.why) : "accepted", peer_refusal_key(bad->why));
		assert_int_equal(r.settles, settles);
		assert_int_equal(r.takes, takes);
		assert_given(&r, "++++");
		assert_int_equal(r.device.memory.guest.count, 1);
		for (unsigned k = 0; k < r.link.files.count; k++)
			close(r.link.files.fds[k]);
		r.link.files.count = 0;
		assert_int_equal(open_files(), before);
		rig_close(&r);
	}
}

static void a_header_is_refused_before_its_payload(void **state)
{
	static const uint32_t headers[][4] = {
	        {VHOST_USER_SET_MEM_TABLE, VHOST_FLAG_VERSION, 1U << 31, PEER_REFUSED_SIZE},
	        {VHOST_USER_SET_MEM_TABLE, VHOST_FLAG_VERSION, 8 + 32 * 9, PEER_REFUSED_SIZE},
	        {VHOST_USER_SET_FEATURES, 2, 8, PEER_REFUSED_VERSION},
	        {VHOST_USER_SET_FEATURES, VHOST_FLAG_VERSION | VHOST_FLAG_REPLY, 8, PEER_REFUSED_VERSION},
	        {999, VHOST_FLAG_VERSION, UINT32_MAX, PEER_REFUSED_NOT_OFFERED},
	};

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		struct rig r;

		rig_open(&r);
		peer_send_bytes(r.peer, headers[i], VHOST_MESSAGE_HEADER, NULL, 0);
		assert_int_equal(hear(&r), headers[i][3]);
		rig_close(&r);
	}
}

// Two regions: by themselves right.
static void regions_that_overlap(void **state)
{
	static const struct {
		struct peer_region second;
		enum peer_refusal why;
	} cases[] = {
	        {{PEER_GUEST + 8192, 4096, PEER_USER + 8192, 0}, PEER_ACCEPTED},
	        {{PEER_GUEST - 4096, 4096, PEER_USER - 4096, 0}, PEER_ACCEPTED},
	        {{PEER_GUEST + 8191, 4096, PEER_USER + 8192, 0}, PEER_REFUSED_MEMORY_OVERLAP},
	        {{PEER_GUEST + 8192, 4096, PEER_USER + 8191, 0}, PEER_REFUSED_MEMORY_OVERLAP},
	        {{PEER_GUEST - 4095, 4096, PEER_USER + 8192, 0}, PEER_REFUSED_MEMORY_OVERLAP},
	        {{PEER_GUEST, 8192, PEER_USER + 8192, 0}, PEER_REFUSED_MEMORY_OVERLAP},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct peer_region regions[] = {{PEER_GUEST, 8192, PEER_USER, 0}, cases[i].second};
		struct rig r;

		rig_open(&r);
		peer_send_table(r.peer, regions, 2, (int[]){r.memory, r.memory}, 2);
		assert_int_equal(hear(&r), cases[i].why);
		rig_close(&r);
	}
}

// A few sparse files could use up all addresses.
static void too_much_memory(void **state)
{
	const uint64_t half = ((uint64_t)CONFIG_DRIVER_MEMORY_MB_MAX << 20) / 2;
	struct peer_region regions[] = {
	        {0, half, 0, 0}, {half, half, half, 0}, {2 * half, 4096, 2 * half, 0}};
	int huge = peer_memory(0, (off_t)half);

	for (unsigned count = 2; count <= 3; count++) {
		struct rig r;

		rig_open(&r);
		peer_send_table(r.peer, regions, count, (int[]){huge, huge, huge}, count);
		assert_int_equal(hear(&r), count == 2 ? PEER_ACCEPTED : PEER_REFUSED_MEMORY_LIMIT);
		rig_close(&r);
	}
	close(huge);
}

// A region may begin anywhere in its file; its bytes are where the driver has them.
static void a_region_inside_of_its_file(void **state)
{
	const struct peer_region region = {PEER_GUEST, 5000, PEER_USER, 4100};
	uint8_t byte = 42;
	struct rig r;

	rig_open(&r);
	assert_int_equal(pwrite(r.memory, &byte, 1, 4100 + 4999), 1);
	peer_send_table(r.peer, &region, 1, &r.memory, 1);
	assert_int_equal(hear(&r), PEER_ACCEPTED);
	assert_int_equal(*(uint8_t *)peer_memory_at(&r.device.memory, PEER_USER + 4999), 42);
	assert_null(peer_memory_at(&r.device.memory, PEER_USER + 5000));
	assert_null(peer_memory_at(&r.device.memory, PEER_USER - 1));
	rig_close(&r);
}

// Whole hugepages are mapped, whatever part of them is the region. Nothing of them is touched: there may be none.
static void a_region_in_hugepages(void **state)
{
	const struct peer_region region = {PEER_GUEST, 8192, PEER_USER, 4096};
	int memory = peer_memory(MFD_HUGETLB, 4 << 20);
	struct rig r;

	if (memory < 0)
		skip();
	rig_open(&r);
	peer_send_table(r.peer, &region, 1, &memory, 1);
	assert_int_equal(hear(&r), PEER_ACCEPTED);
	assert_ptr_equal(peer_memory_at(&r.device.memory, PEER_USER),
	                 (uint8_t *)r.device.memory.maps[0].at + 4096);
	assert_int_equal(r.device.memory.maps[0].bytes % (2 << 20), 0);
	rig_close(&r);
	close(memory);
}

// A ring outside of the memory, or misaligned, is not given to a worker.
static void rings_that_cannot_be(void **state)
{
	static const uint64_t at[][3] = {
	        // desc, used, avail
	        {PEER_USER - 16, PEER_USER + PEER_USED, PEER_USER + PEER_AVAIL},
	        {PEER_USER + PEER_MEMORY - 16, PEER_USER + PEER_USED, PEER_USER + PEER_AVAIL},
	        {PEER_USER, PEER_USER + PEER_MEMORY - 4, PEER_USER + PEER_AVAIL},
	        {PEER_USER, PEER_USER + PEER_USED, PEER_USER + PEER_MEMORY - 2},
	        {PEER_USER + 8, PEER_USER + PEER_USED, PEER_USER + PEER_AVAIL},
	        {PEER_USER, PEER_USER + PEER_USED + 2, PEER_USER + PEER_AVAIL},
	        {PEER_USER, PEER_USER + PEER_USED, PEER_USER + PEER_AVAIL + 1},
	        {UINT64_MAX, 0, UINT64_MAX - 1},
	};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		const uint64_t payload[] = {0, at[i][0], at[i][1], at[i][2], 0};
		struct rig r;

		run(&r, VHOST_BIT(VIRTIO_F_VERSION_1));
		peer_send(r.peer, VHOST_USER_SET_VRING_ADDR, payload, sizeof(payload), NULL, 0);
		assert_int_equal(hear(&r), PEER_ACCEPTED);
		assert_given(&r, "-+++");
		rig_close(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(rings_start),
	        cmocka_unit_test(a_message_takes_what_it_changes),
	        cmocka_unit_test(a_ring_stops_and_starts_again),
	        cmocka_unit_test(the_position_of_a_packed_ring),
	        cmocka_unit_test(memory_goes_and_comes),
	        cmocka_unit_test(the_status_starts_and_stops),
	        cmocka_unit_test(a_reset_forgets_the_rings),
	        cmocka_unit_test(acknowledgements),
	        cmocka_unit_test(what_is_offered),
	        cmocka_unit_test(rings_beyond_the_port),
	        cmocka_unit_test(a_message_in_bytes),
	        cmocka_unit_test(malformed_messages_are_refused),
	        cmocka_unit_test(a_header_is_refused_before_its_payload),
	        cmocka_unit_test(regions_that_overlap),
	        cmocka_unit_test(too_much_memory),
	        cmocka_unit_test(a_region_inside_of_its_file),
	        cmocka_unit_test(a_region_in_hugepages),
	        cmocka_unit_test(rings_that_cannot_be),
	};

	return cmocka_run_group_tests_name("vhost_device", tests, NULL, NULL);
}
