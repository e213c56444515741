/* The form that a body takes in the store, and texts in chunks. */
#include "model/revisioned/body.h"

#include "base/rand.h"
#include "doc/packed.h"
#include "model/revisioned/body_int.h"

enum {
	NUMBER_BYTES = 24, /* a leaf's value beyond its text: a number is kept as double and text */
};

/* ---- The form ---- */

/*
 * True if the leaves take more of a transaction than they may. The lengths of the longest path and
 * of the text bound what they take, which spares most documents from adding up their leaves.
 */
static bool
leaves_are_too_many(const struct doc *doc, const struct rev_body *body,
		    const struct rev_body_limits *limits)
{
	size_t each = limits->prefix_bytes + KV_SIZE_EACH_BYTES;
	size_t bytes = 0;

	if (body->count < limits->leaves_bytes / (each + doc->path_bytes + NUMBER_BYTES) &&
	    body->count * (each + doc->path_bytes + NUMBER_BYTES) + 2 * doc->json_bytes <=
		    limits->leaves_bytes)
		return false;
	for (size_t i = 0; i < body->count; i++)
		bytes += each + body->leaves[i].key.len + body->leaves[i].value.len;
	return bytes > limits->leaves_bytes;
}

static void
body_set_chunked(struct rev_body *body, struct str text)
{
	*body = (struct rev_body){
		.root = { .form = DOC_FORM_CHUNKED, .text_bytes = text.len },
		.text = text,
	};
	rand_bytes(body->root.text_id, sizeof(body->root.text_id));
}

static void
body_set_packed(struct rev_body *body, struct str text)
{
	*body = (struct rev_body){ .root = { .form = DOC_FORM_PACKED, .packed = text } };
}

/* Chooses the form of a document that came in leaves: packed if it is short, else leaves. */
static enum status
body_choose_from_leaves(const struct doc *doc, const struct rev_body_limits *limits,
			struct arena *arena, struct rev_body *body)
{
	struct str text = { NULL, 0 };

	*body = (struct rev_body){ .root = { .form = DOC_FORM_EXPLODED },
				   .leaves = doc->leaves,
				   .count = doc->count };
	if (doc->unpackable < limits->packed_bytes)
		TRY(doc_pack(doc->leaves, doc->count, limits->packed_bytes, arena, &text));
	if (text.ptr) {
		body_set_packed(body, text);
		return STATUS_OK;
	}
	if (!leaves_are_too_many(doc, body, limits))
		return STATUS_OK;
	TRY(doc_pack(doc->leaves, doc->count, DOC_LIMIT_MAX_BYTES, arena, &text));
	if (!text.ptr)
		return STATUS_DOC_TOO_LARGE;
	body_set_chunked(body, text);
	return STATUS_OK;
}

enum status
rev_body_choose(const struct doc *doc, const struct rev_body_limits *limits, struct arena *arena,
		struct rev_body *ret)
{
	if (!doc->packed.ptr)
		return body_choose_from_leaves(doc, limits, arena, ret);
	if (doc->packed.len <= limits->packed_bytes) {
		body_set_packed(ret, doc->packed);
		return STATUS_OK;
	}
	/* No leaves were made of a longer text because they would be too many. */
	if (doc->packed.len > DOC_PACKED_BYTES) {
		body_set_chunked(ret, doc->packed);
		return STATUS_OK;
	}
	*ret = (struct rev_body){ .root = { .form = DOC_FORM_EXPLODED } };
	TRY(doc_unpack(doc->packed, arena, &ret->leaves, &ret->count));
	if (leaves_are_too_many(doc, ret, limits))
		body_set_chunked(ret, doc->packed);
	return STATUS_OK;
}

struct rev_body_limits
rev_body_limits(const struct catalog_db *db, struct str id)
{
	return (struct rev_body_limits){
		.prefix_bytes = rev_doc_prefix_bytes(db, id),
		.packed_bytes = rev_scheme_packed_bytes(rev_db_scheme(db)),
		.leaves_bytes = DOC_LEAVES_BYTES,
	};
}

struct doc_limits
rev_doc_limits(const struct catalog_db *db, size_t doc_bytes)
{
	return (struct doc_limits){
		.doc_bytes = doc_bytes,
		.path_bytes = KV_LIMIT_KEY_BYTES,
		.packed_bytes = rev_scheme_packed_bytes(rev_db_scheme(db)),
		.leaves_bytes = DOC_LEAVES_BYTES,
	};
}

/* ---- Texts that go ahead ---- */

static enum status
text_upload_whole(struct rev_upload *u, struct str text, struct rev_text *ret, struct err *err)
{
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct rev_att_edit stored = { .source = REV_ATT_DATA };

	TRY(rev_upload_write(u, text, err));
	TRY(rev_upload_finish(u, &stored, md5, err));
	*ret = (struct rev_text){ .source = REV_TEXT_STAGED, .bytes = text.len };
	memcpy(ret->id, stored.att.id, sizeof(ret->id));
	return STATUS_OK;
}

enum status
rev_text_stage(struct kv_store *store, struct catalog_db *db, struct str id, const struct doc *doc,
	       struct arena *arena, struct rev_text *ret, struct rev_upload **ret_upload,
	       struct err *err)
{
	const struct rev_upload_options options = { .store = store, .db = db };
	const struct rev_body_limits limits = rev_body_limits(db, id);
	struct rev_body body;
	enum status status;

	*ret_upload = NULL;
	/* A packed text is never longer than the text that it was made of. */
	if (doc->json_bytes <= REV_TEXT_AHEAD_BYTES)
		return STATUS_OK;
	TRY(rev_body_choose(doc, &limits, arena, &body));
	if (body.root.form != DOC_FORM_CHUNKED || body.text.len <= REV_TEXT_AHEAD_BYTES)
		return STATUS_OK;
	TRY(rev_upload_new(&options, ret_upload));
	status = text_upload_whole(*ret_upload, body.text, ret, err);
	if (status == STATUS_OK)
		return STATUS_OK;
	rev_upload_free(*ret_upload, false);
	*ret_upload = NULL;
	return status;
}
