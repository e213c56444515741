/* Jobs that meet take turns in groups: of threads, and of fibers of several loops. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "loop/lanes.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "loop/task.h"

/* ---- Threads, one after the other ---- */

enum {
	QUEUED = 4
};

struct queued {
	struct lanes_job job; /* first */
	struct lanes *lanes;
	pthread_t thread;
	bool led;
	size_t others;         /* in the group that it has led */
	_Atomic bool returned; /* of lanes_enter() */
};

static size_t
waiting_in(struct lanes *q)
{
	size_t n;

	pthread_mutex_lock(&q->lock);
	n = q->waiting;
	pthread_mutex_unlock(&q->lock);
	return n;
}

static void *
queued_run(void *arg)
{
	struct queued *one = arg;

	one->led = lanes_enter(one->lanes, &one->job);
	atomic_store(&one->returned, true);
	if (!one->led)
		return NULL;
	for (const struct lanes_job *j = one->job.group; j; j = j->group)
		one->others++;
	lanes_leave(one->lanes, &one->job, lanes_of_group(&one->job));
	return NULL;
}

/* Has `count` jobs of one lane queue in their order, behind somebody who has it. */
static void
queue_behind(struct lanes *q, struct lanes_job *holder, struct queued *all, size_t count)
{
	assert_true(lanes_enter(q, holder));
	assert_null(holder->group);
	for (size_t i = 0; i < count; i++) {
		all[i].lanes = q;
		all[i].job.lanes = holder->lanes;
		assert_int_equal(pthread_create(&all[i].thread, NULL, queued_run, &all[i]), 0);
		while (waiting_in(q) != i + 1)
			usleep(100);
	}
}

static void
join(struct queued *all, size_t count)
{
	for (size_t i = 0; i < count; i++)
		pthread_join(all[i].thread, NULL);
}

static void
the_first_that_waits_runs_all_others_in_their_order(void **state)
{
	struct queued all[QUEUED] = { 0 };
	struct lanes_job holder = { .lanes = lanes_of(5) };
	struct lanes q;

	(void)state;
	lanes_init(&q, 100);
	queue_behind(&q, &holder, all, QUEUED);
	for (size_t i = 0; i < QUEUED; i++)
		assert_false(atomic_load(&all[i].returned));
	lanes_leave(&q, &holder, holder.lanes);
	join(all, QUEUED);
	assert_true(all[0].led);
	assert_int_equal(all[0].others, QUEUED - 1);
	for (size_t i = 1; i < QUEUED; i++) {
		assert_false(all[i].led);
		assert_ptr_equal(all[i - 1].job.group, &all[i].job);
	}
	lanes_fini(&q);
}

static void
a_group_has_no_more_jobs_than_it_may(void **state)
{
	struct queued all[QUEUED] = { 0 };
	struct lanes_job holder = { .lanes = lanes_of(5) };
	struct lanes q;

	(void)state;
	lanes_init(&q, 3);
	queue_behind(&q, &holder, all, QUEUED);
	lanes_leave(&q, &holder, holder.lanes);
	join(all, QUEUED);
	assert_true(all[0].led);
	assert_int_equal(all[0].others, 2);
	assert_true(all[3].led);
	assert_int_equal(all[3].others, 0);
	lanes_fini(&q);
}

static void
another_lane_is_free_meanwhile(void **state)
{
	struct queued all[QUEUED] = { 0 };
	struct lanes_job holder = { .lanes = lanes_of(5) };
	struct lanes_job other = { .lanes = lanes_of(6), .prompt = true };
	struct lanes q;

	(void)state;
	lanes_init(&q, 100);
	queue_behind(&q, &holder, all, QUEUED);
	assert_true(lanes_enter(&q, &other));
	assert_null(other.group);
	lanes_leave(&q, &other, other.lanes);
	for (size_t i = 0; i < QUEUED; i++)
		assert_false(atomic_load(&all[i].returned));
	lanes_leave(&q, &holder, holder.lanes);
	join(all, QUEUED);
	lanes_fini(&q);
}

