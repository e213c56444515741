/*
 * Jobs, their rests and their leases on the twin: virtual time, fibers in any order, processes that
 * lose sight of the store, for many seeds. What a job does is drawn; no request is sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "memory.h"
#include "replicator/job.h"
#include "replicator/job_lease.h"
#include "replicator/schedule.h"
#include "twin.h"

enum {
	SEEDS = 60,
	PROCESSES = 3, /* that the twin has room for */
	JOBS_MAX = 6,
	TASK_BYTES = 1 << 20,
	SETTLE_MS = 2000, /* at most, that a stopped run takes to leave its checkpoint */
	STEP_MS = 20 * 1000,
	CUT_MS = 40 * 1000,
	CALM_MS = 120 * 1000,
};

struct process {
	struct replicator r;
	struct loop loop;
	struct kv_store *store;
};

static struct {
	struct process processes[PROCESSES];
	size_t count;
	size_t jobs;
	unsigned crash_percent;
	unsigned running[PROCESSES];
	const struct process *runs[JOBS_MAX]; /* which process runs the job; NULL: none */
	uint64_t ended_ns[JOBS_MAX];          /* when its last run ended */
	uint64_t rest_ms[JOBS_MAX];           /* that has to follow; 0: it was not a crash */
	unsigned starts[JOBS_MAX];
} all;

/* ---- What a job does ---- */

static struct process *
process_of(const struct run_config *config)
{
	size_t i = 0;

	while (i + 1 < all.count && &all.processes[i].loop != config->loop)
		i++;
	twin_check(&all.processes[i].loop == config->loop);
	return &all.processes[i];
}

/* The jobs' sources are called by their numbers. */
static size_t
job_number(const struct run_config *config)
{
	struct str name = config->spec->source.url;

	return (size_t)(name.ptr[name.len - 2] - '0');
}

static enum status
play_until_it_ends(const struct run_config *config, struct err *err)
{
	for (;;) {
		enum status status = net_pause(config->scope, twin_draw(STEP_MS));

		if (status != STATUS_OK)
			break;
		if (twin_chance(all.crash_percent))
			return err_set(err, STATUS_IO, "drawn");
	}
	/* The checkpoint. Cancelling that, too, ends it at once. */
	(void)!net_pause(config->settling, twin_draw(SETTLE_MS));
	return STATUS_CANCELLED;
}

static enum status
play_job(const struct run_config *config, struct buf *ret_answer, struct err *err)
{
	struct process *p = process_of(config);
	size_t process = (size_t)(p - all.processes);
	size_t number = job_number(config);
	enum status status;

	(void)ret_answer;
	twin_note("run", process, number);
	twin_check(!all.runs[number] && "no two processes run a job");
	twin_check(twin_now_ns() - all.ended_ns[number] >= all.rest_ms[number] * CLOCK_NS_PER_MS);
	all.runs[number] = p;
	all.starts[number]++;
	twin_check(++all.running[process] <= p->r.config.max_jobs);
	status = play_until_it_ends(config, err);
	all.running[process]--;
	all.runs[number] = NULL;
	all.ended_ns[number] = twin_now_ns();
	all.rest_ms[number] = 0;
	twin_note("ran", process, number);
	return status;
}

/* ---- Processes ---- */

static void
begin(bool shared, size_t count, size_t jobs, unsigned max_jobs, unsigned crash_percent)
{
	static const struct peer_env env = { .self = "http://localhost/" };
	const struct loop_config loop = { .ops = &twin_loop_ops, .task_bytes = TASK_BYTES };
	struct err err = { 0 };

	memset(&all, 0, sizeof(all));
	all.count = count;
	all.jobs = jobs;
	all.crash_percent = crash_percent;
	memory_begin();
	for (size_t i = 0; i < count; i++) {
		struct process *p = &all.processes[i];
		struct replicator_config config = {
			.node_name = "nonode@nohost",
			.max_jobs = max_jobs,
			.max_churn = 1 + (unsigned)twin_draw(3),
			.max_history = 5,
			.interval_ms = 30 * 1000,
			.backoff_ms = 1000,
			.health_ms = 60 * 1000,
		};

		twin_check(loop_init(&p->loop, &loop, &err) == STATUS_OK);
		config.store = p->store = memory_open(shared);
		replicator_init(&p->r, &config, &p->loop, play_job);
		twin_check(replicator_begin(&p->r, &env, &err) == STATUS_OK);
	}
}

/* Runs everything until a script has ended every process. */
static void
run_to_the_end(void)
{
	for (size_t i = 0; i < all.count; i++)
		loop_run(&all.processes[i].loop);
	twin_settle();
	for (size_t i = 0; i < all.count; i++) {
		struct process *p = &all.processes[i];

		twin_check(all.running[i] == 0);
		replicator_fini(&p->r);
		loop_fini(&p->loop);
		kv_close(p->store);
	}
	memory_end();
}

