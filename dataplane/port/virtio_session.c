// SPDX-License-Identifier: BSD-3-Clause
#include "port/virtio_session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

enum { OPEN_TRIES = 20, OPEN_PAUSE_MS = 50, RETRY_MS = 100 };

// lock: the list, busy, and ending. A port that is busy is the thread's alone.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t free_again = PTHREAD_COND_INITIALIZER;
static struct virtio_port *ports, *busy;
static pthread_t thread;
static int wake_fd = -1;
static bool ending;

// --- One port: the thread, or who opens or closes it -----------------------------------------------------

static void rings_take(struct virtio_port *port)
{
	atomic_store(&port->base.link_up, false);
	for (unsigned i = 0; i < shm_port_rings(&port->base); i++)
		gate_shut(&port->base.queues[i].gate);
}

static void rings_give(struct virtio_port *port)
{
	for (unsigned i = 0; i < shm_port_rings(&port->base); i++)
		gate_open(&port->base.queues[i].gate);
	atomic_store(&port->base.link_up, true);
}

bool virtio_session_parted(struct virtio_port *port)
{
	if (port->lingering_fd >= 0 && frontend_left(port->lingering_fd)) {
		close(port->lingering_fd);
		port->lingering_fd = -1;
	}
	return port->lingering_fd < 0;
}

// End the connection. A device that has the rings still, and has neither stopped nor hung up, hung or is
// hostile: what it may write to belongs to nobody else until it has hung up too. Of several, the first is
// watched.
static void part(struct virtio_port *port)
{
	if (port->lent && !port->frontend.gone && virtio_session_parted(port))
		port->lingering_fd = frontend_leave(&port->frontend);
	frontend_close(&port->frontend);
	port->lent = false;
}

static void virtio_disconnect(struct virtio_port *port)
{
	rings_take(port);
	shm_port_say_faults(&port->base);
	part(port);
}

// Nobody uses the rings. Faults are forgiven: it is another device.
static void rings_reset(struct virtio_port *port, struct frontend_ring *out)
{
	shm_port_forgive(&port->base);
	for (unsigned i = 0; i < shm_port_rings(&port->base); i++) {
		struct ring_queue *queue = &port->base.queues[i];
		const struct driver_ring *ring = &queue->driver;

		driver_ring_reset(&queue->driver, port->frontend.in_order, port->frontend.packed);
		atomic_store(&port->base.sizes[i], ring->size);
		out[i] = (struct frontend_ring){ring->desc, ring->avail,    ring->used,
		                                ring->size, queue->kick_fd, queue->call_fd};
	}
}

// What the device may see of our memory: the rings, and the pool that the buffers are of.
static int share(struct virtio_port *port)
{
	const struct shm_pool *pool = port->pool;
	const struct memory_table table = {
	        .count = 2,
	        .regions = {{(uintptr_t)port->rings, port->rings_bytes, 0, port->rings_fd},
	                    {(uintptr_t)pool->at, pool->bytes, 0, pool->fd}}};

	return frontend_share(&port->frontend, &table);
}

static int connect_port(struct virtio_port *port)
{
	struct frontend_ring rings[shm_port_rings(&port->base)];
	int rc = frontend_open(&port->frontend, port->base.path, port->base.pairs, port->packed);

	if (rc == 0 && !port->frontend.packed && port->ring_size & (port->ring_size - 1)) {
		snprintf(
		        port->frontend.error, sizeof(port->frontend.error),
		        "%s: the device does not offer packed rings, and a split ring cannot have %u entries",
		        port->base.path, port->ring_size);
		frontend_close(&port->frontend);
		rc = -ENOTSUP;
	}
	if (rc)
		return rc;
	rings_reset(port, rings);
	rc = share(port);
	port->lent = rc == 0;
	if (rc == 0)
		rc = frontend_start(&port->frontend, rings, shm_port_rings(&port->base));
	if (rc) {
		part(port);
		return rc;
	}
	atomic_store(&port->base.features, port->frontend.features);
	rings_give(port);
	return 0;
}

static void look_after(struct virtio_port *port)
{
	if (port->frontend.fd >= 0 && !frontend_alive(&port->frontend)) {
		LOG_WARN("port %s: %s; it is tried again", port->base.name, port->frontend.error);
		virtio_disconnect(port);
		port->silent = false;
	}
	if (port->frontend.fd >= 0)
		return;
	if (connect_port(port) == 0) {
		LOG_INFO("port %s: connected to %s again", port->base.name, port->base.path);
		port->silent = false;
	} else if (!port->silent && port->frontend.error[0]) {
		LOG_WARN("port %s: %s; it is tried again, silently", port->base.name, port->frontend.error);
		port->silent = true;
	}
}

