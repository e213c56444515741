#include "loop/watchdog.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/thread.h"
#include "loop/wait.h"

static struct {
	pthread_mutex_t lock;
	struct watchdog_post *posts;
	pthread_t thread;
	bool running;
	bool stopping;
	uint64_t log_ns; /* no hold is logged before */
	uint64_t untold; /* holds that were not logged */
} dog = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Written by signal handlers, too, and therefore not under the lock. */
static _Atomic uint64_t end_ns = WAIT_FOREVER;
static _Atomic int end_code;
static _Atomic(const char *) stage;

static _Atomic uint64_t longest_ns; /* since it was read last */

/* ---- Metrics ---- */

static int64_t
watchdog_take_longest(void)
{
	return (int64_t)atomic_exchange(&longest_ns, 0);
}

METRIC_READ(metric_longest, METRIC_KIND_GAUGE, "frond_loop_hold_max_seconds", METRIC_SECONDS,
	    "The longest time that one request or task held a loop since this value was read last; "
	    "0 if none took 25 ms.",
	    watchdog_take_longest);
METRIC_COUNTER(metric_holds, "frond_loop_holds_total", METRIC_NUMBER,
	       "How often one request or task held a loop for more than 50 ms.");

static void
watchdog_note_longest(uint64_t ns)
{
	uint64_t longest = atomic_load(&longest_ns);

	while (ns > longest && !atomic_compare_exchange_weak(&longest_ns, &longest, ns))
		;
}

/* ---- Labels ---- */

void
watchdog_label_set(struct watchdog_label *label, struct str verb, struct str object)
{
	char text[WATCHDOG_LABEL_BYTES + sizeof(uint64_t)];
	size_t n = verb.len < WATCHDOG_LABEL_BYTES / 2 ? verb.len : WATCHDOG_LABEL_BYTES / 2;
	size_t most = WATCHDOG_LABEL_BYTES - 2 - n;
	uint64_t word = 0;

	memcpy(text, verb.ptr, n);
	text[n++] = ' ';
	if (object.len > most)
		object.len = most;
	if (object.len)
		memcpy(text + n, object.ptr, object.len);
	n += object.len;
	/* Whole words are written, the last of which has at least one NUL behind the text. */
	memcpy(text + n, &word, sizeof(word));
	for (size_t i = 0; i <= n / 8; i++) {
		memcpy(&word, text + 8 * i, 8);
		atomic_store_explicit(&label->words[i], word, memory_order_relaxed);
	}
}

void
watchdog_label_copy(struct watchdog_label *to, const struct watchdog_label *from)
{
	for (size_t i = 0; i < WATCHDOG_LABEL_WORDS; i++)
		atomic_store_explicit(&to->words[i],
				      atomic_load_explicit(&from->words[i], memory_order_relaxed),
				      memory_order_relaxed);
}

static void
watchdog_read_label(const struct watchdog_label *label, char ret[WATCHDOG_LABEL_BYTES])
{
	for (size_t i = 0; i < WATCHDOG_LABEL_WORDS; i++) {
		uint64_t word = atomic_load_explicit(&label->words[i], memory_order_relaxed);

		memcpy(ret + 8 * i, &word, 8);
	}
	ret[WATCHDOG_LABEL_BYTES - 1] = '\0';
	for (char *c = ret; *c; c++)
		if (*c == '"')
			*c = '\'';
}

/* ---- Posts ---- */

void
watchdog_add(struct watchdog_post *p, const char *kind, bool may_block)
{
	*p = (struct watchdog_post){ .kind = kind, .may_block = may_block };
	pthread_mutex_lock(&dog.lock);
	p->next = dog.posts;
	dog.posts = p;
	pthread_mutex_unlock(&dog.lock);
}

void
watchdog_remove(struct watchdog_post *p)
{
	struct watchdog_post **at = &dog.posts;

	pthread_mutex_lock(&dog.lock);
	while (*at && *at != p)
		at = &(*at)->next;
	if (*at)
		*at = p->next;
	pthread_mutex_unlock(&dog.lock);
}

void
watchdog_note_end(struct watchdog_post *p)
{
	atomic_store(&p->ended_ns, clock_mono_ns());
	atomic_store(&p->seen, false);
}

/* ---- The thread ---- */

/* With the lock held. A spell that was seen too long has ended. */
static void
watchdog_released(struct watchdog_post *p)
{
	uint64_t ended = atomic_load(&p->ended_ns);
	uint64_t ns = ended > p->looked_ns ? ended - p->looked_ns : 0;

	watchdog_note_longest(ns);
	log_event(LOG_LEVEL_WARN, "loop_released", "ms=%llu doing=\"%s\"",
		  (unsigned long long)(ns / CLOCK_NS_PER_MS), p->doing);
	p->held = p->logged = false;
}

