#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>

#include "base/metric.h"

enum {
	THREADS = 24, /* more than there are shards */
	ROUNDS = 20000,
};

static const char *const colours[] = { "red", "green", "a \"quoted\" \\ back\nslash" };
static const char *const sizes[] = { "small", "large" };

METRIC_COUNTER(plain, "test_plain_total", METRIC_NUMBER, "A counter\\\nof two lines.");
METRIC_COUNTERS(coloured, "test_coloured_total", METRIC_NUMBER, "By colour.", "colour", colours);
METRIC_COUNTERS2(both, "test_both_total", METRIC_BYTES, "By both.", "colour", colours, "size",
		 sizes);
METRIC_GAUGE(open_now, "test_open", METRIC_NUMBER, "Open now.");
METRIC_GAUGES(open_by, "test_open_by", METRIC_NUMBER, "Open now, by size.", "size", sizes);
METRIC_HISTOGRAM(latency, "test_latency_seconds", METRIC_SECONDS, "Time.", 10, 3);
METRIC_HISTOGRAMS(bytes, "test_size_bytes", METRIC_BYTES, "Bytes.", 0, 4, "size", sizes);
METRIC_COUNTER(busy, "test_busy_seconds_total", METRIC_SECONDS, "Busy.");
METRIC_COLLECTED(held, METRIC_KIND_GAUGE, "test_held_bytes", METRIC_BYTES, "Held.");
METRIC_COLLECTED_BY(state, METRIC_KIND_GAUGE, "test_state", METRIC_NUMBER, "States.", "size",
		    sizes);

static int64_t answer = 42;

static int64_t
read_answer(void)
{
	return answer;
}

METRIC_READ(answers, METRIC_KIND_GAUGE, "test_answer", METRIC_NUMBER, "Read.", read_answer);

static int64_t
value_of(const struct metric *m, size_t series)
{
	int64_t value = -1;

	metric_hold();
	assert_true(metric_value(m, series, &value));
	metric_release();
	return value;
}

static void
assert_written(const char *expected)
{
	struct buf AUTO(buf_release) out = BUF_INIT(1 << 20);

	metric_hold();
	metric_write(&out);
	metric_release();
	buf_append_byte(&out, '\0');
	assert_int_equal(buf_status(&out), STATUS_OK);
	if (!strstr(out.ptr, expected))
		fail_msg("expected\n%s\nin\n%s", expected, out.ptr);
}

static void
counters_add_up_by_series(void **state_)
{
	(void)state_;
	metric_add(&plain, 2);
	metric_add(&plain, 3);
	metric_add_at(&both, 2 * 2 + 1, 7);
	assert_int_equal(value_of(&plain, 0), 5);
	assert_int_equal(value_of(&both, 5), 7);
	assert_int_equal(value_of(&both, 4), 0);
	assert_int_equal(metric_series(&both), 6);
}

static void
all_metrics_of_the_program_are_listed_in_the_order_of_their_names(void **state_)
{
	size_t mine = 0;

	(void)state_;
	for (size_t i = 0; i < metric_count(); i++) {
		if (i)
			assert_true(strcmp(metric_at(i - 1)->name, metric_at(i)->name) <= 0);
		mine += strncmp(metric_at(i)->name, "test_", 5) == 0;
	}
	assert_int_equal(mine, 11);
	assert_ptr_equal(metric_find("test_open"), &open_now);
	assert_null(metric_find("test_ope"));
	assert_null(metric_find("zzz"));
}

static void
texts_are_escaped(void **state_)
{
	(void)state_;
	metric_add_at(&coloured, 2, 1);
	assert_written("# HELP test_plain_total A counter\\\\\\nof two lines.\n"
		       "# TYPE test_plain_total counter\n"
		       "test_plain_total 5\n");
	assert_written("test_coloured_total{colour=\"red\"} 0\n"
		       "test_coloured_total{colour=\"green\"} 0\n"
		       "test_coloured_total{colour=\"a \\\"quoted\\\" \\\\ back\\nslash\"} 1\n");
	assert_written("test_both_total{colour=\"red\",size=\"small\"} 0\n");
}

static void
time_is_written_in_seconds_without_loss(void **state_)
{
	(void)state_;
	metric_add(&busy, 1500000000);
	assert_written("\ntest_busy_seconds_total 1.5\n");
	metric_add(&busy, UINT64_C(8500000001));
	assert_written("\ntest_busy_seconds_total 10.000000001\n");
	metric_add(&busy, 999999999);
	assert_written("\ntest_busy_seconds_total 11\n");
}

