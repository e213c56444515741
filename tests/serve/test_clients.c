/* Connections of a door: what others see of them, and that no signal is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/clock.h"
#include "net/session.h"
#include "serve/beside.h"
#include "serve/clients.h"
#include "serve/settle.h"
#include "serve/wanted.h"

enum {
	ENDS = 1 << 0,
	PASSES = 1 << 1,
	COUNT = 5,
	THREADS = 4,
	ROUNDS = 300,
	NEVER_MS = 60 * 1000, /* a signal that was lost makes the test fail, and not hang */
};

static const struct visit_command anybody = { .is_open = true };

static struct clients all;

/* A door's struct for a connection. */
struct client {
	struct clients_entry entry; /* first */
	int blocked;                /* the entry's lock */
};

static struct client clients[COUNT];

static void
client_begin(struct client *c, const char *peer)
{
	clients_entry_init(&c->entry, &all, NULL);
	(void)snprintf(c->entry.peer, sizeof(c->entry.peer), "%s", peer);
	c->blocked = 0;
	clients_add(&c->entry);
}

static void
client_end(struct client *c)
{
	clients_remove(&c->entry);
	clients_entry_fini(&c->entry);
}

static int
setup(void **state)
{
	(void)state;
	clients_init(&all, ENDS, NULL);
	for (size_t i = 0; i < COUNT; i++)
		client_begin(&clients[i], "127.0.0.1:40312");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		client_end(&clients[i]);
	clients_fini(&all);
	return 0;
}

/* The numbers of those that are seen, the newest first. */
struct seen {
	uint64_t ids[COUNT];
	size_t count;
};

/* Both locks are held: another thread could take neither. */
static void
see(void *arg, struct clients_entry *e)
{
	struct seen *seen = arg;

	assert_int_not_equal(pthread_mutex_trylock(&all.lock), 0);
	assert_int_not_equal(pthread_mutex_trylock(&e->lock), 0);
	assert_true(seen->count < COUNT);
	seen->ids[seen->count++] = e->id;
}

static bool
has_even_id(void *arg, struct clients_entry *e)
{
	see(arg, e);
	return e->id % 2 == 0;
}

/* ---- Lists ---- */

static void
connections_are_seen_while_they_last(void **state)
{
	struct seen seen = { .count = 0 };

	(void)state;
	assert_int_equal(clients_count(&all), COUNT);
	client_end(&clients[1]);
	assert_int_equal(clients_count(&all), COUNT - 1);
	clients_each(&all, see, &seen);
	assert_int_equal(seen.count, COUNT - 1);
	assert_int_equal(seen.ids[0], 5);
	assert_int_equal(seen.ids[3], 1);
	client_begin(&clients[1], "another");
	assert_int_equal(clients[1].entry.id, COUNT + 1); /* numbers are never used again */
	assert_string_equal(clients[1].entry.peer, "another");
	seen.count = 0;
	clients_see(&clients[1].entry, see, &seen);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.ids[0], COUNT + 1);
}

static void
texts_are_what_was_set_last(void **state)
{
	struct clients_entry *e = &clients[0].entry;
	char longer[2 * CLIENTS_USER_BYTES];

	(void)state;
	assert_string_equal(e->user, "");
	clients_set_user(e, STR("anna"), true);
	clients_set_text(e, &e->name, STR("worker"));
	assert_string_equal(e->user, "anna");
	assert_true(str_eq(buf_str(&e->name), STR("worker")));
	clients_set_text(e, &e->name, STR(""));
	assert_int_equal(e->name.len, 0);
	memset(longer, 'x', sizeof(longer));
	clients_set_user(e, str_of(longer, sizeof(longer)), true);
	assert_int_equal(strlen(e->user), CLIENTS_USER_BYTES - 1);
}

/* ---- Signals ---- */

static const char *const classes[] = { "any" };

OPS_DOOR(door, "clients", classes, LOG_LEVEL_INFO, clients_end_op_of);

static void
do_nothing(struct clients_entry *e)
{
	assert_int_equal(visit_admit(e, &anybody, NULL), STATUS_OK);
	clients_op_begin(e, &door, "ping", STR(""), 0, STR(""), STR(""));
	visit_op_end(e, &e->op, NULL);
}

static void
no_command_begins_once_the_process_stops(void **state)
{
	struct clients_entry *e = &clients[0].entry;
	struct net_session session = { 0 };
	struct ops_op beside = { 0 };
	struct err err = { 0 };

	(void)state;
	event_init(&session.stopping);
	e->op.session = &session;
	assert_int_equal(visit_admit(e, &anybody, &err), STATUS_OK);
	clients_leave(e);
	/* What was begun before goes on, once for each beginning. */
	net_session_begin_request(&session);
	net_session_begin_request(&session);
	event_set(&session.stopping);
	assert_int_equal(visit_admit(e, &anybody, &err), STATUS_OK);
	assert_true(beside_enter(e, 1));
	assert_int_equal(beside_admit(e, &beside, &anybody, &err), STATUS_OK);
	assert_int_equal(visit_admit(e, &anybody, &err), STATUS_CANCELLED);
	assert_int_equal(beside_admit(e, &beside, &anybody, &err), STATUS_CANCELLED);
	assert_string_equal(err.text, "the server stops");
	/* A beginning that became no request is none of the next one's. */
	net_session_begin_request(&session);
	clients_leave(e);
	assert_int_equal(visit_admit(e, &anybody, &err), STATUS_CANCELLED);
	ops_leave(&beside);
	beside_leave(e);
	clients_leave(e);
	e->op.session = NULL;
}

