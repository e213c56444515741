#include "builder_world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"

struct builder_world at = { .lock = PTHREAD_MUTEX_INITIALIZER };

void __wrap_chores_add(struct chores *chores, const struct chore *added);
uint64_t __wrap_clock_mono_ns(void);
int __real_nanosleep(const struct timespec *time, struct timespec *ret_left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *ret_left);
int __real_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __real_pthread_join(pthread_t thread, void **ret);
int __wrap_pthread_join(pthread_t thread, void **ret);
void __wrap_thread_set_nice(int nice);
void __wrap_thread_set_name(const char *name);
void __wrap_log_event(enum log_level level, const char *event, const char *fmt, ...);
enum status __real_index_build_run(struct kv_store *store, const struct index_build_key *key,
				   uint64_t preferred, unsigned steps, enum index_state *ret_state,
				   struct err *err);
enum status __wrap_index_build_run(struct kv_store *store, const struct index_build_key *key,
				   uint64_t preferred, unsigned steps, enum index_state *ret_state,
				   struct err *err);

void
__wrap_chores_add(struct chores *chores, const struct chore *added)
{
	assert_null(chores);
	at.chore = *added;
}

uint64_t
__wrap_clock_mono_ns(void)
{
	/* However late a thread begins, the turn is not over before all have met. */
	if (at.now_ns && at.running == RUN_MEETING)
		return at.now_ns;
	if (!at.now_ns || !pthread_equal(pthread_self(), at.owner))
		return __real_clock_mono_ns();
	at.now_ns += at.look_ms * CLOCK_NS_PER_MS;
	return at.now_ns;
}

int
__wrap_nanosleep(const struct timespec *time, struct timespec *ret_left)
{
	uint64_t ns = (uint64_t)time->tv_sec * 1000 * CLOCK_NS_PER_MS + (uint64_t)time->tv_nsec;

	if (!at.now_ns || !pthread_equal(pthread_self(), at.owner))
		return __real_nanosleep(time, ret_left);
	at.sleeps++;
	at.slept_ns += ns;
	at.now_ns += ns;
	return 0;
}

int
__wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	if (at.threads == THREADS_REAL)
		return __real_pthread_create(ret, attr, run, arg);
	if (at.threads == THREADS_NONE || (at.threads == THREADS_SECOND && at.created % 2 == 0)) {
		at.created++;
		return EAGAIN;
	}
	*ret = pthread_self();
	at.created++;
	run(arg);
	return 0;
}

int
__wrap_pthread_join(pthread_t thread, void **ret)
{
	if (at.threads == THREADS_REAL)
		return __real_pthread_join(thread, ret);
	at.joined++;
	return 0;
}

void
__wrap_thread_set_nice(int nice)
{
	assert_int_equal(nice, BUILDER_NICE);
	atomic_fetch_add(&at.niced, 1);
}

void
__wrap_thread_set_name(const char *name)
{
	atomic_fetch_add(&at.named, strcmp(name, "index build") == 0);
}

void
__wrap_log_event(enum log_level level, const char *event, const char *fmt, ...)
{
	(void)level;
	(void)fmt;
	(void)snprintf(at.logged, sizeof(at.logged), "%s", event);
}

int64_t
builds_running(void)
{
	const struct metric *m = metric_find("frond_index_builds_running");
	int64_t value;

	assert_non_null(m);
	assert_true(metric_value(m, 0, &value));
	return value;
}

static unsigned
note_run(const struct index_build_key *key, uint64_t preferred, unsigned steps)
{
	unsigned count;

	pthread_mutex_lock(&at.lock);
	assert_true(at.run_count < BUILDER_RUNS_MOST);
	at.runs[at.run_count++] = (struct run){ .db_number = key->db_number,
						.number = key->number,
						.preferred = preferred,
						.steps = steps,
						.claims = key->claims };
	count = at.run_count;
	if (builds_running() > at.building_most)
		at.building_most = (unsigned)builds_running();
	pthread_mutex_unlock(&at.lock);
	return count;
}

enum status
__wrap_index_build_run(struct kv_store *store, const struct index_build_key *key,
		       uint64_t preferred, unsigned steps, enum index_state *ret_state,
		       struct err *err)
{
	unsigned count = note_run(key, preferred, steps);

	if (at.running == RUN_REALLY)
		return __real_index_build_run(store, key, preferred, steps, ret_state, err);
	if (at.now_ns && at.running != RUN_MEETING)
		at.now_ns += at.run_ms * CLOCK_NS_PER_MS;
	*ret_state = at.running == RUN_BUILDING ? INDEX_BUILDING : INDEX_READY;
	if (at.running == RUN_FAILING) {
		*ret_state = INDEX_BUILDING;
		return err_set(err, at.failure, "the run %u", count);
	}
	if (at.running == RUN_MEETING)
		(void)pthread_barrier_wait(&at.meeting);
	return STATUS_OK;
}

void
builder_world_begin(void)
{
	at.running = RUN_REALLY;
	at.threads = THREADS_REAL;
	at.failure = STATUS_IO;
	at.owner = pthread_self();
	at.now_ns = __real_clock_mono_ns();
	at.look_ms = at.run_ms = at.slept_ns = 0;
	at.sleeps = at.run_count = at.building_most = 0;
	at.created = at.joined = 0;
	atomic_store(&at.niced, 0);
	atomic_store(&at.named, 0);
	at.logged[0] = '\0';
}

void
builder_world_end(void)
{
	at.now_ns = 0;
}
