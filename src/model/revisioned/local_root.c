#include "model/revisioned/local_root.h"

#include "doc/doc.h"

void
rev_local_root_put(struct buf *value, const struct rev_local_root *root)
{
	buf_clear(value);
	tuple_put_u64(value, root->form);
	tuple_put_u64(value, root->rev);
	if (root->form == DOC_FORM_PACKED)
		tuple_put_str(value, root->packed);
	if (root->form == DOC_FORM_CHUNKED)
		tuple_put_u64(value, root->text_bytes);
}

enum status
rev_local_root_read(struct str value, struct rev_local_root *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct rev_local_root root = { .packed = { NULL, 0 } };

	TRY(doc_root_next_form(&r, &root.form, err));
	TRY(tuple_next_u64(&r, &root.rev));
	if (root.form == DOC_FORM_PACKED)
		TRY(doc_root_next_text(&r, &root.packed));
	if (root.form == DOC_FORM_CHUNKED)
		TRY(tuple_next_u64(&r, &root.text_bytes));
	if (r.rest.len || root.text_bytes > DOC_LIMIT_MAX_BYTES)
		return STATUS_CORRUPT;
	*ret = root;
	return STATUS_OK;
}
