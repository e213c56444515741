/*
 * POST /{db}/_bulk_docs. Each document is written for itself, in groups: transactions of some
 * hundred documents that commit in the order of the request. While one group is being committed the
 * next is prepared, so that the connection's loop and the store work at the same time.
 *
 * In a store that others share, overlapping commits might change places. There one group is written
 * at a time, with as many documents as fit. The same holds if a document refers to attachments: one
 * that is missing refuses the request, of which little should have been written by then.
 *
 * A transaction cannot hold two edits of one document, unless they are replicated ones that merge
 * (rev_edit_can_merge()). So a group ends before the second edit, which then sees the first one
 * committed. A document with thousands of branches to be brought is thus read once in a group.
 *
 * With "atomic": true, which CouchDB does not have, all documents are written in one transaction,
 * or none.
 */
#include <assert.h>

#include "base/hash.h"
#include "doc/json.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/tx.h"
#include "door/couch/admin/user_doc.h"
#include "door/couch/doc/att_in.h"
#include "door/couch/doc/bulk_in.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/doc/edit.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/doc/local.h"
#include "door/couch/doc/vet.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "kv/kv.h"
#include "loop/step.h"
#include "loop/wait.h"

enum {
	COUCH_BATCH_BYTES = 4 * 1000000, /* estimated, of one transaction of _bulk_docs */
	COUCH_BATCH_DOCS = 5000,         /* likewise, in documents */
	COUCH_BATCH_MERGED = 20000,      /* likewise, in edits, where some are of one document */
};

enum {
	/*
	 * Of one group among several. Small groups let the store begin early and the client's
	 * answer end early; large ones let many documents share a sync.
	 */
	GROUP_DOCS = 256,
	GROUP_BYTES = 1000000,
	MERGED_BYTES = 8 * 1000000, /* where edits of one document merge */
	GROUPS_UNDER_WAY = 4,
	ATTEMPT_BYTES = 256 << 20, /* that one attempt may allocate */
	ENTRY_BYTES = 1000,
	PAIR_BYTES = 64,
	RESULT_STEPS = 8, /* of a row of the answer */
};

/* Entries that one transaction writes. */
struct bulk_group {
	struct bulk *b;
	size_t begin;
	size_t end;
	struct couch_tx tx; /* its arena holds an attempt's results until they are in the answer */
	struct couch_fail fail;         /* the request's failure while other groups are prepared */
	struct couch_vettings vettings; /* in the arena of `tx` */
};

struct bulk {
	struct couch_bulk in;
	struct buf out;
	bool any_row;
	bool any_refused;

	/* Being written. */
	struct bulk_group groups[GROUPS_UNDER_WAY]; /* a ring */
	size_t oldest;
	size_t under_way;
	uint32_t *ids; /* entries by their ids: see bulk_place_entry() */
	size_t ids_mask;

	bool ids_checked;                       /* all of them fit the database */
	const struct couch_bulk_entry *culprit; /* atomic: the first that could not be written */
};

/* ---- Writing ---- */

static enum status
bulk_write_local(struct bulk *b, struct kv_tx *tx, struct couch_bulk_entry *e)
{
	enum status status = couch_local_write(b->in.r, tx, e->id, &e->doc, &e->rev);

	if (status == STATUS_DOC_CONFLICT || status == STATUS_NOT_FOUND) {
		e->status = status;
		return STATUS_OK;
	}
	return status;
}

static enum status
bulk_check_design(struct bulk *b, struct kv_tx *tx, struct couch_bulk_entry *e)
{
	bool admin;

	if (!couch_is_design(e->id))
		return STATUS_OK;
	TRY(couch_db_is_admin(b->in.r, tx, &admin));
	if (admin)
		return STATUS_OK;
	return couch_bulk_refuse(b->in.r, e, couch_not_db_admin_error(b->in.r), COUCH_NOT_DB_ADMIN);
}

static enum status
bulk_explain_partition(struct couch_req *r, struct couch_bulk_entry *e)
{
	e->fail = arena_zalloc(r->arena, sizeof(*e->fail));
	if (!e->fail)
		return STATUS_LIMIT;
	e->status = couch_edit_fail_partition(e->id, e->fail);
	return STATUS_OK;
}

/*
 * Checks, before anything is written, that the database can have all the ids. One that it cannot
 * have refuses the request, as in CouchDB.
 */
