// SPDX-License-Identifier: BSD-3-Clause
#include "port/vhost_session.h"

#include <errno.h>

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>

#include "base/clock.h"
#include "base/listen_socket.h"
#include "base/log.h"

_Static_assert((int)SHM_PORT_RINGS_MAX <= (int)VHOST_RINGS_MAX, "a driver can set up all rings of a port");

// Without offloads (virtio/offload.h) a frame is its bytes. Without EVENT_IDX a flag says who wants to be notified. Dirty pages are not
// logged: live migration is refused, not broken. The control virtqueue ends at the front end, which offers it only if
// we do.
#define FEATURES                                                                                             \
	(VHOST_BIT(VIRTIO_NET_F_MRG_RXBUF) | VHOST_BIT(VIRTIO_NET_F_CTRL_VQ) |                               \
	 VHOST_BIT(VIRTIO_NET_F_CTRL_RX) | VHOST_BIT(VIRTIO_F_ANY_LAYOUT) |                                  \
	 VHOST_BIT(VIRTIO_RING_F_INDIRECT_DESC) | VHOST_BIT(VHOST_F_PROTOCOL_FEATURES) |                     \
	 VHOST_BIT(VIRTIO_F_VERSION_1) | VHOST_BIT(VIRTIO_F_RING_PACKED) | VHOST_BIT(VIRTIO_F_IN_ORDER))

// --- Taking the rings away and giving them back ----------------------------------------------------------

// No worker is in the ring when this returns.
static bool take(struct vhost_device *device, unsigned ring, uint16_t *base)
{
	struct vhost_port *port = device->owner;
	struct ring_queue *queue = &port->base.queues[ring];

	if (port->device != device || !queue->attached)
		return false;
	while (!gate_try_shut(&queue->gate))
		vhost_listeners_unblock(); // the worker may stand in a call, to the driver of another port, too
	queue->attached = false;
	atomic_store(&port->base.sizes[ring], 0);
	*base = device_ring_base(&queue->ring);
	return true;
}

static void take_all(struct vhost_device *device)
{
	struct vhost_port *port = device->owner;

	for (unsigned i = 0; i < shm_port_rings(&port->base); i++)
		take(device, i, &device->rings[i].base);
	atomic_store(&port->base.link_up, false);
}

static void give(struct vhost_port *port, unsigned index)
{
	struct vhost_device *device = port->device;
	struct ring_queue *queue = &port->base.queues[index];
	struct device_ring_layout layout;

	if (queue->attached || fault_there(&queue->fault) || !vhost_device_ready(device, index) ||
	    !vhost_device_layout(device, index, &layout))
		return;
	if (device_ring_init(&queue->ring, &layout, &device->memory.guest)) {
		fault_set(&queue->fault, RING_BAD_LAYOUT);
		return;
	}
	queue->call_fd = queue->bell.fd = device->rings[index].call_fd;
	device->to_call |= UINT32_C(1) << index; // the guest may sleep since before the ring was taken away
	queue->attached = true;
	atomic_store(&port->base.sizes[index], layout.size);
	gate_open(&queue->gate);
}

// Give the workers whatever is ready. Without VIRTIO_NET_F_MQ a driver has one pair (virtio 1.2 s5.1.2), whatever it
// sets up.
static void give_all(struct vhost_port *port)
{
	uint64_t features = port->device->features;
	unsigned rings = features & VHOST_BIT(VIRTIO_NET_F_MQ) ? shm_port_rings(&port->base) : PAIR_RINGS;

	atomic_store(&port->base.features, features);
	for (unsigned i = 0; i < rings; i++)
		give(port, i);
	atomic_store(&port->base.link_up, port->base.queues[GUEST_RECEIVEQ].attached &&
	                                          port->base.queues[GUEST_TRANSMITQ].attached);
}

// --- What a connection has done --------------------------------------------------------------------------

