/*
 * The word that the keys of a deleted database are to be cleared, as it is stored:
 *
 *     an empty value            of a revisioned database
 *     format 1: (1, kind)       of any other
 */
#include "catalog/format.h"
#include "catalog/records.h"
#include "kv/tuple.h"

enum {
	DROP_FORMAT = 1, /* the newest */
};

void
catalog_drop_record_put(const struct catalog_kind *kind, struct buf *value)
{
	if (kind->number == CATALOG_KIND_REVISIONED)
		return;
	tuple_put_u64(value, DROP_FORMAT);
	tuple_put_u64(value, kind->number);
}

enum status
catalog_drop_record_parse(struct str value, uint64_t *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	if (value.len == 0) {
		*ret = CATALOG_KIND_REVISIONED;
		return STATUS_OK;
	}
	TRY(catalog_format_next(&r, "record of a deleted database", DROP_FORMAT, &format, err));
	if (tuple_next_u64(&r, ret) != STATUS_OK || r.rest.len)
		return STATUS_CORRUPT;
	return STATUS_OK;
}
