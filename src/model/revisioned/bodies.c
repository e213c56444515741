/* Reading bodies: a root with a packed document, or with leaves, and attachments beside them. */
#include <stdlib.h>

#include "base/budget.h"
#include "model/revisioned/revisioned_int.h"

enum {
	/* Pairs that a scan passes over on its way to the next document that is wanted. */
	SCAN_PASSES = 16,
	/* Bodies that a scan must have brought before another one is begun further on... */
	SCAN_WORTH = 8,
	/* ...or else each body is read by itself, for so many windows. */
	SPARSE_WINDOWS = 8,
	/* Bodies read together, and what they may take; all but one document of any size. */
	WINDOW_FIRST = 64,
	WINDOW_LEAST = 16,
	WINDOW_MOST = 512,
	WINDOW_BYTES = 256 * 1024,
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

static enum status
begin_once(struct rev_ahead *a, struct kv_tx *tx, const struct rev_db *db, struct budget_part *part)
{
	if (a->arena)
		return STATUS_OK;
	*a = (struct rev_ahead){
		.tx = tx,
		.db = db,
		.arena = arena_new(REV_AHEAD_ARENA_BYTES),
		.window = WINDOW_FIRST,
		.key = REV_KEY_INIT,
		.bound = REV_KEY_INIT,
	};
	if (!a->arena)
		return STATUS_NOMEM;
	arena_set_part(a->arena, part);
	return STATUS_OK;
}

/* A scan goes to the last of them; or on to those of the next page. */
static enum status
set_bound(struct rev_ahead *a, bool more)
{
	const struct rev_want *last = NULL;

	rev_key_space(&a->bound, a->db, REV_SUBSPACE_DOCUMENTS);
	for (size_t i = 0; !more && i < a->count; i++)
		if (!last || str_cmp(a->wants[i].id, last->id) > 0)
			last = &a->wants[i];
	if (last)
		rev_key_named(&a->bound, a->db, REV_SUBSPACE_DOCUMENTS, last->id);
	buf_append_byte(&a->bound, REV_KEY_LAST);
	return rev_key_status(&a->bound);
}

enum status
rev_ahead_begin(struct rev_ahead *a, struct kv_tx *tx, const struct rev_db *db,
		struct budget_part *part, const struct rev_want *wants, size_t count, bool more)
{
	TRY(begin_once(a, tx, db, part));
	a->wants = wants;
	a->count = count;
	a->taken = 0;
	a->first = 0;
	a->filled = 0;
	return set_bound(a, more);
}

/* ---- By one range for many ---- */

/*
 * Lets the scan go on from `root`, unless the last one has not been worth it: then what is wanted
 * lies far apart, and *ret_worth is false.
 */
static enum status
scan_from(struct rev_ahead *a, struct str root, bool *ret_worth)
{
	const struct kv_range_options options = {
		.limit_bytes = REV_PAGE_BYTES,
		.ahead = true,
		.mode = KV_READ,
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

/* Goes to the first pair that is not before `root`, or to the end. */
static enum status
scan_to(struct rev_ahead *a, struct str root, bool *ret_worth)
{
	size_t passed = 0;

	*ret_worth = true;
	if (!a->scanning || str_cmp(root, buf_str(&a->key)) <= 0)
		TRY(scan_from(a, root, ret_worth));
	while (*ret_worth) {
		enum status status = scan_pair(a);

		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		TRY(status);
		if (str_cmp(a->pair.key, root) >= 0)
			return STATUS_OK;
		if (passed++ == SCAN_PASSES)
			TRY(scan_from(a, root, ret_worth));
		a->has_pair = false;
	}
	return STATUS_OK;
}

/* Behind `key` comes another element, or nothing: FF would go on with a string that has a NUL. */
static bool
is_below(struct str key, struct str root)
{
	return str_starts_with(key, root) &&
	       (key.len == root.len || (uint8_t)key.ptr[root.len] != REV_KEY_LAST);
}

/* Whether the scan stands at the root of a document that it is all of, which is then borrowed. */
static bool
borrow_body(struct rev_ahead *a, struct rev_ahead_item *item)
{
	bool more;

	if (scan_pair(a) != STATUS_OK || !str_eq(a->pair.key, item->key) ||
	    doc_root_read(a->pair.value, &item->doc.packed, &more) != STATUS_OK || more)
		return false;
	a->has_pair = false;
	return true;
}

/* Takes the item's body where the scan stands; one that is too large for the arena is left. */
static enum status
scan_body(struct rev_ahead *a, struct rev_ahead_item *item, bool borrow, struct arena *arena)
{
	struct body b = body_begin(&item->doc);
	size_t bytes = 0;
	enum status status;

	item->doc.rev = item->want->rev;
	item->doc.deleted = item->want->deleted;
	if (borrow && borrow_body(a, item)) {
		item->state = ITEM_READ;
		a->served++;
		return STATUS_OK;
	}
	item->doc.packed = (struct str){ 0 };
	while ((status = scan_pair(a)) == STATUS_OK && is_below(a->pair.key, item->key)) {
		bytes += a->pair.value.len;
		if (bytes > WINDOW_BYTES && arena == a->arena)
			return STATUS_OK;
		TRY(body_add(&b, str_skip(a->pair.key, item->key.len), a->pair.value, arena));
		a->has_pair = false;
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	body_end(&b);
	status = body_root(&b);
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	item->state = b.found ? ITEM_READ : ITEM_ABSENT;
	a->served += b.found;
	return STATUS_OK;
}

static enum status
scan_item(struct rev_ahead *a, struct rev_ahead_item *item, bool borrow, struct arena *arena)
{
	bool worth;

	TRY(scan_to(a, item->key, &worth));
	if (!worth) {
		a->sparse = SPARSE_WINDOWS;
		return STATUS_OK;
	}
	TRY(scan_body(a, item, borrow, arena));
	buf_clear(&a->key);
	buf_append_str(&a->key, item->key);
	return rev_key_status(&a->key);
}

/*
 * Reads those that lie beside each other, in the order of their keys, until there is no room or it
 * turns out that they do not.
 */
static enum status
scan_items(struct rev_ahead *a, struct rev_ahead_item *const *order, size_t *ret_done)
{
	for (size_t i = 0; i < a->filled; i++) {
		struct rev_ahead_item *item = order[i];

		if (arena_used_bytes(a->arena) > WINDOW_BYTES)
			return STATUS_OK;
		if (i && str_eq(item->key, order[i - 1]->key)) {
			item->state = order[i - 1]->state;
			item->doc = order[i - 1]->doc;
		} else {
			TRY(scan_item(a, item, false, a->arena));
		}
		if (a->sparse)
			return STATUS_OK;
		*ret_done = i + 1;
	}
	return STATUS_OK;
}

/* ---- A read for each ---- */

static enum status
ask_items(struct rev_ahead *a)
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
		TRY(read_init(item->read, a->db, w->id, w->rev, w->deleted));
		TRY(doc_ask(a->tx, a->db, REV_AHEAD_BYTES, item->read));
	}
	return STATUS_OK;
}

/* ---- A window of them ---- */

static int
compare_items(const void *a, const void *b)
{
	const struct rev_ahead_item *const *x = a;
	const struct rev_ahead_item *const *y = b;

	return str_cmp((*x)->key, (*y)->key);
}

/* The next ones, with the keys of their roots; `*ret_order`: by these. */
static enum status
make_items(struct rev_ahead *a, size_t n, struct rev_ahead_item ***ret_order, bool *ret_ascending)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;

	a->items = arena_zalloc(a->arena, n * sizeof(*a->items));
	*ret_order = arena_alloc(a->arena, n * sizeof(struct rev_ahead_item *));
	*ret_ascending = true;
	if (!a->items || !*ret_order)
		return STATUS_LIMIT;
	for (size_t i = 0; i < n; i++) {
		struct rev_ahead_item *item = &a->items[i];
		const struct rev_want *w = &a->wants[a->taken + i];

		rev_key_rev(&key, a->db, REV_SUBSPACE_DOCUMENTS, w->id, w->deleted, w->rev);
		TRY(rev_key_status(&key));
		item->want = w;
		item->key = arena_dup(a->arena, buf_str(&key));
		if (!item->key.ptr)
			return STATUS_LIMIT;
		(*ret_order)[i] = item;
		if (i && str_cmp(item[-1].key, item->key) >= 0)
			*ret_ascending = false;
	}
	if (!*ret_ascending)
		qsort(*ret_order, n, sizeof(struct rev_ahead_item *), compare_items);
	return STATUS_OK;
}

static void
drop_window(struct rev_ahead *a)
{
	for (size_t i = a->taken - a->first; i < a->filled; i++)
		if (a->items[i].state == ITEM_ASKED)
			read_release(a->items[i].read);
	a->filled = 0;
	arena_clear(a->arena);
}

/* As many at a time as fit into the memory that a window may take. */
static void
choose_window(struct rev_ahead *a, size_t done)
{
	if (done < a->filled)
		a->window = done > WINDOW_LEAST ? done : WINDOW_LEAST;
	else if (arena_used_bytes(a->arena) < WINDOW_BYTES / 2 && a->window < WINDOW_MOST)
		a->window *= 2;
}

static enum status
fill_window(struct rev_ahead *a)
{
	size_t most = a->sparse && a->window > REV_AHEAD ? REV_AHEAD : a->window;
	size_t left = a->count - a->taken;
	struct rev_ahead_item **order;
	size_t done = 0;

	drop_window(a);
	a->first = a->taken;
	TRY(make_items(a, left < most ? left : most, &order, &a->ascending));
	a->filled = left < most ? left : most;
	if (a->sparse) {
		a->sparse--;
		a->ascending = false;
		return ask_items(a);
	}
	/* Those need no memory: each is read when it is wanted. */
	if (a->ascending)
		return STATUS_OK;
	TRY(scan_items(a, order, &done));
	if (a->sparse)
		return ask_items(a);
	choose_window(a, done);
	return STATUS_OK;
}

/* One that is wanted in the order of the keys. */
static enum status
scan_next(struct rev_ahead *a, struct rev_ahead_item *item, struct arena *arena)
{
	TRY(scan_item(a, item, true, arena));
	if (!a->sparse)
		return STATUS_OK;
	a->ascending = false;
	return ask_items(a);
}

enum status
rev_ahead_take(struct rev_ahead *a, struct arena *arena, struct rev_doc *ret)
{
	struct rev_ahead_item *item;
	const struct rev_want *w;
	enum status status;

	if (a->taken - a->first == a->filled)
		TRY(fill_window(a));
	item = &a->items[a->taken - a->first];
	w = item->want;
	if (a->ascending)
		TRY(scan_next(a, item, arena));
	switch (item->state) {
	case ITEM_READ:
		*ret = item->doc;
		status = STATUS_OK;
		break;
	case ITEM_ABSENT:
		status = STATUS_NOT_FOUND;
		break;
	case ITEM_ASKED:
		status = doc_take(item->read, arena, ret);
		read_release(item->read);
		break;
	case ITEM_UNREAD:
	default:
		status = rev_doc_read_leaf(a->tx, a->db, w->id, w->rev, w->deleted, arena, ret);
		break;
	}
	a->taken++;
	return status;
}

void
rev_ahead_release(struct rev_ahead *a)
{
	if (!a->arena)
		return;
	drop_window(a);
	if (a->scanning)
		kv_scan_release(&a->scan);
	arena_free(a->arena);
	buf_release(&a->key);
	buf_release(&a->bound);
	*a = (struct rev_ahead){ 0 };
}
