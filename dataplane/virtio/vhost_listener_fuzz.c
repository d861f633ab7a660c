// SPDX-License-Identifier: BSD-3-Clause
// A malicious driver on a vhost-user socket: messages with any bytes, in any pieces, with descriptors of every kind,
// and the device's state machine behind it. Whatever it accepts, a ring that may be given to a worker lies wholly in
// memory that is mapped, and is read to its last byte; whatever it refuses, no descriptor and no mapping is left.
//
// An input is steps: some that an honest driver takes, with a detail of the input's, and some of raw bytes. test/fuzz.h
// says how it is run. Not covered: memory whose file is cut behind the mapping, which is SIGBUS.
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <stdio.h>
#include <stdlib.h>

#include "virtio/vhost_device.h"
#include "virtio/vhost_link.h"
#include "test/fuzz.h"
#include "test/vhost_peer.h"

enum { PAIRS = 2, RINGS = 2 * PAIRS, STEPS_MAX = 64, RAW_MAX = 64 };

static const uint64_t offered = VHOST_BIT(VIRTIO_F_VERSION_1) | VHOST_BIT(VHOST_F_PROTOCOL_FEATURES) |
                                VHOST_BIT(VIRTIO_NET_F_MQ) | VHOST_BIT(VIRTIO_F_RING_PACKED);

enum file { MEMORY, SEALED, SMALL, HUGE_HOLE, EVENT, PIPE, FOLDER, SOCKET, FILES };

static int files[FILES];
static unsigned files_at_rest;
static unsigned long accepted, given, refused[PEER_REFUSALS];

struct rig {
	int peer;
	struct vhost_link link;
	struct vhost_device device;
	bool has[RINGS];
	bool gone;
};

static void must(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "vhost_listener_fuzz: not so: %s\n", what);
	abort();
}

// --- The worker: it has every ring that it may have ------------------------------------------------------

static bool take(struct vhost_device *device, unsigned ring, uint16_t *base)
{
	struct rig *r = device->owner;
	bool had = r->has[ring];

	r->has[ring] = false;
	return had;
}

static void use(struct vhost_device *device, unsigned index)
{
	struct ring_batch batch;
	struct device_ring_layout layout;
	struct device_ring ring;
	unsigned count;

	if (!vhost_device_ready(device, index) || !vhost_device_layout(device, index, &layout) ||
	    device_ring_init(&ring, &layout, &device->memory.guest))
		return;
	((struct rig *)device->owner)->has[index] = true;
	given++;
	count = device_ring_peek(&ring, &batch, BURST_FRAMES_MAX);
	for (unsigned i = 0; i < count; i++)
		batch.buffers[i].written = 0;
	if (count)
		device_ring_commit(&ring, &batch, count);
	device_ring_warm(&ring);
}

static void settled(struct vhost_device *device)
{
	for (unsigned i = 0; i < RINGS; i++)
		use(device, i);
}

static void gone(struct vhost_device *device)
{
	struct rig *r = device->owner;

	for (unsigned i = 0; i < RINGS; i++)
		must(!r->has[i], "no worker has a ring of a connection that is gone");
	r->gone = true;
}

static const struct vhost_device_ops ops = {take, settled, gone};

// --- One connection --------------------------------------------------------------------------------------

static void rig_open(struct rig *r)
{
	int pair[2];

	memset(r, 0, sizeof(*r));
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "there are sockets");
	r->peer = pair[0];
	r->link.fd = pair[1];
	vhost_device_begin(&r->device, &ops, r, PAIRS, offered);
}

static void rig_close(struct rig *r)
{
	vhost_device_end(&r->device);
	must(r->gone, "the end is told");
	peer_memory_close(&r->device.memory);
	for (unsigned i = 0; i < r->link.files.count; i++)
		close(r->link.files.fds[i]);
	close(r->peer);
	close(r->link.fd);
	must(open_files() == files_at_rest, "no descriptor is left");
}