/* One that wants two lanes keeps its place: later jobs of the free one of them do not pass it. */
static void
nobody_passes_a_job_that_waits_for_several_lanes(void **state)
{
	struct queued both = { 0 }, later = { 0 };
	struct lanes_job holder = { .lanes = lanes_of(1) };
	struct lanes q;

	(void)state;
	lanes_init(&q, 100);
	assert_true(lanes_enter(&q, &holder));
	both.lanes = later.lanes = &q;
	both.job.lanes = lanes_of(1) | lanes_of(2);
	later.job.lanes = lanes_of(2);
	assert_int_equal(pthread_create(&both.thread, NULL, queued_run, &both), 0);
	while (waiting_in(&q) != 1)
		usleep(100);
	assert_int_equal(pthread_create(&later.thread, NULL, queued_run, &later), 0);
	while (waiting_in(&q) != 2)
		usleep(100);
	lanes_leave(&q, &holder, holder.lanes);
	pthread_join(both.thread, NULL);
	pthread_join(later.thread, NULL);
	assert_true(both.led);
	assert_int_equal(both.others, 1);
	assert_false(later.led);
	lanes_fini(&q);
}

static void
small_jobs_of_other_lanes_are_in_one_group(void **state)
{
	struct queued all[2] = { 0 };
	struct lanes_job holder = { .lanes = lanes_of(1) | lanes_of(2) };
	struct lanes q;

	(void)state;
	lanes_init(&q, 100);
	assert_true(lanes_enter(&q, &holder));
	for (size_t i = 0; i < 2; i++) {
		all[i].lanes = &q;
		all[i].job = (struct lanes_job){ .lanes = lanes_of(1 + i), .small = true };
		assert_int_equal(pthread_create(&all[i].thread, NULL, queued_run, &all[i]), 0);
		while (waiting_in(&q) != i + 1)
			usleep(100);
	}
	lanes_leave(&q, &holder, holder.lanes);
	join(all, 2);
	assert_int_equal(all[0].led + all[1].led, 1);
	assert_int_equal(all[0].others + all[1].others, 1);
	lanes_fini(&q);
}

static bool
is_fenced(struct lanes *q)
{
	bool fenced;

	pthread_mutex_lock(&q->lock);
	fenced = q->fences != NULL;
	pthread_mutex_unlock(&q->lock);
	return fenced;
}

static void *
hold(void *arg)
{
	struct queued *one = arg;

	lanes_hold(one->lanes, one->job.lanes);
	atomic_store(&one->returned, true);
	return NULL;
}

static void
lanes_that_are_held_are_nobody_elses(void **state)
{
	struct queued fence = { 0 }, job = { 0 };
	struct lanes_job holder = { .lanes = lanes_of(1) };
	struct lanes q;

	(void)state;
	lanes_init(&q, 100);
	assert_true(lanes_enter(&q, &holder));
	fence.lanes = job.lanes = &q;
	fence.job.lanes = lanes_of(1) | lanes_of(2);
	job.job.lanes = lanes_of(2);
	assert_int_equal(pthread_create(&fence.thread, NULL, hold, &fence), 0);
	while (!is_fenced(&q))
		usleep(100);
	assert_int_equal(lanes_take_free(&q, lanes_of(1) | lanes_of(2) | lanes_of(3)), lanes_of(3));
	assert_int_equal(pthread_create(&job.thread, NULL, queued_run, &job), 0);
	while (waiting_in(&q) != 1)
		usleep(100);
	assert_false(atomic_load(&fence.returned));
	lanes_leave(&q, &holder, holder.lanes | lanes_of(3));
	pthread_join(fence.thread, NULL);
	assert_false(atomic_load(&job.returned));
	lanes_release(&q, fence.job.lanes);
	pthread_join(job.thread, NULL);
	assert_true(job.led);
	lanes_fini(&q);
}

enum {
	PATIENCE_MS = 50,
	LONG_MS = 60000
};

static void
queue_job(struct lanes *q, struct queued *one, const struct lanes_job *job)
{
	size_t before = waiting_in(q);

	*one = (struct queued){ .job = *job, .lanes = q };
	assert_int_equal(pthread_create(&one->thread, NULL, queued_run, one), 0);
	while (waiting_in(q) == before)
		usleep(100);
}

