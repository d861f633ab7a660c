// SPDX-License-Identifier: BSD-3-Clause
// A port has queue pairs and a kind of port behind it: a device of DPDK (port/ethdev.c), a vhost-user device of our
// own (port/vhost_port.c), a virtio driver of our own (port/virtio_port.c). A kind is a struct port_ops that
// registers itself: nothing outside of its file names it (docs/design/adding.md). Opened and closed on
// the control thread; rx/tx by the worker that owns the task using it.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/limits.h"
#include "virtio/offload.h"
#include "virtio/vhost_message.h"

enum { CONFIG_PORTS_MAX = 128, CONFIG_DEVICE_MAX = 256 };

struct port;
struct port_ops;

// What the drivers of a vhost-user port may do. 0, and no group: the default of the port.
struct config_drivers {
	char group[CONFIG_NAME_MAX]; // of users who may connect, besides the owner
	uint32_t max_connections, connections_per_s;
	uint32_t max_memory_mb;  // of a connection
	uint32_t max_charged_mb; // of the port: shm/guest_charge.h
};

// What stamps probes at a port: this program, the kernel, or the device.
enum port_clock { PORT_CLOCK_SOFTWARE, PORT_CLOCK_KERNEL, PORT_CLOCK_HARDWARE };
extern const char *const port_clock_names[];

// A port of the configuration document.
struct config_port {
	char name[CONFIG_NAME_MAX];
	char kind[CONFIG_NAME_MAX], backend[CONFIG_NAME_MAX]; // backend: or empty
	const struct port_ops *ops;                           // what these two say
	char path[CONFIG_PATH_MAX];                           // of a socket; or empty
	char device[CONFIG_DEVICE_MAX];                       // devargs or PCI address; or empty
	uint32_t ring_size;
	uint32_t queues; // queue pairs
	uint64_t line_rate_bps;
	uint8_t mac[6]; // of rings of our own: its address; all zero: one is made up
	struct config_drivers drivers;
	int clock;     // enum port_clock
	bool offloads; // of guests (virtio/offload.h)
	bool packed;   // rings of our virtio driver, where the device offers them
	bool zero_copy; // of a memif's client: it exchanges buffers with the others that have this (shm/pool.h)
};

// Counters of a port since it was opened. rx_errors: buffers of the other end without a frame in them, or with too
// long a one. tx_errors: frames that no buffers of the other end can hold, or that were lost with a ring.
struct port_counters {
	uint64_t rx_packets, tx_packets, rx_missed, rx_errors, tx_errors, rx_nombuf;
	uint64_t broken_rings; // stopped, because the other end broke a rule
	uint64_t refused_messages
	        [PEER_REFUSALS]; // of drivers, by enum peer_refusal: each has ended a connection
	uint64_t refused_offloads[OFFLOAD_REFUSALS]; // frames, by why; in rx_errors, too
	struct port_queue_counters {
		uint64_t rx_packets, tx_packets;
		uint64_t tx_full; // frames offered to the queue that it did not take; 0 where nobody knows
	} queues[CONFIG_QUEUES_MAX];
};

// Add what a queue pair has counted.
static inline void port_counters_add(struct port_counters *counters, unsigned queue, uint64_t rx_packets,
                                     uint64_t tx_packets, uint64_t tx_full)
{
	counters->rx_packets += rx_packets;
	counters->tx_packets += tx_packets;
	counters->queues[queue].rx_packets = rx_packets;
	counters->queues[queue].tx_packets = tx_packets;
	counters->queues[queue].tx_full = tx_full;
}

// What driver and device of a virtio port have agreed on, for who reports it: a copy,
// taken on the control thread while the rings run.
// sizes: entries of the rings in the order of virtio 1.2 s5.1.2, receive and transmit of each queue pair; 0
// for one that does not run.
struct negotiated {
	uint64_t features;
	unsigned rings;
	uint16_t sizes[2 * CONFIG_QUEUES_MAX];
};

// What two ports did that move frames without a task's help: received == forwarded + dropped.
struct port_moved {
	uint16_t received, dropped;
};

// Writes what a sender never changes to a buffer, once.
typedef void port_filler(uint8_t *data, uint32_t room);

// A kind of port. A kind whose frames are in mbufs has rx and tx; one whose frames lie in rings has peek, release and
// deliver. Tasks see no difference: they call port_peek() and so on, where these functions are documented.

