// SPDX-License-Identifier: BSD-3-Clause
// A worker that ends leaves no mbuf in the caches of its thread: they would be out of reach. One that does not park is
// named, and polls on.
#include <errno.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/planed.h"
#include "runtime/worker.h"
#include "test/fixture.h"
#include "test/unit.h"

enum { MBUFS = 255, CACHE = 64 };

struct filler {
	struct task task;
	struct rte_mempool *pool;
	_Atomic bool done;
};

// Take mbufs and free them, so that the cache of this thread is full.
static unsigned filler_poll(struct task *task, uint64_t now_tsc)
{
	struct filler *filler = (struct filler *)task;
	struct rte_mbuf *mbufs[CACHE];

	if (filler->done || rte_pktmbuf_alloc_bulk(filler->pool, mbufs, CACHE))
		return 0;
	rte_pktmbuf_free_bulk(mbufs, CACHE);
	filler->done = true;
	return CACHE;
}

static uint32_t some_cpu(void)
{
	cpu_set_t cpus;
	uint32_t cpu = 0;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	while (!CPU_ISSET(cpu, &cpus))
		cpu++;
	return cpu;
}

static void caches_are_empty_at_the_end(void **state)
{
	const struct task_ops ops = {.poll = filler_poll};
	struct rte_mempool *pool = rte_pktmbuf_pool_create("worker_test", MBUFS, CACHE, 0,
	                                                   RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	struct filler filler = {.task = {.ops = &ops}, .pool = pool};
	const struct config_worker config = {.name = "w", .cpu = some_cpu(), .task_count = 1};
	struct task *tasks[] = {&filler.task};
	struct rte_mbuf *mbufs[MBUFS];
	struct worker *worker;

	assert_non_null(pool);
	assert_int_equal(worker_create(&config, tasks, CONFIG_NICE_UNSET, &worker), 0);
	worker_run(worker);
	while (!filler.done)
		sched_yield();
	worker_destroy(worker);
	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, mbufs, MBUFS), 0);
	rte_pktmbuf_free_bulk(mbufs, MBUFS);
	rte_mempool_free(pool);
}

enum { WORK_CYCLES = 2000 };

static unsigned working_poll(struct task *task, uint64_t now_tsc)
{
	while (rte_rdtsc() - now_tsc < WORK_CYCLES)
		;
	return 1;
}

// Each poll of so many cycles takes four times as long; other threads may only make it longer.
static void at_a_quarter_of_the_clock_a_poll_takes_four_times_as_long(void **state)
{
	const struct task_ops ops = {.poll = working_poll};
	struct task task = {.ops = &ops};
	const struct config_worker config = {
	        .name = "w", .cpu = some_cpu(), .duty_percent = 25, .task_count = 1};
	struct task *tasks[] = {&task};
	struct worker *worker;

	assert_int_equal(worker_create(&config, tasks, CONFIG_NICE_UNSET, &worker), 0);
	worker_run(worker);
	while (__atomic_load_n(&task.counters.busy_polls, __ATOMIC_RELAXED) < 100)
		sched_yield();
	worker_destroy(worker);
	assert_true(task.counters.busy_cycles >= task.counters.busy_polls * 4 * WORK_CYCLES);
}

struct stuck {
	struct task task;
	sem_t released; // for good
	_Atomic unsigned polls;
};

static unsigned stuck_poll(struct task *task, uint64_t now_tsc)
{
	struct stuck *stuck = (struct stuck *)task;

	stuck->polls++;
	sem_wait(&stuck->released); // asleep, however many others want its CPU
	sem_post(&stuck->released);
	return 0;
}

static unsigned other_poll(struct task *task, uint64_t now_tsc)
{
	return 0;
}

