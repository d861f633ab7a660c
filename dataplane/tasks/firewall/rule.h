// SPDX-License-Identifier: BSD-3-Clause
// A filter rule on the 5-tuple and how its parts are read: what a line of a rule file and an object of JSON
// have in common (docs/nf/firewall.md has the grammar). Pure; needs no EAL. The setters take hostile text and
// return 0, or -EINVAL with a reason and a way out in error (RULE_REASON_MAX).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RULE_NAME_MAX = 32, RULE_REASON_MAX = 144, RULE_ADDRESS_BYTES = 16 };

// Addresses of one end: the first bits of address[], in network order. IPv4 has 4 bytes there.
struct rule_end {
	uint8_t family; // 4, 6, or 0: any address of either
	uint8_t prefix; // bits
	uint8_t address[RULE_ADDRESS_BYTES];
	bool names_ports;
	uint16_t port_low, port_high; // host order; all of them if none are named
};

struct rule {
	bool permit;
	bool any_protocol;
	uint8_t protocol;
	struct rule_end from, to;
	uint32_t line; // in its file, or its place in the array: from 1
	char name[RULE_NAME_MAX];
};

// What matches everything; permit.
void rule_default(struct rule *rule);

int rule_set_action(struct rule *rule, const char *text, char *error);   // permit, drop
int rule_set_protocol(struct rule *rule, const char *text, char *error); // ip, udp .. or 0..255
int rule_set_address(struct rule_end *end, const char *text, char *error);
int rule_set_ports(struct rule_end *end, const char *text, char *error); // N or N-M
int rule_set_name(struct rule *rule, const char *text, char *error);

// Whether its parts agree: one family, ports only of protocols that have them.
int rule_check(const struct rule *rule, char *error);

// Of both ends: 4 or 6, or 0 for a rule of both families.
uint8_t rule_family(const struct rule *rule);

static inline bool rule_names_ports(const struct rule *rule)
{
	return rule->from.names_ports || rule->to.names_ports;
}

// Read one line without its end and comment into rule. text is changed. As the setters.
int rule_parse_line(char *text, struct rule *rule, char *error);
