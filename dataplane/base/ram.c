// SPDX-License-Identifier: BSD-3-Clause
#include "base/ram.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 4096 + 64, KB = 1024 };

// Where a version of cgroups has what.
struct version {
	const char *mounts[2];    // one of which is there, or none
	const char *limit, *used; // files
	const char *caches[2];    // lines of memory.stat: what the kernel can drop
};

static const struct version v1 = {{"/sys/fs/cgroup/memory"},
                                  "memory.limit_in_bytes",
                                  "memory.usage_in_bytes",
                                  {"total_inactive_file", "total_active_file"}};
static const struct version v2 = {{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"},
                                  "memory.max",
                                  "memory.current",
                                  {"inactive_file", "active_file"}};

// The number after a name at the beginning of a line, or the first of the file if the name is "". Returns false if there
// is none; "max" is none.
static bool read_number(const char *path, const char *name, uint64_t *out)
{
	FILE *file = fopen(path, "re");
	size_t bytes = strlen(name);
	char line[LINE_BYTES];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = strncmp(line, name, bytes) == 0 && sscanf(line + bytes, " %" SCNu64, out) == 1;
	if (file)
		fclose(file);
	return found;
}

static bool in_file(const char *folder, const char *file, const char *name, uint64_t *out)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", folder, file) < (int)sizeof(path) &&
	       read_number(path, name, out);
}

static void lower(struct ram *ram, uint64_t total, uint64_t available)
{
	if (total < ram->total)
		ram->total = total;
	if (available < ram->available)
		ram->available = available;
}

static void of_machine(struct ram *ram, const char *root)
{
	uint64_t total = 0, huge = 0, available = 0;
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s/proc", root);
	if (!in_file(folder, "meminfo", "MemTotal:", &total) ||
	    !in_file(folder, "meminfo", "MemAvailable:", &available))
		return;
	if (in_file(folder, "meminfo", "Hugetlb:", &huge) && huge < total)
		total -= huge;
	lower(ram, total * KB, available * KB);
}

static void of_group(struct ram *ram, const char *folder, const struct version *version)
{
	uint64_t limit, used, cache, caches = 0;

	if (!in_file(folder, version->limit, "", &limit) || !in_file(folder, version->used, "", &used))
		return;
	for (unsigned i = 0; i < 2; i++)
		if (in_file(folder, "memory.stat", version->caches[i], &cache))
			caches += cache;
	used -= caches < used ? caches : used;
	lower(ram, limit, limit > used ? limit - used : 0);
}

// A group and those that it is in. In a container the path may be one that is not seen there, but for its root.
static void of_groups(struct ram *ram, const char *mount, const char *path, const struct version *version)
{
	char folder[PATH_MAX];

	if (snprintf(folder, sizeof(folder), "%s%s", mount, path) >= (int)sizeof(folder))
		return;
	for (;;) {
		char *end = strrchr(folder, '/');

		of_group(ram, folder, version);
		if (strlen(folder) <= strlen(mount) || end == NULL)
			return;
		*end = '\0';
	}
}

// "NUMBER:CONTROLLERS:PATH", without controllers in version 2.
static void of_line(struct ram *ram, const char *root, char *line)
{
	char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
	const struct version *version = path == controllers + 1 ? &v2 : &v1;
	char mount[PATH_MAX];

	if (path == NULL)
		return;
	line[strcspn(line, "\n")] = '\0';
	*path++ = '\0';
	if (version == &v1 && strstr(controllers, "memory") == NULL)
		return;
	for (unsigned i = 0; i < 2 && version->mounts[i]; i++) {
		snprintf(mount, sizeof(mount), "%s%s", root, version->mounts[i]);
		of_groups(ram, mount, path, version);
	}
}

struct ram ram_read(const char *root)
{
	struct ram ram = {UINT64_MAX, UINT64_MAX};
	char path[PATH_MAX], line[LINE_BYTES];
	FILE *file;

	of_machine(&ram, root);
	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		of_line(&ram, root, line);
	if (file)
		fclose(file);
	return ram;
}