struct port_ops {
	const char *kind;        // the value of the key "kind" in a document
	const char *backend;     // of "backend"; NULL: the kind has no such key
	bool is_default;         // of the kinds of this name: for documents without "backend"
	bool has_device;         // needs the key "device", not "path"
	bool takes_mac;          // may have the key "mac"
	bool listens;            // on its path: no two ports have the same
	bool refuses;            // messages of drivers, and counts them; has the keys of config_drivers
	bool view_writable;      // in rings: a task may change the frames where they lie
	bool takes_offloads;     // may have the key "offloads"
	bool takes_zero_copy;    // may have the key "zero_copy"
	bool takes_packed;       // the same, "packed"
	bool tx_memory_is_peers; // reserve: buffers of the other end, which may write to them between two loans

	int (*open)(struct port *port);  // port has its config and pool; on failure close() is not called
	void (*stop)(struct port *port); // or NULL: nothing
	void (*close)(struct port *port);

	// Up to n packets, which are the caller's; those that were sent are the port's.
	uint16_t (*rx)(const struct port *port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);
	uint16_t (*tx)(const struct port *port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);

	unsigned (*peek)(const struct port *port, uint16_t queue, struct view *view, unsigned n);
	void (*release)(const struct port *port, uint16_t queue, struct view *view);
	unsigned (*peek_spans)(const struct port *port, uint16_t queue, struct view *view,
	                       struct vnf_frame *spans, unsigned n); // or NULL: none, then it is peeked
	unsigned (*peek_alike)(const struct port *port, uint16_t queue, struct view *view, uint32_t length,
	                       unsigned n); // or NULL: none
	unsigned (*deliver)(const struct port *port, uint16_t queue, const struct frame *frames, unsigned n);
	unsigned (*deliver_polled)(const struct port *port, uint16_t queue, const struct frame *frames,
	                           unsigned n); // or NULL: deliver
	unsigned (*pass)(const struct port *from, const struct port *to, uint16_t queue,
	                 struct view *view); // or NULL: deliver_polled
	unsigned (*place)(const struct port *port, uint16_t queue, const struct frame *frames, unsigned n,
	                  bool final, struct placed *placed); // or NULL, and so is the next
	void (*send_placed)(const struct port *port, uint16_t queue, const struct placed *placed, unsigned n);
	void (*warm)(const struct port *port, uint16_t queue);  // or NULL: nothing
	void (*flush)(const struct port *port, uint16_t queue); // or NULL: nothing is ever owed

	// Buffers to be filled: reserve and publish, or neither. lend and take_back may be NULL: nothing to do.
	int (*lend)(struct port *port, uint16_t queue, port_filler *fill);
	void (*take_back)(struct port *port, uint16_t queue);
	unsigned (*reserve)(const struct port *port, uint16_t queue, const uint16_t *lengths, uint8_t **data,
	                    unsigned n);
	unsigned (*publish)(const struct port *port, uint16_t queue, unsigned n);

	// Time stamps of the device in ns, of a port whose clock is PORT_CLOCK_HARDWARE; for its worker. NULL in kinds
	// without. stamp_next: the device shall stamp frame number index of those that are reserved. stamp_sent: the
	// stamp of such a frame, once, when it is there: one at a time.
	bool (*stamp_received)(const struct port *port, const struct rte_mbuf *m, uint64_t *ns);
	void (*stamp_next)(const struct port *port, uint16_t queue, unsigned index);
	bool (*stamp_sent)(const struct port *port, uint64_t *ns);

	// NULL for a port without offloads. What was asked for in the view that was peeked last; and sending frames of
	// such a view, each as the other end accepts it.
	struct offload_room *(*offloads)(const struct port *port, uint16_t queue);
	struct offload_sent (*send_offloads)(const struct port *port, uint16_t queue,
	                                     struct offload_room *room, const struct frame *frames,
	                                     unsigned n);

	// Between two ports of this kind, or NULL: see port_xconnect().
	struct port_moved (*xconnect)(const struct port *from, const struct port *to, uint16_t queue,
	                              uint16_t n);

