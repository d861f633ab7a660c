// SPDX-License-Identifier: BSD-3-Clause
#include "port/device_clock.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_mbuf_dyn.h>

#include "base/log.h"
#include "port/port.h"

enum { READINGS = 8 };

// Where the time stamp is in all mbufs; 0: nobody asked for it.
static int field_offset;
static uint64_t field_flag;

void device_clock_configure(struct port *port, const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
	if (port->config.clock != PORT_CLOCK_HARDWARE)
		return;
	if (field_flag == 0 && rte_mbuf_dyn_rx_timestamp_register(&field_offset, &field_flag) != 0)
		field_flag = 0; // no room in the mbuf
	conf->rxmode.offloads |= info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP;
	port->stamps_ptp_only = !(info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP);
	// Drivers have a transmit function without offloads, which heeds no mark of a frame either.
	conf->txmode.offloads |= info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
}

bool device_clock_interface(const struct port *port, char *name, size_t size)
{
	const char *at = strstr(port->config.device, "iface=");

	if (strncmp(port->config.device, "net_af_packet", strlen("net_af_packet")) != 0 || at == NULL)
		return false;
	at += strlen("iface=");
	snprintf(name, size, "%.*s", (int)strcspn(at, ","), at);
	return true;
}

static int refuse(const struct port *port, const char *why)
{
	LOG_ERROR("port %s (%s): %s", port->config.name, port->device, why);
	return -ENOTSUP;
}

// Whether the driver heeds the mark of a frame to be stamped: those of igb and ixgbe do if they were built for it.
static bool heeds_marks(const struct port *port)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(port->rx_pool);
	bool refused;

	if (m == NULL)
		return true;
	rte_pktmbuf_append(m, RTE_ETHER_MIN_LEN);
	m->ol_flags |= RTE_MBUF_F_TX_IEEE1588_TMST;
	refused = rte_eth_tx_prepare(port->port_id, 0, &m, 1) == 0 && rte_errno == ENOTSUP;
	rte_pktmbuf_free(m);
	return !refused;
}

static int hardware_open(struct port *port)
{
	if (rte_eth_timesync_enable(port->port_id) != 0)
		return refuse(port, "the device has no hardware time stamps");
	port->clock = PORT_CLOCK_HARDWARE;
	if (heeds_marks(port))
		return 0;
	return refuse(port, "the driver stamps no frames that it sends: DPDK was built without "
	                    "-Dc_args=-DRTE_LIBRTE_IEEE1588");
}

int device_clock_open(struct port *port)
{
	char interface[IF_NAMESIZE];

	if (port->config.clock == PORT_CLOCK_HARDWARE)
		return hardware_open(port);
	if (port->config.clock == PORT_CLOCK_KERNEL) {
		if (!device_clock_interface(port, interface, sizeof(interface)))
			return refuse(port, "the kernel stamps no frames of this device; it does those of "
			                    "net_af_packet");
		port->clock = PORT_CLOCK_KERNEL;
	}
	return 0;
}

void device_clock_close(struct port *port)
{
	if (port->clock == PORT_CLOCK_HARDWARE)
		rte_eth_timesync_disable(port->port_id);
}

static uint64_t nanoseconds(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
}

// The quickest of some readings: the device is read at some moment within it.
bool device_clock_read(const struct port *port, struct clock_reading *out)
{
	struct timespec time;

	out->width_tsc = UINT64_MAX;
	for (unsigned i = 0; i < READINGS; i++) {
		uint64_t before = rte_rdtsc(), after;

		if (port->clock != PORT_CLOCK_HARDWARE ||
		    rte_eth_timesync_read_time(port->port_id, &time) != 0)
			return false;
		after = rte_rdtsc();
		if (after - before < out->width_tsc)
			*out = (struct clock_reading){.tsc = before + (after - before) / 2,
			                              .width_tsc = after - before,
			                              .ns = nanoseconds(&time)};
	}
	return true;
}

// A register holds the stamp of one PTP frame and takes no other until it is read. The mbuf says whether it is this one's:
// RTE_MBUF_F_RX_IEEE1588_TMST. Without it the register is of a frame that was lost on the way to us, and is emptied.
bool device_clock_received(const struct port *port, const struct rte_mbuf *m, uint64_t *ns)
{
	struct timespec time;

	if (field_flag && m->ol_flags & field_flag) {
		*ns = *RTE_MBUF_DYNFIELD(m, field_offset, const rte_mbuf_timestamp_t *);
		return true;
	}
	if (!(m->ol_flags & (RTE_MBUF_F_RX_IEEE1588_PTP | RTE_MBUF_F_RX_IEEE1588_TMST)) ||
	    rte_eth_timesync_read_rx_timestamp(port->port_id, &time, m->timesync) != 0 ||
	    !(m->ol_flags & RTE_MBUF_F_RX_IEEE1588_TMST))
		return false;
	*ns = nanoseconds(&time);
	return true;
}

bool device_clock_sent(const struct port *port, uint64_t *ns)
{
	struct timespec time;

	if (rte_eth_timesync_read_tx_timestamp(port->port_id, &time) != 0)
		return false;
	*ns = nanoseconds(&time);
	return true;
}
