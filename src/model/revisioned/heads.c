/*
 * Heads of a document that a client names, by themselves or by one of their ancestors, without the
 * document's other branches being kept.
 */
#include <assert.h>

#include "loop/step.h"
#include "model/revisioned/read.h"
#include "model/revisioned/revisioned_int.h"

/* The ancestors as an array, which borrows from one copy of all of them. */
static enum status
branch_copy_ancestors(const struct rev_branch_record *row, struct arena *arena,
		      struct rev_branch *ret)
{
	struct tuple_reader r = { arena_dup(arena, row->ancestors), true };
	size_t cap = 1 + row->ancestors.len / (REV_HASH_BYTES + 2);

	if (!r.rest.ptr)
		return STATUS_LIMIT;
	ret->ancestors = arena_alloc(arena, cap * sizeof(*ret->ancestors));
	if (!ret->ancestors)
		return STATUS_LIMIT;
	while (r.rest.len) {
		TRY(catalog_array_grow(arena, (void **)&ret->ancestors, sizeof(*ret->ancestors),
				       ret->ancestors_count, &cap));
		TRY(catalog_next_text(&r, TUPLE_BYTES, arena, false,
				      &ret->ancestors[ret->ancestors_count]));
		ret->ancestors_count++;
	}
	return step_count((uint32_t)ret->ancestors_count);
}

enum status
rev_branch_copy(const struct rev_branch_record *row, bool whole, struct arena *arena,
		struct rev_branch *ret)
{
	*ret = (struct rev_branch){
		.rev = { row->rev.pos, arena_dup(arena, row->rev.hash) },
		.deleted = row->deleted,
		.winner = row->winner,
	};
	if (!ret->rev.hash.ptr)
		return STATUS_LIMIT;
	TRY(step_count(1));
	return whole ? branch_copy_ancestors(row, arena, ret) : STATUS_OK;
}

enum status
rev_branch_read(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct rev_id rev,
		struct arena *arena, struct rev_branch *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *live;
	struct kv_future *deleted;
	struct rev_branch_record row;
	enum status status;

	/* No key can be as long as a longer id, so there is no such document. */
	if (id.len > REV_DOC_ID_BYTES)
		return STATUS_NOT_FOUND;
	TRY(rev_branch_ask(tx, db, id, rev, false, &key, &live));
	TRY(rev_branch_ask(tx, db, id, rev, true, &key, &deleted));
	status = rev_branch_wait(tx, rev, false, live, arena, &row);
	if (status == STATUS_NOT_FOUND)
		status = rev_branch_wait(tx, rev, true, deleted, arena, &row);
	if (status == STATUS_OK)
		status = rev_branch_copy(&row, true, arena, ret);
	kv_future_free(live);
	kv_future_free(deleted);
	return status;
}

enum status
rev_branches_read_live(struct kv_tx *tx, const struct catalog_db *db, const struct rev_want *wants,
		       size_t count, struct arena *arena, struct rev_branch *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future **asked = arena_zalloc(arena, (count + 1) * sizeof(struct kv_future *));
	enum status status = STATUS_OK;

	if (!asked)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count && status == STATUS_OK; i++)
		if (wants[i].id.len <= REV_DOC_ID_BYTES)
			status = rev_branch_ask(tx, db, wants[i].id, wants[i].rev, false, &key,
						&asked[i]);
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		struct rev_branch_record row;

		ret[i] = (struct rev_branch){ .rev = { 0 } };
		if (!asked[i])
			continue;
		status = rev_branch_wait(tx, wants[i].rev, false, asked[i], arena, &row);
		if (status == STATUS_OK)
			status = rev_branch_copy(&row, true, arena, &ret[i]);
		else if (status == STATUS_NOT_FOUND)
			status = STATUS_OK;
	}
	/* Also those that were not waited for: NULL where none was asked. */
	for (size_t i = 0; i < count; i++)
		kv_future_free(asked[i]);
	return status;
}

/* ---- The heads that descend from revisions ---- */

static enum status
descent_add(struct rev_descent *d, size_t number, uint32_t head, struct arena *arena)
{
	struct rev_descent_link *link;

	if (d->set.count > 1 && d->links_count == REV_DESCENT_MOST) {
		d->too_many = true;
		return STATUS_OK;
	}
	TRY(catalog_array_grow(arena, (void **)&d->links, sizeof(*d->links), d->links_count,
			       &d->links_cap));
	assert(number < d->set.count);
	link = &d->links[d->links_count++];
	/* The branches come worst first, so each goes in front of those that are worse. */
	*link = (struct rev_descent_link){ .head = head, .next = d->first[number] };
	d->first[number] = (uint32_t)d->links_count;
	return STATUS_OK;
}

static enum status
descent_note_branch(struct rev_descent *d, const struct rev_branch_record *row, unsigned flags,
		    struct buf *scratch, struct arena *arena)
{
	struct rev_lineage lineage;
	bool noted = false;
	enum status status;
	struct rev_id rev;
	struct str rest;

	rev_lineage_begin(&lineage, row, scratch);
	TRY(rev_lineage_skip(&lineage, d->set.highest));
	while ((status = rev_lineage_next(&lineage, &rev, &rest)) == STATUS_OK) {
		size_t number;

		if (rev.pos < d->set.lowest)
			return STATUS_OK;
		if ((flags & REV_DESCENT_ITSELF) && rev.pos < row->rev.pos)
			return STATUS_OK;
		TRY(step_count(1));
		number = rev_set_find(&d->set, rev);
		if (number == REV_SET_NONE)
			continue;
		if (!noted) {
			TRY(catalog_array_grow(arena, (void **)&d->heads, sizeof(*d->heads),
					       d->heads_count, &d->heads_cap));
			TRY(rev_branch_copy(row, flags & REV_DESCENT_WHOLE, arena,
					    &d->heads[d->heads_count]));
			d->heads_count++;
			noted = true;
		}
		TRY(descent_add(d, number, (uint32_t)d->heads_count - 1, arena));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
rev_descent_read(struct kv_tx *tx, const struct catalog_db *db, struct str id,
		 const struct rev_id *revs, size_t count, unsigned flags, struct arena *arena,
		 struct rev_descent *ret)
{
	AUTO(buf_release) struct buf scratch = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct rev_branch_record row;
	struct rev_branch_scan scan;
	enum status status;

	*ret = (struct rev_descent){ .first = arena_zalloc(arena, (count + 1) * sizeof(uint32_t)) };
	if (!ret->first)
		return STATUS_LIMIT;
	TRY(rev_set_init(&ret->set, count, arena));
	for (size_t i = 0; i < count; i++)
		(void)rev_set_add(&ret->set, revs[i]);
	if (id.len > REV_DOC_ID_BYTES)
		return STATUS_OK;
	TRY(rev_branch_scan_begin(&scan, tx, db, id, KV_READ, &key));
	while ((status = rev_branch_scan_next(&scan, arena, &row)) == STATUS_OK && !ret->too_many) {
		TRY(step_count(1));
		TRY(descent_note_branch(ret, &row, flags, &scratch, arena));
	}
	rev_branch_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

uint32_t
rev_descent_first(const struct rev_descent *d, struct rev_id rev)
{
	size_t number = rev_set_find(&d->set, rev);

	return number == REV_SET_NONE ? 0 : d->first[number];
}
