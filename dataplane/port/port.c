// SPDX-License-Identifier: BSD-3-Clause
#include "port/port.h"

#include <stdio.h>
#include <string.h>

#include <net/if.h>
#include <rte_ether.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

// --- Kinds -----------------------------------------------------------------------------------------------

static struct port_kind *kinds; // by kind, then by backend, in the order of the alphabet

static int compare(const struct port_ops *a, const struct port_ops *b)
{
	int order = strcmp(a->kind, b->kind);

	return order ? order : strcmp(a->backend ? a->backend : "", b->backend ? b->backend : "");
}

// The order in which constructors run is the linker's.
void port_kind_register(struct port_kind *kind)
{
	struct port_kind **at = &kinds;

	port_ops_resolve(kind->ops);
	while (*at && compare((*at)->ops, kind->ops) < 0)
		at = &(*at)->next;
	kind->next = *at;
	*at = kind;
}

const struct port_ops *port_ops_find(const char *kind, const char *backend)
{
	for (const struct port_kind *k = kinds; k; k = k->next) {
		const struct port_ops *ops = k->ops;

		if (strcmp(ops->kind, kind) != 0)
			continue;
		if (*backend ? ops->backend && strcmp(ops->backend, backend) == 0 : ops->is_default)
			return ops;
	}
	return NULL;
}

const char *port_kinds(void)
{
	static char names[256];
	const char *last = "";
	size_t used = 0;

	for (const struct port_kind *k = kinds; k && used < sizeof(names); k = k->next) {
		if (strcmp(k->ops->kind, last) == 0)
			continue;
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? " " : "",
		                         k->ops->kind);
		last = k->ops->kind;
	}
	return names;
}

const char *port_backends(const char *kind)
{
	static char names[256];
	size_t used = 0;

	names[0] = '\0';
	for (const struct port_kind *k = kinds; k && used < sizeof(names); k = k->next)
		if (strcmp(k->ops->kind, kind) == 0 && k->ops->backend)
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? " " : "",
			                         k->ops->backend);
	return names;
}

const char *const port_clock_names[] = {"software", "kernel", "hardware", NULL};

// --- A port ----------------------------------------------------------------------------------------------

// As DPDK's vhost device has it, "VHOS" and more: its fifth byte is a "T", ours is above all letters. An
// address comes again after 32768 ports.
static struct rte_ether_addr next_mac(void)
{
	static uint16_t number;

	number++;
	return (struct rte_ether_addr){
	        {0x56, 0x48, 0x4f, 0x53, (uint8_t)(0x80 | number >> 8), (uint8_t)number}};
}

// The document's, or one of our own.
struct rte_ether_addr port_own_mac(const struct config_port *config)
{
	struct rte_ether_addr mac;

	memcpy(mac.addr_bytes, config->mac, sizeof(mac.addr_bytes));
	return rte_is_zero_ether_addr(&mac) ? next_mac() : mac;
}

int port_open(struct port *port, const struct config_port *config, struct rte_mempool *rx_pool)
{
	*port = (struct port){
	        .ops = config->ops, .config = *config, .rx_pool = rx_pool, .port_id = RTE_MAX_ETHPORTS};
	return port->ops->open(port);
}

void port_stop(struct port *port)
{
	port->ops->stop(port);
}

void port_close(struct port *port)
{
	port->ops->close(port);
}

void port_flush_all(const struct port *port)
{
	port->ops->flush_all(port);
}

uint32_t port_speed_mbps(const struct port *port)
{
	return port->ops->speed_mbps(port);
}

const char *port_driver(const struct port *port)
{
	return port->ops->driver(port);
}

static int kernel_socket = -1; // to ask for the state of interfaces; of all ports

void port_watch_interface(struct port *port, uint32_t index)
{
	if (index && kernel_socket < 0)
		kernel_socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	port->if_index = kernel_socket < 0 ? 0 : index;
}

bool port_interface_runs(const struct port *port)
{
	struct ifreq request = {.ifr_ifindex = (int)port->if_index};

	return port->if_index == 0 ||
	       (ioctl(kernel_socket, SIOCGIFNAME, &request) == 0 &&
	        ioctl(kernel_socket, SIOCGIFFLAGS, &request) == 0 && request.ifr_flags & IFF_RUNNING);
}

int port_mac(const struct port *port, struct rte_ether_addr *mac)
{
	return port->ops->mac(port, mac);
}

void port_read_counters(const struct port *port, struct port_counters *counters)
{
	*counters = (struct port_counters){0};
	port->ops->counters(port, counters);
}

bool port_negotiated(const struct port *port, struct negotiated *out)
{
	*out = (struct negotiated){0};
	return port->ops->negotiated(port, out);
}

// --- Offloads --------------------------------------------------------------------------------------------

struct plain_end {
	const struct port *port;
	uint16_t queue;
};

static unsigned into_port(void *to, const struct frame *frames, const struct virtio_net_hdr *headers,
                          unsigned n)
{
	const struct plain_end *end = to;

	return port_deliver_polled(end->port, end->queue, frames, n);
}

