// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/rpc_device.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

bool rpc_is_device(const char *path)
{
	struct stat there;

	return stat(path, &there) == 0 && S_ISCHR(there.st_mode);
}

// No echo, no lines, no signals; and whoever is at the other end need not drive modem lines.
static int make_raw(int fd)
{
	struct termios settings;

	if (tcgetattr(fd, &settings))
		return -errno;
	cfmakeraw(&settings);
	settings.c_cflag |= CLOCAL | CREAD;
	return tcsetattr(fd, TCSANOW, &settings) ? -errno : 0;
}

int rpc_device_open(const char *path)
{
	int fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return -errno;
	rc = isatty(fd) ? make_raw(fd) : 0;
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}
