/* Turns of the queue for hashing: limits, fairness by address, shared hashes, giving up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "access/hash_queue.h"
#include "base/metric.h"
#include "loop/step.h"

enum {
	MOST = 32,
};

static const struct hash_queue_limits limits = { .threads = 1, .waiting = 6 };

/* A thread that wants something hashed, and writes down when it was its turn. */
struct client {
	pthread_t thread;
	struct hash_turn turn;
	struct event gone;
	enum hash_queue_answer answer;
	int outcome;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char order[MOST + 1]; /* the first byte of the keys, as they had their turns */
static size_t order_len;

static void *
client_run(void *arg)
{
	struct client *c = arg;

	c->answer = hash_queue_enter(&c->turn, &limits, &c->gone);
	if (c->answer == HASH_QUEUE_TURN) {
		pthread_mutex_lock(&lock);
		order[order_len++] = (char)c->turn.key[0];
		pthread_mutex_unlock(&lock);
		hash_queue_leave(&c->turn, &limits, 7);
	}
	c->outcome = c->turn.outcome;
	return NULL;
}

static void
turn_of(struct hash_turn *turn, const char *address, char key)
{
	*turn = (struct hash_turn){ .key = { (uint8_t)key } };
	address_block_of(str_from_cstr(address), &turn->address);
}

static void
client_begin(struct client *c, const char *address, char key)
{
	*c = (struct client){ 0 };
	event_init(&c->gone);
	turn_of(&c->turn, address, key);
	assert_int_equal(pthread_create(&c->thread, NULL, client_run, c), 0);
}

static void
client_end(struct client *c)
{
	assert_int_equal(pthread_join(c->thread, NULL), 0);
}

/* The number of turns that wait, as the metric tells it. */
static int64_t
waiting(void)
{
	for (size_t i = 0; i < metric_count(); i++)
		if (strcmp(metric_at(i)->name, "frond_password_hashes_waiting") == 0)
			return metric_at(i)->read();
	return -1;
}

static void
await_waiting(int64_t n)
{
	while (waiting() != n)
		usleep(100);
}

/* The test itself has the only place, so that the others wait in an order that it knows. */
static void
hold(struct hash_turn *turn)
{
	turn_of(turn, "10.9.9.9:1", '#');
	assert_int_equal(hash_queue_enter(turn, &limits, NULL), HASH_QUEUE_TURN);
	memset(order, 0, sizeof(order));
	order_len = 0;
}

static void
addresses_take_turns(void **state)
{
	static const char *const addresses[] = { "10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3",
						 "10.0.0.2:1", "10.0.0.2:2", "10.0.0.3:1" };
	struct client clients[6];
	struct hash_turn held;

	(void)state;
	hold(&held);
	for (int i = 0; i < 6; i++) {
		client_begin(&clients[i], addresses[i], (char)('a' + i));
		await_waiting(i + 1);
	}
	hash_queue_leave(&held, &limits, 0);
	for (int i = 0; i < 6; i++)
		client_end(&clients[i]);
	assert_string_equal(order, "adfbec");
}

static void
full_queue_refuses_the_address_that_has_most(void **state)
{
	struct client clients[6];
	struct client other;
	struct hash_turn held;
	struct hash_turn more;

	(void)state;
	hold(&held);
	for (int i = 0; i < 6; i++) {
		client_begin(&clients[i], "10.0.0.1:1", (char)('a' + i));
		await_waiting(i + 1);
	}
	turn_of(&more, "10.0.0.1:7", 'x');
	assert_int_equal(hash_queue_enter(&more, &limits, NULL), HASH_QUEUE_FULL);
	/* Another address gets the place of the last one. */
	client_begin(&other, "10.0.0.2:1", 'o');
	client_end(&clients[5]);
	assert_int_equal(clients[5].answer, HASH_QUEUE_FULL);
	await_waiting(6);
	hash_queue_leave(&held, &limits, 0);
	for (int i = 0; i < 5; i++)
		client_end(&clients[i]);
	client_end(&other);
	assert_string_equal(order, "aobcde");
	assert_int_equal(waiting(), 0);
}

static void
equal_keys_share_a_hash(void **state)
{
	struct client clients[20];
	struct hash_turn held;

	(void)state;
	hold(&held);
	client_begin(&clients[0], "10.0.0.1:1", 'a');
	await_waiting(1);
	for (int i = 1; i < 20; i++) /* more than may wait */
		client_begin(&clients[i], "10.0.0.2:1", 'a');
	usleep(20000);
	assert_int_equal(waiting(), 1);
	hash_queue_leave(&held, &limits, 0);
	for (int i = 0; i < 20; i++) {
		client_end(&clients[i]);
		/* One that came late has had a turn of its own. */
		assert_true(clients[i].answer == HASH_QUEUE_TURN ||
			    clients[i].answer == HASH_QUEUE_SHARED);
		assert_int_equal(clients[i].outcome, 7);
	}
}

static void
who_has_gone_leaves_the_queue(void **state)
{
	struct client clients[3];
	struct hash_turn held;

	(void)state;
	hold(&held);
	for (int i = 0; i < 3; i++) {
		client_begin(&clients[i], "10.0.0.1:1", (char)('a' + i));
		await_waiting(i + 1);
	}
	event_set(&clients[1].gone);
	client_end(&clients[1]);
	assert_int_equal(clients[1].answer, HASH_QUEUE_GONE);
	assert_int_equal(clients[1].turn.ended, STATUS_CANCELLED);
	await_waiting(2);
	event_set(&clients[0].gone);
	client_end(&clients[0]);
	hash_queue_leave(&held, &limits, 0);
	client_end(&clients[2]);
	assert_string_equal(order, "c");
}

static enum status
has_ended(void *arg)
{
	return *(const enum status *)arg;
}

static void
whose_work_has_ended_hashes_nothing_more(void **state)
{
	struct hash_turn turn;
	struct step_meter meter;
	enum status ended = STATUS_OK;

	(void)state;
	step_init(&meter);
	step_enter(&meter);
	(void)step_set_owner((struct step_owner){ .ask_waiting = has_ended, .arg = &ended });
	turn_of(&turn, "10.0.0.1:1", 'a');
	assert_int_equal(hash_queue_enter(&turn, &limits, NULL), HASH_QUEUE_TURN);
	hash_queue_leave(&turn, &limits, 7);
	ended = STATUS_TIMEOUT;
	/* Though nobody is in front of it. */
	assert_int_equal(hash_queue_enter(&turn, &limits, NULL), HASH_QUEUE_GONE);
	assert_int_equal(turn.ended, ended);
	step_leave();
	assert_int_equal(waiting(), 0);
}

static void
many_at_once_come_to_their_end(void **state)
{
	enum {
		THREADS = 24
	};
	static const char *const addresses[] = { "10.0.0.1:1", "10.0.0.2:1", "[fe80::1]:1" };
	static struct client clients[THREADS];
	unsigned turns = 0;

	(void)state;
	for (int round = 0; round < 50; round++) {
		order_len = 0;
		for (int i = 0; i < THREADS; i++) {
			client_begin(&clients[i], addresses[i % 3], (char)('a' + i % 11));
			if (i % 7 == 0)
				event_set(&clients[i].gone);
		}
		for (int i = 0; i < THREADS; i++) {
			client_end(&clients[i]);
			turns += clients[i].answer == HASH_QUEUE_TURN;
		}
		assert_int_equal(waiting(), 0);
	}
	assert_true(turns > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_take_turns),
		cmocka_unit_test(full_queue_refuses_the_address_that_has_most),
		cmocka_unit_test(equal_keys_share_a_hash),
		cmocka_unit_test(who_has_gone_leaves_the_queue),
		cmocka_unit_test(whose_work_has_ended_hashes_nothing_more),
		cmocka_unit_test(many_at_once_come_to_their_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