static enum status
bulk_check_ids(struct bulk *b)
{
	struct couch_req *r = b->in.r;

	if (b->ids_checked || !b->in.new_edits || !rev_db_is_partitioned(r->db))
		return STATUS_OK;
	for (size_t i = 0; i < b->in.count; i++) {
		TRY(couch_edit_check_id(r, b->in.entries[i].id, &r->fail));
		TRY(step_count(1));
	}
	b->ids_checked = true;
	return STATUS_OK;
}

/* A replicated document whose id the database cannot have does not keep out the others. */
static enum status
bulk_check_replicated_id(struct couch_req *r, struct couch_bulk_entry *e)
{
	struct couch_fail fail = { .error = COUCH_ERROR_NONE };

	if (couch_edit_check_id(r, e->id, &fail) == STATUS_OK)
		return STATUS_OK;
	return couch_bulk_refuse(r, e, fail.error, fail.err.text);
}

/* Leaves out the edits that a validator has denied. Returns how many are left. */
static size_t
bulk_leave_out_denied(struct bulk_group *c, struct rev_edit *edits,
		      struct couch_bulk_entry **of_edit, size_t count)
{
	size_t left = 0;

	for (size_t i = 0; i < count; i++) {
		struct couch_fail *denial = couch_vet_denial(&c->vettings, i);

		if (denial) {
			of_edit[i]->fail = denial;
			of_edit[i]->status = denial->err.status;
			continue;
		}
		edits[left] = edits[i];
		of_edit[left++] = of_edit[i];
	}
	return left;
}

static enum status
bulk_write_edits(struct bulk_group *c, struct kv_tx *tx, struct rev_edit *edits,
		 struct couch_bulk_entry **of_edit, size_t count)
{
	struct bulk *b = c->b;
	struct couch_req *r = b->in.r;
	struct rev_result *results = arena_alloc(r->arena, count * sizeof(*results));

	if (!results)
		return STATUS_LIMIT;
	TRY(couch_vet_edits(r, tx, edits, count, &c->vettings));
	count = bulk_leave_out_denied(c, edits, of_edit, count);
	TRY(rev_write(tx, r->db, edits, count, 0, r->arena, results, &r->fail.err));
	for (size_t i = 0; i < count; i++) {
		of_edit[i]->status = results[i].status;
		if (results[i].status == STATUS_OK)
			of_edit[i]->rev = results[i].rev;
		of_edit[i]->idle = results[i].unchanged;
		if (results[i].status == STATUS_PARTITION_FULL)
			TRY(bulk_explain_partition(r, of_edit[i]));
		if (results[i].status == STATUS_ATT_MISSING)
			TRY(couch_bulk_refuse_stub(&b->in, of_edit[i], results[i].att));
	}
	return STATUS_OK;
}

static enum status
bulk_write_entries(struct bulk_group *c, struct kv_tx *tx)
{
	struct bulk *b = c->b;
	struct couch_req *r = b->in.r;
	size_t n = c->end - c->begin;
	struct rev_edit *edits = arena_alloc(r->arena, n * sizeof(*edits));
	struct couch_bulk_entry **of_edit = arena_alloc(r->arena,
							n * sizeof(struct couch_bulk_entry *));
	size_t count = 0;

	if (!edits || !of_edit)
		return STATUS_LIMIT;
	TRY(bulk_check_ids(b));
	for (size_t i = c->begin; i < c->end; i++) {
		struct couch_bulk_entry *e = &b->in.entries[i];

		TRY(step_count(1));
		if (e->refused)
			continue;
		e->status = STATUS_OK;
		e->fail = NULL;
		e->rev = e->doc.rev;
		if (couch_is_local(e->id)) {
			TRY(bulk_write_local(b, tx, e));
			continue;
		}
		TRY(bulk_check_replicated_id(r, e));
		if (!e->fail)
			TRY(bulk_check_design(b, tx, e));
		if (e->fail)
			continue;
		edits[count] = couch_doc_edit(&e->doc, e->id, b->in.new_edits);
		edits[count].max_partition_bytes = couch_edit_partition_limit(r);
		if (couch_edit_of_nothing(&edits[count])) {
			e->status = STATUS_DOC_CONFLICT;
			continue;
		}
		of_edit[count++] = e;
	}
	return count ? bulk_write_edits(c, tx, edits, of_edit, count) : STATUS_OK;
}

