/*
 * Torture: a process writes from several threads and is ended, again and again, at each named point
 * of the commit's path and at random moments, as by kill -9 or as by a power cut. Then the store is
 * opened and compared with all that had been acknowledged.
 *
 * As a test it ends a bounded number of processes. TORTURE_SECONDS makes it go on for so long, with
 * points drawn at random; FROND_TEST_SEED repeats a run's choices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rand.h"
#include "disk.h"
#include "kv/embedded/embedded_int.h"
#include "ledger.h"
#include "writers.h"

enum {
	ROUNDS_IN_TEST = 2,  /* through all points: once killed, once cut off */
	RANDOM_IN_TEST = 20, /* and so many at random moments */
	STORE_KILLS = 50,    /* then a new store is begun */
	OPEN_MS = 60000,     /* to the first acknowledgement */
	WITHIN_MS = 400,     /* random moments, while it opens the store and while it writes */
	REACH_MS = 1500,     /* a point that is not reached by then is given up */
	ARG_BYTES = 32,
};

/* ---- Points ---- */

enum how {
	AT_RANDOM,
	AT_STEP,
	AT_DISK,
};

static const struct point {
	const char *name;
	enum how how;
	uint32_t nth_below; /* it is the first, second … time that it is reached */
	bool bulk;          /* large values bring it about sooner */
	enum emb_step step;
	struct disk_point disk;
} points[] = {
	{ "random", AT_RANDOM, 0, false, 0, { 0 } },
	{ "random, large values", AT_RANDOM, 0, true, 0, { 0 } },

	{ "commit taken", AT_STEP, 40, false, EMB_STEP_TAKEN, { 0 } },
	{ "commit resolved", AT_STEP, 40, false, EMB_STEP_RESOLVED, { 0 } },
	{ "log before write", AT_DISK, 40, false, 0, { DISK_LOG, DISK_WRITE, DISK_BEFORE } },
	{ "log torn write", AT_DISK, 40, false, 0, { DISK_LOG, DISK_WRITE, DISK_HALFWAY } },
	{ "log written", AT_DISK, 40, false, 0, { DISK_LOG, DISK_WRITE, DISK_AFTER } },
	{ "log before sync", AT_DISK, 40, false, 0, { DISK_LOG, DISK_SYNC, DISK_BEFORE } },
	{ "log synced", AT_DISK, 40, false, 0, { DISK_LOG, DISK_SYNC, DISK_AFTER } },
	{ "commit written", AT_STEP, 40, false, EMB_STEP_WRITTEN, { 0 } },
	{ "commit published", AT_STEP, 40, false, EMB_STEP_PUBLISHED, { 0 } },
	{ "commit answered", AT_STEP, 40, false, EMB_STEP_ANSWERED, { 0 } },

	/* Flushes and compactions; opening a store that was killed makes a table, too. */
	{ "table before write", AT_DISK, 4, true, 0, { DISK_TABLE, DISK_WRITE, DISK_BEFORE } },
	{ "table torn write", AT_DISK, 4, true, 0, { DISK_TABLE, DISK_WRITE, DISK_HALFWAY } },
	{ "table before sync", AT_DISK, 4, true, 0, { DISK_TABLE, DISK_SYNC, DISK_BEFORE } },
	{ "table synced", AT_DISK, 4, true, 0, { DISK_TABLE, DISK_SYNC, DISK_AFTER } },
	{ "manifest torn write", AT_DISK, 6, true, 0, { DISK_MANIFEST, DISK_WRITE, DISK_HALFWAY } },
	{ "manifest before sync", AT_DISK, 6, true, 0, { DISK_MANIFEST, DISK_SYNC, DISK_BEFORE } },
	{ "manifest synced", AT_DISK, 6, true, 0, { DISK_MANIFEST, DISK_SYNC, DISK_AFTER } },
	{ "manifest before switch",
	  AT_DISK,
	  1,
	  false,
	  0,
	  { DISK_CURRENT, DISK_RENAME, DISK_BEFORE } },
	{ "manifest switched", AT_DISK, 1, false, 0, { DISK_CURRENT, DISK_RENAME, DISK_AFTER } },
	{ "log before removal", AT_DISK, 2, true, 0, { DISK_LOG, DISK_UNLINK, DISK_BEFORE } },
	{ "table before removal", AT_DISK, 2, true, 0, { DISK_TABLE, DISK_UNLINK, DISK_BEFORE } },
	{ "table removed", AT_DISK, 2, true, 0, { DISK_TABLE, DISK_UNLINK, DISK_AFTER } },
};

enum {
	POINTS = sizeof(points) / sizeof(points[0]),
	POINTS_AT_RANDOM = 2,
};

/* One process's fate. */
struct fate {
	uint32_t point;
	uint32_t nth; /* at a named point */
	uint32_t ms;  /* at a random moment: after so long */
	uint32_t power_cut;
	uint64_t seed;
};

/* ---- The process that is ended ---- */

static struct fate own_fate;

