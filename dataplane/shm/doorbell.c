// SPDX-License-Identifier: BSD-3-Clause
#include "shm/doorbell.h"

#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef PLANED_DEBUG
void (*doorbell_overtaken)(const struct doorbell *bell);
#endif

void doorbell_ring(const struct doorbell *bell)
{
	if (bell->fd >= 0)
		eventfd_write(bell->fd, 1);
}

// The file system says what it is; nobody else is asked.
bool doorbell_is(int fd)
{
	static const char eventfd[] = "anon_inode:[eventfd]";
	char path[32], name[sizeof(eventfd)];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, name, sizeof(name)) == sizeof(eventfd) - 1 &&
	       memcmp(name, eventfd, sizeof(eventfd) - 1) == 0;
}

bool doorbell_take(int fd)
{
	return doorbell_is(fd) && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

// An eventfd is full when a write to it blocks, and not after a read. preadv2() never waits, whatever the flags are by
// then.
static void empty(int fd)
{
	uint64_t count;
	struct iovec at = {&count, sizeof(count)};

	(void)!preadv2(fd, &at, 1, -1, RWF_NOWAIT);
}

static bool is_full(int fd)
{
	struct pollfd now = {.fd = fd, .events = POLLOUT};

	return poll(&now, 1, 0) >= 0 && !(now.revents & POLLOUT);
}

bool doorbell_unblock(int fd)
{
	int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);

	if (flags < 0 || (flags & O_NONBLOCK && !is_full(fd)))
		return false;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	empty(fd);
	return true;
}
