// SPDX-License-Identifier: BSD-3-Clause
// What a program in a container can reach, a line each in $HOME/found: `seen PATH` of a file outside of /proc, /sys and
// the system's programs, `read PATH` if it can be read, `socket PATH` of a socket, `connects PATH` if it answers. All
// that can be listed is tried, and the paths of the arguments, which are known and perhaps not listed.
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static FILE *found;

static void try_to_connect(const char *path)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		int fd = socket(AF_UNIX, types[i], 0);

		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
			fprintf(found, "connects %s\n", path);
		close(fd);
	}
}

static void try_to_read(const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY | O_NONBLOCK);

	if (fd >= 0 && read(fd, &byte, 1) >= 0)
		fprintf(found, "read %s\n", path);
	close(fd);
}

static int begins(const char *path, const char *folder)
{
	return strncmp(path, folder, strlen(folder)) == 0;
}

static int visit(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)where;
	if (begins(path, "/proc") || begins(path, "/sys"))
		return type == FTW_D ? FTW_SKIP_SUBTREE : FTW_CONTINUE;
	if (type == FTW_F && S_ISSOCK(status->st_mode)) {
		fprintf(found, "socket %s\n", path);
		try_to_connect(path);
	} else if (!begins(path, "/usr") && !begins(path, "/lib") && !begins(path, "/bin")) {
		fprintf(found, "seen %s\n", path);
		if (type == FTW_F && S_ISREG(status->st_mode))
			try_to_read(path);
	}
	return FTW_CONTINUE;
}

// The environments of all processes that are seen: what is secret is in that of planebench.
static void environments(void)
{
	static char text[65536];

	for (int pid = 1; pid < 65536; pid++) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/environ", pid);
		int fd = open(path, O_RDONLY);
		ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text));

		if (size > 0 && memmem(text, (size_t)size, "REACH_SECRET", 12))
			fprintf(found, "read %s\n", path);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	char path[4096];

	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("QEMU emulator version 7.2.0") < 0;
	snprintf(path, sizeof(path), "%s/found", getenv("HOME"));
	found = fopen(path, "w");
	if (found == NULL)
		return 2;
	nftw("/", visit, 64, FTW_PHYS | FTW_ACTIONRETVAL);
	environments();
	for (int i = 1; i < argc; i++) {
		try_to_connect(argv[i] + 1);
		try_to_read(argv[i] + 1);
	}
	fprintf(found, "end\n");
	return fclose(found);
}
