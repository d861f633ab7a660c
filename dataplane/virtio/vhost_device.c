// SPDX-License-Identifier: BSD-3-Clause
#include "virtio/vhost_device.h"

#include <string.h>
#include <unistd.h>

#include <linux/virtio_config.h>

#include "base/limits.h"
#include "shm/doorbell.h"

static unsigned port_rings(const struct vhost_device *device)
{
	return 2 * device->pairs;
}

static bool negotiated(const struct vhost_device *device, unsigned protocol_feature)
{
	return device->protocol_features >> protocol_feature & 1;
}

// --- Rings -----------------------------------------------------------------------------------------------

static void take(struct vhost_device *device, unsigned ring)
{
	if (ring < port_rings(device) && device->ops->take(device, ring, &device->rings[ring].base))
		device->taken++;
}

static void take_all(struct vhost_device *device)
{
	for (unsigned i = 0; i < port_rings(device); i++)
		take(device, i);
}

static void set_call(struct vhost_device_ring *ring, int fd)
{
	if (ring->call_fd >= 0)
		close(ring->call_fd);
	ring->call_fd = fd;
}

// "Starting and stopping rings": it starts again with a kick descriptor.
static void stop(struct vhost_device *device, unsigned ring)
{
	take(device, ring);
	device->rings[ring].kicked = false;
	set_call(&device->rings[ring], -1);
}

// Return the position for GET_VRING_BASE. A packed ring has one for each side, and they are the same: nothing is in
// flight.
static uint32_t position(const struct vhost_device *device, unsigned ring)
{
	uint32_t base = device->rings[ring].base;

	return device->features & VHOST_BIT(VIRTIO_F_RING_PACKED) ? base | base << 16 : base;
}

static void enable(struct vhost_device *device, unsigned ring, bool on)
{
	if (!on)
		take(device, ring);
	device->rings[ring].enabled = on;
	if (on && ring >= port_rings(device) && device->beyond == 0)
		device->beyond = ring;
}

// A driver that knows nothing of VHOST_USER_F_PROTOCOL_FEATURES cannot enable rings: they are. Kicks are not read, we
// poll; that one has come starts the ring.
static void kicked(struct vhost_device *device, unsigned ring)
{
	device->rings[ring].kicked = true;
	if (!(device->features & VHOST_BIT(VHOST_F_PROTOCOL_FEATURES)))
		enable(device, ring, true);
}

bool vhost_device_started(const struct vhost_device *device, unsigned ring)
{
	enum { DRIVER_OK = VIRTIO_CONFIG_S_DRIVER_OK };
	const struct vhost_device_ring *r = &device->rings[ring];

	return r->size && r->addressed && r->kicked &&
	       (!negotiated(device, VHOST_PROTOCOL_F_STATUS) || device->status & DRIVER_OK);
}

bool vhost_device_ready(const struct vhost_device *device, unsigned ring)
{
	return device->rings[ring].enabled && vhost_device_started(device, ring);
}

bool vhost_device_layout(const struct vhost_device *device, unsigned ring, struct device_ring_layout *layout)
{
	const struct vhost_device_ring *r = &device->rings[ring];

	*layout = (struct device_ring_layout){
	        .desc = peer_memory_at(&device->memory, r->desc),
	        .driver = peer_memory_at(&device->memory, r->avail),
	        .device = peer_memory_at(&device->memory, r->used),
	        .size = (uint16_t)r->size,
	        .base = r->base,
	        .features = device->features,
	        .writable = ring % 2 == 0,
	};
	return layout->desc && layout->driver && layout->device;
}

void vhost_device_unblock(struct vhost_device *device)
{
	for (unsigned i = 0; i < port_rings(device); i++)
		device->blocked |= doorbell_unblock(device->rings[i].call_fd);
}

// --- Messages --------------------------------------------------------------------------------------------

