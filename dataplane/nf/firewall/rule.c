// SPDX-License-Identifier: BSD-3-Clause
#include "nf/firewall/rule.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/schema.h"
#include "base/input_file.h"

enum { NUMBER_DIGITS_MAX = 5, WORDS_MAX = 11 };

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

// What matches everything; permit.
static void rule_default(struct rule *rule)
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

static int rule_set_action(struct rule *rule, const char *text, char *error)
{
	rule->permit = strcmp(text, "permit") == 0;
	if (!rule->permit && strcmp(text, "drop") != 0)
		return config_error(error, "\"%.20s\" is no action; say permit or drop", text);
	return 0;
}

static int rule_set_protocol(struct rule *rule, const char *text, char *error)
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
		return config_error(
		        error,
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

static int rule_set_address(struct rule_end *end, const char *text, char *error)
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
		return config_error(
		        error, "\"%.45s\" is no address; say any, 198.18.0.0/15, 2001:db8::/32 or the like",
		        text);
	if (slash && !number_is(slash + 1, width, &bits))
		return config_error(error, "\"%.45s\": the prefix is no number from 0 to %u", text, width);
	end->family = family == AF_INET ? 4 : 6;
	end->prefix = (uint8_t)bits;
	if (clear_host_bits(end, family == AF_INET ? 4 : 16))
		return config_error(error, "\"%.45s\" has bits behind its prefix; say %s/%u, or no prefix",
		                    text, inet_ntop(family, end->address, meant, sizeof(meant)), bits);
	return 0;
}

static int rule_set_ports(struct rule_end *end, const char *text, char *error)
{
	uint32_t low, high;
	size_t digits = number_read(text, UINT16_MAX, &low);

	high = low;
	if (!digits || (text[digits] != '\0' &&
	                (text[digits] != '-' || !number_is(text + digits + 1, UINT16_MAX, &high))))
		return config_error(error, "\"%.20s\" is no port; say 80 or 1024-65535", text);
	if (low > high)
		return config_error(error, "ports \"%.20s\" end before they begin; say %u-%u", text, high,
		                    low);
	end->names_ports = true;
	end->port_low = (uint16_t)low;
	end->port_high = (uint16_t)high;
	return 0;
}

