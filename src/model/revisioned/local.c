#include "doc/chunks.h"
#include "doc/packed.h"
#include "model/revisioned/body_int.h"
#include "model/revisioned/local_root.h"

enum {
	/*
	 * What leaves may take. The transaction has cleared the range that they lie in, so each
	 * counts again with a conflict range of its own, which is at most twice as much.
	 */
	LOCAL_LEAVES_BYTES = DOC_LEAVES_BYTES / 3,
};

/*
 * Gives the document the revision after the one that the writer names. As in CouchDB since 3.0, the
 * stored revision is not compared: each of these documents has one writer, such as a replicator
 * that keeps its checkpoint there.
 */
enum status
rev_local_put(struct kv_tx *tx, const struct catalog_db *db, struct str id, uint64_t parent,
	      const struct doc *doc, struct arena *arena, uint64_t *ret_rev, struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct rev_body_limits limits;
	struct rev_local_root root;
	struct rev_body body;

	TRY(catalog_db_check_writable(db, err));
	if (id.len == 0)
		return err_set(err, STATUS_INVALID, "Document id must not be empty");
	if (id.len > REV_DOC_ID_BYTES)
		return err_set(err, STATUS_KEY_TOO_LARGE, "Document id is longer than %d bytes",
			       (int)REV_DOC_ID_BYTES);
	if (parent >= INT64_MAX)
		return err_set(err, STATUS_INVALID, "Invalid rev format");
	rev_key_named(&key, db, REV_SUBSPACE_LOCAL, id);
	TRY(catalog_key_status(&key));
	limits = rev_body_limits(db, id);
	limits.prefix_bytes = key.len;
	limits.leaves_bytes = LOCAL_LEAVES_BYTES;
	TRY(rev_body_choose(doc, &limits, arena, &body));
	TRY(doc_clear(tx, buf_str(&key)));
	root = (struct rev_local_root){
		.form = body.root.form,
		.rev = parent + 1,
		.packed = body.root.packed,
		.text_bytes = body.root.text_bytes,
	};
	rev_local_root_put(&value, &root);
	TRY(buf_status(&value));
	TRY(kv_set(tx, buf_str(&key), buf_str(&value)));
	TRY(doc_write(tx, buf_str(&key), body.leaves, body.count));
	*ret_rev = parent + 1;
	if (root.form != DOC_FORM_CHUNKED)
		return STATUS_OK;
	tuple_put_null(&key);
	TRY(catalog_key_status(&key));
	return doc_chunks_write(tx, buf_str(&key), body.text);
}

