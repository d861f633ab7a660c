// SPDX-License-Identifier: BSD-3-Clause
#include "virtio/vhost_link.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Up to the given bytes of the message.
static enum vhost_read read_to(struct vhost_link *link, unsigned bytes, enum peer_refusal *why)
{
	alignas(struct cmsghdr) char control[CMSG_SPACE(PEER_FILES_MAX * sizeof(int))];
	struct iovec at = {(char *)&link->message + link->have, bytes - link->have};
	struct msghdr header = {.msg_iov = &at, .msg_iovlen = 1, .msg_control = control};
	unsigned room = PEER_FILES_MAX - link->files.count;
	ssize_t got;

	if (at.iov_len == 0)
		return VHOST_READ_WHOLE;
	header.msg_controllen = room ? CMSG_LEN(room * sizeof(int)) : 0;
	got = recvmsg(link->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? VHOST_READ_PART : VHOST_READ_GONE;
	if (!peer_files_keep(&link->files, &header)) {
		*why = PEER_REFUSED_FILES;
		return VHOST_READ_REFUSED;
	}
	if (got == 0)
		return VHOST_READ_GONE;
	link->have += (unsigned)got;
	return link->have == bytes ? VHOST_READ_WHOLE : VHOST_READ_PART;
}

enum vhost_read vhost_link_read(struct vhost_link *link, uint64_t protocol_features, enum peer_refusal *why)
{
	if (link->have < VHOST_MESSAGE_HEADER) {
		enum vhost_read header = read_to(link, VHOST_MESSAGE_HEADER, why);

		if (header != VHOST_READ_WHOLE)
			return header;
		*why = vhost_message_check_header(&link->message, link->files.count, protocol_features);
		if (*why)
			return VHOST_READ_REFUSED;
	}
	return read_to(link, VHOST_MESSAGE_HEADER + link->message.size, why);
}

void vhost_link_next(struct vhost_link *link)
{
	link->have = 0;
	link->files.count = 0;
}

bool vhost_link_reply(struct vhost_link *link, const struct vhost_message *reply)
{
	const size_t bytes = VHOST_MESSAGE_HEADER + reply->size;

	return send(link->fd, reply, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)bytes;
}
