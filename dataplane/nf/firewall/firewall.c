// SPDX-License-Identifier: BSD-3-Clause
// firewall: rules on the 5-tuple, the first that matches permits or drops, else a default does
// (METHODOLOGY.md s4, can17). What is permitted leaves by the other port with its addresses.
// docs/network-functions.md says what users see.
//
// Stateless: no connections, no reassembly. A fragment but the first has no ports and matches only rules that
// name none (RFC 1858 s2); what fragments could hide is dropped. Nothing of a packet but its addresses is
// changed.
#include <errno.h>
#include <netinet/in.h>
#include <rte_acl.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "base/log.h"
#include "base/packet.h"
#include "base/schema.h"
#include "nf/firewall/rule.h"
#include "nf/vnf.h"

// A list of rules as tries of DPDK's rte_acl, and what a burst of packets matches in them. Packets with ports
// and packets without are looked up in tries of their own, IPv4 and IPv6 too: four classes. A rule that names
// ports is only in those of packets that have them.
//
// Memory: EAL's for the tries, the heap's while they are built. Control thread, except
// firewall_acl_classify().

enum firewall_class {
	FIREWALL_V4,          // with ports
	FIREWALL_V4_PORTLESS, // ICMP, fragments but the first, and protocols that have none
	FIREWALL_V6,
	FIREWALL_V6_PORTLESS,
	FIREWALL_CLASSES,
};

// What a packet is looked up by begins at its protocol and has the layout of a header without options: in
// most packets it need not be gathered.
enum {
	FIREWALL_V4_KEY = 9, // offset in an IPv4 header: protocol, TTL's checksum, addresses, ports
	FIREWALL_V6_KEY = 6, // in an IPv6 header: next header, hop limit, addresses, ports
	FIREWALL_V4_PORTS = 20 - FIREWALL_V4_KEY,
	FIREWALL_V6_PORTS = 40 - FIREWALL_V6_KEY,
	FIREWALL_KEY_BYTES = FIREWALL_V6_PORTS + 4,
};

struct firewall_acl {
	struct rte_acl_ctx *classes[FIREWALL_CLASSES]; // NULL where no rule is
	enum rte_acl_classify_alg method;
};

// Which rule each of n packets of one class matches first: 1 is the list's first, 0 none. Any thread.
static inline void firewall_acl_classify(const struct firewall_acl *acl, enum firewall_class which,
                                         const uint8_t **keys, unsigned n, uint32_t *rules)
{
	if (likely(acl->classes[which]))
		rte_acl_classify_alg(acl->classes[which], keys, rules, n, 1, acl->method);
	else
		memset(rules, 0, n * sizeof(*rules));
}

// What the files of the firewall share: its struct, its settings, what it tells (docs/network-functions.md).

enum {
	FIREWALL_DROP_RULE = PACKET_FAULTS,
	FIREWALL_DROP_DEFAULT,
	FIREWALL_DROP_FRAGMENT,
	FIREWALL_DROP_TINY_FRAGMENT,
};

enum { PATH_BYTES = 256 };

struct firewall_settings {
	struct vnf_settings vnf;
	int default_permit, not_ip_permit, fragments_drop; // 0 or 1
	char rules_file[PATH_BYTES];
	struct rule_list list;
};

struct firewall_counter {
	uint64_t packets, bytes;
};

// counters[] and actions[] by the rule that matched: 0 none, 1 the first of list. actions[]: 0 permit, or the
// verdict.
struct firewall {
	struct vnf vnf;
	struct firewall_acl acl;
	struct firewall_counter *counters;
	uint8_t *actions;
	struct firewall_counter not_ip; // permitted
	struct firewall_settings settings;
};

// --- Rules as tries --------------------------------------------------------------------------------------

enum {
	V6_WORDS = RULE_ADDRESS_BYTES / 4,
	V4_FIELDS = 5, // protocol, from, to, ports from, ports to
	V6_FIELDS = 3 + 2 * V6_WORDS,
	MEMORY_SHARE = 2, // a build may have this part of the largest free piece
};

RTE_ACL_RULE_DEF(acl_rule, V6_FIELDS);

// --- Fields: where they are in a packet ------------------------------------------------------------------

