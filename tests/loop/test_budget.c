/* What many share: memory that is asked for, waited for, used and given back. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/budget_room.h"
#include "base/buf.h"
#include "base/clock.h"
#include "loop/step.h"
#include "loop/turn.h"

enum {
	MB = 1024 * 1024,
	LIMIT = 8 * MB, /* of which 6 MB can be asked for */
	SOON_MS = 20,
	LATER_MS = 10 * 1000,
	THREADS = 8,
	ROUNDS = 300,
};

static enum status
ask_now(struct budget_part *p, size_t n)
{
	return budget_ask(p, n, clock_mono_ns(), NULL);
}

static enum status
last_now(struct budget_part *p, size_t n)
{
	return budget_ask_to_last(p, n, clock_mono_ns(), NULL);
}

static void
what_is_asked_for_is_given_while_there_is_some(void **state)
{
	struct budget b;
	struct budget_part one;
	struct budget_part two;

	(void)state;
	budget_init(&b, LIMIT);
	budget_part_init(&one, &b);
	budget_part_init(&two, &b);
	assert_int_equal(ask_now(&one, 4 * MB), STATUS_OK);
	assert_int_equal(ask_now(&two, 3 * MB), STATUS_LIMIT);
	assert_true(two.refused);
	assert_int_equal(ask_now(&two, 2 * MB), STATUS_OK);
	assert_int_equal(budget_taken(&b), 6 * MB);
	budget_part_release(&one);
	budget_part_release(&one);
	assert_int_equal(budget_taken(&b), 2 * MB);
	assert_int_equal(budget_take_peak(&b), 6 * MB);
	assert_int_equal(budget_take_peak(&b), 2 * MB);
	assert_int_equal(budget_take_returned(&b), 4 * MB);
	budget_part_release(&two);
	assert_int_equal(budget_take_returned(&b), 2 * MB);
	assert_int_equal(budget_take_returned(&b), 0);
	budget_fini(&b);
}

static void
who_asks_for_more_than_all_gets_it_alone(void **state)
{
	struct budget b;
	struct budget_part one;
	struct budget_part two;

	(void)state;
	budget_init(&b, LIMIT);
	budget_part_init(&one, &b);
	budget_part_init(&two, &b);
	assert_int_equal(ask_now(&one, SIZE_MAX), STATUS_OK);
	assert_int_equal(ask_now(&two, 1), STATUS_LIMIT);
	/* The rest is for those who need a little more, without waiting. */
	assert_true(budget_use(&two, MB));
	assert_false(budget_use(&one, LIMIT));
	assert_true(one.refused);
	one.refused = false;
	assert_false(budget_use(&one, LIMIT + 1));
	assert_false(one.refused);
	assert_true(one.exceeded);
	assert_true(budget_use(&one, 7 * MB));
	assert_int_equal(budget_taken(&b), LIMIT);
	assert_false(budget_use(&two, 1));
	budget_unuse(&one, 2 * MB);
	assert_int_equal(budget_taken(&b), 7 * MB);
	budget_settle(&one);
	assert_int_equal(budget_taken(&b), 6 * MB);
	budget_part_release(&one);
	budget_part_release(&two);
	budget_fini(&b);
}

/* Input that has come, connections that stay: nobody waits for these to go. */
static void
who_has_little_beside_it_is_as_good_as_alone(void **state)
{
	struct budget b;
	struct budget_part one, stays;

	(void)state;
	budget_init(&b, LIMIT);
	budget_part_init(&one, &b);
	budget_part_init(&stays, &b);
	budget_part_last(&stays);
	budget_count(&stays, MB);
	assert_int_equal(ask_now(&one, SIZE_MAX), STATUS_LIMIT);
	budget_unuse(&stays, 1);
	budget_forgive(&one);
	assert_int_equal(ask_now(&one, SIZE_MAX), STATUS_OK);
	assert_int_equal(budget_taken(&b), 7 * MB - 1);
	assert_true(budget_use(&one, 7 * MB));
	assert_false(budget_use(&one, MB));
	assert_true(one.exceeded);
	/* Where others hold more, coming again may help. */
	budget_forgive(&one);
	budget_unuse(&one, MB);
	budget_count(&stays, 1);
	assert_false(budget_use(&one, 2 * MB));
	assert_true(one.refused);
	assert_false(one.exceeded);
	budget_part_release(&one);
	budget_part_release(&stays);
	budget_fini(&b);
}