/* Adds every `step`th job from `first` on. */
static void
add_jobs(struct process *p, size_t first, size_t step)
{
	for (size_t i = first; i < all.jobs; i += step) {
		char id[SPEC_FULL_ID_BYTES];
		char text[128];
		struct replicator_wait *w;
		struct repl_spec *spec;
		struct err err = { 0 };

		snprintf(text, sizeof(text),
			 "{\"source\":\"http://there/%zu\",\"target\":\"http://here/db\","
			 "\"continuous\":true}",
			 i);
		twin_check(repl_spec_new(str_from_cstr(text), STR(""), (struct str){ NULL, 0 },
					 &p->r.config.defaults, &spec, &err) == STATUS_OK);
		twin_check(replicator_add(&p->r, spec, id, &w, &err) == STATUS_OK);
		replicator_wait_unref(w);
	}
}

static void
end_all(void)
{
	for (size_t i = 0; i < all.count; i++)
		replicator_end(&all.processes[i].r);
}

/* ---- Processes that lose sight of the store ---- */

static size_t
count_running(void)
{
	size_t n = 0;

	for (size_t i = 0; i < all.jobs; i++)
		n += all.runs[i] != NULL;
	return n;
}

static void
add_jobs_script(void *arg)
{
	struct process *p = arg;

	/* Each process takes the leases of some jobs before it hears of the others. */
	add_jobs(p, (size_t)(p - all.processes), all.count);
	twin_sleep_ms(4000 + twin_draw(5000));
	add_jobs(p, 0, 1);
}

static void
cut_off_script(void *arg)
{
	(void)arg;
	twin_sleep_ms(10 * 1000);
	for (int i = 0; i < 8; i++) {
		struct process *p = &all.processes[twin_draw(all.count)];
		uint64_t ms = twin_draw(CUT_MS);

		twin_note("cut off", (uint64_t)(p - all.processes), ms);
		memory_cut_off(p->store, clock_after_ms(ms));
		twin_sleep_ms(twin_draw(CUT_MS));
	}
	twin_sleep_ms(CALM_MS);
	/* Every job has found a process again, and there is room for all of them. */
	twin_check(count_running() == all.jobs);
	for (size_t i = 0; i < all.jobs; i++)
		twin_check(all.starts[i] > 0);
	end_all();
}

static void
play_lost_stores(void)
{
	begin(true, 2 + twin_draw(PROCESSES - 1), 1 + twin_draw(JOBS_MAX), JOBS_MAX, 0);
	for (size_t i = 0; i < all.count; i++)
		twin_script(add_jobs_script, &all.processes[i]);
	twin_script(cut_off_script, NULL);
	run_to_the_end();
}

static void
a_job_has_one_process_and_finds_another_when_it_is_lost(void **state)
{
	(void)state;
	twin_run_seeds(play_lost_stores, SEEDS);
}

/* ---- A process that stops gives its jobs to the others ---- */

static void
hand_over_script(void *arg)
{
	size_t left = all.count;

	(void)arg;
	twin_sleep_ms(30 * 1000);
	while (left > 1) {
		replicator_end(&all.processes[--left].r);
		twin_sleep_ms(10 * 1000);
		twin_check(count_running() == all.jobs);
	}
	end_all();
}

static void
play_hand_over(void)
{
	begin(true, PROCESSES, 1 + twin_draw(JOBS_MAX), JOBS_MAX, 0);
	for (size_t i = 0; i < all.count; i++)
		twin_script(add_jobs_script, &all.processes[i]);
	twin_script(hand_over_script, NULL);
	run_to_the_end();
}

static void
a_process_that_stops_hands_its_jobs_over_soon(void **state)
{
	(void)state;
	twin_run_seeds(play_hand_over, SEEDS);
}

/* ---- Jobs that wait elsewhere make nobody stop ---- */

static void
no_churn_script(void *arg)
{
	unsigned starts = 0;

	(void)arg;
	twin_sleep_ms(20 * 60 * 1000);
	for (size_t i = 0; i < all.jobs; i++)
		starts += all.starts[i];
	twin_check(starts == all.jobs);
	end_all();
}

static void
play_no_churn(void)
{
	begin(true, 2, JOBS_MAX, JOBS_MAX, 0);
	for (size_t i = 0; i < all.count; i++)
		twin_script(add_jobs_script, &all.processes[i]);
	twin_script(no_churn_script, NULL);
	run_to_the_end();
}

static void
jobs_that_run_elsewhere_do_not_make_others_stop(void **state)
{
	(void)state;
	twin_run_seeds(play_no_churn, SEEDS / 10);
}

/* ---- Taking turns ---- */

