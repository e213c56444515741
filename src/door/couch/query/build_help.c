#include "door/couch/query/build_help.h"

#include "base/clock.h"
#include "catalog/chores.h"
#include "door/couch/admin/tx.h"
#include "index/engine/build.h"

/* Finds the index while it is being built. */
struct build_call {
	const struct query_index *index;
	struct index_build_key key;
	bool found;
};

static enum status
build_find(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	const struct index_set *set = index_set_of(r->db);
	struct build_call *c = arg;

	(void)tx;
	c->found = false;
	for (size_t i = 0; set && i < set->count; i++) {
		const struct index_def *def = &set->defs[i];

		if (def->state != INDEX_BUILDING || !str_eq(def->owner, c->index->ddoc) ||
		    !str_eq(def->name, c->index->name))
			continue;
		c->found = true;
		c->key = (struct index_build_key){
			.space = CATALOG_SPACE_COUCH,
			.db_name = r->parts[0],
			.db_number = r->db->number,
			.number = def->number,
			.claims = true,
		};
	}
	return STATUS_OK;
}

void
query_build_help(struct couch_req *r, const struct query_index *index, unsigned steps,
		 uint64_t until_ns)
{
	struct build_call c = { .index = index };
	struct couch_fail fail = r->fail;
	enum index_state state = INDEX_BUILDING;
	enum status status = couch_db_read(r, COUCH_ACCESS_MEMBER, build_find, &c);

	/* Step by step, so that the clock is looked at between them. */
	while (status == STATUS_OK && c.found && state == INDEX_BUILDING && steps-- &&
	       clock_mono_ns() < until_ns)
		status = index_build_run(r->couch->config.store, &c.key, INDEX_BUILD_OF_REQUESTS, 1,
					 &state, &r->fail.err);
	if (c.found && state == INDEX_BUILDING && r->couch->config.chores)
		chores_hurry(r->couch->config.chores, INDEX_CHORE_BUILD);
	r->fail = fail;
}
