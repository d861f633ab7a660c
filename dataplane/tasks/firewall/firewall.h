// SPDX-License-Identifier: BSD-3-Clause
// What the files of the firewall share: its struct, its settings, what it tells (docs/nf/firewall.md).
#pragma once

#include "tasks/firewall/firewall_acl.h"

enum {
	FIREWALL_DROP_RULE = PACKET_FAULTS,
	FIREWALL_DROP_DEFAULT,
	FIREWALL_DROP_FRAGMENT,
	FIREWALL_DROP_TINY_FRAGMENT,
};

struct firewall_settings {
	bool default_permit, not_ip_permit, fragments_drop;
	struct rule_list list; // the caller's, rule_list_free()
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

// Read a task's settings and the file they name. Returns 0, or -EINVAL with a sentence in error
// (CONFIG_ERROR_MAX).
int firewall_settings_read(struct firewall_settings *settings, const struct config_task *config, char *error);

void firewall_report(const struct vnf *vnf, json_t *object);
extern const struct vnf_method firewall_methods[];