static void
a_little_is_never_counted(void **state)
{
	struct budget b;
	struct budget_part p;

	(void)state;
	budget_init(&b, LIMIT);
	budget_part_init(&p, &b);
	assert_true(budget_use(&p, BUDGET_FREE_BYTES));
	assert_int_equal(budget_taken(&b), 0);
	assert_true(budget_use(&p, 1));
	assert_int_equal(budget_taken(&b), BUDGET_FREE_BYTES + 1);
	budget_unuse(&p, 1);
	assert_int_equal(budget_taken(&b), 0);
	budget_part_release(&p);
	budget_fini(&b);
}

static void
arenas_and_buffers_count_what_they_take(void **state)
{
	struct budget b;
	struct budget_part p;
	struct arena *a = arena_new(LIMIT * 2);
	struct arena_mark mark;
	struct buf buf;

	(void)state;
	budget_init(&b, LIMIT);
	budget_part_init(&p, &b);
	arena_set_part(a, &p);
	mark = arena_mark(a);
	assert_non_null(arena_alloc(a, 5 * MB));
	assert_true(budget_taken(&b) >= 5 * MB);
	assert_null(arena_alloc(a, 4 * MB));

	buf = BUF_INIT_OF(LIMIT, &p);
	buf_reserve(&buf, 2 * MB);
	assert_int_equal(buf_status(&buf), STATUS_OK);
	buf_reserve(&buf, 4 * MB);
	assert_int_equal(buf_status(&buf), STATUS_LIMIT);
	assert_true(budget_taken(&b) >= 7 * MB);
	buf_release(&buf);
	arena_reset(a, mark);
	assert_int_equal(budget_taken(&b), 0);
	assert_int_equal(p.used_bytes, 0);
	arena_free(a);
	budget_part_release(&p);
	budget_fini(&b);
}

struct asking {
	struct budget_part part;
	size_t bytes;
	size_t holds; /* before it asks */
	uint64_t wait_ms;
	struct event *stop;
	struct event done;
	enum status status;
	pthread_t thread;
};

static void *
ask(void *arg)
{
	struct asking *a = arg;

	a->status = budget_ask(&a->part, a->bytes, clock_after_ms(a->wait_ms), a->stop);
	event_set(&a->done);
	return NULL;
}

static void
start_with(struct asking *a, struct budget *b, void *(*fn)(void *arg))
{
	size_t before;

	event_init(&a->done);
	budget_part_init(&a->part, b);
	if (a->holds)
		assert_true(budget_use(&a->part, a->holds));
	pthread_mutex_lock(&b->lock);
	before = b->waiting;
	pthread_mutex_unlock(&b->lock);
	assert_int_equal(pthread_create(&a->thread, NULL, fn, a), 0);
	for (bool queued = false; !queued && !event_is_set(&a->done);) {
		pthread_mutex_lock(&b->lock);
		queued = b->waiting > before;
		pthread_mutex_unlock(&b->lock);
	}
}

static void
start(struct asking *a, struct budget *b)
{
	start_with(a, b, ask);
}

static void
who_asked_first_is_served_first(void **state)
{
	struct asking large = { .bytes = 5 * MB, .wait_ms = LATER_MS };
	struct asking small = { .bytes = MB, .wait_ms = LATER_MS };
	struct budget_part p;
	struct budget b;

	(void)state;
	budget_init(&b, LIMIT);
	budget_part_init(&p, &b);
	assert_int_equal(ask_now(&p, 4 * MB), STATUS_OK);
	start(&large, &b);
	start(&small,
	      &b); /* it would fit; but then a stream of such could keep the large one out */
	assert_false(event_wait(&small.done, clock_after_ms(SOON_MS)));
	assert_false(event_is_set(&large.done));
	budget_part_release(&p);
	pthread_join(large.thread, NULL);
	pthread_join(small.thread, NULL);
	assert_int_equal(large.status, STATUS_OK);
	assert_int_equal(small.status, STATUS_OK);
	budget_part_release(&large.part);
	budget_part_release(&small.part);
	budget_fini(&b);
}

