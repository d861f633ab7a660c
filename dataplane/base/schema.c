// SPDX-License-Identifier: BSD-3-Clause
#include "base/schema.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int config_error(char *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, CONFIG_ERROR_MAX, format, args);
	va_end(args);
	return -EINVAL;
}

struct context {
	const char *where;
	char *error;
};

static int fail(const struct context *context, const char *key, const json_t *value, const char *expected)
{
	char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;

	snprintf(context->error, CONFIG_ERROR_MAX, "%s.%s: %.60s is not valid: %s", context->where, key,
	         text ? text : "nothing", expected);
	free(text);
	return -EINVAL;
}

static int store_name(const struct context *context, const struct field *field, const json_t *value,
                      char *out)
{
	const char *text = json_string_value(value);
	char expected[80];

	snprintf(expected, sizeof(expected), "expected 1 to %zu characters of a-z 0-9 _ -", field->size - 1);
	if (text == NULL || *text == '\0' || strlen(text) >= field->size ||
	    json_string_length(value) != strlen(text) ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-") != strlen(text))
		return fail(context, field->key, value, expected);
	strcpy(out, text);
	return 0;
}

static int store_string(const struct context *context, const struct field *field, const json_t *value,
                        char *out)
{
	const char *text = json_string_value(value);
	char expected[80];

	snprintf(expected, sizeof(expected), "expected a string of 1 to %zu bytes", field->size - 1);
	if (text == NULL || *text == '\0' || strlen(text) >= field->size ||
	    json_string_length(value) != strlen(text))
		return fail(context, field->key, value, expected);
	strcpy(out, text);
	return 0;
}

static int store_integer(const struct context *context, const struct field *field, const json_t *value,
                         void *out)
{
	json_int_t number = json_integer_value(value);
	char expected[80];

	snprintf(expected, sizeof(expected), "expected a whole number from %.0f to %.0f", field->min,
	         field->max);
	if (!json_is_integer(value) || (double)number < field->min || (double)number > field->max)
		return fail(context, field->key, value, expected);
	if (field->type == FIELD_INT)
		*(int *)out = (int)number;
	else if (field->size == sizeof(uint16_t))
		*(uint16_t *)out = (uint16_t)number;
	else if (field->size == sizeof(uint32_t))
		*(uint32_t *)out = (uint32_t)number;
	else
		*(uint64_t *)out = (uint64_t)number;
	return 0;
}

static int store_real(const struct context *context, const struct field *field, const json_t *value,
                      double *out)
{
	char expected[80];

	snprintf(expected, sizeof(expected), "expected a number from %g to %g", field->min, field->max);
	if (!json_is_number(value) || json_number_value(value) < field->min ||
	    json_number_value(value) > field->max)
		return fail(context, field->key, value, expected);
	*out = json_number_value(value);
	return 0;
}

static int store_choice(const struct context *context, const struct field *field, const json_t *value,
                        int *out)
{
	char expected[160] = "expected one of";

	for (int i = 0; field->choices[i]; i++) {
		if (json_is_string(value) && strcmp(json_string_value(value), field->choices[i]) == 0) {
			*out = i;
			return 0;
		}
		strncat(expected, " ", sizeof(expected) - strlen(expected) - 1);
		strncat(expected, field->choices[i], sizeof(expected) - strlen(expected) - 1);
	}
	return fail(context, field->key, value, expected);
}

bool schema_mac(const char *text, uint8_t mac[static 6])
{
	if (!text || strlen(text) != 17)
		return false;
	for (unsigned i = 0; i < 17; i++)
		if (i % 3 == 2 ? text[i] != ':' : !isxdigit((unsigned char)text[i]))
			return false;
	for (unsigned i = 0; i < 6; i++)
		mac[i] = (uint8_t)strtoul(text + i * 3, NULL, 16);
	return true;
}

json_t *schema_mac_json(const uint8_t mac[static 6])
{
	return json_sprintf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

static int store_mac(const struct context *context, const struct field *field, const json_t *value,
                     uint8_t out[6])
{
	if (!schema_mac(json_string_value(value), out))
		return fail(context, field->key, value, "expected a MAC address like 02:00:00:00:00:01");
	return 0;
}

static int store_ipv4(const struct context *context, const struct field *field, const json_t *value,
                      uint32_t *out)
{
	struct in_addr address;

	if (!json_is_string(value) || inet_pton(AF_INET, json_string_value(value), &address) != 1)
		return fail(context, field->key, value, "expected an IPv4 address like 198.18.0.1");
	*out = ntohl(address.s_addr);
	return 0;
}

static int store_object(const struct context *context, const struct field *field, const json_t *value,
                        void *out)
{
	char where[80];

	snprintf(where, sizeof(where), "%s.%s", context->where, field->key);
	return field->decode ? field->decode(value, out, where, context->error)
	                     : schema_decode(value, field->fields, out, where, context->error);
}

static int store(const struct context *context, const struct field *field, const json_t *value, char *base);

static int store_array(const struct context *context, const struct field *field, const json_t *value,
                       char *base)
{
	size_t count = json_array_size(value);
	struct field item = *field;
	char key[56];

	if (!json_is_array(value) || count < (size_t)field->min || count > (size_t)field->max)
		return config_error(context->error, "%s.%s: expected an array of %.0f to %.0f items",
		                    context->where, field->key, field->min, field->max);
	item.key = key;
	item.type = field->item;
	item.size = field->size / (size_t)field->max;
	for (size_t i = 0; i < count; i++, item.offset += item.size) {
		snprintf(key, sizeof(key), "%.30s[%zu]", field->key, i);
		if (store(context, &item, json_array_get(value, i), base))
			return -EINVAL;
	}
	*(unsigned *)(base + field->count_offset) = (unsigned)count;
	return 0;
}

static int store(const struct context *context, const struct field *field, const json_t *value, char *base)
{
	void *out = base + field->offset;

	switch (field->type) {
	case FIELD_STRING:
		return store_string(context, field, value, out);
	case FIELD_NAME:
		return store_name(context, field, value, out);
	case FIELD_UINT:
	case FIELD_INT:
		return store_integer(context, field, value, out);
	case FIELD_REAL:
		return store_real(context, field, value, out);
	case FIELD_BOOL:
		if (!json_is_boolean(value))
			return fail(context, field->key, value, "expected true or false");
		*(bool *)out = json_is_true(value);
		return 0;
	case FIELD_CHOICE:
		return store_choice(context, field, value, out);
	case FIELD_MAC:
		return store_mac(context, field, value, out);
	case FIELD_IPV4:
		return store_ipv4(context, field, value, out);
	case FIELD_ARRAY:
		return store_array(context, field, value, base);
	case FIELD_OBJECT:
	case FIELD_CUSTOM:
		return store_object(context, field, value, out);
	case FIELD_ANY:
		return 0;
	}
	return -EINVAL;
}

static const struct field *find_field(const struct field *fields, const char *key)
{
	for (; fields->key; fields++)
		if (strcmp(fields->key, key) == 0)
			return fields;
	return NULL;
}

static size_t list_keys(char *error, size_t used, const struct field *fields)
{
	for (; fields && fields->key && used < CONFIG_ERROR_MAX; fields++)
		used += (size_t)snprintf(error + used, CONFIG_ERROR_MAX - used, " %s", fields->key);
	return used;
}

static int unknown_key(const struct context *context, const struct field *fields, const struct field *others,
                       const char *key)
{
	size_t used = (size_t)snprintf(context->error, CONFIG_ERROR_MAX,
	                               "%s: unknown key \"%.40s\"; valid keys:", context->where, key);

	list_keys(context->error, list_keys(context->error, used, others), fields);
	return -EINVAL;
}

int schema_decode_beside(const json_t *object, const struct field *fields, const struct field *others,
                         void *out, const char *where, char error[static CONFIG_ERROR_MAX])
{
	const struct context context = {where, error};
	const char *key;
	json_t *value;

	if (!json_is_object(object))
		return config_error(error, "%s: expected an object", where);
	json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
		const struct field *field = find_field(fields, key);

		if (!field && (others == SCHEMA_ANY || (others && find_field(others, key))))
			continue;
		if (field ? store(&context, field, value, out) : unknown_key(&context, fields, others, key))
			return -EINVAL;
	}
	for (; fields->key; fields++)
		if (fields->required && json_object_get(object, fields->key) == NULL)
			return config_error(error, "%s: key \"%s\" is missing", where, fields->key);
	return 0;
}

int schema_decode(const json_t *object, const struct field *fields, void *out, const char *where,
                  char error[static CONFIG_ERROR_MAX])
{
	return schema_decode_beside(object, fields, NULL, out, where, error);
}

int schema_decode_vlans(const json_t *value, uint64_t bits[static VLAN_WORDS], const char *where, char *error)
{
	bool all = json_is_string(value) && strcmp(json_string_value(value), "all") == 0;
	size_t count = all ? VLAN_ID_MAX : json_array_size(value);

	if (!all && !json_is_array(value))
		return config_error(error, "%s: expected \"all\" or an array of VLAN numbers", where);
	for (size_t i = 0; i < count; i++) {
		json_int_t vlan = all ? (json_int_t)i + 1
		                      : json_integer_value(json_array_get(value, i)); // 0 if it is none

		if (vlan < 1 || vlan > VLAN_ID_MAX)
			return config_error(error, "%s[%zu]: expected a VLAN number from 1 to %d", where, i,
			                    VLAN_ID_MAX);
		bits[vlan / 64] |= UINT64_C(1) << vlan % 64;
		bits[0] |= 1;
	}
	return 0;
}
