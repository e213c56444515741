#include "door/redis/txn/latency.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

enum {
	NS_PER_MS = 1000 * 1000,
	MS_PER_S = 1000,
};

/* The samples are a ring: `next` is the place of the next one. */
struct latency_series {
	struct latency_sample samples[LATENCY_SAMPLES];
	size_t count;
	size_t next;
	uint64_t most_ms;
};

struct latency {
	_Atomic uint64_t limit_ms; /* 0: nothing is kept */
	pthread_mutex_t lock;      /* owns the series; only what took long takes it */
	struct latency_series series[LATENCY_EVENTS];
};

struct latency *
latency_new(void)
{
	struct latency *l = mem_zalloc(sizeof(*l));

	if (l)
		pthread_mutex_init(&l->lock, NULL);
	return l;
}

void
latency_free(struct latency *l)
{
	if (!l)
		return;
	pthread_mutex_destroy(&l->lock);
	mem_free(l);
}

void
latency_limit(struct latency *l, uint64_t ms)
{
	atomic_store_explicit(&l->limit_ms, ms, memory_order_relaxed);
}

uint64_t
latency_limit_of(const struct latency *l)
{
	return atomic_load_explicit(&l->limit_ms, memory_order_relaxed);
}

/* With the lock held. */
static void
series_add(struct latency_series *s, uint64_t time_s, uint64_t ms)
{
	size_t last = (s->next + LATENCY_SAMPLES - 1) % LATENCY_SAMPLES;

	assert(s->next < LATENCY_SAMPLES && s->count <= LATENCY_SAMPLES);
	if (ms > s->most_ms)
		s->most_ms = ms;
	if (s->count && s->samples[last].time_s == time_s) {
		if (ms > s->samples[last].ms)
			s->samples[last].ms = ms;
		return;
	}
	s->samples[s->next] = (struct latency_sample){ time_s, ms };
	s->next = (s->next + 1) % LATENCY_SAMPLES;
	if (s->count < LATENCY_SAMPLES)
		s->count++;
}

void
latency_note(struct latency *l, const struct command *command, uint64_t ns)
{
	uint64_t limit_ms = latency_limit_of(l);
	enum latency_event event = command->flags & COMMAND_FAST ? LATENCY_FAST_COMMAND
								 : LATENCY_COMMAND;

	if (__builtin_expect(!limit_ms || ns / NS_PER_MS < limit_ms, 1))
		return;
	pthread_mutex_lock(&l->lock);
	series_add(&l->series[event], clock_wall_ms() / MS_PER_S, ns / NS_PER_MS);
	pthread_mutex_unlock(&l->lock);
}

const char *
latency_name(enum latency_event event)
{
	static const char *const names[LATENCY_EVENTS] = {
		[LATENCY_COMMAND] = "command",
		[LATENCY_FAST_COMMAND] = "fast-command",
	};

	return names[event];
}

enum latency_event
latency_find(struct str name)
{
	enum latency_event event = 0;

	while (event < LATENCY_EVENTS && !str_eq_nocase(name, str_from_cstr(latency_name(event))))
		event++;
	return event;
}

size_t
latency_read(struct latency *l, enum latency_event event,
	     struct latency_sample ret[LATENCY_SAMPLES], uint64_t *ret_most_ms)
{
	const struct latency_series *s = &l->series[event];
	size_t count;

	pthread_mutex_lock(&l->lock);
	count = s->count;
	for (size_t i = 0; i < count; i++)
		ret[i] = s->samples[(s->next + LATENCY_SAMPLES - count + i) % LATENCY_SAMPLES];
	*ret_most_ms = s->most_ms;
	pthread_mutex_unlock(&l->lock);
	return count;
}

bool
latency_reset(struct latency *l, enum latency_event event)
{
	bool had;

	pthread_mutex_lock(&l->lock);
	had = l->series[event].count != 0;
	l->series[event] = (struct latency_series){ .count = 0 };
	pthread_mutex_unlock(&l->lock);
	return had;
}
