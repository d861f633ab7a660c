// SPDX-License-Identifier: BSD-3-Clause
// The least of machine and cgroups, from copies of the kernel's files.
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ram.h"
#include "test/unit.h"

#define GB (UINT64_C(1) << 30)

static char root[] = "/tmp/ram_test.XXXXXX";

static void put(const char *path, const char *text)
{
	char at[256];
	FILE *file;

	snprintf(at, sizeof(at), "%s%s", root, path);
	for (char *slash = at + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(at, 0700);
		*slash = '/';
	}
	file = fopen(at, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static int begin(void **state)
{
	memcpy(root + sizeof(root) - 7, "XXXXXX", 6);
	return mkdtemp(root) == NULL;
}

static int end(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void assert_ram(uint64_t total, uint64_t available)
{
	struct ram ram = ram_read(root);

	assert_int_equal(ram.total, total);
	assert_int_equal(ram.available, available);
}

static void put_machine(void)
{
	put("/proc/meminfo", "MemTotal:       8388608 kB\nMemFree:        1 kB\nMemAvailable:   3145728 kB\n"
	                     "Hugetlb:        2097152 kB\n");
}

static void nothing_is_known(void **state)
{
	assert_ram(UINT64_MAX, UINT64_MAX);
}

static void hugepages_are_somebody_elses(void **state)
{
	put_machine();
	assert_ram(6 * GB, 3 * GB);
}

static void a_group_of_version_2(void **state)
{
	put_machine();
	put("/proc/self/cgroup", "0::/a/b\n");
	put("/sys/fs/cgroup/a/memory.max", "2147483648\n");
	put("/sys/fs/cgroup/a/memory.current", "1610612736\n");
	put("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 536870912\nactive_file 0\n");
	put("/sys/fs/cgroup/a/b/memory.max", "max\n");
	put("/sys/fs/cgroup/a/b/memory.current", "4096\n");
	assert_ram(2 * GB, GB);
}

static void a_group_of_version_1(void **state)
{
	put_machine();
	put("/proc/self/cgroup", "4:cpu,cpuacct:/c\n3:memory:/c\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "4096\n");
	put("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1073741824\n");
	put("/sys/fs/cgroup/memory/c/memory.usage_in_bytes", "2147483648\n");
	assert_ram(GB, 0);
}

static void a_container_sees_only_its_own_group(void **state)
{
	put_machine();
	put("/proc/self/cgroup", "0::/pods/not/seen/here\n");
	put("/sys/fs/cgroup/memory.max", "1073741824\n");
	put("/sys/fs/cgroup/memory.current", "0\n");
	assert_ram(GB, GB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(nothing_is_known, begin, end),
	        cmocka_unit_test_setup_teardown(hugepages_are_somebody_elses, begin, end),
	        cmocka_unit_test_setup_teardown(a_group_of_version_2, begin, end),
	        cmocka_unit_test_setup_teardown(a_group_of_version_1, begin, end),
	        cmocka_unit_test_setup_teardown(a_container_sees_only_its_own_group, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