static void
turns_script(void *arg)
{
	unsigned before[JOBS_MAX];

	add_jobs(arg, 0, 1);
	twin_sleep_ms(5 * 60 * 1000);
	memcpy(before, all.starts, sizeof(before));
	/*
	 * A round of all jobs. One makes room in each interval at least, unless it has begun within
	 * the last one, so a turn takes two.
	 */
	twin_sleep_ms((JOBS_MAX + 1) * 2 * 30 * 1000);
	for (size_t i = 0; i < all.jobs; i++)
		twin_check(all.starts[i] > before[i]);
	end_all();
}

static void
play_turns(void)
{
	begin(false, 1, JOBS_MAX, 1 + (unsigned)twin_draw(3), 0);
	twin_script(turns_script, &all.processes[0]);
	run_to_the_end();
}

static void
more_jobs_than_may_run_take_turns(void **state)
{
	(void)state;
	twin_run_seeds(play_turns, SEEDS);
}

/* ---- Rests ---- */

static void
rests_script(void *arg)
{
	struct process *p = arg;

	add_jobs(p, 0, 1);
	for (int i = 0; i < 2000; i++) {
		twin_sleep_ms(500 + twin_draw(500));
		pthread_mutex_lock(&p->r.lock);
		for (struct job *j = job_next(&p->r, NULL); j; j = job_next(&p->r, j)) {
			const struct run_config config = { .spec = j->spec };
			size_t number = job_number(&config);

			if (j->state == JOB_CRASHING) {
				twin_check(!all.runs[number] && j->crashes > 0);
				all.rest_ms[number] = schedule_backoff_ms(&p->r.config, j->crashes);
				twin_check(j->rested_ns >=
					   all.ended_ns[number] +
						   all.rest_ms[number] * CLOCK_NS_PER_MS);
				/* It does not rest longer than it has to. */
				twin_check(j->rested_ns + CLOCK_NS_PER_MS * 1000 > twin_now_ns());
			}
		}
		pthread_mutex_unlock(&p->r.lock);
	}
	end_all();
}

static void
play_rests(void)
{
	begin(false, 1, 1 + twin_draw(JOBS_MAX), JOBS_MAX, 70);
	twin_script(rests_script, &all.processes[0]);
	run_to_the_end();
}

static void
a_job_that_crashes_rests_longer_each_time(void **state)
{
	(void)state;
	twin_run_seeds(play_rests, SEEDS / 3);
}

/* ---- Who has cancelled a job finds it no more ---- */

static void
cancels_script(void *arg)
{
	struct process *p = arg;

	add_jobs(p, 0, 1);
	for (int i = 0; i < 40; i++) {
		unsigned before = all.starts[0];
		struct replicator_wait *w;
		struct err err = { 0 };
		struct str id;
		struct job *j;

		twin_sleep_ms(twin_draw(3 * STEP_MS));
		pthread_mutex_lock(&p->r.lock);
		j = job_next(&p->r, NULL);
		id = str_from_cstr(j->full_id);
		pthread_mutex_unlock(&p->r.lock);
		twin_check(replicator_cancel(&p->r, id, STR(""), true, &w, &err) == STATUS_OK);
		twin_check(event_wait(&w->done, clock_after_ms(2 * SETTLE_MS)));
		replicator_wait_unref(w);
		pthread_mutex_lock(&p->r.lock);
		twin_check(!job_next(&p->r, NULL));
		pthread_mutex_unlock(&p->r.lock);
		/* It is begun anew, and not joined to what was leaving. */
		add_jobs(p, 0, 1);
		twin_sleep_ms(1000);
		twin_check(all.starts[0] > before);
	}
	end_all();
}

static void
play_cancels(void)
{
	begin(false, 1, 1, 1, 20);
	twin_script(cancels_script, &all.processes[0]);
	run_to_the_end();
}

static void
a_job_that_was_cancelled_is_found_no_more(void **state)
{
	(void)state;
	twin_run_seeds(play_cancels, SEEDS / 3);
}

/* ---- The same seed, the same run ---- */

static void
a_seed_replays_exactly(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 6; seed++)
		assert_int_equal(twin_run_seed(play_lost_stores, seed),
				 twin_run_seed(play_lost_stores, seed));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_has_one_process_and_finds_another_when_it_is_lost),
		cmocka_unit_test(a_process_that_stops_hands_its_jobs_over_soon),
		cmocka_unit_test(jobs_that_run_elsewhere_do_not_make_others_stop),
		cmocka_unit_test(more_jobs_than_may_run_take_turns),
		cmocka_unit_test(a_job_that_crashes_rests_longer_each_time),
		cmocka_unit_test(a_job_that_was_cancelled_is_found_no_more),
		cmocka_unit_test(a_seed_replays_exactly),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
