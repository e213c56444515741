/* What builds say of themselves, for _active_tasks. */
#include "catalog/chore_pass.h"
#include "catalog/keys.h"
#include "index/engine/build.h"

/* Adds up what the stretches of a build say. No stretches: it waits for its turn. */
static enum status
progress_sum(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
	     struct arena *arena, struct index_progress *ret)
{
	struct index_build_record records[INDEX_BUILD_STRETCHES];
	size_t count;

	TRY(index_build_records(tx, db, def->number, KV_SNAPSHOT, arena, records, &count));
	for (size_t i = 0; i < count; i++) {
		const struct index_build_record *record = &records[i];

		ret->done += record->passed;
		ret->total = record->total;
		ret->started_ms = record->started_ms;
		if (record->updated_ms > ret->updated_ms)
			ret->updated_ms = record->updated_ms;
	}
	return STATUS_OK;
}

static enum status
progress_of_database(struct kv_tx *tx, const struct catalog_db *db, struct arena *arena,
		     size_t most, struct index_progress *list, size_t *count)
{
	const struct index_set *set = index_set_of(db);

	for (size_t i = 0; set && i < set->count && *count < most; i++) {
		const struct index_def *def = &set->defs[i];
		struct index_progress *p = &list[*count];

		if (def->state != INDEX_BUILDING)
			continue;
		*p = (struct index_progress){
			.db_name = arena_dup(arena, db->name),
			.owner = arena_dup(arena, def->owner),
			.name = arena_dup(arena, def->name),
		};
		if (!p->db_name.ptr || !p->owner.ptr || !p->name.ptr)
			return STATUS_LIMIT;
		TRY(progress_sum(tx, db, def, arena, p));
		(*count)++;
	}
	return STATUS_OK;
}

enum status
index_progress_list(struct kv_tx *tx, size_t most, struct arena *arena, struct index_progress **ret,
		    size_t *ret_count)
{
	struct index_progress *list = arena_zalloc(arena, most * sizeof(*list));
	struct index_work_entry *work;
	size_t work_count, count = 0;

	if (!list)
		return STATUS_LIMIT;
	TRY(index_work_list(tx, 0, most, arena, &work, &work_count));
	for (size_t i = 0; i < work_count && count < most; i++) {
		struct catalog_db *db;
		enum status status = catalog_open(tx, NULL, work[i].space, work[i].db_name, &db,
						  kv_tx_err(tx));

		/* The chore tells of one that cannot be read. */
		if (status == STATUS_NOT_FOUND || chore_may_pass(status))
			continue;
		TRY(status);
		status = progress_of_database(tx, db, arena, most, list, &count);
		catalog_db_unref(db);
		TRY(status);
	}
	*ret = list;
	*ret_count = count;
	return STATUS_OK;
}
