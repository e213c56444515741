/* What the catalog has to know of databases of rows. */
#include "base/quote.h"
#include "kv/tuple.h"
#include "model/timed/timed_int.h"

static enum status
timed_check_name(struct str name, struct err *err)
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

/* A row of a table has a cell of its own only if it was inserted, so rows are not counted here. */
static bool
timed_is_document(struct str key)
{
	struct tuple_reader r = tuple_reader(key);
	struct tuple_elem e;
	uint64_t space;

	return tuple_next_u64(&r, &space) == STATUS_OK && space == TIMED_SPACE_ROWS &&
	       tuple_next(&r, &e) == STATUS_OK && tuple_next(&r, &e) == STATUS_OK && !r.rest.len;
}

const struct catalog_kind timed_kind = {
	.number = CATALOG_KIND_TIMED,
	.name = "rows",
	.space = CATALOG_SPACE_ROWS,
	.check_name = timed_check_name,
	.extend = timed_extend,
	.extension_free = timed_extension_free,
	.watch_key = timed_changed_key,
	.wake = timed_changed_write,
	.space_name = timed_space_name,
	.draw_pair = timed_draw_pair,
	.verify = timed_verify,
	.is_document = timed_is_document,
};

void
timed_register(void)
{
	catalog_kind_register(&timed_kind);
}