static void
who_gives_up_lets_the_next_one_in(void **state)
{
	struct asking large = { .bytes = 5 * MB, .wait_ms = 4L * SOON_MS };
	struct asking small = { .bytes = MB, .wait_ms = LATER_MS };
	struct budget_part p;
	struct budget b;

	(void)state;
	budget_init(&b, LIMIT);
	budget_part_init(&p, &b);
	assert_int_equal(ask_now(&p, 4 * MB), STATUS_OK);
	start(&large, &b);
	start(&small, &b);
	pthread_join(large.thread, NULL);
	pthread_join(small.thread, NULL);
	assert_int_equal(large.status, STATUS_LIMIT);
	assert_int_equal(small.status, STATUS_OK);
	budget_part_release(&small.part);
	budget_part_release(&p);
	budget_fini(&b);
}

static void
waiting_can_be_stopped(void **state)
{
	struct event stop;
	struct asking a = { .bytes = 5 * MB, .wait_ms = LATER_MS, .stop = &stop };
	struct budget_part p;
	struct budget b;

	(void)state;
	event_init(&stop);
	budget_init(&b, LIMIT);
	budget_part_init(&p, &b);
	assert_int_equal(ask_now(&p, 4 * MB), STATUS_OK);
	start(&a, &b);
	event_set(&stop);
	pthread_join(a.thread, NULL);
	assert_int_equal(a.status, STATUS_CANCELLED);
	assert_int_equal(b.waiting, 0);
	budget_part_release(&p);
	budget_fini(&b);
}

static enum status
has_ended(void *arg)
{
	return ++*(int *)arg > 1 ? STATUS_UNAUTHORIZED : STATUS_OK;
}

static void
a_wait_ends_when_its_work_does(void **state)
{
	struct budget_part all, p;
	struct step_meter meter;
	struct budget b;
	int asked = 0;

	(void)state;
	budget_init(&b, LIMIT);
	budget_part_init(&all, &b);
	budget_part_init(&p, &b);
	assert_int_equal(ask_now(&all, LIMIT), STATUS_OK);
	step_init(&meter);
	step_enter(&meter);
	(void)step_set_owner((struct step_owner){ .ask_waiting = has_ended, .arg = &asked });
	assert_int_equal(budget_ask(&p, MB, WAIT_FOREVER, NULL), STATUS_UNAUTHORIZED);
	assert_int_equal(asked, 2);
	assert_false(p.refused);
	step_leave();
	budget_part_release(&all);
	assert_int_equal(ask_now(&p, MB), STATUS_OK);
	budget_part_release(&p);
	budget_fini(&b);
}

static void *
ask_and_use(void *arg)
{
	struct budget *b = arg;
	struct budget_part p;

	budget_part_init(&p, b);
	for (size_t i = 0; i < ROUNDS; i++) {
		size_t n = (i * 7919 % 5 + 1) * MB;

		/* Every third hardly waits, so that some give up while they are being served. */
		if (budget_ask(&p, n, clock_after_ms(i % 3 ? LATER_MS : 0), NULL) == STATUS_OK) {
			assert_true(budget_use(&p, n));
			budget_unuse(&p, n);
		}
		budget_part_release(&p);
	}
	return NULL;
}

static void
nothing_is_lost_among_many_threads(void **state)
{
	pthread_t threads[THREADS];
	struct budget b;

	(void)state;
	budget_init(&b, LIMIT);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_and_use, &b), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(budget_taken(&b), 0);
	assert_true(budget_take_peak(&b) <= 6 * MB);
	budget_fini(&b);
}

static void
a_request_at_work_counts_a_flat_amount(void **state)
{
	struct budget b;
	struct budget_part p;

	(void)state;
	budget_init(&b, LIMIT);
	budget_part_init(&p, &b);
	budget_enter(&p);
	budget_enter(&p);
	assert_int_equal(budget_held(&b), BUDGET_PART_BYTES);
	assert_int_equal(budget_taken(&b), 0);
	assert_false(p.refused);
	budget_part_release(&p);
	assert_int_equal(budget_held(&b), 0);
	budget_fini(&b);
}

