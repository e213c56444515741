#include "door/couch/query/hook.h"

#include "base/log.h"
#include "base/quote.h"
#include "door/couch/doc/seen.h"
#include "door/couch/query/index_def.h"
#include "index/engine/source.h"
#include "model/revisioned/read.h"

enum {
	HOOK_FLAGS = INDEX_SPARSE | INDEX_COVERING,
};

/* True for a failure that says something about the document, and nothing about the transaction. */
static bool
hook_is_of_document(enum status status)
{
	return status == STATUS_INVALID || status == STATUS_JSON_SYNTAX ||
	       status == STATUS_JSON_DEPTH || status == STATUS_LIMIT;
}

/* The indexes that the design document defines. */
static enum status
hook_read(struct str id, const struct index_source *source, struct arena *arena,
	  struct query_indexes *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT(SIZE_MAX);
	/* What reads definitions takes a request for its arena and for explanations. */
	struct couch_req r = { .arena = arena };
	struct rev_doc doc = { .packed = source->packed, .count = source->count };
	struct str kept;
	enum status status;

	doc.leaves = arena_alloc(arena, (doc.count + 1) * sizeof(*doc.leaves));
	if (!doc.leaves)
		return STATUS_LIMIT;
	for (size_t i = 0; i < doc.count; i++)
		doc.leaves[i] = source->leaves[i];
	buf_append_byte(&text, '{');
	TRY(rev_body_write(&doc, false, &text));
	TRY(buf_status(&text));
	kept = arena_dup(arena, buf_str(&text));
	if (!kept.ptr)
		return STATUS_LIMIT;
	status = query_indexes_add(&r, id, kept, false, ret);
	return status == STATUS_INVALID ? STATUS_OK : status;
}

/* ---- Comparing with what there is ---- */

static bool
hook_column_is(const struct index_column *column, const struct normal_path *path)
{
	if (column->path_count != path->count)
		return false;
	for (size_t i = 0; i < path->count; i++) {
		if (!str_eq(column->path[i], path->names[i]))
			return false;
	}
	return true;
}

/* True if the definition that is kept is the one that the document asks for. */
static bool
hook_is_same(const struct index_def *def, const struct query_index *index)
{
	if (!str_eq(def->name, index->name) || def->column_count != index->columns.count ||
	    !str_eq(def->filter, index->filter) || def->flags != HOOK_FLAGS)
		return false;
	for (size_t i = 0; i < def->column_count; i++) {
		if (!hook_column_is(&def->columns[i], &index->paths[i]))
			return false;
	}
	return true;
}

/*
 * True if entries can be made of these members: a document's body, its id and its revision. An
 * index on another special member, such as _attachments, is read as if it were being built.
 */
static bool
hook_can_have(struct str name)
{
	return !(couch_seen_member(name) & ~(unsigned)(COUCH_SEEN_ID | COUCH_SEEN_REV));
}

static enum status
hook_can_keep(const struct query_index *index, struct arena *arena, bool *ret)
{
	struct index_work work = { .arena = arena };
	struct selector *filter;
	struct str *names;
	size_t count;
	bool whole;

	*ret = !index->partitioned;
	for (size_t i = 0; i < index->columns.count; i++)
		*ret = *ret && hook_can_have(index->paths[i].names[0]);
	if (!*ret || !index->filter.ptr)
		return STATUS_OK;
	*ret = selector_compile(index->filter, &work, &filter, NULL, NULL) == STATUS_OK;
	if (!*ret)
		return STATUS_OK;
	TRY(selector_members(filter, arena, &names, &count, &whole));
	for (size_t i = 0; i < count; i++)
		*ret = *ret && hook_can_have(names[i]);
	return STATUS_OK;
}

static enum status
hook_create(struct kv_tx *tx, const struct catalog_db *db, struct str owner,
	    const struct query_index *index, struct arena *arena)
{
	struct index_column *columns = arena_zalloc(arena,
						    (index->columns.count + 1) * sizeof(*columns));
	struct index_def terms = {
		.state = INDEX_BUILDING,
		.flags = HOOK_FLAGS,
		.order = DOC_KEY_COUCH,
		.name = index->name,
		.owner = owner,
		.columns = columns,
		.column_count = index->columns.count,
		.filter = index->filter,
	};
	struct err err = { 0 };
	uint64_t number;
	enum status status;

	if (!columns)
		return STATUS_LIMIT;
	for (size_t i = 0; i < index->columns.count; i++)
		columns[i] = (struct index_column){ .path = index->paths[i].names,
						    .path_count = index->paths[i].count };
	status = index_create(tx, db, &terms, &number, &err);
	if (!hook_is_of_document(status))
		return status;
	log_event(LOG_LEVEL_WARN, "index_refused",
		  "db=\"%s\" ddoc=\"%s\" name=\"%s\" reason=\"%s\"", QUOTE_SHOW(db->name),
		  QUOTE_SHOW(owner), QUOTE_SHOW(index->name), err.text);
	return STATUS_OK;
}

enum status
query_design_changed(struct kv_tx *tx, const struct catalog_db *db,
		     const struct rev_design_change *change, struct arena *arena)
{
	const struct index_set *set = index_set_of(db);
	struct query_indexes wanted = { 0 };
	bool *kept;

	if (change->after)
		TRY(hook_read(change->id, change->after, arena, &wanted));
	kept = arena_zalloc(arena, wanted.count + 1);
	if (!kept)
		return STATUS_LIMIT;
	for (size_t i = 0; set && i < set->count; i++) {
		const struct index_def *def = &set->defs[i];
		bool same = false;

		if (!str_eq(def->owner, change->id) || def->state == INDEX_DROPPED)
			continue;
		for (size_t k = 0; k < wanted.count && !same; k++) {
			same = !kept[k] && hook_is_same(def, &wanted.items[k]);
			kept[k] = kept[k] || same;
		}
		if (!same)
			TRY(index_drop(tx, db, def));
	}
	for (size_t k = 0; k < wanted.count; k++) {
		bool keep;

		TRY(hook_can_keep(&wanted.items[k], arena, &keep));
		if (!kept[k] && keep)
			TRY(hook_create(tx, db, change->id, &wanted.items[k], arena));
	}
	return STATUS_OK;
}