static void
queue_one(struct lanes *q, struct queued *one, uint64_t lanes, uint64_t patience_ms)
{
	queue_job(q, one, &(struct lanes_job){ .lanes = lanes, .patience_ms = patience_ms });
}

static void
a_job_that_may_have_any_lane_gets_one_that_is_free(void **state)
{
	uint64_t all = lanes_of(1) | lanes_of(4) | lanes_of(9), seen = 0;
	struct lanes q;

	(void)state;
	lanes_init(&q, 100);
	lanes_hold(&q, lanes_of(1));
	for (int i = 0; i < 3; i++)
		assert_true(lanes_choose(&q, all) & (lanes_of(4) | lanes_of(9)));
	lanes_hold(&q, lanes_of(9));
	for (int i = 0; i < 3; i++)
		assert_true(lanes_choose(&q, all) == lanes_of(4));
	lanes_hold(&q, lanes_of(4));
	/* None is: those that wait are divided among them. */
	for (int i = 0; i < 3; i++) {
		uint64_t one = lanes_choose(&q, all);

		assert_false(seen & one);
		seen |= one;
	}
	assert_true(seen == all);
	lanes_release(&q, all);
	lanes_fini(&q);
}

static void
lanes_that_are_owed_are_nobodys_until_they_are_paid(void **state)
{
	struct lanes_job holder = { .lanes = lanes_of(1) };
	struct lanes_job other = { .lanes = lanes_of(2), .prompt = true };
	struct queued patient;
	struct lanes q;

	(void)state;
	lanes_init(&q, 100);
	assert_true(lanes_enter(&q, &holder));
	queue_one(&q, &patient, lanes_of(1), LONG_MS);
	lanes_owe(&q, lanes_of_group(&holder));
	lanes_leave(&q, &holder, lanes_of_group(&holder));
	assert_int_equal(lanes_take_free(&q, lanes_of(1) | lanes_of(3)), lanes_of(3));
	lanes_release(&q, lanes_of(3));
	/* Whoever is no group passes, and another lane is free. */
	lanes_hold(&q, lanes_of(1));
	lanes_release(&q, lanes_of(1));
	assert_true(lanes_enter(&q, &other));
	assert_null(other.group);
	lanes_leave(&q, &other, other.lanes);
	usleep(1000 * PATIENCE_MS);
	assert_false(atomic_load(&patient.returned));
	lanes_pay(&q, lanes_of(1));
	pthread_join(patient.thread, NULL);
	assert_true(patient.led);
	lanes_fini(&q);
}

/* Also one that waits behind it; what has waited for the two alone begins then. */
static void
a_job_that_waits_for_an_owed_lane_is_refused_in_time(void **state)
{
	struct lanes_job holder = { .lanes = lanes_of(1) };
	struct queued first, second, third;
	struct lanes q;

	(void)state;
	lanes_init(&q, 100);
	assert_true(lanes_enter(&q, &holder));
	lanes_owe(&q, holder.lanes);
	lanes_leave(&q, &holder, holder.lanes);
	queue_one(&q, &first, lanes_of(1) | lanes_of(2), LONG_MS);
	queue_one(&q, &second, lanes_of(2) | lanes_of(3), PATIENCE_MS);
	queue_one(&q, &third, lanes_of(3), LONG_MS);
	pthread_join(second.thread, NULL);
	assert_false(second.led);
	assert_true(second.job.ret_refused);
	pthread_join(third.thread, NULL);
	assert_true(third.led);
	assert_false(atomic_load(&first.returned));
	lanes_pay(&q, holder.lanes);
	pthread_join(first.thread, NULL);
	assert_true(first.led);
	lanes_fini(&q);
}

/* It was not taken into a group yet, and waits for no lane that is owed. */
static void
an_impatient_job_is_refused_where_a_group_takes_long(void **state)
{
	const struct lanes_job impatient = {
		.lanes = lanes_of(1) | lanes_of(2),
		.patience_ms = PATIENCE_MS,
		.impatient = true,
	};
	struct lanes_job holder = { .lanes = lanes_of(1) };
	struct queued one, behind;
	struct lanes q;

	(void)state;
	lanes_init(&q, 100);
	assert_true(lanes_enter(&q, &holder));
	queue_job(&q, &one, &impatient);
	queue_one(&q, &behind, lanes_of(2), LONG_MS);
	pthread_join(one.thread, NULL);
	assert_true(one.job.ret_refused);
	/* What has waited for it alone has begun. */
	pthread_join(behind.thread, NULL);
	assert_true(behind.led);
	lanes_leave(&q, &holder, holder.lanes);
	lanes_fini(&q);
}

