/* The life of a job: what its table promises. */
#include "common.h"

#include "replicator/schedule.h"
#include "replicator/states.h"

static enum job_state
after(enum job_state state, enum job_event event, enum job_action action)
{
	struct job_step step = job_step(state, event);

	assert_int_equal(step.action, action);
	return step.next;
}

static void
a_job_runs_to_its_end(void **state)
{
	enum job_state s = JOB_PENDING;

	(void)state;
	s = after(s, JOB_TURN, JOB_START);
	s = after(s, JOB_ENDED, JOB_COMPLETE);
	assert_int_equal(s, JOB_COMPLETED);
	s = after(s, JOB_CANCEL, JOB_REMOVE);
	assert_int_equal(s, JOB_GONE);
}

static void
a_crashed_job_rests_and_waits_for_its_turn(void **state)
{
	enum job_state s = JOB_RUNNING;

	(void)state;
	s = after(s, JOB_CRASHED, JOB_BACK_OFF);
	assert_int_equal(s, JOB_CRASHING);
	s = after(s, JOB_RESTED, JOB_NOTHING);
	assert_int_equal(s, JOB_PENDING);
}

static void
a_job_that_makes_room_runs_again(void **state)
{
	enum job_state s = JOB_RUNNING;

	(void)state;
	s = after(s, JOB_MAKE_ROOM, JOB_STOP);
	s = after(s, JOB_STOPPED, JOB_PUT_BACK);
	assert_int_equal(s, JOB_PENDING);
}

static void
a_cancelled_job_goes_whatever_its_run_comes_to(void **state)
{
	static const enum job_event ends[] = { JOB_ENDED, JOB_STOPPED, JOB_CRASHED, JOB_REFUSED };
	enum job_state leaving = after(JOB_RUNNING, JOB_CANCEL, JOB_STOP);

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		assert_int_equal(after(leaving, ends[i], JOB_REMOVE), JOB_GONE);
	assert_int_equal(after(leaving, JOB_CANCEL, JOB_NOTHING), leaving);
}

static void
every_state_can_be_left_for_good(void **state)
{
	(void)state;
	for (int s = 0; s < JOB_GONE; s++) {
		struct job_step step = job_step((enum job_state)s, JOB_CANCEL);

		assert_true(step.action != JOB_IMPOSSIBLE);
		assert_true(step.next == JOB_GONE || step.next == JOB_LEAVING);
	}
}

static void
every_end_of_a_run_is_possible_while_it_runs(void **state)
{
	static const enum job_state running[] = { JOB_RUNNING, JOB_YIELDING, JOB_LEAVING };
	static const enum job_event ends[] = { JOB_ENDED, JOB_STOPPED, JOB_CRASHED, JOB_REFUSED };

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < 4; k++)
			assert_true(job_step(running[i], ends[k]).action != JOB_IMPOSSIBLE);
}

static void
nothing_happens_to_a_job_that_is_gone(void **state)
{
	(void)state;
	for (int e = 0; e < JOB_EVENTS; e++)
		assert_int_equal(job_step(JOB_GONE, (enum job_event)e).action, JOB_IMPOSSIBLE);
}

static void
each_crash_in_a_row_doubles_the_rest_up_to_a_limit(void **state)
{
	const struct replicator_config config = { .backoff_ms = 30000 };

	(void)state;
	assert_int_equal(schedule_backoff_ms(&config, 1), 30000);
	assert_int_equal(schedule_backoff_ms(&config, 2), 60000);
	assert_int_equal(schedule_backoff_ms(&config, 5), 480000);
	assert_int_equal(schedule_backoff_ms(&config, 11), 30000 * 1024);
	assert_int_equal(schedule_backoff_ms(&config, 1000), 30000 * 1024);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_runs_to_its_end),
		cmocka_unit_test(a_crashed_job_rests_and_waits_for_its_turn),
		cmocka_unit_test(a_job_that_makes_room_runs_again),
		cmocka_unit_test(a_cancelled_job_goes_whatever_its_run_comes_to),
		cmocka_unit_test(every_state_can_be_left_for_good),
		cmocka_unit_test(every_end_of_a_run_is_possible_while_it_runs),
		cmocka_unit_test(nothing_happens_to_a_job_that_is_gone),
		cmocka_unit_test(each_crash_in_a_row_doubles_the_rest_up_to_a_limit),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