static void
only_those_that_are_wanted_are_signalled(void **state)
{
	struct seen seen = { .count = 0 };

	(void)state;
	assert_int_equal(clients_signal_each(&all, PASSES, has_even_id, &seen), 2);
	assert_int_equal(seen.count, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(clients_signals(&clients[i].entry),
				 clients[i].entry.id % 2 == 0 ? PASSES : 0);
	assert_int_equal(clients_signal_each(&all, ENDS, NULL, NULL), COUNT);
	assert_int_equal(clients_signals(&clients[1].entry), ENDS | PASSES);
}

static void
a_signal_before_a_wait_makes_it_needless(void **state)
{
	struct clients_entry *e = &clients[0].entry;
	struct event *wake;

	(void)state;
	clients_signal(e, PASSES);
	assert_null(clients_wait_begin(e));
	assert_int_equal(clients_wait_end(e), PASSES);
	wake = clients_wait_begin(e);
	assert_non_null(wake);
	assert_false(event_is_set(wake));
	clients_signal(e, PASSES);
	assert_true(event_is_set(wake));
	assert_int_equal(clients_wait_end(e), PASSES);
	assert_int_equal(clients_signals(e), 0);
}

static void
what_is_pending_makes_a_wait_needless_and_wakes(void **state)
{
	struct clients_entry *e = &clients[0].entry;
	struct event *wake = clients_wait_begin(e);

	(void)state;
	assert_non_null(wake);
	pthread_mutex_lock(&e->lock);
	e->pending = true;
	clients_tell(e, 0);
	pthread_mutex_unlock(&e->lock);
	assert_true(event_is_set(wake));
	assert_int_equal(clients_wait_end(e), 0);
	assert_null(clients_wait_begin(e));
	assert_int_equal(clients_wait_end(e), 0);
}

static void
signals_last_as_long_as_what_they_end(void **state)
{
	struct clients_entry *e = &clients[0].entry;

	(void)state;
	clients_signal(e, PASSES);
	assert_false(event_is_set(&e->ended));
	assert_int_equal(clients_wait_end(e), PASSES);
	assert_int_equal(clients_wait_end(e), 0);
	clients_signal(e, ENDS | PASSES);
	assert_true(event_is_set(&e->ended));
	assert_int_equal(clients_wait_end(e), ENDS | PASSES);
	do_nothing(e);
	assert_int_equal(clients_wait_end(e), ENDS);
	assert_int_equal(clients_wait_end(e), ENDS);
}

/* ---- Operations ---- */

/* What was seen of operations and connections. */
struct viewed {
	size_t ops;
	size_t idle;
	uint64_t entry; /* whose operation was seen */
};

static void
view(void *arg, const struct clients_view *v)
{
	struct viewed *seen = arg;

	assert_ptr_equal(v->of, &all);
	assert_true(str_eq(v->user, str_from_cstr(v->entry->user)));
	assert_int_not_equal(pthread_mutex_trylock(&all.lock), 0);
	seen->ops += v->op != NULL;
	seen->idle += v->op == NULL;
	if (v->op)
		seen->entry = v->entry->id;
}

static bool
is_named_anna(void *arg, const struct clients_view *v)
{
	*(bool *)arg = true;
	return v->of == &all && str_eq(v->user, STR("anna"));
}

static void
operations_and_idle_connections_are_seen(void **state)
{
	struct clients_entry *e = &clients[2].entry;
	struct viewed seen = { .ops = 0 };

	(void)state;
	assert_int_equal(visit_admit(e, &anybody, NULL), STATUS_OK);
	clients_op_begin(e, &door, "find", STR("{find: 1}"), 7, STR("db"), STR("c"));
	clients_each_op(NULL, view, &seen);
	assert_int_equal(seen.ops, 1);
	assert_int_equal(seen.idle, 0);
	assert_int_equal(seen.entry, e->id);
	clients_each_op(&all, view, &seen);
	assert_int_equal(seen.ops, 2);
	assert_int_equal(seen.idle, COUNT - 1);
	visit_op_end(e, &e->op, NULL);
	seen = (struct viewed){ .ops = 0 };
	clients_each_op(&all, view, &seen);
	assert_int_equal(seen.ops, 0);
	assert_int_equal(seen.idle, COUNT);
}

static void
an_operation_is_ended_by_its_number(void **state)
{
	struct clients_entry *e = &clients[2].entry;
	bool asked = false;
	struct event *wake;
	uint64_t op;

	(void)state;
	clients_set_user(e, STR("bob"), true);
	assert_int_equal(visit_admit(e, &anybody, NULL), STATUS_OK);
	clients_op_begin(e, &door, "find", STR("{find: 1}"), 7, STR("db"), STR("c"));
	op = e->op.id;
	assert_ptr_equal(e->op.peer, e->peer);
	wake = clients_wait_begin(e);
	assert_non_null(wake);
	clients_end_op(op, is_named_anna, &asked);
	assert_true(asked);
	assert_false(wanted_is_ended(&e->op) || event_is_set(wake));
	clients_set_user(e, STR("anna"), true);
	clients_end_op(op, is_named_anna, &asked);
	assert_true(wanted_is_ended(&e->op) && event_is_set(wake));
	assert_int_equal(clients_wait_end(e), 0);
	assert_null(clients_wait_begin(e)); /* what has ended waits for nothing more */
	visit_op_end(e, &e->op, NULL);
	/* The next one has another number, and nobody has ended it. */
	assert_int_equal(visit_admit(e, &anybody, NULL), STATUS_OK);
	clients_op_begin(e, &door, "hello", STR(""), 8, STR("admin"), STR(""));
	assert_int_not_equal(e->op.id, op);
	asked = false;
	clients_end_op(op, is_named_anna, &asked);
	assert_false(asked);
	assert_false(wanted_is_ended(&e->op));
	visit_op_end(e, &e->op, NULL);
}

/* ---- Threads ---- */

/* Comes, waits for a signal, and goes, as often as it likes. */
static void *
come_and_go(void *arg)
{
	for (size_t i = 0; i < ROUNDS; i++) {
		struct client c;
		struct event *wake;

		client_begin(&c, "thread");
		clients_set_user(&c.entry, STR("somebody"), true);
		assert_int_equal(visit_admit(&c.entry, &anybody, NULL), STATUS_OK);
		clients_op_begin(&c.entry, &door, "wait", STR(""), i, STR("db"), STR("c"));
		wake = clients_wait_begin(&c.entry);
		if (wake && !event_wait(wake, clock_after_ms(NEVER_MS)))
			*(bool *)arg = true;
		(void)clients_wait_end(&c.entry);
		visit_op_end(&c.entry, &c.entry.op, NULL);
		client_end(&c);
	}
	return NULL;
}

static void
look(void *arg, struct clients_entry *e)
{
	*(size_t *)arg += strlen(e->user) + (e->op.id != 0) + e->waiting;
}

static bool
is_thread(void *arg, struct clients_entry *e)
{
	(void)arg;
	return strcmp(e->peer, "thread") == 0 && e->waiting;
}

static void
no_signal_is_lost_between_a_look_and_a_wait(void **state)
{
	pthread_t threads[THREADS];
	bool lost[THREADS] = { false };
	size_t seen = 0, told = 0;

	(void)state;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &lost[i]), 0);
	/* Each wait of theirs ends by one of these, and by nothing else. */
	while (told < THREADS * ROUNDS) {
		told += clients_signal_each(&all, PASSES, is_thread, NULL);
		clients_each(&all, look, &seen);
	}
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_false(lost[i]);
	}
	assert_int_equal(told, THREADS * ROUNDS);
	assert_int_equal(clients_count(&all), COUNT);
}