static void who_does_not_park_is_named_and_polls_on(void **state)
{
	const struct task_ops ops = {.poll = stuck_poll}, other_ops = {.poll = other_poll};
	struct stuck stuck = {.task = {.ops = &ops, .name = "stuck"}};
	struct task before = {.ops = &other_ops, .name = "before"},
	            after = {.ops = &other_ops, .name = "after"};
	const struct config_worker config = {.name = "w7", .cpu = some_cpu(), .task_count = 3};
	struct task *tasks[] = {&before, &stuck.task, &after};
	struct planed *planed = calloc(1, sizeof(*planed));
	static struct config next;
	char error[CONFIG_ERROR_MAX] = "";
	unsigned polls;

	assert_int_equal(sem_init(&stuck.released, 0, 0), 0);
	assert_int_equal(worker_create(&config, tasks, CONFIG_NICE_UNSET, &planed->workers[0]), 0);
	planed->worker_count = 1;
	worker_run(planed->workers[0]);
	while (stuck.polls == 0)
		sched_yield();
	assert_int_equal(planed_park(planed, error), -ETIMEDOUT); // takes WORKER_PARK_MS
	assert_non_null(
	        strstr(error, "worker w7 did not stop polling within 5000 ms: it stands in task stuck;"));
	assert_int_equal(planed_wait_turn(planed, error), -ETIMEDOUT);
	assert_non_null(strstr(
	        error, "worker w7 did not poll all of its tasks within 5000 ms: it stands in task stuck;"));
	worker_look_after(planed->workers[0]);
	assert_false(planed->workers[0]->stands);
	usleep((WORKER_STANDS_MS + 100) * 1000);
	worker_look_after(planed->workers[0]);
	assert_true(planed->workers[0]->stands);
	error[0] = '\0';
	assert_int_equal(planed_apply(planed, &next, NULL, NULL, NULL, error),
	                 -ETIMEDOUT); // nothing was built
	assert_non_null(strstr(error, "it stands in task stuck;"));
	assert_int_equal(planed_close(planed), -ETIMEDOUT);
	assert_int_equal(planed->worker_count, 1);
	polls = stuck.polls;
	sem_post(&stuck.released);
	while (stuck.polls < polls + 10)
		sched_yield();
	worker_look_after(planed->workers[0]);
	assert_false(planed->workers[0]->stands);
	assert_int_equal(planed_wait_turn(planed, error), 0);
	assert_int_equal(planed_park(planed, error), 0);
	worker_destroy(planed->workers[0]);
	free(planed);
}

static void who_waits_for_its_cpu_does_not_stand(void **state)
{
	assert_true(worker_waits_for_cpu('R', 0));
	assert_true(worker_waits_for_cpu('R', WORKER_RAN_NS - 1));
	assert_false(worker_waits_for_cpu('R', WORKER_RAN_NS)); // it runs in a circle
	assert_false(worker_waits_for_cpu('S', 0));             // a call that blocks
	assert_false(worker_waits_for_cpu('D', 0));             // a page that does not come
	assert_false(worker_waits_for_cpu(0, 0));               // not known: it is named
}

static void the_deadline_is_as_patient_as_that_of_whoever_asks(void **state)
{
	static const struct {
		const char *patience;
		unsigned ms;
	} table[] = {{"1", 5000}, {"12.5", 62500}, {"0.5", 5000}, {"1e9", 5000}, {"x", 5000}};
	struct timespec now, deadline;

	assert_int_equal(worker_park_ms(), WORKER_PARK_MS);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		setenv("PLANEBENCH_PATIENCE", table[i].patience, 1);
		clock_gettime(CLOCK_MONOTONIC, &now);
		deadline = worker_park_deadline();
		assert_int_equal(worker_park_ms(), table[i].ms);
		assert_true(deadline.tv_sec >= now.tv_sec + table[i].ms / 1000);
	}
	unsetenv("PLANEBENCH_PATIENCE");
}

// Have it poll once or more, and park it again. Returns the cycles that this took.
static uint64_t run_for_a_moment(struct worker *worker)
{
	uint64_t begin = rte_rdtsc(), loops = worker->counters.loops;
	struct timespec deadline;

	worker_run(worker);
	while (__atomic_load_n(&worker->counters.loops, __ATOMIC_RELAXED) == loops)
		sched_yield();
	worker_order_park(worker);
	deadline = worker_park_deadline();
	assert_int_equal(worker_wait_parked(worker, &deadline), 0);
	return rte_rdtsc() - begin;
}

// Woken after the watched time began. Not where no time was given, and not once it has polled.
static void a_start_that_is_late_is_a_gap(void **state)
{
	const struct task_ops ops = {.poll = other_poll};
	struct task task = {.ops = &ops};
	const struct config_worker config = {.name = "w", .cpu = some_cpu(), .task_count = 1};
	const uint64_t late_tsc = clock_hz();
	struct task *tasks[] = {&task};
	struct worker *worker;

	assert_int_equal(worker_create(&config, tasks, CONFIG_NICE_UNSET, &worker), 0);
	worker_clear(worker, rte_rdtsc() - late_tsc, UINT64_MAX);
	run_for_a_moment(worker);
	assert_true(worker->counters.gaps > 0);
	assert_true(worker->counters.gap_max_cycles >= late_tsc);
	worker->counters.gap_sum_cycles = 0;
	assert_true(worker->counters.gap_sum_cycles <= run_for_a_moment(worker));
	worker_clear(worker, 0, UINT64_MAX);
	assert_true(worker->counters.gap_sum_cycles <= run_for_a_moment(worker));
	worker_destroy(worker);
}

