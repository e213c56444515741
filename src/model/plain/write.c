#include "model/plain/plain_int.h"

#include "base/quote.h"

/* ---- Documents as they come ---- */

/* The `_id`, which comes first. */
static enum status
doc_check(struct plain *p, const struct plain_doc *doc, struct bson_value *ret_id)
{
	struct bson_iter i;
	struct bson_element e;

	if (doc->bytes.len > BSON_DOCUMENT_BYTES)
		return err_set(p->err, STATUS_DOC_TOO_LARGE,
			       "a document may have %d bytes (BSON_DOCUMENT_BYTES)",
			       BSON_DOCUMENT_BYTES);
	if (doc->bytes.len > PLAIN_AHEAD_BYTES && !doc->staged)
		return err_set(p->err, STATUS_DOC_TOO_LARGE,
			       "a document of more than %d bytes has to be written ahead "
			       "(PLAIN_AHEAD_BYTES)",
			       PLAIN_AHEAD_BYTES);
	bson_iter_begin(&i, doc->bytes);
	if (!bson_iter_read(&i, &e) || !str_eq(e.name, STR("_id")))
		return err_set(p->err, STATUS_INVALID, "a document begins with its _id");
	*ret_id = e.value;
	return STATUS_OK;
}

/* ---- Records ---- */

static enum status
root_set(struct plain *p, struct str key, const struct plain_root *root)
{
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	(void)buf_reserve(&value, root->document.len + PLAIN_HEAD_BYTES);
	plain_root_put(root, &value);
	TRY(buf_status(&value));
	return kv_set(p->tx, key, buf_str(&value));
}

/* One conflict range over all leaves, which count less towards the transaction's size so. */
static enum status
put_leaves(struct plain *p, struct str key, const struct plain_root *root,
	   const struct plain_pairs *pairs)
{
	AUTO(buf_release) struct buf leaf = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	TRY(root_set(p, key, root));
	TRY(plain_key_end(key, &end));
	TRY(kv_add_write_conflict_range(p->tx, key, buf_str(&end)));
	for (size_t i = 0; i < pairs->count; i++) {
		buf_clear(&leaf);
		buf_append_str(&leaf, key);
		buf_append_str(&leaf, pairs->pairs[i].key);
		TRY(catalog_key_status(&leaf));
		TRY(kv_set_no_conflict(p->tx, buf_str(&leaf), pairs->pairs[i].value));
	}
	return STATUS_OK;
}

static enum status
plain_put_long_text(struct plain *p, struct str key, const struct plain_doc *doc,
		    struct arena *arena)
{
	struct plain_root root = { .form = PLAIN_FORM_TEXT, .length = doc->bytes.len };

	if (doc->staged) {
		memcpy(root.text, doc->text, sizeof(root.text));
		TRY(plain_text_publish(p, key, doc, arena));
	} else {
		TRY(plain_text_write(p, key, doc->bytes, root.text));
	}
	return root_set(p, key, &root);
}

enum status
plain_put_record(struct plain *p, struct str key, const struct plain_doc *doc, struct arena *arena)
{
	struct plain_root root = { .form = PLAIN_FORM_LEAVES, .length = doc->bytes.len };
	struct plain_pairs pairs;
	enum status status;

	TRY(doc_check(p, doc, &root.id));
	if (plain_scheme_of(p->db) == PLAIN_EXPLODED && !doc->staged) {
		status = plain_explode(doc->bytes, key.len, arena, &pairs, &root.next);
		if (status == STATUS_OK)
			return put_leaves(p, key, &root, &pairs);
		if (status != STATUS_UNSUPPORTED)
			return status;
	}
	if (doc->staged || doc->bytes.len > PLAIN_WHOLE_BYTES)
		return plain_put_long_text(p, key, doc, arena);
	root = (struct plain_root){ .form = PLAIN_FORM_WHOLE, .document = doc->bytes };
	return root_set(p, key, &root);
}

enum status
plain_clear_record(struct plain *p, struct str key, const struct plain_root *root)
{
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	if (root->form == PLAIN_FORM_TEXT)
		TRY(plain_text_clear(p, root->text));
	if (root->form != PLAIN_FORM_LEAVES)
		return kv_clear(p->tx, key);
	TRY(plain_key_end(key, &end));
	return kv_clear_range(p->tx, key, buf_str(&end));
}

