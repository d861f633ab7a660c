// SPDX-License-Identifier: BSD-3-Clause
#include "port/memif_session.h"

#include <errno.h>
#include <poll.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/listen_socket.h"
#include "base/log.h"
#include "shm/doorbell.h"
#include "shm/guest_fault.h"
#include "virtio/vhost_link.h"

enum {
	CONNECT_MS = 5000, // for all messages until both ends are connected
	CHECK_MS =
	        100, // of doorbells that must not block, of memory that must stay, of rings that have stopped
	RETRY_MS = 100,    // to connect
	REST_MS = 100,     // after a connection that was refused
	BARRED_MS = 60000, // after one that has held up a worker, or tried to
	CLOSE_S = 2,
};

_Static_assert((int)MEMIF_TO_CLIENT == (int)GUEST_RECEIVEQ && (int)MEMIF_TO_SERVER == (int)GUEST_TRANSMITQ,
               "rings of a pair");

// --- Taking the rings away and giving them back ----------------------------------------------------------

static void unblock(struct memif_port *port)
{
	for (unsigned i = 0; i < shm_port_rings(&port->base); i++)
		port->blocked |= doorbell_unblock(port->base.queues[i].kick_fd);
}

// No worker is in the rings when this returns.
static void take_rings(struct memif_port *port)
{
	atomic_store(&port->base.link_up, false);
	for (unsigned i = 0; i < shm_port_rings(&port->base); i++) {
		struct ring_queue *queue = &port->base.queues[i];

		if (!queue->attached)
			continue;
		while (!gate_try_shut(&queue->gate))
			unblock(port); // the worker may stand in a write to the doorbell
		queue->attached = false;
		queue->kick_fd = -1;
		atomic_store(&port->base.sizes[i], 0);
	}
	port->given = false;
}

static void give_rings(struct memif_port *port)
{
	for (unsigned i = 0; i < shm_port_rings(&port->base); i++) {
		struct ring_queue *queue = &port->base.queues[i];
		const unsigned pair = i / PAIR_RINGS, way = i % PAIR_RINGS;

		if (!memif_link_open_ring(&port->link, pair, (enum memif_way)way, &queue->memif))
			continue;
		if (port->config.server)
			queue->memif.spare = port->spares + (size_t)pair * MEMIF_SPARE_BYTES;
		else
			memif_ring_start(&queue->memif);
		queue->kick_fd = queue->bell.fd = port->link.rings[pair][way].fd;
		queue->attached = true;
		atomic_store(&port->base.sizes[i], queue->memif.size);
		gate_open(&queue->gate);
	}
	port->given = true;
	atomic_store(&port->base.link_up, port->base.queues[GUEST_RECEIVEQ].attached &&
	                                          port->base.queues[GUEST_TRANSMITQ].attached);
}

// --- One connection --------------------------------------------------------------------------------------

