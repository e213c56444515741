#include "base/metric.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/timespec.h"

/*
 * The section of pointers that METRIC_DEFINE fills. The linker defines both symbols if any object
 * of the program has such a section; otherwise they stay NULL because they are weak.
 */
extern const struct metric *const __start_frond_metrics[] __attribute__((weak));
extern const struct metric *const __stop_frond_metrics[] __attribute__((weak));

/* A collected value that nobody has reported. No real value is that large. */
#define METRIC_ABSENT UINT64_MAX

_Thread_local unsigned metric_thread_shard;

unsigned
metric_take_shard(void)
{
	static _Atomic unsigned threads;

	metric_thread_shard = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) %
					  METRIC_SHARDS;
	return metric_thread_shard;
}

/* ---- The list ---- */

static const struct metric *metric_sorted[METRIC_MOST];
static size_t metric_sorted_count;
static pthread_once_t metric_sort_once = PTHREAD_ONCE_INIT;

static int
metric_compare(const void *a, const void *b)
{
	const struct metric *const *x = a;
	const struct metric *const *y = b;
	int order = strcmp((*x)->name, (*y)->name);

	if (order == 0 && (*x)->labels[0].name && (*y)->labels[0].name)
		order = strcmp((*x)->labels[0].values[0], (*y)->labels[0].values[0]);
	return order;
}

static void
metric_sort(void)
{
	const struct metric *const *m = __start_frond_metrics;

	for (; m != __stop_frond_metrics; m++) {
		assert(metric_sorted_count < METRIC_MOST);
		assert((*m)->buckets <= METRIC_BUCKETS_MOST);
		assert(metric_series(*m) <= METRIC_SERIES_MOST);
		metric_sorted[metric_sorted_count++] = *m;
	}
	qsort(metric_sorted, metric_sorted_count, sizeof(metric_sorted[0]), metric_compare);
}

size_t
metric_count(void)
{
	pthread_once(&metric_sort_once, metric_sort);
	return metric_sorted_count;
}

const struct metric *
metric_at(size_t i)
{
	assert(i < metric_sorted_count);
	return metric_sorted[i];
}

const struct metric *
metric_find(const char *name)
{
	size_t low = 0;
	size_t high = metric_count();

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(metric_sorted[middle]->name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < metric_sorted_count && strcmp(metric_sorted[low]->name, name) == 0)
		return metric_sorted[low];
	return NULL;
}

size_t
metric_series(const struct metric *m)
{
	size_t n = 1;

	for (size_t i = 0; i < 2; i++) {
		if (m->labels[i].name)
			n *= m->labels[i].count;
	}
	return n;
}

/* ---- Collectors ---- */

/*
 * The list and the collected cells are one thread's from metric_take() to metric_give(). This is a
 * flag under a lock, since a lock alone cannot be waited for by a clock that nobody sets where the
 * thread sanitizer has to see it.
 */
static pthread_mutex_t metric_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t metric_given = PTHREAD_COND_INITIALIZER;
static bool metric_taken;
static struct metric_collector *metric_collectors;

/* False if another thread has it until that moment of CLOCK_MONOTONIC; NULL: waits for ever. */
static bool
metric_take(const struct timespec *until)
{
	int failed = 0;
	bool got;

	pthread_mutex_lock(&metric_lock);
	while (metric_taken && !failed)
		failed = until ? pthread_cond_clockwait(&metric_given, &metric_lock,
							CLOCK_MONOTONIC, until)
			       : pthread_cond_wait(&metric_given, &metric_lock);
	got = !metric_taken;
	metric_taken = true;
	pthread_mutex_unlock(&metric_lock);
	return got;
}

static void
metric_give(void)
{
	pthread_mutex_lock(&metric_lock);
	assert(metric_taken);
	metric_taken = false;
	pthread_cond_signal(&metric_given);
	pthread_mutex_unlock(&metric_lock);
}

void
metric_collector_add(struct metric_collector *c)
{
	(void)metric_take(NULL);
	c->next = metric_collectors;
	metric_collectors = c;
	metric_give();
}

void
metric_collector_remove(struct metric_collector *c)
{
	(void)metric_take(NULL);
	for (struct metric_collector **at = &metric_collectors; *at; at = &(*at)->next) {
		if (*at == c) {
			*at = c->next;
			break;
		}
	}
	metric_give();
}

void
metric_report(const struct metric *m, size_t series, uint64_t value)
{
	uint64_t before;

	assert(m->collected && series < metric_series(m));
	before = atomic_load_explicit(&m->cells[series], memory_order_relaxed);
	if (before != METRIC_ABSENT)
		value += before;
	atomic_store_explicit(&m->cells[series], value, memory_order_relaxed);
}

/* Between metric_take() and metric_give(). */
static void
metric_collect_all(void)
{
	size_t count = metric_count();

	for (size_t i = 0; i < count; i++) {
		const struct metric *m = metric_sorted[i];

		if (!m->collected)
			continue;
		for (size_t series = 0; series < metric_series(m); series++)
			atomic_store_explicit(&m->cells[series], METRIC_ABSENT,
					      memory_order_relaxed);
	}
	for (struct metric_collector *c = metric_collectors; c; c = c->next)
		c->collect(c->arg);
}

