// SPDX-License-Identifier: BSD-3-Clause
// The unix sockets of all vhost-user ports, and the one thread that serves them: it accepts connections, reads messages
// and hands them to the state machine of each connection (vhost_device.h). It waits for no other end: sockets do not
// block, a message has a deadline, and connections and messages have a rate. Who has the port (struct vhost_device: drives)
// keeps it until it hangs up; of the others the one that was silent longest makes room for who comes. What the other end may make
// slow, calling it, closing its descriptors and unmapping its memory, is done by a thread of each port.
//
// Open and close on the control thread. The operations of the devices are called on the listener's thread, or by
// vhost_listener_close(), never by two threads at a time.
#pragma once

#include <sys/types.h>

#include "virtio/vhost_device.h"

struct vhost_listener;

struct vhost_listener_config {
	const char *name, *path;                 // name: for the log; must outlive the listener
	unsigned pairs;                          // queue pairs of the port
	uint64_t features;                       // offered
	unsigned connections, connections_per_s; // 0: the default of listen_socket_open()
	uint64_t memory_max;                     // bytes of a connection
	uint32_t charged_max_mb;                 // of guest_charge.h
	gid_t group; // of the socket, which then has mode 0660; (gid_t)-1: none, and 0600
	const struct vhost_device_ops *ops;
	void *owner; // of the devices
};

// Listen. Returns 0 and *out, or -errno.
int vhost_listener_open(const struct vhost_listener_config *config, struct vhost_listener **out);

// End all connections and stop listening. Waits for nobody: who closes several listeners stops all of them first.
void vhost_listener_stop(struct vhost_listener *listener);

// The same if it was not stopped, and free the listener; NULL does nothing. Returns within two seconds of the stop: what the
// other end keeps from being closed is left to the port's thread.
void vhost_listener_close(struct vhost_listener *listener);

// Unblock the descriptors of all drivers of all listeners. Of an operation of a device, while it waits for a worker.
void vhost_listeners_unblock(void);

// How many connections were ended for this reason. Any thread.
uint64_t vhost_listener_refused(const struct vhost_listener *listener, enum peer_refusal refusal);
