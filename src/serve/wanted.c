#include "serve/wanted.h"

#include <assert.h>

#include "base/clock.h"
#include "loop/task.h"
#include "net/session.h"
#include "serve/clients.h"

/* ---- For whom a fiber works ---- */

/* The claims that fibers work under are all of operations: nobody else sets one. */
static struct ops_op *
wanted_of_claim(struct limits_claim *claim)
{
	return claim ? (struct ops_op *)((char *)claim - offsetof(struct ops_op, claim)) : NULL;
}

struct ops_op *
wanted_work_for(struct ops_op *op)
{
	return wanted_of_claim(limits_work_under(op ? &op->claim : NULL));
}

/* ---- When work ends ---- */

bool
wanted_is_ended(const struct ops_op *op)
{
	return atomic_load_explicit(&op->killed, memory_order_relaxed) ||
	       (op->client && event_is_set(&op->client->ended));
}

static enum status
wanted_check_time(const struct ops_op *op)
{
	return op->until_ns && clock_mono_ns() >= op->until_ns ? STATUS_TIMEOUT : STATUS_OK;
}

/* ---- One operation ---- */

/* For step_set_owner(). */
static enum status
wanted_ask(void *arg)
{
	const struct ops_op *op = arg;
	bool wanted = net_session_is_wanted(op->session); /* also looks for the peer's end */

	if (op->ends == OPS_FINISHES)
		return net_session_is_given_up(op->session) ? STATUS_CANCELLED : STATUS_OK;
	if (wanted_is_ended(op))
		return STATUS_CANCELLED;
	if (op->ends == OPS_LASTS)
		wanted = !net_session_is_given_up(op->session);
	return wanted ? wanted_check_time(op) : STATUS_CANCELLED;
}

/* Likewise. */
static enum status
wanted_ask_waiting(void *arg)
{
	const struct ops_op *op = arg;
	struct clients_entry *e = op->client;

	if (net_session_is_given_up(op->session))
		return STATUS_CANCELLED;
	if (op->ends == OPS_FINISHES)
		return STATUS_OK;
	if (wanted_is_ended(op) || (op->ends == OPS_ENDS && event_is_set(&op->session->lost)))
		return STATUS_CANCELLED;
	TRY(wanted_check_time(op));
	/* Operations beside the entry's own use the person, who stays until they have ended. */
	return e && op == &e->op && e->may.look ? e->may.look(e) : STATUS_OK;
}

void
wanted_begin(struct ops_op *op)
{
	assert(op->ends == OPS_ENDS && !op->until_ns);
	(void)wanted_work_for(op);
	if (op->session)
		op->before = step_set_owner(
			(struct step_owner){ wanted_ask, wanted_ask_waiting, op });
}

void
wanted_end(struct ops_op *op)
{
	(void)wanted_work_for(NULL);
	/* What its door waits for before the next one begins has as much time as it wants. */
	op->ends = OPS_ENDS;
	op->until_ns = 0;
	if (op->session)
		(void)step_set_owner(op->before);
}

enum status
wanted_check(const struct ops_op *op)
{
	if (wanted_is_ended(op) || event_is_set(&op->session->closed))
		return STATUS_CANCELLED;
	return wanted_check_time(op);
}

enum status
wanted_check_waiting(const struct ops_op *op)
{
	return net_session_is_leaving(op->session) ? STATUS_CANCELLED : wanted_check(op);
}

/* ---- A group ---- */

/* For step_set_owner(). Clients of other loops are looked at by their events alone. */
static enum status
wanted_group_ask(void *arg)
{
	const struct wanted_group *g = arg;
	const struct ops_op *running = wanted_of_claim(task_works_for());

	if (running && wanted_is_ended(running))
		return STATUS_CANCELLED;
	for (const struct lanes_job *j = g->first; j; j = j->group)
		if (!net_session_is_given_up(((const struct ops_op *)j->works_for)->session))
			return STATUS_OK;
	return STATUS_CANCELLED;
}

void
wanted_group_begin(struct wanted_group *g, const struct lanes_job *first)
{
	for (const struct lanes_job *j = first; j; j = j->group)
		assert(j->works_for);
	g->first = first;
	g->worked_for = wanted_work_for(NULL);
	g->before = step_set_owner((struct step_owner){ .ask = wanted_group_ask, .arg = g });
}

void
wanted_group_end(struct wanted_group *g)
{
	(void)step_set_owner(g->before);
	(void)wanted_work_for(g->worked_for);
}
