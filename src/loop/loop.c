#include "loop/loop.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/clock.h"
#include "loop/hurry.h"
#include "loop/libuv.h"
#include "loop/step.h"

/* ---- Being awake ---- */

bool
loop_has_ready(const struct loop *l)
{
	return l->ready.first || l->timers_left || (l->later.first && !l->napping);
}

static void
loop_update_awake(struct loop *l)
{
	bool awake = loop_has_ready(l);

	if (awake != l->awake) {
		l->awake = awake;
		l->ops->stay_awake(l, awake);
	}
}

/* ---- Timers ---- */

enum status
loop_attach_timer(struct loop *l, struct timer *t, void (*fire)(struct timer *t))
{
	return timers_attach(&l->timers, t, fire);
}

void
loop_detach_timer(struct loop *l, struct timer *t)
{
	timers_detach(&l->timers, t);
}

void
loop_set_timer(struct loop *l, struct timer *t, uint64_t at_ns)
{
	timers_set(&l->timers, t, at_ns);
	if (at_ns < l->clock_ns) {
		l->clock_ns = at_ns;
		l->ops->set_clock(l, at_ns);
	}
}

void
loop_fire_timers(struct loop *l)
{
	uint64_t now = clock_mono_ns();
	uint64_t end_ns = now + STEP_SLICE_NS;
	struct timer *t;
	uint64_t next;

	/*
	 * The driver's clock is unset while timers fire, so a timer that one of them sets is handed
	 * to the driver at once if it is the earliest. The look at the heap afterwards covers those
	 * that were there before.
	 */
	l->clock_ns = WAIT_FOREVER;
	l->timers_left = false;
	while ((t = timers_pop(&l->timers, now))) {
		t->fire(t);
		now = clock_mono_ns();
		if (now < end_ns || timers_next_ns(&l->timers) > now)
			continue;
		/*
		 * Thousands may be due at once. The others fire when sockets have had their turn:
		 * the loop stays awake, and its clock stays unset.
		 */
		l->timers_left = true;
		loop_update_awake(l);
		return;
	}
	next = timers_next_ns(&l->timers);
	if (next < l->clock_ns) {
		l->clock_ns = next;
		l->ops->set_clock(l, next);
	}
}

/* ---- Letters ---- */

static void
loop_queue_letter(struct loop *l, struct letter *letter)
{
	letter_queue_push(letter->later ? &l->later : &l->ready, letter);
}

bool
loop_post(struct loop *l, struct mailbox *mailbox, struct letter *letter)
{
	/*
	 * The mailbox is given by the caller, who holds a reference to it. From another thread `l`
	 * must not be looked at before the mailbox has said that the loop has not ended.
	 */
	if (!mailbox_is_thread(mailbox))
		return mailbox_post(mailbox, letter);
	assert(l->mailbox == mailbox);
	loop_queue_letter(l, letter);
	return true;
}

void
loop_run_ready(struct loop *l)
{
	/*
	 * One batch: letters that become ready meanwhile wait until sockets have had their turn, so
	 * fibers that keep yielding do not starve the connections. A batch ends after a slice's
	 * time, too, since thousands of fibers may be woken at once.
	 */
	struct letter_queue batch;
	struct letter *letter;
	uint64_t end_ns;

	if (l->timers_left)
		loop_fire_timers(l);
	batch = l->ready;
	letter = letter_queue_pop(&batch);
	end_ns = batch.first ? clock_mono_ns() + STEP_SLICE_NS : 0;
	l->ready = (struct letter_queue){ 0 };
	while (letter) {
		letter->ops->deliver(letter);
		if (batch.first && clock_mono_ns() >= end_ns)
			break;
		letter = letter_queue_pop(&batch);
	}
	/* What is left comes before what has become ready. */
	while ((letter = letter_queue_pop(&l->ready)))
		letter_queue_push(&batch, letter);
	l->ready = batch;
	loop_update_awake(l);
}

/*
 * ---- Fibers that compute ----
 *
 * While others are there and processors are short, the loop does not turn without a pause between
 * two slices: it naps. Where threads are more than processors, one that is woken waits until the
 * kernel takes the processor from another one, which it does every few milliseconds, or until that
 * one sleeps. So a loop that computed all the time would cost each of the others, and its own
 * clients' programs if they run on the same machine, milliseconds, however short its slices are.
 * The loop asks before each slice whether a thread waits for a processor, so such a thread waits
 * for one slice. While none does, a nap would leave the processor to nobody.
 */

static _Atomic unsigned loops_computing;
static _Atomic uint64_t small_ended; /* while there were such loops */

void
loop_note_small(void)
{
	if (atomic_load_explicit(&loops_computing, memory_order_relaxed))
		atomic_fetch_add_explicit(&small_ended, 1, memory_order_relaxed);
}

static void
loop_set_computing(struct loop *l, bool computing)
{
	if (computing == l->computing)
		return;
	l->computing = computing;
	if (computing)
		atomic_fetch_add_explicit(&loops_computing, 1, memory_order_relaxed);
	else
		atomic_fetch_sub_explicit(&loops_computing, 1, memory_order_relaxed);
}

/* True if small fibers have ended lately, as far as the loop has looked. */
static bool
loop_knows_others(const struct loop *l, uint64_t now_ns)
{
	return l->small_ns && now_ns - l->small_ns < LOOP_OTHERS_NS;
}

