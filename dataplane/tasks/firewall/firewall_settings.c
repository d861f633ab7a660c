// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdio.h>

#include "tasks/firewall/firewall.h"
#include "lib/schema.h"

enum { PATH_BYTES = 256 };

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

struct document {
	int default_action, not_ip, fragments; // index of the above
	char rules_file[PATH_BYTES];
	const json_t *rules;
};

static int decode_rules(const json_t *value, void *out, const char *where, char *error)
{
	*(const json_t **)out = value;
	return 0;
}

static const struct field fields[] = {
        {.key = "rules", FIELD(FIELD_CUSTOM, struct document, rules), .decode = decode_rules},
        {.key = "rules_file", FIELD(FIELD_STRING, struct document, rules_file)},
        {.key = "default", FIELD(FIELD_CHOICE, struct document, default_action), .choices = actions},
        {.key = "not_ip", FIELD(FIELD_CHOICE, struct document, not_ip), .choices = actions},
        {.key = "fragments", FIELD(FIELD_CHOICE, struct document, fragments), .choices = fragment_ways},
        {0},
};

static int read_rules(struct rule_list *list, const struct document *document, char *error)
{
	if (document->rules && document->rules_file[0]) {
		snprintf(error, RULE_ERROR_MAX,
		         "settings has both \"rules\" and \"rules_file\"; leave one out");
		return -EINVAL;
	}
	if (document->rules)
		return rule_list_decode(list, document->rules, "settings.rules", error);
	if (document->rules_file[0])
		return rule_list_load(list, document->rules_file, error);
	return rule_list_parse(list, rules_default, strlen(rules_default), "default rules", error);
}

int firewall_settings_read(struct firewall_settings *settings, const struct config_task *config, char *error)
{
	struct document document = {0};
	char where[48], reason[RULE_ERROR_MAX] = "";

	*settings = (struct firewall_settings){0};
	snprintf(where, sizeof(where), "task %s: settings", config->name);
	if (config->settings && schema_decode(config->settings, fields, &document, where, error) != 0)
		return -EINVAL;
	if (read_rules(&settings->list, &document, reason) != 0) {
		snprintf(error, CONFIG_ERROR_MAX, "task %s: %.*s", config->name, CONFIG_ERROR_MAX - 48,
		         reason);
		return -EINVAL;
	}
	settings->default_permit = document.default_action == 1;
	settings->not_ip_permit = document.not_ip == 1;
	settings->fragments_drop = document.fragments == 1;
	return 0;
}
