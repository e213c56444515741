/*
 * The record of a deleted database, whose keys are to be cleared, as it is stored:
 *
 *     an empty value               of a revisioned database
 *     format 1: (1, kind)          of any other
 *     format 2: (2, kind, ms)      some keys are kept until that time
 */
#include "catalog/format.h"
#include "catalog/records.h"
#include "kv/tuple.h"

enum {
	DROP_FORMAT_BARE = 1,
	DROP_FORMAT = 2, /* the newest */
};

void
catalog_drop_record_put(const struct catalog_drop *drop, struct buf *value)
{
	if (drop->kind == CATALOG_KIND_REVISIONED)
		return;
	tuple_put_u64(value, drop->until_ms ? DROP_FORMAT : DROP_FORMAT_BARE);
	tuple_put_u64(value, drop->kind);
	if (drop->until_ms)
		tuple_put_u64(value, drop->until_ms);
}

enum status
catalog_drop_record_parse(struct str value, struct catalog_drop *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct catalog_drop drop = { .kind = CATALOG_KIND_REVISIONED };
	uint64_t format = 0;

	if (value.len)
		TRY(catalog_format_next(&r, "record of a deleted database", DROP_FORMAT, &format,
					err));
	if ((format && tuple_next_u64(&r, &drop.kind) != STATUS_OK) ||
	    (format == DROP_FORMAT && tuple_next_u64(&r, &drop.until_ms) != STATUS_OK) ||
	    r.rest.len)
		return STATUS_CORRUPT;
	*ret = drop;
	return STATUS_OK;
}
