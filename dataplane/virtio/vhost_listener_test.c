// SPDX-License-Identifier: BSD-3-Clause
// The sockets of vhost-user ports, with real connections: whatever one driver does or leaves undone, the next port is
// served, and closing a port ends in time.
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/un.h>

#include "base/clock.h"
#include "shm/guest_fault.h"
#include "virtio/vhost_listener.h"
#include "test/unit.h"
#include "test/vhost_peer.h"

enum { LINKS = 4, PATIENCE_MS = 20000, FEATURES = 1 << 5 };

static bool take(struct vhost_device *device, unsigned ring, uint16_t *base)
{
	return false;
}

// In the place of a port: who shares memory drives it.
static const struct vhost_device *driving;

static void settled(struct vhost_device *device)
{
	device->shut_out = device->memory.guest.count && driving && driving != device;
	if (device->memory.guest.count == 0 || device->shut_out)
		return;
	device->drives = true;
	driving = device;
}

static void gone(struct vhost_device *device)
{
	if (driving == device)
		driving = NULL;
}

static const struct vhost_device_ops ops = {take, settled, gone};

struct rig {
	struct vhost_listener *listeners[2];
	char paths[2][64];
	unsigned files;
};

static bool files_become(unsigned count)
{
	for (unsigned i = 0; i < PATIENCE_MS / 10 && open_files() != count; i++)
		usleep(10000);
	return open_files() == count;
}

static int rig_open(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	r->files = open_files();
	for (unsigned i = 0; i < 2; i++) {
		struct vhost_listener_config config = {.name = "p",
		                                       .path = r->paths[i],
		                                       .pairs = 1,
		                                       .features = FEATURES,
		                                       .connections = LINKS,
		                                       .connections_per_s = 50,
		                                       .memory_max = 1 << 30,
		                                       .group = (gid_t)-1,
		                                       .ops = &ops};

		snprintf(r->paths[i], sizeof(r->paths[i]), "/tmp/vhost_listener_test.%d.%u", (int)getpid(),
		         i);
		assert_int_equal(vhost_listener_open(&config, &r->listeners[i]), 0);
	}
	*state = r;
	return 0;
}

static int rig_close(void **state)
{
	struct rig *r = *state;

	for (unsigned i = 0; i < 2; i++)
		vhost_listener_close(r->listeners[i]);
	assert_true(files_become(r->files)); // a thread that was left behind ends by itself
	assert_int_not_equal(access(r->paths[0], F_OK), 0);
	free(r);
	return 0;
}

static int join(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	return poll(&ready, 1, timeout_ms) == 1;
}

static bool answers(int fd)
{
	struct vhost_message reply;

	while (!peer_send(fd, VHOST_USER_GET_FEATURES, NULL, 0, NULL, 0)) // it has much to read already
		usleep(1000);
	return readable(fd, PATIENCE_MS) && recv(fd, &reply, VHOST_MESSAGE_HEADER + 8, MSG_WAITALL) == 20 &&
	       reply.value == FEATURES;
}

static bool hung_up(int fd)
{
	char byte;

	while (readable(fd, PATIENCE_MS))
		if (recv(fd, &byte, 1, 0) <= 0)
			return true;
	return false;
}

// The other port, all at once.
static bool next_is_served(const struct rig *r)
{
	int fd = join(r->paths[1]);
	bool served = answers(fd);

	close(fd);
	return served;
}

static void a_driver_is_answered(void **state)
{
	struct rig *r = *state;
	int fd = join(r->paths[0]);

	for (unsigned i = 0; i < 100; i++)
		assert_true(answers(fd));
	close(fd);
}

// Finding 3: half a header, a header without its payload, and a byte now and then.
static void half_a_message_has_a_deadline(void **state)
{
	const uint32_t message[] = {VHOST_USER_SET_FEATURES, VHOST_FLAG_VERSION, 8, 0, 0};
	struct rig *r = *state;
	int fds[] = {join(r->paths[0]), join(r->paths[0]), join(r->paths[0])};
	uint64_t begin_ms = clock_now_ms(), took_ms;

	peer_send_bytes(fds[0], message, 5, NULL, 0);
	peer_send_bytes(fds[1], message, VHOST_MESSAGE_HEADER, NULL, 0);
	for (unsigned i = 0; i < sizeof(message) - 1 && !readable(fds[2], 0); i++) {
		peer_send_bytes(fds[2], (const char *)message + i, 1, NULL, 0);
		assert_true(next_is_served(r));
		usleep(300000);
	}
	for (unsigned i = 0; i < 3; i++) {
		assert_true(hung_up(fds[i]));
		close(fds[i]);
	}
	took_ms = clock_now_ms() - begin_ms;
	assert_in_range(took_ms, 5000, PATIENCE_MS);
	assert_int_equal(vhost_listener_refused(r->listeners[0], PEER_REFUSED_LATE), 3);
}

