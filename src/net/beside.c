#include "net/beside.h"

#include <assert.h>

enum {
	/* Of a fiber beside the session's own: as much as that has. */
	NET_BESIDE_BYTES = BUDGET_PART_BYTES + NET_WORK_BYTES,
};

_Static_assert((int)NET_BESIDE_FIBERS == (int)TASK_IDLE_MAX, "as many as are kept");

struct task *
net_beside_take(struct net_session *s)
{
	struct task *t;

	assert(s->task);
	if (s->loop->loop.running - s->loop->loop.resting >= NET_BESIDE_FIBERS)
		return NULL;
	/* The session's own fiber has memory of its own for an answer, however short that is. */
	if (s->part.budget && budget_is_short(s->part.budget))
		return NULL;
	if (!budget_use(&s->part, NET_BESIDE_BYTES))
		return NULL;
	t = task_take(&s->loop->loop);
	if (!t) {
		budget_unuse(&s->part, NET_BESIDE_BYTES);
		return NULL;
	}
	arena_set_part(t->arena, &s->part);
	/* As the session's own. */
	t->steps.limit = s->loop->request_steps;
	t->steps.owner = s->task->steps.owner;
	watchdog_label_copy(t->label, s->task->label);
	return t;
}

void
net_beside_put(struct net_session *s, struct task *t)
{
	assert(s->task);
	task_put(t);
	budget_unuse(&s->part, NET_BESIDE_BYTES);
}
