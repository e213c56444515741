/*
 * A store is opened for reading only while another process writes to it, flushes and compacts: what
 * is seen is one version of it.
 */
#include "../kv/fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger.h"

enum {
	LOOK_MS = 3000,
	MIN_LOOKS = 3, /* on a slow machine, however long they take */
	PATIENCE_MS = 60000,
};

static _Noreturn void
write_for_ever(const char *url)
{
	/* Fast, so that files come and go. */
	const struct kv_options options = { .create = true, .no_sync = true };
	int nowhere = open("/dev/null", O_WRONLY);

	writers_run(fixture_open(url, options), nowhere, true, test_seed());
}

static pid_t
spawn_writer(const char *url)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl("/proc/self/exe", "test_beside", url, (char *)NULL);
		_exit(1);
	}
	assert_true(pid > 0);
	return pid;
}

static void
reader_beside_a_writer_sees_one_version(void **state)
{
	const struct kv_options options = { .read_only = true };
	struct fixture *f = calloc(1, sizeof(*f));
	uint64_t enough = clock_after_ms(LOOK_MS);
	uint64_t end = clock_after_ms(PATIENCE_MS);
	const char *wrong = NULL;
	struct ledger ledger;
	int refused = 0;
	int looks = 0;
	pid_t pid;

	(void)state;
	fixture_make_dir(f);
	snprintf(f->url, sizeof(f->url), "embedded:%s", f->dir);
	assert_true(ledger_init(&ledger));
	kv_close(fixture_open(f->url, (struct kv_options){ .create = true }));
	pid = spawn_writer(f->url);
	while (!wrong && clock_mono_ns() < (looks < MIN_LOOKS ? end : enough)) {
		struct err err = { 0 };
		struct kv_store *store;
		enum status status = kv_open(f->url, &options, &store, &err);

		if (status == STATUS_OK) {
			wrong = ledger_look(&ledger, store);
			kv_close(store);
			looks++;
		} else if (status == STATUS_UNAVAILABLE) {
			refused++;
		} else {
			wrong = err.text;
			print_error("opening: %s\n", err.text);
			break;
		}
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	printf("# %d looks, %d refused, %llu entries compared\n", looks, refused,
	       (unsigned long long)ledger.verified);
	if (wrong)
		fail_msg("%s", wrong);
	assert_true(looks >= MIN_LOOKS);
	ledger_fini(&ledger);
	fixture_remove_dir(f);
	free(f);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reader_beside_a_writer_sees_one_version),
	};

	if (argc == 2)
		write_for_ever(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
