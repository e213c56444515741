#include "access/hash_queue.h"

#include <assert.h>
#include <pthread.h>

#include "base/metric.h"
#include "loop/asking.h"
#include "loop/step.h"

static int64_t hash_queue_length(void);

METRIC_READ(waiting_gauge, METRIC_KIND_GAUGE, "frond_password_hashes_waiting", METRIC_NUMBER,
	    "Logins that wait for their turn to hash a password.", hash_queue_length);
METRIC_COUNTER(hashes, "frond_password_hashes_total", METRIC_NUMBER,
	       "Passwords that were hashed because they were not known yet.");

/* The one queue of the process. */
static struct {
	pthread_mutex_t lock;
	struct hash_turn *first; /* the first turns of the addresses, in the order of their turns */
	struct hash_turn *active; /* those that wait or hash, but for followers */
	size_t waiting;
	size_t running;
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int64_t
hash_queue_length(void)
{
	int64_t n;

	pthread_mutex_lock(&queue.lock);
	n = (int64_t)queue.waiting;
	pthread_mutex_unlock(&queue.lock);
	return n;
}

/* ---- All of these with the lock held ---- */

static void
queue_activate(struct hash_turn *turn)
{
	turn->next_active = queue.active;
	queue.active = turn;
}

static void
queue_deactivate(struct hash_turn *turn)
{
	struct hash_turn **at = &queue.active;

	while (*at != turn) {
		assert(*at);
		at = &(*at)->next_active;
	}
	*at = turn->next_active;
}

static void
queue_answer(struct hash_turn *turn, enum hash_queue_answer answer)
{
	turn->answer = answer;
	event_set(&turn->come);
}

static void
queue_answer_followers(struct hash_turn *turn, enum hash_queue_answer answer)
{
	while (turn->followers) {
		struct hash_turn *follower = turn->followers;

		turn->followers = follower->next_follower;
		follower->outcome = turn->outcome;
		queue_answer(follower, answer);
	}
}

static void
queue_append_address(struct hash_turn *first)
{
	struct hash_turn **at = &queue.first;

	for (; *at; at = &(*at)->next_address)
		/* All turns of an address hang on one: it has one turn in a round. */
		assert(!address_block_eq(&(*at)->address, &first->address));
	first->next_address = NULL;
	*at = first;
}

static struct hash_turn **
queue_find_address(const struct address_block *address)
{
	struct hash_turn **at = &queue.first;

	while (*at && !address_block_eq(&(*at)->address, address))
		at = &(*at)->next_address;
	return at;
}

static void
queue_append(struct hash_turn *turn)
{
	struct hash_turn *first = *queue_find_address(&turn->address);

	turn->next = NULL;
	if (first) {
		struct hash_turn *last = first;

		while (last->next)
			last = last->next;
		last->next = turn;
		first->count++;
	} else {
		turn->count = 1;
		queue_append_address(turn);
	}
	queue.waiting++;
	queue_activate(turn);
}

static void
queue_remove(struct hash_turn *turn)
{
	struct hash_turn **address = queue_find_address(&turn->address);
	struct hash_turn *first = *address;

	assert(first && first->count > 0 && queue.waiting);
	if (first == turn && turn->next) {
		turn->next->count = turn->count - 1;
		turn->next->next_address = turn->next_address;
		*address = turn->next;
	} else if (first == turn) {
		*address = turn->next_address;
	} else {
		struct hash_turn **at = &first->next;

		while (*at != turn) {
			assert(*at);
			at = &(*at)->next;
		}
		*at = turn->next;
		first->count--;
	}
	queue.waiting--;
	queue_deactivate(turn);
}

/* Lets those whose turn it is begin. Each address then goes behind the others. */
static void
queue_grant(const struct hash_queue_limits *limits)
{
	while (queue.first && queue.running < limits->threads) {
		struct hash_turn *turn = queue.first;
		struct hash_turn *rest = turn->next;

		queue_remove(turn);
		if (rest) {
			assert(*queue_find_address(&rest->address) == rest);
			*queue_find_address(&rest->address) = rest->next_address;
			queue_append_address(rest);
		}
		queue.running++;
		queue_activate(turn);
		queue_answer(turn, HASH_QUEUE_TURN);
	}
}

/*
 * Makes a place in a full queue: the address with the most waiting turns gives up its last one, if
 * it has at least two more than the address of the new turn.
 */
static bool
queue_make_room(const struct hash_turn *turn)
{
	const struct hash_turn *own = *queue_find_address(&turn->address);
	struct hash_turn *most = queue.first;
	struct hash_turn *last;

	for (struct hash_turn *t = queue.first; t; t = t->next_address)
		if (t->count > most->count)
			most = t;
	if (!most || most->count < (own ? own->count : 0) + 2)
		return false;
	last = most;
	while (last->next)
		last = last->next;
	/* Who has an answer already is not in the queue. */
	assert(!event_is_set(&last->come));
	queue_remove(last);
	last->outcome = 0;
	queue_answer_followers(last, HASH_QUEUE_FULL);
	queue_answer(last, HASH_QUEUE_FULL);
	return true;
}

static struct hash_turn *
queue_find_same(const struct hash_turn *turn)
{
	struct hash_turn *t = queue.active;

	while (t && memcmp(t->key, turn->key, sizeof(t->key)) != 0)
		t = t->next_active;
	return t;
}

/* Takes a fiber that gives up out of the queue; false if it has its answer already. */
static bool
queue_give_up(struct hash_turn *turn, struct hash_turn *leader)
{
	struct hash_turn **at;

	if (event_is_set(&turn->come))
		return false;
	if (!leader) {
		queue_remove(turn);
		return true;
	}
	at = &leader->followers;
	while (*at != turn) {
		assert(*at);
		at = &(*at)->next_follower;
	}
	*at = turn->next_follower;
	return true;
}

/* ---- ---- */

static enum hash_queue_answer
hash_queue_wait(struct hash_turn *turn, struct hash_turn *leader, struct event *gone)
{
	struct event *events[] = { &turn->come, gone };
	bool gave_up = false;
	size_t which;
	enum status status = wait_asking(events, gone ? 2 : 1, WAIT_FOREVER, &which);

	if (status != STATUS_OK || which != 0) {
		turn->ended = status != STATUS_OK ? status : STATUS_CANCELLED;
		pthread_mutex_lock(&queue.lock);
		/* Others may want what this fiber was to hash: then it goes on, for them. */
		if (!turn->followers)
			gave_up = queue_give_up(turn, leader);
		pthread_mutex_unlock(&queue.lock);
		if (gave_up)
			return HASH_QUEUE_GONE;
		(void)event_wait(&turn->come, WAIT_FOREVER);
	}
	/*
	 * Whoever set the event did so with the lock held, and may not have come to its end. The
	 * turn, which is on this fiber's stack, must stay until then.
	 */
	pthread_mutex_lock(&queue.lock);
	pthread_mutex_unlock(&queue.lock);
	assert(event_is_set(&turn->come));
	return turn->answer;
}

enum hash_queue_answer
hash_queue_enter(struct hash_turn *turn, const struct hash_queue_limits *limits, struct event *gone)
{
	struct hash_turn *leader;

	/* Also where there is nothing to wait for: a command may want one hash after another. */
	turn->ended = step_ask_waiting();
	if (turn->ended != STATUS_OK)
		return HASH_QUEUE_GONE;
	event_init(&turn->come);
	turn->followers = NULL;
	pthread_mutex_lock(&queue.lock);
	leader = queue_find_same(turn);
	if (leader) {
		turn->next_follower = leader->followers;
		leader->followers = turn;
	} else {
		if (queue.running >= limits->threads && queue.waiting >= limits->waiting &&
		    !queue_make_room(turn)) {
			pthread_mutex_unlock(&queue.lock);
			return HASH_QUEUE_FULL;
		}
		queue_append(turn);
		queue_grant(limits);
	}
	pthread_mutex_unlock(&queue.lock);
	return hash_queue_wait(turn, leader, gone);
}

void
hash_queue_leave(struct hash_turn *turn, const struct hash_queue_limits *limits, int outcome)
{
	metric_add(&hashes, 1);
	pthread_mutex_lock(&queue.lock);
	assert(queue.running > 0);
	queue.running--;
	queue_deactivate(turn);
	turn->outcome = outcome;
	queue_answer_followers(turn, HASH_QUEUE_SHARED);
	queue_grant(limits);
	pthread_mutex_unlock(&queue.lock);
}
