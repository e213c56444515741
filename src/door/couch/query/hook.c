#include "door/couch/query/hook.h"

#include "doc/json_value.h"
#include "door/couch/admin/source.h"
#include "door/couch/doc/seen.h"
#include "door/couch/query/index_def.h"
#include "door/couch/wire/reply.h"
#include "index/engine/def.h"
#include "index/view/design.h"
#include "index/view/written.h"
#include "model/revisioned/read.h"
#include "model/revisioned/revisioned.h"

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

/* The indexes that the design document defines, in a database that is `partitioned` or not. */
static enum status
hook_read(struct str id, struct str text, bool partitioned, struct arena *arena,
	  struct query_indexes *ret)
{
	/* What reads definitions takes a request for its arena and for explanations. */
	struct couch_req r = { .arena = arena };
	enum status status = query_indexes_add(&r, id, text, partitioned, ret);

	return status == STATUS_INVALID ? STATUS_OK : status;
}

/*
 * Loops keep the validators and the indexes of databases until the metadata version changes
 * (doc/validators.h, indexes.h). Sets `*ret` if this text of a design document, before or after the
 * change, defines one of them, so that the version must change.
 */
static enum status
hook_is_kept(struct str text, const struct query_indexes *indexes, struct arena *arena, bool *ret)
{
	struct json_member *members;
	size_t count;

	TRY(json_read_members(text, arena, &members, &count, NULL));
	*ret = *ret || indexes->count || json_value_find(members, count, "validate_doc_update");
	return STATUS_OK;
}

/*
 * Notes the views for the chore that builds them (view/written.h), unless the design document says
 * "autoupdate": false.
 */
static enum status
hook_note_views(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct str text,
		struct arena *arena)
{
	struct view_design design;
	enum status status = view_design_parse(text, rev_db_is_partitioned(db), arena, &design,
					       NULL);

	if (hook_is_of_document(status))
		return STATUS_OK;
	TRY(status);
	if (!design.view_count || !design.autoupdate || !str_eq(design.language, STR("javascript")))
		return STATUS_OK;
	return view_written_note(tx, db, id);
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

static uint32_t
hook_flags(const struct query_index *index)
{
	return HOOK_FLAGS | (index->partitioned ? (uint32_t)INDEX_PARTITIONED : 0);
}

/* True if the definition that is kept is the one that the document asks for. */
static bool
hook_is_same(const struct index_def *def, const struct query_index *index)
{
	if (!str_eq(def->name, index->name) || def->column_count != index->columns.count ||
	    !str_eq(def->filter, index->filter) || def->flags != hook_flags(index))
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
hook_can_keep(const struct catalog_db *db, const struct query_index *index, struct arena *arena,
	      bool *ret)
{
	struct index_work work = { .arena = arena };
	struct selector *filter;
	struct str *names;
	size_t count;
	bool whole;

	/* A design document that was replicated may ask for partitions where there are none. */
	*ret = !index->partitioned || rev_db_is_partitioned(db);
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
	    const struct query_index *index, struct arena *arena, bool *touch)
{
	struct index_column *columns = arena_zalloc(arena,
						    (index->columns.count + 1) * sizeof(*columns));
	struct index_def terms = {
		.state = INDEX_BUILDING,
		.flags = hook_flags(index),
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
	if (status == STATUS_OK)
		*touch = false;
	/*
	 * The document is written all the same. Nothing is logged here, where the transaction may
	 * be run again: queries that would use the index warn of it.
	 */
	return hook_is_of_document(status) ? STATUS_OK : status;
}

enum status
query_design_changed(struct kv_tx *tx, const struct catalog_db *db,
		     const struct rev_design_change *change, struct arena *arena)
{
	const struct index_set *set = index_set_of(db);
	bool partitioned = rev_db_is_partitioned(db);
	struct query_indexes had = { 0 }, wanted = { 0 };
	bool touch = false;
	struct str text;
	bool *kept;

	if (change->before) {
		TRY(couch_source_text(change->before, arena, &text));
		TRY(hook_read(change->id, text, partitioned, arena, &had));
		TRY(hook_is_kept(text, &had, arena, &touch));
	}
	if (change->after) {
		TRY(couch_source_text(change->after, arena, &text));
		TRY(hook_note_views(tx, db, change->id, text, arena));
		TRY(hook_read(change->id, text, partitioned, arena, &wanted));
		TRY(hook_is_kept(text, &wanted, arena, &touch));
	}
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
		if (same)
			continue;
		TRY(index_drop(tx, db, def));
		touch = false; /* the index engine has touched it */
	}
	for (size_t k = 0; k < wanted.count; k++) {
		bool keep;

		TRY(hook_can_keep(db, &wanted.items[k], arena, &keep));
		if (!kept[k] && keep)
			TRY(hook_create(tx, db, change->id, &wanted.items[k], arena, &touch));
	}
	return touch ? kv_touch_metadata_version(tx) : STATUS_OK;
}
