#include "door/couch/query/bookmark.h"

#include "base/base64.h"
#include "kv/tuple.h"

void
bookmark_write(const struct bookmark *b, struct buf *out)
{
	AUTO(buf_release) struct buf record = BUF_SHORT(BOOKMARK_BYTES);

	tuple_put_u64(&record, BOOKMARK_FORMAT);
	tuple_put_bytes(&record, b->index);
	tuple_put_bytes(&record, b->place);
	tuple_put_bytes(&record, b->id);
	if (buf_status(&record) == STATUS_OK)
		base64_encode(out, buf_str(&record), BASE64_URL);
	else
		out->failed = buf_status(&record);
}

static enum status
bookmark_next(struct tuple_reader *r, struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf text = BUF_SHORT(BOOKMARK_BYTES);
	struct tuple_elem e;

	if (tuple_next(r, &e) != STATUS_OK || e.kind != TUPLE_BYTES)
		return STATUS_INVALID;
	tuple_unescape(&e, &text);
	return buf_copy(&text, arena, ret);
}

enum status
bookmark_read(struct str text, struct arena *arena, struct bookmark *ret)
{
	AUTO(buf_release) struct buf record = BUF_SHORT(BOOKMARK_BYTES);
	struct tuple_reader r;
	struct tuple_elem format;

	if (text.len > BOOKMARK_BYTES)
		return STATUS_INVALID;
	TRY(base64_decode(&record, text, BASE64_URL));
	r = tuple_reader(buf_str(&record));
	if (tuple_next(&r, &format) != STATUS_OK || format.kind != TUPLE_INT || format.negative ||
	    format.magnitude != BOOKMARK_FORMAT)
		return STATUS_INVALID;
	TRY(bookmark_next(&r, arena, &ret->index));
	TRY(bookmark_next(&r, arena, &ret->place));
	TRY(bookmark_next(&r, arena, &ret->id));
	return r.rest.len ? STATUS_INVALID : STATUS_OK;
}
