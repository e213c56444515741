#include "model/revisioned/revisioned_int.h"

size_t
rev_local_prefix_bytes(const struct rev_db *db, struct str id)
{
	return db->prefix.len + 2 + rev_encoded_bytes(id);
}

enum status
rev_local_root_parse(struct str value, uint64_t *ret, struct str *ret_packed)
{
	struct tuple_reader r = tuple_reader(value);
	enum doc_form form;

	TRY(doc_root_form(&r, &form));
	TRY(tuple_next_u64(&r, ret));
	return doc_root_end(&r, form, ret_packed, NULL);
}

/*
 * As CouchDB since 3.0 has it, nothing is compared: the revision after the one that the writer
 * names. These documents are their writer's own, checkpoints above all.
 */
enum status
rev_local_put(struct kv_tx *tx, const struct rev_db *db, struct str id, uint64_t parent,
	      const struct doc *doc, struct arena *arena, uint64_t *ret_rev, struct err *err)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct rev_doc body;

	TRY(rev_db_check_writable(db, err));
	if (id.len == 0)
		return err_set(err, STATUS_INVALID, "Document id must not be empty");
	if (id.len > REV_DOC_ID_BYTES)
		return err_set(err, STATUS_KEY_TOO_LARGE, "Document id is longer than %d bytes",
			       (int)REV_DOC_ID_BYTES);
	if (parent >= INT64_MAX)
		return err_set(err, STATUS_INVALID, "Invalid rev format");
	rev_key_named(&key, db, REV_SUBSPACE_LOCAL, id);
	TRY(rev_key_status(&key));
	TRY(rev_body_form(db, doc, arena, &body));
	TRY(doc_clear(tx, buf_str(&key)));
	tuple_put_u64(&value, body.packed.ptr ? DOC_FORM_PACKED : DOC_FORM_EXPLODED);
	tuple_put_u64(&value, parent + 1);
	if (body.packed.ptr)
		tuple_put_str(&value, body.packed);
	TRY(buf_status(&value));
	TRY(kv_set(tx, buf_str(&key), buf_str(&value)));
	TRY(doc_write(tx, buf_str(&key), body.leaves, body.count));
	*ret_rev = parent + 1;
	return STATUS_OK;
}

enum status
rev_local_get(struct kv_tx *tx, const struct rev_db *db, struct str id, struct arena *arena,
	      uint64_t *ret_rev, struct rev_doc *ret)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	struct rev_doc doc = { 0 };
	struct str root;
	bool found;

	rev_key_named(&key, db, REV_SUBSPACE_LOCAL, id);
	TRY(rev_body_read(tx, &key, arena, &found, &root, &doc));
	if (!found)
		return STATUS_NOT_FOUND;
	TRY(rev_local_root_parse(root, ret_rev, &doc.packed));
	if (doc.packed.ptr && doc.count)
		return STATUS_CORRUPT;
	*ret = doc;
	return STATUS_OK;
}

enum status
rev_local_delete(struct kv_tx *tx, const struct rev_db *db, struct str id, struct err *err)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	struct kv_future *f;
	struct str value;

	TRY(rev_db_check_writable(db, err));
	rev_key_named(&key, db, REV_SUBSPACE_LOCAL, id);
	TRY(rev_key_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return err_set(err, STATUS_NOT_FOUND, "missing");
	return doc_clear(tx, buf_str(&key));
}

/* The revision as rev_id_write() shows it: "0-N". */
static enum status
local_entry(struct arena *arena, struct str id, struct str value, struct rev_entry *ret)
{
	struct str packed;
	uint64_t n;

	TRY(rev_local_root_parse(value, &n, &packed));
	ret->id = id;
	ret->rev.pos = 0;
	ret->rev.hash = arena_printf(arena, "%llu", (unsigned long long)n);
	return ret->rev.hash.ptr ? STATUS_OK : STATUS_LIMIT;
}

/*
 * The leaves of local documents lie between their roots and are read over: these documents are few
 * and small, and a round trip for each of them would cost more.
 */
enum status
rev_local_page(struct kv_tx *tx, const struct rev_db *db, const struct rev_name_range *range,
	       struct arena *arena, struct rev_entry_page *ret)
{
	AUTO(buf_release) struct buf lo = REV_KEY_INIT;
	AUTO(buf_release) struct buf hi = REV_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_range_options options = {
		.limit_bytes = REV_PAGE_BYTES,
		.reverse = range->descending,
		.mode = KV_SNAPSHOT,
	};
	struct rev_entry_page page = { 0 };
	size_t cap = 0, bytes = 0, prefix_len;
	struct kv_pair pair;
	enum status status;

	rev_key_space(&lo, db, REV_SUBSPACE_LOCAL);
	prefix_len = lo.len;
	TRY(rev_range_bounds(range, REV_KEY_LAST, &lo, &hi));
	TRY(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct tuple_reader k = tuple_reader(str_skip(pair.key, prefix_len));
		struct tuple_elem e;

		bytes += pair.key.len + pair.value.len;
		if (tuple_next(&k, &e) != STATUS_OK)
			return STATUS_CORRUPT;
		if (k.rest.len)
			continue; /* a leaf */
		/* After at least one document: a page always gets further. */
		if (page.count >= range->limit || (bytes >= REV_PAGE_BYTES && page.last.ptr)) {
			page.more = true;
			break;
		}
		k = tuple_reader(str_skip(pair.key, prefix_len));
		TRY(rev_next_text(&k, TUPLE_STRING, arena, true, &page.last));
		if (page.skipped < range->skip) {
			page.skipped++;
			continue;
		}
		TRY(rev_array_grow(arena, (void **)&page.entries, sizeof(*page.entries), page.count,
				   &cap));
		TRY(local_entry(arena, page.last, pair.value, &page.entries[page.count]));
		page.count++;
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	*ret = page;
	return STATUS_OK;
}