/* A group may take as long as it takes: its members and those that wait for it are not refused. */
static void
a_job_that_waits_for_a_group_is_not_refused(void **state)
{
	struct lanes_job holder = { .lanes = lanes_of(1) };
	struct queued one;
	struct lanes q;

	(void)state;
	lanes_init(&q, 100);
	assert_true(lanes_enter(&q, &holder));
	queue_one(&q, &one, lanes_of(1), PATIENCE_MS);
	usleep(1000 * (2 * PATIENCE_MS + LANES_OWED_LOOK_MS));
	assert_int_equal(waiting_in(&q), 1);
	lanes_leave(&q, &holder, holder.lanes);
	pthread_join(one.thread, NULL);
	assert_true(one.led);
	assert_false(one.job.ret_refused);
	lanes_fini(&q);
}

/* ---- Keys ---- */

/* Two keys of one lane, one of another, and the lanes of all three. */
static const uint16_t key_a[] = { 5 }, key_b[] = { 5 + LANES }, key_c[] = { 9 };
static const uint16_t keys_a_c[] = { 5, 9 };

static struct lanes_job
job_with(const uint16_t *keys, size_t count)
{
	struct lanes_job job = { .small = true, .prompt = true, .keys = keys, .key_count = count };

	for (size_t i = 0; i < count; i++)
		job.lanes |= lanes_of_key(keys[i]);
	return job;
}

static void
jobs_of_different_keys_have_a_lane_together(void **state)
{
	struct lanes_job a = job_with(key_a, 1), b = job_with(key_b, 1);
	struct lanes q;

	(void)state;
	lanes_init(&q, 100);
	assert_true(lanes_take_keys(&q));
	assert_true(a.lanes == b.lanes);
	assert_true(lanes_enter(&q, &a));
	assert_true(lanes_enter(&q, &b));
	assert_int_equal(lanes_of_group(&a), 0);
	lanes_leave(&q, &a, lanes_of_group(&a));
	lanes_leave(&q, &b, lanes_of_group(&b));
	lanes_fini(&q);
}

/* Behind one that waits for two keys nobody passes that wants one of them. */
static void
jobs_of_one_key_are_a_group_of_those_that_wait(void **state)
{
	struct lanes_job a = job_with(key_a, 1), b = job_with(key_b, 1);
	struct lanes_job both = job_with(keys_a_c, 2), c = job_with(key_c, 1);
	struct queued first, second;
	struct lanes q;

	(void)state;
	lanes_init(&q, 100);
	assert_true(lanes_take_keys(&q));
	assert_true(lanes_enter(&q, &a));
	queue_job(&q, &first, &both);
	queue_job(&q, &second, &c);
	assert_true(lanes_enter(&q, &b));
	lanes_leave(&q, &b, 0);
	assert_false(atomic_load(&first.returned));
	lanes_leave(&q, &a, 0);
	pthread_join(first.thread, NULL);
	pthread_join(second.thread, NULL);
	assert_true(first.led);
	assert_int_equal(first.others, 1);
	assert_false(second.led);
	lanes_fini(&q);
}

