/* Reading bodies: a root with a packed document, or with leaves, and attachments beside them. */
#include "model/revisioned/revisioned_int.h"

enum {
	/* Pairs that a scan passes over on its way to the next document that is wanted. */
	SCAN_PASSES = 16,
};

/* ---- A body out of its pairs ---- */

struct body {
	struct rev_doc *doc;
	struct rev_att_list atts;
	size_t cap;
	bool found; /* the root */
	struct str root;
};

static struct body
body_begin(struct rev_doc *doc)
{
	doc->leaves = NULL;
	doc->count = 0;
	doc->atts = NULL;
	doc->atts_count = 0;
	return (struct body){ .doc = doc };
}

/* The next pair, by its path below the root. */
static enum status
body_add(struct body *b, struct str path, struct str value, struct arena *arena)
{
	struct kv_pair copy;

	TRY(rev_pair_copy(arena, path, value, &copy));
	if (b->found && str_starts_with(copy.key, REV_ATT_MARK))
		return rev_att_list_add(&b->atts, copy.key, copy.value, arena);
	if (!b->found) {
		if (copy.key.len) /* leaves without a root */
			return STATUS_CORRUPT;
		b->found = true;
		b->root = copy.value;
		return STATUS_OK;
	}
	TRY(rev_array_grow(arena, (void **)&b->doc->leaves, sizeof(copy), b->doc->count, &b->cap));
	b->doc->leaves[b->doc->count++] = copy;
	return STATUS_OK;
}

static void
body_end(struct body *b)
{
	rev_att_list_sort(&b->atts);
	b->doc->atts = b->atts.atts;
	b->doc->atts_count = b->atts.count;
}

/* A revision's, when all of it is there. */
static enum status
body_root(const struct body *b)
{
	if (!b->found)
		return STATUS_NOT_FOUND;
	TRY(doc_root_read(b->root, &b->doc->packed, NULL));
	return b->doc->packed.ptr && b->doc->count ? STATUS_CORRUPT : STATUS_OK;
}

/* ---- By a range ---- */

/* Asks for everything from the key in `key` on, which is a root's. */
static enum status
scan_ask(struct kv_tx *tx, struct buf *key, size_t limit_bytes, struct kv_scan *ret)
{
	const struct kv_range_options options = { .limit_bytes = limit_bytes, .mode = KV_READ };
	size_t prefix_len = key->len;
	enum status status;

	if (buf_reserve(key, prefix_len + 1)) {
		buf_append(key, key->ptr, prefix_len);
		buf_append_byte(key, REV_KEY_LAST);
	}
	TRY(rev_key_status(key));
	status = kv_scan_init(ret, tx, str_of(key->ptr, prefix_len),
			      str_of(key->ptr + prefix_len, key->len - prefix_len), &options);
	key->len = prefix_len;
	return status;
}

