// SPDX-License-Identifier: BSD-3-Clause
#include "test/fail_call.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

static _Atomic(unsigned) left; // calls until the one that fails; 0: none does
static _Atomic(bool) done;

void fail_call(unsigned number)
{
	atomic_store(&done, false);
	atomic_store(&left, number);
}

bool fail_call_done(void)
{
	atomic_store(&left, 0);
	return atomic_load(&done);
}

static bool fails(int error)
{
	unsigned now = atomic_load(&left);

	while (now && !atomic_compare_exchange_weak(&left, &now, now - 1))
		;
	if (now != 1)
		return false;
	atomic_store(&done, true);
	errno = error;
	return true;
}

// The linker takes each call of NAME to __wrap_NAME, and __real_NAME to NAME.
#define WRAP(type, name, parameters, arguments, error, failed)                                               \
	type __real_##name parameters;                                                                       \
	type __wrap_##name parameters;                                                                       \
	type __wrap_##name parameters                                                                        \
	{                                                                                                    \
		return fails(error) ? (failed) : __real_##name arguments;                                    \
	}

WRAP(void *, malloc, (size_t bytes), (bytes), ENOMEM, NULL)
WRAP(void *, calloc, (size_t n, size_t bytes), (n, bytes), ENOMEM, NULL)
WRAP(void *, realloc, (void *at, size_t bytes), (at, bytes), ENOMEM, NULL)
WRAP(void *, aligned_alloc, (size_t align, size_t bytes), (align, bytes), ENOMEM, NULL)
WRAP(void *, rte_zmalloc, (const char *type, size_t bytes, unsigned align), (type, bytes, align), ENOMEM,
     NULL)
// What mmap() is where off_t has 64 bits.
WRAP(void *, mmap64, (void *at, size_t bytes, int protection, int flags, int fd, off_t offset),
     (at, bytes, protection, flags, fd, offset), ENOMEM, (void *)-1)
WRAP(int, eventfd, (unsigned count, int flags), (count, flags), EMFILE, -1)
WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), EMFILE, -1)
WRAP(int, accept4, (int fd, struct sockaddr *address, socklen_t *length, int flags),
     (fd, address, length, flags), EMFILE, -1)
WRAP(int, epoll_create1, (int flags), (flags), EMFILE, -1)
WRAP(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument),
     (thread, attr, run, argument), EAGAIN, EAGAIN)
