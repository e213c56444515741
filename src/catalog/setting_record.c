/*
 * A setting of all servers as it is stored:
 *
 *     format 1: (1, text), or (1, null) for one that is unset
 */
#include "catalog/format.h"
#include "catalog/keys.h"
#include "catalog/records.h"

enum {
	SETTING_FORMAT = 1, /* the newest */
};

void
catalog_setting_record_put(struct str text, struct buf *value)
{
	tuple_put_u64(value, SETTING_FORMAT);
	if (text.ptr)
		tuple_put_str(value, text);
	else
		tuple_put_null(value);
}

enum status
catalog_setting_record_parse(struct str value, struct arena *arena, struct str *ret,
			     struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct tuple_reader peek;
	struct tuple_elem e;
	struct str text = { NULL, 0 };
	uint64_t format;

	TRY(catalog_format_next(&r, "setting", SETTING_FORMAT, &format, err));
	peek = r;
	if (tuple_next(&peek, &e) != STATUS_OK)
		return STATUS_CORRUPT;
	if (e.kind == TUPLE_NULL)
		r = peek;
	else
		TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, &text));
	if (r.rest.len)
		return STATUS_CORRUPT;
	*ret = text;
	return STATUS_OK;
}