static bool is_v4(enum firewall_class which)
{
	return which <= FIREWALL_V4_PORTLESS;
}

static bool has_ports(enum firewall_class which)
{
	return which == FIREWALL_V4 || which == FIREWALL_V6;
}

static void field_add(struct rte_acl_config *config, uint8_t type, uint8_t size, uint8_t input,
                      uint32_t offset)
{
	config->defs[config->num_fields] = (struct rte_acl_field_def){
	        .type = type,
	        .size = size,
	        .field_index = (uint8_t)config->num_fields,
	        .input_index = input, // fields of one input are four bytes together
	        .offset = offset,
	};
	config->num_fields++;
}

static void fields_set(struct rte_acl_config *config, enum firewall_class which)
{
	const unsigned address = is_v4(which) ? 4 : RULE_ADDRESS_BYTES;
	const uint32_t ports = is_v4(which) ? FIREWALL_V4_PORTS : FIREWALL_V6_PORTS;
	uint8_t input = 0;

	*config = (struct rte_acl_config){.num_categories = 1};
	field_add(config, RTE_ACL_FIELD_TYPE_BITMASK, sizeof(uint8_t), input++, 0);
	for (uint32_t offset = ports - 2 * address; offset < ports; offset += 4)
		field_add(config, RTE_ACL_FIELD_TYPE_MASK, sizeof(uint32_t), input++, offset);
	if (!has_ports(which))
		return;
	field_add(config, RTE_ACL_FIELD_TYPE_RANGE, sizeof(uint16_t), input, ports);
	field_add(config, RTE_ACL_FIELD_TYPE_RANGE, sizeof(uint16_t), input, ports + 2);
}

// --- Rules -----------------------------------------------------------------------------------------------

static bool belongs(const struct rule *rule, enum firewall_class which)
{
	uint8_t family = rule_family(rule);

	if (rule_names_ports(rule) && !has_ports(which))
		return false;
	return family == 0 || (family == 4) == is_v4(which);
}

// Addresses in words of four bytes, each with its part of the prefix.
static struct rte_acl_field *set_address(struct rte_acl_field *field, const struct rule_end *end,
                                         unsigned words)
{
	for (unsigned i = 0; i < words; i++, field++) {
		const uint8_t *a = end->address + 4 * i;
		unsigned bits = end->prefix > 32 * i ? end->prefix - 32 * i : 0;

		field->value.u32 = (uint32_t)a[0] << 24 | (uint32_t)a[1] << 16 | (uint32_t)a[2] << 8 | a[3];
		field->mask_range.u32 = bits < 32 ? bits : 32;
	}
	return field;
}

static void set_ports(struct rte_acl_field *field, const struct rule_end *end)
{
	field->value.u16 = end->port_low;
	field->mask_range.u16 = end->port_high;
}

// at: its place in the list. The highest priority wins: the first rule.
static void rule_convert(struct acl_rule *to, const struct rule *rule, unsigned at, enum firewall_class which)
{
	const unsigned words = is_v4(which) ? 1 : V6_WORDS;
	struct rte_acl_field *field = to->field;

	memset(to, 0, sizeof(*to));
	to->data.category_mask = 1;
	to->data.priority = RULE_LIST_MAX - (int32_t)at;
	to->data.userdata = at + 1;
	field->value.u8 = rule->protocol;
	field->mask_range.u8 = rule->any_protocol ? 0 : UINT8_MAX;
	field = set_address(field + 1, &rule->from, words);
	field = set_address(field, &rule->to, words);
	if (has_ports(which)) {
		set_ports(field, &rule->from);
		set_ports(field + 1, &rule->to);
	}
}

static unsigned rules_add(struct rte_acl_ctx *context, const struct rule_list *list,
                          enum firewall_class which)
{
	struct acl_rule rule;
	unsigned added = 0;

	for (unsigned i = 0; i < list->count; i++)
		if (belongs(&list->rules[i], which)) {
			rule_convert(&rule, &list->rules[i], i, which);
			added += rte_acl_add_rules(context, (struct rte_acl_rule *)&rule, 1) == 0;
		}
	return added;
}

static unsigned rules_count(const struct rule_list *list, enum firewall_class which)
{
	unsigned count = 0;

	for (unsigned i = 0; i < list->count; i++)
		count += belongs(&list->rules[i], which);
	return count;
}