static void
with_very_many_requests_each_has_enough_for_an_error(void **state)
{
	enum {
		PARTS = 400, /* LIMIT / BUDGET_FREE_SHARE / PARTS is less than that */
		FLOOR = 4 * 1024,
	};
	struct budget b;
	static struct budget_part parts[PARTS];

	(void)state;
	budget_init(&b, LIMIT);
	for (size_t i = 0; i < PARTS; i++) {
		budget_part_init(&parts[i], &b);
		budget_enter(&parts[i]);
	}
	/* All else is taken, and what small requests may exceed it by, too. */
	budget_count(&parts[0], LIMIT + LIMIT / BUDGET_SHORT_SHARE);
	assert_true(budget_use(&parts[1], FLOOR));
	assert_false(budget_use(&parts[1], 1));
	assert_true(parts[1].refused);
	/* A part that lasts has none of it. */
	budget_part_last(&parts[2]);
	assert_false(budget_use(&parts[2], 1));
	for (size_t i = 0; i < PARTS; i++)
		budget_part_release(&parts[i]);
	budget_fini(&b);
}

static void
what_can_be_less_is_less_from_half_of_the_budget_on(void **state)
{
	struct budget_part flat, p;
	struct budget b;

	(void)state;
	assert_false(budget_is_half_held(NULL));
	budget_init(&b, LIMIT);
	budget_part_init(&flat, &b);
	budget_part_init(&p, &b);
	/* The flat amount of a request counts, too. */
	budget_enter(&flat);
	budget_count(&p, LIMIT / 2 - BUDGET_PART_BYTES);
	assert_false(budget_is_half_held(&b));
	budget_count(&p, 1);
	assert_true(budget_is_half_held(&b));
	budget_part_release(&flat);
	assert_false(budget_is_half_held(&b));
	budget_part_release(&p);
	budget_fini(&b);
}

static void
requests_begin_while_half_of_the_share_of_short_ones_is_free(void **state)
{
	const size_t half = LIMIT / BUDGET_SHORT_SHARE / 2;
	struct budget_part lasts, is_short;
	struct budget b;

	(void)state;
	budget_init(&b, LIMIT);
	budget_part_init(&lasts, &b);
	budget_part_init(&is_short, &b);
	/* Short ones alone have all of it. */
	budget_count(&is_short, LIMIT);
	assert_true(budget_has_room(&b));
	budget_count(&is_short, 1);
	assert_false(budget_has_room(&b));
	budget_part_release(&is_short);
	/* However much others have that last, the half is theirs. */
	budget_part_init(&is_short, &b);
	budget_part_last(&lasts);
	budget_count(&lasts, 2 * LIMIT);
	budget_count(&is_short, half);
	assert_true(budget_has_room(&b));
	budget_count(&is_short, 1);
	assert_false(budget_has_room(&b));
	budget_part_release(&is_short);
	budget_part_release(&lasts);
	budget_fini(&b);
}

static void
those_who_begin_late_and_stay_are_as_few_as_that_half_holds(void **state)
{
	enum {
		FEW = LIMIT / BUDGET_SHORT_SHARE / 2 / BUDGET_PART_BYTES,
	};
	struct budget_part lasts, late[2 * FEW + 3];
	struct budget b;
	size_t count = 0;

	(void)state;
	budget_init(&b, LIMIT);
	budget_part_init(&lasts, &b);
	budget_part_last(&lasts);
	/* What begins while nothing is exceeded is not late. */
	budget_count(&lasts, LIMIT - BUDGET_PART_BYTES);
	budget_part_init(&late[count], &b);
	budget_enter(&late[count]);
	budget_part_last(&late[count++]);
	budget_count(&lasts, BUDGET_PART_BYTES);
	for (size_t i = 0; i <= FEW; i++) {
		assert_true(budget_has_room(&b));
		budget_part_init(&late[count], &b);
		budget_enter(&late[count]);
		budget_part_last(&late[count++]);
	}
	assert_false(budget_has_room(&b));
	/* One that ends makes room for another. */
	budget_part_release(&late[--count]);
	assert_true(budget_has_room(&b));
	budget_enter(&late[count]);
	budget_part_last(&late[count++]);
	assert_false(budget_has_room(&b));
	/* After a while as many may begin again, and the end of an older one makes no more room. */
	b.late_ns -= BUDGET_LATE_MS * CLOCK_NS_PER_MS;
	for (size_t i = 0; i <= FEW; i++) {
		assert_true(budget_has_room(&b));
		budget_part_init(&late[count], &b);
		budget_enter(&late[count]);
		budget_part_last(&late[count++]);
	}
	assert_false(budget_has_room(&b));
	budget_part_release(&late[1]);
	assert_false(budget_has_room(&b));
	/* Where nothing is exceeded any more, everybody may begin. */
	budget_part_release(&lasts);
	assert_true(budget_has_room(&b));
	for (size_t i = 0; i < count; i++)
		budget_part_release(&late[i]);
	budget_fini(&b);
}