// SET_VRING_KICK, CALL, ERR. Only the descriptor to call is ever used; a worker writes to it, so it must not block.
static enum peer_refusal set_file(struct vhost_device *device, const struct vhost_message *message,
                                  struct peer_files *files)
{
	unsigned ring = vhost_message_file_ring(message);
	int fd = files->count ? files->fds[0] : -1;
	bool call = message->request == VHOST_USER_SET_VRING_CALL;

	if (fd >= 0 && !(call ? doorbell_take(fd) : doorbell_is(fd)))
		return PEER_REFUSED_NO_EVENTFD;
	files->count = 0;
	if (call) {
		take(device, ring);
		set_call(&device->rings[ring], -1);
	}
	if (call && ring < port_rings(device))
		device->rings[ring].call_fd = fd;
	else if (fd >= 0)
		close(fd);
	if (message->request == VHOST_USER_SET_VRING_KICK) {
		take(device, ring);
		kicked(device, ring);
	}
	return PEER_ACCEPTED;
}

static enum peer_refusal set_memory(struct vhost_device *device, const struct vhost_message *message,
                                    struct peer_files *files)
{
	struct peer_memory next;
	struct peer_region regions[PEER_REGIONS_MAX];
	enum peer_refusal why;

	memcpy(regions, message->memory.regions,
	       sizeof(regions)); // aligned, which those of the message are not
	why = peer_memory_open(&next, regions, files, device->memory_max, device->charge);
	if (why)
		return why;
	take_all(device);
	device->replaced = device->memory;
	device->memory = next;
	return PEER_ACCEPTED;
}

static enum peer_refusal set_address(struct vhost_device *device, const struct vhost_message *message)
{
	struct vhost_device_ring *ring = &device->rings[message->address.index];

	if (message->address.flags & VHOST_ADDRESS_LOG)
		return PEER_REFUSED_VALUE;
	take(device, message->address.index);
	ring->desc = message->address.desc;
	ring->avail = message->address.avail;
	ring->used = message->address.used;
	ring->addressed = true;
	return PEER_ACCEPTED;
}

static enum peer_refusal set_ring(struct vhost_device *device, const struct vhost_message *message)
{
	unsigned index = message->ring.index;
	uint32_t number = message->ring.number;

	switch (message->request) {
	case VHOST_USER_SET_VRING_NUM:
		if (number == 0 || number > RING_SIZE_MAX)
			return PEER_REFUSED_VALUE;
		take(device, index);
		device->rings[index].size = number;
		break;
	case VHOST_USER_SET_VRING_BASE: // the upper half is the used side's of a packed ring: see position()
		take(device, index);
		device->rings[index].base = (uint16_t)number;
		break;
	default:
		if (number > 1)
			return PEER_REFUSED_VALUE;
		enable(device, index, number);
	}
	return PEER_ACCEPTED;
}

static enum peer_refusal set_features(struct vhost_device *device, uint64_t features)
{
	if (features & ~device->offered)
		return PEER_REFUSED_FEATURES;
	if (features != device->features)
		take_all(device);
	device->features = features;
	return PEER_ACCEPTED;
}

static enum peer_refusal set_protocol_features(struct vhost_device *device, uint64_t features)
{
	if (features & ~device->offered_protocol)
		return PEER_REFUSED_FEATURES;
	if (features != device->protocol_features)
		take_all(device);
	device->protocol_features = features;
	return PEER_ACCEPTED;
}

static enum peer_refusal set_status(struct vhost_device *device, uint64_t status)
{
	if (status > UINT8_MAX)
		return PEER_REFUSED_VALUE;
	if (!(status & VIRTIO_CONFIG_S_DRIVER_OK))
		take_all(device);
	device->status = (uint8_t)status;
	return PEER_ACCEPTED;
}

static void reset(struct vhost_device *device)
{
	for (unsigned i = 0; i < VHOST_RINGS_MAX; i++) {
		stop(device, i);
		device->rings[i] = (struct vhost_device_ring){.call_fd = -1};
	}
	device->features = 0;
	device->status = 0;
}