// --- Tries -----------------------------------------------------------------------------------------------

// Whether this CPU, and DPDK as it was built, have a method: a method that was left out says so.
static bool method_works(const struct rte_acl_ctx *context, enum rte_acl_classify_alg method)
{
	const uint8_t key[FIREWALL_KEY_BYTES] = {0}, *keys[] = {key};
	uint32_t rule;

#ifdef ISA_X86
	if (method == RTE_ACL_CLASSIFY_AVX512X32 && !__builtin_cpu_supports("avx512cd"))
		return false;
#endif
	return rte_acl_classify_alg(context, keys, &rule, 1, 1, method) == 0;
}

// Named for each call: rte_acl's own choice does not know of --isa, and leaves out 512 bits unless all of EAL
// is told to use them.
static enum rte_acl_classify_alg method_choose(const struct rte_acl_ctx *context)
{
	static const enum rte_acl_classify_alg methods[ISA_COUNT] = {
#ifdef ISA_X86
	        [ISA_SCALAR] = RTE_ACL_CLASSIFY_SSE, // what DPDK is built for
#else
	        [ISA_SCALAR] = RTE_ACL_CLASSIFY_NEON,
#endif
	        [ISA_AVX2] = RTE_ACL_CLASSIFY_AVX2,
	        [ISA_AVX512] = RTE_ACL_CLASSIFY_AVX512X32,
	};

	for (int isa = (int)isa_current(); isa >= 0; isa--)
		if (method_works(context, methods[isa]))
			return methods[isa];
	return RTE_ACL_CLASSIFY_SCALAR;
}

// Without hugepages DPDK has one heap, that of node 0, wherever we run.
static size_t memory_free(void)
{
	int node = rte_eal_has_hugepages() ? (int)rte_socket_id() : 0;
	struct rte_malloc_socket_stats stats;

	return rte_malloc_get_socket_stats(node, &stats) == 0 ? stats.greatest_free_size : 0;
}

static struct rte_acl_ctx *context_create(unsigned rules, uint32_t fields)
{
	static unsigned made; // contexts that are alive at once need names of their own
	char name[RTE_ACL_NAMESIZE];
	const struct rte_acl_param param = {
	        .name = name,
	        .socket_id = (int)rte_socket_id(),
	        .rule_size = (uint32_t)RTE_ACL_RULE_SZ(fields),
	        .max_rule_num = rules,
	};

	snprintf(name, sizeof(name), "firewall-%u", made++);
	return rte_acl_create(&param);
}

// With a limit, rte_acl makes few big tries, which are quicker to ask, and tries smaller ones only where
// those exceed it; without one it makes many small ones at once.
static int class_build(struct firewall_acl *acl, const struct rule_list *list, enum firewall_class which)
{
	unsigned rules = rules_count(list, which);
	struct rte_acl_config config;
	struct rte_acl_ctx *context;
	int status;

	if (rules == 0)
		return 0;
	fields_set(&config, which);
	context = context_create(rules, config.num_fields);
	if (!context)
		return -ENOMEM;
	acl->classes[which] = context;
	if (rules_add(context, list, which) != rules)
		return -EINVAL;
	config.max_size = memory_free() / MEMORY_SHARE;
	status = config.max_size ? rte_acl_build(context, &config) : -ENOMEM;
	if (status == 0)
		acl->method = method_choose(context);
	return status;
}

static void acl_free(struct firewall_acl *acl)
{
	for (unsigned i = 0; i < FIREWALL_CLASSES; i++)
		rte_acl_free(acl->classes[i]);
	memset(acl, 0, sizeof(*acl));
}

// Build from a list. Returns 0, or -errno after logging one line.
static int acl_build(struct firewall_acl *acl, const struct rule_list *list, const char *task)
{
	int status = 0;

	memset(acl, 0, sizeof(*acl));
	for (unsigned i = 0; i < FIREWALL_CLASSES && status == 0; i++)
		status = class_build(acl, list, (enum firewall_class)i);
	if (status == 0)
		return 0;
	LOG_ERROR("task %s: no room for the tries of %u rules in %zu MB of free memory; raise "
	          "memory.size_mb, or "
	          "use fewer rules or ones that overlap less",
	          task, list->count, memory_free() >> 20);
	acl_free(acl);
	return status;
}

