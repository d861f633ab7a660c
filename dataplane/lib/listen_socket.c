// SPDX-License-Identifier: BSD-3-Clause
#include "lib/stale_socket.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static bool somebody_listens(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool listens;

	if (fd < 0)
		return false;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	// EAGAIN: its queue of connections is full, so there is one.
	listens = connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN;
	close(fd);
	return listens;
}

int stale_socket_remove(const char *path)
{
	struct stat there;

	if (lstat(path, &there))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(there.st_mode))
		return -EEXIST;
	if (somebody_listens(path))
		return -EADDRINUSE;
	return unlink(path) && errno != ENOENT ? -errno : 0;
}
