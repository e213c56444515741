/*
 * The stored note that a database has indexes to build or clear, or views to build:
 *
 *     format 1: (1, space, name)
 */
#include "catalog/format.h"
#include "catalog/keys.h"
#include "catalog/records.h"

enum {
	WORK_FORMAT = 1, /* the newest */
};

void
catalog_work_record_put(const struct catalog_db *db, struct buf *value)
{
	tuple_put_u64(value, WORK_FORMAT);
	tuple_put_u64(value, db->kind->space);
	tuple_put_str(value, db->name);
}

enum status
catalog_work_record_parse(struct str value, struct arena *arena, enum catalog_space *ret_space,
			  struct str *ret_name, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format, space;

	TRY(catalog_format_next(&r, "record of an index's work", WORK_FORMAT, &format, err));
	if (tuple_next_u64(&r, &space) != STATUS_OK || space < 1 || space > CATALOG_SPACES_MAX)
		return STATUS_CORRUPT;
	TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, ret_name));
	*ret_space = (enum catalog_space)space;
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}
