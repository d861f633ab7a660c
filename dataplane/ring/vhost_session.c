// SPDX-License-Identifier: BSD-3-Clause
#include "ring/vhost_session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <linux/vhost_types.h>
#include <rte_vhost.h>

#include "lib/log.h"
#include "ring/vhost_message.h"

_Static_assert((int)VHOST_RINGS_MAX == 2 * CONFIG_QUEUES_MAX, "as many as the door lets through");

// What is known of a connection; by the library's number, which is what its callbacks give us. An entry is
// used by one thread at a time: the library's, or the one that closes the port. It begins with
// new_connection(), whatever is left in it from the last.
static struct connection {
	struct vhost_port *port;
	bool running;                  // between new_device and destroy_device
	bool enabled[VHOST_RINGS_MAX]; // SET_VRING_ENABLE
	bool beyond_said;              // that the driver has more rings than we
	bool in_message;               // one is being handled, or was and could not be
	bool failed;                   // one could not be: what the library has is stale, or not there
} connections[RTE_MAX_VHOST_DEVICE];

static pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vhost_port *ports; // that a new connection may be for

// --- Taking the rings away and giving them back ----------------------------------------------------------

void vhost_session_say_faults(struct vhost_port *port)
{
	for (unsigned i = 0; i < vhost_port_rings(port); i++) {
		struct queue *queue = &port->queues[i];
		enum ring_fault fault = (enum ring_fault)fault_take(&queue->fault);

		if (fault == RING_OK)
			continue;
		atomic_fetch_add(&port->broken, 1);
		LOG_WARN("port %s: the guest's %s ring of queue %u is stopped: %s; restart its driver",
		         port->name, i % PAIR_RINGS == GUEST_TRANSMITQ ? "transmit" : "receive",
		         i / PAIR_RINGS, ring_fault_text(fault));
	}
}

// No worker is in the ring when this returns, and the library knows where it stands.
static void queue_detach(struct vhost_port *port, unsigned index)
{
	struct queue *queue = &port->queues[index];
	uint16_t base;

	if (!queue->attached)
		return;
	gate_shut(&queue->gate);
	queue->attached = false;
	base = ring_base(&queue->ring);
	rte_vhost_set_vring_base(port->vid, (uint16_t)index, base, base);
}

static void detach(struct vhost_port *port)
{
	for (unsigned i = 0; i < vhost_port_rings(port); i++)
		queue_detach(port, i);
	atomic_store(&port->link_up, false);
}

// Whatever the other end gave us to write to, it must not be able to block a worker.
static void queue_attach_call(struct queue *queue, int fd)
{
	int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);

	queue->call_fd = flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -1 : fd;
	if (queue->call_fd >= 0)
		eventfd_write(queue->call_fd, 1); // the guest may sleep since before the ring was taken away
}

static void queue_attach(struct vhost_port *port, unsigned index, uint64_t features)
{
	struct queue *queue = &port->queues[index];
	struct rte_vhost_vring vring;
	struct ring_layout layout = {.features = features, .writable = index % PAIR_RINGS == GUEST_RECEIVEQ};
	uint16_t used;

	if (fault_there(&queue->fault) || rte_vhost_get_vhost_vring(port->vid, (uint16_t)index, &vring) ||
	    rte_vhost_get_vring_base(port->vid, (uint16_t)index, &layout.base, &used))
		return;
	layout.desc = vring.desc;
	layout.driver = vring.avail;
	layout.device = vring.used;
	layout.size = vring.size;
	if (layout.desc == NULL || layout.driver == NULL || layout.device == NULL)
		return; // about to be set up
	if (ring_init(&queue->ring, &layout, &port->memory)) {
		fault_set(&queue->fault, RING_BAD_LAYOUT);
		return;
	}
	queue_attach_call(queue, vring.callfd);
	queue->attached = true;
	gate_open(&queue->gate);
}

static int read_memory(struct vhost_port *port, int vid)
{
	struct rte_vhost_memory *table = NULL;
	int rc = 0;

	if (rte_vhost_get_mem_table(vid, &table))
		return -EIO;
	port->memory.count = 0;
	memset(port->memory.regions, 0, sizeof(port->memory.regions));
	for (unsigned i = 0; i < table->nregions && rc == 0; i++) {
		const struct rte_vhost_mem_region *region = &table->regions[i];

		rc = guest_memory_add(&port->memory, region->guest_phys_addr, region->size,
		                      (void *)(uintptr_t)region->host_user_addr);
	}
	free(table);
	if (rc)
		LOG_WARN("port %s: the guest's memory cannot be used: %s", port->name, strerror(-rc));
	return rc;
}

// For who reports it: the rings are this thread's, and the workers'.
static void publish(struct vhost_port *port, uint64_t features)
{
	atomic_store(&port->features, features);
	for (unsigned i = 0; i < vhost_port_rings(port); i++)
		atomic_store(&port->sizes[i], port->queues[i].attached ? port->queues[i].ring.size : 0);
}