/* One without keys waits for all that have some in its lane, and those that come then for it. */
static void
a_job_without_keys_has_its_lane_for_itself(void **state)
{
	struct lanes_job a = job_with(key_a, 1), b = job_with(key_b, 1), c = job_with(key_c, 1);
	struct queued alone, behind;
	struct lanes q;

	(void)state;
	lanes_init(&q, 100);
	assert_true(lanes_take_keys(&q));
	assert_true(lanes_enter(&q, &a));
	assert_true(lanes_enter(&q, &b));
	queue_one(&q, &alone, a.lanes, LONG_MS);
	lanes_leave(&q, &b, 0);
	queue_job(&q, &behind, &b);
	assert_true(lanes_enter(&q, &c));
	assert_int_equal(lanes_take_free(&q, a.lanes | c.lanes | lanes_of(1)), lanes_of(1));
	lanes_leave(&q, &c, lanes_of(1));
	assert_false(atomic_load(&alone.returned));
	assert_false(atomic_load(&behind.returned));
	lanes_leave(&q, &a, 0);
	pthread_join(alone.thread, NULL);
	pthread_join(behind.thread, NULL);
	assert_true(alone.led);
	assert_int_equal(alone.others, 0);
	assert_true(behind.led);
	lanes_fini(&q);
}

static void
lanes_are_held_when_no_group_has_a_key_in_them(void **state)
{
	struct lanes_job a = job_with(key_a, 1), b = job_with(key_b, 1);
	struct queued fence = { 0 }, behind;
	struct lanes q;

	(void)state;
	lanes_init(&q, 100);
	assert_true(lanes_take_keys(&q));
	assert_true(lanes_enter(&q, &a));
	assert_true(lanes_enter(&q, &b));
	fence.lanes = &q;
	fence.job.lanes = a.lanes | lanes_of(1);
	assert_int_equal(pthread_create(&fence.thread, NULL, hold, &fence), 0);
	while (!is_fenced(&q))
		usleep(100);
	lanes_leave(&q, &a, 0);
	queue_job(&q, &behind, &a);
	assert_false(atomic_load(&fence.returned));
	lanes_leave(&q, &b, 0);
	pthread_join(fence.thread, NULL);
	assert_false(atomic_load(&behind.returned));
	lanes_release(&q, fence.job.lanes);
	pthread_join(behind.thread, NULL);
	assert_true(behind.led);
	lanes_fini(&q);
}

static void
two_groups_with_keys_run_at_a_time(void **state)
{
	struct lanes_job a = job_with(key_a, 1), b = job_with(key_b, 1), c = job_with(key_c, 1);
	struct lanes_job other = { .lanes = lanes_of(1), .prompt = true };
	struct queued third;
	struct lanes q;

	(void)state;
	lanes_init(&q, 100);
	assert_true(lanes_take_keys(&q));
	assert_true(lanes_enter(&q, &a));
	assert_true(lanes_enter(&q, &b));
	queue_job(&q, &third, &c);
	assert_true(lanes_enter(&q, &other));
	lanes_leave(&q, &other, other.lanes);
	assert_false(atomic_load(&third.returned));
	lanes_leave(&q, &a, 0);
	pthread_join(third.thread, NULL);
	assert_true(third.led);
	lanes_leave(&q, &b, 0);
	lanes_fini(&q);
}

/* ---- Fibers of several loops ---- */

enum {
	LOOPS = 3,
	FIBERS = 24, /* of each loop */
	ROUNDS = 60,
	KEYS = 4, /* the first one half of the time */
	GROUP = 16,
	NAMED = 150, /* keys that jobs name, of LANES lanes */
};

struct crowd_loop {
	struct loop loop;
	pthread_t thread;
	unsigned left; /* fibers */
};

/* What `counts` has is guarded by the lanes alone, which the thread sanitizer sees. */
static struct {
	struct lanes lanes;
	struct crowd_loop loops[LOOPS];
	struct crowd_fiber {
		struct crowd_loop *loop;
		unsigned seed;
	} fibers[LOOPS][FIBERS];
	bool busy[KEYS];
	unsigned counts[KEYS];
	unsigned holders[NAMED], named_counts[NAMED];
	_Atomic unsigned jobs[KEYS], groups, largest, sum, numbers;
} crowd;

struct crowd_job {
	struct lanes_job lane; /* first */
	unsigned key;
	uint16_t named[2]; /* the keys of one that has some */
	unsigned got;      /* what the count was when it was run; 0: it was not */
};

static void
crowd_note_group(unsigned size)
{
	assert_true(size <= GROUP);
	for (unsigned most = atomic_load(&crowd.largest);
	     size > most && !atomic_compare_exchange_weak(&crowd.largest, &most, size);)
		;
	atomic_fetch_add(&crowd.groups, 1);
}

