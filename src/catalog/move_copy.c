/*
 * Copies a database that is being moved. The source is fenced, so its keys no longer change. They
 * are copied page by page; one transaction at the target writes a page and the cursor behind it.
 * Then the whole copy is read again, compared with what was read at the source, and checked.
 */
#include <assert.h>

#include "catalog/move_int.h"

/* ---- Pages ---- */

/* A page: some pairs of a database, whose keys come without its number. */
struct page {
	struct arena *arena;
	const struct catalog_kind *kind;
	struct str prefix;
	struct str after; /* the last key of the page before; empty: the first page */
	struct kv_pair *pairs;
	size_t count;
	bool more;
};

static enum status
copy_page_take(struct page *p, struct kv_range range)
{
	p->count = 0;
	p->more = range.more;
	p->pairs = arena_alloc(p->arena, (range.count ? range.count : 1) * sizeof(*p->pairs));
	if (!p->pairs)
		return STATUS_LIMIT;
	for (; p->count < range.count; p->count++)
		TRY(catalog_pair_copy(p->arena, str_skip(range.pairs[p->count].key, p->prefix.len),
				      range.pairs[p->count].value, &p->pairs[p->count]));
	return STATUS_OK;
}

static enum status
page_read_body(struct kv_tx *tx, void *arg)
{
	const struct kv_range_options options = { .limit_bytes = CATALOG_MOVE_PAGE_BYTES,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct page *p = arg;
	struct kv_future *f;

	arena_clear(p->arena);
	buf_append_str(&begin, p->prefix);
	if (p->after.len) {
		buf_append_str(&begin, p->after);
		buf_append_byte(&begin, CATALOG_KEY_NEXT);
	}
	TRY(buf_status(&begin));
	TRY(tuple_prefix_end(p->prefix, &end));
	TRY(buf_status(&end));
	f = kv_get_range(tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	return copy_page_take(p, kv_future_range(f));
}

/*
 * Reads a page. Each page has a read version of its own, which is safe because neither store
 * changes the database during the move.
 */
static enum status
copy_page_read(struct page *p, struct kv_store *store, struct err *err)
{
	return kv_run_read(store, page_read_body, p, err);
}

static void
page_add(const struct page *p, struct catalog_move_sum *sum)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct kv_pair *pair = &p->pairs[i];

		if (p->kind->is_document(pair->key))
			sum->documents++;
		sum->keys++;
		sum->bytes += pair->key.len + pair->value.len;
		/* The factor is odd, so that the product keeps every bit of the hash. */
		sum->fingerprint += str_hash(pair->key) * UINT64_C(0x9e3779b97f4a7c15) ^
				    str_hash(pair->value);
	}
}

/* ---- Progress ---- */

enum status
catalog_move_tell(struct mover *m, enum catalog_move_phase phase,
		  const struct catalog_move_sum *sum, uint64_t total_bytes)
{
	const struct catalog_move_progress progress = {
		.phase = phase,
		.source = m->source.state,
		.target = m->target.state,
		.sum = *sum,
		.total_bytes = total_bytes,
	};

	if (!m->o->progress)
		return STATUS_OK;
	return m->o->progress(&progress, m->o->arg);
}

/*
 * Estimates how many bytes there are in all: from the bytes up to the cursor, and from the sizes
 * that the engine estimates for the two ranges before and behind it. The engine may count
 * compressed bytes.
 */
static enum status
estimate_total(struct mover *m, struct str cursor, uint64_t bytes, uint64_t *ret)
{
	AUTO(buf_release) struct buf at = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	uint64_t done, rest;

	*ret = 0;
	buf_append_str(&at, m->db.prefix);
	buf_append_str(&at, cursor);
	TRY(buf_status(&at));
	TRY(tuple_prefix_end(m->db.prefix, &end));
	TRY(buf_status(&end));
	TRY(kv_estimate_bytes(m->o->from, m->db.prefix, buf_str(&at), &done));
	TRY(kv_estimate_bytes(m->o->from, buf_str(&at), buf_str(&end), &rest));
	if (done)
		*ret = bytes + (uint64_t)((double)rest / (double)done * (double)bytes);
	return STATUS_OK;
}

