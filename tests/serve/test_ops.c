/* Operations of doors: what others see of them, how they end, and what was slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "loop/wait.h"
#include "serve/ops.h"

enum {
	THREADS = 4,
	ROUNDS = 300,
	NEVER_MS = 60 * 1000, /* an end that was lost makes the test fail, and not hang */
	LOG_BYTES = 64 * 1024,
	SLOW = 20 * OPS_SLOW_NOTED_PER_S,
};

/* What a door keeps for an operation. */
struct work {
	struct ops_op op;
	struct event ended;
};

static const char *const classes[] = { "short", "long" };

static void
end_work(struct ops_op *op)
{
	event_set(&((struct work *)((char *)op - offsetof(struct work, op)))->ended);
}

OPS_DOOR(one, "one", classes, LOG_LEVEL_WARN, end_work);
OPS_DOOR(other, "other", classes, LOG_LEVEL_INFO, end_work);
OPS_DOOR(crowd, "crowd", classes, LOG_LEVEL_INFO, end_work);

static void
work_begin(struct work *w, struct ops_door *door, const char *name)
{
	*w = (struct work){ .op = { .door = door,
				    .name = str_from_cstr(name),
				    .on = STR("db"),
				    .peer = "127.0.0.1:40312",
				    .began_ns = clock_mono_ns() } };
	event_init(&w->ended);
	assert_int_equal(ops_admit(&w->op, STR(""), NULL), STATUS_OK);
	ops_begin(&w->op);
}

/* ---- The registry ---- */

struct seen {
	size_t count;
	bool has_user;
	bool has[2]; /* doors */
};

static bool
see(void *arg, struct ops_op *op)
{
	struct seen *seen = arg;

	seen->count++;
	seen->has[op->door == &other] = true;
	seen->has_user = seen->has_user || str_eq(op->user, STR("anna"));
	return true;
}

static void
operations_of_all_doors_are_seen_while_they_run(void **state)
{
	struct seen seen = { .count = 0 };
	struct work a, b;

	(void)state;
	work_begin(&a, &one, "GET");
	work_begin(&b, &other, "find");
	ops_each(see, &seen);
	assert_int_equal(seen.count, 2);
	assert_true(seen.has[0] && seen.has[1]);
	assert_false(seen.has_user);
	(void)!ops_set_user(&a.op, STR("anna"), false, NULL);
	ops_each(see, &seen);
	assert_true(seen.has_user);
	assert_int_not_equal(a.op.id, b.op.id);
	ops_end(&a.op, NULL);
	assert_int_equal(a.op.id, 0);
	seen = (struct seen){ .count = 0 };
	ops_each(see, &seen);
	assert_int_equal(seen.count, 1);
	assert_true(seen.has[1]);
	ops_end(&b.op, NULL);
}

static bool
allow(void *arg, struct ops_op *op)
{
	(void)op;
	return *(bool *)arg;
}

static void
only_what_may_be_ended_is_ended(void **state)
{
	bool allowed = false;
	struct work a, b;
	uint64_t id;

	(void)state;
	work_begin(&a, &one, "GET");
	work_begin(&b, &one, "GET");
	id = a.op.id;
	assert_false(ops_end_one(id, allow, &allowed));
	assert_false(event_is_set(&a.ended));
	allowed = true;
	assert_true(ops_end_one(id, allow, &allowed));
	assert_true(event_is_set(&a.ended));
	assert_false(event_is_set(&b.ended));
	ops_end(&a.op, NULL);
	assert_false(ops_end_one(id, allow, &allowed));
	assert_false(ops_end_one(0, allow, &allowed));
	ops_end(&b.op, NULL);
}

/* ---- What was slow ---- */

static char log_text[LOG_BYTES];