static void send_message(struct memif_port *port, const struct memif_message *message, int fd, bool *sent)
{
	alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec at = {(void *)message, sizeof(*message)};
	struct msghdr header = {.msg_iov = &at, .msg_iovlen = 1};

	if (fd >= 0) {
		struct cmsghdr *c = (struct cmsghdr *)control;

		header.msg_control = control;
		header.msg_controllen = sizeof(control);
		c->cmsg_len = CMSG_LEN(sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	*sent = sendmsg(port->fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(*message);
}

static void say_goodbye(struct memif_port *port, const char *reason)
{
	struct memif_message message;
	bool sent;

	memif_link_goodbye(&message, reason);
	send_message(port, &message, -1, &sent);
}

static void memif_disconnect(struct memif_port *port)
{
	take_rings(port);
	shm_port_say_faults(&port->base);
	shutdown(port->fd, SHUT_RDWR); // the other end sees it now, whatever closing takes
	memif_link_end(&port->link);
	close(port->fd);
	port->fd = -1;
	if (!port->config.server)
		port->rest_until_ms = (uint64_t)clock_now_ms() + RETRY_MS;
}

static void refuse(struct memif_port *port, enum peer_refusal why)
{
	char unsaid[LOG_UNSAID_BYTES];

	atomic_fetch_add(&port->refused[why], 1);
	if (log_rate_take(&port->base.lines, clock_now_ms(), unsaid))
		LOG_WARN("port %s: the %s was refused: %s; the connection is ended%s", port->base.name,
		         port->base.end->other, peer_refusal_text(why), unsaid);
	say_goodbye(port, peer_refusal_text(why));
	memif_disconnect(port);
	port->rest_until_ms = (uint64_t)clock_now_ms() + (why == PEER_REFUSED_BLOCKING ? BARRED_MS : REST_MS);
}

static void memif_begin(struct memif_port *port, int fd)
{
	struct memif_message first;
	bool sent = true;

	port->fd = fd;
	port->blocked = false;
	port->deadline_ms = (uint64_t)clock_now_ms() + CONNECT_MS;
	if (memif_link_begin(&port->link, &port->config, &first))
		send_message(port, &first, -1, &sent);
	if (!sent)
		refuse(port, PEER_REFUSED_UNREAD);
}

static void handle(struct memif_port *port, const struct memif_message *message, struct peer_files *files)
{
	struct memif_message answer;
	bool sent = true;
	int fd;
	enum peer_refusal why = memif_link_handle(&port->link, message, files, &answer, &fd);

	if (why == PEER_ACCEPTED && answer.type != MEMIF_NONE)
		send_message(port, &answer, fd, &sent);
	if (why || !sent) {
		refuse(port, why ? why : PEER_REFUSED_UNREAD);
	} else if (port->link.gone) {
		memif_disconnect(port);
	} else if (port->link.connected && !port->given) {
		shm_port_say_faults(&port->base);
		shm_port_forgive(&port->base);
		give_rings(port);
		port->silent = false;
	}
}

static void read_message(struct memif_port *port)
{
	alignas(struct cmsghdr) char control[CMSG_SPACE(PEER_FILES_MAX * sizeof(int))];
	struct memif_message message;
	struct iovec at = {&message, sizeof(message)};
	struct msghdr header = {.msg_iov = &at, .msg_iovlen = 1, .msg_control = control};
	struct peer_files files = {0};
	ssize_t got;

	header.msg_controllen = CMSG_LEN(PEER_FILES_MAX * sizeof(int));
	got = recvmsg(port->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0)
		memif_disconnect(port);
	else if (!peer_files_keep(&files, &header))
		refuse(port, PEER_REFUSED_FILES);
	else if (got != sizeof(message) || header.msg_flags & MSG_TRUNC)
		refuse(port, PEER_REFUSED_SIZE);
	else
		handle(port, &message, &files);
	for (unsigned i = 0; i < files.count; i++)
		close(files.fds[i]);
}

// --- The thread ------------------------------------------------------------------------------------------

static void accept_client(struct memif_port *port)
{
	int fd = accept4(port->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		memif_begin(port, fd);
	else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		port->rest_until_ms = (uint64_t)clock_now_ms() + REST_MS; // no descriptor for it
}

static void connect_to_server(struct memif_port *port)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", port->base.path);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
		memif_begin(port, fd);
		return;
	}
	if (!port->silent)
		LOG_WARN("port %s: no server at %s: %s; it is tried again, silently", port->base.name,
		         port->base.path, strerror(errno));
	port->silent = true;
	if (fd >= 0)
		close(fd);
	port->rest_until_ms = (uint64_t)clock_now_ms() + RETRY_MS;
}

// Deadlines, and what the other end must not do. The connection may have ended after this.
static void check(struct memif_port *port, uint64_t now_ms)
{
	unblock(port);
	if (port->blocked)
		refuse(port, PEER_REFUSED_BLOCKING);
	else if (peer_memory_gone(&port->link.memory))
		refuse(port, PEER_REFUSED_MEMORY_GONE);
	else if (!port->link.connected && now_ms >= port->deadline_ms)
		refuse(port, PEER_REFUSED_LATE);
	else
		shm_port_say_faults(&port->base);
}

static int wait_ms(const struct memif_port *port, uint64_t now_ms)
{
	if (port->fd >= 0)
		return CHECK_MS;
	return port->rest_until_ms > now_ms ? (int)(port->rest_until_ms - now_ms) : -1;
}

// A descriptor of -1 is not waited for.
static void wait_and_hear(struct memif_port *port, uint64_t now_ms)
{
	bool resting = port->rest_until_ms > now_ms;
	struct pollfd fds[] = {
	        {.fd = port->wake_fd, .events = POLLIN},
	        {.fd = port->fd, .events = POLLIN},
	        {.fd = port->fd < 0 && !resting ? port->listen_fd : -1, .events = POLLIN},
	};

	poll(fds, RTE_DIM(fds), wait_ms(port, now_ms));
	if (fds[1].revents)
		read_message(port);
	else if (fds[2].revents)
		accept_client(port);
}

static void *memif_thread_main(void *argument)
{
	struct memif_port *port = argument;

	while (!atomic_load(&port->ending)) {
		uint64_t now_ms = (uint64_t)clock_now_ms();

		if (port->fd >= 0)
			check(port, now_ms);
		else if (!port->config.server && port->rest_until_ms <= now_ms)
			connect_to_server(port);
		wait_and_hear(port, now_ms);
	}
	if (port->fd >= 0) {
		say_goodbye(port, "the port is closed");
		memif_disconnect(port);
	}
	return NULL;
}

// --- Beginning and ending: the control thread ------------------------------------------------------------

int memif_session_begin(struct memif_port *port)
{
	int rc;

	port->fd = port->listen_fd = -1;
	port->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (port->wake_fd < 0)
		return -errno;
	guest_fault_begin();
	rc = port->config.server ? stale_socket_remove(port->base.path) : 0;
	if (rc == 0 && port->config.server) {
		port->listen_fd = listen_socket_open(port->base.path, SOCK_SEQPACKET, port->group);
		rc = RTE_MIN(port->listen_fd, 0);
	}
	if (rc == 0)
		rc = -pthread_create(&port->thread, NULL, memif_thread_main, port);
	if (rc == 0)
		return 0;
	if (port->listen_fd >= 0) {
		close(port->listen_fd);
		unlink(port->base.path);
	}
	close(port->wake_fd);
	return rc;
}

void memif_session_stop(struct memif_port *port)
{
	if (atomic_exchange(&port->ending, true))
		return;
	if (port->config.server)
		unlink(port->base.path);
	eventfd_write(port->wake_fd, 1);
}

bool memif_session_end(struct memif_port *port)
{
	struct timespec until;

	memif_session_stop(port);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += CLOSE_S;
	if (pthread_timedjoin_np(port->thread, NULL, &until)) {
		pthread_detach(port->thread);
		return false;
	}
	if (port->listen_fd >= 0)
		close(port->listen_fd);
	close(port->wake_fd);
	return true;
}
