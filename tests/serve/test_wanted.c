/* When the work of an operation ends: by its client, by others, by its time, in a group. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "loop/task.h"
#include "net/session.h"
#include "serve/clients.h"
#include "serve/wanted.h"

enum {
	ENDS = 1 << 0,
	SLICES = 3, /* that a client who has sent its end still gets */
};

static const struct visit_command anybody = { .is_open = true };

/* A client's connection, as far as work asks it. */
struct client {
	struct net_conn conn;
	struct net_session session;
	struct clients_entry entry;
	struct lanes_job job;
};

static struct clients all;
static const char *const classes[] = { "any" };

OPS_DOOR(door, "wanted", classes, LOG_LEVEL_INFO, clients_end_op_of);

static void
client_begin(struct client *c)
{
	/* Nobody probes a connection that is read from. */
	*c = (struct client){ .conn.reading = true };
	c->session = (struct net_session){ .conn = &c->conn, .ended_most = SLICES };
	event_init(&c->session.closed);
	event_init(&c->session.lost);
	event_init(&c->session.stopping);
	event_init(&c->session.interrupted);
	clients_entry_init(&c->entry, &all, NULL);
	clients_add(&c->entry);
	c->entry.op.session = &c->session;
	c->job.works_for = &c->entry.op;
}

static void
op_begin(struct client *c)
{
	assert_int_equal(visit_admit(&c->entry, &anybody, NULL), STATUS_OK);
	clients_op_begin(&c->entry, &door, "work", STR(""), 0, STR(""), STR(""));
}

static void
client_end(struct client *c)
{
	clients_remove(&c->entry);
	clients_entry_fini(&c->entry);
}

static void
client_is_lost(struct client *c)
{
	c->conn.lost = true;
	event_set(&c->session.lost);
	event_set(&c->session.closed);
}

static bool
may(void *arg, const struct clients_view *v)
{
	(void)arg;
	(void)v;
	return true;
}

/* As killOp does. */
static void
kill_op(struct client *c)
{
	clients_end_op(c->entry.op.id, may, NULL);
}

/* ---- On a fiber ---- */

struct fiber {
	struct loop loop;
	void (*test)(void);
};

static void
fiber_run(void *arg)
{
	struct fiber *f = arg;

	clients_init(&all, ENDS, NULL);
	f->test();
	clients_fini(&all);
	loop_stop(&f->loop);
}

static void
on_a_fiber(void (*test)(void))
{
	struct loop_config config = { .task_bytes = 1 << 20 };
	struct fiber f = { .test = test };
	struct err err;

	assert_int_equal(loop_init(&f.loop, &config, &err), STATUS_OK);
	assert_int_equal(task_spawn(&f.loop, fiber_run, &f), STATUS_OK);
	loop_run(&f.loop);
	loop_fini(&f.loop);
}

/* ---- One operation ---- */

static void
test_client_leaves(void)
{
	struct client c;

	client_begin(&c);
	op_begin(&c);
	assert_int_equal(step_ask(), STATUS_OK);
	c.conn.eof = true;
	for (int i = 0; i < SLICES; i++)
		assert_int_equal(step_ask(), STATUS_OK);
	assert_int_equal(step_ask(), STATUS_CANCELLED);
	assert_int_equal(wanted_check(&c.entry.op), STATUS_CANCELLED);
	visit_op_end(&c.entry, &c.entry.op, NULL);
	/* Nobody is asked behind it. */
	assert_int_equal(step_ask(), STATUS_OK);
	client_end(&c);
	client_begin(&c);
	op_begin(&c);
	client_is_lost(&c);
	assert_int_equal(step_ask(), STATUS_CANCELLED);
	visit_op_end(&c.entry, &c.entry.op, NULL);
	client_end(&c);
}

static void
an_operation_ends_with_its_client(void **state)
{
	(void)state;
	on_a_fiber(test_client_leaves);
}