/* One attempt at a group, in its arena. */
static enum status
group_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	(void)r;
	return bulk_write_entries(arg, tx);
}

/*
 * True if the group's transaction reads nothing once it has written, as the database was known
 * last. Local documents and design documents are read and written one by one.
 */
static bool
group_reads_first(const struct bulk *b, size_t begin, size_t end)
{
	const struct couch_req *r = b->in.r;
	const struct catalog_db *db = catalog_cache_peek(r->loop->cache, CATALOG_SPACE_COUCH,
							 r->parts[0]);

	if (!db || b->in.any_atts || !rev_write_reads_first(db))
		return false;
	for (size_t i = begin; i < end; i++)
		if (couch_is_local(b->in.entries[i].id) || couch_is_design(b->in.entries[i].id))
			return false;
	return true;
}

/*
 * Makes the group ready to be written by `body`. This clears the results of what it wrote before.
 */
static enum status
group_init(struct bulk_group *c, struct bulk *b, couch_tx_body *body, size_t begin, size_t end)
{
	c->b = b;
	c->begin = begin;
	c->end = end;
	c->fail = (struct couch_fail){ .error = COUCH_ERROR_NONE };
	c->vettings = (struct couch_vettings){ 0 };
	c->tx.r = b->in.r;
	c->tx.access = COUCH_ACCESS_MEMBER;
	c->tx.body = body;
	c->tx.arg = c;
	c->tx.reads_first = group_reads_first(b, begin, end);
	if (c->tx.arena) {
		arena_clear(c->tx.arena);
		return STATUS_OK;
	}
	c->tx.arena = arena_new(ATTEMPT_BYTES);
	if (!c->tx.arena)
		return STATUS_NOMEM;
	arena_set_part(c->tx.arena, http_memory(b->in.r->x));
	return STATUS_OK;
}

static void
bulk_write_result(struct bulk *b, const struct couch_bulk_entry *e)
{
	static const struct couch_fail unexplained;
	struct buf *out = &b->out;

	if (e->status == STATUS_OK && !e->idle)
		couch_user_doc_audit(b->in.r, e->id);
	if (e->status == STATUS_OK && !b->in.new_edits)
		return;
	if (b->any_row)
		buf_append_byte(out, ',');
	b->any_row = true;
	buf_append_cstr(out, e->status == STATUS_OK ? "{\"ok\":true,\"id\":" : "{\"id\":");
	json_write_str(out, e->id);
	if (e->status == STATUS_OK || !b->in.new_edits) {
		buf_append_cstr(out, ",\"rev\":");
		couch_rev_write(e->rev, out);
	}
	if (e->status != STATUS_OK) {
		buf_append_byte(out, ',');
		couch_fail_write(e->status, e->fail ? e->fail : &unexplained, out);
	}
	buf_append_byte(out, '}');
}

static bool
is_too_large(enum status status)
{
	return status == STATUS_TX_TOO_LARGE || status == STATUS_VALUE_TOO_LARGE ||
	       status == STATUS_KEY_TOO_LARGE;
}

/*
 * While validators have to see what an attempt would have written, has them do so and tries again.
 * What they have said is in the group's arena, below the next attempt.
 */
static enum status
group_vet(struct bulk_group *c, enum status status)
{
	struct couch_req *r = c->b->in.r;

	while (status == STATUS_UNVETTED) {
		struct arena *arena = r->arena;

		r->arena = c->tx.arena;
		status = couch_vet_run(r, &c->vettings);
		r->arena = arena;
		if (status == STATUS_OK)
			status = couch_tx_run(&c->tx);
	}
	return status;
}

static enum status group_settle(struct bulk *b, struct bulk_group *c, enum status status);

static enum status
group_write(struct bulk *b, struct bulk_group *c, size_t begin, size_t end)
{
	c->begin = begin;
	c->end = end;
	c->vettings = (struct couch_vettings){ 0 };
	arena_clear(c->tx.arena);
	return group_settle(b, c, couch_tx_run(&c->tx));
}

/*
 * Writes the results of a group that ended with `status`. If the group was too large for one
 * transaction, each half is written by itself; a single entry that is too large fails alone.
 */
