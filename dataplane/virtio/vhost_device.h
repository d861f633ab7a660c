// SPDX-License-Identifier: BSD-3-Clause
// What a driver has said over one vhost-user connection: the state machine of the device's side. Whole messages come
// in, replies come out; sockets, threads and workers are not known here.
//
// Nothing of a ring changes while a worker may have it: take() comes first. settled() comes after each message that
// was accepted, for who gives the rings to workers. A message is accepted as a whole or refused as a whole; after a
// refusal the connection has to end.
#pragma once

#include "virtio/device_ring.h"
#include "shm/peer_memory.h"
#include "virtio/vhost_message.h"

enum {
	VHOST_RINGS_MAX = 32, // that a driver may speak of, whatever the port has
	VHOST_BEYOND_SAID = VHOST_RINGS_MAX,
};

struct vhost_device;

struct vhost_device_ops {
	// No worker has the ring when this returns; *base becomes the position that it was left at, if one had it.
	// Returns whether one had.
	bool (*take)(struct vhost_device *device, unsigned ring, uint16_t *base);
	void (*settled)(struct vhost_device *device);
	void (*gone)(struct vhost_device *device); // by vhost_device_end(): all rings are taken
};

struct vhost_device_ring {
	bool addressed, kicked, enabled;
	uint16_t base;
	uint32_t size;
	uint64_t desc, avail, used; // in the driver's address space
	int call_fd;                // an eventfd, or -1
};

struct vhost_device {
	const struct vhost_device_ops *ops;
	void *owner; // of the port that it is a device of: for ops
	unsigned pairs;
	uint64_t memory_max;         // bytes of all regions; to be changed after vhost_device_begin()
	struct guest_charge *charge; // of the port, or NULL; the same
	uint64_t offered, offered_protocol;
	uint64_t features, protocol_features; // what the driver has set
	uint8_t status;
	bool running;     // of ops: its first pair is
	bool drives;      // the same: it has the port, from its first time on
	bool shut_out;    // the same: it would run, and another one has the port
	bool blocked;     // by vhost_device_unblock()
	unsigned beyond;  // 0, or the first ring that was enabled and that the port has not; ops says so
	unsigned taken;   // rings that a worker had and had to let go, ever: what messages cost others
	uint32_t to_call; // of ops: a bit for each ring whose driver is to be called, which may take long
	struct peer_memory memory;
	struct peer_memory replaced; // by a message: to be closed before the next is handled
	struct vhost_device_ring rings[VHOST_RINGS_MAX];
};

// A connection has begun.
void vhost_device_begin(struct vhost_device *device, const struct vhost_device_ops *ops, void *owner,
                        unsigned pairs, uint64_t features);

// Handle a whole message, whose header was checked. *reply is what to send, if its flags are not 0. The files that were
// accepted are the device's; of a refused message all are the caller's.
enum peer_refusal vhost_device_handle(struct vhost_device *device, const struct vhost_message *message,
                                      struct peer_files *files, struct vhost_message *reply);

// The connection ends. memory is then the caller's to close; all descriptors are closed.
void vhost_device_end(struct vhost_device *device);

// The descriptors that workers write to were made non-blocking, but their flags belong to the driver, too. Make those
// that are not so non-blocking again, and wake who stands in one; device->blocked: there was one, and no driver has a
// reason for it.
void vhost_device_unblock(struct vhost_device *device);

// Whether the driver has set the ring up and not stopped it; and whether it has enabled it, too.
bool vhost_device_started(const struct vhost_device *device, unsigned ring);
bool vhost_device_ready(const struct vhost_device *device, unsigned ring);

// Where a ring that is ready is. Returns false if that is not in the shared memory (now).
bool vhost_device_layout(const struct vhost_device *device, unsigned ring, struct device_ring_layout *layout);
