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
#include "base/log.h"
#include "base/random.h"
#include "shm/doorbell.h"
#include "shm/guest_fault.h"

enum {
	CONNECT_MS = 5000, // for all messages until both ends are connected
	YIELD_MS = 1000,   // the same, if another client has come
	CHECK_MS =
	        100, // of doorbells that must not block, of memory that must stay, of rings that have stopped
	RETRY_MS = 100,    // to connect
	BARRED_MS = 60000, // after one that has held up a worker, or tried to
	CLOSE_MS = 2000,
	POLL_US = 1000,
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

// to: a socket.
static void send_message(int to, const struct memif_message *message, int fd, bool *sent)
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
	*sent = sendmsg(to, &header, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(*message);
}

static void say_goodbye(int to, const char *reason)
{
	struct memif_message message;
	bool sent;

	memif_link_goodbye(&message, reason);
	send_message(to, &message, -1, &sent);
}

// Before the next connection.
static void rest(struct memif_port *port, unsigned ms)
{
	uint64_t now_ms = (uint64_t)clock_now_ms();

	if (port->config.server)
		listen_socket_rest(&port->listener, now_ms, ms);
	else
		port->rest_until_ms = now_ms + ms;
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
		rest(port, RETRY_MS);
}

// Say why to who is at the other end of a connection, and to the log.
static void say_refused(struct memif_port *port, int to, enum peer_refusal why)
{
	char charged[GUEST_CHARGE_TEXT_BYTES];

	peer_refusals_add(&port->refusals, why, port->config.server ? "the client" : "the server",
	                  why == PEER_REFUSED_CHARGED ? guest_charge_text(&port->charge, charged) : NULL);
	say_goodbye(to, peer_refusal_text(why));
}

static void refuse(struct memif_port *port, enum peer_refusal why)
{
	say_refused(port, port->fd, why);
	memif_disconnect(port);
	if (why == PEER_REFUSED_BLOCKING || why == PEER_REFUSED_CHARGED)
		rest(port, BARRED_MS);
}

static void memif_begin(struct memif_port *port, int fd)
{
	struct memif_message first;
	bool sent = true;

	port->fd = fd;
	port->blocked = false;
	port->begun_ms = port->looked_ms = (uint64_t)clock_now_ms();
	if (port->config.server)
		guest_charge_begin(&port->charge, true);
	if (memif_link_begin(&port->link, &port->config, &first))
		send_message(fd, &first, -1, &sent);
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
		send_message(port->fd, &answer, fd, &sent);
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

// Whether somebody may come. It is heard soon enough when this changes: CHECK_MS.
static bool is_open(const struct memif_port *port, uint64_t now_ms)
{
	return port->listener.fd >= 0 &&
	       (port->fd < 0 || port->link.connected || now_ms >= port->begun_ms + YIELD_MS);
}

static void accept_client(struct memif_port *port, uint64_t now_ms)
{
	int fd = listen_socket_accept(&port->listener, now_ms);

	if (fd < 0)
		return;
	if (port->fd >= 0 && socket_hung_up(port->fd)) {
		memif_disconnect(port);
	} else if (port->fd >= 0 && port->link.connected) {
		say_refused(port, fd, PEER_REFUSED_TAKEN);
		close(fd);
		return;
	} else if (port->fd >= 0) {
		refuse(port, PEER_REFUSED_IDLE);
	}
	memif_begin(port, fd);
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
	rest(port, RETRY_MS);
}

// Deadlines, and what the other end must not do. The connection may have ended after this.
static void check(struct memif_port *port, uint64_t now_ms)
{
	enum peer_refusal why;

	// While this process is stopped, as between trials, nobody can keep a deadline.
	if (now_ms > port->looked_ms + 2 * CHECK_MS)
		port->begun_ms += now_ms - port->looked_ms;
	port->looked_ms = now_ms;
	unblock(port);
	peer_memory_measure(&port->link.memory);
	why = port->blocked ? PEER_REFUSED_BLOCKING : peer_memory_fault(&port->link.memory);
	if (why)
		refuse(port, why);
	else if (!port->link.connected && now_ms >= port->begun_ms + CONNECT_MS)
		refuse(port, PEER_REFUSED_LATE);
	else
		shm_port_say_faults(&port->base);
}

// Until the next connection; 0: now.
static uint64_t rest_ms(struct memif_port *port, uint64_t now_ms)
{
	if (port->config.server)
		return listen_socket_wait_ms(&port->listener, now_ms);
	return port->rest_until_ms > now_ms ? port->rest_until_ms - now_ms : 0;
}

// A descriptor of -1 is not waited for.
static void wait_and_hear(struct memif_port *port, uint64_t now_ms)
{
	uint64_t resting_ms = rest_ms(port, now_ms);
	eventfd_t ignored;
	struct pollfd fds[] = {
	        {.fd = port->wake_fd, .events = POLLIN},
	        {.fd = port->fd, .events = POLLIN},
	        {.fd = resting_ms == 0 && is_open(port, now_ms) ? port->listener.fd : -1, .events = POLLIN},
	};

	// By chance: a client that knew the moment could let go of a doorbell just before, again and again.
	poll(fds, RTE_DIM(fds),
	     port->fd >= 0 ? (int)random_within(CHECK_MS)
	     : resting_ms  ? (int)resting_ms
	                   : -1);
	if (fds[0].revents)
		eventfd_read(port->wake_fd, &ignored);
	if (fds[1].revents)
		read_message(port);
	else if (fds[2].revents)
		accept_client(port, now_ms);
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
		say_goodbye(port->fd, "the port is closed");
		memif_disconnect(port);
	}
	atomic_store(&port->ended, true);
	return NULL;
}

// --- Beginning and ending: the control thread ------------------------------------------------------------

static void end_charge(struct memif_port *port)
{
	if (port->config.server)
		guest_charge_close(&port->charge);
}

static int open_listener(struct memif_port *port, const struct config_drivers *drivers)
{
	gid_t group;
	int rc = listen_socket_group(drivers->group, &group);

	guest_charge_open(&port->charge, drivers->max_charged_mb,
	                  port->wake_fd); // a client shares its own memory
	return rc ? rc
	          : listen_socket_open(&port->listener, port->base.path, SOCK_SEQPACKET, group,
	                               drivers->connections_per_s);
}

int memif_session_begin(struct memif_port *port, const struct config_drivers *drivers)
{
	int rc;

	port->fd = port->listener.fd = -1;
	peer_refusals_begin(&port->refusals, port->base.name);
	port->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (port->wake_fd < 0)
		return -errno;
	guest_fault_begin();
	rc = port->config.server ? open_listener(port, drivers) : 0;
	if (rc == 0)
		rc = -pthread_create(&port->thread, NULL, memif_thread_main, port);
	if (rc == 0)
		return 0;
	listen_socket_close(&port->listener);
	end_charge(port);
	close(port->wake_fd);
	return rc;
}

void memif_session_stop(struct memif_port *port)
{
	if (atomic_exchange(&port->ending, true))
		return;
	if (port->config.server)
		listen_socket_unlink(&port->listener);
	eventfd_write(port->wake_fd, 1);
}

bool memif_session_end(struct memif_port *port)
{
	const int64_t until_ms = clock_now_ms() + CLOSE_MS;

	memif_session_stop(port);
	while (!atomic_load(&port->ended)) {
		if (clock_now_ms() > until_ms) {
			pthread_detach(port->thread);
			return false;
		}
		usleep(POLL_US);
	}
	pthread_join(port->thread, NULL);
	if (port->listener.fd >= 0)
		close(port->listener.fd); // its file went with the stop
	end_charge(port);
	close(port->wake_fd);
	return true;
}
