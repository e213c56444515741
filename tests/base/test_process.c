#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"

static void
system_tells_of_the_process(void **state)
{
	(void)state;
	assert_true(process_resident_bytes() > 100000);
	assert_true(process_virtual_bytes() >= process_resident_bytes());
	assert_true(process_threads() >= 1);
	assert_true(process_cpu_ns() >= 0);
	assert_true(process_most_open_files() >= 0);
	assert_true(process_context_switches() >= 0);
}

static void
process_started_a_moment_ago(void **state)
{
	int64_t ago_ms = (int64_t)clock_wall_ms() - process_start_ns() / (int64_t)CLOCK_NS_PER_MS;

	(void)state;
	assert_true(ago_ms > -1000 && ago_ms < 10 * 60 * 1000);
}

static void
an_open_file_is_counted(void **state)
{
	int64_t before = process_open_files();
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(before >= 3);
	assert_int_equal(process_open_files(), before + 1);
	close(fd);
	assert_int_equal(process_open_files(), before);
}

static atomic_bool computing;

static void *
compute_until_told(void *arg)
{
	(void)arg;
	while (atomic_load(&computing))
		;
	return NULL;
}

/* One thread more than there are processors, whatever else the machine does. */
static void
processors_are_short_while_more_threads_run(void **state)
{
	static pthread_t threads[1024];
	size_t count = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
	bool seen = false;

	(void)state;
	if (count > sizeof(threads) / sizeof(threads[0]))
		skip();
	atomic_store(&computing, true);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, compute_until_told, NULL), 0);
	/* This thread runs as well, but the others may not have begun yet. */
	for (uint64_t end = clock_after_ms(10000); !seen && clock_mono_ns() < end;)
		seen = process_processors_are_short();
	atomic_store(&computing, false);
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	assert_true(seen);
}

static void *
compute_for_a_while(void *arg)
{
	struct process_thread *t = arg;
	int64_t before;

	process_thread_begin(t);
	before = process_thread_cpu_ns(t);
	assert_true(before >= 0);
	while (process_thread_cpu_ns(t) == before)
		;
	process_thread_end(t);
	return NULL;
}

static void
thread_has_a_time_of_its_own_while_it_runs(void **state)
{
	struct process_thread t = { 0 };
	pthread_t thread;

	(void)state;
	assert_int_equal(process_thread_cpu_ns(&t), -1);
	assert_int_equal(pthread_create(&thread, NULL, compute_for_a_while, &t), 0);
	pthread_join(thread, NULL);
	assert_int_equal(process_thread_cpu_ns(&t), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(system_tells_of_the_process),
		cmocka_unit_test(process_started_a_moment_ago),
		cmocka_unit_test(an_open_file_is_counted),
		cmocka_unit_test(processors_are_short_while_more_threads_run),
		cmocka_unit_test(thread_has_a_time_of_its_own_while_it_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