// What a driver of this connection may count on afterwards.
static void check(const struct rig *r)
{
	const struct vhost_device *device = &r->device;
	uint64_t bytes = 0;

	must((device->features & ~device->offered) == 0, "only what is offered is negotiated");
	must((device->protocol_features & ~device->offered_protocol) == 0, "the same of the protocol");
	for (unsigned i = 0; i < device->memory.guest.count; i++)
		bytes += device->memory.guest.regions[i].size;
	must(bytes <= device->memory_max, "memory has a limit");
	for (unsigned i = RINGS; i < VHOST_RINGS_MAX; i++)
		must(device->rings[i].call_fd < 0, "rings that the port has not hold nothing");
}

// Returns whether the connection goes on.
static bool hear(struct rig *r)
{
	for (;;) {
		enum peer_refusal why = PEER_ACCEPTED;
		struct vhost_message reply;

		switch (vhost_link_read(&r->link, r->device.protocol_features, &why)) {
		case VHOST_READ_PART:
			return true;
		case VHOST_READ_WHOLE:
			why = vhost_device_handle(&r->device, &r->link.message, &r->link.files, &reply);
			break;
		default:
			break;
		}
		refused[why]++;
		if (why)
			return false;
		accepted++;
		must(!reply.flags || vhost_link_reply(&r->link, &reply), "a reply goes out");
		peer_memory_close(&r->device.replaced);
		vhost_link_next(&r->link);
		check(r);
	}
}

