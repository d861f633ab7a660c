// SPDX-License-Identifier: BSD-3-Clause
#include "ring/frontend.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>

#include "ring/frontend_message.h"

// --- Connections -----------------------------------------------------------------------------------------

// Non-blocking: a listener whose backlog is full would keep us.
static int connect_to(struct frontend *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int rc;

	memcpy(address.sun_path, f->path, sizeof(address.sun_path));
	f->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (f->fd < 0 || connect(f->fd, (struct sockaddr *)&address, sizeof(address))) {
		rc = -errno;
		snprintf(f->error, sizeof(f->error), "%s: %s", f->path, strerror(errno));
		return rc;
	}
	return 0;
}

static int negotiate_protocol(struct frontend *f, unsigned pairs)
{
	uint64_t offered, queues = 1;
	int rc = frontend_ask(f, GET_PROTOCOL_FEATURES, &offered);

	if (rc == 0)
		rc = frontend_tell_number(f, SET_PROTOCOL_FEATURES,
		                          offered & (BIT(PROTOCOL_F_MQ) | BIT(PROTOCOL_F_REPLY_ACK)),
		                          sizeof(uint64_t));
	if (rc)
		return rc;
	f->protocol_features = offered & (BIT(PROTOCOL_F_MQ) | BIT(PROTOCOL_F_REPLY_ACK));
	if (frontend_negotiated(f, PROTOCOL_F_MQ))
		rc = frontend_ask(f, GET_QUEUE_NUM, &queues);
	if (rc == 0 && queues < pairs)
		rc = frontend_fail(f, -ENOTSUP, GET_QUEUE_NUM,
		                   "the device has fewer queue pairs than are wanted", queues);
	return rc;
}

static int negotiate(struct frontend *f, unsigned pairs)
{
	uint64_t offered, wanted = BIT(VIRTIO_F_VERSION_1) | BIT(VIRTIO_F_IN_ORDER);
	int rc = frontend_tell_number(f, SET_OWNER, 0, 0);

	if (rc == 0)
		rc = frontend_ask(f, GET_FEATURES, &offered);
	if (rc)
		return rc;
	if (!(offered & BIT(VIRTIO_F_VERSION_1)))
		return frontend_fail(f, -ENOTSUP, GET_FEATURES,
		                     "the device does not offer VIRTIO_F_VERSION_1", offered);
	if (pairs > 1) {
		wanted |= BIT(VIRTIO_NET_F_MQ);
		if (!(offered & BIT(VIRTIO_NET_F_MQ)) || !(offered & BIT(F_PROTOCOL_FEATURES)))
			return frontend_fail(f, -ENOTSUP, GET_FEATURES, "the device has one queue pair only",
			                     offered);
	}
	if (offered & BIT(F_PROTOCOL_FEATURES))
		rc = negotiate_protocol(f, pairs);
	f->features = offered & (wanted | BIT(F_PROTOCOL_FEATURES));
	f->in_order = f->features >> VIRTIO_F_IN_ORDER & 1;
	return rc ? rc : frontend_tell_number(f, SET_FEATURES, f->features, sizeof(uint64_t));
}

int frontend_open(struct frontend *f, const char *path, unsigned pairs)
{
	int rc;

	*f = (struct frontend){.fd = -1};
	snprintf(f->path, sizeof(f->path), "%s", path);
	frontend_begin(f);
	rc = connect_to(f);
	if (rc == 0)
		rc = negotiate(f, pairs);
	if (rc)
		frontend_close(f);
	return rc;
}

