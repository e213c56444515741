/*
 * Linked into every program of the build that mutants are judged with: chooses among the changes
 * that its sources hold, and among the cases of a test.
 *
 * MUTANT has the number of the change that is made in this process; without it none is.
 * MUTANT_TABLE is a file of zeros as long as `struct table`, which is told what a run without a
 * change has met: which functions with changes each case has called, also in threads, in children,
 * and in other programs that it starts; and how long each case took.
 *
 * MUTANT_CASES has the numbers of the cases that run, from 1 on over all groups, as "3,17". Without
 * it all do. A group whose cases share what was set up for all of them runs as a whole, and has one
 * number: a case may notice what another one of it has done. 0 stands for what is outside of cases.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	CASES_MAX = 1024, /* schema.py has the same numbers */
	MUTANTS_MAX = 4096,
};

struct table {
	uint64_t now; /* the number of the case that runs, or 0 */
	double seconds[CASES_MAX];
	unsigned char met[CASES_MAX][MUTANTS_MAX];
};

/* What the linker gives for --wrap; not there in programs that are no tests. */
int __real__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t count,
				   CMFixtureFunction setup, CMFixtureFunction teardown)
	__attribute__((weak));
int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t count,
				   CMFixtureFunction setup, CMFixtureFunction teardown);
bool mutant_met(int number);

int mutant_chosen;
struct table *mutant_table;

/* Of the group that runs: its cases that were chosen, as many of which have begun. */
static struct chosen_case {
	const struct CMUnitTest *test;
	unsigned long number;
} * chosen;
static size_t begun;
static double begun_at;

__attribute__((constructor)) static void
read_environment(void)
{
	const char *number = getenv("MUTANT"), *path = getenv("MUTANT_TABLE");
	void *there;
	int fd;

	mutant_chosen = number ? atoi(number) : 0;
	fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	there = mmap(NULL, sizeof(struct table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	mutant_table = there == MAP_FAILED ? NULL : there;
}

/* Always false: the function goes on without the change. */
bool
mutant_met(int number)
{
	mutant_table->met[mutant_table->now][number] = 1;
	return false;
}

static double
seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void
case_begin(unsigned long number)
{
	if (number >= CASES_MAX)
		abort();
	begun_at = seconds_now();
	if (mutant_table)
		mutant_table->now = number;
}

static void
case_end(void)
{
	if (!mutant_table)
		return;
	mutant_table->seconds[mutant_table->now] += seconds_now() - begun_at;
	mutant_table->now = 0;
}

static int
case_setup(void **state)
{
	const struct CMUnitTest *test = chosen[begun].test;

	case_begin(chosen[begun++].number);
	return test->setup_func ? test->setup_func(state) : 0;
}

static void
case_run(void **state)
{
	chosen[begun - 1].test->test_func(state);
}

static int
case_teardown(void **state)
{
	const struct CMUnitTest *test = chosen[begun - 1].test;
	int code = test->teardown_func ? test->teardown_func(state) : 0;

	case_end();
	return code;
}

static bool
is_wanted(unsigned long number)
{
	const char *at = getenv("MUTANT_CASES");

	while (at && *at) {
		char *end;

		if (strtoul(at, &end, 10) == number)
			return true;
		at = *end ? end + 1 : end;
	}
	return !at;
}

int
__wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t count,
			       CMFixtureFunction setup, CMFixtureFunction teardown)
{
	static unsigned long before; /* numbers of earlier groups */
	struct CMUnitTest *cases;
	size_t kept = 0;
	int code;

	if (setup || teardown) {
		if (!is_wanted(++before))
			return 0;
		case_begin(before);
		code = __real__cmocka_run_group_tests(name, tests, count, setup, teardown);
		case_end();
		return code;
	}
	cases = calloc(count + 1, sizeof(*cases));
	chosen = calloc(count + 1, sizeof(*chosen));
	if (!cases || !chosen)
		abort();
	for (size_t i = 0; i < count; i++) {
		if (!is_wanted(before + i + 1))
			continue;
		cases[kept] = tests[i];
		cases[kept].setup_func = case_setup;
		cases[kept].test_func = case_run;
		cases[kept].teardown_func = case_teardown;
		chosen[kept++] = (struct chosen_case){ &tests[i], before + i + 1 };
	}
	before += count;
	begun = 0;
	code = kept ? __real__cmocka_run_group_tests(name, cases, kept, NULL, NULL) : 0;
	free(cases);
	free(chosen);
	return code;
}
