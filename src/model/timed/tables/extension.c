/* What an opened table keeps in memory: its schema, its indexes, a caller's note. */
#include <assert.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "model/timed/tables/tables_int.h"

void
table_extension_free(void *arg)
{
	struct table_extension *extension = arg;
	struct table_note *note;

	if (!extension)
		return;
	/* Nobody else has it: the last reference to the description is gone. */
	note = atomic_load_explicit(&extension->note, memory_order_relaxed);
	if (note)
		note->free(note);
	index_set_free(extension->set);
	arena_free(extension->arena);
	mem_free(extension);
}

enum status
table_extend(struct kv_tx *tx, const struct catalog_db *db, void **ret, struct err *err)
{
	struct table_extension *extension = mem_zalloc(sizeof(*extension));
	/* Without a cache nobody has read the metadata version: it meets changes by the record. */
	enum kv_read mode = db->by_version ? KV_SNAPSHOT : KV_READ;
	enum status status = STATUS_NOMEM;

	if (!extension)
		return STATUS_NOMEM;
	extension->arena = arena_new(TIMED_SCHEMA_ARENA_BYTES);
	if (extension->arena)
		status = table_schema_get(tx, db, mode, extension->arena, &extension->schema, err);
	if (status == STATUS_OK)
		status = table_indexes_load(tx, db, extension, err);
	if (status == STATUS_OK)
		*ret = extension;
	else
		table_extension_free(extension);
	return status;
}

const struct table_note *
table_note_of(const struct catalog_db *db)
{
	const struct table_extension *extension = db->extension;

	return atomic_load_explicit(&extension->note, memory_order_acquire);
}

const struct table_note *
table_note_leave(const struct catalog_db *db, struct table_note *note)
{
	struct table_extension *extension = db->extension;
	struct table_note *there = NULL;

	assert(note->free);
	/* Transactions on several threads may have opened the table by one description. */
	if (atomic_compare_exchange_strong_explicit(&extension->note, &there, note,
						    memory_order_acq_rel, memory_order_acquire))
		return note;
	note->free(note);
	return there;
}
