// SPDX-License-Identifier: BSD-3-Clause
// What network functions have in common: a function looks at a burst of frames where they lie, changes them
// there and says of each by which port it leaves or why it is dropped. Receiving, sending, counting, and the
// stamps of probes are done here (vnf.c), whatever the ports are (port.h).
//
// Where they lie: in mbufs, or the rings of our own driver, as they came. What is in the rings of another end is copied first,
// once: with two ports into buffers of the one by which it leaves, if they hold each frame in one piece (port_place()), else
// to mbufs. If not all of a burst leave by that port, they are copied to mbufs after they were processed.
//
// A new function is a kind of task (task/task.h): a file with a struct vnf_ops and a struct task_ops that has
// VNF_TASK_OPS, and a line in meson.build. Its settings are decoded by itself.
//
// Threads: process() and tick() run on the task's worker, which never allocates, logs, locks or reads a
// clock. All else runs on the control thread while that worker is parked.
//
// rx_packets == tx_packets + drops, always but for what waits in send buffers: at most DRAIN_US_MAX long.
//
// Sides (ports that are received from) are fast, polled each time, or slow: one frame of one of them a poll,
// in turn. Those that carry but control are slow (vnf_side_slow()): 63 of them would cost each poll a
// thousand cycles, and a burst of FIB messages, thousands of routes, would hold up everybody else.
#pragma once

#include <rte_ether.h>
#include <string.h>

#include "base/packet.h"
#include "port/port.h"
#include "task/task.h"

enum {
	VNF_DROP = 0x80,    // a verdict: VNF_DROP | index of drops[]; below: index of ports[]
	VNF_DROPS_MAX = 32, // reasons of a kind
	VNF_MACS_BYTES = 2 * RTE_ETHER_ADDR_LEN,
	VNF_FRONT_BYTES = RTE_VLAN_HLEN,
};

_Static_assert((int)CONFIG_TASK_PORTS_MAX <= (int)VNF_DROP, "a verdict holds a port");

struct vnf;

struct vnf_ops {
	size_t size; // of the kind's struct, which begins with struct vnf; zeroed
	bool cost_is_process; // most of what a frame costs is process(): see next_burst() in vnf.c. Else all leave by out[], or are dropped

	// Fields of the key "settings", in the kind's settings, which begin with struct vnf_settings. settings_check(): as in
	// struct task_ops; object: the key's value, or NULL where it is not there. Both may be NULL.
	const struct field *settings_fields;
	int (*settings_check)(const struct config_task *config, const json_t *object, void *settings,
	                      const char *where, char *error);

	// With config->settings. Returns 0, or -errno after logging one line; then close() is called all the same. May
	// be NULL.
	int (*open)(struct vnf *vnf, const struct config_task *config);
	void (*close)(struct vnf *vnf); // may be NULL

	// Handle n frames (1 .. CONFIG_BURST_MAX) from ports[in]. Returns true if all leave by vnf->out[in]
	// and verdicts were not written, or false when there is one for each. With vnf->moves_starts it may have a frame begin
	// VNF_FRONT_BYTES before where it lies, or anywhere behind: by data, length and total.
	bool (*process)(struct vnf *vnf, unsigned in, struct vnf_frame *frames, unsigned n, uint64_t now_tsc,
	                uint8_t *verdicts);

	// Every millisecond or so, for what time alone does; a bounded amount of work. May be NULL.
	void (*tick)(struct vnf *vnf, uint64_t now_tsc);
};

// What the settings of every kind begin with. send_burst 0: all that leaves does so in the poll it came in.
struct vnf_settings {
	uint32_t send_burst, drain_us; // see send_buffer.h
	unsigned mac_count;
	uint8_t peer_macs[CONFIG_TASK_PORTS_MAX][RTE_ETHER_ADDR_LEN]; // all zero: the default
};

// Keys of a kind: "send_burst" and "drain_us", "peer_macs" unless it writes no addresses of peers, "settings" if it has
// any.
extern const struct field vnf_keys[], vnf_keys_macs[], vnf_keys_settings[];

