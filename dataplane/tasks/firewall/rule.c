// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/firewall/rule.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER_DIGITS_MAX = 5, WORDS_MAX = 11 };

#define REFUSE(...) (snprintf(error, RULE_REASON_MAX, __VA_ARGS__), -EINVAL)

static const struct {
	const char *name;
	uint8_t number;
	bool has_ports;
} protocols[] = {
        {"tcp", IPPROTO_TCP, true},         {"udp", IPPROTO_UDP, true},        {"icmp", IPPROTO_ICMP, false},
        {"sctp", IPPROTO_SCTP, true},       {"icmpv6", IPPROTO_ICMPV6, false}, {"dccp", IPPROTO_DCCP, true},
        {"udplite", IPPROTO_UDPLITE, true}, {"igmp", IPPROTO_IGMP, false},     {"gre", IPPROTO_GRE, false},
        {"esp", IPPROTO_ESP, false},        {"ah", IPPROTO_AH, false},
};
enum { PROTOCOL_COUNT = sizeof(protocols) / sizeof(protocols[0]) };

void rule_default(struct rule *rule)
{
	*rule = (struct rule){
	        .permit = true,
	        .any_protocol = true,
	        .from.port_high = UINT16_MAX,
	        .to.port_high = UINT16_MAX,
	};
}

// Digits only, no sign and no blanks. Returns how many characters they are, 0 if it is no number up to max.
static size_t number_read(const char *text, uint32_t max, uint32_t *out)
{
	size_t digits = strspn(text, "0123456789");

	*out = 0;
	if (digits > NUMBER_DIGITS_MAX)
		return 0;
	for (size_t i = 0; i < digits; i++)
		*out = *out * 10 + (uint32_t)(text[i] - '0');
	return *out <= max ? digits : 0;
}

static bool number_is(const char *text, uint32_t max, uint32_t *out)
{
	size_t digits = number_read(text, max, out);

	return digits && text[digits] == '\0';
}

int rule_set_action(struct rule *rule, const char *text, char *error)
{
	rule->permit = strcmp(text, "permit") == 0;
	if (!rule->permit && strcmp(text, "drop") != 0)
		return REFUSE("\"%.20s\" is no action; say permit or drop", text);
	return 0;
}

int rule_set_protocol(struct rule *rule, const char *text, char *error)
{
	uint32_t number;

	rule->any_protocol = strcmp(text, "ip") == 0;
	rule->protocol = 0;
	if (rule->any_protocol)
		return 0;
	for (unsigned i = 0; i < PROTOCOL_COUNT; i++)
		if (strcmp(text, protocols[i].name) == 0) {
			rule->protocol = protocols[i].number;
			return 0;
		}
	if (!number_is(text, UINT8_MAX, &number))
		return REFUSE(
		        "\"%.20s\" is no protocol; say ip, tcp, udp, icmp, icmpv6, sctp, or its number, "
		        "0 to 255",
		        text);
	rule->protocol = (uint8_t)number;
	return 0;
}

// Whether bits behind the prefix are set; they are cleared.
static bool clear_host_bits(struct rule_end *end, unsigned bytes)
{
	bool found = false;

	for (unsigned i = 0; i < bytes; i++) {
		unsigned kept = end->prefix >= 8 * (i + 1) ? 8 : end->prefix <= 8 * i ? 0 : end->prefix % 8;
		uint8_t mask = (uint8_t)(0xff00u >> kept);

		found = found || (end->address[i] & ~mask);
		end->address[i] &= mask;
	}
	return found;
}

int rule_set_address(struct rule_end *end, const char *text, char *error)
{
	char address[INET6_ADDRSTRLEN + 1] = "", meant[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);
	int family = memchr(text, ':', length) ? AF_INET6 : AF_INET;
	const uint32_t width = family == AF_INET ? 32 : 128;
	uint32_t bits = width;

	end->family = end->prefix = 0;
	memset(end->address, 0, sizeof(end->address));
	if (strcmp(text, "any") == 0)
		return 0;
	if (length < sizeof(address))
		memcpy(address, text, length);
	if (inet_pton(family, address, end->address) != 1)
		return REFUSE("\"%.45s\" is no address; say any, 198.18.0.0/15, 2001:db8::/32 or the like",
		              text);
	if (slash && !number_is(slash + 1, width, &bits))
		return REFUSE("\"%.45s\": the prefix is no number from 0 to %u", text, width);
	end->family = family == AF_INET ? 4 : 6;
	end->prefix = (uint8_t)bits;
	if (clear_host_bits(end, family == AF_INET ? 4 : 16))
		return REFUSE("\"%.45s\" has bits behind its prefix; say %s/%u, or no prefix", text,
		              inet_ntop(family, end->address, meant, sizeof(meant)), bits);
	return 0;
}