// --- Settings --------------------------------------------------------------------------------------------

// Ten, as in can17. The tester's traffic (198.18.N.1 to 198.19.N.1, UDP to 28770, generator.c) is permitted
// by the ninth, and what it sends to the addresses of a router's table by the tenth. The benchmark's nets:
// RFC 2544 appendix C.2.2, RFC 5180 s5.2.1.
static const char rules_default[] = "drop ip from 127.0.0.0/8 to any name=loopback\n"
                                    "drop ip from 224.0.0.0/4 to any name=multicast-source\n"
                                    "drop ip from any to 240.0.0.0/4 name=reserved\n"
                                    "drop tcp from any to any port 135-139 name=netbios\n"
                                    "drop udp from any to any port 19 name=chargen\n"
                                    "permit icmp from any to 198.18.0.0/15 name=ping\n"
                                    "permit tcp from any port 1024-65535 to 192.0.2.0/24 port 80 name=web\n"
                                    "permit ip from 2001:2::/48 to 2001:2::/48 name=bench6\n"
                                    "permit udp from 198.18.0.0/15 port 1024-65535 to 198.18.0.0/15 port "
                                    "28770 name=tester\n"
                                    "permit ip from 198.18.0.0/15 to any name=bench4\n";

static const char *const actions[] = {"drop", "permit", NULL};
static const char *const fragment_ways[] = {"match", "drop", NULL};

static const struct field fields[] = {
        {.key = "rules", .type = FIELD_ANY},
        {.key = "rules_file", FIELD(FIELD_STRING, struct firewall_settings, rules_file)},
        {CHOICE_FIELD("default", struct firewall_settings, default_permit, actions)},
        {CHOICE_FIELD("not_ip", struct firewall_settings, not_ip_permit, actions)},
        {CHOICE_FIELD("fragments", struct firewall_settings, fragments_drop, fragment_ways)},
        {0},
};

static int read_rules(struct firewall_settings *settings, const json_t *rules, char *error)
{
	if (rules && settings->rules_file[0])
		return config_error(error, "settings has both \"rules\" and \"rules_file\"; leave one out");
	if (rules)
		return rule_list_decode(&settings->list, rules, "settings.rules", error);
	if (settings->rules_file[0])
		return rule_list_load(&settings->list, settings->rules_file, error);
	return rule_list_parse(&settings->list, rules_default, strlen(rules_default), "default rules", error);
}

static int firewall_settings_check(const struct config_task *config, const json_t *object, void *settings,
                                   const char *where, char *error)
{
	char reason[RULE_ERROR_MAX] = "";

	if (read_rules(settings, json_object_get(object, "rules"), reason) != 0)
		return config_error(error, "task %s: %.*s", config->name, CONFIG_ERROR_MAX - 48, reason);
	return 0;
}

// --- Report and methods ----------------------------------------------------------------------------------

enum { REPORTED_MAX = 64, PAGE_DEFAULT = 1024, PAGE_MAX = RULE_LIST_MAX };

static json_t *counter_list(const struct firewall_counter *counter)
{
	return json_pack("{sI,sI}", "packets", (json_int_t)counter->packets, "bytes",
	                 (json_int_t)counter->bytes);
}

// at: its place in the list, from 0.
static json_t *rule_list_one(const struct firewall *fw, unsigned at)
{
	const struct rule *rule = &fw->settings.list.rules[at];
	json_t *object = counter_list(&fw->counters[at + 1]);

	json_object_set_new(object, "rule", json_integer(at + 1));
	if (fw->settings.list.in_lines)
		json_object_set_new(object, "line", json_integer(rule->line));
	if (rule->name[0])
		json_object_set_new(object, "name", json_string(rule->name));
	json_object_set_new(object, "action", json_string(rule->permit ? "permit" : "drop"));
	return object;
}

static json_t *rules_list(const struct firewall *fw, unsigned from, unsigned to)
{
	json_t *rules = json_array();

	for (unsigned i = from; i < to; i++)
		json_array_append_new(rules, rule_list_one(fw, i));
	return rules;
}