struct vnf {
	struct task task;
	const struct vnf_ops *ops;
	uint16_t burst;
	uint8_t side_count;                 // of ports[] that are received from: 1 for an echo
	uint8_t out[CONFIG_TASK_PORTS_MAX]; // the other port of each; itself for an echo
	uint8_t fast[CONFIG_TASK_PORTS_MAX], slow[CONFIG_TASK_PORTS_MAX]; // sides
	uint8_t fast_count, slow_count;
	uint8_t slow_next;                          // of slow[], whose turn it is
	uint16_t next_burst[CONFIG_TASK_PORTS_MAX]; // of each side: at most burst
	bool places[CONFIG_TASK_PORTS_MAX]; // of each side: frames are processed in buffers of the port out[]
	uint8_t copied_bursts[CONFIG_TASK_PORTS_MAX]; // of such a side: so many that are not
	bool moves_starts; // set by open(). Frames are processed in mbufs: what lies in a ring begins where it does
	bool sends_later; // by buffers[], one of each side
	struct send_buffer *buffers[CONFIG_TASK_PORTS_MAX];
	uint64_t drain_due_tsc, drain_tsc;
	uint64_t tick_due_tsc, tick_tsc;
	uint64_t empty_tsc[CONFIG_TASK_PORTS_MAX]; // last poll that found nothing, while probes are stamped
	uint64_t drops[VNF_DROPS_MAX];
	uint8_t macs[CONFIG_TASK_PORTS_MAX][VNF_MACS_BYTES]; // destination, source of what leaves ports[i]
};

// Write the addresses of a frame that leaves by ports[out]: the peer's MAC and the port's own.
static inline void vnf_write_macs(const struct vnf *vnf, unsigned out, uint8_t *data)
{
	memcpy(data, vnf->macs[out], VNF_MACS_BYTES);
}

// packet_parse() by the general way, which takes longer the more headers there are: see task_charge().
enum packet_fault vnf_parse_any(struct vnf *vnf, const struct vnf_frame *frame, struct packet *p);

// The same as packet_parse(), for process().
static inline enum packet_fault vnf_parse(struct vnf *vnf, const struct vnf_frame *frame, struct packet *p)
{
	return likely(packet_parse_plain(frame, p)) ? PACKET_FINE : vnf_parse_any(vnf, frame, p);
}

// A fast side, as all are at first, becomes a slow one. For open().
void vnf_side_slow(struct vnf *vnf, unsigned side);

// The functions of struct task_ops that are the same for every kind.
int vnf_settings_check(const struct config_task *config, void *settings, const char *where, char *error);
int vnf_create(const struct config_task *config, struct port *const *ports, struct task **out);
void vnf_destroy(struct task *task);
unsigned vnf_poll(struct task *task, uint64_t now_tsc);

// Process a burst without ports: a verdict for each of n frames in verdicts. For tests and benches.
void vnf_process(struct vnf *vnf, unsigned in, struct vnf_frame *frames, unsigned n, uint64_t now_tsc,
                 uint8_t *verdicts);

// A reason to drop: VNF_DROP | index_ is its verdict. Then those of packet.h.
#define VNF_DROP_COUNTER(index_, name_) [index_] = COUNTER(name_, struct vnf, drops[index_])
#define VNF_PACKET_DROPS                                                                                     \
	VNF_DROP_COUNTER(PACKET_RUNT, "runt"), VNF_DROP_COUNTER(PACKET_TAGS, "tags"),                        \
	        VNF_DROP_COUNTER(PACKET_NOT_IP, "not_ip"), VNF_DROP_COUNTER(PACKET_VERSION, "version"),      \
	        VNF_DROP_COUNTER(PACKET_HEADER_LENGTH, "header_length"),                                     \
	        VNF_DROP_COUNTER(PACKET_LENGTH, "length"), VNF_DROP_COUNTER(PACKET_CHECKSUM, "checksum"),    \
	        VNF_DROP_COUNTER(PACKET_EXTENSIONS, "extensions"),                                           \
	        VNF_DROP_COUNTER(PACKET_TRUNCATED, "truncated")

// Initialisers of a kind's struct task_ops. drops_: a table of VNF_DROP_COUNTER, settings_: the type of its settings.
#define VNF_TASK_OPS(kind_, vnf_ops_, drops_, keys_, settings_)                                              \
	.kind = (kind_), .receives = true, .sends = true, .stamps = true, .vnf = (vnf_ops_),                 \
	.drops = (drops_), .settings_keys = (keys_), .settings_size = sizeof(settings_),                     \
	.settings_check = vnf_settings_check, .create = vnf_create, .destroy = vnf_destroy, .poll = vnf_poll