// Requests that change something.
static enum peer_refusal change(struct vhost_device *device, const struct vhost_message *message,
                                struct peer_files *files)
{
	switch (message->request) {
	case VHOST_USER_SET_FEATURES:
		return set_features(device, message->value);
	case VHOST_USER_SET_PROTOCOL_FEATURES:
		return set_protocol_features(device, message->value);
	case VHOST_USER_SET_STATUS:
		return set_status(device, message->value);
	case VHOST_USER_SET_MEM_TABLE:
		return set_memory(device, message, files);
	case VHOST_USER_SET_VRING_ADDR:
		return set_address(device, message);
	case VHOST_USER_SET_VRING_NUM:
	case VHOST_USER_SET_VRING_BASE:
	case VHOST_USER_SET_VRING_ENABLE:
		return set_ring(device, message);
	case VHOST_USER_SET_VRING_KICK:
	case VHOST_USER_SET_VRING_CALL:
	case VHOST_USER_SET_VRING_ERR:
		return set_file(device, message, files);
	case VHOST_USER_RESET_OWNER:
		reset(device);
		return PEER_ACCEPTED;
	default: // SET_OWNER
		return PEER_ACCEPTED;
	}
}

// Questions. Returns false if the message is none.
static bool answer(struct vhost_device *device, const struct vhost_message *message,
                   struct vhost_message *reply)
{
	reply->size = sizeof(reply->value);
	switch (message->request) {
	case VHOST_USER_GET_FEATURES:
		reply->value = device->offered;
		return true;
	case VHOST_USER_GET_PROTOCOL_FEATURES:
		reply->value = device->offered_protocol;
		return true;
	case VHOST_USER_GET_QUEUE_NUM:
		reply->value = device->pairs;
		return true;
	case VHOST_USER_GET_STATUS:
		reply->value = device->status;
		return true;
	case VHOST_USER_GET_VRING_BASE:
		stop(device, message->ring.index);
		reply->ring.index = message->ring.index;
		reply->ring.number = position(device, message->ring.index);
		return true;
	default:
		return false;
	}
}

enum peer_refusal vhost_device_handle(struct vhost_device *device, const struct vhost_message *message,
                                      struct peer_files *files, struct vhost_message *reply)
{
	enum peer_refusal why = vhost_message_check(message, files->count, VHOST_RINGS_MAX);
	bool replies;

	*reply = (struct vhost_message){.request = message->request};
	if (why)
		return why;
	replies = answer(device, message, reply);
	if (!replies) {
		why = change(device, message, files);
		replies = message->flags & VHOST_FLAG_NEED_REPLY &&
		          negotiated(device, VHOST_PROTOCOL_F_REPLY_ACK);
	}
	if (replies && why == PEER_ACCEPTED)
		reply->flags = VHOST_FLAG_VERSION | VHOST_FLAG_REPLY;
	if (why == PEER_ACCEPTED)
		device->ops->settled(device);
	return why;
}

// --- Beginning and ending --------------------------------------------------------------------------------

void vhost_device_begin(struct vhost_device *device, const struct vhost_device_ops *ops, void *owner,
                        unsigned pairs, uint64_t features)
{
	*device = (struct vhost_device){
	        .ops = ops,
	        .owner = owner,
	        .pairs = pairs,
	        .memory_max = (uint64_t)CONFIG_DRIVER_MEMORY_MB_MAX << 20,
	        .offered = features,
	        .offered_protocol =
	                VHOST_BIT(VHOST_PROTOCOL_F_REPLY_ACK) | VHOST_BIT(VHOST_PROTOCOL_F_STATUS),
	};
	if (pairs > 1)
		device->offered_protocol |= VHOST_BIT(VHOST_PROTOCOL_F_MQ);
	for (unsigned i = 0; i < VHOST_RINGS_MAX; i++)
		device->rings[i].call_fd = -1;
}

void vhost_device_end(struct vhost_device *device)
{
	for (unsigned i = 0; i < VHOST_RINGS_MAX; i++)
		stop(device, i);
	device->ops->gone(device);
}
