/*
 * A document's branches one after another, winner last, in bounded memory however many there are;
 * and the revisions of a branch one after another.
 *
 * They are read forwards, since RocksDB goes backwards several times as slowly.
 */
#include <assert.h>

#include "loop/step.h"
#include "model/revisioned/revisioned_int.h"

enum status
rev_branch_scan_begin(struct rev_branch_scan *s, struct kv_tx *tx, const struct catalog_db *db,
		      struct str id, enum kv_read mode, struct buf *key)
{
	*s = (struct rev_branch_scan){
		.tx = tx,
		.options = { .mode = mode, .limit_bytes = REV_SCAN_BYTES },
	};
	TRY(rev_branches_bounds(key, db, id, &s->prefix_len));
	s->future = kv_get_range(tx, str_of(key->ptr, s->prefix_len),
				 str_of(key->ptr + s->prefix_len, key->len - s->prefix_len),
				 &s->options);
	return STATUS_OK;
}

/* Asks for what lies behind the last key of the stretch that is used up, and frees the stretch. */
static enum status
scan_ask_further(struct rev_branch_scan *s)
{
	AUTO(buf_release) struct buf bounds = BUF_INIT(2 * (KV_LIMIT_KEY_BYTES + 1));
	struct str last = s->range.pairs[s->range.count - 1].key;
	struct kv_future *used_up = s->future;
	size_t begin_len = last.len + 1;

	buf_append_str(&bounds, last);
	buf_append_byte(&bounds, '\0');
	buf_append(&bounds, last.ptr, s->prefix_len);
	buf_append_byte(&bounds, CATALOG_KEY_LAST);
	TRY(buf_status(&bounds));
	s->future = kv_get_range(s->tx, str_of(bounds.ptr, begin_len),
				 str_of(bounds.ptr + begin_len, bounds.len - begin_len),
				 &s->options);
	kv_future_free(used_up);
	s->range = (struct kv_range){ 0 };
	s->at = 0;
	s->waited = false;
	return STATUS_OK;
}

enum status
rev_branch_scan_next(struct rev_branch_scan *s, struct arena *arena, struct rev_branch_record *ret)
{
	const struct kv_pair *pair;

	assert(s->future);
	for (;;) {
		if (!s->waited) {
			TRY(kv_future_wait(s->future));
			s->range = kv_future_range(s->future);
			s->waited = true;
		}
		if (s->at < s->range.count)
			break;
		/* The winner, and it alone, is marked, and comes last. */
		if (!s->range.more || s->range.count == 0)
			return s->any && !s->winner_seen ? STATUS_CORRUPT : STATUS_NOT_FOUND;
		TRY(scan_ask_further(s));
	}
	pair = &s->range.pairs[s->at++];
	TRY(rev_branch_record_parse(str_skip(pair->key, s->prefix_len), pair->value, arena, ret,
				    kv_tx_err(s->tx)));
	if (s->winner_seen)
		return STATUS_CORRUPT;
	s->any = true;
	s->winner_seen = ret->winner;
	return STATUS_OK;
}

void
rev_branch_scan_release(struct rev_branch_scan *s)
{
	kv_future_free(s->future);
	s->future = NULL;
}

/* ---- The revisions of one branch ---- */

void
rev_lineage_begin(struct rev_lineage *l, const struct rev_branch_record *row, struct buf *scratch)
{
	*l = (struct rev_lineage){
		.rest = { row->ancestors, true },
		.next = row->rev,
		.scratch = scratch,
	};
}

enum status
rev_lineage_skip(struct rev_lineage *l, uint64_t highest)
{
	uint64_t over = l->next.pos > highest ? l->next.pos - highest : 0;
	struct str passed;

	if (over == 0)
		return STATUS_OK;
	/* The head comes before all that is in `rest`. */
	TRY(tuple_skip_strings(&l->rest, l->begun ? over : over - 1, &passed));
	TRY(step_count((uint32_t)(passed.len / REV_SKIP_STEP_BYTES)));
	l->begun = true;
	l->next.pos = highest;
	return STATUS_OK;
}

enum status
rev_lineage_next(struct rev_lineage *l, struct rev_id *ret, struct str *ret_rest)
{
	struct tuple_elem e;

	if (!l->begun) {
		l->begun = true;
		*ret = l->next;
		*ret_rest = l->rest.rest;
		l->next.pos--;
		return STATUS_OK;
	}
	if (!l->rest.rest.len)
		return STATUS_NOT_FOUND;
	TRY(tuple_next_elem(&l->rest, &e));
	if (e.kind != TUPLE_BYTES || l->next.pos == 0)
		return STATUS_CORRUPT;
	ret->pos = l->next.pos--;
	ret->hash = e.raw;
	*ret_rest = l->rest.rest;
	if (!e.escaped)
		return STATUS_OK;
	buf_clear(l->scratch);
	tuple_unescape(&e, l->scratch);
	ret->hash = buf_str(l->scratch);
	return buf_status(l->scratch);
}
