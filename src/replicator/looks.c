#include "replicator/looks.h"

#include "base/mem.h"
#include "loop/task.h"

struct look {
	struct look *next;
	struct replicator *replicator;
	struct repl_spec *spec;
	struct replicator_wait *wait;
	char id[SPEC_ID_BYTES + 1];
	char full_id[SPEC_FULL_ID_BYTES];
	bool begun;
	struct run_progress progress; /* of a run that copies nothing: nobody is shown it */
	struct net_scope scope;
	struct net_scope settling;
};

bool
look_is_needed(struct replicator *r, const struct repl_spec *spec, char ret_id[SPEC_FULL_ID_BYTES])
{
	char id[SPEC_ID_BYTES + 1];
	size_t slash;

	repl_spec_id(spec, str_from_cstr(r->store_id), id, ret_id);
	return spec->continuous && repl_spec_filters_by_function(spec, &slash) &&
	       !job_find(r, str_from_cstr(ret_id));
}

enum status
look_add(struct replicator *r, struct repl_spec **spec, struct replicator_wait *w, struct err *err)
{
	struct look *l;

	if (r->stopping || !r->started)
		return err_set(err, STATUS_UNAVAILABLE, "the replicator is not running");
	l = mem_zalloc(sizeof(*l));
	if (!l)
		return err_set(err, STATUS_NOMEM, "out of memory for a replication");
	l->replicator = r;
	l->spec = *spec;
	l->wait = w;
	repl_spec_id(l->spec, str_from_cstr(r->store_id), l->id, l->full_id);
	run_progress_init(&l->progress, &r->lock);
	l->next = r->looks;
	r->looks = l;
	*spec = NULL;
	replicator_ring(r);
	return STATUS_OK;
}

/* Makes the job, or tells the request why there is none. Under the lock. */
static void
look_end(struct look *l, enum status status, struct err *err)
{
	struct look **at = &l->replicator->looks;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	if (status == STATUS_OK)
		status = job_join(l->replicator, &l->spec, l->wait, l->full_id, err);
	if (status != STATUS_OK)
		replicator_wait_end(l->wait, status, err, STR(""));
	run_progress_fini(&l->progress);
	repl_spec_free(l->spec);
	mem_free(l);
}

static void
look_run(void *arg)
{
	struct look *l = arg;
	struct replicator *r = l->replicator;
	struct buf AUTO(buf_release) answer = BUF_INIT(REPLICATOR_ANSWER_BYTES);
	const struct run_config config = {
		.env = &r->env,
		.loop = r->loop,
		.spec = l->spec,
		.id = l->id,
		.scope = &l->scope,
		.settling = &l->settling,
		.progress = &l->progress,
		.looks_only = true,
	};
	struct err err = { 0 };
	enum status status;

	task_set_doing(STR("replication"), str_from_cstr(l->full_id));
	status = r->run(&config, &answer, &err);
	pthread_mutex_lock(&r->lock);
	look_end(l, status, &err);
	pthread_mutex_unlock(&r->lock);
	replicator_fiber_ended(r);
}

void
looks_turn(struct replicator *r)
{
	struct look *next;

	for (struct look *l = r->looks; l; l = next) {
		next = l->next;
		if (!l->begun && task_spawn(r->loop, look_run, l) != STATUS_OK) {
			struct err err = { 0 };
			enum status status = err_set(&err, STATUS_NOMEM,
						     "out of memory for a replication");

			look_end(l, status, &err);
			continue;
		}
		r->fibers += !l->begun;
		l->begun = true;
		if (r->stopping)
			net_scope_cancel(&l->scope);
	}
}
