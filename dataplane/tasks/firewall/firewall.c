// SPDX-License-Identifier: BSD-3-Clause
// firewall: rules on the 5-tuple, the first that matches permits or drops, else a default does
// (METHODOLOGY.md s4, can17). What is permitted leaves by the other port with its addresses.
// docs/nf/firewall.md says what users see.
//
// Stateless: no connections, no reassembly. A fragment but the first has no ports and matches only rules that
// name none (RFC 1858 s2); what fragments could hide is dropped. Nothing of a packet but its addresses is
// changed.
#include "tasks/firewall/firewall.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/log.h"

enum { TCP_HIDDEN_AT = 8 }; // RFC 3128 s3: what a second fragment there would write over the flags

static const char *const drops[] = {
        PACKET_DROPS,
        [FIREWALL_DROP_RULE] = "rule",
        [FIREWALL_DROP_DEFAULT] = "default",
        [FIREWALL_DROP_FRAGMENT] = "fragment",
        [FIREWALL_DROP_TINY_FRAGMENT] = "tiny_fragment",
        NULL,
};

// --- Verdicts --------------------------------------------------------------------------------------------

static inline uint8_t verdict_of(struct firewall *fw, unsigned out, const struct vnf_frame *frame,
                                 uint32_t rule)
{
	struct firewall_counter *counter = &fw->counters[rule];
	uint8_t action = fw->actions[rule];

	counter->packets++;
	counter->bytes += frame->total + RTE_ETHER_CRC_LEN;
	if (unlikely(action))
		return action;
	vnf_write_macs(&fw->vnf, out, frame->data);
	return (uint8_t)out;
}

// Every packet is plain: keys are where they are.
static inline bool process_plain(struct firewall *fw, unsigned out, const struct vnf_frame *frames,
                                 const uint8_t **keys, unsigned n, uint8_t *verdicts)
{
	uint32_t rules[CONFIG_BURST_MAX];
	uint8_t all = 0;

	firewall_acl_classify(&fw->acl, FIREWALL_V4, keys, n, rules);
	for (unsigned i = 0; i < n; i++)
		all |= verdicts[i] = verdict_of(fw, out, &frames[i], rules[i]);
	return !(all & VNF_DROP);
}

// --- A mixed burst: classes are looked up apart ----------------------------------------------------------

struct mixed {
	struct class_keys {
		unsigned count;
		uint8_t at[CONFIG_BURST_MAX]; // in the burst
		const uint8_t *keys[CONFIG_BURST_MAX];
	} classes[FIREWALL_CLASSES];
	uint8_t room[CONFIG_BURST_MAX][FIREWALL_KEY_BYTES]; // of keys that do not lie in their packet
};

static enum firewall_class class_of(const struct packet *p)
{
	if (p->version == 4)
		return p->has_ports ? FIREWALL_V4 : FIREWALL_V4_PORTLESS;
	return p->has_ports ? FIREWALL_V6 : FIREWALL_V6_PORTLESS;
}

// Protocol and ports are behind options and extension headers: gather them.
static const uint8_t *key_of(const struct vnf_frame *frame, const struct packet *p, uint8_t *room)
{
	const unsigned offset = p->version == 4 ? FIREWALL_V4_KEY : FIREWALL_V6_KEY;
	const unsigned ports = p->version == 4 ? FIREWALL_V4_PORTS : FIREWALL_V6_PORTS;
	const uint8_t *key = frame->data + p->l3 + offset;

	if (p->l4 == p->l3 + offset + ports || (p->version == 4 && !p->has_ports))
		return key;
	memcpy(room, key, ports);
	room[0] = p->protocol;
	memcpy(room + ports, &p->src_port, sizeof(p->src_port));
	memcpy(room + ports + sizeof(p->src_port), &p->dst_port, sizeof(p->dst_port));
	return room;
}

static uint8_t not_ip(struct firewall *fw, unsigned out, const struct vnf_frame *frame)
{
	if (!fw->settings.not_ip_permit)
		return VNF_DROP | PACKET_NOT_IP;
	fw->not_ip.packets++;
	fw->not_ip.bytes += frame->total + RTE_ETHER_CRC_LEN;
	vnf_write_macs(&fw->vnf, out, frame->data);
	return (uint8_t)out;
}

static uint8_t fragment_fault(const struct firewall *fw, const struct packet *p)
{
	if (fw->settings.fragments_drop)
		return VNF_DROP | FIREWALL_DROP_FRAGMENT;
	if (p->protocol == IPPROTO_TCP && p->fragment_at == TCP_HIDDEN_AT)
		return VNF_DROP | FIREWALL_DROP_TINY_FRAGMENT;
	return 0;
}

// Its verdict, if it needs no rules, or its key in mixed and 0xff.
static uint8_t sort(struct firewall *fw, unsigned out, const struct vnf_frame *frame, unsigned at,
                    struct mixed *mixed)
{
	struct packet p;
	enum packet_fault fault = packet_parse(frame, &p);
	struct class_keys *class;
	uint8_t verdict;