static void
crowd_lead(struct crowd_job *leader)
{
	struct event never;
	unsigned size = 0;

	assert_false(crowd.busy[leader->key]);
	crowd.busy[leader->key] = true;
	for (struct crowd_job *j = leader; j; j = (struct crowd_job *)j->lane.group) {
		assert_int_equal(j->key, leader->key);
		assert_int_equal(j->got, 0);
		j->got = ++crowd.counts[j->key];
		size++;
		if (size % 5 == 0)
			wait_yield();
	}
	/* As a commit does. */
	event_init(&never);
	if (leader->got % 3 == 0)
		(void)event_wait(&never, clock_mono_ns() + 50000);
	crowd.busy[leader->key] = false;
	crowd_note_group(size);
	lanes_leave(&crowd.lanes, &leader->lane, lanes_of_group(&leader->lane));
}

/* Of jobs with keys: nobody but the group has one of them. One without keys has its lanes. */
static void
crowd_lead_named(struct crowd_job *leader)
{
	struct event never;
	unsigned size = 0, number = atomic_fetch_add(&crowd.numbers, 1) + 1;

	for (struct crowd_job *j = leader; j; j = (struct crowd_job *)j->lane.group) {
		assert_true(!j->lane.keys == !leader->lane.keys);
		for (unsigned i = 0; i < 2; i++) {
			unsigned key = j->named[i];

			assert_true(!crowd.holders[key] || crowd.holders[key] == number);
			crowd.holders[key] = number;
			crowd.named_counts[key]++;
		}
		j->got = 1;
		size++;
		if (size % 5 == 0)
			wait_yield();
	}
	event_init(&never);
	if (number % 3 == 0)
		(void)event_wait(&never, clock_mono_ns() + 50000);
	for (struct crowd_job *j = leader; j; j = (struct crowd_job *)j->lane.group)
		crowd.holders[j->named[0]] = crowd.holders[j->named[1]] = 0;
	crowd_note_group(size);
	lanes_leave(&crowd.lanes, &leader->lane, lanes_of_group(&leader->lane));
}

static void
crowd_ends(struct crowd_fiber *f)
{
	if (--f->loop->left == 0)
		loop_stop(&f->loop->loop);
}

static void
crowd_run(void *arg)
{
	struct crowd_fiber *f = arg;

	for (int i = 0; i < ROUNDS; i++) {
		unsigned draw = (unsigned)rand_r(&f->seed);
		struct crowd_job job = { .key = draw % 2 ? 0 : draw / 2 % KEYS };

		job.lane.lanes = lanes_of(job.key);
		job.lane.prompt = draw % 3 == 0;
		if (lanes_enter(&crowd.lanes, &job.lane))
			crowd_lead(&job);
		assert_int_not_equal(job.got, 0);
		atomic_fetch_add(&crowd.jobs[job.key], 1);
		atomic_fetch_add(&crowd.sum, 1);
		if (draw % 7 == 0)
			wait_yield();
	}
	crowd_ends(f);
}

/* Two keys of NAMED for each job; one job in 16 names none, and has their lanes. */
static void
crowd_run_named(void *arg)
{
	struct crowd_fiber *f = arg;

	for (int i = 0; i < ROUNDS; i++) {
		unsigned draw = (unsigned)rand_r(&f->seed);
		struct crowd_job job = { 0 };

		job.named[0] = (uint16_t)(draw % NAMED);
		job.named[1] = (uint16_t)(draw / NAMED % NAMED);
		job.lane = job_with(job.named, 2);
		job.lane.shares = draw / 7 % 4 == 0;
		job.lane.prompt = draw % 3 == 0;
		if (draw / 11 % 16 == 0)
			job.lane.keys = NULL;
		if (lanes_enter(&crowd.lanes, &job.lane))
			crowd_lead_named(&job);
		assert_int_equal(job.got, 1);
		atomic_fetch_add(&crowd.sum, 1);
		if (draw % 7 == 0)
			wait_yield();
	}
	crowd_ends(f);
}

static void *
crowd_serve(void *arg)
{
	loop_run(arg);
	return NULL;
}

