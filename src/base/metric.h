/*
 * Metrics: what the process counts about itself, for operators.
 *
 * A metric is one static declaration at the top of the file that counts, and a call where
 * something happens:
 *
 *     METRIC_COUNTER(lamp_switches, "frond_lamp_switches_total", METRIC_NUMBER,
 *                    "How often a lamp was switched on or off.");
 *     …
 *     metric_add(&lamp_switches, 1);
 *
 * There is no list of metrics to extend: each declaration puts a pointer into a section of the
 * program of its own, and metric_count() and metric_at() walk that section. A metric therefore
 * exists in a program if, and only if, the object file that declares it is linked.
 *
 * Names follow the conventions of Prometheus: `frond_…`, counters end in `_total`, a unit is
 * `_seconds` or `_bytes`. Time is counted in nanoseconds and exported in seconds. A help text is
 * one sentence for operators. docs/METRICS.md is made from the declarations by `frond metrics`.
 *
 * A metric may have one or two labels. The values of a label are a fixed array in the source, so
 * the number of series is known when the program is compiled, and a client can never create one:
 *
 *     static const char *const colours[] = { "red", "green" };
 *     METRIC_COUNTERS(lamp_faults, "frond_lamp_faults_total", METRIC_NUMBER, "…",
 *                     "colour", colours);
 *     metric_add_at(&lamp_faults, colour, 1);
 *
 * All functions are thread-safe. Counting takes no lock and allocates nothing: it adds to a cell
 * with relaxed ordering. A metric has METRIC_SHARDS sets of cells on cache lines of their own, and
 * a thread always uses the same set, so that threads do not wait for each other's cache lines.
 *
 * Values that can be read when somebody asks need no counting. If the whole process has one such
 * value, METRIC_READ names the function that reads it. If they belong to an object (a store, a
 * host), the object registers a struct metric_collector as long as it lives.
 */
#ifndef FROND_BASE_METRIC_H
#define FROND_BASE_METRIC_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum {
	METRIC_SHARDS = 16,    /* sets of cells; more threads than this share some */
	METRIC_LINE_CELLS = 8, /* cells of a cache line */
	METRIC_MOST = 1024,    /* metrics in a program */
	METRIC_BUCKETS_MOST = 32,
	METRIC_SERIES_MOST = 512, /* of one metric */
};

enum metric_kind {
	METRIC_KIND_COUNTER,
	METRIC_KIND_GAUGE,
	METRIC_KIND_HISTOGRAM,
};

enum metric_unit {
	METRIC_NUMBER,
	METRIC_SECONDS, /* counted in nanoseconds */
	METRIC_BYTES,
};

struct metric_label {
	const char *name; /* NULL: the metric has no such label */
	const char *const *values;
	size_t count;
};

struct metric {
	const char *name;
	const char *help;
	enum metric_kind kind;
	enum metric_unit unit;
	struct metric_label labels[2];
	/*
	 * Of a histogram: bucket i counts the values up to 2^(least + i), and one more bucket
	 * counts the greater ones. 0: no histogram.
	 */
	unsigned least;
	unsigned buckets;
	/*
	 * The cells of shard s begin at s * stride. A counter or gauge has one cell for each
	 * series; a histogram has its buckets and the sum of its values.
	 */
	_Atomic uint64_t *cells;
	size_t stride;
	int64_t (*read)(void); /* of METRIC_READ */
	bool collected;        /* its values come from collectors; it has one shard */
};

/* ---- Declaring ---- */

#define METRIC_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define METRIC_STRIDE_OF(cells)                                                                    \
	(((cells) + METRIC_LINE_CELLS - 1) / METRIC_LINE_CELLS * METRIC_LINE_CELLS)

/*
 * Defines the metric `variable` and its cells. All such pointers form an array between the symbols
 * __start_frond_metrics and __stop_frond_metrics, which the linker defines.
 */
#define METRIC_DEFINE(variable, shards_, cells_, ...)                                              \
	static _Alignas(64) _Atomic uint64_t variable##_cells[(shards_)*METRIC_STRIDE_OF(cells_)]; \
	static const struct metric variable = {                                                    \
		.cells = variable##_cells,                                                         \
		.stride = METRIC_STRIDE_OF(cells_),                                                \
		__VA_ARGS__,                                                                       \
	};                                                                                         \
	static const struct metric *const variable##_entry                                         \
		__attribute__((used, section("frond_metrics"))) = &variable

#define METRIC_LABEL(at, label_, values_)                                                          \
	.labels[at] = { .name = (label_), .values = (values_), .count = METRIC_COUNT_OF(values_) }

#define METRIC_TEXTS(name_, unit_, help_) .name = (name_), .unit = (unit_), .help = (help_)

/* Only grows. Counted with metric_add(). */
#define METRIC_COUNTER(variable, name_, unit_, help_)                                              \
	METRIC_DEFINE(variable, METRIC_SHARDS, 1, METRIC_TEXTS(name_, unit_, help_),               \
		      .kind = METRIC_KIND_COUNTER)