struct offload_sent port_send(const struct port *from, const struct port *to, uint16_t queue,
                              struct view *view, bool shared)
{
	struct offload_room *room = from->ops->offloads ? from->ops->offloads(from, queue) : NULL;
	struct plain_end end = {to, queue};
	unsigned count = view->count;

	if (room == NULL || room->used == 0)
		return (struct offload_sent){count, shared ? port_pass_shared(from, to, queue, view)
		                                           : port_pass(from, to, queue, view)};
	if (to->ops->send_offloads)
		return to->ops->send_offloads(to, queue, room, view->frames, count);
	return offload_send(room, view->frames, count, 0, into_port, &end);
}

// --- Frames in mbufs -------------------------------------------------------------------------------------

static uint16_t send_mbufs(const struct port *port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	if (port->port_id != RTE_MAX_ETHPORTS)
		return rte_eth_tx_burst(port->port_id, queue, pkts, n);
	return port->ops->tx(port, queue, pkts, n);
}

// Frames with many segments need several goes.
static unsigned copy_out(const struct port *to, uint16_t queue, struct rte_mbuf *const *pkts, unsigned n)
{
	struct piece pieces[PIECES_MAX];
	struct frame frames[BURST_FRAMES_MAX];
	unsigned sent = 0, count, taken;

	do {
		count = frames_describe(&pkts[sent], n - sent, frames, pieces);
		taken = count ? port_deliver_polled(to, queue, frames, count) : 0;
		sent += taken;
	} while (sent < n && taken == count && count);
	return sent;
}

unsigned port_pass_mbufs(const struct port *to, uint16_t queue, struct view *view)
{
	unsigned sent = to->ops->tx ? send_mbufs(to, queue, view->pkts, (uint16_t)view->count)
	                            : copy_out(to, queue, view->pkts, view->count);
	unsigned kept = to->ops->tx ? sent : 0; // by the port

	rte_pktmbuf_free_bulk(&view->pkts[kept], view->count - kept);
	view->held = 0;
	return sent;
}

static unsigned deliver_mbufs(const struct port *port, uint16_t queue, const struct frame *frames, unsigned n)
{
	struct rte_mbuf *pkts[BURST_FRAMES_MAX];
	uint64_t no_mbuf = 0;
	uint16_t filled, sent;

	if (unlikely(rte_pktmbuf_alloc_bulk(port->rx_pool, pkts, n) != 0))
		return 0;
	filled = frames_fill(port->rx_pool, pkts, frames, n, &no_mbuf);
	sent = send_mbufs(port, queue, pkts, filled);
	if (unlikely(sent < filled))
		rte_pktmbuf_free_bulk(&pkts[sent], filled - sent);
	return sent;
}

// --- What a kind lacks -----------------------------------------------------------------------------------

static void no_stop(struct port *port)
{
}

static unsigned peek_mbufs(const struct port *port, uint16_t queue, struct view *view, unsigned n)
{
	return view_received(view, port->ops->rx(port, queue, view->pkts, (uint16_t)n));
}

static unsigned no_spans(const struct port *port, uint16_t queue, struct view *view, struct vnf_frame *spans,
                         unsigned n)
{
	return 0;
}

static unsigned none_alike(const struct port *port, uint16_t queue, struct view *view, uint32_t length,
                           unsigned n)
{
	return 0;
}

static unsigned pass_by_copy(const struct port *from, const struct port *to, uint16_t queue,
                             struct view *view)
{
	return port_deliver_polled(to, queue, view->frames, view->count);
}

static void nothing_owed(const struct port *port, uint16_t queue)
{
}

static int nothing_lent(struct port *port, uint16_t queue, port_filler *fill)
{
	return 0;
}

static void nothing_taken_back(struct port *port, uint16_t queue)
{
}

static void nothing_owed_at_all(const struct port *port)
{
}

static uint32_t no_speed(const struct port *port)
{
	return 0;
}

static const char *own_driver(const struct port *port)
{
	return "planed";
}

static int own_mac(const struct port *port, struct rte_ether_addr *mac)
{
	*mac = port->mac;
	return 0;
}

static bool not_negotiated(const struct port *port, struct negotiated *out)
{
	return false;
}

void port_ops_resolve(struct port_ops *ops)
{
	ops->stop = ops->stop ?: no_stop;
	ops->peek = ops->peek ?: peek_mbufs;
	ops->peek_spans = ops->peek_spans ?: no_spans;
	ops->peek_alike = ops->peek_alike ?: none_alike;
	ops->deliver = ops->deliver ?: deliver_mbufs;
	ops->deliver_polled = ops->deliver_polled ?: ops->deliver;
	ops->pass = ops->pass ?: pass_by_copy;
	ops->warm = ops->warm ?: nothing_owed;
	ops->flush = ops->flush ?: nothing_owed;
	ops->lend = ops->lend ?: nothing_lent;
	ops->take_back = ops->take_back ?: nothing_taken_back;
	ops->flush_all = ops->flush_all ?: nothing_owed_at_all;
	ops->speed_mbps = ops->speed_mbps ?: no_speed;
	ops->driver = ops->driver ?: own_driver;
	ops->mac = ops->mac ?: own_mac;
	ops->negotiated = ops->negotiated ?: not_negotiated;
}