static void drain(struct rig *r)
{
	char bytes[4096];

	while (recv(r->peer, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

// --- What the driver does --------------------------------------------------------------------------------

static uint64_t input_number(struct input *in)
{
	uint8_t how = input_byte(in);
	uint64_t number = input_word(in);

	switch (how % 6) {
	case 0:
		return number;
	case 1:
		return number << 4;
	case 2:
		return PEER_USER + number * 16;
	case 3:
		return PEER_GUEST + number * 16;
	case 4:
		return 0 - number;
	default:
		return number << 48 | number << 16;
	}
}

static int input_file(struct input *in)
{
	return files[input_byte(in) % FILES];
}

static void send_table(struct rig *r, struct input *in)
{
	struct peer_region regions[PEER_REGIONS_MAX];
	unsigned count = 1 + input_byte(in) % 4, odd = input_byte(in);
	int fds[PEER_REGIONS_MAX];

	for (unsigned i = 0; i < count; i++) {
		regions[i] = (struct peer_region){PEER_GUEST + (uint64_t)i * PEER_MEMORY, PEER_MEMORY,
		                                  PEER_USER + (uint64_t)i * PEER_MEMORY, 0};
		fds[i] = files[MEMORY];
	}
	if (odd & 1)
		fds[odd / 16 % count] = input_file(in);
	if (odd & 2)
		regions[odd / 16 % count].bytes = input_number(in);
	if (odd & 4)
		regions[odd / 16 % count].offset = input_number(in);
	if (odd & 8)
		regions[odd / 16 % count].guest_address = regions[odd / 16 % count].user_address =
		        input_number(in);
	peer_send_table(r->peer, regions, count, fds, count);
}

static void send_address(struct rig *r, struct input *in)
{
	uint32_t ring = input_byte(in) % (RINGS + 1);
	const uint64_t payload[] = {ring, input_number(in), input_number(in), input_number(in), 0};

	if (input_byte(in) & 1)
		peer_send(r->peer, VHOST_USER_SET_VRING_ADDR, payload, sizeof(payload), NULL, 0);
	else
		peer_send_address(r->peer, ring, 0);
}

static void set_up_ring(struct rig *r, struct input *in)
{
	uint32_t ring = input_byte(in) % RINGS;

	peer_send_ring(r->peer, VHOST_USER_SET_VRING_NUM, ring, PEER_RING);
	peer_send_ring(r->peer, VHOST_USER_SET_VRING_BASE, ring, 0);
	peer_send_address(r->peer, ring, 0);
	peer_send_file(r->peer, VHOST_USER_SET_VRING_KICK, ring, files[EVENT]);
	peer_send_ring(r->peer, VHOST_USER_SET_VRING_ENABLE, ring, 1);
}

// A message of a known request with the payload and the descriptors of the input.
static void send_any(struct rig *r, struct input *in)
{
	uint8_t bytes[RAW_MAX];
	uint32_t request = input_byte(in) % 48, size = input_byte(in) % RAW_MAX;
	unsigned count = input_byte(in) % (PEER_FDS_MAX + 1);
	int fds[PEER_FDS_MAX];

	for (unsigned i = 0; i < size; i++)
		bytes[i] = input_byte(in);
	for (unsigned i = 0; i < count; i++)
		fds[i] = input_file(in);
	peer_send(r->peer, request, bytes, size, fds, count);
}

static void send_raw(struct rig *r, struct input *in)
{
	uint8_t bytes[RAW_MAX];
	unsigned size = 1 + input_byte(in) % (RAW_MAX - 1), count = input_byte(in) % 3;
	int fds[2] = {input_file(in), input_file(in)};

	for (unsigned i = 0; i < size; i++)
		bytes[i] = input_byte(in);
	peer_send_bytes(r->peer, bytes, size, fds, count);
}

static void step(struct rig *r, struct input *in)
{
	static const uint32_t numbers[] = {VHOST_USER_SET_FEATURES, VHOST_USER_SET_PROTOCOL_FEATURES,
	                                   VHOST_USER_SET_STATUS};
	static const uint32_t states[] = {VHOST_USER_SET_VRING_NUM, VHOST_USER_SET_VRING_BASE,
	                                  VHOST_USER_GET_VRING_BASE, VHOST_USER_SET_VRING_ENABLE};
	static const uint32_t descriptors[] = {VHOST_USER_SET_VRING_KICK, VHOST_USER_SET_VRING_CALL,
	                                       VHOST_USER_SET_VRING_ERR};
	uint8_t what = input_byte(in);

	switch (what % 10) {
	case 0:
		send_any(r, in);
		break;
	case 1:
		send_raw(r, in);
		break;
	case 2:
		peer_send_number(r->peer, numbers[what / 10 % 3],
		                 what >= 128 ? offered & ~input_number(in) : input_number(in));
		break;
	case 3:
		peer_send_ring(r->peer, states[what / 10 % 4], input_byte(in) % (VHOST_RINGS_MAX + 1),
		               input_word(in));
		break;
	case 4:
		peer_send_file(r->peer, descriptors[what / 10 % 3], input_byte(in) % (VHOST_RINGS_MAX + 1),
		               what >= 128 ? input_file(in) : files[EVENT]);
		break;
	case 5:
		send_address(r, in);
		break;
	case 6:
		pwrite(files[MEMORY], in->data, in->left < 64 ? in->left : 64, input_word(in) * 4);
		break;
	case 7:
		set_up_ring(r, in);
		break;
	default:
		send_table(r, in);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int pair[2];

	files[MEMORY] = peer_memory(0, PEER_MEMORY);
	files[SEALED] = peer_memory(MFD_ALLOW_SEALING, PEER_MEMORY);
	must(fcntl(files[SEALED], F_ADD_SEALS, F_SEAL_SHRINK) == 0, "memory can be sealed");
	files[SMALL] = peer_memory(0, 5000);
	files[HUGE_HOLE] = peer_memory(0, (off_t)1 << 40);
	files[EVENT] = eventfd(0, EFD_CLOEXEC);
	must(pipe2(pair, O_CLOEXEC) == 0, "there are pipes");
	files[PIPE] = pair[1];
	files[FOLDER] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	files[SOCKET] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	files_at_rest = open_files();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	bool goes_on = true;
	struct rig r;

	for (enum file i = MEMORY; i <= SEALED; i++) // nothing of the last input
		fallocate(files[i], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PEER_MEMORY);
	files_at_rest = open_files(); // libFuzzer has some of its own, at times
	rig_open(&r);
	for (unsigned i = 0; i < STEPS_MAX && in.left && goes_on; i++) {
		step(&r, &in);
		goes_on = hear(&r);
		drain(&r);
	}
	rig_close(&r);
	return 0;
}

void fuzz_report(void)
{
	printf("%lu messages accepted, %lu times a ring was given\n", accepted, given);
	for (unsigned i = PEER_ACCEPTED + 1; i < PEER_REFUSALS; i++)
		printf("%8lu times %s\n", refused[i], peer_refusal_key((enum peer_refusal)i));
}
