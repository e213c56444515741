/* Checks bodies: a root with a packed text, or with leaves below it that make a document. */
#include "doc/chunks.h"
#include "doc/packed.h"
#include "model/revisioned/local_root.h"
#include "model/revisioned/verify_int.h"

enum {
	/* The JSON of one leaf, and of the brackets before it: escapes take six bytes for one. */
	LEAF_JSON_BYTES = 8 * KV_LIMIT_VALUE_BYTES + 8 * KV_LIMIT_KEY_BYTES,
	/* A text in chunks, what it is packed to again, and what that takes. */
	TEXT_ARENA_BYTES = 8 * DOC_LIMIT_MAX_BYTES,
};

void
verify_body_init(struct verify_body *b)
{
	*b = (struct verify_body){
		.out = BUF_INIT(LEAF_JSON_BYTES),
		.key = CATALOG_KEY_INIT,
	};
	doc_assemble_init_object(&b->assembler, &b->out, false);
}

void
verify_body_release(struct verify_body *b)
{
	doc_assemble_release(&b->assembler);
	buf_release(&b->out);
	buf_release(&b->key);
}

enum status
verify_body_begin(struct verify_body *b, struct str root)
{
	doc_assemble_release(&b->assembler);
	doc_assemble_init_object(&b->assembler, &b->out, false);
	buf_clear(&b->out);
	buf_clear(&b->key);
	buf_append_str(&b->key, root);
	b->open = true;
	b->root = false;
	b->packed = false;
	b->chunks = 0;
	b->broken = false;
	return buf_status(&b->key);
}

enum status
verify_body_root(struct catalog_verify *v, struct verify_body *b, struct str packed)
{
	enum status status;

	b->root = true;
	b->packed = packed.ptr;
	if (!b->packed)
		return STATUS_OK;
	v->sum.packed++;
	arena_clear(v->scratch);
	status = doc_packed_check(packed, v->scratch);
	if (status != STATUS_CORRUPT)
		return status;
	catalog_verify_found(v, REV_FINDING_BODY_CORRUPT, buf_str(&b->key),
			     "the packed text is not what a document is packed to");
	b->broken = true;
	return STATUS_OK;
}

enum status
verify_body_leaf(struct catalog_verify *v, struct verify_body *b, struct str path, struct str value)
{
	enum status status;

	v->sum.leaves++;
	if (!b->root && !b->broken)
		catalog_verify_found(v, REV_FINDING_BODY_ROOT, buf_str(&b->key),
				     "leaves lie here, and no root");
	if (b->packed && !b->broken)
		catalog_verify_found(v, REV_FINDING_BODY_CORRUPT, buf_str(&b->key),
				     "leaves lie below a packed document");
	b->broken = b->broken || !b->root || b->packed;
	if (b->broken)
		return STATUS_OK;
	/*
	 * The text itself is not needed, so memory for one leaf is enough for a document of any
	 * size.
	 */
	buf_clear(&b->out);
	status = doc_assemble_leaf(&b->assembler, path, value);
	if (status == STATUS_CORRUPT) {
		buf_clear(&v->key);
		buf_append_buf(&v->key, &b->key);
		buf_append_str(&v->key, path);
		catalog_verify_found(v, REV_FINDING_BODY_CORRUPT, buf_str(&v->key),
				     "no document can have this leaf at this place");
		b->broken = true;
		return STATUS_OK;
	}
	return status;
}

enum status
verify_body_end(struct catalog_verify *v, struct verify_body *b)
{
	enum status status = STATUS_OK;

	if (b->open && b->root && !b->packed && !b->broken) {
		buf_clear(&b->out);
		status = doc_assemble_end(&b->assembler);
	}
	if (status == STATUS_CORRUPT) {
		catalog_verify_found(v, REV_FINDING_BODY_CORRUPT, buf_str(&b->key),
				     "the leaves make no document");
		status = STATUS_OK;
	}
	b->open = false;
	return status;
}

/* ---- Texts in chunks ---- */

/* Reads the text. If nobody writes to the store, a failed read is repeated at a newer version. */
static enum status
verify_read_text(struct catalog_verify *v, struct str prefix, uint64_t text_bytes,
		 struct arena *arena, struct str *ret)
{
	unsigned failures = 0;

