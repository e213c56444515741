/* Ids and revisions of documents in requests and answers: checks, parsing, writing, new ids. */
#include "base/quote.h"
#include "base/utf8.h"
#include "doc/json.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"

enum {
	POSITION_DIGITS = 20, /* of the largest position */
};

enum status
couch_docid_check(struct str id, struct couch_fail *fail)
{
	if (id.len == 0)
		return couch_fail_set(fail, COUCH_ERROR_ILLEGAL_DOCID,
				      "Document id must not be empty");
	if (str_eq(id, STR("_local/")))
		return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST, "Invalid _local document id.");
	if (str_eq(id, STR("_design/")))
		return couch_fail_set(fail, COUCH_ERROR_ILLEGAL_DOCID, "Illegal document id `%s`",
				      QUOTE_SHOW(id));
	if (id.len > REV_DOC_ID_BYTES)
		return couch_fail_set(fail, COUCH_ERROR_ILLEGAL_DOCID,
				      "Document id is too long: the limit is %d bytes",
				      REV_DOC_ID_BYTES);
	if (utf8_valid_prefix(id) != id.len)
		return couch_fail_set(fail, COUCH_ERROR_ILLEGAL_DOCID,
				      "Document id must be valid UTF-8");
	if (id.ptr[0] == '_' && !couch_is_design(id) && !couch_is_local(id))
		return couch_fail_set(fail, COUCH_ERROR_ILLEGAL_DOCID,
				      "Only reserved document ids may start with underscore.");
	return STATUS_OK;
}

enum status
couch_rev_parse(struct str text, struct arena *arena, struct rev_id *ret, struct couch_fail *fail)
{
	enum status status = rev_id_parse(text, arena, ret, &fail->err);

	if (status == STATUS_INVALID && text.len > REV_HASH_LIMIT_BYTES + POSITION_DIGITS + 1)
		return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST,
				      "Invalid rev format: the limit of a hash is %d bytes",
				      REV_HASH_LIMIT_BYTES);
	if (status == STATUS_INVALID)
		return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST, "Invalid rev format");
	return status;
}

/* A hash that is not hexadecimal is a client's text, which may need escapes in JSON. */
__attribute__((noinline)) static void
ids_write_text_rev(struct rev_id rev, struct buf *out)
{
	char text[REV_HASH_LIMIT_BYTES + 32];
	struct buf plain = { .ptr = text, .cap = sizeof(text), .max_bytes = sizeof(text) };

	rev_id_write(rev, &plain);
	if (buf_status(&plain) != STATUS_OK)
		out->failed = buf_status(&plain);
	json_write_str(out, buf_str(&plain));
}

void
couch_rev_write(struct rev_id rev, struct buf *out)
{
	if (rev.hash.len != REV_HASH_BYTES) {
		ids_write_text_rev(rev, out);
		return;
	}
	buf_append_byte(out, '"');
	rev_id_write(rev, out);
	buf_append_byte(out, '"');
}