/* Runs `fn`, and returns what it has logged. */
static const char *
log_of(void (*fn)(void))
{
	FILE *file = tmpfile();
	int before = dup(STDERR_FILENO);
	size_t n;

	assert_non_null(file);
	assert_true(before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
	fn();
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	close(before);
	rewind(file);
	n = fread(log_text, 1, sizeof(log_text) - 1, file);
	log_text[n] = '\0';
	(void)fclose(file);
	return log_text;
}

static size_t
count_lines(const char *text)
{
	size_t count = 0;

	for (; (text = strstr(text, "event=slow_operation")); text++)
		count++;
	return count;
}

static bool
note(struct ops_door *door, const char *name, size_t keep)
{
	const struct ops_op op = { .door = door,
				   .name = str_from_cstr(name),
				   .on = STR("the db"),
				   .on_more = STR("c"),
				   .peer = "127.0.0.1:40312" };
	const struct ops_slow slow = { .took_ns = 1234 * CLOCK_NS_PER_MS,
				       .user = STR("an\"na"),
				       .client = STR("the client"),
				       .args = STR("a secret"),
				       .on_rest = STR("?x="),
				       .more = STR("status=200"),
				       .keep = keep };

	if (!ops_count_slow(door))
		return false;
	ops_note_slow(&op, &slow);
	return true;
}

static void
note_one(void)
{
	assert_true(note(&one, "GET", 2));
}

static void
note_none_kept(void)
{
	assert_true(note(&other, "GET", 0));
}

static void
note_many(void)
{
	for (size_t i = 0; i < ROUNDS; i++)
		(void)note(&one, "find", 2);
}

static uint64_t
count_noted(const struct ops_door *door)
{
	int64_t value;

	assert_true(metric_value(door->slow_count, 0, &value));
	return (uint64_t)value;
}

static void
what_was_slow_is_one_line_without_what_clients_have_sent(void **state)
{
	const char *log;

	(void)state;
	log = log_of(note_one);
	assert_int_equal(count_lines(log), 1);
	assert_non_null(strstr(log, "level=warn event=slow_operation door=one name=GET "
				    "on=\"the%20db.c?x=\" took_ms=1234 status=200 "
				    "user=\"an%22na\" client=127.0.0.1:40312 left_out=0"));
	assert_null(strstr(log, "secret"));
	assert_null(strstr(log, "the client"));
	log = log_of(note_none_kept);
	assert_non_null(strstr(log, "level=info event=slow_operation door=other"));
}

static void
see_slow(void *arg, const struct recent_entry *entry)
{
	const struct ops_slow_entry *e = (const struct ops_slow_entry *)entry;

	*(size_t *)arg += 1;
	assert_ptr_equal(e->door, &one);
	assert_int_equal(e->took_ns, 1234 * CLOCK_NS_PER_MS);
	assert_true(str_eq(e->args, STR("a secret")));
	assert_true(str_eq(e->client, STR("the client")));
	assert_true(str_eq(e->peer, STR("127.0.0.1:40312")));
	assert_true(str_starts_with(e->line, STR("time_ms=")));
}

static void
the_newest_are_kept_and_lines_are_bounded(void **state)
{
	uint64_t before_ns = clock_mono_ns();
	uint64_t before = count_noted(&one);
	size_t kept = 0, lines;

	(void)state;
	lines = count_lines(log_of(note_many));
	/* The seconds of the limit begin when they like. */
	assert_in_range(lines, 1,
			OPS_SLOW_LINES_PER_S *
				(2 + (clock_mono_ns() - before_ns) / (1000 * CLOCK_NS_PER_MS)));
	assert_int_equal(count_noted(&one) - before, ROUNDS);
	ops_each_slow(see_slow, &kept);
	assert_int_equal(kept, 2);
}

static size_t noted;

static void
note_too_many(void)
{
	for (size_t i = 0; i < SLOW; i++)
		noted += note(&crowd, "set", 2);
}

static void
note_crowd_again(void)
{
	usleep(1100 * 1000); /* until another second, which allows a line as well */
	assert_true(note(&crowd, "set", 2));
}

/* The lines tell of all that were slow: each of itself, and how many were left out before it. */
static size_t
count_told(const char *log)
{
	size_t told = 0;

	for (; (log = strstr(log, " left_out=")); log++)
		told += 1 + strtoul(log + strlen(" left_out="), NULL, 10);
	return told;
}

static void
more_slow_ones_than_a_second_may_note_are_only_counted(void **state)
{
	uint64_t before_ns = clock_mono_ns();
	int64_t left_out;
	size_t told;

	(void)state;
	told = count_told(log_of(note_too_many));
	/* The seconds of the limit begin when they like. */
	assert_in_range(noted, 1,
			OPS_SLOW_NOTED_PER_S *
				(2 + (clock_mono_ns() - before_ns) / (1000 * CLOCK_NS_PER_MS)));
	assert_true(metric_value(crowd.slow_left_out, 0, &left_out));
	assert_int_equal(count_noted(&crowd), SLOW);
	assert_int_equal(left_out, SLOW - noted);
	told += count_told(log_of(note_crowd_again));
	assert_int_equal(told, count_noted(&crowd));
}

static void
times_are_counted_by_door_and_class(void **state)
{
	struct metric_distribution all = { .count = 0 }, longer = { .count = 0 };

	(void)state;
	metric_hold();
	ops_count(&one, 0, 1000);
	ops_count(&one, 1, 2000);
	ops_count(&other, 1, 4000);
	assert_true(metric_distribution_sum(OPS_TIME_NAME, "one", &all));
	assert_int_equal(all.count, 2);
	assert_int_equal(all.sum, 3000);
	assert_true(metric_distribution_sum(OPS_TIME_NAME, "long", &longer));
	assert_int_equal(longer.sum, 6000);
	metric_release();
}

/* ---- Threads ---- */

/* Begins work, waits until somebody ends it, and begins anew, as often as it likes. */
static void *
work_and_be_ended(void *arg)
{
	for (size_t i = 0; i < ROUNDS; i++) {
		struct work w;

		work_begin(&w, &one, "wait");
		(void)!ops_set_user(&w.op, STR("anna"), false, NULL);
		if (!event_wait(&w.ended, clock_after_ms(NEVER_MS)))
			*(bool *)arg = true;
		ops_end(&w.op, NULL);
	}
	return NULL;
}

static bool
remember_one(void *arg, struct ops_op *op)
{
	*(uint64_t *)arg = op->id;
	return true;
}

static void
what_is_ended_is_what_was_seen(void **state)
{
	pthread_t threads[THREADS];
	bool lost[THREADS] = { false };
	bool allowed = true;
	struct seen seen = { .count = 0 };
	size_t ended = 0;

	(void)state;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work_and_be_ended, &lost[i]), 0);
	for (size_t i = 0; i < THREADS; i++) {
		while (pthread_tryjoin_np(threads[i], NULL) != 0) {
			uint64_t id = 0;

			ops_each(remember_one, &id);
			ops_each(see, &seen);
			ended += ops_end_one(id, allow, &allowed);
		}
		assert_false(lost[i]);
	}
	assert_true(ended >= THREADS * ROUNDS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_of_all_doors_are_seen_while_they_run),
		cmocka_unit_test(only_what_may_be_ended_is_ended),
		cmocka_unit_test(what_was_slow_is_one_line_without_what_clients_have_sent),
		cmocka_unit_test(the_newest_are_kept_and_lines_are_bounded),
		cmocka_unit_test(more_slow_ones_than_a_second_may_note_are_only_counted),
		cmocka_unit_test(times_are_counted_by_door_and_class),
		cmocka_unit_test(what_is_ended_is_what_was_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