static void replies_that_nobody_reads(void **state)
{
	struct rig *r = *state;
	int fd = join(r->paths[0]);

	for (unsigned i = 0; i < 100000 && peer_send(fd, VHOST_USER_GET_FEATURES, NULL, 0, NULL, 0); i++)
		usleep(100);
	assert_true(next_is_served(r));
	for (unsigned i = 0; i < 1000 && !vhost_listener_refused(r->listeners[0], PEER_REFUSED_UNREAD); i++)
		usleep(10000);
	assert_int_equal(vhost_listener_refused(r->listeners[0], PEER_REFUSED_UNREAD), 1);
	close(fd);
}

// A port has four; for who comes then, the one goes that was silent longest.
static void connections_are_few(void **state)
{
	struct rig *r = *state;
	int fds[LINKS], fifth;
	unsigned before;

	for (unsigned i = 0; i < LINKS; i++) {
		fds[i] = join(r->paths[0]);
		assert_true(answers(fds[i]));
		usleep(2000);
	}
	assert_true(answers(fds[0]));
	before = open_files();
	fifth = join(r->paths[0]);
	assert_true(answers(fifth));
	assert_true(hung_up(fds[1]));
	assert_true(next_is_served(r));
	assert_true(files_become(before + 1)); // its own end here
	assert_int_equal(vhost_listener_refused(r->listeners[0], PEER_REFUSED_IDLE), 1);
	for (unsigned i = 0; i < LINKS; i++) {
		assert_true(i == 1 || answers(fds[i]));
		close(fds[i]);
	}
	close(fifth);
}

// Send a memory table, whose file is closed at once.
static bool drive(int fd)
{
	const struct peer_region region = {PEER_GUEST, PEER_MEMORY, PEER_USER, 0};
	int memory = peer_memory(0, PEER_MEMORY);
	bool sent = peer_send_table(fd, &region, 1, &memory, 1);

	close(memory);
	return sent;
}

// One that drives the port keeps it, whoever comes, until it hangs up.
static void a_second_driver_is_refused_while_the_first_is_there(void **state)
{
	enum { OTHERS = 10 };
	struct rig *r = *state;
	int first = join(r->paths[0]), second, idle[OTHERS];

	assert_true(drive(first) && answers(first));
	second = join(r->paths[0]);
	assert_true(drive(second) && hung_up(second));
	assert_int_equal(vhost_listener_refused(r->listeners[0], PEER_REFUSED_TAKEN), 1);
	for (unsigned i = 0; i < OTHERS; i++) {
		idle[i] = join(r->paths[0]);
		assert_true(answers(idle[i]));
	}
	assert_true(answers(first));
	assert_int_equal(vhost_listener_refused(r->listeners[0], PEER_REFUSED_IDLE), OTHERS - (LINKS - 1));
	close(second);
	close(first);
	second = join(r->paths[0]);
	assert_true(drive(second) && answers(second));
	close(second);
	for (unsigned i = 0; i < OTHERS; i++)
		close(idle[i]);
}

// The end of the first is behind more messages than are read at once.
static void a_driver_whose_end_is_unread_has_gone(void **state)
{
	struct rig *r = *state;
	int first = join(r->paths[0]), second;

	assert_true(drive(first) && answers(first));
	for (unsigned i = 0; i < 4096; i++)
		while (!peer_send_number(first, VHOST_USER_SET_FEATURES, 0))
			usleep(100);
	for (unsigned i = 0; i < 100; i++)
		peer_send_number(first, VHOST_USER_SET_FEATURES, 0);
	close(first);
	second = join(r->paths[0]);
	assert_true(drive(second) && answers(second));
	assert_int_equal(vhost_listener_refused(r->listeners[0], PEER_REFUSED_TAKEN), 0);
	close(second);
}