static void
end_at_step(enum emb_step step)
{
	static uint32_t reached; /* the committer's alone */

	if (step == points[own_fate.point].step && ++reached == own_fate.nth)
		disk_end(own_fate.power_cut, own_fate.seed);
}

static void *
cut_off_later(void *arg)
{
	(void)arg;
	usleep(own_fate.ms * 1000);
	disk_end(true, own_fate.seed);
}

static void
meet_fate(const char *dir)
{
	const struct point *p = &points[own_fate.point];
	pthread_t thread;

	disk_watch(dir);
	switch (p->how) {
	case AT_RANDOM:
		if (own_fate.power_cut)
			pthread_create(&thread, NULL, cut_off_later, NULL);
		break;
	case AT_STEP:
		emb_step_hook = end_at_step;
		break;
	case AT_DISK:
		disk_end_at(p->disk, own_fate.nth, own_fate.power_cut, own_fate.seed);
		break;
	}
}

/* Arguments: the directory, the pipe, and the fate. */
static int
be_tortured(char **argv)
{
	const struct kv_options options = { .create = true };
	char url[PATH_MAX + ARG_BYTES];
	struct kv_store *store;
	struct err err = { 0 };

	if (sscanf(argv[3], "%" SCNu32 ",%" SCNu32 ",%" SCNu32 ",%" SCNu32 ",%" SCNu64,
		   &own_fate.point, &own_fate.nth, &own_fate.ms, &own_fate.power_cut,
		   &own_fate.seed) != 5 ||
	    own_fate.point >= POINTS)
		return 1;
	meet_fate(argv[1]);
	snprintf(url, sizeof(url), "embedded:%s", argv[1]);
	if (kv_open(url, &options, &store, &err) != STATUS_OK) {
		fprintf(stderr, "opening: %s\n", err.text);
		return 1;
	}
	writers_run(store, atoi(argv[2]), points[own_fate.point].bulk, own_fate.seed);
}

static pid_t
spawn(const char *dir, int out, const struct fate *fate)
{
	char pipe_text[ARG_BYTES];
	char fate_text[4 * ARG_BYTES];
	pid_t pid;

	snprintf(pipe_text, sizeof(pipe_text), "%d", out);
	snprintf(fate_text, sizeof(fate_text),
		 "%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64, fate->point, fate->nth,
		 fate->ms, fate->power_cut, fate->seed);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "torture", dir, pipe_text, fate_text, (char *)NULL);
		_exit(1);
	}
	assert_true(pid > 0);
	return pid;
}

/* ---- The process that watches ---- */

struct torture {
	char dir[PATH_MAX];
	char url[PATH_MAX + ARG_BYTES];
	struct rand_seq rand;
	struct ledger ledger;
	bool failed;
	uint32_t within_ms; /* random moments; doubled until anything is acknowledged by then */
	uint32_t kills;
	uint32_t store_kills; /* of the present store */
	uint32_t reached[POINTS][2];
	uint32_t late[POINTS][2]; /* ended before they were reached */
};

static void
empty_dir(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
}

static _Noreturn void
complain(struct torture *t, const struct fate *fate, const char *what)
{
	t->failed = true;
	fail_msg("'%s', time %u, after %u ms, %s, seed %" PRIu64 ", kill %u of this store: %s",
		 points[fate->point].name, fate->nth, fate->ms,
		 fate->power_cut ? "power cut" : "killed", fate->seed, t->store_kills, what);
	abort();
}

/* Notes what is acknowledged until the process has ended, which a random moment brings about. */
static void
listen(struct torture *t, const struct fate *fate, pid_t pid, int in)
{
	bool at_random = points[fate->point].how == AT_RANDOM;
	uint64_t end = clock_after_ms(at_random && !fate->power_cut ? fate->ms : OPEN_MS);
	struct pollfd pfd = { .fd = in, .events = POLLIN };
	struct writer_ack ack;
	bool ended = false, any = false;

	for (;;) {
		uint64_t now = clock_mono_ns();
		const char *wrong;

		if (!ended && now >= end) {
			kill(pid, SIGKILL);
			ended = true;
			if (!at_random)
				t->late[fate->point][fate->power_cut]++;
		}
		if (poll(&pfd, 1, ended ? -1 : (int)((end - now) / CLOCK_NS_PER_MS) + 1) <= 0)
			continue;
		if (read(in, &ack, sizeof(ack)) != (ssize_t)sizeof(ack))
			break;
		if (!any && !at_random)
			end = clock_after_ms(REACH_MS);
		any = true;
		wrong = ledger_note(&t->ledger, &ack);
		if (wrong)
			complain(t, fate, wrong);
	}
	if (at_random && !t->ledger.acknowledged && t->within_ms < OPEN_MS)
		t->within_ms *= 2;
	if (!ended || at_random)
		t->reached[fate->point][fate->power_cut]++;
}

static void
verify(struct torture *t, const struct fate *fate)
{
	const struct kv_options options = { .create = true };
	struct kv_store *store;
	struct err err = { 0 };
	const char *wrong;

	if (kv_open(t->url, &options, &store, &err) != STATUS_OK)
		complain(t, fate, err.text);
	wrong = ledger_check(&t->ledger, store);
	kv_close(store);
	if (wrong)
		complain(t, fate, wrong);
}