static enum status
group_settle(struct bulk *b, struct bulk_group *c, enum status status)
{
	size_t begin = c->begin, end = c->end;

	status = group_vet(c, status);
	if (is_too_large(status) && end - begin > 1) {
		size_t middle = begin + (end - begin) / 2;

		TRY(group_write(b, c, begin, middle));
		return group_write(b, c, middle, end);
	}
	if (is_too_large(status))
		b->in.entries[begin].status = status;
	else if (status != STATUS_OK)
		return status;
	for (size_t i = begin; i < end; i++) {
		const struct couch_bulk_entry *e = &b->in.entries[i];

		b->any_refused = b->any_refused || e->status != STATUS_OK || e->idle;
		bulk_write_result(b, e);
		TRY(step_count(RESULT_STEPS));
	}
	return buf_status(&b->out);
}

/* Begins to write the next group. With STATUS_OK its commit is under way. */
static enum status
group_begin_next(struct bulk *b, size_t begin, size_t end)
{
	struct couch_req *r = b->in.r;
	struct bulk_group *c = &b->groups[(b->oldest + b->under_way) % GROUPS_UNDER_WAY];

	/* The slot behind those under way is free, or this would overwrite one that commits. */
	assert(b->under_way < GROUPS_UNDER_WAY && begin < end);
	TRY(group_init(c, b, group_attempt, begin, end));
	step_unit();
	TRY(couch_tx_begin(&c->tx));
	c->fail = r->fail;
	r->fail = (struct couch_fail){ .error = COUCH_ERROR_NONE };
	b->under_way++;
	return STATUS_OK;
}

static enum status
group_end_oldest(struct bulk *b)
{
	struct couch_req *r = b->in.r;
	struct bulk_group *c = &b->groups[b->oldest];

	assert(b->under_way > 0);
	b->oldest = (b->oldest + 1) % GROUPS_UNDER_WAY;
	b->under_way--;
	r->fail = c->fail;
	return group_settle(b, c, couch_tx_end(&c->tx, &r->fail.err));
}

/*
 * Waits for the groups that are still under way after a failure. Commits cannot be interrupted.
 * Returns the first failure.
 */
static enum status
group_end_rest(struct bulk *b, enum status status)
{
	for (; b->under_way; b->under_way--) {
		enum status rest = couch_tx_end(&b->groups[b->oldest].tx, NULL);

		if (status == STATUS_OK)
			status = rest;
		b->oldest = (b->oldest + 1) % GROUPS_UNDER_WAY;
	}
	return status;
}

/*
 * Estimates what an entry takes of a transaction: its pairs, and each key again in conflict ranges.
 */
static size_t
bulk_estimate_bytes(const struct couch_bulk_entry *e)
{
	size_t bytes = ENTRY_BYTES + 8 * e->id.len + 40 * e->doc.history_count;

	for (size_t i = 0; e->doc.att_edits && i < e->doc.atts_count; i++)
		bytes += ENTRY_BYTES + e->doc.att_edits[i].data.len;
	bytes += 3 * (PAIR_BYTES + e->id.len) + (e->doc.stored ? 0 : e->doc.doc.packed.len);
	for (size_t i = 0; i < e->doc.doc.count; i++)
		bytes += 3 * (PAIR_BYTES + e->id.len + e->doc.doc.leaves[i].key.len) +
			 e->doc.doc.leaves[i].value.len;
	return bytes;
}

static enum status
bulk_make_ids(struct bulk *b)
{
	size_t slots = hash_slots(b->in.count);

	b->ids = arena_zalloc(b->in.r->arena, slots * sizeof(*b->ids));
	b->ids_mask = slots - 1;
	return b->ids ? STATUS_OK : STATUS_LIMIT;
}

/* True if the entry's edit may be in one transaction with others of its document. */
static bool
bulk_can_merge(const struct bulk *b, const struct couch_bulk_entry *e)
{
	const struct rev_edit edit = couch_doc_edit(&e->doc, e->id, b->in.new_edits);

	return !couch_is_local(e->id) && rev_edit_can_merge(&edit);
}

/* What an entry means for the group that is being cut. */
enum bulk_place {
	BULK_PLACE_LATER, /* its document is being written: it begins another group */
	BULK_PLACE_NEW,   /* the group's first edit of its document */
	BULK_PLACE_MERGE, /* another edit of a document that the group has */
};

