// SPDX-License-Identifier: BSD-3-Clause
// fib_offload: made, replaced and ended. Control thread.
#include <errno.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <sys/random.h>

#include "tasks/fib_offload/fib_offload.h"
#include "lib/log.h"

enum {
	NEIGHBOURS = 4096,
	NEIGHBOUR_AGEING_S = 300,
	MAC_TRIES = 100000, // one in eight does for 63 VNFs
};

int offload_check(const struct config_task *config, char *error)
{
	struct offload_settings settings;

	return offload_settings_read(config, &settings, error);
}

// Tasks with one FIB are the same switch on several queues.
int offload_agree(const struct config_task *a, const struct config_task *b, char *error)
{
	struct offload_settings of_a, of_b;

	if (offload_settings_read(a, &of_a, error) || offload_settings_read(b, &of_b, error))
		return -EINVAL;
	if (strcmp(of_a.fib.name, of_b.fib.name) != 0 ||
	    (memcmp(&of_a, &of_b, sizeof(of_a)) == 0 && memcmp(a->ports, b->ports, sizeof(a->ports)) == 0))
		return 0;
	snprintf(error, CONFIG_ERROR_MAX,
	         "tasks %s and %s share the FIB \"%s\": their \"ports\" and \"settings\" must be the same; "
	         "give one of them another \"fib\"",
	         a->name, b->name, of_a.fib.name);
	return -EINVAL;
}

static uint64_t mac_word(const uint8_t mac[RTE_ETHER_ADDR_LEN])
{
	uint64_t word = 0;

	memcpy(&word, mac, RTE_ETHER_ADDR_LEN);
	return word << 16;
}

// With this factor each address has a slot to itself, or it has not.
static bool macs_fit(struct offload *o, uint64_t factor)
{
	memset(o->macs, 0, sizeof(o->macs));
	o->mac_factor = factor;
	for (unsigned i = 0; i < o->vnf_count; i++) {
		uint64_t mac = mac_word(o->vnfs[i].mac), *slot = &o->macs[offload_slot(factor, mac)];

		if (*slot)
			return false;
		*slot = mac | i;
	}
	return true;
}

static uint64_t any_odd(void)
{
	uint64_t word = rte_rdtsc();

	if (getrandom(&word, sizeof(word), GRND_NONBLOCK) != sizeof(word))
		word *= UINT64_C(0x9e3779b97f4a7c15); // early in the life of a machine
	return word | 1;
}

static int macs_set(struct offload *o, const char *task)
{
	uint64_t factor = any_odd();

	for (unsigned i = 0; i < MAC_TRIES; i++, factor += UINT64_C(0x9e3779b97f4a7c14))
		if (macs_fit(o, factor))
			return 0;
	LOG_ERROR("task %s: no place for the MAC addresses of %u VNFs", task, o->vnf_count);
	return -ENOSPC;
}

static void rules_set(struct offload *o)
{
	for (unsigned i = 0; i < o->settings.rule_count; i++) {
		const struct offload_rule *rule = &o->settings.rules[i];
		uint8_t bit = rule->protocol == IPPROTO_TCP ? 1 : rule->protocol == IPPROTO_UDP ? 2 : 0;

		for (unsigned low = 0; low < RTE_DIM(o->doubt); low++)
			if (rule->port == 0 || low == (rte_be_to_cpu_16(rule->port) & 0xff))
				o->doubt[low] |= bit;
	}
}

static void vnf_set(struct offload *o, unsigned i)
{
	const struct offload_vnf_settings *settings = &o->settings.vnfs[i];

	o->vnfs[i] = (struct offload_vnf){
	        .number = settings->vnf,
	        .port = settings->port,
	        .out = o->wire_ports[settings->out],
	        .wires = settings->wires,
	        .offload = settings->offload,
	        .punts_misses = settings->punts_misses,
	        .session = settings->offload ? o->fib->sessions[settings->vnf] : NULL,
	        .punts.credit = o->meter.full,
	};
	memcpy(o->vnfs[i].mac, settings->mac, sizeof(settings->mac));
	o->vnf_of[settings->port] = (uint8_t)i;
	if (settings->offload)
		vnf_side_slow(&o->vnf, settings->port);
}

static void sides_set(struct offload *o)
{
	const struct offload_settings *settings = &o->settings;
	const struct limiter_settings punts = {.rate_pps = settings->punt_pps,
	                                       .burst_packets = settings->punt_burst};

	o->meter = limiter_meter_of(&punts, rte_get_tsc_hz());
	memset(o->wire_of, OFFLOAD_NONE, sizeof(o->wire_of));
	memset(o->vnf_of, OFFLOAD_NONE, sizeof(o->vnf_of));
	memset(o->wire_ports, VNF_DROP | OFFLOAD_NO_ROUTE, sizeof(o->wire_ports));
	for (unsigned i = 0; i < settings->fib.wire_count; i++) {
		o->wire_ports[i] = settings->wire_ports[i];
		o->wire_of[settings->wire_ports[i]] = (uint8_t)i;
	}
	o->vnf_count = settings->vnf_count;
	for (unsigned i = 0; i < o->vnf_count; i++)
		vnf_set(o, i);
	rules_set(o);
}

int offload_open(struct vnf *vnf, const struct config_task *config)
{
	struct offload *o = (struct offload *)vnf;
	uint64_t hz = rte_get_tsc_hz();
	char error[CONFIG_ERROR_MAX];
	int status;

	o->reader = -1;
	if (offload_settings_read(config, &o->settings, error) != 0) {
		LOG_ERROR("%s", error);
		return -EINVAL;
	}
	status = offload_fib_get(&o->settings, config->name, &o->fib);
	if (status)
		return status;
	o->reader = fib_reader_add(o->fib->fib);
	o->neighbours = mac_table_create(NEIGHBOURS, NEIGHBOUR_AGEING_S * hz, hz, any_odd());
	if (o->reader < 0 || !o->neighbours) {
		LOG_ERROR("task %s: no memory, or too many tasks share the FIB \"%s\"", config->name,
		          o->settings.fib.name);
		return o->reader < 0 ? o->reader : -ENOMEM;
	}
	fib_reader_online(o->fib->fib, o->reader);
	sides_set(o);
	return macs_set(o, config->name);
}

void offload_close(struct vnf *vnf)
{
	struct offload *o = (struct offload *)vnf;

	if (o->fib && o->reader >= 0)
		fib_reader_remove(o->fib->fib, o->reader);
	mac_table_destroy(o->neighbours);
	offload_fib_put(o->fib, &o->settings);
}

// No worker runs: sessions that go on have the new settings.
void offload_adopt(struct vnf *vnf, struct vnf *old)
{
	struct offload *o = (struct offload *)vnf;

	offload_fib_set(o->fib, &o->settings);
}
