#include "loop/turn.h"

/* A place in the budget's queue and the event that tells its fiber that the turn has come. */
struct turn_wait {
	struct budget_turn turn;
	struct event come;
};

/* On the thread that gave memory back, with the budget's lock held. */
static void
turn_granted(struct budget_turn *turn)
{
	/*
	 * The struct is on the stack of the fiber that waits. It cannot go away under this call:
	 * the fiber passes through budget_leave(), and with it through the budget's lock, before it
	 * leaves the function that owns the struct.
	 */
	event_set(&((struct turn_wait *)turn)->come);
}

static bool
turn_wait_for(struct budget *b, struct turn_wait *w, uint64_t deadline_ns, struct event *stop)
{
	struct event *events[] = { &w->come, stop };
	enum budget_answer answer;

	event_init(&w->come); /* first: the turn may come as soon as it is in the queue */
	answer = budget_queue(b, &w->turn);
	if (answer != BUDGET_QUEUED)
		return answer == BUDGET_GIVEN;
	(void)event_wait_any(events, stop ? 2 : 1, deadline_ns);
	return budget_leave(b, &w->turn);
}

static enum status
turn_ask(struct budget_part *p, size_t n, bool reads, uint64_t deadline_ns, struct event *stop)
{
	struct turn_wait w = { .turn = { .bytes = n, .reads = reads, .granted = turn_granted } };

	if (!turn_wait_for(p->budget, &w, deadline_ns, stop)) {
		if (stop && event_is_set(stop))
			return STATUS_CANCELLED;
		p->refused = true;
		return STATUS_LIMIT;
	}
	budget_part_give(p, &w.turn);
	return STATUS_OK;
}

enum status
budget_ask(struct budget_part *p, size_t n, uint64_t deadline_ns, struct event *stop)
{
	if (!p->budget)
		return STATUS_OK;
	return turn_ask(p, budget_askable(p->budget, n), false, deadline_ns, stop);
}

enum status
budget_ask_to_read(struct budget_part *p, size_t n, uint64_t deadline_ns, struct event *stop)
{
	size_t lacks = p->budget ? budget_part_lacks(p, n) : 0;

	return lacks ? turn_ask(p, lacks, true, deadline_ns, stop) : STATUS_OK;
}