static void
test_lasting(void)
{
	struct client c;

	client_begin(&c);
	op_begin(&c);
	c.entry.op.ends = OPS_LASTS;
	client_is_lost(&c);
	assert_int_equal(step_ask(), STATUS_OK);
	event_set(&c.session.stopping);
	assert_int_equal(step_ask(), STATUS_CANCELLED);
	visit_op_end(&c.entry, &c.entry.op, NULL);
	/* The next one does not last by itself. */
	event_init(&c.session.stopping);
	op_begin(&c);
	assert_int_equal(step_ask(), STATUS_CANCELLED);
	visit_op_end(&c.entry, &c.entry.op, NULL);
	client_end(&c);
	client_begin(&c);
	op_begin(&c);
	c.entry.op.ends = OPS_FINISHES;
	c.entry.op.until_ns = 1;
	kill_op(&c);
	assert_int_equal(step_ask(), STATUS_OK);
	visit_op_end(&c.entry, &c.entry.op, NULL);
	client_end(&c);
}

static void
what_lasts_ends_when_a_stop_gives_up_on_its_client(void **state)
{
	(void)state;
	on_a_fiber(test_lasting);
}

static void
test_ended(void)
{
	struct client c;

	client_begin(&c);
	op_begin(&c);
	kill_op(&c);
	assert_int_equal(step_ask(), STATUS_CANCELLED);
	assert_int_equal(wanted_check(&c.entry.op), STATUS_CANCELLED);
	visit_op_end(&c.entry, &c.entry.op, NULL);
	assert_int_equal(wanted_check(&c.entry.op), STATUS_OK);
	op_begin(&c);
	assert_int_equal(step_ask(), STATUS_OK);
	c.entry.op.until_ns = clock_mono_ns();
	assert_int_equal(step_ask(), STATUS_TIMEOUT);
	assert_int_equal(wanted_check_waiting(&c.entry.op), STATUS_TIMEOUT);
	visit_op_end(&c.entry, &c.entry.op, NULL);
	assert_int_equal(wanted_check_waiting(&c.entry.op), STATUS_OK);
	op_begin(&c);
	event_set(&c.session.stopping);
	assert_int_equal(wanted_check(&c.entry.op), STATUS_OK);
	assert_int_equal(wanted_check_waiting(&c.entry.op), STATUS_CANCELLED);
	clients_signal(&c.entry, ENDS);
	assert_int_equal(step_ask(), STATUS_CANCELLED);
	visit_op_end(&c.entry, &c.entry.op, NULL);
	client_end(&c);
}

static void
an_operation_ends_when_somebody_ends_it_and_with_its_time(void **state)
{
	(void)state;
	on_a_fiber(test_ended);
}

/* ---- A group ---- */

static void
test_group(void)
{
	struct client a, b;
	struct wanted_group g;

	client_begin(&a);
	client_begin(&b);
	op_begin(&a);
	a.job.group = &b.job;
	wanted_group_begin(&g, &a.job);
	client_is_lost(&a);
	event_set(&a.session.stopping);
	assert_int_equal(step_ask(), STATUS_OK);
	/* The leader is ended, and others are worked for. */
	kill_op(&a);
	assert_int_equal(step_ask(), STATUS_OK);
	assert_null(wanted_work_for(&b.entry.op));
	assert_int_equal(step_ask(), STATUS_OK);
	assert_ptr_equal(wanted_work_for(&a.entry.op), &b.entry.op);
	assert_int_equal(step_ask(), STATUS_CANCELLED);
	(void)wanted_work_for(NULL);
	client_is_lost(&b);
	assert_int_equal(step_ask(), STATUS_OK);
	event_set(&b.session.stopping);
	assert_int_equal(step_ask(), STATUS_CANCELLED);
	wanted_group_end(&g);
	/* The leader's own operation is asked again. */
	event_init(&b.session.lost);
	assert_int_equal(step_ask(), STATUS_CANCELLED);
	assert_ptr_equal(wanted_work_for(&a.entry.op), &a.entry.op);
	visit_op_end(&a.entry, &a.entry.op, NULL);
	client_end(&a);
	client_end(&b);
}

static void
a_group_ends_with_the_last_of_its_clients(void **state)
{
	(void)state;
	on_a_fiber(test_group);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_operation_ends_with_its_client),
		cmocka_unit_test(what_lasts_ends_when_a_stop_gives_up_on_its_client),
		cmocka_unit_test(an_operation_ends_when_somebody_ends_it_and_with_its_time),
		cmocka_unit_test(a_group_ends_with_the_last_of_its_clients),
	};

	return cmocka_run_group_tests_name("wanted", tests, NULL, NULL);
}
