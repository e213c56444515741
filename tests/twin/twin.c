#include "twin.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "loop/task.h"

enum {
	TWIN_LOOPS = 4,
	TWIN_EVENTS = 4096,
	TWIN_STEP_NS = 20000,       /* at most, of virtual time that a step takes */
	TWIN_WORK_NS = 5 * 1000000, /* at most, until the pool has done a piece of work */
	TWIN_STEPS = 4 * 1000 * 1000,
	TWIN_TASK_BYTES = 64 * 1024 * 1024,
	TWIN_BEGIN_S = 1000,
};

struct twin_loop {
	struct loop *loop;
	uint64_t clock_ns;
	bool rung;
	bool stopped;
};

struct twin_event {
	uint64_t at_ns;
	uint64_t number;   /* in the order of their making */
	struct loop *loop; /* whose thread it is on */
	void (*fn)(void *arg);
	void *arg;
};

static struct {
	struct rand_seq rand;
	uint64_t seed;
	uint64_t now_ns;
	uint64_t trace;
	uint64_t steps;
	uint64_t numbers;
	struct twin_loop loops[TWIN_LOOPS]; /* `loop` NULL: free */
	struct twin_event *events[TWIN_EVENTS];
	size_t event_count;
	struct loop outside;
	unsigned scripts; /* that have not ended */
	bool processors_to_spare;
	uint64_t ways_given;
	bool begun;
	bool printing;
} world;

/* ---- Chance and time ---- */

uint64_t
twin_draw(uint64_t below)
{
	return rand_seq_below(&world.rand, below);
}

bool
twin_chance(unsigned percent)
{
	return twin_draw(100) < percent;
}

uint64_t
twin_now_ns(void)
{
	return world.now_ns;
}

uint64_t
twin_now_ms(void)
{
	return world.now_ns / CLOCK_NS_PER_MS;
}

void
twin_compute(uint64_t ns)
{
	world.now_ns += ns;
}

void
twin_note(const char *what, uint64_t a, uint64_t b)
{
	struct rand_seq mix = { .state = world.trace };

	for (const char *at = what; *at; at++)
		mix.state = rand_seq_next(&mix) ^ (unsigned char)*at;
	mix.state = rand_seq_next(&mix) ^ a;
	mix.state = rand_seq_next(&mix) ^ b;
	mix.state = rand_seq_next(&mix) ^ world.now_ns;
	world.trace = rand_seq_next(&mix);
	if (world.printing)
		fprintf(stderr, "# %12.6f %s %llu %llu\n", (double)world.now_ns / 1e9, what,
			(unsigned long long)a, (unsigned long long)b);
}

uint64_t
twin_trace(void)
{
	return world.trace;
}

/* ---- Events ---- */

struct twin_event *
twin_at(uint64_t at_ns, struct loop *loop, void (*fn)(void *arg), void *arg)
{
	struct twin_event *e = mem_alloc(sizeof(*e));

	if (!e || world.event_count == TWIN_EVENTS)
		abort();
	*e = (struct twin_event){ at_ns, world.numbers++, loop, fn, arg };
	world.events[world.event_count++] = e;
	return e;
}

static void
twin_forget(size_t i)
{
	mem_free(world.events[i]);
	world.events[i] = world.events[--world.event_count];
}

void
twin_cancel(struct twin_event *e)
{
	for (size_t i = 0; i < world.event_count; i++) {
		if (world.events[i] == e) {
			twin_forget(i);
			return;
		}
	}
	assert(false && "an event that is not there is taken back");
}

static void
twin_fire(size_t i)
{
	struct twin_event e = *world.events[i];

	twin_forget(i);
	mailbox_set_thread(e.loop ? e.loop->mailbox : NULL);
	e.fn(e.arg);
}

/* ---- Steps: what can happen next, and one of it ---- */

enum twin_kind {
	TWIN_RING,
	TWIN_READY,
	TWIN_CLOCK,
	TWIN_EVENT,
};

struct twin_choice {
	enum twin_kind kind;
	size_t index;
};

struct twin_choices {
	struct twin_choice of[TWIN_EVENTS + 3 * TWIN_LOOPS];
	size_t count;
};

static void
twin_add_choice(struct twin_choices *all, enum twin_kind kind, size_t index)
{
	all->of[all->count++] = (struct twin_choice){ kind, index };
}

static void
twin_list_choices(struct twin_choices *all)
{
	all->count = 0;
	for (size_t i = 0; i < TWIN_LOOPS; i++) {
		const struct twin_loop *l = &world.loops[i];

		if (!l->loop || l->stopped)
			continue;
		if (l->rung)
			twin_add_choice(all, TWIN_RING, i);
		if (loop_has_ready(l->loop))
			twin_add_choice(all, TWIN_READY, i);
		if (l->clock_ns <= world.now_ns)
			twin_add_choice(all, TWIN_CLOCK, i);
	}
	for (size_t i = 0; i < world.event_count; i++)
		if (world.events[i]->at_ns <= world.now_ns)
			twin_add_choice(all, TWIN_EVENT, i);
}

