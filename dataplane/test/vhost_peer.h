// SPDX-License-Identifier: BSD-3-Clause
// The driver's end of a vhost-user connection, for tests and fuzzers: sends what it is told to, right or wrong.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "virtio/vhost_message.h"

enum { PEER_FDS_MAX = 16, PEER_MEMORY = 1 << 20, PEER_RING = 16 };

// Where the parts of a ring are in the memory, which begins at these addresses.
#define PEER_GUEST UINT64_C(0x100000)
#define PEER_USER  UINT64_C(0x7f0000000000)
enum { PEER_RING_BYTES = 0x4000, PEER_AVAIL = 0x1000, PEER_USED = 0x2000 };

static inline bool peer_send_bytes(int fd, const void *data, size_t bytes, const int *fds, unsigned fd_count)
{
	union {
		char bytes[CMSG_SPACE(PEER_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec at = {(void *)(uintptr_t)data, bytes};
	struct msghdr header = {.msg_iov = &at, .msg_iovlen = 1};

	if (fd_count) {
		header.msg_control = control.bytes;
		header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, fd_count * sizeof(int));
	}
	return sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

static inline bool peer_send(int fd, uint32_t request, const void *payload, uint32_t size, const int *fds,
                             unsigned fd_count)
{
	struct vhost_message message = {.request = request, .flags = VHOST_FLAG_VERSION, .size = size};

	if (size)
		memcpy((char *)&message + VHOST_MESSAGE_HEADER, payload, size);
	return peer_send_bytes(fd, &message, VHOST_MESSAGE_HEADER + size, fds, fd_count);
}

static inline bool peer_send_number(int fd, uint32_t request, uint64_t value)
{
	return peer_send(fd, request, &value, sizeof(value), NULL, 0);
}

static inline bool peer_send_ring(int fd, uint32_t request, uint32_t ring, uint32_t number)
{
	const uint32_t payload[] = {ring, number};

	return peer_send(fd, request, payload, sizeof(payload), NULL, 0);
}

static inline bool peer_send_file(int fd, uint32_t request, uint64_t ring, int file)
{
	return peer_send(fd, request, &ring, sizeof(ring), &file, 1);
}

static inline bool peer_send_address(int fd, uint32_t ring, uint32_t flags)
{
	const uint64_t desc = PEER_USER + ring * PEER_RING_BYTES;
	const uint64_t payload[] = {ring | (uint64_t)flags << 32, desc, desc + PEER_USED, desc + PEER_AVAIL,
	                            0};

	return peer_send(fd, VHOST_USER_SET_VRING_ADDR, payload, sizeof(payload), NULL, 0);
}

static inline bool peer_send_table(int fd, const struct peer_region *regions, uint32_t count, const int *fds,
                                   unsigned fd_count)
{
	uint8_t payload[8 + sizeof(*regions) * PEER_FDS_MAX] = {0};

	memcpy(payload, &count, sizeof(count));
	memcpy(payload + 8, regions, count * sizeof(*regions));
	return peer_send(fd, VHOST_USER_SET_MEM_TABLE, payload, 8 + count * (uint32_t)sizeof(*regions), fds,
	                 fd_count);
}

static inline int peer_memory(unsigned flags, off_t bytes)
{
	int fd = memfd_create("guest", MFD_CLOEXEC | flags);

	return fd < 0 || ftruncate(fd, bytes) ? -1 : fd; // there may be no hugepages
}

static inline unsigned open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}
