#include "loop/task.h"

#include <assert.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"

METRIC_GAUGE(fibers, "frond_fibers", METRIC_NUMBER,
	     "Fibers that have begun and not ended: requests, feeds, and work of their own.");

static const struct letter_ops task_letter_ops;

/* ---- Running ---- */

static void
task_enter(struct task *t)
{
	bool done;

	assert(mailbox_is_thread(t->mailbox) && "a fiber belongs to its loop's thread");
	waiter_set_current(&t->waiter);
	t->loop->entries++;
	watchdog_begin(&t->loop->post, t->label);
	step_enter(&t->steps);
	done = fiber_enter(t->fiber);
	step_leave();
	watchdog_end(&t->loop->post);
	waiter_set_current(NULL);
	if (done) {
		assert(t->loop->running > 0 && !t->parked);
		t->loop->running--;
		metric_gauge_add(&fibers, -1);
		if (t->steps.slices == 0)
			loop_note_small();
		t->done(t->arg);
	}
}

/*
 * ---- The waiter ----
 *
 * A wake sends the task's letter, once. The loop delivers letters when no fiber runs. A wake that
 * comes between the fiber's look at its events and its park therefore waits in the queue, and is
 * delivered right after the park: it cannot be lost. A letter whose task has gone on to something
 * else enters it for no reason, which every park allows for (event_wait_any() looks again).
 */

static void
task_wake(struct waiter *w)
{
	struct task *t = (struct task *)w;

	if (atomic_exchange(&t->queued, true))
		return;
	waiter_ref(w);
	if (!loop_post(t->loop, t->mailbox, &t->letter))
		waiter_unref(w);
}

static void
task_timer_fired(struct timer *timer)
{
	struct task *t = (struct task *)((char *)timer - offsetof(struct task, timer));

	if (!t->parked)
		return;
	/* A fiber that computes for long waits for its turn behind others, whatever wakes it. */
	if (t->letter.later) {
		task_wake(&t->waiter);
		return;
	}
	t->entered_ns = clock_mono_ns();
	task_enter(t);
}

static void
task_leave(struct task *t)
{
	t->parked = true;
	step_rest(&t->steps, t->entered_ns ? clock_mono_ns() - t->entered_ns : 0);
	t->letter.later = step_is_hot(&t->steps);
	fiber_leave(t->fiber);
	t->parked = false;
}

static void
task_park(struct waiter *w, uint64_t deadline_ns)
{
	struct task *t = (struct task *)w;

	loop_set_timer(t->loop, &t->timer, deadline_ns);
	task_leave(t);
	loop_set_timer(t->loop, &t->timer, WAIT_FOREVER);
}

static void
task_yield(struct waiter *w)
{
	struct task *t = (struct task *)w;

	/* Before its letter is sent: the letter is to go into the right queue. */
	t->letter.later = step_is_hot(&t->steps);
	if (t->letter.later)
		t->loop->slice_ended = true;
	task_wake(w);
	task_leave(t);
}

static void
task_begin_work(struct waiter *w, struct wait_work *work)
{
	struct task *t = (struct task *)w;

	work->label = t->label;
	t->loop->ops->begin_work(t->loop, work);
}

static void
task_offload(struct waiter *w, void (*fn)(void *arg), void *arg)
{
	/* On the fiber's stack: the fiber does not return before `done` is set. */
	struct wait_work work = { .fn = fn, .arg = arg };

	event_init(&work.done);
	task_begin_work(w, &work);
	event_wait(&work.done, WAIT_FOREVER);
}

static bool
task_is_alone(struct waiter *w)
{
	const struct loop *l = ((struct task *)w)->loop;

	assert(l->running > l->resting);
	return l->running - l->resting == 1 && l->hooks && l->hooks->is_alone &&
	       l->hooks->is_alone(l);
}

/* On the thread that held the last reference, perhaps after the loop's end: must not look at it. */
static void
task_destroy(struct waiter *w)
{
	struct task *t = (struct task *)w;

	fiber_free(t->fiber);
	arena_free(t->arena);
	mailbox_unref(t->mailbox);
	mem_free(t);
}

static void
task_trim(struct waiter *w)
{
	fiber_trim(((struct task *)w)->fiber);
}

static const struct waiter_ops task_waiter_ops = {
	.park = task_park,
	.wake = task_wake,
	.offload = task_offload,
	.begin = task_begin_work,
	.yield = task_yield,
	.is_alone = task_is_alone,
	.trim = task_trim,
	.destroy = task_destroy,
};

/* ---- What it does ---- */

/* Labels stay with the loop, since the watchdog may look at one that is no longer used. */
static struct watchdog_label *
task_take_label(struct loop *l)
{
	struct watchdog_label *label = l->spare_labels;

	if (!label)
		return mem_zalloc(sizeof(*label));
	l->spare_labels = label->next;
	return label;
}

static void
task_put_label(struct loop *l, struct watchdog_label *label)
{
	if (!label)
		return;
	label->next = l->spare_labels;
	l->spare_labels = label;
}

/* The task whose fiber runs; NULL on a plain thread. */
static struct task *
task_current(void)
{
	struct step_meter *m = step_current();

	return m ? (struct task *)((char *)m - offsetof(struct task, steps)) : NULL;
}

size_t
task_stack_left(void)
{
	const struct task *t = task_current();

	return t ? fiber_stack_left(t->fiber) : SIZE_MAX;
}

void
task_set_doing(struct str verb, struct str object)
{
	struct task *t = task_current();

	if (t)
		watchdog_label_set(t->label, verb, object);
}