/* Moves to the next moment at which something can happen; false if there is none. */
static bool
twin_skip_time(void)
{
	uint64_t next = WAIT_FOREVER;

	for (size_t i = 0; i < TWIN_LOOPS; i++) {
		const struct twin_loop *l = &world.loops[i];

		if (l->loop && !l->stopped && l->clock_ns < next)
			next = l->clock_ns;
	}
	for (size_t i = 0; i < world.event_count; i++)
		if (world.events[i]->at_ns < next)
			next = world.events[i]->at_ns;
	if (next == WAIT_FOREVER)
		return false;
	if (next > world.now_ns)
		world.now_ns = next;
	return true;
}

/* Puts what is ready into an order of chance, and runs it. */
static void
twin_run_ready(struct twin_loop *l)
{
	struct letter *letters[256];
	struct letter_queue rest = { 0 };
	struct letter *letter;
	size_t n = 0;

	while (n < sizeof(letters) / sizeof(letters[0]) &&
	       (letter = letter_queue_pop(&l->loop->ready)))
		letters[n++] = letter;
	while ((letter = letter_queue_pop(&l->loop->ready)))
		letter_queue_push(&rest, letter);
	for (size_t i = n; i > 0; i--) {
		size_t other = twin_draw(i);

		letter = letters[i - 1];
		letters[i - 1] = letters[other];
		letters[other] = letter;
		letter_queue_push(&l->loop->ready, letters[i - 1]);
	}
	while ((letter = letter_queue_pop(&rest)))
		letter_queue_push(&l->loop->ready, letter);
	loop_run_ready(l->loop);
	loop_run_later(l->loop);
}

static void
twin_take(struct twin_choice choice)
{
	struct twin_loop *l = &world.loops[choice.kind == TWIN_EVENT ? 0 : choice.index];

	if (choice.kind == TWIN_EVENT) {
		twin_note("event", world.events[choice.index]->number, 0);
		twin_fire(choice.index);
		mailbox_set_thread(NULL);
		return;
	}
	twin_note(choice.kind == TWIN_RING    ? "ring"
		  : choice.kind == TWIN_READY ? "ready"
					      : "clock",
		  choice.index, 0);
	mailbox_set_thread(l->loop->mailbox);
	if (choice.kind == TWIN_RING) {
		l->rung = false;
		loop_take_mail(l->loop);
	} else if (choice.kind == TWIN_READY) {
		twin_run_ready(l);
	} else {
		l->clock_ns = WAIT_FOREVER;
		loop_fire_timers(l->loop);
	}
	mailbox_set_thread(NULL);
}

/* False if nothing can happen any more. */
static bool
twin_step(void)
{
	static struct twin_choices all;

	twin_list_choices(&all);
	if (!all.count) {
		if (!twin_skip_time())
			return false;
		twin_list_choices(&all);
	}
	twin_take(all.of[twin_draw(all.count)]);
	world.now_ns += twin_draw(TWIN_STEP_NS);
	twin_check(++world.steps < TWIN_STEPS);
	return true;
}

/* ---- Loops on it ---- */

static struct twin_loop *
twin_loop_of(struct loop *l)
{
	return l->driver;
}

static enum status
twin_loop_init(struct loop *l, struct err *err)
{
	for (size_t i = 0; i < TWIN_LOOPS; i++) {
		if (!world.loops[i].loop) {
			world.loops[i] = (struct twin_loop){ .loop = l, .clock_ns = WAIT_FOREVER };
			l->driver = &world.loops[i];
			return STATUS_OK;
		}
	}
	return err_set(err, STATUS_LIMIT, "the twin has no room for another loop");
}

static void
twin_loop_fini(struct loop *l)
{
	/* What its streams have closed may still have to be told. */
	if (l->driver)
		*twin_loop_of(l) = (struct twin_loop){ 0 };
}

static void
twin_loop_run(struct loop *l)
{
	while (!twin_loop_of(l)->stopped)
		twin_check(twin_step() && "something can still happen");
}

static void
twin_loop_stop(struct loop *l)
{
	twin_note("stop", 0, 0);
	twin_loop_of(l)->stopped = true;
}

static void
twin_loop_ring(struct loop *l)
{
	twin_loop_of(l)->rung = true;
}

static void
twin_loop_set_clock(struct loop *l, uint64_t at_ns)
{
	twin_loop_of(l)->clock_ns = at_ns;
}

static void
twin_loop_stay_awake(struct loop *l, bool awake)
{
	(void)l;
	(void)awake;
}

static void
twin_do_work(void *arg)
{
	struct wait_work *work = arg;

	/* As on a thread of the pool: no loop is this thread's, and events go through mailboxes. */
	work->pool = NULL;
	work->queued = false;
	work->fn(work->arg);
	event_set(&work->done);
}