// It has the first pair, for the first time or again after it had stopped: it gets the port, and keeps it while it is
// connected. Faults are forgiven.
static void vhost_begin(struct vhost_device *device)
{
	struct vhost_port *port = device->owner;

	device->shut_out = port->device && port->device != device;
	if (device->shut_out)
		return;
	device->running = device->drives = true;
	port->device = device;
	shm_port_say_faults(&port->base);
	shm_port_forgive(&port->base);
}

static void stop(struct vhost_device *device)
{
	struct vhost_port *port = device->owner;

	device->running = false;
	take_all(device);
	shm_port_say_faults(&port->base);
}

static void gone(struct vhost_device *device)
{
	struct vhost_port *port = device->owner;

	if (port->device != device)
		return;
	stop(device);
	device->drives = false;
	port->device = NULL;
}

static void say_beyond(struct vhost_device *device)
{
	struct vhost_port *port = device->owner;
	char unsaid[LOG_UNSAID_BYTES];

	if (device->beyond && device->beyond != VHOST_BEYOND_SAID &&
	    log_rate_take(&port->base.lines, clock_now_ms(), unsaid))
		LOG_WARN(
		        "port %s: its driver has enabled ring %u; queues is %u: what it sends there is not read%s",
		        port->base.name, device->beyond, port->base.pairs, unsaid);
	if (device->beyond)
		device->beyond = VHOST_BEYOND_SAID;
}

// A ring that its driver has stopped may try again.
static void forgive_stopped(struct vhost_port *port)
{
	for (unsigned i = 0; i < shm_port_rings(&port->base); i++) {
		struct ring_queue *queue = &port->base.queues[i];

		if (fault_there(&queue->fault) && !vhost_device_started(port->device, i)) {
			shm_port_say_faults(&port->base);
			fault_forgive(&queue->fault);
		}
	}
}

static void settled(struct vhost_device *device)
{
	struct vhost_port *port = device->owner;

	say_beyond(device);
	if (device->running &&
	    !(vhost_device_started(device, GUEST_RECEIVEQ) && vhost_device_started(device, GUEST_TRANSMITQ)))
		stop(device);
	if (!device->running && vhost_device_ready(device, GUEST_RECEIVEQ) &&
	    vhost_device_ready(device, GUEST_TRANSMITQ))
		vhost_begin(device);
	if (device->running) {
		forgive_stopped(port);
		give_all(port);
	}
}

static const struct vhost_device_ops device_ops = {
        .take = take,
        .settled = settled,
        .gone = gone,
};

// --- Beginning and ending --------------------------------------------------------------------------------

int vhost_session_begin(struct vhost_port *port, const struct config_drivers *drivers)
{
	struct vhost_listener_config config = {
	        .name = port->base.name,
	        .path = port->base.path,
	        .pairs = port->base.pairs,
	        .features = FEATURES | (port->base.pairs > 1 ? VHOST_BIT(VIRTIO_NET_F_MQ) : 0) |
	                    (port->rooms ? OFFLOAD_FEATURES : 0),
	        .connections = drivers->max_connections ? drivers->max_connections : CONFIG_CONNECTIONS_MAX,
	        .connections_per_s = drivers->connections_per_s,
	        .memory_max = (uint64_t)(drivers->max_memory_mb ? drivers->max_memory_mb
	                                                        : CONFIG_DRIVER_MEMORY_MB_MAX)
	                      << 20,
	        .charged_max_mb = drivers->max_charged_mb,
	        .ops = &device_ops,
	        .owner = port,
	};
	int rc = listen_socket_group(drivers->group, &config.group);

	if (rc)
		return rc;
	return vhost_listener_open(&config, &port->listener);
}

void vhost_session_stop(struct vhost_port *port)
{
	vhost_listener_stop(port->listener);
}

void vhost_session_end(struct vhost_port *port)
{
	vhost_listener_close(port->listener);
}