static int rule_set_name(struct rule *rule, const char *text, char *error)
{
	size_t length = strlen(text);

	if (length == 0 || length >= sizeof(rule->name) ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-") != length)
		return config_error(error, "\"%.40s\" is no name; say 1 to %d letters, digits and _ . : -",
		                    text, RULE_NAME_MAX - 1);
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

// Whether its parts agree: one family, ports only of protocols that have them.
static int rule_check(const struct rule *rule, char *error)
{
	uint8_t family = rule_family(rule), wrong;

	if (rule->from.family && rule->to.family && rule->from.family != rule->to.family)
		return config_error(
		        error, "one address is IPv4 and the other IPv6, no packet has both; make two rules");
	if (rule_names_ports(rule) && !may_have_ports(rule))
		return config_error(
		        error,
		        "protocol %u has no ports; say tcp, udp, sctp, dccp, udplite or ip, or no port",
		        rule->protocol);
	if (rule->any_protocol || family == 0)
		return 0;
	wrong = family == 4 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
	if (rule->protocol == wrong)
		return config_error(error, "%s is not of IPv%u; say %s", family == 4 ? "icmpv6" : "icmp",
		                    family, family == 4 ? "icmp" : "icmpv6");
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
			return config_error(error, "too many words; what does \"%.20s\" mean?", word);
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
		return config_error(
		        error,
		        "expected \"%s\", not \"%.20s\"; a rule is: permit|drop PROTOCOL from ADDRESS "
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
		return config_error(error, "\"%.20s\" is too much; only name=NAME may follow",
		                    words->next < words->count ? words->at[words->count - 1] : word);
	return rule_set_name(rule, word + strlen(name), error);
}

// Read one line without its end and comment, which is changed.
static int rule_parse_line(char *text, struct rule *rule, char *error)
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

// --- Lists -----------------------------------------------------------------------------------------------

enum { LINE_MAX_BYTES = 255, SHOWN_MAX = 48, WHERE_MAX = 40, PLACE_MAX = WHERE_MAX + 24, ROOM_FIRST = 64 };

void rule_list_free(struct rule_list *list)
{
	free(list->rules);
	*list = (struct rule_list){0};
}

static struct rule *rule_add(struct rule_list *list, const char *where, char *error)
{
	if (list->count == RULE_LIST_MAX) {
		(void)config_error(error, "%s: more than %d rules; use fewer", where, RULE_LIST_MAX);
		return NULL;
	}
	if (list->count == list->room) {
		unsigned room = list->room ? 2 * list->room : ROOM_FIRST;
		struct rule *rules = realloc(list->rules, room * sizeof(*rules));

		if (!rules) {
			(void)config_error(error, "%s: no memory for %u rules", where, room);
			return NULL;
		}
		list->rules = rules;
		list->room = room;
	}
	rule_default(&list->rules[list->count]);
	return &list->rules[list->count++];
}

// --- Text ------------------------------------------------------------------------------------------------

static bool is_odd(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isascii(text[i]) || (iscntrl(text[i]) && text[i] != '\t' && text[i] != '\r'))
			return true;
	return false;
}

// place: where the line is, for messages; number: what its rule is told to be at.
static int line_add(struct rule_list *list, const char *line, size_t length, uint32_t number,
                    const char *place, char *error)
{
	char text[LINE_MAX_BYTES + 1], text_shown[SHOWN_MAX], reason[CONFIG_ERROR_MAX] = "";
	const char *comment = memchr(line, '#', length);
	size_t used = comment ? (size_t)(comment - line) : length;
	struct rule *rule;

	while (used && isspace((unsigned char)line[used - 1]))
		used--;
	if (used == 0)
		return 0;
	input_line_show(line, used, text_shown, sizeof(text_shown));
	if (used > LINE_MAX_BYTES)
		return config_error(error, "%s: \"%s...\": longer than %d bytes; is it a rule?", place,
		                    text_shown, LINE_MAX_BYTES);
	if (is_odd(line, used))
		return config_error(error, "%s: \"%s\": not plain text; write ASCII", place, text_shown);
	rule = rule_add(list, place, error);
	if (!rule)
		return -EINVAL;
	memcpy(text, line, used);
	text[used] = '\0';
	if (rule_parse_line(text, rule, reason) != 0)
		return config_error(error, "%s: \"%s\": %s", place, text_shown, reason);
	rule->line = number;
	return 0;
}

static int text_parse(struct rule_list *list, const char *data, size_t length, const char *where, char *error)
{
	struct input_line line = {.rest = data, .end = data + length};
	int status = 0;

	list->in_lines = true;
	while (status == 0 && input_line_next(&line)) {
		char place[PLACE_MAX];

		snprintf(place, sizeof(place), "%.*s:%u", WHERE_MAX - 1, where, line.number);
		status = line_add(list, line.text, line.bytes, line.number, place, error);
	}
	return status;
}

// --- JSON ------------------------------------------------------------------------------------------------

// What a setter says, after where: schema.h's errors are RULE_ERROR_MAX.
static int told(int status, const char *where, const char *reason, char *error)
{
	return status == 0 ? 0 : config_error(error, "%s: %s", where, reason);
}

// A string, or a number that is meant as one. NULL for anything else.
static const char *text_of(const json_t *value, char number[static 24])
{
	if (json_is_integer(value)) {
		snprintf(number, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return number;
	}
	// Not one that ends before its end.
	return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value)
	               ? json_string_value(value)
	               : NULL;
}

static int decode_by(const json_t *value, void *out, int (*set)(void *, const char *, char *),
                     const char *where, char *error)
{
	char number[24], reason[CONFIG_ERROR_MAX] = "";
	const char *text = text_of(value, number);

	if (!text)
		return config_error(error, "%s: expected a string", where);
	return told(set(out, text, reason), where, reason, error);
}

#define DECODER(name_, type_)                                                                                \
	static int set_##name_(void *out, const char *text, char *error)                                     \
	{                                                                                                    \
		return rule_set_##name_((type_ *)out, text, error);                                          \
	}                                                                                                    \
	static int decode_##name_(const json_t *value, void *out, const char *where, char *error)            \
	{                                                                                                    \
		return decode_by(value, out, set_##name_, where, error);                                     \
	}

DECODER(action, struct rule)
DECODER(protocol, struct rule)
DECODER(name, struct rule)
DECODER(address, struct rule_end)
DECODER(ports, struct rule_end)

static const struct field rule_fields[] = {
        {.key = "action", .type = FIELD_CUSTOM, .decode = decode_action, .required = true},
        {.key = "protocol", .type = FIELD_CUSTOM, .decode = decode_protocol},
        {.key = "from", FIELD(FIELD_CUSTOM, struct rule, from), .decode = decode_address},
        {.key = "from_port", FIELD(FIELD_CUSTOM, struct rule, from), .decode = decode_ports},
        {.key = "to", FIELD(FIELD_CUSTOM, struct rule, to), .decode = decode_address},
        {.key = "to_port", FIELD(FIELD_CUSTOM, struct rule, to), .decode = decode_ports},
        {.key = "name", .type = FIELD_CUSTOM, .decode = decode_name},
        {0},
};

static int decode_object(struct rule_list *list, const json_t *object, const char *where, char *error)
{
	struct rule *rule = rule_add(list, where, error);
	char reason[CONFIG_ERROR_MAX] = "";

	if (!rule || schema_decode(object, rule_fields, rule, where, error) != 0)
		return -EINVAL;
	rule->line = list->count;
	return told(rule_check(rule, reason), where, reason, error);
}

static int decode_item(struct rule_list *list, const json_t *item, const char *where, char *error)
{
	unsigned before = list->count;

	if (!json_is_string(item))
		return decode_object(list, item, where, error);
	if (line_add(list, json_string_value(item), json_string_length(item), before + 1, where, error) != 0)
		return -EINVAL;
	return list->count > before ? 0 : config_error(error, "%s: an empty rule; leave it out", where);
}

static int array_decode(struct rule_list *list, const json_t *array, const char *where, char *error)
{
	if (!json_is_array(array))
		return config_error(error, "%s: expected an array of rules", where);
	for (size_t i = 0; i < json_array_size(array); i++) {
		char which[PLACE_MAX];

		snprintf(which, sizeof(which), "%.*s[%zu]", WHERE_MAX - 1, where, i);
		if (decode_item(list, json_array_get(array, i), which, error) != 0)
			return -EINVAL;
	}
	return 0;
}

static int json_parse(struct rule_list *list, const char *data, size_t length, const char *where, char *error)
{
	json_error_t fault;
	json_t *document = json_loadb(data, length, JSON_REJECT_DUPLICATES, &fault);
	const json_t *rules = NULL;
	const struct field fields[] = {{.key = "rules", .type = FIELD_ANY, .required = true}, {0}};
	char nothing;
	int status = 0;

	if (!document)
		return config_error(error, "%s:%d: %.120s; it begins like JSON", where, fault.line,
		                    fault.text);
	rules = document;
	if (json_is_object(document)) {
		status = schema_decode(document, fields, &nothing, where, error);
		rules = json_object_get(document, "rules");
	}
	if (status == 0)
		status = array_decode(list, rules, where, error);
	json_decref(document);
	return status;
}

// --- Lists -----------------------------------------------------------------------------------------------

static int settled(struct rule_list *list, int status)
{
	if (status != 0)
		rule_list_free(list);
	return status;
}

int rule_list_decode(struct rule_list *list, const json_t *array, const char *where, char *error)
{
	*list = (struct rule_list){0};
	return settled(list, array_decode(list, array, where, error));
}

int rule_list_parse(struct rule_list *list, const char *data, size_t length, const char *where, char *error)
{
	size_t blank = 0;
	bool json;

	*list = (struct rule_list){0};
	while (blank < length && isspace((unsigned char)data[blank]))
		blank++;
	json = blank < length && (data[blank] == '[' || data[blank] == '{');
	return settled(list, json ? json_parse(list, data, length, where, error)
	                          : text_parse(list, data, length, where, error));
}

int rule_list_load(struct rule_list *list, const char *path, char *error)
{
	size_t characters = strlen(path);
	const char *where =
	        path + (characters < WHERE_MAX ? 0 : characters - WHERE_MAX + 1); // its end tells more
	const char *why;
	struct stat stat;
	char *data = input_file_read(path, RULE_FILE_BYTES_MAX, &stat, &why);
	int status;

	*list = (struct rule_list){0};
	if (!data)
		return config_error(error,
		                    "%s: %s; name a file of rules, %d MB at most, that planed may read",
		                    where, why, RULE_FILE_BYTES_MAX >> 20);
	status = rule_list_parse(list, data, (size_t)stat.st_size, where, error);
	free(data);
	return status;
}
