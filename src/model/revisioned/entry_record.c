#include "catalog/keys.h"
#include "model/revisioned/record.h"

void
rev_entry_put(struct buf *value, struct rev_id winner)
{
	buf_clear(value);
	tuple_put_u64(value, REV_ENTRY_FORMAT);
	tuple_put_u64(value, winner.pos);
	tuple_put_bytes(value, winner.hash);
}

enum status
rev_entry_parse(struct str value, bool keep, struct arena *arena, struct rev_id *ret,
		struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	TRY(catalog_format_next(&r, "entry of _all_docs", REV_ENTRY_FORMAT, &format, err));
	TRY(tuple_next_u64(&r, &ret->pos));
	TRY(catalog_next_text(&r, TUPLE_BYTES, arena, keep, &ret->hash));
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}
