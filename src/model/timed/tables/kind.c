/* What the catalog has to know of tables, and what sweeps and listings have. */
#include "base/quote.h"
#include "index/engine/build.h"
#include "index/engine/update.h"
#include "index/typed/form.h"
#include "kv/keyspace.h"
#include "model/timed/check.h"
#include "model/timed/tables/stamps.h"

static enum status
tables_check_name(struct str name, struct err *err)
{
	struct str keyspace, table;

	table_name_split(name, &keyspace, &table);
	if (table_check_name("a keyspace", keyspace, NULL) == STATUS_OK &&
	    table_check_name("a table", table, NULL) == STATUS_OK)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "no table can be called \"%s\": a name is keyspace.table, each of 1 to %d "
		       "letters, digits and underscores (TABLE_NAME_BYTES)",
		       QUOTE_SHOW(name), TABLE_NAME_BYTES);
}

/* True if the value of a key of ROWS has expired. */
static enum status
tables_has_expired(struct timed *t, struct str value, bool *ret)
{
	struct timed_cell cell;

	*ret = false;
	if (timed_is_piece(value))
		return STATUS_OK;
	TRY(timed_cell_parse(value, &cell, t->err));
	*ret = timed_has_expired(t, &cell);
	return STATUS_OK;
}

/* What a row has in its columns outlives its own cell. */
static bool
tables_own_hides(const struct catalog_db *db)
{
	(void)db;
	return false;
}

static enum status
tables_tend(struct timed *t, uint64_t *ret_done, bool *ret_more)
{
	TRY(timed_retime(t, ret_done, ret_more));
	TRY(table_marks_tend(t, ret_done, ret_more));
	return table_dropped_tend(t, ret_done, ret_more);
}

/* A table that comes from another store: the keyspace that its name has may not be here. */
static enum status
tables_move_arrive(struct kv_tx *tx, const struct catalog_db *db, struct err *err)
{
	struct str keyspace, table;

	table_name_split(db->name, &keyspace, &table);
	TRY(table_keyspace_ensure(tx, keyspace));
	/* Builds of indexes that were under way go on here. */
	TRY(index_work_survey(tx, db, err));
	return table_schemas_touch(tx);
}

static const struct catalog_tally_list tables_lists[] = {
	[TABLE_LIST_ENTRIES] = {
		.space = INDEX_SPACE_ENTRIES,
		.counters = TIMED_SPACE_TALLIES,
		.totals = TIMED_SPACE_STATS,
		.total_names = { INDEX_STAT_ENTRIES },
	},
};

const struct catalog_kind table_kind = {
	.number = CATALOG_KIND_TABLE,
	.name = "table",
	.space = CATALOG_SPACE_TABLE,
	.lists = tables_lists,
	.lists_count = sizeof(tables_lists) / sizeof(tables_lists[0]),
	.check_name = tables_check_name,
	.extend = table_extend,
	.extension_free = table_extension_free,
	.extension_indexes = table_extension_indexes,
	.index_form = &index_typed_form,
	.watch_key = timed_changed_key,
	.wake = timed_changed_write,
	.space_name = table_space_name,
	.draw_pair = table_draw_pair,
	.inspect = table_inspect,
	.verify = timed_verify,
	.root_part = KV_ROOT_KEYSPACES,
	.verify_root = table_keyspace_verify,
	.move_share = table_needs_share,
	.move_arrive = tables_move_arrive,
	.is_document = timed_is_document,
};

static const struct timed_kind tables_in_time = {
	.catalog = &table_kind,
	.defaults = true,
	.own_hides = tables_own_hides,
	.schema_space = TIMED_SPACE_TABLE,
	.tend = tables_tend,
	.due_ask = timed_due_ask,
	.due_sweep = table_due_sweep,
	.has_expired = tables_has_expired,
	.draw_key = table_draw_key,
	.verify = table_verify,
	.verify_in_ranges = table_verify_in_ranges,
};

void
tables_register(void)
{
	timed_kind_register(&tables_in_time);
	index_documents_register(&table_indexed_rows);
}
