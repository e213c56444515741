#include "model/revisioned/record.h"

void
rev_upload_record_put(struct buf *value, const struct rev_upload_record *record)
{
	buf_clear(value);
	tuple_put_u64(value, REV_UPLOAD_FORMAT);
	tuple_put_u64(value, record->begun_ms);
	tuple_put_u64(value, record->last_ms);
}

enum status
rev_upload_record_parse(struct str value, struct rev_upload_record *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	TRY(catalog_format_next(&r, "record of an upload", REV_UPLOAD_FORMAT, &format, err));
	TRY(tuple_next_u64(&r, &ret->begun_ms));
	TRY(tuple_next_u64(&r, &ret->last_ms));
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}