/* One counter for each value of a label: metric_add_at(). */
#define METRIC_COUNTERS(variable, name_, unit_, help_, label_, values_)                            \
	METRIC_DEFINE(variable, METRIC_SHARDS, METRIC_COUNT_OF(values_),                           \
		      METRIC_TEXTS(name_, unit_, help_), .kind = METRIC_KIND_COUNTER,              \
		      METRIC_LABEL(0, label_, values_))

/* One for each pair of values of two labels: series i * (number of the second's values) + j. */
#define METRIC_COUNTERS2(variable, name_, unit_, help_, label_, values_, label2_, values2_)        \
	METRIC_DEFINE(variable, METRIC_SHARDS,                                                     \
		      METRIC_COUNT_OF(values_) * METRIC_COUNT_OF(values2_),                        \
		      METRIC_TEXTS(name_, unit_, help_), .kind = METRIC_KIND_COUNTER,              \
		      METRIC_LABEL(0, label_, values_), METRIC_LABEL(1, label2_, values2_))

/* Goes up and down: metric_gauge_add(), from any thread. For what is open or under way now. */
#define METRIC_GAUGE(variable, name_, unit_, help_)                                                \
	METRIC_DEFINE(variable, METRIC_SHARDS, 1, METRIC_TEXTS(name_, unit_, help_),               \
		      .kind = METRIC_KIND_GAUGE)

#define METRIC_GAUGES(variable, name_, unit_, help_, label_, values_)                              \
	METRIC_DEFINE(variable, METRIC_SHARDS, METRIC_COUNT_OF(values_),                           \
		      METRIC_TEXTS(name_, unit_, help_), .kind = METRIC_KIND_GAUGE,                \
		      METRIC_LABEL(0, label_, values_))

#define METRIC_GAUGES2(variable, name_, unit_, help_, label_, values_, label2_, values2_)          \
	METRIC_DEFINE(variable, METRIC_SHARDS,                                                     \
		      METRIC_COUNT_OF(values_) * METRIC_COUNT_OF(values2_),                        \
		      METRIC_TEXTS(name_, unit_, help_), .kind = METRIC_KIND_GAUGE,                \
		      METRIC_LABEL(0, label_, values_), METRIC_LABEL(1, label2_, values2_))

/*
 * How values are distributed: metric_observe(). The first bucket counts values up to 2^least_,
 * each further one up to twice as much; the last of `buckets_` is followed by one without a limit.
 */
#define METRIC_HISTOGRAM(variable, name_, unit_, help_, least_, buckets_)                          \
	METRIC_DEFINE(variable, METRIC_SHARDS, (buckets_) + 2, METRIC_TEXTS(name_, unit_, help_),  \
		      .kind = METRIC_KIND_HISTOGRAM, .least = (least_), .buckets = (buckets_))

#define METRIC_HISTOGRAMS(variable, name_, unit_, help_, least_, buckets_, label_, values_)        \
	METRIC_DEFINE(variable, METRIC_SHARDS, METRIC_COUNT_OF(values_) * ((buckets_) + 2),        \
		      METRIC_TEXTS(name_, unit_, help_), .kind = METRIC_KIND_HISTOGRAM,            \
		      .least = (least_), .buckets = (buckets_), METRIC_LABEL(0, label_, values_))

/* Buckets for the time of requests and commits: from 65.5 µs to 68.7 s. */
#define METRIC_TIME_LEAST   16
#define METRIC_TIME_BUCKETS 21

/*
 * One value of the process, which `int64_t read_(void)` returns when somebody asks; in nanoseconds
 * if the unit is METRIC_SECONDS. It runs on a thread that may block. A negative value: unknown now.
 */
#define METRIC_READ(variable, kind_, name_, unit_, help_, read_)                                   \
	METRIC_DEFINE(variable, 1, 1, METRIC_TEXTS(name_, unit_, help_), .kind = (kind_),          \
		      .read = (read_))

/* Values that collectors report with metric_report(). */
#define METRIC_COLLECTED(variable, kind_, name_, unit_, help_)                                     \
	METRIC_DEFINE(variable, 1, 1, METRIC_TEXTS(name_, unit_, help_), .kind = (kind_),          \
		      .collected = true)

#define METRIC_COLLECTED_BY(variable, kind_, name_, unit_, help_, label_, values_)                 \
	METRIC_DEFINE(variable, 1, METRIC_COUNT_OF(values_), METRIC_TEXTS(name_, unit_, help_),    \
		      .kind = (kind_), .collected = true, METRIC_LABEL(0, label_, values_))

/*
 * Counts that a limit has refused something: METRIC_REFUSED("max_connections");
 * The text, a literal, is the name of the setting or constant that the refusal tells the client.
 * It becomes a value of the label `limit` of frond_refusals_total. Several places may name the same
 * limit; they are added up.
 */
#define METRIC_REFUSED(limit_)                                                                     \
	do {                                                                                       \
		static const char *const metric_limits[] = { limit_ };                             \
		METRIC_COUNTERS(metric_refusals, METRIC_REFUSALS_NAME, METRIC_NUMBER,              \
				METRIC_REFUSALS_HELP, "limit", metric_limits);                     \
		metric_add(&metric_refusals, 1);                                                   \
	} while (0)