static enum status
count_add(struct plain *p, int64_t change)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	TRY(plain_key_single(p->db, PLAIN_SPACE_COUNT, &key));
	return catalog_counter_add(p->tx, &key, change);
}

/* ---- Whole documents ---- */

static enum status
record_exists(struct plain *p, struct str key, bool *ret)
{
	struct kv_future *f = kv_get(p->tx, key, KV_READ);
	enum status status = kv_future_wait(f);
	struct str ignored;

	*ret = status == STATUS_OK && kv_future_value(f, &ignored);
	kv_future_free(f);
	return status;
}

enum status
plain_insert(struct plain *p, const struct plain_doc *doc, struct arena *arena)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct bson_value id;
	bool exists = false;

	TRY(doc_check(p, doc, &id));
	TRY(plain_key_record(p->db, &id, &key, p->err));
	if (!doc->is_new)
		TRY(record_exists(p, buf_str(&key), &exists));
	if (exists)
		return err_set(p->err, STATUS_EXISTS, "there is a document with this _id in %s",
			       QUOTE_SHOW(p->db->name));
	TRY(plain_write_begin(p, buf_str(&key)));
	if (plain_has_indexes(p))
		TRY(plain_index_change(p, &id, (struct str){ NULL, 0 }, doc->bytes, arena));
	TRY(plain_put_record(p, buf_str(&key), doc, arena));
	TRY(count_add(p, 1));
	return plain_log(p, PLAIN_EVENT_INSERT, &id, doc->bytes);
}

/* The root is written over, and needs no clearing. */
static enum status
clear_beside_root(struct plain *p, struct str key, const struct plain_root *root)
{
	if (root->form == PLAIN_FORM_TEXT)
		return plain_text_clear(p, root->text);
	return root->form == PLAIN_FORM_LEAVES ? plain_clear_record(p, key, root) : STATUS_OK;
}

static enum status
replace_root(struct plain *p, struct str key, const struct plain_root *old,
	     const struct bson_value *id, const struct plain_doc *doc, enum plain_event_kind kind,
	     struct str detail, struct arena *arena)
{
	struct str before;

	TRY(plain_write_begin(p, key));
	if (plain_has_indexes(p)) {
		TRY(plain_index_read(p, key, old, arena, &before));
		TRY(plain_index_change(p, id, before, doc->bytes, arena));
	}
	TRY(clear_beside_root(p, key, old));
	TRY(plain_put_record(p, key, doc, arena));
	return plain_log(p, kind, id, detail.len ? detail : doc->bytes);
}

enum status
plain_replace(struct plain *p, const struct plain_doc *doc, bool upsert, enum plain_event_kind kind,
	      struct str detail, struct arena *arena)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct plain_root old;
	struct bson_value id;
	enum status status;

	TRY(doc_check(p, doc, &id));
	TRY(plain_key_record(p->db, &id, &key, p->err));
	status = plain_get_root(p, buf_str(&key), KV_READ, arena, &old);
	if (status == STATUS_NOT_FOUND && upsert)
		return plain_insert(p, doc, arena);
	TRY(status);
	return replace_root(p, buf_str(&key), &old, &id, doc, kind, detail, arena);
}

enum status
plain_replace_whole(struct plain *p, const struct plain_doc *doc, struct str before,
		    enum plain_event_kind kind, struct str detail, struct arena *arena)
{
	const struct plain_root old = { .form = PLAIN_FORM_WHOLE, .document = before };
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct bson_value id;

	TRY(doc_check(p, doc, &id));
	TRY(plain_key_record(p->db, &id, &key, p->err));
	return replace_root(p, buf_str(&key), &old, &id, doc, kind, detail, arena);
}

enum status
plain_delete(struct plain *p, const struct bson_value *id, struct str detail, struct arena *arena)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct plain_root old;
	struct str before;

	TRY(plain_key_record(p->db, id, &key, p->err));
	TRY(plain_get_root(p, buf_str(&key), KV_READ, arena, &old));
	TRY(plain_write_begin(p, buf_str(&key)));
	if (plain_has_indexes(p)) {
		TRY(plain_index_read(p, buf_str(&key), &old, arena, &before));
		TRY(plain_index_change(p, id, before, (struct str){ NULL, 0 }, arena));
	}
	TRY(plain_clear_record(p, buf_str(&key), &old));
	TRY(count_add(p, -1));
	return plain_log(p, PLAIN_EVENT_DELETE, id, detail);
}