static void
with_many_requests_little_is_free(void **state)
{
	enum {
		PARTS = 200,
	};
	struct budget b;
	static struct budget_part parts[PARTS];

	(void)state;
	budget_init(&b, LIMIT);
	for (size_t i = 0; i < PARTS; i++) {
		budget_part_init(&parts[i], &b);
		budget_enter(&parts[i]);
	}
	assert_true(budget_use(&parts[0], LIMIT / BUDGET_FREE_SHARE / PARTS));
	assert_int_equal(budget_taken(&b), 0);
	assert_true(budget_use(&parts[0], 1));
	assert_int_equal(budget_taken(&b), LIMIT / BUDGET_FREE_SHARE / PARTS + 1);
	/* Before it waits for its client, a request counts all that it uses. */
	assert_true(budget_use(&parts[1], 1));
	budget_part_last(&parts[1]);
	assert_int_equal(parts[1].taken_bytes, 1);
	for (size_t i = 0; i < PARTS; i++)
		budget_part_release(&parts[i]);
	budget_fini(&b);
}

static void
those_who_stay_leave_room_for_short_requests(void **state)
{
	struct budget b;
	struct budget_part stays[3], comes, little, larger;
	bool full = true;

	(void)state;
	budget_init(&b, LIMIT);
	for (size_t i = 0; i < 3; i++)
		budget_part_init(&stays[i], &b);
	budget_part_init(&comes, &b);
	budget_part_init(&little, &b);
	budget_part_init(&larger, &b);
	/* Beyond their five eighths no more are let in. */
	assert_int_equal(last_now(&stays[0], 0), STATUS_OK);
	assert_true(budget_use(&stays[0], 5 * MB));
	assert_int_equal(b.lasting_bytes, 5 * MB);
	assert_int_equal(last_now(&stays[1], 0), STATUS_OK);
	assert_true(budget_use(&stays[1], 1));
	assert_int_equal(last_now(&stays[2], 0), STATUS_LIMIT);
	assert_true(stays[2].refused);
	/* One that turns out to stay is unwelcome; those that were let in are not. */
	budget_enter(&comes);
	assert_false(budget_is_unwelcome(&comes, &full));
	budget_part_last(&comes);
	assert_true(budget_is_unwelcome(&comes, &full));
	assert_false(full);
	assert_false(budget_is_unwelcome(&stays[0], &full));
	/* A turn to begin finds room, too. */
	assert_int_equal(ask_now(&larger, MB / 2), STATUS_OK);
	/* Those who stay fill the budget, and short requests still get their share. */
	budget_count(&comes, 3 * MB);
	assert_true(budget_is_unwelcome(&comes, &full));
	assert_true(full);
	budget_enter(&little);
	assert_false(little.refused);
	assert_true(budget_use(&little, MB / 4));
	assert_false(budget_use(&little, MB / 4));
	budget_part_release(&comes);
	budget_part_release(&little);
	budget_part_release(&larger);
	for (size_t i = 0; i < 3; i++)
		budget_part_release(&stays[i]);
	assert_int_equal(b.lasting_bytes, 0);
	budget_fini(&b);
}

static void *
ask_to_last(void *arg)
{
	struct asking *a = arg;

	a->status = budget_ask_to_last(&a->part, a->bytes, clock_after_ms(a->wait_ms), a->stop);
	event_set(&a->done);
	return NULL;
}