/* ---- Copying ---- */

struct copy {
	struct mover *m;
	struct page page;
	struct str prefix;        /* at the target */
	struct buf cursor;        /* the cursor in the record at the target */
	struct catalog_move next; /* the record that is written with the page */
	uint64_t total_bytes;
	unsigned pages;
};

static enum status
copy_put_pairs(struct kv_tx *tx, const struct copy *c)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	for (size_t i = 0; i < c->page.count; i++) {
		const struct kv_pair *pair = &c->page.pairs[i];
		enum status status;

		buf_clear(&key);
		buf_append_str(&key, c->prefix);
		buf_append_str(&key, pair->key);
		TRY(buf_status(&key));
		status = kv_set(tx, buf_str(&key), pair->value);
		if (status == STATUS_KEY_TOO_LARGE)
			return err_set(c->m->err, status,
				       "a key of %zu bytes would be longer than %zu at the target, "
				       "where the database has the number %llu",
				       c->m->db.prefix.len + pair->key.len, kv_key_limit(tx),
				       (unsigned long long)c->next.number);
		TRY(status);
	}
	return STATUS_OK;
}

static enum status
copy_put_body(struct kv_tx *tx, void *arg)
{
	struct copy *c = arg;

	TRY(catalog_mover_expect(c->m, tx, &c->m->target));
	TRY(copy_put_pairs(tx, c));
	return catalog_move_set(tx, &c->next);
}

/* Writes the page and the cursor behind it to the target. */
static enum status
copy_page(struct copy *c)
{
	struct mover *m = c->m;

	/*
	 * The source must be fenced before anything is copied; otherwise what was read could
	 * change.
	 */
	assert(m->source.state == CATALOG_MOVE_MOVING);
	c->next = m->target;
	c->next.state = CATALOG_MOVE_COPYING;
	c->next.cursor = c->page.pairs[c->page.count - 1].key;
	page_add(&c->page, &c->next.sum);
	TRY(kv_run(m->o->to, copy_put_body, c, NULL, m->err));
	buf_clear(&c->cursor);
	buf_append_str(&c->cursor, c->next.cursor);
	TRY(buf_status(&c->cursor));
	m->target = c->next;
	m->target.cursor = buf_str(&c->cursor);
	if (c->pages++ % CATALOG_MOVE_TOTAL_PAGES == 0)
		TRY(estimate_total(m, m->target.cursor, m->target.sum.bytes, &c->total_bytes));
	return catalog_move_tell(m, CATALOG_MOVE_PHASE_COPY, &m->target.sum, c->total_bytes);
}

static enum status
copy_pages(struct copy *c)
{
	struct mover *m = c->m;

	c->page.prefix = m->db.prefix;
	do {
		c->page.after = m->target.cursor;
		TRY(copy_page_read(&c->page, m->o->from, m->err));
		if (c->page.count)
			TRY(copy_page(c));
	} while (c->page.more);
	return STATUS_OK;
}

/* ---- Comparing ---- */

static enum status
copy_expect_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;

	return catalog_mover_expect(m, tx, &m->target);
}

static enum status
copy_compare(struct copy *c)
{
	AUTO(buf_release) struct buf cursor = CATALOG_KEY_INIT;
	const struct catalog_move_sum *source = &c->m->target.sum;
	struct mover *m = c->m;
	struct catalog_move_sum sum = { 0 };

	c->page.prefix = c->prefix;
	do {
		c->page.after = buf_str(&cursor);
		TRY(copy_page_read(&c->page, m->o->to, m->err));
		if (c->page.count == 0)
			break;
		page_add(&c->page, &sum);
		buf_clear(&cursor);
		buf_append_str(&cursor, c->page.pairs[c->page.count - 1].key);
		TRY(buf_status(&cursor));
		TRY(catalog_move_tell(m, CATALOG_MOVE_PHASE_COMPARE, &sum, source->bytes));
	} while (c->page.more);
	if (sum.keys == source->keys && sum.bytes == source->bytes &&
	    sum.documents == source->documents && sum.fingerprint == source->fingerprint)
		return STATUS_OK;
	/* Whoever has finished or undone this move meanwhile has cleared the source or the copy. */
	TRY(kv_run_read(m->o->to, copy_expect_body, m, m->err));
	return err_set(m->err, STATUS_CORRUPT,
		       "the copy is not what was copied: %llu documents, %llu keys, %llu bytes "
		       "instead of %llu, %llu, %llu",
		       (unsigned long long)sum.documents, (unsigned long long)sum.keys,
		       (unsigned long long)sum.bytes, (unsigned long long)source->documents,
		       (unsigned long long)source->keys, (unsigned long long)source->bytes);
}

