#include "door/mongo/cmd/change.h"

#include <assert.h>

#include "door/mongo/txn/txn.h"

#include "base/clock.h"
#include "door/mongo/cmd/diff.h"
#include "door/mongo/cmd/validate.h"
#include "door/mongo/txn/client.h"
#include "loop/step.h"
#include "mql/finder.h"
#include "mql/sort.h"

enum {
	/* MongoDB's number for an update that makes a document too large. */
	CHANGE_TOO_LARGE = 17419,
	/* Of documents that were read ahead, with what functions have answered. */
	CHANGE_AHEAD_BYTES = 128 * 1024 * 1024,
	/* That a batch is to take: a transaction that has become full waits for no more. */
	CHANGE_AHEAD_MS = 500,
	/* That a path takes in removedFields, at least: type, position, two ends, length. */
	MISSING_PATH_BYTES = 8,
};

static enum status
change_compile_pipeline(struct change *ch)
{
	struct mql_pipeline_options options = { .update = true };
	size_t scripts;

	if (ch->ask.array_filters)
		return call_fail(ch->call, MONGO_FAILED_TO_PARSE,
				 "arrayFilters may not be specified for pipeline-style updates");
	if (ch->ask.constants)
		TRY(data_let(&ch->mql, bson_text(ch->ask.constants), &ch->scope, &ch->bound));
	options.scope = ch->scope;
	scripts = ch->mql.script_count;
	TRY(mql_pipeline_compile(&ch->mql, bson_text(ch->ask.update), &options, &ch->pipeline));
	/* Of one document only the first one that matches is wanted. */
	ch->calls |= ch->ask.many && ch->mql.script_count > scripts;
	return STATUS_OK;
}

/* `_id`s are not kept in the order of a collation. */
static enum status
change_sort_ids(struct change *ch)
{
	struct buf AUTO(buf_release)
		made = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(ch->call->arena));
	struct bson_builder b;

	bson_open(&b, &made);
	bson_put_int32(&b, STR("_id"), ch->ask.order);
	bson_end(&b);
	TRY(buf_status(&made));
	ch->ask.order = 0;
	return arena_copy(ch->call->arena, buf_str(&made), &ch->ask.sort);
}

/* A statement that names no collation has that of the collection, which is open. */
static enum status
change_collate(struct change *ch)
{
	struct str given = data_choose_collation(ch->ask.collation, STR(""));
	struct mql *q = &ch->mql;

	if (given.len) {
		TRY(mql_collation_new(q, given, &ch->collation));
		q->texts = mql_collation_texts(ch->collation);
		return STATUS_OK;
	}
	TRY(data_collation(ch->data, q, &q->texts));
	return q->texts && ch->ask.order ? change_sort_ids(ch) : STATUS_OK;
}

static enum status
change_compile(struct change *ch)
{
	struct mql *q = &ch->mql;
	const struct bson_value *filters = ch->ask.array_filters;
	size_t scripts;

	TRY(change_collate(ch));
	if (ch->ask.let.len)
		TRY(data_let(q, ch->ask.let, &ch->scope, &ch->bound));
	ch->match_bound = ch->bound;
	q->takes_where = true;
	scripts = q->script_count;
	TRY(mql_match_compile_scoped(q, ch->ask.filter, ch->scope, &ch->match));
	ch->calls = q->script_count > scripts;
	q->takes_where = false;
	if (ch->ask.sort.len && !bson_is_empty(ch->ask.sort))
		TRY(mql_sort_by_compile(q, ch->ask.sort, &ch->sort));
	if (!ch->ask.update)
		return STATUS_OK;
	if (ch->ask.update->type == BSON_ARRAY)
		return change_compile_pipeline(ch);
	if (ch->ask.constants)
		return call_fail(ch->call, MONGO_FAILED_TO_PARSE,
				 "Constant values may only be specified for pipeline updates");
	return mql_update_compile(q, bson_text(ch->ask.update),
				  filters ? bson_text(filters) : BSON_EMPTY, &ch->update);
}

/*
 * The parts of documents that the filter and the update look at, if nothing else looks at them: no
 * option of the collection, such as a validator.
 */