/*
 * Where entry `i` belongs as the next group is cut, which begins at `begin`. The table holds the
 * latest entry of each id as its number plus one; the caller puts this one into `*ret_slot` if the
 * group takes it. Entries before the oldest group under way are settled, and do not matter.
 */
static enum bulk_place
bulk_place_entry(struct bulk *b, size_t begin, size_t i, uint32_t **ret_slot)
{
	size_t unsettled = b->under_way ? b->groups[b->oldest].begin : begin;
	size_t at = hash_keyed(0, b->in.entries[i].id) & b->ids_mask;

	while (b->ids[at] && !str_eq(b->in.entries[b->ids[at] - 1].id, b->in.entries[i].id))
		at = (at + 1) & b->ids_mask;
	*ret_slot = &b->ids[at];
	if (b->ids[at] > begin && bulk_can_merge(b, &b->in.entries[b->ids[at] - 1]) &&
	    bulk_can_merge(b, &b->in.entries[i]))
		return BULK_PLACE_MERGE;
	return b->ids[at] > unsettled ? BULK_PLACE_LATER : BULK_PLACE_NEW;
}

/*
 * Finds the end of the group that begins at `begin`. Returns `begin` if the group must wait for
 * others. Edits that merge with others of their document do not count as documents, and a group
 * with them may be as large as a transaction: each group reads all branches of the document, so
 * there should be few groups.
 */
static size_t
bulk_cut_group(struct bulk *b, size_t begin, size_t most_docs, size_t most_bytes)
{
	size_t bytes = 0, merged_bytes = 0;
	size_t docs = 0;
	size_t end = begin;

	for (; end < b->in.count && docs < most_docs && end - begin < COUCH_BATCH_MERGED; end++) {
		const struct couch_bulk_entry *e = &b->in.entries[end];
		enum bulk_place place;
		uint32_t *slot;

		if (e->refused) {
			docs++;
			continue;
		}
		place = bulk_place_entry(b, begin, end, &slot);
		if (place == BULK_PLACE_MERGE)
			merged_bytes += bulk_estimate_bytes(e);
		else
			bytes += bulk_estimate_bytes(e);
		if (place == BULK_PLACE_LATER ||
		    (end > begin && (bytes > most_bytes || bytes + merged_bytes > MERGED_BYTES)))
			break;
		*slot = (uint32_t)end + 1;
		docs += place == BULK_PLACE_NEW;
	}
	return end;
}

static enum status
bulk_write_groups(struct bulk *b)
{
	bool overlap = !b->in.any_atts && !kv_is_shared(b->in.r->couch->config.store);
	size_t most_docs = overlap ? GROUP_DOCS : COUCH_BATCH_DOCS;
	size_t most_bytes = overlap ? GROUP_BYTES : COUCH_BATCH_BYTES;
	size_t most_under_way = overlap ? GROUPS_UNDER_WAY : 1;
	size_t begin = 0;

	while (begin < b->in.count) {
		size_t end = begin;

		if (b->under_way < most_under_way)
			end = bulk_cut_group(b, begin, most_docs, most_bytes);
		if (end == begin) {
			TRY(group_end_oldest(b));
			continue;
		}
		TRY(group_begin_next(b, begin, end));
		begin = end;
		if (begin < b->in.count)
			wait_yield();
	}
	while (b->under_way)
		TRY(group_end_oldest(b));
	return STATUS_OK;
}

static enum status
bulk_write_all(struct bulk *b)
{
	enum status status;

	TRY(bulk_make_ids(b));
	buf_append_byte(&b->out, '[');
	status = bulk_write_groups(b);
	if (b->under_way) {
		const struct couch_fail fail = b->in.r->fail;

		status = group_end_rest(b, status);
		b->in.r->fail = fail;
	}
	TRY(status);
	buf_append_byte(&b->out, ']');
	return buf_status(&b->out);
}

/* ---- All or nothing ---- */

/* Takes over the failure of the first entry that could not be written, because of which none is. */
static enum status
bulk_take_failure(struct bulk *b)
{
	struct couch_fail *fail = &b->in.r->fail;

	b->culprit = NULL;
	for (size_t i = 0; i < b->in.count && !b->culprit; i++)
		if (b->in.entries[i].status != STATUS_OK)
			b->culprit = &b->in.entries[i];
	if (!b->culprit)
		return STATUS_OK;
	if (b->culprit->fail)
		*fail = *b->culprit->fail;
	else if (b->culprit->status == STATUS_DOC_CONFLICT)
		return couch_fail_set(fail, COUCH_ERROR_CONFLICT,
				      "Document update conflict: nothing was written.");
	return b->culprit->status;
}