/* ---- Checking ---- */

static void
copy_tell_finding(const struct catalog_finding *finding, void *arg)
{
	struct mover *m = arg;

	if (m->o->found)
		m->o->found(finding, m->o->arg);
}

static void
check_progress(const struct catalog_verify_sum *sum, void *arg)
{
	struct mover *m = arg;
	const struct catalog_move_sum part = { .documents = sum->documents,
					       .keys = sum->keys,
					       .bytes = sum->bytes };

	/*
	 * The check cannot be stopped in the middle, so the status is ignored; the next step can be
	 * stopped.
	 */
	(void)!catalog_move_tell(m, CATALOG_MOVE_PHASE_CHECK, &part, m->target.sum.bytes);
}

static enum status
copy_check(struct copy *c)
{
	struct mover *m = c->m;
	const struct catalog_verify_options options = { .found = copy_tell_finding,
							.progress = check_progress,
							.arg = m };
	struct catalog_verify_sum sum = { 0 };
	struct kv_store *store = m->o->to;
	struct catalog_db db = m->db;

	/*
	 * The check takes long at a store where each read is a round trip. If the target is such a
	 * store and the source is not, this checks the source, which has the same bytes.
	 */
	if (kv_keeps_versions(m->o->from) && !kv_keeps_versions(m->o->to)) {
		store = m->o->from;
	} else {
		db.number = m->target.number;
		db.prefix = c->prefix;
		db.incarnation = m->incarnation;
	}
	TRY(catalog_verify_still(store, &db, &options, &sum, m->err));
	if (sum.findings)
		return err_set(m->err, STATUS_CORRUPT,
			       "%llu things are wrong in the database, as \"frond verify\" finds "
			       "them; it is not moved like that, and can be rolled back",
			       (unsigned long long)sum.findings);
	return STATUS_OK;
}

static enum status
copy_done_body(struct kv_tx *tx, void *arg)
{
	struct mover *m = arg;
	struct arena_mark mark = arena_mark(m->arena);
	struct catalog_move now;
	enum status status = catalog_move_expect(tx, &m->target, m->arena, &now, m->err);

	if (status == STATUS_OK) {
		now.state = CATALOG_MOVE_COPIED;
		status = catalog_move_set(tx, &now);
	}
	arena_reset(m->arena, mark);
	return status;
}

static enum status
copy_all(struct copy *c)
{
	struct mover *m = c->m;

	TRY(copy_pages(c));
	TRY(copy_compare(c));
	TRY(copy_check(c));
	TRY(kv_run(m->o->to, copy_done_body, m, NULL, m->err));
	m->sum = m->target.sum;
	return STATUS_OK;
}

enum status
catalog_move_copy(struct mover *m)
{
	AUTO(buf_release) struct buf prefix = BUF_INIT(16);
	struct copy c = {
		.m = m, .page.arena = m->page, .page.kind = m->db.kind, .cursor = CATALOG_KEY_INIT
	};
	enum status status;

	tuple_put_u64(&prefix, m->target.number);
	TRY(buf_status(&prefix));
	c.prefix = buf_str(&prefix);
	/*
	 * The kind gives up uploads here, because edits that would use them are refused from now
	 * on: the database is read-only.
	 */
	if (m->db.kind->move_prepare)
		TRY(m->db.kind->move_prepare(m->o->from, m->db.number, m->err));
	status = copy_all(&c);
	buf_release(&c.cursor);
	return status;
}
