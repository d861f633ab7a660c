// SPDX-License-Identifier: BSD-3-Clause
#include "virtio/frontend.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>

#include "base/clock.h"

// --- Messages --------------------------------------------------------------------------------------------

// Put a sentence into f->error. Returns rc.
static int frontend_fail(struct frontend *f, int rc, enum vhost_request request, const char *what,
                         uint64_t value)
{
	snprintf(f->error, sizeof(f->error), "%s: %s: %s (0x%llx)", f->path, vhost_request_text(request),
	         what, (unsigned long long)value);
	return rc;
}

// Send a message. Returns 0 or -errno.
static int frontend_send(struct frontend *f, const struct vhost_message *message, const int *fds,
                         unsigned fd_count)
{
	union {
		char bytes[CMSG_SPACE(PEER_REGIONS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec data = {(void *)(uintptr_t)message, VHOST_MESSAGE_HEADER + message->size};
	struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1};
	ssize_t sent;

	if (fd_count) {
		struct cmsghdr *rights = &control.align;

		header.msg_control = control.bytes;
		header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(rights), fds, fd_count * sizeof(int));
	}
	sent = sendmsg(f->fd, &header, MSG_NOSIGNAL); // does not block: who lets it fill up does not read
	if (sent == (ssize_t)data.iov_len)
		return 0;
	f->gone |= sent < 0 && (errno == EPIPE || errno == ECONNRESET);
	return frontend_fail(f, sent < 0 ? -errno : -EIO, message->request,
	                     sent < 0 ? strerror(errno) : "it was sent in part", (uint64_t)sent);
}

// Exactly bytes, before the deadline.
static int receive(struct frontend *f, enum vhost_request request, void *to, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		struct pollfd ready = {.fd = f->fd, .events = POLLIN};
		int64_t left = f->deadline_ms - clock_now_ms();
		ssize_t n;

		if (left <= 0 || poll(&ready, 1, (int)left) == 0)
			return frontend_fail(f, -ETIMEDOUT, request, "no answer in time; milliseconds",
			                     FRONTEND_PATIENCE_MS);
		n = recv(f->fd, (char *)to + done, bytes - done, MSG_DONTWAIT);
		f->gone |= n == 0 || (n < 0 && errno == ECONNRESET);
		if (n == 0)
			return frontend_fail(f, -ECONNRESET, request,
			                     "the device hung up instead of answering; bytes", done);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return frontend_fail(f, -errno, request, strerror(errno), (uint64_t)errno);
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

// Receive the answer to a message: exactly size bytes into its payload. Returns 0 or -errno.
static int frontend_answer(struct frontend *f, enum vhost_request request, struct vhost_message *answer,
                           uint32_t size)
{
	int rc = receive(f, request, answer, VHOST_MESSAGE_HEADER);

	if (rc)
		return rc;
	if (answer->request != request)
		return frontend_fail(f, -EPROTO, request, "the answer is to another message",
		                     answer->request);
	if ((answer->flags & (VHOST_FLAG_VERSION_MASK | VHOST_FLAG_REPLY)) !=
	    (VHOST_FLAG_VERSION | VHOST_FLAG_REPLY))
		return frontend_fail(f, -EPROTO, request, "the answer's flags are wrong", answer->flags);
	if (answer->size != size)
		return frontend_fail(f, -EPROTO, request, "the answer's size is wrong", answer->size);
	return receive(f, request, &answer->value, size);
}

// What the peer does from here on it must have done in time, however it spreads its answers.
static void frontend_begin(struct frontend *f)
{
	f->deadline_ms = clock_now_ms() + FRONTEND_PATIENCE_MS;
}

static bool frontend_negotiated(const struct frontend *f, unsigned protocol_feature)
{
	return f->protocol_features >> protocol_feature & 1;
}

// Send a message that has no answer of its own; where the device offers REPLY_ACK, it says whether it did it.
static int frontend_tell(struct frontend *f, struct vhost_message *message, const int *fds, unsigned fd_count)
{
	struct vhost_message answer;
	int rc;

	message->flags = VHOST_FLAG_VERSION;
	if (frontend_negotiated(f, VHOST_PROTOCOL_F_REPLY_ACK))
		message->flags |= VHOST_FLAG_NEED_REPLY;
	rc = frontend_send(f, message, fds, fd_count);
	if (rc || !frontend_negotiated(f, VHOST_PROTOCOL_F_REPLY_ACK))
		return rc;
	rc = frontend_answer(f, message->request, &answer, sizeof(answer.value));
	if (rc == 0 && answer.value)
		rc = frontend_fail(f, -EPROTO, message->request, "the device refused it", answer.value);
	return rc;
}

static int frontend_tell_number(struct frontend *f, enum vhost_request request, uint64_t number,
                                uint32_t size)
{
	struct vhost_message message = {.request = request, .size = size, .value = number};

	return frontend_tell(f, &message, NULL, 0);
}

static int frontend_tell_ring(struct frontend *f, enum vhost_request request, unsigned index, uint32_t number)
{
	struct vhost_message message = {.request = request, .size = sizeof(message.ring)};

	message.ring.index = index;
	message.ring.number = number;
	return frontend_tell(f, &message, NULL, 0);
}

static int frontend_tell_fd(struct frontend *f, enum vhost_request request, unsigned index, int fd)
{
	struct vhost_message message = {.request = request, .size = sizeof(message.value), .value = index};

	return frontend_tell(f, &message, &fd, 1);
}

// Send a message whose answer is a number.
static int frontend_ask(struct frontend *f, enum vhost_request request, uint64_t *number)
{
	struct vhost_message message = {.request = request, .flags = VHOST_FLAG_VERSION};
	int rc = frontend_send(f, &message, NULL, 0);

	if (rc == 0)
		rc = frontend_answer(f, request, &message, sizeof(message.value));
	*number = message.value;
	return rc;
}

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
	int rc = frontend_ask(f, VHOST_USER_GET_PROTOCOL_FEATURES, &offered);

	if (rc == 0)
		rc = frontend_tell_number(
		        f, VHOST_USER_SET_PROTOCOL_FEATURES,
		        offered & (VHOST_BIT(VHOST_PROTOCOL_F_MQ) | VHOST_BIT(VHOST_PROTOCOL_F_REPLY_ACK)),
		        sizeof(uint64_t));
	if (rc)
		return rc;
	f->protocol_features =
	        offered & (VHOST_BIT(VHOST_PROTOCOL_F_MQ) | VHOST_BIT(VHOST_PROTOCOL_F_REPLY_ACK));
	if (frontend_negotiated(f, VHOST_PROTOCOL_F_MQ))
		rc = frontend_ask(f, VHOST_USER_GET_QUEUE_NUM, &queues);
	if (rc == 0 && queues < pairs)
		rc = frontend_fail(f, -ENOTSUP, VHOST_USER_GET_QUEUE_NUM,
		                   "the device has fewer queue pairs than are wanted", queues);
	return rc;
}

static int negotiate(struct frontend *f, unsigned pairs, bool packed)
{
	uint64_t offered, wanted = VHOST_BIT(VIRTIO_F_VERSION_1) | VHOST_BIT(VIRTIO_F_IN_ORDER);
	int rc = frontend_tell_number(f, VHOST_USER_SET_OWNER, 0, 0);

	if (rc == 0)
		rc = frontend_ask(f, VHOST_USER_GET_FEATURES, &offered);
	if (rc)
		return rc;
	if (!(offered & VHOST_BIT(VIRTIO_F_VERSION_1)))
		return frontend_fail(f, -ENOTSUP, VHOST_USER_GET_FEATURES,
		                     "the device does not offer VIRTIO_F_VERSION_1", offered);
	wanted |= packed ? VHOST_BIT(VIRTIO_F_RING_PACKED) : 0;
	if (pairs > 1) {
		wanted |= VHOST_BIT(VIRTIO_NET_F_MQ);
		if (!(offered & VHOST_BIT(VIRTIO_NET_F_MQ)) ||
		    !(offered & VHOST_BIT(VHOST_F_PROTOCOL_FEATURES)))
			return frontend_fail(f, -ENOTSUP, VHOST_USER_GET_FEATURES,
			                     "the device has one queue pair only", offered);
	}
	if (offered & VHOST_BIT(VHOST_F_PROTOCOL_FEATURES))
		rc = negotiate_protocol(f, pairs);
	f->features = offered & (wanted | VHOST_BIT(VHOST_F_PROTOCOL_FEATURES));
	f->in_order = f->features >> VIRTIO_F_IN_ORDER & 1;
	f->packed = f->features >> VIRTIO_F_RING_PACKED & 1;
	return rc ? rc : frontend_tell_number(f, VHOST_USER_SET_FEATURES, f->features, sizeof(uint64_t));
}

int frontend_open(struct frontend *f, const char *path, unsigned pairs, bool packed)
{
	int rc;

	*f = (struct frontend){.fd = -1};
	snprintf(f->path, sizeof(f->path), "%s", path);
	frontend_begin(f);
	rc = connect_to(f);
	if (rc == 0)
		rc = negotiate(f, pairs, packed);
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
	struct vhost_message message = {.request = VHOST_USER_SET_MEM_TABLE};
	int fds[PEER_REGIONS_MAX], rc;
	uint64_t ignored;

	frontend_begin(f);
	message.size = offsetof(struct vhost_message, memory.regions) - VHOST_MESSAGE_HEADER +
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
	return rc || frontend_negotiated(f, VHOST_PROTOCOL_F_REPLY_ACK)
	               ? rc
	               : frontend_ask(f, VHOST_USER_GET_FEATURES, &ignored);
}

// --- Rings -----------------------------------------------------------------------------------------------

static int set_address(struct frontend *f, unsigned index, const struct frontend_ring *ring)
{
	struct vhost_message message = {.request = VHOST_USER_SET_VRING_ADDR,
	                                .size = sizeof(message.address)};

	message.address.index = index;
	message.address.desc = (uintptr_t)ring->desc;
	message.address.used = (uintptr_t)ring->used;
	message.address.avail = (uintptr_t)ring->avail;
	return frontend_tell(f, &message, NULL, 0);
}

// The index of a packed ring has the wrap counter in bit 15, which begins at 1; the device's own index is in the upper half.
static const uint32_t packed_bases = UINT32_C(1) << 31 | 1 << 15;

// The kick descriptor comes last. A first kick starts the ring, also of a device that wants none ("Ring
// states"): VPP waits for it, DPDK does not.
static int set_up(struct frontend *f, unsigned index, const struct frontend_ring *ring)
{
	int rc = frontend_tell_ring(f, VHOST_USER_SET_VRING_NUM, index, ring->size);

	if (rc == 0)
		rc = frontend_tell_ring(f, VHOST_USER_SET_VRING_BASE, index, f->packed ? packed_bases : 0);
	if (rc == 0)
		rc = set_address(f, index, ring);
	if (rc == 0)
		rc = frontend_tell_fd(f, VHOST_USER_SET_VRING_CALL, index, ring->call_fd);
	if (rc == 0)
		rc = frontend_tell_fd(f, VHOST_USER_SET_VRING_KICK, index, ring->kick_fd);
	if (rc == 0 && eventfd_write(ring->kick_fd, 1))
		rc = -errno;
	return rc;
}

// Without VHOST_USER_F_PROTOCOL_FEATURES rings are enabled from the start.
static int enable(struct frontend *f, unsigned count, bool on)
{
	int rc = 0;

	if (!(f->features & VHOST_BIT(VHOST_F_PROTOCOL_FEATURES)))
		return 0;
	for (unsigned i = 0; i < count && rc == 0; i++)
		rc = frontend_tell_ring(f, VHOST_USER_SET_VRING_ENABLE, i, on);
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
		struct vhost_message message = {.request = VHOST_USER_GET_VRING_BASE,
		                                .flags = VHOST_FLAG_VERSION,
		                                .size = sizeof(message.ring)};

		message.ring.index = i;
		rc = frontend_send(f, &message, NULL, 0);
		if (rc == 0)
			rc = frontend_answer(f, VHOST_USER_GET_VRING_BASE, &message, sizeof(message.ring));
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
