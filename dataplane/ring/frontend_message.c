// SPDX-License-Identifier: BSD-3-Clause
#include "ring/frontend_message.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define NAME(name, number) [name] = #name,

static const char *const names[] = {FOR_EACH_REQUEST(NAME)};

int frontend_fail(struct frontend *f, int rc, enum request request, const char *what, uint64_t value)
{
	snprintf(f->error, sizeof(f->error), "%s: %s: %s (0x%llx)", f->path, names[request], what,
	         (unsigned long long)value);
	return rc;
}

int frontend_send(struct frontend *f, const struct message *message, const int *fds, unsigned fd_count)
{
	union {
		char bytes[CMSG_SPACE(MEMORY_TABLE_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec data = {(void *)(uintptr_t)message, HEADER_BYTES + message->size};
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

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

// Exactly bytes, before the deadline.
static int receive(struct frontend *f, enum request request, void *to, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		struct pollfd ready = {.fd = f->fd, .events = POLLIN};
		int64_t left = f->deadline_ms - now_ms();
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

int frontend_answer(struct frontend *f, enum request request, struct message *answer, uint32_t size)
{
	int rc = receive(f, request, answer, HEADER_BYTES);

	if (rc)
		return rc;
	if (answer->request != request)
		return frontend_fail(f, -EPROTO, request, "the answer is to another message",
		                     answer->request);
	if ((answer->flags & (FLAG_VERSION | 2 | FLAG_REPLY)) != (FLAG_VERSION | FLAG_REPLY))
		return frontend_fail(f, -EPROTO, request, "the answer's flags are wrong", answer->flags);
	if (answer->size != size)
		return frontend_fail(f, -EPROTO, request, "the answer's size is wrong", answer->size);
	return receive(f, request, &answer->number, size);
}

void frontend_begin(struct frontend *f)
{
	f->deadline_ms = now_ms() + FRONTEND_PATIENCE_MS;
}

bool frontend_negotiated(const struct frontend *f, unsigned protocol_feature)
{
	return f->protocol_features >> protocol_feature & 1;
}

int frontend_tell(struct frontend *f, struct message *message, const int *fds, unsigned fd_count)
{
	struct message answer;
	int rc;

	message->flags = FLAG_VERSION;
	if (frontend_negotiated(f, PROTOCOL_F_REPLY_ACK))
		message->flags |= FLAG_NEED_REPLY;
	rc = frontend_send(f, message, fds, fd_count);
	if (rc || !frontend_negotiated(f, PROTOCOL_F_REPLY_ACK))
		return rc;
	rc = frontend_answer(f, message->request, &answer, sizeof(answer.number));
	if (rc == 0 && answer.number)
		rc = frontend_fail(f, -EPROTO, message->request, "the device refused it", answer.number);
	return rc;
}

int frontend_tell_number(struct frontend *f, enum request request, uint64_t number, uint32_t size)
{
	struct message message = {.request = request, .size = size, .number = number};

	return frontend_tell(f, &message, NULL, 0);
}

int frontend_tell_ring(struct frontend *f, enum request request, unsigned index, uint32_t number)
{
	struct message message = {.request = request, .size = sizeof(message.ring)};

	message.ring.index = index;
	message.ring.number = number;
	return frontend_tell(f, &message, NULL, 0);
}

int frontend_tell_fd(struct frontend *f, enum request request, unsigned index, int fd)
{
	struct message message = {.request = request, .size = sizeof(message.number), .number = index};

	return frontend_tell(f, &message, &fd, 1);
}

int frontend_ask(struct frontend *f, enum request request, uint64_t *number)
{
	struct message message = {.request = request, .flags = FLAG_VERSION};
	int rc = frontend_send(f, &message, NULL, 0);

	if (rc == 0)
		rc = frontend_answer(f, request, &message, sizeof(message.number));
	*number = message.number;
	return rc;
}
