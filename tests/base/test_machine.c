/* How much memory a process may use, by what its control groups say, in trees of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/machine.h"

enum {
	MIB = 1 << 20,
	MACHINE = 1000 * MIB
};

static char root[] = "/tmp/frond-machine-XXXXXX";

/* Writes a file of the tree, and the directories that it lies in. */
static void
put(const char *path, const char *text)
{
	char full[PATH_MAX];
	FILE *f;

	assert_in_range(snprintf(full, sizeof(full), "%s%s", root, path), 1, sizeof(full) - 1);
	for (char *at = full + sizeof(root); (at = strchr(at, '/')); at++) {
		*at = '\0';
		(void)mkdir(full, 0700);
		*at = '/';
	}
	f = fopen(full, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int
begin(void **state)
{
	(void)state;
	strcpy(root + strlen(root) - 6, "XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int
end(void **state)
{
	char command[PATH_MAX];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static void
expect(uint64_t bytes)
{
	assert_int_equal(machine_memory_bytes_below(root, MACHINE), bytes);
}

static void
without_groups_it_is_the_machine_s(void **state)
{
	(void)state;
	expect(MACHINE);
	put("/proc/self/cgroup", "0::/\n1:name\n\nnothing\n9:cpu,cpuacct:/a\n");
	expect(MACHINE);
}

static void
the_lowest_limit_of_the_groups_around_counts(void **state)
{
	(void)state;
	put("/proc/self/cgroup", "0::/system.slice/frond.service\n");
	put("/sys/fs/cgroup/system.slice/frond.service/memory.max", "max\n");
	expect(MACHINE);
	put("/sys/fs/cgroup/system.slice/memory.max", "524288000\n");
	expect(500 * MIB);
	put("/sys/fs/cgroup/system.slice/frond.service/memory.max", "104857600\n");
	expect(100 * MIB);
	put("/sys/fs/cgroup/memory.max", "52428800\n");
	expect(50 * MIB);
	/* More than there is, or nothing that a group may have. */
	put("/sys/fs/cgroup/memory.max", "5242880000000\n");
	put("/sys/fs/cgroup/system.slice/memory.max", "0\n");
	put("/sys/fs/cgroup/system.slice/frond.service/memory.max", "?\n");
	expect(MACHINE);
	/* Groups that this one is not in. */
	put("/sys/fs/cgroup/system.slice/other.service/memory.max", "1\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1\n");
	expect(MACHINE);
}

static void
the_first_interface_is_known_too(void **state)
{
	(void)state;
	put("/proc/self/cgroup",
	    "5:memoryless:/b\n4:cpu,memory:/outside/a\n3:cpu,inmemory:/b\n0::/\n");
	put("/sys/fs/cgroup/memory/b/memory.limit_in_bytes", "1\n");
	put("/sys/fs/cgroup/memory.max", "max\n");
	expect(MACHINE);
	/* In a container: the path is the one outside, the mounted group its own. */
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "209715200\n");
	expect(200 * MIB);
	put("/sys/fs/cgroup/memory/outside/memory.limit_in_bytes", "9223372036854771712\n");
	expect(200 * MIB);
	put("/sys/fs/cgroup/memory/outside/a/memory.limit_in_bytes", "20971520\n");
	expect(20 * MIB);
}

static void
this_machine_has_some(void **state)
{
	(void)state;
	assert_true(machine_memory_bytes() > 16 * MIB);
	assert_int_equal(machine_installed_bytes(),
			 (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
	assert_true(machine_memory_bytes() <= machine_installed_bytes());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_groups_it_is_the_machine_s, begin, end),
		cmocka_unit_test_setup_teardown(the_lowest_limit_of_the_groups_around_counts, begin,
						end),
		cmocka_unit_test_setup_teardown(the_first_interface_is_known_too, begin, end),
		cmocka_unit_test(this_machine_has_some),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
