// SPDX-License-Identifier: BSD-3-Clause
#include "port/virtio_session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal_memconfig.h>
#include <rte_memory.h>

#include "base/log.h"

// --- DPDK's memory ---------------------------------------------------------------------------------------

// Add a page to the last region, or begin another.
static int add_page(struct memory_table *table, uint64_t address, uint64_t bytes, uint64_t offset, int fd)
{
	struct memory_region *last = table->count ? &table->regions[table->count - 1] : NULL;

	if (last && last->fd == fd && address == last->address + last->bytes &&
	    offset == last->offset + last->bytes) {
		last->bytes += bytes;
		return 0;
	}
	if (table->count == PEER_REGIONS_MAX)
		return -E2BIG;
	table->regions[table->count++] = (struct memory_region){address, bytes, offset, fd};
	return 0;
}

static int visit(const struct rte_memseg_list *list, const struct rte_memseg *page, void *argument)
{
	size_t offset;
	int fd;

	if (list->external)
		return 0;
	fd = rte_memseg_get_fd_thread_unsafe(page); // the caller has the lock
	if (fd < 0 || rte_memseg_get_fd_offset_thread_unsafe(page, &offset))
		return -ENOTSUP;
	return add_page(argument, (uintptr_t)page->addr, page->len, offset, fd);
}

// With rte_mcfg_mem_read_lock(). Returns 0; -E2BIG if it takes more regions than that; -ENOTSUP if some
// memory has no file.
static int memory_table_read(struct memory_table *table)
{
	table->count = 0;
	return rte_memseg_walk_thread_unsafe(visit, table);
}

// Instead of the C library's, for DPDK, which makes the files of its memory without the right to seal them.
int memfd_create(const char *name, unsigned flags)
{
	return (int)syscall(SYS_memfd_create, name, flags | MFD_ALLOW_SEALING);
}

// The other end cannot truncate what it gets: that would end us by SIGBUS. DPDK itself makes such a file longer, never
// shorter.
static int seal(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals >= 0 && seals & F_SEAL_SHRINK)
		return 0;
	return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) ? -errno : 0;
}

static void memory_table_close(struct memory_table *copy)
{
	for (unsigned i = 0; i < copy->count; i++)
		close(copy->regions[i].fd);
	copy->count = 0;
}

// A copy with files of its own, to be closed. With that lock, since the table was read. Returns 0 or -errno.
static int memory_table_open(struct memory_table *copy, const struct memory_table *table)
{
	*copy = *table;
	for (copy->count = 0; copy->count < table->count; copy->count++) {
		int fd = fcntl(table->regions[copy->count].fd, F_DUPFD_CLOEXEC, 0);
		int rc = fd < 0 ? -errno : seal(fd);

		if (rc) {
			if (fd >= 0)
				close(fd);
			memory_table_close(copy);
			return rc;
		}
		copy->regions[copy->count].fd = fd;
	}
	return 0;
}

static bool memory_table_equal(const struct memory_table *a, const struct memory_table *b)
{
	bool equal = a->count == b->count;

	for (unsigned i = 0; equal && i < a->count; i++) {
		const struct memory_region *x = &a->regions[i], *y = &b->regions[i];

		equal = x->address == y->address && x->bytes == y->bytes && x->offset == y->offset &&
		        x->fd == y->fd;
	}
	return equal;
}

enum { OPEN_TRIES = 20, OPEN_PAUSE_MS = 50, RETRY_MS = 100 };

// lock: the list, busy, ending, and the memory table. A port that is busy is the thread's alone.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t free_again = PTHREAD_COND_INITIALIZER;
static struct virtio_port *ports, *busy;
static pthread_t thread;
static int wake_fd = -1;
static bool ending;

// What ports are told of DPDK's memory. It can grow, with hugepages, when a port is opened; number changes
// with it. Two ports may exchange buffers only if their devices know the same.
static struct memory_table memory;
static uint64_t memory_number;

// With the lock, and DPDK's.
static int memory_refresh(void)
{
	struct memory_table now;
	int rc = memory_table_read(&now);

	if (rc == 0 && (memory_number == 0 || !memory_table_equal(&now, &memory))) {
		memory = now;
		memory_number++;
	}
	return rc;
}

// The table and its number as they are now. The files in it are the caller's own: DPDK closes a page's file
// when another thread frees the page.
static int memory_now(struct memory_table *table, uint64_t *number)
{
	int rc;

	pthread_mutex_lock(&lock);
	rte_mcfg_mem_read_lock();
	rc = memory_refresh();
	*number = memory_number;
	if (rc == 0)
		rc = memory_table_open(table, &memory);
	rte_mcfg_mem_read_unlock();
	pthread_mutex_unlock(&lock);
	return rc;
}

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

static int share(struct virtio_port *port)
{
	struct memory_table table;
	uint64_t number;
	int rc;

	rc = memory_now(&table, &number);
	if (rc) {
		snprintf(port->frontend.error, sizeof(port->frontend.error),
		         "%s: DPDK's memory cannot be shared: %s; %s, or use \"backend\": \"dpdk\"",
		         port->base.path, strerror(-rc),
		         rc == -EMFILE ? "raise ulimit -n" : "raise memory.size_mb");
		return rc;
	}
	rc = frontend_share(&port->frontend, &table);
	memory_table_close(&table);
	if (rc == 0)
		atomic_store(&port->memory, number);
	return rc;
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

// The memory table has changed while the rings run.
static void share_again(struct virtio_port *port)
{
	rings_take(port);
	if (share(port) == 0) {
		rings_give(port);
		return;
	}
	LOG_WARN("port %s: %s", port->base.name, port->frontend.error);
	virtio_disconnect(port);
}

static void look_after(struct virtio_port *port, uint64_t number)
{
	if (port->frontend.fd >= 0 && !frontend_alive(&port->frontend)) {
		LOG_WARN("port %s: %s; it is tried again", port->base.name, port->frontend.error);
		virtio_disconnect(port);
		port->silent = false;
	} else if (port->frontend.fd >= 0 && atomic_load(&port->memory) != number) {
		share_again(port);
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
			uint64_t number = memory_number;

			busy->round = round;
			pthread_mutex_unlock(&lock);
			look_after(busy, number);
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