#define METRIC_REFUSALS_NAME "frond_refusals_total"
#define METRIC_REFUSALS_HELP                                                                       \
	"Requests, connections and other work that a limit has refused, by the name of the limit."

/* ---- Counting ---- */

/* The calling thread's set of cells, plus one. 0: it has none yet. */
extern _Thread_local unsigned metric_thread_shard __attribute__((tls_model("initial-exec")));

unsigned metric_take_shard(void);

static inline size_t
metric_shard(void)
{
	unsigned shard = metric_thread_shard;

	if (__builtin_expect(shard == 0, 0))
		shard = metric_take_shard();
	return shard - 1;
}

static inline void
metric_cell_add(const struct metric *m, size_t cell, uint64_t n)
{
	assert(cell < m->stride);
	atomic_fetch_add_explicit(&m->cells[metric_shard() * m->stride + cell], n,
				  memory_order_relaxed);
}

static inline void
metric_add_at(const struct metric *m, size_t series, uint64_t n)
{
	metric_cell_add(m, series, n);
}

static inline void
metric_add(const struct metric *m, uint64_t n)
{
	metric_cell_add(m, 0, n);
}

static inline void
metric_gauge_add_at(const struct metric *m, size_t series, int64_t n)
{
	metric_cell_add(m, series, (uint64_t)n);
}

static inline void
metric_gauge_add(const struct metric *m, int64_t n)
{
	metric_cell_add(m, 0, (uint64_t)n);
}

/* The number of the bucket of a histogram that counts `value`. */
static inline unsigned
metric_bucket(const struct metric *m, uint64_t value)
{
	/* The least power of two that is not below the value. */
	unsigned power = value <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(value - 1);

	if (power <= m->least)
		return 0;
	return power - m->least < m->buckets ? power - m->least : m->buckets;
}

static inline void
metric_observe_at(const struct metric *m, size_t series, uint64_t value)
{
	size_t first = series * (m->buckets + 2);

	metric_cell_add(m, first + metric_bucket(m, value), 1);
	metric_cell_add(m, first + m->buckets + 1, value);
}

static inline void
metric_observe(const struct metric *m, uint64_t value)
{
	metric_observe_at(m, 0, value);
}

/* ---- Collectors ---- */

/*
 * Reports values of objects that live for some time. The object owns the struct, adds it when the
 * object is ready and removes it before it goes; metric_collector_remove() waits until nobody is
 * asking it. `collect` runs on a thread that may block, calls metric_report() and nothing else of
 * this header. What several collectors report of one series is added up. A series that nobody
 * reports is not exported.
 */
struct metric_collector {
	void (*collect)(void *arg);
	void *arg;
	struct metric_collector *next;
};

void metric_collector_add(struct metric_collector *c);
void metric_collector_remove(struct metric_collector *c); /* fine if it was not added */

/* In a collector only. `m` is METRIC_COLLECTED; the unit as declared, seconds in nanoseconds. */
void metric_report(const struct metric *m, size_t series, uint64_t value);

/* ---- Reading ---- */

size_t metric_count(void);
/* In the order of names. Metrics of the same name, as those of METRIC_REFUSED, are neighbours. */
const struct metric *metric_at(size_t i);
const struct metric *metric_find(const char *name); /* the first of that name; NULL: none */

size_t metric_series(const struct metric *m);

/*
 * Asks all collectors, and keeps their answers until metric_release(). Both are called on the same
 * thread, which may block, since another thread can be between them. Neither fails.
 */
void metric_hold(void);
void metric_release(void);

/*
 * The same, but gives up after `wait_ms` if another thread is still asking, which happens if a disk
 * hangs: false, and nothing is to be released.
 */
bool metric_hold_within(uint64_t wait_ms);

/* Below: between metric_hold() and metric_release(). */

/* The value of a series of a counter or gauge. False: nobody reports it. */
bool metric_value(const struct metric *m, size_t series, int64_t *ret);

/*
 * The sum over all series of that name one of whose labels has the value `label`, or over all of
 * them if it is NULL. False: there is none, or nobody reports one. Of what is counted where it
 * happens, and not collected, at any time.
 */
bool metric_sum(const char *name, const char *label, int64_t *ret);

struct metric_distribution {
	uint64_t buckets[METRIC_BUCKETS_MOST + 1]; /* not cumulated */
	uint64_t count;
	uint64_t sum;
};

/* Adds a series of a histogram to `ret`, which the caller has initialised. */
void metric_distribution_add(const struct metric *m, size_t series,
			     struct metric_distribution *ret);

/* The same as metric_sum() for histograms: adds to `ret`, which the caller has initialised. */
bool metric_distribution_sum(const char *name, const char *label, struct metric_distribution *ret);

/* Appends all metrics in Prometheus's text format 0.0.4. buf_status() tells whether it fitted. */
void metric_write(struct buf *out);

/* The same without what collectors report. It never waits, and needs no metric_hold(). */
void metric_write_counted(struct buf *out);

#endif
