// SPDX-License-Identifier: BSD-3-Clause
#include "ring/vhost_door.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/limits.h"
#include "lib/log.h"
#include "ring/vhost_message.h"

enum {
	LINKS_MAX = 4,     // connections of a port: one that runs, one that takes over, and two to spare
	BACKLOG = 16,      // of those that wait
	REST_MS = 100,     // without a descriptor for who wants to connect
	MESSAGE_MS = 5000, // for all bytes of a message, and for the library to take one
	REPLY_MAX = 4096,
	REFUSALS_SAID = 8, // log lines of a port; what comes after these is only refused
	RINGS_MAX = 2 * CONFIG_QUEUES_MAX,
};

// A driver's connection, and ours to the library. driver is -1: a free entry.
struct link {
	int driver, library;
	unsigned have;        // bytes of message
	uint64_t deadline_ms; // of a message that has begun
	struct vhost_message message;
};

struct vhost_door {
	const char *name;
	char path[CONFIG_PATH_MAX];
	unsigned pairs, refusals;
	int listener, wake, library; // library: the file of its socket (O_PATH)
	uint64_t rest_until_ms;
	pthread_t thread;
	struct link links[LINKS_MAX];
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

// --- One connection --------------------------------------------------------------------------------------

static void forget_message(struct link *link)
{
	for (unsigned i = 0; i < link->message.fd_count; i++)
		close(link->message.fds[i]);
	link->message.fd_count = 0;
	link->have = 0;
}

static void link_end(struct link *link)
{
	forget_message(link);
	close(link->driver);
	close(link->library);
	link->driver = link->library = -1;
}

static void refuse(struct vhost_door *door, struct link *link, const char *why)
{
	if (door->refusals++ < REFUSALS_SAID)
		LOG_WARN("port %s: its driver's message %u was refused, %s; the connection is ended",
		         door->name, link->message.request, why);
	link_end(link);
}

// The descriptors of a control message: kept, or closed if there are too many. Returns whether all are kept.
static bool keep_descriptors(struct vhost_message *message, struct msghdr *header)
{
	bool kept = (header->msg_flags & MSG_CTRUNC) == 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (message->fd_count < VHOST_MESSAGE_FDS) {
				message->fds[message->fd_count++] = fd;
			} else {
				close(fd);
				kept = false;
			}
		}
	}
	return kept;
}

