// SPDX-License-Identifier: BSD-3-Clause
#include "base/listen_socket.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum {
	BACKLOG = 16, // of those that wait
	CONNECTIONS_BURST = 64,
	CONNECTIONS_PER_S = 50,
	MS_PER_S = 1000,
	REST_MS = 100, // without a descriptor for who wants to connect
};

static bool beside;
static struct listen_socket *waiting;

static bool somebody_listens(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool listens;

	if (fd < 0)
		return true; // for all that is known
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	// Whatever else is wrong, as a full queue or permissions, somebody may be there.
	listens = connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 ||
	          (errno != ECONNREFUSED && errno != ENOENT);
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

// Set the permissions before anybody can connect.
static int let_in(const char *path, gid_t group)
{
	if (group == (gid_t)-1)
		return 0;
	return lchown(path, (uid_t)-1, group) || chmod(path, 0660) ? -1 : 0;
}

static int listen_at(const char *path, int type, gid_t group)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc, error;
	mode_t mask;

	if (fd < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	mask = umask(0177); // mode 0600 from the first moment
	rc = bind(fd, (const struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (rc == 0 && let_in(path, group) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	error = errno;
	if (rc == 0)
		unlink(path);
	close(fd);
	return -error;
}

void listen_sockets_beside(void)
{
	beside = true;
}

static bool path_beside(char out[CONFIG_PATH_MAX], const char *path)
{
	return (size_t)snprintf(out, CONFIG_PATH_MAX, "%s.new", path) < CONFIG_PATH_MAX;
}

void listen_sockets_in_place(void)
{
	char there[CONFIG_PATH_MAX];

	beside = false;
	for (; waiting; waiting = waiting->next)
		if (!path_beside(there, waiting->path) || rename(there, waiting->path))
			LOG_ERROR("cannot listen on %s: %s", waiting->path, strerror(errno));
}

int listen_socket_open(struct listen_socket *listener, const char *path, int type, gid_t group,
                       unsigned connections_per_s)
{
	char there[CONFIG_PATH_MAX];
	struct stat file;
	int rc;

	*listener = (struct listen_socket){.fd = -1};
	if (beside && !path_beside(there, path))
		return -ENAMETOOLONG;
	if (!beside)
		snprintf(there, sizeof(there), "%s", path);
	rc = stale_socket_remove(there);
	if (rc)
		return rc;
	listener->fd = listen_at(there, type, group);
	if (listener->fd < 0)
		return listener->fd;
	snprintf(listener->path, sizeof(listener->path), "%s", path);
	if (lstat(there, &file) == 0) {
		listener->device = file.st_dev;
		listener->inode = file.st_ino;
	}
	if (beside) {
		listener->next = waiting;
		waiting = listener;
	}
	listener->connections =
	        bucket_full(CONNECTIONS_BURST, connections_per_s ? connections_per_s : CONNECTIONS_PER_S,
	                    MS_PER_S, (uint64_t)clock_now_ms());
	return 0;
}

uint64_t listen_socket_wait_ms(struct listen_socket *listener, uint64_t now_ms)
{
	uint64_t wait_ms = bucket_wait(&listener->connections, now_ms);
	uint64_t rest_ms = listener->rest_until_ms > now_ms ? listener->rest_until_ms - now_ms : 0;

	return wait_ms > rest_ms ? wait_ms : rest_ms;
}

// Without a descriptor for it a caller waits, and so do we: it would be told of at once, again and again.
int listen_socket_accept(struct listen_socket *listener, uint64_t now_ms)
{
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		bucket_charge(&listener->connections, 1);
	else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		listen_socket_rest(listener, now_ms, REST_MS);
	return fd;
}

void listen_socket_rest(struct listen_socket *listener, uint64_t now_ms, unsigned ms)
{
	listener->rest_until_ms = now_ms + ms;
}

// Whether it was beside its path. Then it is not any more.
static bool leave_waiting(const struct listen_socket *listener)
{
	struct listen_socket **at = &waiting;

	while (*at && *at != listener)
		at = &(*at)->next;
	if (*at == NULL)
		return false;
	*at = listener->next;
	return true;
}

void listen_socket_unlink(const struct listen_socket *listener)
{
	char there[CONFIG_PATH_MAX];
	struct stat file;

	if (leave_waiting(listener)) {
		if (path_beside(there, listener->path))
			unlink(there);
	} else if (lstat(listener->path, &file) == 0 && file.st_ino == listener->inode &&
	           file.st_dev == listener->device) {
		unlink(listener->path);
	}
}

void listen_socket_close(struct listen_socket *listener)
{
	if (listener->fd < 0)
		return;
	listen_socket_unlink(listener);
	close(listener->fd);
	listener->fd = -1;
}

bool socket_hung_up(int fd)
{
	struct pollfd now = {.fd = fd, .events = POLLRDHUP};

	return poll(&now, 1, 0) == 1;
}

// By its name or number.
int listen_socket_group(const char *text, gid_t *group)
{
	const struct group *found = getgrnam(text);
	unsigned number;
	char tail;

	*group = (gid_t)-1;
	if (*text == '\0')
		return 0;
	if (found)
		*group = found->gr_gid;
	else if (sscanf(text, "%u%c", &number, &tail) == 1)
		*group = number;
	return *group == (gid_t)-1 ? -ESRCH : 0;
}

const char *listen_socket_error(int rc)
{
	if (rc == -EADDRINUSE)
		return "another process listens there; give another path";
	if (rc == -ENOENT)
		return "its folder is not there; create it, or give another path";
	if (rc == -ESRCH)
		return "there is no group of that name; give one that there is, or its number";
	return rc == -EEXIST ? "there is a file that is no socket; remove it or give another path"
	                     : strerror(-rc);
}