static bool
twin_take_work_back(struct wait_work *work)
{
	if (!work->queued)
		return false;
	work->queued = false;
	twin_cancel(work->pool);
	return true;
}

static void
twin_loop_begin_work(struct loop *l, struct wait_work *work)
{
	(void)l;
	work->queued = true;
	work->take_back = twin_take_work_back;
	work->pool = twin_at(world.now_ns + twin_draw(TWIN_WORK_NS), NULL, twin_do_work, work);
}

static bool
twin_loop_processors_are_short(struct loop *l)
{
	(void)l;
	return !world.processors_to_spare;
}

static void
twin_loop_give_way(struct loop *l)
{
	(void)l;
	world.ways_given++;
}

uint64_t
twin_ways_given(void)
{
	return world.ways_given;
}

void
twin_set_processors_to_spare(bool spare)
{
	world.processors_to_spare = spare;
}

const struct loop_ops twin_loop_ops = {
	.init = twin_loop_init,
	.fini = twin_loop_fini,
	.run = twin_loop_run,
	.stop = twin_loop_stop,
	.ring = twin_loop_ring,
	.set_clock = twin_loop_set_clock,
	.stay_awake = twin_loop_stay_awake,
	.processors_are_short = twin_loop_processors_are_short,
	.give_way = twin_loop_give_way,
	.begin_work = twin_loop_begin_work,
};

/* ---- Scripts ---- */

struct twin_script {
	void (*fn)(void *arg);
	void *arg;
};

static void
twin_play(void *arg)
{
	struct twin_script s = *(struct twin_script *)arg;

	mem_free(arg);
	s.fn(s.arg);
	world.scripts--;
}

void
twin_script(void (*fn)(void *arg), void *arg)
{
	struct twin_script *s = mem_alloc(sizeof(*s));

	if (!s)
		abort();
	*s = (struct twin_script){ fn, arg };
	world.scripts++;
	if (task_spawn(&world.outside, twin_play, s) != STATUS_OK)
		abort();
}

void
twin_sleep_ms(uint64_t ms)
{
	struct event never;

	event_init(&never);
	(void)event_wait(&never, clock_after_ms(ms));
}

struct loop *
twin_outside(void)
{
	return &world.outside;
}

void
twin_settle(void)
{
	while (world.scripts)
		twin_check(twin_step() && "a script waits for ever");
	/* What was due when the last one ended: streams that close, work that is under way. */
	while (world.event_count && twin_step())
		;
}

/* ---- Life ---- */

void
twin_begin(uint64_t seed)
{
	const struct loop_config config = { .ops = &twin_loop_ops, .task_bytes = TWIN_TASK_BYTES };
	struct err err = { 0 };

	assert(!world.begun);
	memset(&world, 0, sizeof(world));
	world.begun = true;
	world.seed = seed;
	world.rand.state = seed;
	world.now_ns = TWIN_BEGIN_S * 1000 * CLOCK_NS_PER_MS;
	world.printing = getenv("FROND_TWIN_TRACE") != NULL;
	if (loop_init(&world.outside, &config, &err) != STATUS_OK)
		abort();
}

void
twin_end(void)
{
	twin_settle();
	loop_fini(&world.outside);
	twin_drop_streams();
	while (world.event_count)
		twin_forget(world.event_count - 1);
	for (size_t i = 0; i < TWIN_LOOPS; i++)
		twin_check(!world.loops[i].loop && "every loop has ended");
	world.begun = false;
}

/* ---- Seeds ---- */

static void
twin_name_seed(int number)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "# failed with FROND_TWIN_SEED=%llu\n",
			 (unsigned long long)world.seed);

	(void)!write(STDERR_FILENO, text, (size_t)n);
	signal(number, SIG_DFL);
	raise(number);
}

void
twin_check_at(bool ok, const char *what, const char *file, int line)
{
	if (ok)
		return;
	fprintf(stderr, "# %s:%d: %s\n", file, line, what);
	abort(); /* also from a fiber, where no test library could jump from */
}

uint64_t
twin_run_seed(void (*fn)(void), uint64_t seed)
{
	signal(SIGABRT, twin_name_seed);
	twin_begin(seed);
	fn();
	twin_end();
	return world.trace;
}

uint64_t
twin_run_seeds(void (*fn)(void), unsigned count)
{
	const char *one = getenv("FROND_TWIN_SEED");
	const char *more = getenv("FROND_TWIN_SEEDS");
	uint64_t first = 0;
	uint64_t trace = 0;

	if (one)
		return twin_run_seed(fn, strtoull(one, NULL, 10));
	if (more)
		count = (unsigned)strtoul(more, NULL, 10);
	/* Not by rand_bytes(), which is the world's. */
	if (getrandom(&first, sizeof(first), 0) != sizeof(first))
		abort();
	first >>= 16;
	for (unsigned i = 0; i < count; i++)
		trace = twin_run_seed(fn, first + i);
	return trace;
}