/* Looks, and is true if small fibers have ended lately, on this loop or on another one. */
static bool
loop_sees_others(struct loop *l, uint64_t now_ns)
{
	uint64_t ended = atomic_load_explicit(&small_ended, memory_order_relaxed);

	/* What ended before these fibers had begun does not count: it may be long ago. */
	if (now_ns - l->later_end_ns >= LOOP_OTHERS_NS)
		l->small_ns = 0;
	else if (ended != l->small_seen)
		l->small_ns = now_ns;
	l->small_seen = ended;
	return loop_knows_others(l, now_ns);
}

static void
loop_nap_ended(struct timer *t)
{
	struct loop *l = (struct loop *)((char *)t - offsetof(struct loop, nap));

	l->napping = false;
	loop_update_awake(l);
}

/* True if fibers that compute may have a slice now. If not, the loop may nap from now on. */
static bool
loop_is_later_due(struct loop *l, uint64_t now_ns)
{
	/* Of a hundred parts of the time, theirs are LOOP_LATER_PERCENT. */
	uint64_t others_ns = l->later_took_ns * (100 - LOOP_LATER_PERCENT) / LOOP_LATER_PERCENT;
	bool sees_others = loop_sees_others(l, now_ns);

	l->napping = false;
	if (now_ns - l->later_end_ns >= others_ns)
		return true;
	/*
	 * A turn in which no other fiber ran shows that none of this loop's wants to: the loop has
	 * looked at its sockets since the last call.
	 */
	if (!sees_others || !l->ops->processors_are_short(l))
		return l->entries == l->entries_seen && !l->ready.first;
	l->napping = true;
	loop_set_timer(l, &l->nap, l->later_end_ns + others_ns);
	return false;
}

void
loop_run_later(struct loop *l)
{
	uint64_t start;
	uint64_t now;

	/* A fiber that computes may be back soon: others are noted until it has been away. */
	if (!l->later.first &&
	    (!l->computing || clock_mono_ns() - l->later_end_ns < LOOP_OTHERS_NS))
		return;
	loop_set_computing(l, l->later.first);
	if (!l->later.first)
		return;
	start = clock_mono_ns();
	if (loop_is_later_due(l, start)) {
		/*
		 * The first fiber of the queue continues, and goes to the queue's end if it uses up
		 * its slice. One that does not leaves the rest of the slice to the next fiber.
		 */
		l->slice_ended = false;
		do {
			struct letter *letter = letter_queue_pop(&l->later);

			letter->ops->deliver(letter);
			now = clock_mono_ns();
		} while (l->later.first && !l->slice_ended && now - start < STEP_SLICE_NS);
		l->later_end_ns = now;
		l->later_took_ns = now - start;
		/*
		 * A client's thread that this loop's answers have woken often waits for the very
		 * processor that the loop uses, even while another one is idle. It gets the
		 * processor here: the loop then looks at its sockets, where the next request is.
		 */
		if (loop_knows_others(l, now))
			l->ops->give_way(l);
	}
	l->entries_seen = l->entries;
	loop_update_awake(l);
}

void
loop_hurry(struct loop *l)
{
	struct letter *letter;

	while ((letter = letter_queue_pop(&l->later)))
		letter_queue_push(&l->ready, letter);
	loop_update_awake(l);
}

void
loop_take_mail(struct loop *l)
{
	struct letter_queue mail = mailbox_take(l->mailbox);
	struct letter *letter;

	while ((letter = letter_queue_pop(&mail)))
		loop_queue_letter(l, letter);
	if (l->hooks && l->hooks->noticed)
		l->hooks->noticed(l);
}

void
loop_notice(struct loop *l)
{
	l->ops->ring(l);
}

static void
loop_ring(void *arg)
{
	struct loop *l = arg;

	l->ops->ring(l);
}

/* ---- Life ---- */

enum status
loop_init(struct loop *l, const struct loop_config *config, struct err *err)
{
	*l = (struct loop){
		.ops = config->ops ? config->ops : &loop_uv_ops,
		.hooks = config->hooks,
		.pool = config->pool,
		.task_bytes = config->task_bytes,
		.clock_ns = WAIT_FOREVER,
	};
	TRY(l->ops->init(l, err));
	l->mailbox = mailbox_new(loop_ring, l);
	if (!l->mailbox || loop_attach_timer(l, &l->nap, loop_nap_ended) != STATUS_OK)
		return err_set(err, STATUS_NOMEM, "out of memory for an event loop");
	watchdog_add(&l->post, "loop", false);
	return STATUS_OK;
}

/* From now on nothing can reach the loop from outside, and what had reached it is dropped. */
static void
loop_close_mailbox(struct loop *l)
{
	struct letter_queue mail = mailbox_close(l->mailbox);
	struct letter *letter;

	/* Closed before the queues are emptied: nothing can follow into them. */
	while ((letter = letter_queue_pop(&mail)) || (letter = letter_queue_pop(&l->ready)) ||
	       (letter = letter_queue_pop(&l->later)))
		letter->ops->drop(letter);
	loop_set_computing(l, false);
}

void
loop_run(struct loop *l)
{
	mailbox_set_thread(l->mailbox);
	l->ops->run(l);
	loop_close_mailbox(l);
	mailbox_set_thread(NULL);
}

void
loop_stop(struct loop *l)
{
	l->ops->stop(l);
}

void
loop_fini(struct loop *l)
{
	if (!l->ops)
		return;
	assert(l->running == 0);
	watchdog_remove(&l->post); /* before the labels are freed that it may read */
	if (l->mailbox)
		loop_close_mailbox(l);
	if (l->drop_idle_tasks)
		l->drop_idle_tasks(l);
	l->ops->fini(l);
	mailbox_unref(l->mailbox);
	timers_fini(&l->timers);
	*l = (struct loop){ 0 };
}