// Finding 8: connections as fast as they are taken.
static void a_flood_of_connections_is_slowed(void **state)
{
	struct rig *r = *state;
	uint64_t begin_ms = clock_now_ms();

	for (unsigned i = 0; i < 100; i++) {
		int fd = join(r->paths[0]);

		assert_true(answers(fd));
		close(fd);
	}
	assert_in_range(clock_now_ms() - begin_ms, 36 * 1000 / 50 - 100,
	                PATIENCE_MS); // 64 at once, then 50 a second
	assert_true(next_is_served(r));
}

static void a_storm_of_messages_is_slowed(void **state)
{
	enum { COUNT = 4096 + 1000 };
	struct rig *r = *state;
	int fd = join(r->paths[0]);
	uint64_t begin_ms = clock_now_ms();

	for (unsigned sent = 0; sent < COUNT; sent += peer_send_number(fd, VHOST_USER_SET_FEATURES, 0))
		;
	assert_true(next_is_served(r));
	assert_true(answers(fd));
	assert_in_range(clock_now_ms() - begin_ms, 400, PATIENCE_MS); // 2000 a second
	close(fd);
}

// A descriptor of which closing takes long: a TCP connection whose other end does not read, told to linger. Returns
// -1 without a network.
static int slow_to_close(int *other)
{
	static const char bytes[1 << 16];
	const struct linger linger = {.l_onoff = 1, .l_linger = 60};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
	    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &size) ||
	    connect(fd, (struct sockaddr *)&address, size)) {
		close(fd);
		fd = -1;
	} else {
		*other = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
	}
	close(listener);
	return fd;
}

static void what_is_slow_to_close_holds_up_nobody(void **state)
{
	struct rig *r = *state;
	int other = -1, slow = slow_to_close(&other), fd = join(r->paths[0]);
	uint64_t begin_ms;

	if (slow < 0)
		skip();
	peer_send_file(fd, VHOST_USER_SET_VRING_CALL, 0, slow);
	close(slow);
	assert_true(hung_up(fd));
	close(fd);
	assert_int_equal(vhost_listener_refused(r->listeners[0], PEER_REFUSED_NO_EVENTFD), 1);
	begin_ms = clock_now_ms();
	assert_true(next_is_served(r));
	fd = join(r->paths[0]);
	assert_true(answers(fd)); // the same port, too, while it has a connection to spare
	close(fd);
	vhost_listener_close(r->listeners[0]);
	r->listeners[0] = NULL;
	assert_in_range(clock_now_ms() - begin_ms, 0, PATIENCE_MS);
	assert_true(next_is_served(r));
	close(other);
}

static void *call(void *argument)
{
	eventfd_write(*(int *)argument, 1);
	return NULL;
}

enum { SHARED = 8 << 20, PAGE = 4096 };

// A driver that shares this memory has joined the first port. The test uses it as a worker would.
static uint8_t *share(const struct rig *r, int *fd, int *memory)
{
	const struct peer_region region = {PEER_GUEST, SHARED, PEER_USER, 0};
	uint8_t *at;

	*memory = peer_memory(0, SHARED);
	*fd = join(r->paths[0]);
	assert_true(peer_send_table(*fd, &region, 1, memory, 1));
	assert_true(answers(*fd));
	at = mmap(NULL, SHARED, PROT_READ | PROT_WRITE, MAP_SHARED, *memory, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

// Finding 6: a worker that calls its driver stands, because the driver has made its eventfd block and filled it. It is
// woken; the driver goes, and its port is closed for a while.
static void who_stops_a_worker_is_barred(void **state)
{
	struct rig *r = *state;
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), fd, memory, again;
	uint8_t *at = share(r, &fd, &memory);
	uint64_t begin_ms = clock_now_ms();
	pthread_t worker;

	peer_send_file(fd, VHOST_USER_SET_VRING_CALL, 0, event);
	assert_true(answers(fd));
	assert_int_equal(eventfd_write(event, UINT64_MAX - 1), 0);
	fcntl(event, F_SETFL, 0);
	assert_int_equal(pthread_create(&worker, NULL, call, &event), 0);
	assert_true(hung_up(fd));
	pthread_join(worker, NULL);
	assert_in_range(clock_now_ms() - begin_ms, 0, PATIENCE_MS);
	assert_int_equal(vhost_listener_refused(r->listeners[0], PEER_REFUSED_BLOCKING), 1);
	again = join(r->paths[0]);
	peer_send(again, VHOST_USER_GET_FEATURES, NULL, 0, NULL, 0);
	assert_true(next_is_served(r));
	assert_false(readable(again, 500));
	close(again);
	munmap(at, SHARED);
	close(memory);
	close(event);
	close(fd);
}

static void touch(uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PAGE)
		at[i] = 1;
}