static enum status
change_choose_parts(struct change *ch, const struct plain_part **ret, size_t *ret_count)
{
	struct mql_paths looks = { 0 };
	struct plain_part *parts;
	size_t of_match;

	if (!ch->ask.bare || ch->pipeline || !bson_is_empty(plain_options_of(ch->data->db)))
		return STATUS_OK;
	mql_match_paths(ch->match, &looks);
	of_match = looks.count;
	if (ch->update)
		mql_update_paths(ch->update, &looks);
	if (looks.all)
		return STATUS_OK;
	parts = arena_zalloc(ch->call->arena, (looks.count + 1) * sizeof(*parts));
	if (!parts)
		return STATUS_LIMIT;
	for (size_t i = 0; i < looks.count; i++)
		parts[i] = (struct plain_part){ looks.paths[i], i >= of_match };
	*ret = parts;
	*ret_count = looks.count;
	return STATUS_OK;
}

enum status
change_begin(struct change *ch, struct call *c, struct data *data, const struct change_ask *ask,
	     struct change_staged *staged, struct str place)
{
	struct plan_ask plan = { .hint = ask->hint, .changes = ask->many, .place = place };

	*ch = (struct change){ .call = c, .data = data, .ask = *ask, .staged = staged };
	data_mql(c, c->arena, NULL, &ch->mql);
	TRY(data_mql_status(c, &ch->mql, change_compile(ch)));
	if (!data->is_there)
		return STATUS_OK;
	if (ch->calls)
		TRY(mql_batch_init(&ch->ahead, CHANGE_AHEAD_BYTES, arena_part(c->arena)));
	plan.order = ch->ask.order;
	plan.match = ch->match;
	plan.texts = ch->mql.texts;
	plan.sort = ch->sort;
	plan.most = 1;
	TRY(change_choose_parts(ch, &plan.parts, &plan.part_count));
	TRY(plan_choose(c, &data->plain, &plan, &ch->mql, &ch->plan));
	ch->plan.first = ask->many || (ch->sort && !ch->plan.sorted) ? 0 : 1;
	/* One who adds a document because there is none must notice if another one comes first. */
	TRY(plan_walk_open(&ch->walk, &ch->plan, &data->plain,
			   ask->upsert || ch->plan.kind == PLAN_POINTS ? KV_READ : KV_SNAPSHOT,
			   place, &ch->mql));
	ch->walks = true;
	if (!place.len)
		plan_count_use(&ch->plan, c, &data->plain);
	ch->mark = arena_mark(c->arena);
	return STATUS_OK;
}

void
change_end(struct change *ch)
{
	plan_walk_close(&ch->walk);
	ch->walks = false;
	mql_batch_fini(&ch->ahead);
	mql_collation_free(ch->collation);
	ch->collation = NULL;
}

/* Reads a document that a snapshot has found so that other writers of it conflict. */
static enum status
change_confirm(struct change *ch, struct str doc)
{
	struct plain *p = &ch->data->plain;
	struct bson_value id;
	struct str same;

	/* Writers of what is in one piece read its record anyway. */
	if (ch->walk.mode == KV_READ || plain_scheme_of(p->db) == PLAIN_PACKED ||
	    !bson_find(doc, STR("_id"), &id))
		return STATUS_OK;
	return plain_get(p, &id, KV_READ, ch->call->arena, &same);
}

/* The next document of the walk, whether it matches or not. */
static enum status
change_read(struct change *ch, struct str *ret)
{
	struct call *c = ch->call;

	assert(ch->walks);
	TRY(mongo_client_check(c->client));
	TRY(step_count(1));
	/* The document before this ends here, with all that was made of it. */
	arena_reset(c->arena, ch->mark);
	return plan_walk_next(&ch->walk, c->arena, ret);
}

/* ---- Documents that are read ahead ---- */