static const struct counter counters[] = {
        COUNTER("not_ip_permitted.packets", struct firewall, not_ip.packets),
        COUNTER("not_ip_permitted.bytes", struct firewall, not_ip.bytes),
        {0},
};

static void firewall_report(const struct task *task, json_t *object, uint64_t now_tsc)
{
	const struct firewall *fw = (const struct firewall *)task;
	unsigned count = fw->settings.list.count;
	json_t *otherwise = counter_list(&fw->counters[0]);

	json_object_set_new(otherwise, "action",
	                    json_string(fw->settings.default_permit ? "permit" : "drop"));
	json_object_set_new(object, "rule_count", json_integer(count));
	json_object_set_new(object, "rules", rules_list(fw, 0, count < REPORTED_MAX ? count : REPORTED_MAX));
	json_object_set_new(object, "default", otherwise);
}

static const struct task_page page_defaults = {.limit = PAGE_DEFAULT};
static const struct field page_fields[] = {TASK_PAGE_FIELDS(1, PAGE_MAX), {0}};

static json_t *call_rules(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	const struct firewall *fw = (const struct firewall *)task;
	const struct task_page *page = params;
	uint64_t count = fw->settings.list.count, from = RTE_MIN(page->from, count),
	         to = RTE_MIN(from + page->limit, count);

	return task_page("rules", rules_list(fw, (unsigned)from, (unsigned)to), to < count, to);
}

static const struct task_method firewall_methods[] = {
        {.name = "rules", .call = call_rules, .fields = page_fields, TASK_DEFAULTS(page_defaults)}, {0}};

enum { TCP_HIDDEN_AT = 8 }; // RFC 3128 s3: what a second fragment there would write over the flags

static const struct counter drops[] = {
        VNF_PACKET_DROPS,
        VNF_DROP_COUNTER(FIREWALL_DROP_RULE, "rule"),
        VNF_DROP_COUNTER(FIREWALL_DROP_DEFAULT, "default"),
        VNF_DROP_COUNTER(FIREWALL_DROP_FRAGMENT, "fragment"),
        VNF_DROP_COUNTER(FIREWALL_DROP_TINY_FRAGMENT, "tiny_fragment"),
        {0},
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
	enum packet_fault fault = vnf_parse(&fw->vnf, frame, &p);
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

static bool firewall_process(struct vnf *vnf, unsigned in, struct vnf_frame *frames, unsigned n,
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

static void firewall_settings_free(void *settings)
{
	rule_list_free(&((struct firewall_settings *)settings)->list);
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
	size_t count;

	fw->settings = *(const struct firewall_settings *)config->settings;
	count = (size_t)fw->settings.list.count + 1;
	fw->counters = calloc(count, sizeof(*fw->counters));
	fw->actions = calloc(count, sizeof(*fw->actions));
	if (!fw->counters || !fw->actions) {
		LOG_ERROR("task %s: no memory for %zu rules", config->name, count);
		return -ENOMEM;
	}
	actions_set(fw);
	return acl_build(&fw->acl, &fw->settings.list, config->name);
}

static void firewall_close(struct vnf *vnf)
{
	struct firewall *fw = (struct firewall *)vnf;

	acl_free(&fw->acl);
	free(fw->counters);
	free(fw->actions);
}

static void firewall_clear(struct task *task)
{
	struct firewall *fw = (struct firewall *)task;

	memset(fw->counters, 0, ((size_t)fw->settings.list.count + 1) * sizeof(*fw->counters));
}

static const struct vnf_ops firewall_vnf = {
        .size = sizeof(struct firewall),
        .cost_is_process = true,
        .settings_fields = fields,
        .settings_check = firewall_settings_check,
        .open = firewall_open,
        .close = firewall_close,
        .process = firewall_process,
};

static const struct task_ops firewall_ops = {
        VNF_TASK_OPS("firewall", &firewall_vnf, drops, vnf_keys, struct firewall_settings),
        .settings_free = firewall_settings_free,
        .counters = counters,
        .clear = firewall_clear,
        .report = firewall_report,
        .methods = firewall_methods,
        .ports_min = 2,
        .ports_max = 2,
};
TASK_KIND(firewall_ops)
