/* Reading bodies: a root with a packed document, or with leaves, and attachments beside them. */
#include <assert.h>
#include <stdlib.h>

#include "base/budget.h"
#include "base/metric.h"
#include "doc/chunks.h"
#include "doc/root.h"
#include "loop/step.h"
#include "model/revisioned/revisioned_int.h"

enum {
	/* A scan skips at most so many pairs on its way to the next document that is wanted. */
	SCAN_PASSES = 16,
	/* A scan has to bring so many bodies before another scan is begun further on. */
	SCAN_WORTH = 8,
	/* If it brings fewer, each body is read by itself for so many windows. */
	SPARSE_WINDOWS = 8,
	/*
	 * A window is the bodies that are read together: their number, and the memory that they may
	 * take. A single larger document is read by itself.
	 */
	WINDOW_FIRST = 64,
	WINDOW_LEAST = 16,
	WINDOW_MOST = 512,
	WINDOW_BYTES = 256 * 1024,
	LEAF_BYTES_A_STEP = 1024, /* that are copied */
};

/* ---- A body out of its pairs ---- */

struct body_parts {
	struct rev_doc *doc;
	struct err *err; /* of the transaction that reads it: explains a record of a newer frond */
	struct rev_att_list atts;
	size_t cap;
	bool found; /* the root */
	struct doc_root root;
};

static struct body_parts
body_parts_begin(struct rev_doc *doc, struct kv_tx *tx)
{
	doc->leaves = NULL;
	doc->count = 0;
	doc->atts = NULL;
	doc->atts_count = 0;
	doc->text_bytes = 0;
	return (struct body_parts){ .doc = doc, .err = kv_tx_err(tx) };
}

/* Adds the next pair, whose key below the root is `path`. The root comes first. */
static enum status
body_parts_add(struct body_parts *b, struct str path, struct str value, struct arena *arena)
{
	struct kv_pair copy;

	TRY(step_count(1 + (uint32_t)(value.len / LEAF_BYTES_A_STEP)));
	TRY(catalog_pair_copy(arena, path, value, &copy));
	if (b->found && str_starts_with(copy.key, REV_ATT_MARK))
		return rev_att_list_add(&b->atts, copy.key, copy.value, arena, b->err);
	if (!b->found) {
		if (copy.key.len) /* leaves without a root */
			return STATUS_CORRUPT;
		b->found = true;
		return doc_root_read(copy.value, &b->root, b->err);
	}
	TRY(catalog_array_grow(arena, (void **)&b->doc->leaves, sizeof(copy), b->doc->count,
			       &b->cap));
	b->doc->leaves[b->doc->count++] = copy;
	return STATUS_OK;
}

static void
body_parts_sort_atts(struct body_parts *b)
{
	rev_att_list_sort(&b->atts);
	b->doc->atts = b->atts.atts;
	b->doc->atts_count = b->atts.count;
}

/*
 * Called when all pairs of a revision have come. STATUS_NOT_FOUND if there were none, and
 * STATUS_CORRUPT for leaves below a packed body.
 */
static enum status
body_parts_settle_root(const struct body_parts *b)
{
	if (!b->found)
		return STATUS_NOT_FOUND;
	b->doc->packed = b->root.packed;
	return b->root.form != DOC_FORM_EXPLODED && b->doc->count ? STATUS_CORRUPT : STATUS_OK;
}

/* Reads the text of a body in chunks. */
static enum status
body_read_chunks(struct kv_tx *tx, const struct catalog_db *db, const struct doc_root *root,
		 struct arena *arena, struct rev_doc *doc)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	rev_key_att(&key, db, REV_ATT_SPACE_DATA, root->text_id);
	TRY(catalog_key_status(&key));
	memcpy(doc->text_id, root->text_id, sizeof(doc->text_id));
	doc->text_bytes = root->text_bytes;
	return doc_chunks_read(tx, buf_str(&key), root->text_bytes, arena, &doc->packed);
}

/* ---- By a range ---- */

/* Asks for all pairs of one body. `key` holds the key of its root, and does so again afterwards. */
static enum status
body_scan_begin(struct kv_tx *tx, struct buf *key, size_t limit_bytes, enum kv_read mode,
		struct kv_scan *ret)
{
	const struct kv_range_options options = { .limit_bytes = limit_bytes, .mode = mode };
	size_t prefix_len = key->len;
	enum status status;