enum { STAND_NS = 1000000 };

struct standing {
	struct task task;
	uint64_t stand_from_tsc;     // 0: at once
	uint64_t begin_tsc, end_tsc; // of the poll that stands
	bool turn_known;             // in each poll
};

static unsigned standing_poll(struct task *task, uint64_t now_tsc)
{
	struct standing *standing = (struct standing *)task;
	const uint64_t ticks = clock_ticks(STAND_NS);

	standing->turn_known = poll_turn.begin_tsc == now_tsc && poll_turn.gap_ticks == ticks / 2;
	if (standing->begin_tsc || now_tsc < standing->stand_from_tsc)
		return 0;
	standing->begin_tsc = now_tsc;
	while (rte_rdtsc() - now_tsc <= ticks)
		;
	standing->end_tsc = rte_rdtsc();
	return 1;
}

// A gap that begins before the watched time and ends after it took all of that, and no more.
static void of_a_gap_counts_what_is_in_the_watched_time(void **state)
{
	const struct task_ops ops = {.poll = standing_poll};
	const uint64_t ticks = clock_ticks(STAND_NS);
	struct standing standing = {.task = {.ops = &ops}, .stand_from_tsc = rte_rdtsc() + 100 * ticks};
	const uint64_t from = standing.stand_from_tsc + ticks / 4, until = from + ticks / 4;
	const struct config_worker config = {
	        .name = "w", .cpu = some_cpu(), .task_count = 1, .gap_threshold_ns = STAND_NS / 2};
	struct task *tasks[] = {&standing.task};
	struct worker *worker;

	assert_int_equal(worker_create(&config, tasks, CONFIG_NICE_UNSET, &worker), 0);
	worker_clear(worker, from, until);
	worker_run(worker);
	while (__atomic_load_n(&standing.end_tsc, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	run_for_a_moment(worker);
	assert_true(worker->counters.gaps > 0);
	assert_in_range(worker->counters.gap_sum_cycles, 1, until - from);
	worker_destroy(worker);
}

// Whoever is polled knows when the turn began, and all know when a turn that was a gap has ended, watched or not.
static void a_gap_is_known_to_all(void **state)
{
	const struct task_ops ops = {.poll = standing_poll};
	struct standing standing = {.task = {.ops = &ops}};
	const struct config_worker config = {
	        .name = "w", .cpu = some_cpu(), .task_count = 1, .gap_threshold_ns = STAND_NS / 2};
	struct task *tasks[] = {&standing.task};
	struct worker *worker;

	assert_int_equal(worker_create(&config, tasks, CONFIG_NICE_UNSET, &worker), 0);
	worker_clear(worker, 0, 1); // watched until long ago
	assert_false(poll_gap_met(rte_rdtsc(), rte_rdtsc()));
	run_for_a_moment(worker);
	assert_true(standing.turn_known);
	assert_int_equal(worker->counters.gaps, 0);
	assert_true(poll_gap_end_tsc >= standing.end_tsc);
	assert_int_equal(poll_gap_ticks(standing.begin_tsc, standing.end_tsc),
	                 standing.end_tsc - standing.begin_tsc);
	assert_true(poll_gap_met(standing.begin_tsc, standing.end_tsc));
	assert_false(poll_gap_met(rte_rdtsc(), rte_rdtsc()));
	worker_destroy(worker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(caches_are_empty_at_the_end),
	        cmocka_unit_test(at_a_quarter_of_the_clock_a_poll_takes_four_times_as_long),
	        cmocka_unit_test(a_start_that_is_late_is_a_gap),
	        cmocka_unit_test(of_a_gap_counts_what_is_in_the_watched_time),
	        cmocka_unit_test(a_gap_is_known_to_all),
	        cmocka_unit_test(who_does_not_park_is_named_and_polls_on),
	        cmocka_unit_test(who_waits_for_its_cpu_does_not_stand),
	        cmocka_unit_test(the_deadline_is_as_patient_as_that_of_whoever_asks),
	};

	return fixture_eal_init("worker") ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