static void punch(int memory, off_t at, off_t bytes)
{
	assert_int_equal(fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, bytes), 0);
}

// Finding 10: each page that a worker reads was taken away since, and is made anew. The driver goes, and its port is
// closed for a while.
static void who_takes_memory_away_is_barred(void **state)
{
	struct rig *r = *state;
	int64_t begin_ms = clock_now_ms();
	int fd, memory, again;
	uint8_t *at = share(r, &fd, &memory);

	while (!readable(fd, 0)) {
		assert_in_range(clock_now_ms() - begin_ms, 0, PATIENCE_MS);
		punch(memory, 0, SHARED);
		touch(at, SHARED);
	}
	assert_true(hung_up(fd));
	assert_int_equal(vhost_listener_refused(r->listeners[0], PEER_REFUSED_HOLES), 1);
	again = join(r->paths[0]);
	peer_send(again, VHOST_USER_GET_FEATURES, NULL, 0, NULL, 0);
	assert_true(next_is_served(r));
	assert_false(readable(again, 500));
	munmap(at, SHARED);
	close(memory);
	close(again);
	close(fd);
}

// A balloon: memory goes, page after page, and comes back later; and others have page faults meanwhile.
static void memory_may_be_given_up(void **state)
{
	struct rig *r = *state;
	int fd, memory;
	uint8_t *at = share(r, &fd, &memory);
	int64_t begin_ms;

	for (unsigned round = 0; round < 2; round++) {
		touch(at, SHARED);
		begin_ms = clock_now_ms();
		for (off_t given = 0; clock_now_ms() < begin_ms + 700; given += 16 * PAGE) {
			uint8_t *of_others = mmap(NULL, SHARED, PROT_READ | PROT_WRITE,
			                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			touch(of_others, SHARED);
			munmap(of_others, SHARED);
			if (given < SHARED)
				punch(memory, given, 16 * PAGE);
		}
	}
	assert_true(answers(fd));
	assert_int_equal(vhost_listener_refused(r->listeners[0], PEER_REFUSED_HOLES), 0);
	munmap(at, SHARED);
	close(memory);
	close(fd);
}

static void a_port_closes_with_drivers_in_it(void **state)
{
	struct rig *r = *state;
	int idle = join(r->paths[0]), half = join(r->paths[0]);

	assert_true(answers(idle));
	peer_send_bytes(half, "\1\0", 2, NULL, 0);
	vhost_listener_close(r->listeners[0]);
	r->listeners[0] = NULL;
	assert_true(hung_up(idle) && hung_up(half));
	close(idle);
	close(half);
	assert_true(next_is_served(r));
}

int main(void)
{
	guest_fault_begin(); // it keeps a descriptor
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(a_driver_is_answered, rig_open, rig_close),
	        cmocka_unit_test_setup_teardown(half_a_message_has_a_deadline, rig_open, rig_close),
	        cmocka_unit_test_setup_teardown(replies_that_nobody_reads, rig_open, rig_close),
	        cmocka_unit_test_setup_teardown(connections_are_few, rig_open, rig_close),
	        cmocka_unit_test_setup_teardown(a_second_driver_is_refused_while_the_first_is_there, rig_open,
	                                        rig_close),
	        cmocka_unit_test_setup_teardown(a_driver_whose_end_is_unread_has_gone, rig_open, rig_close),
	        cmocka_unit_test_setup_teardown(a_flood_of_connections_is_slowed, rig_open, rig_close),
	        cmocka_unit_test_setup_teardown(a_storm_of_messages_is_slowed, rig_open, rig_close),
	        cmocka_unit_test_setup_teardown(what_is_slow_to_close_holds_up_nobody, rig_open, rig_close),
	        cmocka_unit_test_setup_teardown(who_stops_a_worker_is_barred, rig_open, rig_close),
	        cmocka_unit_test_setup_teardown(who_takes_memory_away_is_barred, rig_open, rig_close),
	        cmocka_unit_test_setup_teardown(memory_may_be_given_up, rig_open, rig_close),
	        cmocka_unit_test_setup_teardown(a_port_closes_with_drivers_in_it, rig_open, rig_close),
	};

	return cmocka_run_group_tests_name("vhost_listener", tests, NULL, NULL);
}
