/* Bodies: a root with a packed document, or with leaves below it that make one. */
#include "model/revisioned/verify_int.h"

enum {
	/* The JSON of one leaf, and of the brackets before it: escapes take six bytes for one. */
	LEAF_JSON_BYTES = 8 * KV_LIMIT_VALUE_BYTES + 8 * KV_LIMIT_KEY_BYTES,
};

void
verify_body_init(struct verify_body *b)
{
	*b = (struct verify_body){
		.out = BUF_INIT(LEAF_JSON_BYTES),
		.key = REV_KEY_INIT,
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
	b->broken = false;
	return buf_status(&b->key);
}

enum status
verify_body_root(struct verify *v, struct verify_body *b, struct str packed)
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
	verify_found(v, REV_FINDING_BODY_CORRUPT, buf_str(&b->key),
		     "the packed text is not what a document is packed to");
	b->broken = true;
	return STATUS_OK;
}

enum status
verify_body_leaf(struct verify *v, struct verify_body *b, struct str path, struct str value)
{
	enum status status;

	v->sum.leaves++;
	if (!b->root && !b->broken)
		verify_found(v, REV_FINDING_BODY_ROOT, buf_str(&b->key),
			     "leaves lie here, and no root");
	if (b->packed && !b->broken)
		verify_found(v, REV_FINDING_BODY_CORRUPT, buf_str(&b->key),
			     "leaves lie below a packed document");
	b->broken = b->broken || !b->root || b->packed;
	if (b->broken)
		return STATUS_OK;
	/* Nobody wants the text, so that a document of any size needs the room of one leaf. */
	buf_clear(&b->out);
	status = doc_assemble_leaf(&b->assembler, path, value);
	if (status == STATUS_CORRUPT) {
		buf_clear(&v->key);
		buf_append_str(&v->key, buf_str(&b->key));
		buf_append_str(&v->key, path);
		verify_found(v, REV_FINDING_BODY_CORRUPT, buf_str(&v->key),
			     "no document can have this leaf at this place");
		b->broken = true;
		return STATUS_OK;
	}
	return status;
}

enum status
verify_body_end(struct verify *v, struct verify_body *b)
{
	enum status status = STATUS_OK;

	if (b->open && b->root && !b->packed && !b->broken) {
		buf_clear(&b->out);
		status = doc_assemble_end(&b->assembler);
	}
	if (status == STATUS_CORRUPT) {
		verify_found(v, REV_FINDING_BODY_CORRUPT, buf_str(&b->key),
			     "the leaves make no document");
		status = STATUS_OK;
	}
	b->open = false;
	return status;
}

/* ---- LOCAL ---- */

static enum status
local_pair(struct verify *v, struct verify_body *b, const struct verify_cursor *c)
{
	struct tuple_reader r = tuple_reader(c->tail);
	struct str id, root, packed = { NULL, 0 };
	uint64_t n;

	if (!verify_text_next(&r, TUPLE_STRING, &id)) {
		verify_found(v, REV_FINDING_KEY, c->pair.key, "not the key of a local document");
		return STATUS_OK;
	}
	root = str_of(c->pair.key.ptr, c->prefix_len + id.len);
	if (!b->open || !str_eq(root, buf_str(&b->key))) {
		TRY(verify_body_end(v, b));
		TRY(verify_body_begin(b, root));
	}
	if (r.rest.len)
		return verify_body_leaf(v, b, r.rest, c->pair.value);
	if (rev_local_root_parse(c->pair.value, &n, &packed) != STATUS_OK || n < 1)
		verify_found(v, REV_FINDING_VALUE, c->pair.key,
			     "not the form and the revision of a local document");
	return verify_body_root(v, b, packed);
}

enum status
verify_locals(struct verify *v)
{
	AUTO(verify_cursor_close) struct verify_cursor c = { .done = true };
	AUTO(verify_body_release) struct verify_body body;

	verify_body_init(&body);
	TRY(verify_cursor_open(v, &c, REV_SUBSPACE_LOCAL));
	while (!c.done) {
		TRY(local_pair(v, &body, &c));
		TRY(verify_cursor_next(v, &c));
	}
	return verify_body_end(v, &body);
}
