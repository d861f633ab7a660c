// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>

#include "tasks/firewall/firewall.h"
#include "lib/schema.h"

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

void firewall_report(const struct vnf *vnf, json_t *object)
{
	const struct firewall *fw = (const struct firewall *)vnf;
	unsigned count = fw->settings.list.count;
	json_t *otherwise = counter_list(&fw->counters[0]);

	json_object_set_new(otherwise, "action",
	                    json_string(fw->settings.default_permit ? "permit" : "drop"));
	json_object_set_new(object, "rule_count", json_integer(count));
	json_object_set_new(object, "rules", rules_list(fw, 0, count < REPORTED_MAX ? count : REPORTED_MAX));
	json_object_set_new(object, "default", otherwise);
	json_object_set_new(object, "not_ip_permitted", counter_list(&fw->not_ip));
}

struct page {
	char task[CONFIG_NAME_MAX]; // found already by who calls
	uint32_t from, limit;
};

static const struct field page_fields[] = {
        {.key = "task", FIELD(FIELD_NAME, struct page, task)},
        {.key = "from", FIELD(FIELD_UINT, struct page, from), .max = RULE_LIST_MAX},
        {.key = "limit", FIELD(FIELD_UINT, struct page, limit), .min = 1, .max = PAGE_MAX},
        {0},
};

static json_t *method_rules(struct vnf *vnf, const json_t *params, uint64_t now_tsc, char *error)
{
	const struct firewall *fw = (const struct firewall *)vnf;
	struct page page = {.limit = PAGE_DEFAULT};
	unsigned count = fw->settings.list.count, to;
	json_t *result;

	if (schema_decode(params, page_fields, &page, "params", error) != 0)
		return NULL;
	to = page.from + page.limit < count ? page.from + page.limit : count;
	result = json_pack("{so}", "rules", rules_list(fw, page.from, to));
	json_object_set_new(result, "next", to < count ? json_integer(to) : json_null());
	return result;
}

const struct vnf_method firewall_methods[] = {{"rules", method_rules}, {0}};