void
metric_hold(void)
{
	(void)metric_take(NULL);
	metric_collect_all();
}

bool
metric_hold_within(uint64_t wait_ms)
{
	uint64_t until_ns = clock_after_ms(wait_ms);
	const struct timespec until = timespec_of_ns(until_ns);

	/* Not by the wall clock: that may be set back meanwhile. */
	if (!metric_take(&until))
		return false;
	metric_collect_all();
	return true;
}

void
metric_release(void)
{
	metric_give();
}

/* ---- Values ---- */

static uint64_t
metric_cell_sum(const struct metric *m, size_t cell)
{
	uint64_t sum = 0;

	assert(cell < m->stride);
	for (size_t shard = 0; shard < METRIC_SHARDS; shard++)
		sum += atomic_load_explicit(&m->cells[shard * m->stride + cell],
					    memory_order_relaxed);
	return sum;
}

bool
metric_value(const struct metric *m, size_t series, int64_t *ret)
{
	assert(m->kind != METRIC_KIND_HISTOGRAM && series < metric_series(m));
	if (m->read) {
		*ret = m->read();
		return *ret >= 0;
	}
	if (m->collected) {
		uint64_t value = atomic_load_explicit(&m->cells[series], memory_order_relaxed);

		*ret = (int64_t)value;
		return value != METRIC_ABSENT;
	}
	*ret = (int64_t)metric_cell_sum(m, series);
	/* Shards are read one after another: a gauge may be seen to fall before it has risen. */
	if (*ret < 0)
		*ret = 0;
	return true;
}

void
metric_distribution_add(const struct metric *m, size_t series, struct metric_distribution *ret)
{
	size_t first = series * (m->buckets + 2);

	assert(m->kind == METRIC_KIND_HISTOGRAM && series < metric_series(m));
	for (unsigned i = 0; i <= m->buckets; i++) {
		uint64_t n = metric_cell_sum(m, first + i);

		ret->buckets[i] += n;
		ret->count += n;
	}
	ret->sum += metric_cell_sum(m, first + m->buckets + 1);
}

/* True if one of the labels of a series has that value, or if it is NULL. */
static bool
metric_has_label(const struct metric *m, size_t series, const char *label)
{
	size_t second = m->labels[1].name ? m->labels[1].count : 1;
	size_t at[2] = { series / second, series % second };

	if (!label)
		return true;
	for (size_t i = 0; i < 2; i++)
		if (m->labels[i].name && strcmp(m->labels[i].values[at[i]], label) == 0)
			return true;
	return false;
}

/* Calls `add` with each series of that name that has the label. True if one call returned true. */
static bool
metric_each(const char *name, const char *label,
	    bool (*add)(const struct metric *m, size_t series, void *arg), void *arg)
{
	const struct metric *first = metric_find(name);
	bool any = false;
	size_t i = 0;

	if (!first)
		return false;
	while (metric_sorted[i] != first)
		i++;
	for (; i < metric_sorted_count && strcmp(metric_sorted[i]->name, name) == 0; i++)
		for (size_t series = 0; series < metric_series(metric_sorted[i]); series++)
			if (metric_has_label(metric_sorted[i], series, label) &&
			    add(metric_sorted[i], series, arg))
				any = true;
	return any;
}

static bool
metric_add_value(const struct metric *m, size_t series, void *arg)
{
	int64_t *sum = arg;
	int64_t value;

	if (!metric_value(m, series, &value))
		return false;
	*sum += value;
	return true;
}

bool
metric_sum(const char *name, const char *label, int64_t *ret)
{
	*ret = 0;
	return metric_each(name, label, metric_add_value, ret);
}

static bool
metric_add_distribution(const struct metric *m, size_t series, void *arg)
{
	metric_distribution_add(m, series, arg);
	return true;
}

bool
metric_distribution_sum(const char *name, const char *label, struct metric_distribution *ret)
{
	return metric_each(name, label, metric_add_distribution, ret);
}

/* ---- The text format ---- */

/* Appends a text in which backslashes, line feeds and, in labels, quotes are escaped. */
static void
metric_write_escaped(struct buf *out, const char *text, bool label)
{
	for (; *text; text++) {
		if (*text == '\\')
			buf_append_cstr(out, "\\\\");
		else if (*text == '\n')
			buf_append_cstr(out, "\\n");
		else if (*text == '"' && label)
			buf_append_cstr(out, "\\\"");
		else
			buf_append_byte(out, (uint8_t)*text);
	}
}

/* Appends a value in the unit that is exported: nanoseconds become a decimal number of seconds. */
static void
metric_write_number(struct buf *out, const struct metric *m, uint64_t value)
{
	char digits[40];
	int len;

	if (m->unit != METRIC_SECONDS) {
		buf_append_u64(out, value);
		return;
	}
	len = snprintf(digits, sizeof(digits), "%" PRIu64 ".%09" PRIu64, value / 1000000000,
		       value % 1000000000);
	while (digits[len - 1] == '0')
		len--;
	if (digits[len - 1] == '.')
		len--;
	buf_append(out, digits, (size_t)len);
}