static enum status
change_row_read(void *arg, size_t *ret_bytes)
{
	struct change *ch = arg;
	struct mql_batch *b = &ch->ahead;
	struct change_row *row = &ch->rows[b->count];
	struct str doc;

	TRY(change_read(ch, &doc));
	*ret_bytes = doc.len;
	*row = (struct change_row){ .place = arena_dup(b->arena, plan_walk_place(&ch->walk)),
				    .partial = ch->walk.partial,
				    .held = doc.len && doc.ptr == ch->walk.held.ptr };
	row->doc = doc.len ? arena_dup(b->arena, doc) : STR("");
	return row->doc.ptr && row->place.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
row_pipe(struct change *ch, struct mql *q, struct change_row *row)
{
	struct str doc;

	TRY(mql_pipeline_apply(ch->pipeline, q, row->doc, ch->bound, &doc));
	return arena_copy(ch->ahead.arena, doc, &row->piped);
}

static enum status
row_run(void *arg, struct mql *q, size_t i)
{
	struct change *ch = arg;
	struct change_row *row = &ch->rows[i];
	struct arena_mark mark = arena_mark(q->arena);
	enum status status;

	if (!row->doc.len)
		return STATUS_OK;
	status = mql_match_run_scoped(ch->match, q, row->doc, ch->match_bound, &row->matches,
				      &row->position);
	if (status == STATUS_OK && row->matches && ch->pipeline && ch->ask.many)
		status = row_pipe(ch, q, row);
	arena_reset(q->arena, mark);
	return status;
}

/*
 * Reads the next batch and evaluates it.
 *
 * A transaction that comes to its limit of time loses what it has read ahead. So a batch has only
 * as many documents as take CHANGE_AHEAD_MS, by the time that those of the batch before took. If
 * the store refuses old transactions, one that is tried again reads nothing ahead, so that it
 * changes at least its first document.
 */
static enum status
change_rows_fill(struct change *ch)
{
	bool keeps = kv_keeps_versions(ch->call->mongo->config.store);
	struct mql_batch *b = &ch->ahead;
	uint64_t began_ns = clock_mono_ns(), each_ns, most;
	size_t count;

	if (ch->ask.again && !keeps)
		b->want = 1;
	ch->rows = mql_batch_begin(b, sizeof(*ch->rows));
	if (!ch->rows)
		return STATUS_LIMIT;
	mql_batch_read(b, change_row_read, ch);
	data_mql_take_code(ch->call, &ch->mql);
	count = b->count ? b->count : 1;
	mql_batch_run(b, &ch->mql, row_run, ch);
	each_ns = (clock_mono_ns() - began_ns) / count + 1;
	most = CHANGE_AHEAD_MS * CLOCK_NS_PER_MS / each_ns;
	if (b->want > most)
		b->want = most ? (size_t)most : 1;
	return STATUS_OK;
}

/* As change_next(). */
static enum status
rows_next(struct change *ch, struct str *ret, int64_t *ret_position)
{
	struct mql_batch *b = &ch->ahead;
	const struct change_row *row;

	while (b->at == b->count) {
		if (b->failed != STATUS_OK)
			return data_mql_status(ch->call, &ch->mql, mql_batch_failure(b, &ch->mql));
		if (b->ended)
			return STATUS_NOT_FOUND;
		TRY(change_rows_fill(ch));
	}
	/* Rows lie in the batch: only what was made of the last one goes. */
	arena_reset(ch->call->arena, ch->mark);
	row = &ch->rows[b->at++];
	ch->place = row->place;
	ch->piped = row->piped;
	ch->partial = row->partial;
	if (row->held)
		ch->held = row->doc;
	*ret = row->matches ? row->doc : STR("");
	*ret_position = row->position;
	return row->matches ? change_confirm(ch, row->doc) : STATUS_OK;
}

/* ---- Documents ---- */

enum status
change_next(struct change *ch, struct str *ret, int64_t *ret_position)
{
	struct call *c = ch->call;
	struct str doc;
	bool matches;

	ch->held = ch->piped = (struct str){ 0 };
	if (!ch->walks)
		return STATUS_NOT_FOUND;
	if (ch->ahead.arena)
		return rows_next(ch, ret, ret_position);
	TRY(change_read(ch, &doc));
	ch->place = plan_walk_place(&ch->walk);
	ch->held = ch->walk.held;
	ch->partial = ch->walk.partial;
	*ret = doc;
	if (!doc.len)
		return STATUS_OK;
	TRY(data_mql_status(c, &ch->mql,
			    mql_match_run_scoped(ch->match, &ch->mql, doc, ch->match_bound,
						 &matches, ret_position)));
	*ret = matches ? doc : STR("");
	return matches ? change_confirm(ch, doc) : STATUS_OK;
}

struct str
change_place(const struct change *ch)
{
	return ch->place;
}

/* ---- One document in an order ---- */

static enum status
comes_first(struct change *ch, const struct mql_sort_by *by, struct str doc, struct str best,
	    bool *ret)
{
	struct mql_sort_key *left, *right;

	TRY(mql_sort_key_of(by, &ch->mql, doc, &left));
	TRY(mql_sort_key_of(by, &ch->mql, best, &right));
	*ret = mql_sort_key_compare(by, left, right, ch->mql.texts) < 0;
	return STATUS_OK;
}

enum status
change_find_first(struct change *ch, struct buf *best, int64_t *ret_position)
{
	struct call *c = ch->call;
	/* NULL: the first one that is found. */
	const struct mql_sort_by *by = ch->plan.sorted ? NULL : ch->sort;
	enum status status;
	int64_t position;
	struct str doc;

	buf_clear(best);
	while ((status = change_next(ch, &doc, &position)) == STATUS_OK) {
		bool first = true;

		if (!doc.len)
			continue;
		if (best->len)
			TRY(data_mql_status(c, &ch->mql,
					    comes_first(ch, by, doc, buf_str(best), &first)));
		if (first) {
			buf_set(best, doc);
			TRY(buf_status(best));
			*ret_position = position;
		}
		if (!by)
			return STATUS_OK;
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- What is done ---- */

/*
 * Makes a document ready to be stored. A large one is written ahead by transactions of its own,
 * which this one, having begun before them, cannot see: STATUS_TX_CONFLICT has it begin anew, and
 * the next attempt finds what this one has written ahead.
 */
static enum status
change_stage(struct change *ch, struct str bytes, struct plain_doc *ret)
{
	struct change_staged *s = ch->staged;
	uint8_t hash[SHA256_DIGEST_LENGTH];

	if (bytes.len > MONGO_DOCUMENT_BYTES)
		return call_fail(ch->call, CHANGE_TOO_LARGE,
				 "Resulting document after update is larger than %d",
				 MONGO_DOCUMENT_BYTES);
	*ret = plain_doc_of(bytes);
	assert(!ret->staged);
	if (bytes.len <= PLAIN_AHEAD_BYTES)
		return STATUS_OK;
	if (ch->call->in_transaction)
		return txn_refuse_large(ch->call);
	SHA256((const uint8_t *)bytes.ptr, bytes.len, hash);
	if (!s->is_there || memcmp(s->hash, hash, sizeof(hash)) != 0) {
		TRY(plain_stage(ch->call->mongo->config.store, ch->data->db, bytes, &s->doc,
				&ch->call->err));
		memcpy(s->hash, hash, sizeof(hash));
		s->is_there = true;
		return STATUS_TX_CONFLICT;
	}
	*ret = s->doc;
	ret->bytes = bytes;
	return STATUS_OK;
}

/* False once a description is so long, with `more` bytes to come, that events leave it out. */
static bool
description_fits(const struct bson_builder *b, size_t more)
{
	return b->out->len + more <= PLAIN_DETAIL_BYTES;
}

/*
 * Of an update's paths, writes those that have a value now, with it. `*ret_missing_bytes` is the
 * least that the others take. Ends early once that would not fit.
 */
static enum status
put_values(struct bson_builder *b, const struct mql_updated *u, struct mql_finder *finder,
	   size_t *ret_missing_bytes)
{
	struct bson_value v;
	bool there;

	*ret_missing_bytes = 0;
	for (size_t i = 0; i < u->count && description_fits(b, *ret_missing_bytes); i++) {
		TRY(mql_finder_path(finder, u->document, u->paths[i], &v, &there));
		if (there)
			bson_put(b, u->paths[i], &v);
		else
			*ret_missing_bytes += MISSING_PATH_BYTES + u->paths[i].len;
	}
	return STATUS_OK;
}

/* Writes the paths that have no value. */
static enum status
put_missing(struct bson_builder *b, const struct mql_updated *u, struct mql_finder *finder)
{
	struct bson_value v;
	bool there;

	for (size_t i = 0; i < u->count && description_fits(b, 0); i++) {
		TRY(mql_finder_path(finder, u->document, u->paths[i], &v, &there));
		if (!there)
			bson_put_string(b, STR(""), u->paths[i]);
	}
	return STATUS_OK;
}

/* True for a path with a step of digits, which may be a name or a position. */
static bool
path_is_ambiguous(struct str path)
{
	bool digits = true;
	size_t step = 0;

	for (size_t i = 0; i <= path.len; i++) {
		if (i == path.len || path.ptr[i] == '.') {
			if (digits && step)
				return true;
			digits = true;
			step = 0;
			continue;
		}
		digits = digits && path.ptr[i] >= '0' && path.ptr[i] <= '9';
		step++;
	}
	return false;
}

/* The steps of a path: names are texts, positions numbers. */
static enum status
put_steps(struct bson_builder *b, struct str doc, struct str path, struct mql_finder *finder)
{
	struct str rest = path;

	bson_begin_array(b, path);
	while (rest.len) {
		const char *dot = memchr(rest.ptr, '.', rest.len);
		struct str step = dot ? str_of(rest.ptr, (size_t)(dot - rest.ptr)) : rest;
		size_t before = (size_t)(rest.ptr - path.ptr);
		struct bson_value v;
		bool there = false;
		uint64_t n;

		if (before && str_to_u64(step, &n) && n <= INT32_MAX)
			TRY(mql_finder_path(finder, doc, str_of(path.ptr, before - 1), &v, &there));
		if (there && v.type == BSON_ARRAY)
			bson_put_int32(b, STR(""), (int32_t)n);
		else
			bson_put_string(b, STR(""), step);
		rest = dot ? str_skip(rest, step.len + 1) : STR("");
	}
	bson_end(b);
	return STATUS_OK;
}

/* Of paths that may be read in two ways, which they are: change streams tell it. */
static enum status
put_ambiguous(struct bson_builder *b, const struct mql_updated *u, struct mql_finder *finder)
{
	bool any = false;

	for (size_t i = 0; i < u->count && description_fits(b, 0); i++) {
		TRY(step_count(1));
		if (!path_is_ambiguous(u->paths[i]))
			continue;
		if (!any)
			bson_begin_document(b, STR("disambiguatedPaths"));
		any = true;
		TRY(put_steps(b, u->document, u->paths[i], finder));
	}
	if (any)
		bson_end(b);
	return STATUS_OK;
}

static void
put_cuts(struct bson_builder *b, const struct diff *d)
{
	bson_begin_array(b, STR("truncatedArrays"));
	for (size_t i = 0; i < d->cut_count; i++) {
		bson_begin_document(b, STR(""));
		bson_put_string(b, STR("field"), d->cuts[i].path);
		bson_put_int32(b, STR("newSize"), d->cuts[i].size);
		bson_end(b);
	}
	bson_end(b);
}

/* `*ret_fits`: false if it is too long for an event; what was written is then not whole. */
static enum status
describe_into(struct bson_builder *b, const struct mql_updated *u, const struct diff *diff,
	      struct mql_finder *finder, bool *ret_fits)
{
	size_t missing_bytes;

	bson_begin_document(b, STR("updatedFields"));
	TRY(put_values(b, u, finder, &missing_bytes));
	*ret_fits = description_fits(b, missing_bytes);
	if (!*ret_fits)
		return STATUS_OK;
	bson_end(b);
	bson_begin_array(b, STR("removedFields"));
	TRY(put_missing(b, u, finder));
	bson_end(b);
	if (diff)
		put_cuts(b, diff);
	TRY(put_ambiguous(b, u, finder));
	bson_end(b);
	return buf_status(b->out);
}

/*
 * What an event tells of an update: the paths that have a value now, and those that have none.
 * `diff` may be NULL.
 */
static enum status
change_describe(struct change *ch, const struct mql_updated *u, const struct diff *diff,
		struct str *ret)
{
	struct buf AUTO(buf_release)
		made = BUF_INIT_OF(2 * BSON_MOST_BYTES, arena_part(ch->call->arena));
	struct mql_finder finder;
	struct bson_builder b;
	enum status status;
	bool fits;

	bson_open(&b, &made);
	mql_finder_init(&finder, ch->call->arena);
	status = describe_into(&b, u, diff, &finder, &fits);
	mql_finder_fini(&finder);
	TRY(status);
	/* Longer ones are left out of the event. */
	*ret = !fits || made.len > PLAIN_DETAIL_BYTES ? STR("") : buf_dup(&made, ch->call->arena);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

/* The values that paths have now, which are those of the changes; NULL: none. */
static enum status
leaves_find(const struct mql_updated *u, struct arena *arena, struct bson_value *values,
	    struct plain_change *changes)
{
	enum status status = STATUS_OK;
	struct mql_finder finder;

	mql_finder_init(&finder, arena);
	for (size_t i = 0; i < u->count && status == STATUS_OK; i++) {
		bool there = false;

		status = mql_finder_path(&finder, u->document, u->paths[i], &values[i], &there);
		changes[i] = (struct plain_change){ u->paths[i], there ? &values[i] : NULL };
	}
	mql_finder_fini(&finder);
	return status;
}

/* Writes the leaves that have changed. */
static enum status
change_leaves(struct change *ch, const struct bson_value *id, const struct mql_updated *u,
	      struct str detail)
{
	struct arena *arena = ch->call->arena;
	struct plain_change *changes = arena_alloc(arena, u->count * sizeof(*changes));
	struct bson_value *values = arena_alloc(arena, u->count * sizeof(*values));
	enum status (*update)(struct plain *, const struct bson_value *,
			      const struct plain_change *, size_t, struct str, struct arena *,
			      bool *) = ch->partial ? plain_update_leaves : plain_update;
	bool changed;

	/* An update that names paths: only exploded collections have leaves to write. */
	assert(u->count > 0 && !u->replaced);
	assert(plain_scheme_of(ch->data->plain.db) == PLAIN_EXPLODED);
	if (!changes || !values)
		return STATUS_LIMIT;
	TRY(leaves_find(u, arena, values, changes));
	return update(&ch->data->plain, id, changes, u->count, detail, arena, &changed);
}

/*
 * Writes over `before`. The walk has read the record so that others who write it conflict, unless
 * `before` is not the document that it stands at, or was read by a snapshot.
 */
static enum status
change_replace(struct change *ch, const struct plain_doc *doc, struct str before,
	       enum plain_event_kind kind, struct str detail)
{
	struct plain *p = &ch->data->plain;
	struct arena *arena = ch->call->arena;

	/* A part of a document must never be written in the place of the whole. */
	assert(!ch->partial);
	if (before.ptr == ch->held.ptr)
		return plain_replace_whole(p, doc, before, kind, detail, arena);
	return plain_replace(p, doc, false, kind, detail, arena);
}

/* A pipeline does not say what it changes: that is found by comparing. */
static enum status
change_write_piped(struct change *ch, const struct plain_doc *doc, struct str before,
		   const struct mql_updated *u)
{
	struct mql_updated described = *u;
	struct str detail;
	struct diff diff;

	TRY(diff_documents(ch->call->arena, before, u->document, &diff));
	if (!diff.is_told)
		return change_replace(ch, doc, before, PLAIN_EVENT_REPLACE, STR(""));
	described.paths = diff.paths;
	described.count = diff.count;
	TRY(change_describe(ch, &described, &diff, &detail));
	return change_replace(ch, doc, before, PLAIN_EVENT_UPDATE, detail);
}

static enum status
change_write(struct change *ch, const struct bson_value *id, struct str before,
	     const struct mql_updated *u)
{
	struct plain *p = &ch->data->plain;
	struct str detail = STR("");
	struct plain_doc doc;

	TRY(change_stage(ch, u->document, &doc));
	TRY(data_keep_images(ch->data, before, u->document));
	if (ch->pipeline)
		return change_write_piped(ch, &doc, before, u);
	if (u->replaced)
		return change_replace(ch, &doc, before, PLAIN_EVENT_REPLACE, STR(""));
	TRY(change_describe(ch, u, NULL, &detail));
	if (plain_scheme_of(p->db) == PLAIN_EXPLODED && !doc.staged)
		return change_leaves(ch, id, u, detail);
	return change_replace(ch, &doc, before, PLAIN_EVENT_UPDATE, detail);
}

/* The document with the `_id` of the one that it takes the place of. */
static enum status
change_give_id(struct change *ch, const struct bson_value *id, struct str *doc)
{
	struct buf AUTO(buf_release)
		made = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(ch->call->arena));
	struct bson_builder b;

	bson_open(&b, &made);
	bson_put(&b, STR("_id"), id);
	bson_put_elements(&b, *doc);
	bson_end(&b);
	return buf_copy(&made, ch->call->arena, doc);
}

static enum status
change_run_pipeline(struct change *ch, const struct mql_update_on *on, struct mql_updated *ret)
{
	struct call *c = ch->call;
	struct bson_value before, after;
	struct str doc = ch->piped;

	if (!doc.ptr)
		TRY(data_mql_status(
			c, &ch->mql,
			mql_pipeline_apply(ch->pipeline, &ch->mql, on->document, ch->bound, &doc)));
	if (bson_find(on->document, STR("_id"), &before)) {
		if (!bson_find(doc, STR("_id"), &after))
			TRY(change_give_id(ch, &before, &doc));
		else if (!bson_equals(&before, &after))
			return call_fail(c, MONGO_IMMUTABLE_FIELD,
					 "Performing an update on the path '_id' would modify the "
					 "immutable field '_id'");
		TRY(data_document(c, doc, &doc));
	}
	*ret = (struct mql_updated){ .document = doc,
				     .changed = !str_eq(doc, on->document),
				     .replaced = true };
	return STATUS_OK;
}

static enum status
change_run(struct change *ch, const struct mql_update_on *on, struct mql_updated *ret)
{
	if (ch->pipeline)
		return change_run_pipeline(ch, on, ret);
	return data_mql_status(ch->call, &ch->mql, mql_update_run(ch->update, &ch->mql, on, ret));
}

/*
 * Updates a document of which only parts were read. STATUS_DOC_TOO_LARGE: it has to be read as a
 * whole, and nothing was written.
 */
static enum status
change_update_parts(struct change *ch, struct str doc, const struct bson_value *id,
		    bool *ret_changed)
{
	const struct mql_update_on on = { .document = doc, .position = -1 };
	struct str detail = STR("");
	struct mql_updated u;

	assert(ch->partial && !ch->pipeline);
	TRY(change_run(ch, &on, &u));
	*ret_changed = u.changed;
	if (!u.changed)
		return STATUS_OK;
	TRY(change_describe(ch, &u, NULL, &detail));
	return change_leaves(ch, id, &u, detail);
}

enum status
change_update(struct change *ch, struct str doc, int64_t position, struct str *ret,
	      bool *ret_changed)
{
	struct mql_update_on on = { .document = doc, .position = position };
	struct bson_value id = BSON_OF_NULL;
	struct mql_updated u;

	(void)bson_find(doc, STR("_id"), &id);
	if (ch->partial) {
		enum status status = change_update_parts(ch, doc, &id, ret_changed);

		*ret = doc;
		if (status != STATUS_DOC_TOO_LARGE)
			return status;
		ch->partial = false;
		TRY(plain_get(&ch->data->plain, &id, KV_READ, ch->call->arena, &doc));
		on.document = doc;
	}
	TRY(change_run(ch, &on, &u));
	*ret = u.document;
	*ret_changed = u.changed;
	if (!u.changed)
		return STATUS_OK;
	TRY(validate_document(ch->data, u.document, doc));
	return change_write(ch, &id, doc, &u);
}

enum status
change_delete(struct change *ch, struct str doc)
{
	struct bson_value id = BSON_OF_NULL;

	(void)bson_find(doc, STR("_id"), &id);
	TRY(data_keep_images(ch->data, doc, STR("")));
	return plain_delete(&ch->data->plain, &id, STR(""), ch->call->arena);
}

/* The document that an upsert adds, with its `_id`. */
static enum status
change_make(struct change *ch, struct str *ret)
{
	struct call *c = ch->call;
	struct mql_update_on on = { .document = BSON_EMPTY, .position = -1, .insert = true };
	struct bson_value before, after;
	struct mql_updated u;
	bool had;

	TRY(data_mql_status(c, &ch->mql, mql_upsert_document(ch->match, &ch->mql, &on.document)));
	had = bson_find(on.document, STR("_id"), &before);
	TRY(change_run(ch, &on, &u));
	if (had && (!bson_find(u.document, STR("_id"), &after) || !bson_equals(&before, &after)))
		return call_fail(c, MONGO_IMMUTABLE_FIELD,
				 "Performing an update on the path '_id' would modify the "
				 "immutable field '_id'");
	return data_document(c, u.document, ret);
}

enum status
change_upsert(struct change *ch, struct str *ret)
{
	struct plain_doc doc;

	/* It was read with conflicts: if a document that matches comes, the commit fails. */
	assert(ch->ask.upsert && (!ch->walks || ch->walk.mode == KV_READ));
	TRY(change_make(ch, ret));
	TRY(validate_document(ch->data, *ret, STR("")));
	TRY(change_stage(ch, *ret, &doc));
	TRY(data_keep_images(ch->data, STR(""), *ret));
	return plain_insert(&ch->data->plain, &doc, ch->call->arena);
}