	void (*flush_all)(const struct port *port); // or NULL: nothing
	bool (*link_up)(const struct port *port);
	uint32_t (*speed_mbps)(const struct port *port);                 // or NULL: 0, not known
	const char *(*driver)(const struct port *port);                  // or NULL: "planed"
	int (*mac)(const struct port *port, struct rte_ether_addr *mac); // or NULL: port->mac
	void (*counters)(const struct port *port, struct port_counters *counters);
	bool (*negotiated)(const struct port *port, struct negotiated *out); // or NULL: nobody knows
};

struct port {
	const struct port_ops *ops;
	void *own;         // of the kind
	uint16_t port_id;  // of an ethdev, or RTE_MAX_ETHPORTS
	uint32_t if_index; // of the kernel's interface whose state is the port's; 0: the device knows its own
	struct config_port config;
	char device[CONFIG_DEVICE_MAX]; // ethdev name, as DPDK knows it; "planed" or "virtio" without one
	struct rte_ether_addr mac;      // without an ethdev
	struct rte_mempool *rx_pool;    // shared by all ports of the process; not owned
	struct port_counters baseline;  // counters at the last clear
	enum port_clock clock;          // that it has
	bool stamps_ptp_only;           // its device, of what it receives
	bool hotplugged;
};

// One poll of a task: peek; read, or write where port_view_writable(); pass the view, or views of parts of it, or
// place or deliver frames; release. queue: of the port's queue pairs, 0 .. queues - 1. n: at most BURST_FRAMES_MAX.
//
// Between two ports of DPDK frames stay in their mbufs, and between two of our virtio driver, or two memif clients with
// "zero_copy", in their buffers; else they are copied once. An ethdev is called directly: its burst functions are a call of
// their own already.

static inline unsigned view_received(struct view *view, unsigned n)
{
	view->held = (int)n;
	return view->count = n;
}

// Lend up to n frames that have arrived. Returns view->count; if it is not 0, the same poll must end with
// port_release().
static inline unsigned port_peek(const struct port *port, uint16_t queue, struct view *view, unsigned n)
{
	if (port->port_id != RTE_MAX_ETHPORTS)
		return view_received(view, rte_eth_rx_burst(port->port_id, queue, view->pkts, (uint16_t)n));
	return port->ops->peek(port, queue, view, n);
}

// Whether the task may change the frames of a view where they lie: in memory of ours, not a guest's.
static inline bool port_view_writable(const struct port *port, const struct view *view)
{
	return view_in_mbufs(view) || port->ops->view_writable;
}

// The same as port_peek(), for who only reads: where each frame is, in spans; *whole: each in one piece. If it is, the
// view may serve for nothing but its release. A kind can make spans of most frames at less cost than a view.
static inline unsigned port_peek_spans(const struct port *port, uint16_t queue, struct view *view,
                                       struct vnf_frame *spans, unsigned n, bool *whole)
{
	unsigned count = port->ops->peek_spans(port, queue, view, spans, n);

	*whole = true;
	if (likely(count))
		return count;
	count = port_peek(port, queue, view, n);
	if (count)
		*whole = view_spans(view, spans);
	return count;
}

// The same of frames that all have this length, for who does not even read. Returns 0 if one of them has another, and where
// the kind cannot tell lengths without the frames.
static inline unsigned port_peek_alike(const struct port *port, uint16_t queue, struct view *view,
                                       uint32_t length, unsigned n)
{
	return port->ops->peek_alike(port, queue, view, length, n);
}

// Give all of a view back, whatever the task left in it.
static inline void port_release(const struct port *port, uint16_t queue, struct view *view)
{
	if (view->held > 0)
		rte_pktmbuf_free_bulk(view->pkts, (unsigned)view->held);
	else if (!view_in_mbufs(view))
		port->ops->release(port, queue, view);
}

// port_pass() of mbufs to anything but an ethdev.
unsigned port_pass_mbufs(const struct port *to, uint16_t queue, struct view *view);

// Copy n frames out of the port, in order. Returns how many it took: a frame that can never fit is taken, and counted.
// The other end may not be woken yet, nor is it by port_publish(): the next call does it, or port_warm() in a poll that has
// nothing to send, or port_flush().
static inline unsigned port_deliver(const struct port *port, uint16_t queue, const struct frame *frames,
                                    unsigned n)
{
	return port->ops->deliver(port, queue, frames, n);
}