// --- The thread ------------------------------------------------------------------------------------------

// With the lock. Sleep until a socket has something to say, or it is time to try again, or we are called.
static void sleep_until_due(void)
{
	struct pollfd fds[1 + CONFIG_PORTS_MAX] = {{.fd = wake_fd, .events = POLLIN}};
	eventfd_t ignored;
	nfds_t count = 1;
	int timeout_ms = -1;

	for (const struct virtio_port *port = ports; port; port = port->next)
		if (port->frontend.fd < 0)
			timeout_ms = RETRY_MS;
		else if (count < 1 + CONFIG_PORTS_MAX)
			fds[count++] = (struct pollfd){.fd = port->frontend.fd, .events = POLLIN | POLLRDHUP};
	pthread_mutex_unlock(&lock);
	poll(fds, count, timeout_ms);
	eventfd_read(wake_fd, &ignored);
	pthread_mutex_lock(&lock);
}

static struct virtio_port *next_of(unsigned round)
{
	for (struct virtio_port *port = ports; port; port = port->next)
		if (port->round != round)
			return port;
	return NULL;
}

static void *virtio_thread_main(void *argument)
{
	unsigned round = 0;

	pthread_mutex_lock(&lock);
	while (!ending) {
		round++;
		while (!ending && (busy = next_of(round)) != NULL) {
			busy->round = round;
			pthread_mutex_unlock(&lock);
			look_after(busy);
			pthread_mutex_lock(&lock);
			busy = NULL;
			pthread_cond_broadcast(&free_again);
		}
		if (!ending)
			sleep_until_due();
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

// Blocked signals and scheduling are those of the control thread.
static int thread_start(void)
{
	int rc;

	wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (wake_fd < 0)
		return -errno;
	ending = false;
	rc = -pthread_create(&thread, NULL, virtio_thread_main, NULL);
	if (rc)
		close(wake_fd);
	return rc;
}

static void thread_stop(void)
{
	pthread_mutex_lock(&lock);
	ending = true;
	pthread_mutex_unlock(&lock);
	eventfd_write(wake_fd, 1);
	pthread_join(thread, NULL);
	close(wake_fd);
}

// --- Beginning and ending: the control thread ------------------------------------------------------------

// The device may be about to listen.
static int connect_first(struct virtio_port *port)
{
	const struct timespec pause = {.tv_nsec = OPEN_PAUSE_MS * 1000000L};
	int rc = connect_port(port);

	for (unsigned i = 1; i < OPEN_TRIES && (rc == -ENOENT || rc == -ECONNREFUSED || rc == -EAGAIN); i++) {
		nanosleep(&pause, NULL);
		rc = connect_port(port);
	}
	return rc;
}

// No worker uses the port, nor does the thread.
static void stop(struct virtio_port *port)
{
	rings_take(port);
	if (port->frontend.fd >= 0) {
		port->lent = frontend_stop(&port->frontend, shm_port_rings(&port->base)) != 0;
		if (port->lent)
			LOG_WARN("port %s: %s", port->base.name, port->frontend.error);
	}
	shm_port_say_faults(&port->base);
	part(port);
}

int virtio_session_begin(struct virtio_port *port)
{
	int rc = connect_first(port);

	if (rc) {
		LOG_ERROR("port %s: no device to drive: %s", port->base.name, port->frontend.error);
		return rc;
	}
	if (ports == NULL) // only this thread changes it
		rc = thread_start();
	if (rc) {
		LOG_ERROR("port %s: thread: %s", port->base.name, strerror(-rc));
		stop(port);
		return rc;
	}
	pthread_mutex_lock(&lock);
	port->next = ports;
	ports = port;
	pthread_mutex_unlock(&lock);
	eventfd_write(wake_fd, 1);
	return 0;
}

// The thread may be waiting for this port's device to answer, for as long as it may take (frontend.h).
static void leave_thread(struct virtio_port *port)
{
	pthread_mutex_lock(&lock);
	for (struct virtio_port **at = &ports; *at; at = &(*at)->next)
		if (*at == port) {
			*at = port->next;
			break;
		}
	while (busy == port)
		pthread_cond_wait(&free_again, &lock);
	pthread_mutex_unlock(&lock);
	eventfd_write(wake_fd, 1);
	if (ports == NULL)
		thread_stop();
}

void virtio_session_end(struct virtio_port *port)
{
	leave_thread(port);
	stop(port);
}