/* Reads the leaves, with their paths as keys. The scan has passed the root already. */
static enum status
local_read_leaves(struct kv_scan *scan, size_t prefix_len, struct arena *arena, struct rev_doc *doc)
{
	struct kv_pair pair;
	enum status status;
	size_t cap = 0;

	while ((status = kv_scan_next(scan, &pair)) == STATUS_OK) {
		TRY(catalog_array_grow(arena, (void **)&doc->leaves, sizeof(pair), doc->count,
				       &cap));
		TRY(catalog_pair_copy(arena, str_skip(pair.key, prefix_len), pair.value,
				      &doc->leaves[doc->count]));
		doc->count++;
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Reads a packed text, which is in the root value or in chunks below the key. */
static enum status
local_read_text(struct kv_tx *tx, struct kv_scan *scan, struct buf *key,
		const struct rev_local_root *root, struct arena *arena, struct rev_doc *doc)
{
	struct kv_pair pair;
	enum status status;

	if (root->form == DOC_FORM_PACKED) {
		doc->packed = arena_dup(arena, root->packed);
		if (!doc->packed.ptr)
			return STATUS_LIMIT;
		status = kv_scan_next(scan, &pair);
		if (status == STATUS_OK) /* a packed document has nothing below it */
			return STATUS_CORRUPT;
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	}
	tuple_put_null(key);
	TRY(catalog_key_status(key));
	return doc_chunks_read(tx, buf_str(key), root->text_bytes, arena, &doc->packed);
}

enum status
rev_local_get(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct arena *arena,
	      uint64_t *ret_rev, struct rev_doc *ret)
{
	const struct kv_range_options options = { .mode = KV_READ };
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct rev_doc doc = { 0 };
	struct rev_local_root root;
	struct kv_pair pair;

	rev_key_named(&key, db, REV_SUBSPACE_LOCAL, id);
	TRY(catalog_key_status(&key));
	buf_append_buf(&end, &key);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	TRY(kv_scan_init(&scan, tx, buf_str(&key), buf_str(&end), &options));
	TRY(kv_scan_next(&scan, &pair)); /* STATUS_NOT_FOUND: there is no such document */
	if (pair.key.len != key.len)     /* leaves without a root */
		return STATUS_CORRUPT;
	TRY(rev_local_root_read(pair.value, &root, kv_tx_err(tx)));
	if (root.form == DOC_FORM_EXPLODED)
		TRY(local_read_leaves(&scan, key.len, arena, &doc));
	else
		TRY(local_read_text(tx, &scan, &key, &root, arena, &doc));
	*ret_rev = root.rev;
	*ret = doc;
	return STATUS_OK;
}

enum status
rev_local_delete(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value;

	TRY(catalog_db_check_writable(db, err));
	rev_key_named(&key, db, REV_SUBSPACE_LOCAL, id);
	TRY(catalog_key_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return err_set(err, STATUS_NOT_FOUND, "missing");
	return doc_clear(tx, buf_str(&key));
}

/* Parses a root value. The revision gets the form that rev_id_write() shows as "0-N". */
static enum status
local_parse_entry(struct kv_tx *tx, struct arena *arena, struct str id, struct str value,
		  struct rev_entry *ret)
{
	struct rev_local_root root;

	TRY(rev_local_root_read(value, &root, kv_tx_err(tx)));
	ret->id = id;
	ret->rev.pos = 0;
	ret->rev.hash = arena_printf(arena, "%llu", (unsigned long long)root.rev);
	return ret->rev.hash.ptr ? STATUS_OK : STATUS_LIMIT;
}

/*
 * The leaves of local documents lie between their roots, and the scan reads and ignores them. These
 * documents are few and small, so a round trip for each root would cost more.
 */
enum status
rev_local_page(struct kv_tx *tx, const struct catalog_db *db, const struct name_range *range,
	       struct arena *arena, struct rev_entry_page *ret)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_range_options options = {
		.limit_bytes = CATALOG_PAGE_BYTES,
		.reverse = range->descending,
		.mode = KV_SNAPSHOT,
	};
	struct rev_entry_page page = { 0 };
	size_t cap = 0, bytes = 0, prefix_len;
	struct kv_pair pair;
	enum status status;

	rev_key_space(&lo, db, REV_SUBSPACE_LOCAL);
	TRY(catalog_key_status(&lo));
	prefix_len = lo.len;
	TRY(name_range_bounds(range, CATALOG_KEY_LAST, &lo, &hi));
	TRY(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct tuple_reader k = tuple_reader(str_skip(pair.key, prefix_len));
		struct tuple_elem e;

		bytes += pair.key.len + pair.value.len;
		if (tuple_next(&k, &e) != STATUS_OK)
			return STATUS_CORRUPT;
		if (k.rest.len)
			continue; /* a leaf */
		/* A page ends behind at least one document, so that each page makes progress. */
		if (page.count >= range->limit || (bytes >= CATALOG_PAGE_BYTES && page.last.ptr)) {
			page.more = true;
			break;
		}
		k = tuple_reader(str_skip(pair.key, prefix_len));
		TRY(catalog_next_text(&k, TUPLE_STRING, arena, true, &page.last));
		if (page.skipped < range->skip) {
			page.skipped++;
			continue;
		}
		TRY(catalog_array_grow(arena, (void **)&page.entries, sizeof(*page.entries),
				       page.count, &cap));
		TRY(local_parse_entry(tx, arena, page.last, pair.value, &page.entries[page.count]));
		page.count++;
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	*ret = page;
	return STATUS_OK;
}