	if (fault != PACKET_FINE)
		return fault == PACKET_NOT_IP ? not_ip(fw, out, frame) : (uint8_t)(VNF_DROP | fault);
	verdict = p.fragment ? fragment_fault(fw, &p) : 0;
	if (verdict)
		return verdict;
	class = &mixed->classes[class_of(&p)];
	class->at[class->count] = (uint8_t)at;
	class->keys[class->count++] = key_of(frame, &p, mixed->room[at]);
	return 0;
}

static __attribute__((noinline)) bool process_mixed(struct firewall *fw, unsigned out,
                                                    const struct vnf_frame *frames, unsigned n,
                                                    uint8_t *verdicts)
{
	uint32_t rules[CONFIG_BURST_MAX];
	struct mixed mixed;
	uint8_t all = 0;

	for (unsigned i = 0; i < FIREWALL_CLASSES; i++)
		mixed.classes[i].count = 0;
	for (unsigned i = 0; i < n; i++)
		verdicts[i] = sort(fw, out, &frames[i], i, &mixed);
	for (unsigned c = 0; c < FIREWALL_CLASSES; c++) {
		struct class_keys *class = &mixed.classes[c];

		if (class->count)
			firewall_acl_classify(&fw->acl, (enum firewall_class)c, class->keys, class->count,
			                      rules);
		for (unsigned i = 0; i < class->count; i++)
			verdicts[class->at[i]] = verdict_of(fw, out, &frames[class->at[i]], rules[i]);
	}
	for (unsigned i = 0; i < n; i++)
		all |= verdicts[i];
	return !(all & VNF_DROP);
}

static bool firewall_process(struct vnf *vnf, unsigned in, const struct vnf_frame *frames, unsigned n,
                             uint64_t now_tsc, uint8_t *verdicts)
{
	struct firewall *fw = (struct firewall *)vnf;
	const uint8_t *keys[CONFIG_BURST_MAX];

	for (unsigned i = 0; i < n; i++) {
		if (unlikely(!packet_is_plain(&frames[i])))
			return process_mixed(fw, vnf->out[in], frames, n, verdicts);
		keys[i] = frames[i].data + RTE_ETHER_HDR_LEN + FIREWALL_V4_KEY;
	}
	return process_plain(fw, vnf->out[in], frames, keys, n, verdicts);
}

// --- Made and ended --------------------------------------------------------------------------------------

static int firewall_check(const struct config_task *config, char *error)
{
	struct firewall_settings settings;
	int status = firewall_settings_read(&settings, config, error);

	rule_list_free(&settings.list);
	return status;
}

static void actions_set(struct firewall *fw)
{
	const struct rule_list *list = &fw->settings.list;

	fw->actions[0] = fw->settings.default_permit ? 0 : VNF_DROP | FIREWALL_DROP_DEFAULT;
	for (unsigned i = 0; i < list->count; i++)
		fw->actions[i + 1] = list->rules[i].permit ? 0 : VNF_DROP | FIREWALL_DROP_RULE;
}

static int firewall_open(struct vnf *vnf, const struct config_task *config)
{
	struct firewall *fw = (struct firewall *)vnf;
	char error[CONFIG_ERROR_MAX] = "";
	size_t count;

	if (firewall_settings_read(&fw->settings, config, error) != 0) {
		LOG_ERROR("%s", error);
		return -EINVAL;
	}
	count = (size_t)fw->settings.list.count + 1;
	fw->counters = calloc(count, sizeof(*fw->counters));
	fw->actions = calloc(count, sizeof(*fw->actions));
	if (!fw->counters || !fw->actions) {
		LOG_ERROR("task %s: no memory for %zu rules", config->name, count);
		return -ENOMEM;
	}
	actions_set(fw);
	return firewall_acl_build(&fw->acl, &fw->settings.list, config->name);
}

static void firewall_close(struct vnf *vnf)
{
	struct firewall *fw = (struct firewall *)vnf;

	firewall_acl_free(&fw->acl);
	rule_list_free(&fw->settings.list);
	free(fw->counters);
	free(fw->actions);
}

static void firewall_clear(struct vnf *vnf)
{
	struct firewall *fw = (struct firewall *)vnf;

	memset(fw->counters, 0, ((size_t)fw->settings.list.count + 1) * sizeof(*fw->counters));
	memset(&fw->not_ip, 0, sizeof(fw->not_ip));
}

static const struct vnf_ops firewall_vnf = {
        .size = sizeof(struct firewall),
        .drops = drops,
        .check = firewall_check,
        .open = firewall_open,
        .close = firewall_close,
        .process = firewall_process,
        .clear = firewall_clear,
        .report = firewall_report,
        .methods = firewall_methods,
};

const struct task_ops firewall_ops = {
        VNF_TASK_OPS("firewall", &firewall_vnf),
        .ports_min = 2,
        .ports_max = 2,
};
