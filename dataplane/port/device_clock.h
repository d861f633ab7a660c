// SPDX-License-Identifier: BSD-3-Clause
// Time stamps by a device of DPDK (docs/design/latency.md). Received: of every frame, in the time stamp field of its mbuf;
// or, where the device stamps PTP frames only (82599, igb), in one register. Sent: of one marked frame at a time.
#pragma once

#include <rte_ethdev.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct port;

// Control thread. Ask for stamps if the port shall have them, before the device is configured, since it may choose slower
// functions for them; then, when it runs, find out which clock the port has. device_clock_open() returns 0, or -ENOTSUP
// after logging one line: the document asks for a clock that the port does not have.
void device_clock_configure(struct port *port, const struct rte_eth_dev_info *info,
                            struct rte_eth_conf *conf);
int device_clock_open(struct port *port);
void device_clock_close(struct port *port);

// The name of the interface of the kernel behind the port, in name; false if there is none.
bool device_clock_interface(const struct port *port, char *name, size_t size);

// Read the clock of a port with PORT_CLOCK_HARDWARE. False: the device does not tell. Control thread.
bool device_clock_read(const struct port *port, struct clock_reading *out);

// As in struct port_ops. Worker.
bool device_clock_received(const struct port *port, const struct rte_mbuf *m, uint64_t *ns);
bool device_clock_sent(const struct port *port, uint64_t *ns);