static void
who_waits_to_last_is_let_in_when_one_that_lasts_has_ended(void **state)
{
	struct asking first = { .bytes = MB, .wait_ms = LATER_MS };
	struct asking second = { .bytes = MB, .wait_ms = LATER_MS };
	struct budget_part stays[2];
	struct budget b;

	(void)state;
	budget_init(&b, LIMIT);
	for (size_t i = 0; i < 2; i++) {
		budget_part_init(&stays[i], &b);
		budget_enter(&stays[i]);
		assert_int_equal(last_now(&stays[i], 3 * MB), STATUS_OK);
	}
	assert_int_equal(b.lasting_bytes, 6 * MB + 2 * BUDGET_PART_BYTES);
	/* Given back, but for the flat amounts: then it is counted again. */
	budget_unuse(&stays[1], 3 * MB);
	assert_int_equal(b.lasting_bytes, 3 * MB + 2 * BUDGET_PART_BYTES);
	assert_true(budget_use(&stays[1], 3 * MB));
	start_with(&first, &b, ask_to_last);
	start_with(&second, &b, ask_to_last);
	assert_int_equal(b.hopeful_bytes, 0); /* what was not entered holds nothing */
	assert_false(event_wait(&first.done, clock_after_ms(SOON_MS)));
	budget_part_release(&stays[0]);
	pthread_join(first.thread, NULL);
	pthread_join(second.thread, NULL);
	assert_int_equal(first.status, STATUS_OK);
	assert_int_equal(second.status, STATUS_OK);
	assert_true(first.part.admitted);
	assert_int_equal(b.lasting_bytes, 5 * MB + BUDGET_PART_BYTES);
	budget_part_release(&first.part);
	budget_part_release(&second.part);
	budget_part_release(&stays[1]);
	assert_int_equal(b.lasting_bytes, 0);
	budget_fini(&b);
}

static void
those_who_wait_to_last_hold_no_more_than_their_share(void **state)
{
	struct asking holder = { .bytes = 0, .wait_ms = LATER_MS };
	struct budget_part stays, comes;
	struct budget b;

	(void)state;
	budget_init(&b, LIMIT);
	budget_part_init(&stays, &b);
	assert_int_equal(last_now(&stays, 5 * MB + 1), STATUS_OK);
	holder.holds = MB - BUDGET_PART_BYTES;
	start_with(&holder, &b, ask_to_last);
	assert_int_equal(b.hopeful_bytes, MB - BUDGET_PART_BYTES);
	budget_part_init(&comes, &b);
	budget_enter(&comes);
	assert_true(budget_use(&comes, BUDGET_FREE_BYTES + 1));
	/* It does not wait, whatever its deadline is. */
	assert_int_equal(budget_ask_to_last(&comes, 0, WAIT_FOREVER, NULL), STATUS_LIMIT);
	assert_true(comes.refused);
	budget_part_release(&comes);
	budget_part_release(&stays);
	pthread_join(holder.thread, NULL);
	assert_int_equal(holder.status, STATUS_OK);
	assert_int_equal(b.hopeful_bytes, 0);
	budget_part_release(&holder.part);
	budget_fini(&b);
}

static void
short_requests_have_no_more_than_their_share(void **state)
{
	enum {
		PARTS = 8 * MB / BUDGET_PART_BYTES + 1,
	};
	static struct budget_part parts[PARTS];
	struct budget_part stays;
	struct budget b;
	size_t let_in = 0;

	(void)state;
	budget_init(&b, LIMIT);
	budget_part_init(&stays, &b);
	budget_part_last(&stays);
	budget_count(&stays, LIMIT);
	for (size_t i = 0; i < PARTS; i++) {
		budget_part_init(&parts[i], &b);
		budget_enter(&parts[i]);
		let_in += !parts[i].refused;
	}
	assert_int_equal(let_in, MB / BUDGET_PART_BYTES);
	for (size_t i = 0; i < PARTS; i++)
		budget_part_release(&parts[i]);
	budget_part_release(&stays);
	budget_fini(&b);
}

