// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/take_over.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "port/port.h"

enum { ANSWER_S = 30, END_MS = 30000, REQUEST_BYTES = 128, ANSWER_BYTES = 4096 };

static int fail(const struct take_over *old, int code, const char *what)
{
	LOG_ERROR("--take-over %s: %s: %s; planed that runs there goes on", old->path, what, strerror(code));
	return -code;
}

static int connect_to(const char *path)
{
	const struct timeval patience = {.tv_sec = ANSWER_S};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0 &&
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -errno;
}

int take_over_begin(struct take_over *old, const char *path)
{
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);

	*old = (struct take_over){.path = path, .fd = connect_to(path), .pidfd = -1};
	if (old->fd < 0) {
		LOG_ERROR("--take-over %s: no planed answers there: %s", path, strerror(-old->fd));
		return old->fd;
	}
	if (getsockopt(old->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0)
		old->pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	return old->pidfd < 0 ? fail(old, errno ? errno : ESRCH, "its process is not seen from here") : 0;
}

void take_over_close(struct take_over *old)
{
	if (old->fd >= 0)
		close(old->fd);
	if (old->pidfd >= 0)
		close(old->pidfd);
}

bool take_over_overlaps(const struct config *config)
{
	static const char sockets[] = "net_af_packet";

	for (unsigned i = 0; i < config->port_count; i++) {
		const struct config_port *port = &config->ports[i];

		if (!(port->ops->listens && port->ops->refuses) &&
		    strncmp(port->device, sockets, strlen(sockets)) != 0)
			return false;
	}
	return true;
}

// Until the end of the line; what is longer than any answer that we ask for is none.
static ssize_t read_line(int fd, char *line, size_t size)
{
	size_t used = 0;

	while (used < size) {
		ssize_t got = read(fd, line + used, size - used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -ECONNRESET;
		used += (size_t)got;
		if (line[used - 1] == '\n')
			return (ssize_t)used;
	}
	return -EMSGSIZE;
}

static int call(const struct take_over *old, const char *method)
{
	char request[REQUEST_BYTES], line[ANSWER_BYTES];
	int length = snprintf(request, sizeof(request),
	                      "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"%s\"}\n", method);
	ssize_t got;
	json_t *answer;
	bool done;

	if (send(old->fd, request, (size_t)length, MSG_NOSIGNAL) != length)
		return fail(old, errno ? errno : EIO, method);
	got = read_line(old->fd, line, sizeof(line));
	if (got < 0)
		return fail(old, (int)-got, method);
	answer = json_loadb(line, (size_t)got, 0, NULL);
	done = json_object_get(answer, "result") != NULL;
	json_decref(answer);
	return done ? 0 : fail(old, EPROTO, method);
}

int take_over_keep(const struct take_over *old)
{
	return call(old, "keep");
}

int take_over_end(const struct take_over *old)
{
	struct pollfd process = {.fd = old->pidfd, .events = POLLIN};
	int rc = call(old, "shutdown");

	if (rc || poll(&process, 1, END_MS) == 1)
		return rc;
	LOG_ERROR("--take-over %s: the planed there ends, but has not within %d s", old->path, END_MS / 1000);
	return -ETIMEDOUT;
}