void *
task_works_for(void)
{
	const struct task *t = task_current();

	return t ? t->works_for : NULL;
}

void *
task_work_for(void *whom)
{
	struct task *t = task_current();
	void *before = task_works_for();

	if (t)
		t->works_for = whom;
	return before;
}

void
task_rest(void)
{
	struct task *t = task_current();

	if (t)
		t->loop->resting++;
}

void
task_rouse(void)
{
	struct task *t = task_current();

	if (!t)
		return;
	assert(t->loop->resting > 0);
	t->loop->resting--;
}

/* ---- Life ---- */

static struct task *
task_new(struct loop *l)
{
	struct task *t = mem_zalloc(sizeof(*t));

	if (!t)
		return NULL;
	t->loop = l;
	t->fiber = fiber_new();
	t->arena = arena_new(l->task_bytes);
	t->label = task_take_label(l);
	if (!t->fiber || !t->arena || !t->label ||
	    loop_attach_timer(l, &t->timer, task_timer_fired) != STATUS_OK) {
		task_put_label(l, t->label);
		fiber_free(t->fiber);
		arena_free(t->arena);
		mem_free(t);
		return NULL;
	}
	step_init(&t->steps);
	t->letter.ops = &task_letter_ops;
	waiter_init(&t->waiter, &task_waiter_ops);
	t->mailbox = l->mailbox;
	mailbox_ref(t->mailbox);
	return t;
}

/* Takes the idle task out of its loop's hands; late wakers may keep it a little longer. */
static void
task_drop(struct task *t)
{
	loop_detach_timer(t->loop, &t->timer);
	task_put_label(t->loop, t->label);
	t->label = NULL;
	waiter_unref(&t->waiter);
}

static void
task_drop_idle(struct loop *l)
{
	while (l->idle_tasks) {
		struct task *t = l->idle_tasks;

		l->idle_tasks = t->next_idle;
		task_drop(t);
	}
	l->idle_task_count = 0;
	while (l->spare_labels) {
		struct watchdog_label *label = l->spare_labels;

		l->spare_labels = label->next;
		mem_free(label);
	}
}

struct task *
task_take(struct loop *l)
{
	struct task *t = l->idle_tasks;

	if (!t) {
		l->drop_idle_tasks = task_drop_idle;
		return task_new(l);
	}
	l->idle_tasks = t->next_idle;
	l->idle_task_count--;
	return t;
}

void
task_put(struct task *t)
{
	struct loop *l = t->loop;

	assert(!t->parked && !t->fresh);
	step_init(&t->steps);
	t->works_for = NULL;
	t->letter.later = false;
	arena_clear(t->arena);
	arena_set_part(t->arena, NULL);
	if (l->idle_task_count >= TASK_IDLE_MAX) {
		task_drop(t);
		return;
	}
	t->next_idle = l->idle_tasks;
	l->idle_tasks = t;
	l->idle_task_count++;
}

void
task_start(struct task *t, void (*fn)(void *arg), void (*done)(void *arg), void *arg)
{
	t->done = done;
	t->arg = arg;
	t->entered_ns = 0;
	t->loop->running++;
	metric_gauge_add(&fibers, 1);
	fiber_start(t->fiber, fn, arg);
	task_enter(t);
}

void
task_start_soon(struct task *t, void (*fn)(void *arg), void (*done)(void *arg), void *arg)
{
	assert(!t->fresh && !t->parked);
	t->fn = fn;
	t->done = done;
	t->arg = arg;
	t->fresh = true;
	/*
	 * A stale wake may have sent the letter already: then that one begins the function. Before
	 * the loop runs, the letter goes through the mailbox, which is open until the loop ends.
	 */
	task_wake(&t->waiter);
}

static void
task_run_spawned(void *arg)
{
	struct task *t = arg;

	t->spawn_fn(t->spawn_arg);
}

static void
task_put_spawned(void *arg)
{
	task_put(arg);
}

enum status
task_spawn(struct loop *l, void (*fn)(void *arg), void *arg)
{
	const struct task *spawner = task_current();
	struct task *t = task_take(l);

	if (!t)
		return STATUS_NOMEM;
	t->spawn_fn = fn;
	t->spawn_arg = arg;
	if (spawner)
		watchdog_label_copy(t->label, spawner->label);
	else
		watchdog_label_set(t->label, STR("fiber"), STR("of a new loop"));
	task_start_soon(t, task_run_spawned, task_put_spawned, t);
	return STATUS_OK;
}

/* ---- Its letter ---- */

static struct task *
task_of_letter(struct letter *letter)
{
	return (struct task *)((char *)letter - offsetof(struct task, letter));
}

static void
task_continue(struct letter *letter)
{
	struct task *t = task_of_letter(letter);

	/*
	 * Cleared before the fiber goes on: a wake from now on needs a letter of its own, since the
	 * fiber may have looked at its events already when that wake comes.
	 */
	atomic_store(&t->queued, false);
	t->entered_ns = clock_mono_ns();
	if (t->fresh) {
		t->fresh = false;
		task_start(t, t->fn, t->done, t->arg);
	} else if (t->parked) {
		task_enter(t);
	}
	waiter_unref(&t->waiter);
}

static void
task_drop_letter(struct letter *letter)
{
	struct task *t = task_of_letter(letter);

	if (t->fresh) {
		t->fresh = false;
		task_put(t);
	}
	waiter_unref(&t->waiter);
}

static const struct letter_ops task_letter_ops = {
	.deliver = task_continue,
	.drop = task_drop_letter,
};