// The same, by a task that receives from this queue of the port as well: these polls wake an other end that could not be seen
// to sleep, or that was woken a moment ago.
static inline unsigned port_deliver_polled(const struct port *port, uint16_t queue,
                                           const struct frame *frames, unsigned n)
{
	return port->ops->deliver_polled(port, queue, frames, n);
}

// Whether port_place() is there.
static inline bool port_places(const struct port *port)
{
	return port->ops->place != NULL;
}

// Copy the first of n frames, in order, to where they will leave the port from: in placed->frames they are to be changed
// before they do. Returns how many; unless that is 0, the same poll goes on to port_send_placed(), which sends the first of
// them, all or none. The others may be delivered after that; final: if the port is full, they never are, and are counted as
// not taken. The task receives from this queue of the port as well.
static inline unsigned port_place(const struct port *port, uint16_t queue, const struct frame *frames,
                                  unsigned n, bool final, struct placed *placed)
{
	return port->ops->place(port, queue, frames, n, final, placed);
}

static inline void port_send_placed(const struct port *port, uint16_t queue, const struct placed *placed,
                                    unsigned n)
{
	port->ops->send_placed(port, queue, placed, n);
}

// Hand the frames of a view of from on to another port, in order: as they are where both are of one kind that can, else
// by one copy. Returns how many it took. The view, if it is not a part, must still be released; its frames are gone. The
// task receives from this queue of to as well: see port_deliver_polled().
static inline unsigned port_pass(const struct port *from, const struct port *to, uint16_t queue,
                                 struct view *view)
{
	unsigned count = view->count, sent;

	if (!view_in_mbufs(view))
		return to->ops->pass(from, to, queue, view);
	if (to->port_id == RTE_MAX_ETHPORTS)
		return port_pass_mbufs(to, queue, view);
	sent = rte_eth_tx_burst(to->port_id, queue, view->pkts, (uint16_t)count);
	if (unlikely(sent < count))
		rte_pktmbuf_free_bulk(&view->pkts[sent], count - sent);
	view->held = 0;
	return sent;
}

// The same of frames that may go to other ports, too.
static inline unsigned port_pass_shared(const struct port *from, const struct port *to, uint16_t queue,
                                        struct view *view)
{
	return view_in_mbufs(view) ? port_pass(from, to, queue, view)
	                           : port_deliver_polled(to, queue, view->frames, view->count);
}

// Whether frames of the port may come with offloads: only port_send() hands them on.
static inline bool port_has_offloads(const struct port *port)
{
	return port->ops->offloads != NULL;
}

// port_pass(), or port_pass_shared(), for any two ports: what the other end does not accept of a frame's offload is done
// here, so that a frame may become several. Returns how many frames these were, and how many it took.
struct offload_sent port_send(const struct port *from, const struct port *to, uint16_t queue,
                              struct view *view, bool shared);

// Whether the port lends buffers to be filled: no copy at all.
static inline bool port_lends(const struct port *port)
{
	return port->ops->reserve != NULL;
}

// Whether these are the other end's: nothing that was written to one is still there when it is lent again.
static inline bool port_lends_others(const struct port *port)
{
	return port->ops->tx_memory_is_peers;
}

// A task is going to send on this queue in buffers that the port lends. They belong to it until port_take_back(): what
// it wrote behind the bytes that it writes each time is still there the next time round, but for port_lends_others().
// Returns 1 if fill was called for every buffer that there is, 0 if they come and go, and the task must fill those that it
// has not seen; or -errno after logging one line. Control thread, both.
static inline int port_lend(struct port *port, uint16_t queue, port_filler *fill)
{
	return port->ops->lend(port, queue, fill);
}

static inline void port_take_back(struct port *port, uint16_t queue)
{
	port->ops->take_back(port, queue);
}

// Lend up to n buffers for frames of these lengths: data[i] says where. Each is as large as the room of an mbuf of the process,
// or, of the other end's, as the frame and 128 bytes at least. Returns how many. Unless that is 0, the same poll goes on to
// port_publish(); lengths must stay until then. Nothing needs to be given back: what is not published is lent again.
static inline unsigned port_reserve(const struct port *port, uint16_t queue, const uint16_t *lengths,
                                    uint8_t **data, unsigned n)
{
	return port->ops->reserve(port, queue, lengths, data, n);
}

