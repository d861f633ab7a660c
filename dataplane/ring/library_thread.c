// SPDX-License-Identifier: BSD-3-Clause
#include "ring/library_thread.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char thread_name[] = "vhost-events\n";

static void nothing(int number)
{
}

static bool is_it(const char *tid)
{
	char path[64], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", tid);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	if (fgets(name, sizeof(name), file) == NULL)
		name[0] = '\0';
	fclose(file);
	return strcmp(name, thread_name) == 0;
}

static pid_t find(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	pid_t found = 0;

	while (tasks && found == 0 && (entry = readdir(tasks)) != NULL)
		if (is_it(entry->d_name))
			found = atoi(entry->d_name);
	if (tasks)
		closedir(tasks);
	return found;
}

void library_thread_wake(void)
{
	struct sigaction action = {.sa_handler = nothing}; // poll(2) ends with EINTR, whatever the flags
	pid_t thread = find();

	if (thread == 0 || sigaction(SIGURG, &action, NULL))
		return;
	// Twice: the first may come when the thread has read its descriptors and does not wait yet.
	tgkill(getpid(), thread, SIGURG);
	usleep(1000);
	tgkill(getpid(), thread, SIGURG);
}
