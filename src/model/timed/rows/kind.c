/* What the catalog has to know of databases of rows, and what sweeps and listings have. */
#include "base/quote.h"
#include "model/timed/check.h"
#include "model/timed/rows/rows_int.h"

static enum status
rows_check_name(struct str name, struct err *err)
{
	bool good = name.len && name.len <= TIMED_DB_NAME_BYTES;

	for (size_t i = 0; good && i < name.len; i++) {
		char c = name.ptr[i];

		good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		       c == '_' || c == '-' || c == '.';
	}
	if (good)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "no database of rows can be called \"%s\": a name has 1 to %d letters, "
		       "digits, and _ - . only",
		       QUOTE_SHOW(name), TIMED_DB_NAME_BYTES);
}

/* True if the value of a key of ROWS has expired. */
static enum status
rows_has_expired(struct timed *t, struct str value, bool *ret)
{
	struct timed_cell cell;

	TRY(timed_cell_parse(value, &cell, t->err));
	*ret = timed_has_expired(t, &cell);
	return STATUS_OK;
}

/* A row of a table outlives its own cell; one that is a collection or a value does not. */
static bool
rows_own_hides(const struct catalog_db *db)
{
	return !timed_schema_of(db)->column_count;
}

const struct catalog_kind timed_rows_kind = {
	.number = CATALOG_KIND_TIMED,
	.name = "rows",
	.space = CATALOG_SPACE_ROWS,
	.check_name = rows_check_name,
	.extend = timed_extend,
	.extension_free = timed_extension_free,
	.watch_key = timed_changed_key,
	.wake = timed_changed_write,
	.space_name = timed_space_name,
	.draw_pair = timed_rows_draw_pair,
	.inspect = timed_rows_inspect,
	.verify = timed_verify,
	.is_document = timed_is_document,
};

static const struct timed_kind rows_in_time = {
	.catalog = &timed_rows_kind,
	.defaults = true,
	.own_hides = rows_own_hides,
	.schema_space = TIMED_SPACE_SCHEMA,
	.tend = timed_retime,
	.due_ask = timed_due_ask,
	.due_sweep = timed_rows_due_sweep,
	.has_expired = rows_has_expired,
	.draw_key = timed_rows_draw_key,
	.verify = timed_rows_verify,
	.verify_in_ranges = timed_rows_verify_in_ranges,
};

void
timed_rows_register(void)
{
	timed_kind_register(&rows_in_time);
}

enum status
timed_create(struct kv_tx *tx, struct str name, const struct timed_schema *schema,
	     uint64_t default_ttl_ms, struct err *err)
{
	return timed_create_of(tx, &timed_rows_kind, name, schema, default_ttl_ms, false, err);
}