// Send the n buffers that were reserved. Returns how many the port took.
static inline unsigned port_publish(const struct port *port, uint16_t queue, unsigned n)
{
	return port->ops->publish(port, queue, n);
}

// Nothing was sent in this poll: wake the other end if it still has to be, and have in this core's cache what the next
// frame out of the port will need, so that a frame after a long silence is as fast as one of many. For the task that sends.
static inline void port_warm(const struct port *port, uint16_t queue)
{
	port->ops->warm(port, queue);
}

// The sender of this queue stops for long: wake the other end if it still has to be. The worker that sends, or the
// control thread while it is parked.
static inline void port_flush(const struct port *port, uint16_t queue)
{
	port->ops->flush(port, queue);
}

// Whether port_xconnect() can move frames between them.
static inline bool port_can_xconnect(const struct port *from, const struct port *to)
{
	return from->ops == to->ops && from->ops->xconnect;
}

// Move up to n frames from one port to the other without a look at them. What the receiver does not take is dropped.
static inline struct port_moved port_xconnect(const struct port *from, const struct port *to, uint16_t queue,
                                              uint16_t n)
{
	return from->ops->xconnect(from, to, queue, n);
}

// Create, configure and start the device. Returns 0, or -errno after logging one line.
int port_open(struct port *port, const struct config_port *config, struct rte_mempool *rx_pool);

// Begin to close a port, and end that. Who closes several stops all of them first: what one waits for, all wait for at a
// time. No worker uses it.
void port_stop(struct port *port);
void port_close(struct port *port);

// The workers that polled this port have ended: pay what they owe its other end, as port_flush() does of one queue,
// both ways. Control thread, while no worker runs.
void port_flush_all(const struct port *port);

// Any thread, also a worker: does not log.
static inline bool port_link_up(const struct port *port)
{
	return port->ops->link_up(port);
}

// The speed of its link as the device says, of a virtual one in name only; 0: not known. Control thread.
uint32_t port_speed_mbps(const struct port *port);

// What drives it: DPDK's name of the driver; "planed" for rings of our own.
const char *port_driver(const struct port *port);

// The state of an interface of the kernel is the port's from now on; 0: of none. Control thread.
void port_watch_interface(struct port *port, uint32_t index);

// Whether it is up and has a carrier; true without one. Any thread.
bool port_interface_runs(const struct port *port);

// Its MAC address. Returns 0 or -errno.
int port_mac(const struct port *port, struct rte_ether_addr *mac);

// Counters since it was opened; no worker may use the port meanwhile.
void port_read_counters(const struct port *port, struct port_counters *counters);

// What both ends have negotiated. Returns false, and zeros, if nobody knows or there is no other end.
bool port_negotiated(const struct port *port, struct negotiated *out);

// --- Kinds -----------------------------------------------------------------------------------------------

struct port_kind {
	struct port_ops *ops;
	struct port_kind *next;
};

void port_kind_register(struct port_kind *kind);

// Put what is done instead in the place of each operation that a kind lacks, and of which it says "or NULL: so": no caller
// asks. PORT_KIND() does it; PORT_VARIANT() for operations that a kind takes instead when it opens.
void port_ops_resolve(struct port_ops *ops);
#define PORT_VARIANT(ops_)                                                                                   \
	__attribute__((constructor)) static void ops_##_resolve(void)                                        \
	{                                                                                                    \
		port_ops_resolve(&(ops_));                                                                   \
	}

// At the end of the file of a kind: PORT_KIND(foo_port_ops).
#define PORT_KIND(ops_)                                                                                      \
	__attribute__((constructor)) static void ops_##_register(void)                                       \
	{                                                                                                    \
		static struct port_kind kind = {.ops = &(ops_)};                                             \
                                                                                                             \
		port_kind_register(&kind);                                                                   \
	}

// Return the kind of these values of "kind" and "backend" ("": the default), or NULL.
const struct port_ops *port_ops_find(const char *kind, const char *backend);

// Return the names of all kinds, or of the backends of one, in the order of the alphabet with a blank between them.
const char *port_kinds(void);
const char *port_backends(const char *kind);

extern struct port_ops ethdev_port_ops; // for tests that make their own

// The MAC address of a port without an ethdev: the document's, or one of our own.
struct rte_ether_addr port_own_mac(const struct config_port *config);