static void
turns_to_read_come_although_all_is_taken(void **state)
{
	struct budget b;
	struct budget_part holder, reader, second;

	(void)state;
	budget_init(&b, LIMIT);
	budget_part_init(&holder, &b);
	budget_part_init(&reader, &b);
	budget_part_init(&second, &b);
	assert_true(budget_use(&holder, LIMIT));
	assert_int_equal(ask_now(&second, 1), STATUS_LIMIT);
	assert_int_equal(budget_ask_to_read(&reader, 128 * 1024, clock_mono_ns(), NULL), STATUS_OK);
	assert_int_equal(b.read_bytes, 128 * 1024);
	/* It has its memory now, and asks for nothing more to use that. */
	assert_true(budget_use(&reader, 128 * 1024));
	assert_int_equal(budget_taken(&b), LIMIT + 128 * 1024);
	assert_int_equal(budget_ask_to_read(&second, LIMIT, clock_mono_ns(), NULL), STATUS_LIMIT);
	assert_true(second.refused);
	budget_unuse(&reader, 128 * 1024);
	budget_settle(&reader);
	assert_int_equal(b.read_bytes, 0);
	assert_int_equal(budget_taken(&b), LIMIT);
	/* A turn that is alone comes in any case, so that no request waits for ever. */
	assert_int_equal(budget_ask_to_read(&second, LIMIT, clock_mono_ns(), NULL), STATUS_OK);
	budget_part_release(&holder);
	budget_part_release(&reader);
	budget_part_release(&second);
	budget_fini(&b);
}

static void
pages_and_output_shrink_when_there_are_many(void **state)
{
	struct budget b;
	struct budget_part p;

	(void)state;
	budget_init(&b, LIMIT);
	budget_part_init(&p, &b);
	assert_int_equal(budget_output_portion(&b, 256 * 1024, 4096), 256 * 1024);
	assert_int_equal(budget_read_portion(&b, MB, 4096), MB);
	budget_count_output(&p, LIMIT / BUDGET_OUTPUT_SHARE / 2);
	assert_int_equal(budget_output_portion(&b, 256 * 1024, 4096), 128 * 1024);
	budget_count_output(&p, LIMIT);
	assert_int_equal(budget_output_portion(&b, 256 * 1024, 4096), 4096);
	assert_int_equal(budget_portion(&b, MB, 4096), 4096);
	assert_int_equal(budget_read_portion(&b, MB, 4096), MB);
	budget_count_output(&p, 0);
	assert_int_equal(
		budget_ask_to_read(&p, LIMIT / BUDGET_READ_SHARE / 2, clock_mono_ns(), NULL),
		STATUS_OK);
	assert_int_equal(budget_read_portion(&b, MB, 4096), MB / 2);
	budget_part_release(&p);
	assert_int_equal(budget_read_portion(&b, MB, 4096), MB);
	budget_fini(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked_for_is_given_while_there_is_some),
		cmocka_unit_test(who_asks_for_more_than_all_gets_it_alone),
		cmocka_unit_test(who_has_little_beside_it_is_as_good_as_alone),
		cmocka_unit_test(a_little_is_never_counted),
		cmocka_unit_test(a_request_at_work_counts_a_flat_amount),
		cmocka_unit_test(with_very_many_requests_each_has_enough_for_an_error),
		cmocka_unit_test(what_can_be_less_is_less_from_half_of_the_budget_on),
		cmocka_unit_test(requests_begin_while_half_of_the_share_of_short_ones_is_free),
		cmocka_unit_test(those_who_begin_late_and_stay_are_as_few_as_that_half_holds),
		cmocka_unit_test(with_many_requests_little_is_free),
		cmocka_unit_test(those_who_stay_leave_room_for_short_requests),
		cmocka_unit_test(who_waits_to_last_is_let_in_when_one_that_lasts_has_ended),
		cmocka_unit_test(those_who_wait_to_last_hold_no_more_than_their_share),
		cmocka_unit_test(short_requests_have_no_more_than_their_share),
		cmocka_unit_test(turns_to_read_come_although_all_is_taken),
		cmocka_unit_test(pages_and_output_shrink_when_there_are_many),
		cmocka_unit_test(arenas_and_buffers_count_what_they_take),
		cmocka_unit_test(who_asked_first_is_served_first),
		cmocka_unit_test(who_gives_up_lets_the_next_one_in),
		cmocka_unit_test(waiting_can_be_stopped),
		cmocka_unit_test(a_wait_ends_when_its_work_does),
		cmocka_unit_test(nothing_is_lost_among_many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
