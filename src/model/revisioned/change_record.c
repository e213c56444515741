#include "catalog/keys.h"
#include "model/revisioned/record.h"

void
rev_change_put(struct buf *value, const struct rev_change *change)
{
	buf_clear(value);
	tuple_put_u64(value, REV_CHANGE_FORMAT);
	tuple_put_str(value, change->id);
	tuple_put_u64(value, change->rev.pos);
	tuple_put_bytes(value, change->rev.hash);
	tuple_put_u64(value, change->branch_count);
	tuple_put_bool(value, !change->deleted);
}

enum status
rev_change_parse(struct str value, bool keep, struct arena *arena, struct rev_change *ret,
		 struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	bool not_deleted;
	uint64_t format;

	TRY(catalog_format_next(&r, "entry of _changes", REV_CHANGE_FORMAT, &format, err));
	TRY(catalog_next_text(&r, TUPLE_STRING, arena, keep, &ret->id));
	TRY(tuple_next_u64(&r, &ret->rev.pos));
	TRY(catalog_next_text(&r, TUPLE_BYTES, arena, keep, &ret->rev.hash));
	TRY(tuple_next_u64(&r, &ret->branch_count));
	TRY(tuple_next_bool(&r, &not_deleted));
	ret->deleted = !not_deleted;
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}