	for (;;) {
		enum status status = doc_chunks_read(v->tx, prefix, text_bytes, arena, ret);

		if (status == STATUS_OK || status == STATUS_CORRUPT || status == STATUS_LIMIT)
			return status;
		arena_clear(arena);
		TRY(catalog_verify_again(v, &failures, status));
	}
}

enum status
verify_text(struct catalog_verify *v, struct str key, struct str prefix, uint64_t text_bytes)
{
	struct arena *arena = arena_new(TEXT_ARENA_BYTES);
	struct str text;
	enum status status;

	if (!arena)
		return STATUS_NOMEM;
	status = verify_read_text(v, prefix, text_bytes, arena, &text);
	if (status == STATUS_CORRUPT) {
		catalog_verify_found(v, REV_FINDING_BODY_CORRUPT, key,
				     "its text is not there, or not the %llu bytes that it should "
				     "be",
				     (unsigned long long)text_bytes);
	} else if (status == STATUS_OK) {
		status = doc_packed_check(text, arena);
		if (status == STATUS_CORRUPT)
			catalog_verify_found(v, REV_FINDING_BODY_CORRUPT, key,
					     "the text in chunks is not what a document is packed "
					     "to");
	}
	arena_free(arena);
	return status == STATUS_CORRUPT ? STATUS_OK : status;
}

/* ---- LOCAL ---- */

/* A pair below (root key, null): it has to be a chunk of the text that the root value names. */
static void
verify_local_chunk(struct catalog_verify *v, const struct verify_body *b,
		   const struct catalog_verify_cursor *c, struct str rest)
{
	struct tuple_reader r = tuple_reader(str_skip(rest, REV_ATT_MARK.len));
	uint64_t n;

	if (tuple_next_u64(&r, &n) != STATUS_OK || r.rest.len || !b->root || n >= b->chunks)
		catalog_verify_found(v, REV_FINDING_BODY_CORRUPT, c->pair.key,
				     "no text has this chunk at this place");
}

static enum status
verify_local_root(struct catalog_verify *v, struct verify_body *b,
		  const struct catalog_verify_cursor *c)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;
	struct rev_local_root root = { .form = DOC_FORM_EXPLODED };
	struct err err = { 0 };
	enum status status = rev_local_root_read(c->pair.value, &root, &err);

	if (status == STATUS_OK && root.rev < 1)
		status = STATUS_CORRUPT;
	if (status != STATUS_OK)
		catalog_verify_unreadable(v, status, &err, c->pair.key,
					  "not the form and the revision of a local document");
	TRY(verify_body_root(v, b, root.packed));
	if (root.form != DOC_FORM_CHUNKED)
		return STATUS_OK;
	b->packed = true;
	b->chunks = doc_chunks_count(root.text_bytes);
	buf_append_str(&prefix, c->pair.key);
	tuple_put_null(&prefix);
	TRY(buf_status(&prefix));
	return verify_text(v, c->pair.key, buf_str(&prefix), root.text_bytes);
}

static enum status
verify_local_pair(struct catalog_verify *v, struct verify_body *b,
		  const struct catalog_verify_cursor *c)
{
	struct tuple_reader r = tuple_reader(c->tail);
	struct str id, root;

	if (!catalog_verify_text_next(&r, TUPLE_STRING, &id)) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, c->pair.key,
				     "not the key of a local document");
		return STATUS_OK;
	}
	root = str_of(c->pair.key.ptr, c->prefix_len + id.len);
	if (!b->open || !str_eq(root, buf_str(&b->key))) {
		TRY(verify_body_end(v, b));
		TRY(verify_body_begin(b, root));
	}
	if (str_starts_with(r.rest, REV_ATT_MARK)) {
		verify_local_chunk(v, b, c, r.rest);
		return STATUS_OK;
	}
	if (r.rest.len)
		return verify_body_leaf(v, b, r.rest, c->pair.value);
	return verify_local_root(v, b, c);
}

enum status
verify_locals(struct catalog_verify *v)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	AUTO(verify_body_release) struct verify_body body;

	verify_body_init(&body);
	TRY(catalog_verify_cursor_open(v, &c, REV_SUBSPACE_LOCAL));
	while (!c.done) {
		TRY(verify_local_pair(v, &body, &c));
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return verify_body_end(v, &body);
}