// Give the workers whatever of the connection's rings is ready, as the library has it now.
static void attach(int vid)
{
	struct connection *connection = &connections[vid];
	struct vhost_port *port = connection->port;
	uint64_t features;
	unsigned rings;

	if (port == NULL || !connection->running || port->vid != vid)
		return;
	detach(port);
	if (connection->in_message || connection->failed)
		return;
	if (rte_vhost_get_negotiated_features(vid, &features) || read_memory(port, vid))
		return;
	// Without VIRTIO_NET_F_MQ a driver has one pair (virtio 1.2 s5.1.2), whatever it sets up.
	rings = features & 1ULL << VIRTIO_NET_F_MQ ? vhost_port_rings(port) : PAIR_RINGS;
	for (unsigned i = 0; i < rings; i++)
		if (connection->enabled[i])
			queue_attach(port, i, features);
	publish(port, features);
	atomic_store(&port->link_up,
	             port->queues[GUEST_RECEIVEQ].attached && port->queues[GUEST_TRANSMITQ].attached);
}

// --- What the library calls ------------------------------------------------------------------------------

static struct vhost_port *port_of(int vid)
{
	return vid >= 0 && vid < RTE_MAX_VHOST_DEVICE ? connections[vid].port : NULL;
}

// A message may change memory, rings or descriptors of any kind: the workers are out while it is handled.
static enum rte_vhost_msg_result before_message(int vid, void *message)
{
	struct vhost_message m = {0}; // the header and what is sent of a ring: as on the wire (vhost_door.h)
	struct vhost_port *port = port_of(vid);