int rule_set_ports(struct rule_end *end, const char *text, char *error)
{
	uint32_t low, high;
	size_t digits = number_read(text, UINT16_MAX, &low);

	high = low;
	if (!digits || (text[digits] != '\0' &&
	                (text[digits] != '-' || !number_is(text + digits + 1, UINT16_MAX, &high))))
		return REFUSE("\"%.20s\" is no port; say 80 or 1024-65535", text);
	if (low > high)
		return REFUSE("ports \"%.20s\" end before they begin; say %u-%u", text, high, low);
	end->names_ports = true;
	end->port_low = (uint16_t)low;
	end->port_high = (uint16_t)high;
	return 0;
}

int rule_set_name(struct rule *rule, const char *text, char *error)
{
	size_t length = strlen(text);

	if (length == 0 || length >= sizeof(rule->name) ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-") != length)
		return REFUSE("\"%.40s\" is no name; say 1 to %d letters, digits and _ . : -", text,
		              RULE_NAME_MAX - 1);
	memcpy(rule->name, text, length + 1);
	return 0;
}

static bool may_have_ports(const struct rule *rule)
{
	for (unsigned i = 0; i < PROTOCOL_COUNT; i++)
		if (protocols[i].number == rule->protocol)
			return rule->any_protocol || protocols[i].has_ports;
	return rule->any_protocol;
}

uint8_t rule_family(const struct rule *rule)
{
	return rule->from.family ? rule->from.family : rule->to.family;
}

int rule_check(const struct rule *rule, char *error)
{
	uint8_t family = rule_family(rule), wrong;

	if (rule->from.family && rule->to.family && rule->from.family != rule->to.family)
		return REFUSE("one address is IPv4 and the other IPv6, no packet has both; make two rules");
	if (rule_names_ports(rule) && !may_have_ports(rule))
		return REFUSE("protocol %u has no ports; say tcp, udp, sctp, dccp, udplite or ip, or no port",
		              rule->protocol);
	if (rule->any_protocol || family == 0)
		return 0;
	wrong = family == 4 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
	if (rule->protocol == wrong)
		return REFUSE("%s is not of IPv%u; say %s", family == 4 ? "icmpv6" : "icmp", family,
		              family == 4 ? "icmp" : "icmpv6");
	return 0;
}

// --- One line --------------------------------------------------------------------------------------------

struct words {
	unsigned count, next;
	const char *at[WORDS_MAX];
};

static int words_split(char *text, struct words *words, char *error)
{
	for (char *rest = text, *word; (word = strsep(&rest, " \t\r"));) {
		if (*word == '\0')
			continue;
		if (words->count == WORDS_MAX)
			return REFUSE("too many words; what does \"%.20s\" mean?", word);
		words->at[words->count++] = word;
	}
	return 0;
}

// The next word, or what is never valid at the end.
static const char *words_next(struct words *words)
{
	return words->next < words->count ? words->at[words->next++] : "(nothing)";
}

static bool words_take(struct words *words, const char *wanted)
{
	if (words->next == words->count || strcmp(words->at[words->next], wanted) != 0)
		return false;
	words->next++;
	return true;
}

// from ADDRESS [port PORTS], or with "to".
static int parse_end(struct words *words, const char *keyword, struct rule_end *end, char *error)
{
	if (!words_take(words, keyword))
		return REFUSE("expected \"%s\", not \"%.20s\"; a rule is: permit|drop PROTOCOL from ADDRESS "
		              "[port P] to ADDRESS [port P]",
		              keyword, words_next(words));
	if (rule_set_address(end, words_next(words), error) != 0)
		return -EINVAL;
	return words_take(words, "port") ? rule_set_ports(end, words_next(words), error) : 0;
}

static int parse_tail(struct words *words, struct rule *rule, char *error)
{
	static const char name[] = "name=";
	const char *word;

	if (words->next == words->count)
		return 0;
	word = words_next(words);
	if (strncmp(word, name, strlen(name)) != 0 || words->next < words->count)
		return REFUSE("\"%.20s\" is too much; only name=NAME may follow",
		              words->next < words->count ? words->at[words->count - 1] : word);
	return rule_set_name(rule, word + strlen(name), error);
}

int rule_parse_line(char *text, struct rule *rule, char *error)
{
	struct words words = {0};

	rule_default(rule);
	if (words_split(text, &words, error) != 0 || rule_set_action(rule, words_next(&words), error) != 0 ||
	    rule_set_protocol(rule, words_next(&words), error) != 0 ||
	    parse_end(&words, "from", &rule->from, error) != 0 ||
	    parse_end(&words, "to", &rule->to, error) != 0 || parse_tail(&words, rule, error) != 0)
		return -EINVAL;
	return rule_check(rule, error);
}