// Read what is there of the message, up to the given bytes of it. Returns 1 if all are here, 0 if not yet, or
// -errno: the connection is over.
static int read_bytes(struct link *link, unsigned bytes)
{
	alignas(struct cmsghdr) char control[CMSG_SPACE(VHOST_MESSAGE_FDS * sizeof(int))];
	struct iovec at = {(char *)&link->message + link->have, bytes - link->have};
	struct msghdr header = {
	        .msg_iov = &at, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	ssize_t got;

	if (at.iov_len == 0)
		return 1;
	got = recvmsg(link->driver, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!keep_descriptors(&link->message, &header))
		return -EPROTO;
	if (got == 0)
		return -ECONNRESET;
	link->have += (unsigned)got;
	return link->have == bytes;
}

static bool send_whole(int fd, const void *data, size_t bytes, int flags)
{
	return send(fd, data, bytes, flags | MSG_NOSIGNAL) == (ssize_t)bytes;
}

// The library would say 128, whatever the port has.
static bool answer_queue_num(const struct vhost_door *door, const struct link *link)
{
	const uint64_t pairs = door->pairs;
	char reply[VHOST_MESSAGE_HEADER + sizeof(pairs)];
	const uint32_t header[] = {VHOST_USER_GET_QUEUE_NUM, VHOST_MESSAGE_VERSION | VHOST_MESSAGE_REPLY,
	                           sizeof(pairs)};

	memcpy(reply, header, sizeof(header));
	memcpy(reply + sizeof(header), &pairs, sizeof(pairs));
	return send_whole(link->driver, reply, sizeof(reply), MSG_DONTWAIT);
}

static bool pass_on(const struct link *link)
{
	const struct vhost_message *message = &link->message;
	alignas(struct cmsghdr) char control[CMSG_SPACE(VHOST_MESSAGE_FDS * sizeof(int))] = {0};
	struct iovec at = {(void *)(uintptr_t)message, link->have};
	struct msghdr header = {.msg_iov = &at, .msg_iovlen = 1};

	if (message->fd_count) {
		struct cmsghdr *c = (struct cmsghdr *)control;

		header.msg_control = control;
		header.msg_controllen = CMSG_SPACE(message->fd_count * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(message->fd_count * sizeof(int));
		memcpy(CMSG_DATA(c), message->fds, message->fd_count * sizeof(int));
	}
	return sendmsg(link->library, &header, MSG_NOSIGNAL) == (ssize_t)link->have;
}

// A whole message is here.
static void handle(struct vhost_door *door, struct link *link)
{
	const char *why = vhost_message_refused(&link->message, RINGS_MAX);
	bool done;

	if (why) {
		refuse(door, link, why);
		return;
	}
	done = link->message.request == VHOST_USER_GET_QUEUE_NUM ? answer_queue_num(door, link)
	                                                         : pass_on(link);
	if (done)
		forget_message(link);
	else
		link_end(link);
}

static void read_driver(struct vhost_door *door, struct link *link)
{
	int rc = 1;

	if (link->have == 0)
		link->deadline_ms = now_ms() + MESSAGE_MS;
	if (link->have < VHOST_MESSAGE_HEADER) {
		const char *why;

		rc = read_bytes(link, VHOST_MESSAGE_HEADER);
		if (rc == 1) {
			why = vhost_message_bad_header(&link->message);
			if (why) {
				refuse(door, link, why);
				return;
			}
		}
	}
	if (rc == 1)
		rc = read_bytes(link, VHOST_MESSAGE_HEADER + link->message.size);
	if (rc < 0)
		link_end(link);
	else if (rc == 1)
		handle(door, link);
}

// Answers go back as they come: who does not read them is no longer served.
static void read_library(struct link *link)
{
	char reply[REPLY_MAX];
	ssize_t got = recv(link->library, reply, sizeof(reply), MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0 || !send_whole(link->driver, reply, (size_t)got, MSG_DONTWAIT))
		link_end(link);
}

// --- The door --------------------------------------------------------------------------------------------

static struct link *free_link(struct vhost_door *door)
{
	for (unsigned i = 0; i < LINKS_MAX; i++)
		if (door->links[i].driver < 0)
			return &door->links[i];
	return NULL;
}

static int connect_library(const struct vhost_door *door)
{
	const struct timeval limit = {.tv_sec = MESSAGE_MS / 1000};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", door->library);
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    connect(fd, (const struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		return -1;
	}
	return fd;
}

// Without a descriptor for it a caller waits, and so do we: poll() would return at once, again and again.
static void accept_driver(struct vhost_door *door, struct link *link)
{
	int fd = accept4(door->listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			door->rest_until_ms = now_ms() + REST_MS;
		return;
	}
	*link = (struct link){.driver = fd, .library = connect_library(door)};
	if (link->library < 0) {
		close(fd);
		link->driver = -1;
		door->rest_until_ms = now_ms() + REST_MS;
	}
}

// A descriptor of -1 is one that poll() skips.
static int describe(struct vhost_door *door, struct pollfd fds[static 2 + 2 * LINKS_MAX])
{
	uint64_t now = now_ms(), due = UINT64_MAX;
	bool rests = now < door->rest_until_ms;

	if (rests)
		due = door->rest_until_ms;
	fds[0] = (struct pollfd){.fd = door->wake, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = rests || !free_link(door) ? -1 : door->listener, .events = POLLIN};
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		struct link *link = &door->links[i];

		if (link->driver >= 0 && link->have && link->deadline_ms < due)
			due = link->deadline_ms;
		fds[2 + 2 * i] = (struct pollfd){.fd = link->driver, .events = POLLIN};
		fds[3 + 2 * i] = (struct pollfd){.fd = link->library, .events = POLLIN};
	}
	return due == UINT64_MAX ? -1 : due > now ? (int)(due - now) : 0;
}

static void look_after(struct vhost_door *door, struct link *link, const struct pollfd fds[static 2])
{
	if (link->driver >= 0 && fds[1].revents)
		read_library(link); // first: an answer belongs to what was asked before
	if (link->driver >= 0 && fds[0].revents)
		read_driver(door, link);
	if (link->driver >= 0 && link->have && now_ms() >= link->deadline_ms)
		refuse(door, link, "its end has not come within 5 s");
}

static void *thread_main(void *argument)
{
	struct vhost_door *door = argument;
	struct pollfd fds[2 + 2 * LINKS_MAX];

	for (;;) {
		int timeout_ms = describe(door, fds);

		if (poll(fds, sizeof(fds) / sizeof(fds[0]), timeout_ms) < 0 && errno != EINTR)
			break;
		if (fds[0].revents)
			break;
		for (unsigned i = 0; i < LINKS_MAX; i++)
			if (fds[2 + 2 * i].fd >= 0)
				look_after(door, &door->links[i], &fds[2 + 2 * i]);
		if (fds[1].revents)
			accept_driver(door, free_link(door));
	}
	return NULL;
}

// --- Beginning and ending: the control thread ------------------------------------------------------------

int vhost_door_inner_open(struct vhost_door_inner *inner, const char *path)
{
	static unsigned number;
	const char *slash = strrchr(path, '/');
	int length = slash ? (int)(slash - path) + 1 : 0, rc;

	snprintf(inner->folder, sizeof(inner->folder), "%.*s.planed-XXXXXX", length, path);
	if (mkdtemp(inner->folder) == NULL)
		return -errno;
	inner->folder_fd = open(inner->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (inner->folder_fd < 0) {
		rc = -errno;
		rmdir(inner->folder);
		return rc;
	}
	// Of any length: an address has 108 bytes, and the path of the port may have used them.
	snprintf(inner->path, sizeof(inner->path), "/proc/self/fd/%d/%u", inner->folder_fd, number++);
	return 0;
}

void vhost_door_inner_hide(struct vhost_door_inner *inner)
{
	if (inner->folder[0] == '\0')
		return;
	unlink(inner->path);
	rmdir(inner->folder);
	inner->folder[0] = '\0';
}

void vhost_door_inner_close(struct vhost_door_inner *inner)
{
	vhost_door_inner_hide(inner);
	close(inner->folder_fd);
}

static int listen_on(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
		if (listen(fd, BACKLOG) == 0)
			return fd;
		unlink(path);
	}
	rc = -errno;
	close(fd);
	return rc;
}

static int start(struct vhost_door *door, const struct vhost_door_inner *inner)
{
	door->library = open(inner->path, O_PATH | O_CLOEXEC);
	door->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (door->library < 0 || door->wake < 0)
		return -errno;
	door->listener = listen_on(door->path);
	if (door->listener < 0)
		return door->listener;
	return -pthread_create(&door->thread, NULL, thread_main, door);
}

static void door_free(struct vhost_door *door)
{
	if (door->listener >= 0) {
		close(door->listener);
		unlink(door->path);
	}
	if (door->wake >= 0)
		close(door->wake);
	if (door->library >= 0)
		close(door->library);
	free(door);
}

int vhost_door_open(const char *name, const char *path, const struct vhost_door_inner *inner, unsigned pairs,
                    struct vhost_door **out)
{
	struct vhost_door *door = calloc(1, sizeof(*door));
	int rc;

	if (door == NULL)
		return -ENOMEM;
	door->name = name;
	door->pairs = pairs;
	door->listener = door->wake = door->library = -1;
	for (unsigned i = 0; i < LINKS_MAX; i++)
		door->links[i].driver = door->links[i].library = -1;
	snprintf(door->path, sizeof(door->path), "%s", path);
	rc = start(door, inner);
	if (rc) {
		door_free(door);
		return rc;
	}
	*out = door;
	return 0;
}

void vhost_door_close(struct vhost_door *door)
{
	if (door == NULL)
		return;
	eventfd_write(door->wake, 1);
	pthread_join(door->thread, NULL);
	for (unsigned i = 0; i < LINKS_MAX; i++)
		if (door->links[i].driver >= 0)
			link_end(&door->links[i]);
	door_free(door);
}
