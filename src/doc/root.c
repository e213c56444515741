#include "doc/root.h"

#include <assert.h>

#include "doc/doc.h"

/*
 * A packed text has no NUL in it, which JSON escapes, so the tuple's encoding of it is the text
 * itself between a type code and a NUL.
 */
void
doc_root_put(struct buf *value, const struct doc_root *root)
{
	assert((root->form == DOC_FORM_PACKED) == (root->packed.ptr != NULL));
	tuple_put_u64(value, root->form);
	if (root->form == DOC_FORM_PACKED)
		tuple_put_str(value, root->packed);
	if (root->form == DOC_FORM_CHUNKED) {
		tuple_put_uuid(value, root->text_id);
		tuple_put_u64(value, root->text_bytes);
	}
	if (root->form != DOC_FORM_EXPLODED && root->more)
		tuple_put_bool(value, true);
}

enum status
doc_root_next_form(struct tuple_reader *r, enum doc_form *ret, struct err *err)
{
	uint64_t form;

	if (tuple_next_u64(r, &form) != STATUS_OK || form == 0)
		return STATUS_CORRUPT;
	if (form > DOC_FORM_CHUNKED)
		return err_set(err, STATUS_NEWER,
			       "the body of a document was written by a newer frond: form %llu, "
			       "this one reads up to %d",
			       (unsigned long long)form, DOC_FORM_CHUNKED);
	*ret = (enum doc_form)form;
	return STATUS_OK;
}

enum status
doc_root_next_text(struct tuple_reader *r, struct str *ret)
{
	struct tuple_elem e;

	if (tuple_next(r, &e) != STATUS_OK || e.kind != TUPLE_STRING || e.escaped ||
	    e.raw.len < 2 || e.raw.ptr[0] != '{' || e.raw.ptr[e.raw.len - 1] != '}')
		return STATUS_CORRUPT;
	*ret = e.raw;
	return STATUS_OK;
}

/* What names a text in chunks, and its length. */
static enum status
read_text_id(struct tuple_reader *r, struct doc_root *root)
{
	struct tuple_elem e;

	if (tuple_next(r, &e) != STATUS_OK || e.kind != TUPLE_UUID)
		return STATUS_CORRUPT;
	memcpy(root->text_id, e.raw.ptr, sizeof(root->text_id));
	TRY(tuple_next_u64(r, &root->text_bytes));
	return root->text_bytes && root->text_bytes <= DOC_LIMIT_MAX_BYTES ? STATUS_OK
									   : STATUS_CORRUPT;
}

enum status
doc_root_read(struct str value, struct doc_root *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct doc_root root = { .packed = { NULL, 0 } };

	TRY(doc_root_next_form(&r, &root.form, err));
	if (root.form == DOC_FORM_PACKED)
		TRY(doc_root_next_text(&r, &root.packed));
	if (root.form == DOC_FORM_CHUNKED)
		TRY(read_text_id(&r, &root));
	if (root.form == DOC_FORM_EXPLODED)
		root.more = true;
	else if (r.rest.len && (tuple_next_bool(&r, &root.more) != STATUS_OK || !root.more))
		return STATUS_CORRUPT;
	if (r.rest.len)
		return STATUS_CORRUPT;
	*ret = root;
	return STATUS_OK;
}