/* Appends the labels of a series, and `le` if it is given, in braces; nothing if there are none. */
static void
metric_write_labels(struct buf *out, const struct metric *m, size_t series, struct str le)
{
	size_t second = m->labels[1].name ? m->labels[1].count : 1;
	size_t at[2] = { series / second, series % second };
	char before = '{';

	for (size_t i = 0; i < 2; i++) {
		if (!m->labels[i].name)
			continue;
		buf_append_byte(out, (uint8_t)before);
		buf_append_cstr(out, m->labels[i].name);
		buf_append_cstr(out, "=\"");
		metric_write_escaped(out, m->labels[i].values[at[i]], true);
		buf_append_byte(out, '"');
		before = ',';
	}
	if (le.ptr) {
		buf_append_byte(out, (uint8_t)before);
		buf_append_cstr(out, "le=\"");
		buf_append_str(out, le);
		buf_append_byte(out, '"');
		before = ',';
	}
	if (before == ',')
		buf_append_byte(out, '}');
}

static void
metric_write_line(struct buf *out, const struct metric *m, const char *suffix, size_t series,
		  struct str le)
{
	buf_append_cstr(out, m->name);
	buf_append_cstr(out, suffix);
	metric_write_labels(out, m, series, le);
	buf_append_byte(out, ' ');
}

static void
metric_write_histogram(struct buf *out, const struct metric *m, size_t series)
{
	struct metric_distribution d = { .count = 0 };
	uint64_t cumulated = 0;
	struct buf le = BUF_INIT(64);

	metric_distribution_add(m, series, &d);
	/* An endpoint that nobody has used would add two dozen lines of zeros. */
	if (d.count == 0 && m->labels[0].name)
		return;
	for (unsigned i = 0; i < m->buckets; i++) {
		cumulated += d.buckets[i];
		buf_clear(&le);
		metric_write_number(&le, m, UINT64_C(1) << (m->least + i));
		metric_write_line(out, m, "_bucket", series, buf_str(&le));
		buf_append_u64(out, cumulated);
		buf_append_byte(out, '\n');
	}
	buf_release(&le);
	metric_write_line(out, m, "_bucket", series, STR("+Inf"));
	buf_append_u64(out, d.count);
	buf_append_byte(out, '\n');
	metric_write_line(out, m, "_sum", series, (struct str){ 0 });
	metric_write_number(out, m, d.sum);
	buf_append_byte(out, '\n');
	metric_write_line(out, m, "_count", series, (struct str){ 0 });
	buf_append_u64(out, d.count);
	buf_append_byte(out, '\n');
}

static void
metric_write_value(struct buf *out, const struct metric *m, size_t series, int64_t value)
{
	metric_write_line(out, m, "", series, (struct str){ 0 });
	metric_write_number(out, m, (uint64_t)value);
	buf_append_byte(out, '\n');
}

/* Whether two declarations are one series, as two places that name the same limit are. */
static bool
metric_is_same_series(const struct metric *a, const struct metric *b)
{
	return metric_compare(&a, &b) == 0;
}

/*
 * Writes the series of the metrics from `i` on that are the same series, and returns how many
 * metrics these are. Only metrics with one series each can share it.
 */
static size_t
metric_write_series(struct buf *out, size_t i)
{
	const struct metric *m = metric_sorted[i];
	size_t n = 1;
	int64_t value;

	for (size_t series = 0; series < metric_series(m); series++) {
		int64_t more;

		if (m->kind == METRIC_KIND_HISTOGRAM) {
			metric_write_histogram(out, m, series);
			continue;
		}
		if (!metric_value(m, series, &value))
			continue;
		for (;
		     i + n < metric_sorted_count && metric_is_same_series(m, metric_sorted[i + n]);
		     n++) {
			assert(metric_series(m) == 1 && metric_series(metric_sorted[i + n]) == 1);
			if (metric_value(metric_sorted[i + n], 0, &more))
				value += more;
		}
		metric_write_value(out, m, series, value);
	}
	return n;
}

static void
metric_write_some(struct buf *out, bool collected)
{
	static const char *const kinds[] = {
		[METRIC_KIND_COUNTER] = "counter",
		[METRIC_KIND_GAUGE] = "gauge",
		[METRIC_KIND_HISTOGRAM] = "histogram",
	};
	size_t count = metric_count();

	for (size_t i = 0; i < count;) {
		const struct metric *m = metric_sorted[i];

		if (m->collected && !collected) {
			i++;
			continue;
		}
		if (i == 0 || strcmp(metric_sorted[i - 1]->name, m->name) != 0) {
			buf_append_cstr(out, "# HELP ");
			buf_append_cstr(out, m->name);
			buf_append_byte(out, ' ');
			metric_write_escaped(out, m->help, false);
			buf_printf(out, "\n# TYPE %s %s\n", m->name, kinds[m->kind]);
		}
		i += metric_write_series(out, i);
	}
}

void
metric_write(struct buf *out)
{
	metric_write_some(out, true);
}

void
metric_write_counted(struct buf *out)
{
	metric_write_some(out, false);
}