/* Runs all fibers to their end. */
static void
crowd_meet(void (*run)(void *arg))
{
	struct loop_config config = { .task_bytes = 1 << 20 };
	struct err err;

	memset(&crowd, 0, sizeof(crowd));
	assert_int_equal(pool_new(1, &config.pool, &err), STATUS_OK);
	lanes_init(&crowd.lanes, GROUP);
	assert_true(lanes_take_keys(&crowd.lanes));
	for (unsigned i = 0; i < LOOPS; i++) {
		struct crowd_loop *l = &crowd.loops[i];

		assert_int_equal(loop_init(&l->loop, &config, &err), STATUS_OK);
		l->left = FIBERS;
		for (unsigned j = 0; j < FIBERS; j++) {
			crowd.fibers[i][j] = (struct crowd_fiber){ l, i * FIBERS + j + 1 };
			assert_int_equal(task_spawn(&l->loop, run, &crowd.fibers[i][j]), STATUS_OK);
		}
	}
	for (unsigned i = 0; i < LOOPS; i++)
		assert_int_equal(pthread_create(&crowd.loops[i].thread, NULL, crowd_serve,
						&crowd.loops[i].loop),
				 0);
	for (unsigned i = 0; i < LOOPS; i++)
		pthread_join(crowd.loops[i].thread, NULL);
	for (unsigned i = 0; i < LOOPS; i++)
		loop_fini(&crowd.loops[i].loop);
	pool_free(config.pool);
	lanes_fini(&crowd.lanes);
}

static void
fibers_of_several_loops_never_meet_at_a_key(void **state)
{
	unsigned sum = 0;

	(void)state;
	crowd_meet(crowd_run_named);
	assert_int_equal(atomic_load(&crowd.sum), LOOPS * FIBERS * ROUNDS);
	for (unsigned i = 0; i < NAMED; i++)
		sum += crowd.named_counts[i];
	assert_int_equal(sum, 2 * LOOPS * FIBERS * ROUNDS);
	assert_true(atomic_load(&crowd.largest) > 1);
}

static void
fibers_of_several_loops_never_meet_at_a_lane(void **state)
{
	(void)state;
	crowd_meet(crowd_run);
	assert_int_equal(atomic_load(&crowd.sum), LOOPS * FIBERS * ROUNDS);
	for (unsigned i = 0; i < KEYS; i++)
		assert_int_equal(crowd.counts[i], atomic_load(&crowd.jobs[i]));
	/* Half of all jobs want one lane: they share groups. */
	assert_true(atomic_load(&crowd.largest) > 1);
	assert_true(atomic_load(&crowd.groups) < LOOPS * FIBERS * ROUNDS / 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_that_waits_runs_all_others_in_their_order),
		cmocka_unit_test(a_group_has_no_more_jobs_than_it_may),
		cmocka_unit_test(another_lane_is_free_meanwhile),
		cmocka_unit_test(nobody_passes_a_job_that_waits_for_several_lanes),
		cmocka_unit_test(small_jobs_of_other_lanes_are_in_one_group),
		cmocka_unit_test(lanes_that_are_held_are_nobody_elses),
		cmocka_unit_test(a_job_that_may_have_any_lane_gets_one_that_is_free),
		cmocka_unit_test(lanes_that_are_owed_are_nobodys_until_they_are_paid),
		cmocka_unit_test(a_job_that_waits_for_an_owed_lane_is_refused_in_time),
		cmocka_unit_test(an_impatient_job_is_refused_where_a_group_takes_long),
		cmocka_unit_test(a_job_that_waits_for_a_group_is_not_refused),
		cmocka_unit_test(jobs_of_different_keys_have_a_lane_together),
		cmocka_unit_test(jobs_of_one_key_are_a_group_of_those_that_wait),
		cmocka_unit_test(a_job_without_keys_has_its_lane_for_itself),
		cmocka_unit_test(lanes_are_held_when_no_group_has_a_key_in_them),
		cmocka_unit_test(two_groups_with_keys_run_at_a_time),
		cmocka_unit_test(fibers_of_several_loops_never_meet_at_a_lane),
		cmocka_unit_test(fibers_of_several_loops_never_meet_at_a_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