static void
gauges_fall_on_other_threads_than_they_rose_on(void **state_)
{
	(void)state_;
	metric_gauge_add(&open_now, 3);
	metric_gauge_add(&open_now, -2);
	metric_gauge_add_at(&open_by, 1, 4);
	assert_int_equal(value_of(&open_now, 0), 1);
	assert_written("test_open_by{size=\"small\"} 0\ntest_open_by{size=\"large\"} 4\n");
}

static void
a_bucket_holds_values_up_to_its_bound(void **state_)
{
	(void)state_;
	assert_int_equal(metric_bucket(&latency, 0), 0);
	assert_int_equal(metric_bucket(&latency, 1024), 0);
	assert_int_equal(metric_bucket(&latency, 1025), 1);
	assert_int_equal(metric_bucket(&latency, 2048), 1);
	assert_int_equal(metric_bucket(&latency, 4096), 2);
	assert_int_equal(metric_bucket(&latency, 4097), 3);
	assert_int_equal(metric_bucket(&latency, UINT64_MAX), 3);
	metric_observe(&latency, 1000);
	metric_observe(&latency, 2000);
	metric_observe(&latency, 2000);
	metric_observe(&latency, UINT64_C(3000000000));
	assert_written("# TYPE test_latency_seconds histogram\n"
		       "test_latency_seconds_bucket{le=\"0.000001024\"} 1\n"
		       "test_latency_seconds_bucket{le=\"0.000002048\"} 3\n"
		       "test_latency_seconds_bucket{le=\"0.000004096\"} 3\n"
		       "test_latency_seconds_bucket{le=\"+Inf\"} 4\n"
		       "test_latency_seconds_sum 3.000005\n"
		       "test_latency_seconds_count 4\n");
}

static void
a_labelled_histogram_shows_the_series_that_were_observed(void **state_)
{
	(void)state_;
	metric_observe_at(&bytes, 1, 8);
	assert_written("# TYPE test_size_bytes histogram\n"
		       "test_size_bytes_bucket{size=\"large\",le=\"1\"} 0\n"
		       "test_size_bytes_bucket{size=\"large\",le=\"2\"} 0\n"
		       "test_size_bytes_bucket{size=\"large\",le=\"4\"} 0\n"
		       "test_size_bytes_bucket{size=\"large\",le=\"8\"} 1\n"
		       "test_size_bytes_bucket{size=\"large\",le=\"+Inf\"} 1\n"
		       "test_size_bytes_sum{size=\"large\"} 8\n"
		       "test_size_bytes_count{size=\"large\"} 1\n");
}

static void
a_read_metric_is_left_out_while_it_is_unknown(void **state_)
{
	int64_t value;

	(void)state_;
	assert_int_equal(value_of(&answers, 0), 42);
	answer = -1;
	metric_hold();
	assert_false(metric_value(&answers, 0, &value));
	metric_release();
	answer = 42;
}

static void
collect_some(void *arg)
{
	const uint64_t *n = arg;

	metric_report(&held, 0, *n);
	metric_report(&state, 1, 1);
}

static void
collectors_report_as_long_as_they_are_registered(void **state_)
{
	uint64_t first = 10;
	uint64_t second = 5;
	struct metric_collector a = { .collect = collect_some, .arg = &first };
	struct metric_collector b = { .collect = collect_some, .arg = &second };
	int64_t value;

	(void)state_;
	metric_collector_add(&a);
	metric_collector_add(&b);
	assert_int_equal(value_of(&held, 0), 15);
	assert_written("\ntest_held_bytes 15\n");
	assert_written("# TYPE test_state gauge\ntest_state{size=\"large\"} 2\n");
	metric_collector_remove(&a);
	assert_int_equal(value_of(&held, 0), 5);
	metric_collector_remove(&b);
	metric_hold();
	assert_false(metric_value(&held, 0, &value));
	metric_release();
	assert_written("# TYPE test_held_bytes gauge\n# HELP");
}

static void *
hold_in_a_thread(void *arg)
{
	bool *got = arg;

	*got = metric_hold_within(1);
	if (*got)
		metric_release();
	return NULL;
}