	if (buf_reserve(key, prefix_len + 1)) {
		buf_append(key, key->ptr, prefix_len);
		buf_append_byte(key, CATALOG_KEY_LAST);
	}
	TRY(catalog_key_status(key));
	status = kv_scan_init(ret, tx, str_of(key->ptr, prefix_len),
			      str_of(key->ptr + prefix_len, key->len - prefix_len), &options);
	key->len = prefix_len;
	return status;
}

static enum status
body_scan_collect(struct kv_scan *scan, size_t prefix_len, struct arena *arena,
		  struct body_parts *b)
{
	struct kv_pair pair;
	enum status status;

	while ((status = kv_scan_next(scan, &pair)) == STATUS_OK)
		TRY(body_parts_add(b, str_skip(pair.key, prefix_len), pair.value, arena));
	body_parts_sort_atts(b);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- One revision ---- */

static enum status
doc_read_init(struct rev_doc_read *read, const struct catalog_db *db, struct str id,
	      struct rev_id rev, bool deleted)
{
	*read = (struct rev_doc_read){ .rev = rev, .deleted = deleted, .key = CATALOG_KEY_INIT };
	read->scan.done = true;
	rev_key_rev(&read->key, db, REV_SUBSPACE_DOCUMENTS, id, deleted, rev);
	return catalog_key_status(&read->key);
}

/* Issues the first read of the body. `limit_bytes` bounds what comes at once; 0 is no bound. */
static enum status
doc_read_ask(struct kv_tx *tx, const struct catalog_db *db, size_t limit_bytes, enum kv_read mode,
	     struct rev_doc_read *read)
{
	read->tx = tx;
	read->mode = mode;
	if (rev_db_scheme(db) != REV_SCHEME_PACKED)
		return body_scan_begin(tx, &read->key, limit_bytes, mode, &read->scan);
	read->root = kv_get(tx, buf_str(&read->key), mode);
	return STATUS_OK;
}

/*
 * Waits for the root value. If nothing else belongs to the body, `*ret` is complete and `*ret_all`
 * is true. Otherwise a scan of all its pairs is begun.
 */
static enum status
doc_read_finish_root(struct rev_doc_read *read, const struct catalog_db *db, struct arena *arena,
		     bool *ret_all, struct rev_doc *ret)
{
	struct doc_root root;
	struct str value;

	*ret_all = false;
	TRY(kv_future_wait(read->root));
	if (!kv_future_value(read->root, &value))
		return STATUS_NOT_FOUND;
	TRY(doc_root_read(value, &root, kv_tx_err(read->tx)));
	if (root.more)
		return body_scan_begin(read->tx, &read->key, 0, read->mode, &read->scan);
	*ret_all = true;
	if (root.form == DOC_FORM_CHUNKED)
		return body_read_chunks(read->tx, db, &root, arena, ret);
	ret->packed = arena_dup(arena, root.packed);
	return ret->packed.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
doc_read_finish(struct rev_doc_read *read, const struct catalog_db *db, struct arena *arena,
		struct rev_doc *ret)
{
	struct rev_doc doc = { .rev = read->rev, .deleted = read->deleted };
	struct body_parts b = body_parts_begin(&doc, read->tx);
	bool all = false;

	if (read->root)
		TRY(doc_read_finish_root(read, db, arena, &all, &doc));
	if (!all) {
		TRY(body_scan_collect(&read->scan, read->key.len, arena, &b));
		TRY(body_parts_settle_root(&b));
		if (b.root.form == DOC_FORM_CHUNKED)
			TRY(body_read_chunks(read->tx, db, &b.root, arena, &doc));
	}
	*ret = doc;
	return STATUS_OK;
}

static void
doc_read_release(struct rev_doc_read *read)
{
	kv_future_free(read->root);
	read->root = NULL;
	kv_scan_release(&read->scan);
	buf_release(&read->key);
}

METRIC_COUNTER(docs_read, "frond_document_reads_total", METRIC_NUMBER,
	       "Bodies of documents that were read, _local ones aside.");

enum status
rev_doc_read_head(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct rev_id rev,
		  bool deleted, struct arena *arena, struct rev_doc *ret)
{
	AUTO(doc_read_release) struct rev_doc_read read = { 0 };

	TRY(doc_read_init(&read, db, id, rev, deleted));
	TRY(doc_read_ask(tx, db, 0, KV_READ, &read));
	TRY(doc_read_finish(&read, db, arena, ret));
	metric_add(&docs_read, 1);
	return STATUS_OK;
}

/* ---- A body out of the last keys of its document ---- */

/* Whether a key is the root's or lies below it, and not below a longer hash that goes on so. */
static bool
key_is_of_root(struct str key, struct str root)
{
	return str_starts_with(key, root) &&
	       (key.len == root.len || (uint8_t)key.ptr[root.len] != CATALOG_KEY_LAST);
}

enum status
rev_body_take_last(struct kv_tx *tx, const struct catalog_db *db, const struct kv_range *last,
		   struct str root, struct arena *arena, bool *ret_whole, struct rev_doc *doc)
{
	struct body_parts b = body_parts_begin(doc, tx);
	size_t count = 0;

	while (count < last->count && key_is_of_root(last->pairs[count].key, root))
		count++;
	*ret_whole = count == 0 || str_eq(last->pairs[count - 1].key, root);
	if (!*ret_whole)
		return STATUS_OK;
	for (size_t i = count; i > 0; i--)
		TRY(body_parts_add(&b, str_skip(last->pairs[i - 1].key, root.len),
				   last->pairs[i - 1].value, arena));
	body_parts_sort_atts(&b);
	TRY(body_parts_settle_root(&b));
	metric_add(&docs_read, 1);
	return b.root.form == DOC_FORM_CHUNKED ? body_read_chunks(tx, db, &b.root, arena, doc)
					       : STATUS_OK;
}

enum status
rev_body_read_all(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct arena *arena,
		  struct rev_doc *doc)
{
	AUTO(doc_read_release) struct rev_doc_read read = { 0 };

	TRY(doc_read_init(&read, db, id, doc->rev, doc->deleted));
	read.tx = tx;
	read.mode = KV_READ;
	TRY(body_scan_begin(tx, &read.key, 0, read.mode, &read.scan));
	TRY(doc_read_finish(&read, db, arena, doc));
	metric_add(&docs_read, 1);
	return STATUS_OK;
}

/* ---- Many revisions ---- */

enum item_state {
	ITEM_UNREAD,
	ITEM_ABSENT,
	ITEM_READ,
	ITEM_ASKED,
};

/* One of the bodies that are read together. */
struct rev_ahead_item {
	const struct rev_want *want;
	struct str key; /* of the root */
	enum item_state state;
	struct rev_doc doc;        /* READ */
	struct rev_doc_read *read; /* ASKED */
};

/* The memory that the bodies of a window may take. */
static size_t
ahead_window_bytes(const struct rev_ahead *a)
{
	size_t stretch = kv_tx_stretch_bytes(a->tx);

	return stretch && stretch < WINDOW_BYTES ? stretch : WINDOW_BYTES;
}

static enum status
ahead_init_once(struct rev_ahead *a, struct kv_tx *tx, const struct catalog_db *db,
		struct budget_part *part)
{
	if (a->arena)
		return STATUS_OK;
	*a = (struct rev_ahead){
		.tx = tx,
		.db = db,
		.arena = arena_new(REV_AHEAD_ARENA_BYTES),
		.window = WINDOW_FIRST,
		.key = CATALOG_KEY_INIT,
		.bound = CATALOG_KEY_INIT,
	};
	if (!a->arena)
		return STATUS_NOMEM;
	arena_set_part(a->arena, part);
	return STATUS_OK;
}

/* A scan ends behind the last body that is wanted, or goes on if `more` are wanted afterwards. */
static enum status
ahead_set_scan_end(struct rev_ahead *a, bool more)
{
	const struct rev_want *last = NULL;

	rev_key_space(&a->bound, a->db, REV_SUBSPACE_DOCUMENTS);
	for (size_t i = 0; !more && i < a->count; i++)
		if (!last || str_cmp(a->wants[i].id, last->id) > 0)
			last = &a->wants[i];
	if (last)
		rev_key_named(&a->bound, a->db, REV_SUBSPACE_DOCUMENTS, last->id);
	buf_append_byte(&a->bound, CATALOG_KEY_LAST);
	return catalog_key_status(&a->bound);
}

enum status
rev_ahead_begin(struct rev_ahead *a, struct kv_tx *tx, const struct catalog_db *db,
		struct budget_part *part, const struct rev_want *wants, size_t count, bool more)
{
	TRY(ahead_init_once(a, tx, db, part));
	a->wants = wants;
	a->count = count;
	a->taken = 0;
	a->first = 0;
	a->filled = 0;
	return ahead_set_scan_end(a, more);
}

void
rev_ahead_is_sparse(struct rev_ahead *a)
{
	if (!a->scanning)
		a->sparse = SPARSE_WINDOWS;
}

/* ---- By one range for many ---- */

/*
 * Begins a new scan at `root`. If the last scan brought too few bodies, the wanted documents lie
 * far apart: then no scan is begun, and `*ret_worth` is false.
 */
static enum status
ahead_scan_restart(struct rev_ahead *a, struct str root, bool *ret_worth)
{
	const struct kv_range_options options = {
		.limit_bytes = CATALOG_PAGE_BYTES,
		.ahead = true,
		.mode = KV_SNAPSHOT,
	};

	*ret_worth = !a->scanning || a->served >= SCAN_WORTH;
	if (a->scanning)
		kv_scan_release(&a->scan);
	a->scanning = *ret_worth;
	a->has_pair = false;
	a->served = 0;
	if (!*ret_worth)
		return STATUS_OK;
	return kv_scan_init(&a->scan, a->tx, root, buf_str(&a->bound), &options);
}

/* Makes a->pair the pair at which the scan stands. STATUS_NOT_FOUND at the end of the scan. */
static enum status
ahead_scan_peek(struct rev_ahead *a)
{
	if (a->has_pair)
		return STATUS_OK;
	TRY(kv_scan_next(&a->scan, &a->pair));
	a->has_pair = true;
	return STATUS_OK;
}

/* Moves the scan to the first pair that does not sort before `root`, or to its end. */
static enum status
ahead_scan_seek(struct rev_ahead *a, struct str root, bool *ret_worth)
{
	size_t passed = 0;

	*ret_worth = true;
	if (!a->scanning || str_cmp(root, buf_str(&a->key)) <= 0)
		TRY(ahead_scan_restart(a, root, ret_worth));
	while (*ret_worth) {
		enum status status = ahead_scan_peek(a);

		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		TRY(status);
		if (str_cmp(a->pair.key, root) >= 0)
			return STATUS_OK;
		if (passed++ == SCAN_PASSES)
			TRY(ahead_scan_restart(a, root, ret_worth));
		a->has_pair = false;
	}
	return STATUS_OK;
}

/*
 * True if the key is `root` or lies below it. A byte FF behind `root` belongs to another key, whose
 * last string goes on with an escaped NUL.
 */
static bool
key_is_below_root(struct str key, struct str root)
{
	return str_starts_with(key, root) &&
	       (key.len == root.len || (uint8_t)key.ptr[root.len] != CATALOG_KEY_LAST);
}

/*
 * True if the pair under the scan is a whole packed document. The item's text then points into the
 * scan's buffer, and is valid until the scan moves.
 */
static bool
ahead_borrow_packed(struct rev_ahead *a, struct rev_ahead_item *item)
{
	struct doc_root root;

	if (ahead_scan_peek(a) != STATUS_OK || !str_eq(a->pair.key, item->key) ||
	    doc_root_read(a->pair.value, &root, NULL) != STATUS_OK ||
	    root.form != DOC_FORM_PACKED || root.more)
		return false;
	item->doc.packed = root.packed;
	a->has_pair = false;
	return true;
}

/*
 * Reads the item's body from where the scan stands. A body that is too large for the window's arena
 * stays unread, and is read when it is taken.
 */
static enum status
ahead_scan_body(struct rev_ahead *a, struct rev_ahead_item *item, bool borrow, struct arena *arena)
{
	struct body_parts b = body_parts_begin(&item->doc, a->tx);
	size_t bytes = 0;
	enum status status;

	item->doc.rev = item->want->rev;
	item->doc.deleted = item->want->deleted;
	if (borrow && ahead_borrow_packed(a, item)) {
		item->state = ITEM_READ;
		a->served++;
		return STATUS_OK;
	}
	item->doc.packed = (struct str){ 0 };
	while ((status = ahead_scan_peek(a)) == STATUS_OK &&
	       key_is_below_root(a->pair.key, item->key)) {
		bytes += a->pair.value.len;
		if (bytes > ahead_window_bytes(a) && arena == a->arena)
			return STATUS_OK;
		TRY(body_parts_add(&b, str_skip(a->pair.key, item->key.len), a->pair.value, arena));
		a->has_pair = false;
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	body_parts_sort_atts(&b);
	status = body_parts_settle_root(&b);
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	/*
	 * A text in chunks is as large as many other bodies together. It is read when it is taken.
	 */
	if (b.found && b.root.form == DOC_FORM_CHUNKED)
		return STATUS_OK;
	item->state = b.found ? ITEM_READ : ITEM_ABSENT;
	a->served += b.found;
	return STATUS_OK;
}

static enum status
ahead_scan_item(struct rev_ahead *a, struct rev_ahead_item *item, bool borrow, struct arena *arena)
{
	bool worth;

	TRY(ahead_scan_seek(a, item->key, &worth));
	if (!worth) {
		a->sparse = SPARSE_WINDOWS;
		return STATUS_OK;
	}
	TRY(ahead_scan_body(a, item, borrow, arena));
	buf_clear(&a->key);
	buf_append_str(&a->key, item->key);
	return catalog_key_status(&a->key);
}

/*
 * Reads the bodies of the window in the order of their keys, by one scan. Stops when the window's
 * memory is used up, or when the bodies turn out to lie far apart.
 */
static enum status
ahead_scan_window(struct rev_ahead *a, struct rev_ahead_item *const *order, size_t *ret_done)
{
	for (size_t i = 0; i < a->filled; i++) {
		struct rev_ahead_item *item = order[i];

		if (arena_used_bytes(a->arena) > ahead_window_bytes(a))
			return STATUS_OK;
		if (i && str_eq(item->key, order[i - 1]->key)) {
			item->state = order[i - 1]->state;
			item->doc = order[i - 1]->doc;
		} else {
			TRY(ahead_scan_item(a, item, false, a->arena));
		}
		if (a->sparse)
			return STATUS_OK;
		*ret_done = i + 1;
	}
	return STATUS_OK;
}

/* ---- A read for each ---- */

static enum status
ahead_ask_items(struct rev_ahead *a)
{
	size_t asked = 0;

	for (size_t i = a->taken - a->first; i < a->filled && asked < REV_AHEAD; i++) {
		struct rev_ahead_item *item = &a->items[i];
		const struct rev_want *w = item->want;

		if (item->state != ITEM_UNREAD)
			continue;
		asked++;
		item->read = arena_zalloc(a->arena, sizeof(*item->read));
		if (!item->read)
			return STATUS_LIMIT;
		item->state = ITEM_ASKED;
		TRY(doc_read_init(item->read, a->db, w->id, w->rev, w->deleted));
		TRY(doc_read_ask(a->tx, a->db, REV_AHEAD_BYTES, KV_SNAPSHOT, item->read));
	}
	return STATUS_OK;
}

/* ---- A window of them ---- */

static int
ahead_compare_items(const void *a, const void *b)
{
	const struct rev_ahead_item *const *x = a;
	const struct rev_ahead_item *const *y = b;

	return str_cmp((*x)->key, (*y)->key);
}

/* Makes the items of the next `n` bodies. `*ret_order` has them in the order of their keys. */
static enum status
ahead_make_items(struct rev_ahead *a, size_t n, struct rev_ahead_item ***ret_order,
		 bool *ret_ascending)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	a->items = arena_zalloc(a->arena, n * sizeof(*a->items));
	*ret_order = arena_alloc(a->arena, n * sizeof(struct rev_ahead_item *));
	*ret_ascending = true;
	if (!a->items || !*ret_order)
		return STATUS_LIMIT;
	for (size_t i = 0; i < n; i++) {
		struct rev_ahead_item *item = &a->items[i];
		const struct rev_want *w = &a->wants[a->taken + i];

		rev_key_rev(&key, a->db, REV_SUBSPACE_DOCUMENTS, w->id, w->deleted, w->rev);
		TRY(catalog_key_status(&key));
		item->want = w;
		item->key = buf_dup(&key, a->arena);
		if (!item->key.ptr)
			return STATUS_LIMIT;
		(*ret_order)[i] = item;
		if (i && str_cmp(item[-1].key, item->key) >= 0)
			*ret_ascending = false;
	}
	if (!*ret_ascending)
		qsort(*ret_order, n, sizeof(struct rev_ahead_item *), ahead_compare_items);
	return STATUS_OK;
}

static void
ahead_drop_window(struct rev_ahead *a)
{
	for (size_t i = a->taken - a->first; i < a->filled; i++)
		if (a->items[i].state == ITEM_ASKED)
			doc_read_release(a->items[i].read);
	a->filled = 0;
	arena_clear(a->arena);
}

/* Changes the size of the next window so that its bodies fit into the memory it may take. */
static void
ahead_resize_window(struct rev_ahead *a, size_t done)
{
	if (done < a->filled)
		a->window = done > WINDOW_LEAST ? done : WINDOW_LEAST;
	else if (arena_used_bytes(a->arena) < ahead_window_bytes(a) / 2 && a->window < WINDOW_MOST)
		a->window *= 2;
}

static enum status
ahead_fill_window(struct rev_ahead *a)
{
	size_t most = a->sparse && a->window > REV_AHEAD ? REV_AHEAD : a->window;
	size_t left = a->count - a->taken;
	struct rev_ahead_item **order;
	size_t done = 0;

	ahead_drop_window(a);
	a->first = a->taken;
	TRY(ahead_make_items(a, left < most ? left : most, &order, &a->ascending));
	a->filled = left < most ? left : most;
	if (a->sparse) {
		a->sparse--;
		a->ascending = false;
		return ahead_ask_items(a);
	}
	/*
	 * Bodies that are wanted in the order of their keys need no memory: each is read when
	 * taken.
	 */
	if (a->ascending)
		return STATUS_OK;
	TRY(ahead_scan_window(a, order, &done));
	if (a->sparse)
		return ahead_ask_items(a);
	ahead_resize_window(a, done);
	return STATUS_OK;
}

/* Reads the next body of a window whose bodies are wanted in the order of their keys. */
static enum status
ahead_scan_wanted(struct rev_ahead *a, struct rev_ahead_item *item, struct arena *arena)
{
	TRY(ahead_scan_item(a, item, true, arena));
	if (!a->sparse)
		return STATUS_OK;
	a->ascending = false;
	return ahead_ask_items(a);
}

enum status
rev_ahead_take(struct rev_ahead *a, struct arena *arena, struct rev_doc *ret)
{
	struct rev_ahead_item *item;
	const struct rev_want *w;
	enum status status;

	if (a->taken - a->first == a->filled)
		TRY(ahead_fill_window(a));
	item = &a->items[a->taken - a->first];
	assert(a->taken < a->count && a->taken - a->first < a->filled);
	w = item->want;
	if (a->ascending)
		TRY(ahead_scan_wanted(a, item, arena));
	switch (item->state) {
	case ITEM_READ:
		*ret = item->doc;
		status = STATUS_OK;
		break;
	case ITEM_ABSENT:
		status = STATUS_NOT_FOUND;
		break;
	case ITEM_ASKED:
		status = doc_read_finish(item->read, a->db, arena, ret);
		doc_read_release(item->read);
		break;
	case ITEM_UNREAD:
	default:
		status = rev_doc_read_head(a->tx, a->db, w->id, w->rev, w->deleted, arena, ret);
		break;
	}
	a->taken++;
	/* What was left unread has been counted by rev_doc_read_head(). */
	if (status == STATUS_OK && item->state != ITEM_UNREAD)
		metric_add(&docs_read, 1);
	return status;
}

void
rev_ahead_release(struct rev_ahead *a)
{
	if (!a->arena)
		return;
	ahead_drop_window(a);
	if (a->scanning)
		kv_scan_release(&a->scan);
	arena_free(a->arena);
	buf_release(&a->key);
	buf_release(&a->bound);
	*a = (struct rev_ahead){ 0 };
}
