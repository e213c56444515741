/* Texts and keys in the answers. */
#include "base/base64.h"
#include "base/quote.h"
#include "door/couch/look/look.h"
#include "door/couch/wire/error.h"
#include "kv/kv.h"

void
look_write_text(struct buf *out, struct str text)
{
	quote_json(out, str_of(text.ptr, text.len < LOOK_TEXT_BYTES ? text.len : LOOK_TEXT_BYTES));
}

/* The longest key takes less than a request's target may have. */
void
look_write_next(struct buf *out, struct str key)
{
	buf_append_cstr(out, ",\"next\":\"");
	base64_encode(out, key, BASE64_URL);
	buf_append_byte(out, '"');
}

enum status
look_param_next(struct couch_req *r, struct str *ret)
{
	struct buf AUTO(buf_release) key = BUF_SHORT(KV_LIMIT_KEY_BYTES);
	struct str text;

	*ret = (struct str){ 0 };
	if (!couch_param(r, "after", &text))
		return STATUS_OK;
	if (base64_decode(&key, text, BASE64_URL) != STATUS_OK)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`after` must be what `next` of an answer was.");
	*ret = buf_dup(&key, r->arena);
	return ret->ptr ? STATUS_OK : STATUS_NOMEM;
}
