// SPDX-License-Identifier: BSD-3-Clause
// A malicious rule file, text or JSON. Checked: it is refused with a sentence and nothing is left of it, or
// its rules keep the bounds that the tries rely on. Not covered: reading files.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/fuzz.h"
#include "nf/firewall/rule.h"

static unsigned long files, accepted, rules;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static void must(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "rule_file_fuzz: not so: %s\n", what);
	abort();
}

static void check_end(const struct rule_end *end)
{
	must(end->family == 0 || end->family == 4 || end->family == 6, "a family");
	must(end->prefix <= (end->family == 6 ? 128 : end->family == 4 ? 32 : 0), "a prefix fits its family");
	must(end->port_low <= end->port_high, "ports are a range");
	must(end->names_ports || (end->port_low == 0 && end->port_high == UINT16_MAX), "or all");
}

static void check(const struct rule_list *list)
{
	must(list->count <= RULE_LIST_MAX, "no more than there may be");
	for (unsigned i = 0; i < list->count; i++) {
		const struct rule *rule = &list->rules[i];

		check_end(&rule->from);
		check_end(&rule->to);
		must(!rule->from.family || !rule->to.family || rule->from.family == rule->to.family,
		     "one family");
		must(strnlen(rule->name, sizeof(rule->name)) < sizeof(rule->name), "a name ends");
		must(rule->line > 0, "a rule has a place");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[RULE_ERROR_MAX] = "";
	char *text = malloc(size + !size); // alone in its memory
	struct rule_list list;
	int status;

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	status = rule_list_parse(&list, text, size, "fuzz", error);
	files++;
	must(memchr(error, '\0', sizeof(error)) != NULL, "a sentence ends");
	must(status == 0 || (error[0] && list.count == 0 && list.rules == NULL),
	     "a refused file leaves nothing");
	if (status == 0) {
		accepted++;
		rules += list.count;
		check(&list);
	}
	rule_list_free(&list);
	free(text);
	return 0;
}

void fuzz_report(void)
{
	printf("%lu files, %lu of them accepted with %lu rules\n", files, accepted, rules);
}
