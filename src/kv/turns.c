#include "kv/turns.h"

#include <assert.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"

struct turns_place {
	_Atomic(struct kv_turn *) holder; /* written with the lock held, read without */
	struct kv_turn *first;            /* who waits, in their order */
	struct kv_turn **last;
};

struct kv_turns {
	_Atomic uint32_t held;
	pthread_mutex_t lock; /* owns the queues and who holds what */
	struct turns_place places[KV_TURN_PLACES];
};

struct kv_turns *
kv_turns_new(void)
{
	struct kv_turns *turns = mem_zalloc(sizeof(*turns));

	if (!turns)
		return NULL;
	pthread_mutex_init(&turns->lock, NULL);
	for (size_t i = 0; i < KV_TURN_PLACES; i++)
		turns->places[i].last = &turns->places[i].first;
	return turns;
}

void
kv_turns_free(struct kv_turns *turns)
{
	if (!turns)
		return;
	assert(atomic_load(&turns->held) == 0);
	pthread_mutex_destroy(&turns->lock);
	mem_free(turns);
}

static uint32_t
place_of(struct str key)
{
	return (uint32_t)((hash_quick(key) >> 32) % KV_TURN_PLACES);
}

bool
kv_turns_is_taken(const struct kv_turns *turns, struct str key)
{
	if (atomic_load_explicit(&turns->held, memory_order_relaxed) == 0)
		return false;
	return atomic_load_explicit(&turns->places[place_of(key)].holder, memory_order_relaxed);
}

static void
turn_enqueue_locked(struct turns_place *place, struct kv_turn *turn)
{
	turn->next = NULL;
	*place->last = turn;
	place->last = &turn->next;
}

static void
turn_dequeue_locked(struct turns_place *place, struct kv_turn *turn)
{
	struct kv_turn **at = &place->first;

	while (*at != turn)
		at = &(*at)->next;
	*at = turn->next;
	if (!turn->next)
		place->last = at;
}

/* Nobody came to it in time. False if it was given in that moment. */
static bool
turn_give_up(struct kv_turns *turns, struct turns_place *place, struct kv_turn *turn)
{
	bool waits;

	/* Who gives a turn sets the event with the lock held, so that is over afterwards. */
	pthread_mutex_lock(&turns->lock);
	waits = atomic_load(&place->holder) != turn;
	if (waits)
		turn_dequeue_locked(place, turn);
	pthread_mutex_unlock(&turns->lock);
	return waits;
}

bool
kv_turn_take(struct kv_turns *turns, struct str key, struct kv_turn *turn)
{
	struct turns_place *place;
	bool waits;

	assert(!turn->held);
	*turn = (struct kv_turn){ .place = place_of(key) };
	event_init(&turn->given);
	place = &turns->places[turn->place];
	pthread_mutex_lock(&turns->lock);
	waits = atomic_load(&place->holder);
	if (waits) {
		turn_enqueue_locked(place, turn);
	} else {
		atomic_store(&place->holder, turn);
		atomic_fetch_add(&turns->held, 1);
	}
	pthread_mutex_unlock(&turns->lock);
	turn->held = !waits || event_wait(&turn->given, clock_after_ms(KV_TURN_WAIT_MS)) ||
		     !turn_give_up(turns, place, turn);
	return turn->held;
}

void
kv_turn_end(struct kv_turns *turns, struct kv_turn *turn)
{
	struct turns_place *place;
	struct kv_turn *next;

	if (!turn->held)
		return;
	turn->held = false;
	place = &turns->places[turn->place];
	pthread_mutex_lock(&turns->lock);
	assert(atomic_load(&place->holder) == turn);
	next = place->first;
	atomic_store(&place->holder, next);
	if (next) {
		turn_dequeue_locked(place, next);
		event_set(&next->given);
	} else {
		atomic_fetch_sub(&turns->held, 1);
	}
	pthread_mutex_unlock(&turns->lock);
}