void frontend_close(struct frontend *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

int frontend_leave(struct frontend *f)
{
	int fd = f->fd;

	shutdown(fd, SHUT_WR);
	f->fd = -1;
	return fd;
}

// What it still says on its way is of no interest.
bool frontend_left(int fd)
{
	char ignored[256];
	ssize_t n;

	do
		n = recv(fd, ignored, sizeof(ignored), MSG_DONTWAIT);
	while (n > 0 || (n < 0 && errno == EINTR));
	return n == 0 || errno != EAGAIN;
}

int frontend_share(struct frontend *f, const struct memory_table *table)
{
	struct message message = {.request = SET_MEM_TABLE};
	int fds[MEMORY_TABLE_MAX], rc;
	uint64_t ignored;

	frontend_begin(f);
	message.size = offsetof(struct message, memory.regions) - HEADER_BYTES +
	               table->count * sizeof(message.memory.regions[0]);
	message.memory.count = table->count;
	for (unsigned i = 0; i < table->count; i++) {
		const struct memory_region *region = &table->regions[i];

		message.memory.regions[i].guest_address = region->address;
		message.memory.regions[i].user_address = region->address;
		message.memory.regions[i].bytes = region->bytes;
		message.memory.regions[i].offset = region->offset;
		fds[i] = region->fd;
	}
	rc = frontend_tell(f, &message, fds, table->count);
	// Without acknowledgements: messages are handled in order, so an answer to the next says it of this
	// one too.
	return rc || frontend_negotiated(f, PROTOCOL_F_REPLY_ACK) ? rc
	                                                          : frontend_ask(f, GET_FEATURES, &ignored);
}

// --- Rings -----------------------------------------------------------------------------------------------

static int set_address(struct frontend *f, unsigned index, const struct frontend_ring *ring)
{
	struct message message = {.request = SET_VRING_ADDR, .size = sizeof(message.address)};

	message.address.index = index;
	message.address.desc = (uintptr_t)ring->desc;
	message.address.used = (uintptr_t)ring->used;
	message.address.avail = (uintptr_t)ring->avail;
	return frontend_tell(f, &message, NULL, 0);
}

// The kick descriptor comes last. A first kick starts the ring, also of a device that wants none ("Ring
// states"): VPP waits for it, DPDK does not.
static int set_up(struct frontend *f, unsigned index, const struct frontend_ring *ring)
{
	int rc = frontend_tell_ring(f, SET_VRING_NUM, index, ring->size);

	if (rc == 0)
		rc = frontend_tell_ring(f, SET_VRING_BASE, index, 0);
	if (rc == 0)
		rc = set_address(f, index, ring);
	if (rc == 0)
		rc = frontend_tell_fd(f, SET_VRING_CALL, index, ring->call_fd);
	if (rc == 0)
		rc = frontend_tell_fd(f, SET_VRING_KICK, index, ring->kick_fd);
	if (rc == 0 && eventfd_write(ring->kick_fd, 1))
		rc = -errno;
	return rc;
}

// Without VHOST_USER_F_PROTOCOL_FEATURES rings are enabled from the start.
static int enable(struct frontend *f, unsigned count, bool on)
{
	int rc = 0;

	if (!(f->features & BIT(F_PROTOCOL_FEATURES)))
		return 0;
	for (unsigned i = 0; i < count && rc == 0; i++)
		rc = frontend_tell_ring(f, SET_VRING_ENABLE, i, on);
	return rc;
}

int frontend_start(struct frontend *f, const struct frontend_ring *rings, unsigned count)
{
	int rc = 0;

	frontend_begin(f);
	for (unsigned i = 0; i < count && rc == 0; i++)
		rc = set_up(f, i, &rings[i]);
	return rc ? rc : enable(f, count, true);
}

int frontend_stop(struct frontend *f, unsigned count)
{
	int rc;

	frontend_begin(f);
	rc = enable(f, count, false);
	for (unsigned i = 0; i < count && rc == 0; i++) {
		struct message message = {
		        .request = GET_VRING_BASE, .flags = FLAG_VERSION, .size = sizeof(message.ring)};

		message.ring.index = i;
		rc = frontend_send(f, &message, NULL, 0);
		if (rc == 0)
			rc = frontend_answer(f, GET_VRING_BASE, &message, sizeof(message.ring));
	}
	return rc;
}

bool frontend_alive(struct frontend *f)
{
	char byte;
	ssize_t n = recv(f->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	f->gone |= n <= 0;
	snprintf(f->error, sizeof(f->error), "%s: %s", f->path,
	         n > 0 ? "the device says something that it was not asked for" : "the device hung up");
	return false;
}