static void
torture_once(struct torture *t, const struct fate *fate)
{
	int fds[2];
	int status;
	pid_t pid;

	if (t->store_kills == STORE_KILLS) {
		empty_dir(t->dir);
		ledger_start(&t->ledger);
		t->store_kills = 0;
	}
	assert_int_equal(pipe(fds), 0);
	pid = spawn(t->dir, fds[1], fate);
	close(fds[1]);
	listen(t, fate, pid, fds[0]);
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		complain(t, fate, "the process ended by itself");
	t->kills++;
	t->store_kills++;
	verify(t, fate);
}

static struct fate
draw_fate(struct torture *t, uint32_t point, bool power_cut)
{
	const struct point *p = &points[point];
	return (struct fate){
		.point = point,
		.nth = p->nth_below ? 1 + (uint32_t)rand_seq_below(&t->rand, p->nth_below) : 0,
		.ms = p->how == AT_RANDOM ? 1 + (uint32_t)rand_seq_below(&t->rand, t->within_ms)
					  : 0,
		.power_cut = power_cut,
		.seed = rand_seq_next(&t->rand),
	};
}

/* ---- The tests ---- */

static int
setup(void **state)
{
	const char *seed = getenv("FROND_TEST_SEED");
	const char *tmp = getenv("TMPDIR");
	struct torture *t = calloc(1, sizeof(*t));
	char dir[PATH_MAX];

	if (!t || !ledger_init(&t->ledger))
		return -1;
	snprintf(dir, sizeof(dir), "%s/frond-torture-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir) || !realpath(dir, t->dir))
		return -1;
	snprintf(t->url, sizeof(t->url), "embedded:%s", t->dir);
	t->within_ms = WITHIN_MS;
	rand_bytes(&t->rand.state, sizeof(t->rand.state));
	if (seed)
		t->rand.state = strtoull(seed, NULL, 0);
	*state = t;
	return 0;
}

/* Comments of TAP: what was done. */
static int
teardown(void **state)
{
	struct torture *t = *state;

	printf("# %-24s %8s %8s %8s\n", "ended at", "killed", "cut off", "missed");
	for (uint32_t i = 0; i < POINTS; i++) {
		uint32_t missed = t->late[i][0] + t->late[i][1];

		if (t->reached[i][0] + t->reached[i][1] + missed)
			printf("# %-24s %8u %8u %8u\n", points[i].name, t->reached[i][0],
			       t->reached[i][1], missed);
	}
	printf("# %u processes ended; %" PRIu64 " transactions acknowledged; %" PRIu64
	       " comparisons of entries\n",
	       t->kills, t->ledger.acknowledged, t->ledger.verified);
	ledger_fini(&t->ledger);
	if (t->failed) {
		printf("# the store is left in %s\n", t->dir);
	} else {
		empty_dir(t->dir);
		rmdir(t->dir);
	}
	free(t);
	return 0;
}

static void
ending_at_any_point_loses_nothing_acknowledged(void **state)
{
	struct torture *t = *state;

	for (uint32_t round = 0; round < ROUNDS_IN_TEST; round++)
		for (uint32_t i = POINTS_AT_RANDOM; i < POINTS; i++) {
			struct fate fate = draw_fate(t, i, (i + round) % 2);

			torture_once(t, &fate);
		}
	/* Some may be missed on a slow machine, but not those that every commit passes. */
	for (uint32_t i = POINTS_AT_RANDOM; i < POINTS; i++)
		if (!points[i].bulk)
			assert_true(t->reached[i][0] + t->reached[i][1] > 0);
	assert_true(t->ledger.acknowledged > 0);
}

static void
ending_at_any_moment_loses_nothing_acknowledged(void **state)
{
	struct torture *t = *state;

	for (uint32_t i = 0; i < RANDOM_IN_TEST; i++) {
		struct fate fate = draw_fate(t, i % POINTS_AT_RANDOM, i / 2 % 2);

		torture_once(t, &fate);
	}
	assert_true(t->ledger.acknowledged > 0);
}

static void
endings_for_hours_lose_nothing_acknowledged(void **state)
{
	const char *seconds = getenv("TORTURE_SECONDS");
	uint64_t end = clock_after_ms(seconds ? strtoull(seconds, NULL, 10) * 1000 : 0);
	struct torture *t = *state;

	while (clock_mono_ns() < end) {
		uint32_t point = (uint32_t)rand_seq_below(&t->rand, POINTS);
		struct fate fate = draw_fate(t, point, rand_seq_below(&t->rand, 2));

		torture_once(t, &fate);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(ending_at_any_point_loses_nothing_acknowledged),
		T(ending_at_any_moment_loses_nothing_acknowledged),
	};
	const struct CMUnitTest for_hours[] = {
		T(endings_for_hours_lose_nothing_acknowledged),
	};

	if (argc == 4)
		return be_tortured(argv);
	if (getenv("TORTURE_SECONDS"))
		return cmocka_run_group_tests(for_hours, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
