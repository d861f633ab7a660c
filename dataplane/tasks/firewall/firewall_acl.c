// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/firewall/firewall_acl.h"

#include <errno.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "lib/isa.h"
#include "lib/log.h"

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

static size_t memory_free(void)
{
	struct rte_malloc_socket_stats stats;

	return rte_malloc_get_socket_stats((int)rte_socket_id(), &stats) == 0 ? stats.greatest_free_size : 0;
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

int firewall_acl_build(struct firewall_acl *acl, const struct rule_list *list, const char *task)
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
	firewall_acl_free(acl);
	return status;
}

void firewall_acl_free(struct firewall_acl *acl)
{
	for (unsigned i = 0; i < FIREWALL_CLASSES; i++)
		rte_acl_free(acl->classes[i]);
	memset(acl, 0, sizeof(*acl));
}