	if (port == NULL)
		return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
	if (port->vid == vid)
		detach(port);
	// After one that failed there was no after_message(). The library may go on, with memory unmapped and
	// addresses that are not: we do not.
	connections[vid].failed |= connections[vid].in_message;
	connections[vid].in_message = true;
	// The library says so only after it has answered the driver, which is too late.
	memcpy(&m, message, VHOST_MESSAGE_HEADER + sizeof(m.value));
	if (m.request == VHOST_USER_SET_VRING_ENABLE && m.index < VHOST_RINGS_MAX && m.number == 0)
		connections[vid].enabled[m.index] = false;
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

static enum rte_vhost_msg_result after_message(int vid, void *message)
{
	if (port_of(vid)) {
		connections[vid].in_message = false;
		attach(vid);
	}
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

static const struct rte_vhost_user_extern_ops message_ops = {
        .pre_msg_handle = before_message,
        .post_msg_handle = after_message,
};

static int new_connection(int vid)
{
	char path[CONFIG_PATH_MAX];
	struct vhost_port *port;

	if (vid < 0 || vid >= RTE_MAX_VHOST_DEVICE || rte_vhost_get_ifname(vid, path, sizeof(path)))
		return -1;
	pthread_mutex_lock(&ports_lock);
	for (port = ports; port && strcmp(port->inner.path, path) != 0; port = port->next)
		;
	pthread_mutex_unlock(&ports_lock);
	connections[vid] = (struct connection){.port = port};
	return port ? rte_vhost_extern_callback_register(vid, &message_ops, NULL) : -1;
}

static void destroy_connection(int vid)
{
	if (port_of(vid))
		connections[vid] = (struct connection){0};
}

// All rings of the connection are ready. Its first word, or again after a stop: faults are forgiven.
static int new_device(int vid)
{
	struct vhost_port *port = port_of(vid);

	if (port == NULL)
		return -1;
	if (port->vid >= 0 && port->vid != vid) {
		LOG_WARN("port %s: a second driver has connected to %s and takes over", port->name,
		         port->path);
		detach(port);
	}
	port->vid = vid;
	vhost_session_say_faults(port);
	for (unsigned i = 0; i < vhost_port_rings(port); i++)
		fault_forgive(&port->queues[i].fault);
	connections[vid].running = true;
	attach(vid);
	return 0;
}

// The driver has stopped, or is gone: its memory is unmapped after this.
static void destroy_device(int vid)
{
	struct vhost_port *port = port_of(vid);

	if (port == NULL)
		return;
	connections[vid].running = false;
	if (port->vid != vid)
		return;
	detach(port);
	vhost_session_say_faults(port);
	port->vid = -1;
}

static int vring_state_changed(int vid, uint16_t index, int enable)
{
	struct vhost_port *port = port_of(vid);

	if (port == NULL)
		return 0;
	if (index >= vhost_port_rings(port)) {
		if (enable && !connections[vid].beyond_said)
			LOG_WARN("port %s: its driver has enabled ring %u; queues is %u: what it sends there "
			         "is "
			         "not read",
			         port->name, index, port->pairs);
		connections[vid].beyond_said |= enable;
		return 0;
	}
	connections[vid].enabled[index] = enable;
	attach(vid);
	return 0;
}

static const struct rte_vhost_device_ops device_ops = {
        .new_device = new_device,
        .destroy_device = destroy_device,
        .vring_state_changed = vring_state_changed,
        .new_connection = new_connection,
        .destroy_connection = destroy_connection,
};

// --- The thread of DPDK's vhost library that accepts connections and reads messages ----------------------

static const char thread_name[] = "vhost-events\n";

static void nothing(int number)
{
}

static bool is_library_thread(const char *tid)
{
	char path[64], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", tid);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	if (fgets(name, sizeof(name), file) == NULL)
		name[0] = '\0';
	fclose(file);
	return strcmp(name, thread_name) == 0;
}

static pid_t library_thread_find(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	pid_t found = 0;

	while (tasks && found == 0 && (entry = readdir(tasks)) != NULL)
		if (is_library_thread(entry->d_name))
			found = atoi(entry->d_name);
	if (tasks)
		closedir(tasks);
	return found;
}

// Have it look at all its descriptors now. It waits in poll(2) for a second at a time, on those that there
// were when the wait began, and rte_vhost_driver_start() does not wake it (DPDK 22.11, lib/vhost/fd_man.c):
// without this a driver that connects to a new socket is heard up to a second later. Where the thread is not
// found, that is all that happens. Control thread; takes a millisecond.
static void library_thread_wake(void)
{
	struct sigaction action = {.sa_handler = nothing}; // poll(2) ends with EINTR, whatever the flags
	pid_t thread = library_thread_find();

	if (thread == 0 || sigaction(SIGURG, &action, NULL))
		return;
	// Twice: the first may come when the thread has read its descriptors and does not wait yet.
	tgkill(getpid(), thread, SIGURG);
	usleep(1000);
	tgkill(getpid(), thread, SIGURG);
}

// --- Beginning and ending --------------------------------------------------------------------------------

// What the library offers and we do not do. Without offloads a frame is its bytes. Without EVENT_IDX a flag
// says who wants to be notified. Dirty pages are not logged: live migration is refused, not broken.
static const uint64_t features_off =
        1ULL << VIRTIO_NET_F_CSUM | 1ULL << VIRTIO_NET_F_GUEST_CSUM | 1ULL << VIRTIO_NET_F_GSO |
        1ULL << VIRTIO_NET_F_HOST_TSO4 | 1ULL << VIRTIO_NET_F_HOST_TSO6 | 1ULL << VIRTIO_NET_F_HOST_ECN |
        1ULL << VIRTIO_NET_F_HOST_UFO | 1ULL << VIRTIO_NET_F_GUEST_TSO4 | 1ULL << VIRTIO_NET_F_GUEST_TSO6 |
        1ULL << VIRTIO_NET_F_GUEST_ECN | 1ULL << VIRTIO_NET_F_GUEST_UFO |
        1ULL << VIRTIO_NET_F_GUEST_ANNOUNCE | 1ULL << VIRTIO_NET_F_MTU | 1ULL << VIRTIO_RING_F_EVENT_IDX |
        1ULL << VHOST_F_LOG_ALL;

static int listen_on(const char *path, bool multiqueue)
{
	uint64_t off = features_off | (multiqueue ? 0 : 1ULL << VIRTIO_NET_F_MQ);
	uint64_t protocol = VHOST_PROTOCOL_FEATURES & ~(multiqueue ? 0 : 1ULL << VHOST_USER_PROTOCOL_F_MQ);
	uint64_t protocol_features;

	if (rte_vhost_driver_register(path, 0))
		return -EIO; // the library does not say; its log does
	if (rte_vhost_driver_disable_features(path, off) ||
	    rte_vhost_driver_get_protocol_features(path, &protocol_features) ||
	    rte_vhost_driver_set_protocol_features(path, protocol_features & protocol) ||
	    rte_vhost_driver_callback_register(path, &device_ops) || rte_vhost_driver_start(path)) {
		rte_vhost_driver_unregister(path);
		return -EIO;
	}
	library_thread_wake();
	return 0;
}

static void ports_remove(struct vhost_port *port)
{
	pthread_mutex_lock(&ports_lock);
	for (struct vhost_port **at = &ports; *at; at = &(*at)->next)
		if (*at == port) {
			*at = port->next;
			break;
		}
	pthread_mutex_unlock(&ports_lock);
}

// The library listens behind the door.
static int listen_behind(struct vhost_port *port)
{
	int rc = vhost_door_inner_open(&port->inner, port->path);

	if (rc)
		return rc;
	rc = listen_on(port->inner.path, port->pairs > 1);
	if (rc)
		goto err;
	rc = vhost_door_open(port->name, port->path, &port->inner, port->pairs, &port->door);
	if (rc == 0) {
		vhost_door_inner_hide(&port->inner);
		return 0;
	}
	rte_vhost_driver_unregister(port->inner.path);
err:
	vhost_door_inner_close(&port->inner);
	return rc;
}

int vhost_session_begin(struct vhost_port *port)
{
	int rc;

	pthread_mutex_lock(&ports_lock);
	port->next = ports;
	ports = port;
	pthread_mutex_unlock(&ports_lock);
	rc = listen_behind(port);
	if (rc)
		ports_remove(port);
	return rc;
}

void vhost_session_end(struct vhost_port *port)
{
	vhost_door_close(port->door);
	rte_vhost_driver_unregister(port->inner.path); // ends its connections: destroy_device()
	vhost_door_inner_close(&port->inner);
	ports_remove(port);
}