/* With the lock held. The same spell has been under way for `ns` at least. */
static void
watchdog_held(struct watchdog_post *p, const struct watchdog_label *label, uint64_t now)
{
	uint64_t ns = now - p->looked_ns;

	watchdog_note_longest(ns);
	if (ns < WATCHDOG_HELD_MS * CLOCK_NS_PER_MS || p->logged)
		return;
	if (!p->held) {
		p->held = true;
		metric_add(&metric_holds, 1);
		/*
		 * The spell may end between the look and this store. Then the next one clears the
		 * flag, a little late, and the time that is logged is a little too long.
		 */
		atomic_store(&p->seen, true);
	}
	/* A hold that lasts until the next line may be logged is told then. */
	if (now < dog.log_ns)
		return;
	watchdog_read_label(label, p->doing);
	p->logged = true;
	log_event(LOG_LEVEL_WARN, "loop_held", "ms=%llu doing=\"%s\" before=%llu",
		  (unsigned long long)(ns / CLOCK_NS_PER_MS), p->doing,
		  (unsigned long long)dog.untold);
	dog.untold = 0;
	dog.log_ns = now + WATCHDOG_LOG_MS * CLOCK_NS_PER_MS;
}

/* With the lock held. */
static void
watchdog_look(struct watchdog_post *p, uint64_t now)
{
	uint64_t spell = atomic_load_explicit(&p->spell, memory_order_relaxed);
	const struct watchdog_label *label = atomic_load_explicit(&p->label, memory_order_acquire);

	if (p->logged && !atomic_load(&p->seen))
		watchdog_released(p);
	if (!label || spell != p->looked_spell) {
		dog.untold += p->held && !p->logged;
		p->held = false;
		p->looked_spell = spell;
		p->looked_ns = now;
	} else if (!p->may_block) {
		watchdog_held(p, label, now);
	}
}

/* With the lock held. */
static void
watchdog_end_process(uint64_t now)
{
	const char *waits_for = atomic_load(&stage);
	char doing[WATCHDOG_LABEL_BYTES];

	/*
	 * Logging may block, if a thread that does not return holds the stream or nobody reads it.
	 * Then SIGALRM ends the process.
	 */
	alarm(2);
	log_event(LOG_LEVEL_ERROR, "stop_overdue", "stage=\"%s\" code=%d",
		  waits_for ? waits_for : "", atomic_load(&end_code));
	for (const struct watchdog_post *p = dog.posts; p; p = p->next) {
		const struct watchdog_label *label = atomic_load(&p->label);

		if (!label)
			continue;
		watchdog_read_label(label, doing);
		log_event(LOG_LEVEL_ERROR, "stop_waits", "thread=%s ms=%llu doing=\"%s\"", p->kind,
			  (unsigned long long)((now - p->looked_ns) / CLOCK_NS_PER_MS), doing);
	}
	_exit(atomic_load(&end_code));
}

static void *
watchdog_main(void *arg)
{
	const struct timespec pause = { .tv_nsec = (long)(WATCHDOG_LOOK_MS * CLOCK_NS_PER_MS) };

	(void)arg;
	thread_set_name("watchdog");
	pthread_mutex_lock(&dog.lock);
	while (!dog.stopping) {
		uint64_t now = clock_mono_ns();

		if (now >= atomic_load(&end_ns))
			watchdog_end_process(now);
		for (struct watchdog_post *p = dog.posts; p; p = p->next)
			watchdog_look(p, now);
		pthread_mutex_unlock(&dog.lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&dog.lock);
	}
	pthread_mutex_unlock(&dog.lock);
	return NULL;
}

enum status
watchdog_start(struct err *err)
{
	dog.stopping = false;
	if (pthread_create(&dog.thread, NULL, watchdog_main, NULL) != 0)
		return err_set(err, STATUS_LIMIT, "cannot start a thread for the watchdog");
	dog.running = true;
	return STATUS_OK;
}

void
watchdog_stop(void)
{
	if (!dog.running)
		return;
	pthread_mutex_lock(&dog.lock);
	dog.stopping = true;
	pthread_mutex_unlock(&dog.lock);
	pthread_join(dog.thread, NULL);
	dog.running = false;
}

void
watchdog_end_by(uint64_t at_ns, int code)
{
	uint64_t earlier = atomic_load(&end_ns);

	atomic_store(&end_code, code);
	while (at_ns < earlier && !atomic_compare_exchange_weak(&end_ns, &earlier, at_ns))
		;
}

void
watchdog_set_stage(const char *text)
{
	atomic_store(&stage, text);
}