static void
a_buffer_is_kept_up_to_a_size(void **state)
{
	char bytes[SETTLE_KEPT_BYTES] = { 0 };

	(void)state;
	for (size_t n = SETTLE_KEPT_BYTES; n <= SETTLE_KEPT_BYTES + 1; n++) {
		struct buf b = BUF_INIT(n);

		buf_append(&b, bytes, SETTLE_KEPT_BYTES);
		if (n > SETTLE_KEPT_BYTES)
			buf_append_byte(&b, 0);
		assert_int_equal(buf_status(&b), STATUS_OK);
		assert_int_equal(b.cap, n);
		settle_buffer(&b);
		assert_int_equal(b.len, 0);
		assert_int_equal(b.cap, n > SETTLE_KEPT_BYTES ? 0 : n);
		buf_release(&b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_is_kept_up_to_a_size),
		cmocka_unit_test_setup_teardown(connections_are_seen_while_they_last, setup,
						teardown),
		cmocka_unit_test_setup_teardown(texts_are_what_was_set_last, setup, teardown),
		cmocka_unit_test_setup_teardown(no_command_begins_once_the_process_stops, setup,
						teardown),
		cmocka_unit_test_setup_teardown(only_those_that_are_wanted_are_signalled, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_signal_before_a_wait_makes_it_needless, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_pending_makes_a_wait_needless_and_wakes,
						setup, teardown),
		cmocka_unit_test_setup_teardown(signals_last_as_long_as_what_they_end, setup,
						teardown),
		cmocka_unit_test_setup_teardown(operations_and_idle_connections_are_seen, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_operation_is_ended_by_its_number, setup,
						teardown),
		cmocka_unit_test_setup_teardown(no_signal_is_lost_between_a_look_and_a_wait, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
