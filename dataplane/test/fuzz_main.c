// SPDX-License-Identifier: BSD-3-Clause
#include "test/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RANDOM_BYTES_MAX = 1024, FILE_BYTES_MAX = 1 << 20 };

static uint64_t random_state;
static unsigned long files;

static uint64_t random_next(void) // xorshift64
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void run_random(uint64_t seed, unsigned long inputs)
{
	uint8_t data[RANDOM_BYTES_MAX];

	random_state = seed ? seed : 1;
	for (unsigned long i = 0; i < inputs; i++) {
		size_t size = 16 + random_next() % (sizeof(data) - 16);

		for (size_t k = 0; k < size; k++)
			data[k] = (uint8_t)(random_next() >> 24);
		LLVMFuzzerTestOneInput(data, size);
	}
	printf("%lu inputs of seed %lu\n", inputs, (unsigned long)seed);
}

// The bytes are of their exact size, so that a sanitizer sees the first one beyond them.
static int run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *all = malloc(FILE_BYTES_MAX), *data = NULL;
	size_t size = 0;

	if (file && all) {
		size = fread(all, 1, FILE_BYTES_MAX, file);
		data = malloc(size ? size : 1);
	}
	if (data) {
		memcpy(data, all, size);
		LLVMFuzzerTestOneInput(data, size);
		files++;
	} else {
		perror(path);
	}
	if (file)
		fclose(file);
	free(all);
	free(data);
	return data ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run_directory(const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, NULL, alphasort), code = EXIT_SUCCESS;
	char name[4096];

	if (count < 0) {
		perror(path);
		return EXIT_FAILURE;
	}
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.')
			code |= run_file(name);
		free(entries[i]);
	}
	free(entries);
	return code;
}

static int run_path(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 && S_ISDIR(info.st_mode) ? run_directory(path) : run_file(path);
}

int main(int argc, char **argv)
{
	unsigned long inputs = 0, seed = 1;
	int code = EXIT_SUCCESS;

	if (LLVMFuzzerInitialize(&argc, &argv))
		return EXIT_FAILURE;
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
			inputs = strtoul(argv[++i], NULL, 0);
		else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc)
			seed = strtoul(argv[++i], NULL, 0);
		else
			code |= run_path(argv[i]);
	if (inputs)
		run_random(seed, inputs);
	printf("%lu files replayed\n", files);
	fuzz_report();
	return files || inputs ? code : EXIT_FAILURE;
}
