// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/report_virtio.h"

#include <stdio.h>

#include <rte_eth_vhost.h>
#include <rte_vhost.h>

#include "port/port.h"

enum { FEATURE_BITS = 64 };

// virtio 1.2 s5.1.3 and s6, in lower case and without their prefix; 30 is vhost-user's own.
static const char *const feature_names[FEATURE_BITS] = {
        [0] = "csum",
        [1] = "guest_csum",
        [2] = "ctrl_guest_offloads",
        [3] = "mtu",
        [5] = "mac",
        [6] = "gso",
        [7] = "guest_tso4",
        [8] = "guest_tso6",
        [9] = "guest_ecn",
        [10] = "guest_ufo",
        [11] = "host_tso4",
        [12] = "host_tso6",
        [13] = "host_ecn",
        [14] = "host_ufo",
        [15] = "mrg_rxbuf",
        [16] = "status",
        [17] = "ctrl_vq",
        [18] = "ctrl_rx",
        [19] = "ctrl_vlan",
        [20] = "ctrl_rx_extra",
        [21] = "guest_announce",
        [22] = "mq",
        [23] = "ctrl_mac_addr",
        [24] = "notify_on_empty",
        [26] = "log_all",
        [27] = "any_layout",
        [28] = "indirect_desc",
        [29] = "event_idx",
        [30] = "protocol_features",
        [32] = "version_1",
        [33] = "access_platform",
        [34] = "packed",
        [35] = "in_order",
        [36] = "order_platform",
        [37] = "sr_iov",
        [38] = "notification_data",
};

static json_t *feature_list(uint64_t features)
{
	json_t *list = json_array();

	for (unsigned bit = 0; bit < FEATURE_BITS; bit++) {
		char number[8];

		if (!(features >> bit & 1))
			continue;
		snprintf(number, sizeof(number), "bit_%u", bit);
		json_array_append_new(list, json_string(feature_names[bit] ? feature_names[bit] : number));
	}
	return list;
}

// "backend": "dpdk". The library speaks for itself: its connection may go at any time, and then says nothing.
static bool library_negotiated(const struct port *port, struct negotiated *out)
{
	int vid = rte_eth_vhost_get_vid_from_port_id(port->port_id);

	if (vid < 0 || !port_link_up(port) || rte_vhost_get_negotiated_features(vid, &out->features))
		return false;
	out->rings = 2 * port->config.queues;
	for (unsigned i = 0; i < out->rings; i++) {
		struct rte_vhost_vring vring = {0};

		if (rte_vhost_get_vhost_vring(vid, (uint16_t)i, &vring) == 0 && vring.desc)
			out->sizes[i] = vring.size;
	}
	return true;
}

static bool negotiated(const struct port *port, struct negotiated *out)
{
	*out = (struct negotiated){0};
	if (port->vhost)
		return vhost_port_negotiated(port->vhost, out);
	if (port->virtio)
		return virtio_port_negotiated(port->virtio, out);
	return port->config.kind == PORT_VHOST_USER && library_negotiated(port, out);
}

json_t *report_virtio(const struct port *port)
{
	struct negotiated found;
	json_t *sizes;

	if (!negotiated(port, &found))
		return json_null();
	sizes = json_array();
	for (unsigned i = 0; i < found.rings; i++)
		json_array_append_new(sizes, json_integer(found.sizes[i]));
	return json_pack("{s:o, s:o}", "features", feature_list(found.features), "ring_sizes", sizes);
}
