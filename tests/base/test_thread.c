#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"

enum {
	ATTRIBUTES_WORDS = 6, /* of sched_getattr(2), 8 bytes each */
	RUNTIME = 3,          /* the word of the turn's length */
	TURN_NS = 300000,
	NICE = 3,
};

/* The length of the calling thread's turns; 0: the kernel knows none. */
static uint64_t
turn_ns(void)
{
	uint64_t words[ATTRIBUTES_WORDS] = { sizeof(words) };

	assert_int_equal(syscall(SYS_sched_getattr, 0, words, sizeof(words), 0), 0);
	return words[RUNTIME];
}

static void *
named(void *arg)
{
	thread_set_name("by another name");
	assert_int_equal(pthread_getname_np(pthread_self(), arg, THREAD_NAME_BYTES), 0);
	return NULL;
}

static void
a_thread_has_a_name_of_its_own(void **state)
{
	char before[THREAD_NAME_BYTES], after[THREAD_NAME_BYTES], name[THREAD_NAME_BYTES];
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_getname_np(pthread_self(), before, sizeof(before)), 0);
	assert_int_equal(pthread_create(&thread, NULL, named, name), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(pthread_getname_np(pthread_self(), after, sizeof(after)), 0);
	assert_string_equal(name, "by another name");
	assert_string_equal(after, before);
}

static void *
background(void *arg)
{
	uint64_t *ret = arg;

	ret[0] = turn_ns();
	thread_set_nice(NICE);
	ret[1] = turn_ns();
	ret[2] = (uint64_t)getpriority(PRIO_PROCESS, 0);
	return NULL;
}

/* Each in a thread of its own, so that the program keeps its own turns. */
static void *
foreground(void *arg)
{
	uint64_t *ret = arg;
	pthread_t thread;

	ret[0] = turn_ns();
	thread_set_turn(TURN_NS);
	ret[1] = turn_ns();
	assert_int_equal(pthread_create(&thread, NULL, background, ret + 2), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return NULL;
}

static void
a_turn_is_inherited_until_a_thread_goes_to_the_background(void **state)
{
	uint64_t got[5];
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, foreground, got), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	/* A nice process may not become less so. */
	if (getpriority(PRIO_PROCESS, 0) <= NICE)
		assert_int_equal(got[4], NICE);
	if (!got[0])
		skip();
	assert_int_equal(got[1], TURN_NS);
	assert_int_equal(got[2], TURN_NS);
	assert_int_equal(got[3], got[0]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_has_a_name_of_its_own),
		cmocka_unit_test(a_turn_is_inherited_until_a_thread_goes_to_the_background),
	};

	return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}