static bool
another_thread_holds(void)
{
	pthread_t thread;
	bool got;

	assert_int_equal(pthread_create(&thread, NULL, hold_in_a_thread, &got), 0);
	pthread_join(thread, NULL);
	return got;
}

static void
counted_metrics_are_written_while_a_collector_hangs(void **state_)
{
	struct buf AUTO(buf_release) out = BUF_INIT(1 << 20);

	(void)state_;
	assert_true(another_thread_holds());
	metric_hold();
	assert_false(another_thread_holds());
	metric_write_counted(&out);
	metric_release();
	buf_append_byte(&out, '\0');
	assert_int_equal(buf_status(&out), STATUS_OK);
	assert_non_null(strstr(out.ptr, "\ntest_plain_total 5\n"));
	assert_non_null(strstr(out.ptr, "\ntest_answer 42\n"));
	assert_null(strstr(out.ptr, "test_held_bytes"));
}

static void
refuse_somewhere(void)
{
	METRIC_REFUSED("test_lamps");
}

static void
refusals_of_one_limit_are_one_series(void **state_)
{
	(void)state_;
	refuse_somewhere();
	refuse_somewhere();
	METRIC_REFUSED("test_lamps");
	METRIC_REFUSED("test_bulbs");
	assert_written("# TYPE frond_refusals_total counter\n"
		       "frond_refusals_total{limit=\"test_bulbs\"} 1\n"
		       "frond_refusals_total{limit=\"test_lamps\"} 3\n");
}

static void
series_are_summed_by_label(void **state_)
{
	struct metric_distribution d = { .count = 0 };
	int64_t sum;

	(void)state_;
	metric_hold();
	assert_true(metric_sum("test_both_total", NULL, &sum));
	assert_int_equal(sum, 7);
	assert_true(metric_sum("test_both_total", "large", &sum));
	assert_int_equal(sum, 7);
	assert_true(metric_sum("test_both_total", "small", &sum));
	assert_int_equal(sum, 0);
	assert_false(metric_sum("test_both_total", "medium", &sum));
	assert_false(metric_sum("test_held_bytes", NULL, &sum));
	assert_false(metric_sum("test_nothing", NULL, &sum));
	assert_true(metric_sum("frond_refusals_total", NULL, &sum));
	assert_int_equal(sum, 4);
	assert_true(metric_distribution_sum("test_size_bytes", "large", &d));
	assert_int_equal(d.count, 1);
	metric_release();
}

static void *
count_in_a_thread(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		metric_add_at(&coloured, 0, 1);
		metric_gauge_add(&open_now, i % 2 ? -1 : 1);
		metric_observe_at(&bytes, 0, 3);
	}
	return NULL;
}

static void
threads_count_while_others_read(void **state_)
{
	struct metric_distribution d = { .count = 0 };
	pthread_t threads[THREADS];

	(void)state_;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_in_a_thread, NULL), 0);
	for (size_t i = 0; i < 10; i++)
		assert_written("test_coloured_total{colour=\"red\"}");
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(value_of(&coloured, 0), THREADS * ROUNDS);
	assert_int_equal(value_of(&open_now, 0), 1);
	metric_hold();
	metric_distribution_add(&bytes, 0, &d);
	metric_release();
	assert_int_equal(d.count, THREADS * ROUNDS);
	assert_int_equal(d.buckets[2], THREADS * ROUNDS);
	assert_int_equal(d.sum, 3 * THREADS * ROUNDS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_add_up_by_series),
		cmocka_unit_test(all_metrics_of_the_program_are_listed_in_the_order_of_their_names),
		cmocka_unit_test(texts_are_escaped),
		cmocka_unit_test(time_is_written_in_seconds_without_loss),
		cmocka_unit_test(gauges_fall_on_other_threads_than_they_rose_on),
		cmocka_unit_test(a_bucket_holds_values_up_to_its_bound),
		cmocka_unit_test(a_labelled_histogram_shows_the_series_that_were_observed),
		cmocka_unit_test(a_read_metric_is_left_out_while_it_is_unknown),
		cmocka_unit_test(collectors_report_as_long_as_they_are_registered),
		cmocka_unit_test(counted_metrics_are_written_while_a_collector_hangs),
		cmocka_unit_test(refusals_of_one_limit_are_one_series),
		cmocka_unit_test(series_are_summed_by_label),
		cmocka_unit_test(threads_count_while_others_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