static enum status
scan_take(struct kv_scan *scan, size_t prefix_len, struct arena *arena, struct body *b)
{
	struct kv_pair pair;
	enum status status;

	while ((status = kv_scan_next(scan, &pair)) == STATUS_OK)
		TRY(body_add(b, str_skip(pair.key, prefix_len), pair.value, arena));
	body_end(b);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
rev_body_read(struct kv_tx *tx, struct buf *key, struct arena *arena, bool *ret_found,
	      struct str *ret_root, struct rev_doc *ret)
{
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct body b = body_begin(ret);

	TRY(rev_key_status(key));
	TRY(scan_ask(tx, key, 0, &scan));
	TRY(scan_take(&scan, key->len, arena, &b));
	*ret_found = b.found;
	*ret_root = b.root;
	return STATUS_OK;
}

/* ---- One revision ---- */

static enum status
read_init(struct rev_doc_read *read, const struct rev_db *db, struct str id, struct rev_id rev,
	  bool deleted)
{
	*read = (struct rev_doc_read){ .rev = rev, .deleted = deleted, .key = REV_KEY_INIT };
	read->scan.done = true;
	rev_key_rev(&read->key, db, REV_SUBSPACE_DOCUMENTS, id, deleted, rev);
	return rev_key_status(&read->key);
}

/* `limit_bytes`: of what is asked for at once; 0: all of it. */
static enum status
doc_ask(struct kv_tx *tx, const struct rev_db *db, size_t limit_bytes, struct rev_doc_read *read)
{
	read->tx = tx;
	if (db->scheme != REV_SCHEME_PACKED)
		return scan_ask(tx, &read->key, limit_bytes, &read->scan);
	read->root = kv_get(tx, buf_str(&read->key), KV_READ);
	return STATUS_OK;
}

/* Takes the root alone, if that is all there is; otherwise asks for everything. */
static enum status
root_take(struct rev_doc_read *read, struct arena *arena, bool *ret_all, struct rev_doc *ret)
{
	struct str value;
	bool more;

	*ret_all = false;
	TRY(kv_future_wait(read->root));
	if (!kv_future_value(read->root, &value))
		return STATUS_NOT_FOUND;
	TRY(doc_root_read(value, &ret->packed, &more));
	if (more) {
		ret->packed = (struct str){ NULL, 0 };
		return scan_ask(read->tx, &read->key, 0, &read->scan);
	}
	ret->packed = arena_dup(arena, ret->packed);
	*ret_all = true;
	return ret->packed.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
doc_take(struct rev_doc_read *read, struct arena *arena, struct rev_doc *ret)
{
	struct rev_doc doc = { .rev = read->rev, .deleted = read->deleted };
	struct body b = body_begin(&doc);
	bool all = false;

	if (read->root)
		TRY(root_take(read, arena, &all, &doc));
	if (!all) {
		TRY(scan_take(&read->scan, read->key.len, arena, &b));
		TRY(body_root(&b));
	}
	*ret = doc;
	return STATUS_OK;
}

static void
read_release(struct rev_doc_read *read)
{
	kv_future_free(read->root);
	read->root = NULL;
	kv_scan_release(&read->scan);
	buf_release(&read->key);
}

enum status
rev_doc_read_leaf(struct kv_tx *tx, const struct rev_db *db, struct str id, struct rev_id rev,
		  bool deleted, struct arena *arena, struct rev_doc *ret)
{
	AUTO(read_release) struct rev_doc_read read = { 0 };

	TRY(read_init(&read, db, id, rev, deleted));
	TRY(doc_ask(tx, db, 0, &read));
	return doc_take(&read, arena, ret);
}

/* ---- Many revisions ---- */

enum status
rev_ahead_init(struct rev_ahead *a, struct kv_tx *tx, const struct rev_db *db, struct arena *arena)
{
	*a = (struct rev_ahead){
		.tx = tx,
		.db = db,
		.reads = arena_zalloc(arena, REV_AHEAD * sizeof(*a->reads)),
		.bound = REV_KEY_INIT,
	};
	a->scan.done = true;
	return a->reads ? STATUS_OK : STATUS_LIMIT;
}

enum status
rev_ahead_scan(struct rev_ahead *a, struct str last_id)
{
	rev_key_named(&a->bound, a->db, REV_SUBSPACE_DOCUMENTS, last_id);
	buf_append_byte(&a->bound, REV_KEY_LAST);
	a->scanning = true;
	return rev_key_status(&a->bound);
}

bool
rev_ahead_has_room(const struct rev_ahead *a)
{
	return a->asked - a->taken < REV_AHEAD;
}

enum status
rev_ahead_ask(struct rev_ahead *a, struct str id, struct rev_id rev, bool deleted)
{
	struct rev_doc_read *read = &a->reads[a->asked % REV_AHEAD];

	TRY(read_init(read, a->db, id, rev, deleted));
	a->asked++;
	return a->scanning ? STATUS_OK : doc_ask(a->tx, a->db, REV_AHEAD_BYTES, read);
}

/* Lets the scan go on from `key`. */
static enum status
pass_to(struct rev_ahead *a, struct str key)
{
	const struct kv_range_options options = { .limit_bytes = REV_PAGE_BYTES, .mode = KV_READ };

	kv_scan_release(&a->scan);
	a->has_pair = false;
	return kv_scan_init(&a->scan, a->tx, key, buf_str(&a->bound), &options);
}

/* The pair that the scan stands at; STATUS_NOT_FOUND at its end. */
static enum status
scan_pair(struct rev_ahead *a)
{
	if (a->has_pair)
		return STATUS_OK;
	TRY(kv_scan_next(&a->scan, &a->pair));
	a->has_pair = true;
	return STATUS_OK;
}

/* Behind `key` comes another element, or nothing: FF would go on with a string that has a NUL. */
static bool
is_below(struct str key, struct str root)
{
	return str_starts_with(key, root) &&
	       (key.len == root.len || (uint8_t)key.ptr[root.len] != REV_KEY_LAST);
}

/* Goes to the first pair that is not before `root`. */
static enum status
scan_to(struct rev_ahead *a, struct str root)
{
	enum status status;

	if (a->scan.done && !a->has_pair)
		TRY(pass_to(a, root));
	for (size_t passed = 0; (status = scan_pair(a)) == STATUS_OK; passed++) {
		if (str_cmp(a->pair.key, root) >= 0)
			return STATUS_OK;
		a->has_pair = false;
		if (passed == SCAN_PASSES)
			TRY(pass_to(a, root));
	}
	return status;
}

static enum status
scan_body(struct rev_ahead *a, const struct rev_doc_read *read, struct arena *arena,
	  struct rev_doc *ret)
{
	struct rev_doc doc = { .rev = read->rev, .deleted = read->deleted };
	struct str root = buf_str(&read->key);
	struct body b = body_begin(&doc);
	enum status status;

	TRY(scan_to(a, root));
	while ((status = scan_pair(a)) == STATUS_OK && is_below(a->pair.key, root)) {
		TRY(body_add(&b, str_skip(a->pair.key, root.len), a->pair.value, arena));
		a->has_pair = false;
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	body_end(&b);
	TRY(body_root(&b));
	*ret = doc;
	return STATUS_OK;
}

enum status
rev_ahead_take(struct rev_ahead *a, struct arena *arena, struct rev_doc *ret)
{
	struct rev_doc_read *read = &a->reads[a->taken % REV_AHEAD];
	enum status status;

	status = a->scanning ? scan_body(a, read, arena, ret) : doc_take(read, arena, ret);
	read_release(read);
	a->taken++;
	return status;
}

void
rev_ahead_release(struct rev_ahead *a)
{
	for (; a->taken < a->asked; a->taken++)
		read_release(&a->reads[a->taken % REV_AHEAD]);
	kv_scan_release(&a->scan);
	buf_release(&a->bound);
	a->reads = NULL;
}