static enum status
atomic_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	TRY(group_attempt(r, tx, arg));
	return bulk_take_failure(((struct bulk_group *)arg)->b);
}

static enum status
bulk_reply_failure(struct bulk *b, enum status status)
{
	struct couch_req *r = b->in.r;

	buf_clear(&b->out);
	buf_append_cstr(&b->out, "{\"id\":");
	json_write_str(&b->out, b->culprit->id);
	buf_append_byte(&b->out, ',');
	couch_fail_write(status, &r->fail, &b->out);
	buf_append_byte(&b->out, '}');
	return couch_reply(r, couch_fail_answer(status, &r->fail).code, &b->out);
}

static enum status
bulk_write_atomic(struct bulk *b)
{
	struct couch_req *r = b->in.r;
	enum status status = bulk_take_failure(b);

	if (status == STATUS_OK)
		status = group_init(&b->groups[0], b, atomic_attempt, 0, b->in.count);
	if (status == STATUS_OK)
		status = group_vet(&b->groups[0], couch_tx_run(&b->groups[0].tx));
	if (b->culprit)
		return bulk_reply_failure(b, status);
	if (is_too_large(status))
		return couch_fail_set(&r->fail, COUCH_ERROR_TOO_LARGE,
				      "An atomic request must fit a transaction: %d bytes of keys "
				      "and values, %d documents.",
				      KV_LIMIT_TX_BYTES, REV_BATCH_EDITS);
	TRY(status);
	buf_append_byte(&b->out, '[');
	for (size_t i = 0; i < b->in.count; i++) {
		b->any_refused = b->any_refused || b->in.entries[i].idle;
		bulk_write_result(b, &b->in.entries[i]);
	}
	buf_append_byte(&b->out, ']');
	b->in.uploads.taken = !b->any_refused;
	return couch_reply(r, 201, &b->out);
}

/* Answers all_or_nothing as CouchDB 3 does, which does not have it either. */
static enum status
bulk_refuse_all(struct bulk *b)
{
	buf_append_byte(&b->out, '[');
	for (size_t i = 0; i < b->in.count; i++) {
		TRY(couch_bulk_refuse(b->in.r, &b->in.entries[i], COUCH_ERROR_ALL_OR_NOTHING,
				      "all_or_nothing is not supported"));
		bulk_write_result(b, &b->in.entries[i]);
	}
	buf_append_byte(&b->out, ']');
	return couch_reply(b->in.r, 417, &b->out);
}

static enum status
bulk_serve(struct bulk *b)
{
	struct couch_req *r = b->in.r;
	struct str body;
	enum status status;

	TRY(couch_db_require_json(r));
	TRY(couch_db_precheck(r));
	TRY(couch_read_body(r, r->settings->body_bytes, &body));
	status = couch_bulk_read(&b->in, body);
	if (status == STATUS_OK)
		status = couch_bulk_check(&b->in);
	if (status == STATUS_LIMIT && r->fail.err.status != STATUS_LIMIT &&
	    !http_memory(r->x)->refused)
		return couch_fail_entity_memory(&r->fail, r->arena);
	if (status != STATUS_OK)
		return status;
	/* A request without documents still fails if there is no such database. */
	if (b->in.count == 0)
		TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, NULL, NULL));
	if (b->in.all_or_nothing)
		return bulk_refuse_all(b);
	if (b->in.atomic)
		return bulk_write_atomic(b);
	TRY(bulk_write_all(b));
	b->in.uploads.taken = !b->any_refused;
	return couch_reply(r, 201, &b->out);
}

enum status
couch_bulk_docs(struct couch_req *r)
{
	struct bulk b = { .in = { .r = r, .new_edits = true } };
	enum status status;

	b.out = couch_buf(r, COUCH_ANSWER_BYTES);
	couch_uploads_init(&b.in.uploads, r);
	status = bulk_serve(&b);
	couch_uploads_release(&b.in.uploads);
	for (size_t i = 0; i < GROUPS_UNDER_WAY; i++)
		arena_free(b.groups[i].tx.arena);
	buf_release(&b.out);
	return status;
}
