/* /{db}/_index: the indexes of a database, listed, created and deleted. */
#include <assert.h>
#include <stddef.h>

#include "base/quote.h"
#include "doc/json.h"
#include "door/couch/admin/partition.h"
#include "door/couch/admin/tx.h"
#include "door/couch/query/build_help.h"
#include "door/couch/query/design.h"
#include "door/couch/query/endpoints.h"
#include "door/couch/query/find_args.h"
#include "door/couch/query/indexes.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/params.h"
#include "door/couch/wire/reply.h"
#include "index/engine/draw.h"
#include "index/engine/scan.h"
#include "loop/step.h"
#include "model/revisioned/read.h"

enum {
	INDEX_CREATE_STEPS = 4,   /* of a build that the request for an index waits for */
	INDEX_BULK_DOCS = 100,    /* design documents that change in one transaction */
	INDEX_BULK_LOOK = 1000,   /* design documents that are looked for together */
	INDEX_BULK_NAMES = 10000, /* of design documents that one request names */
};

/* ---- GET: a list ---- */

/* What the engine has of an index of the list. */
struct listed_size {
	const char *state; /* NULL: it has none */
	uint64_t entries;
	uint64_t bytes;
};

struct list_call {
	struct query_indexes list;
	bool sizes;                /* are asked for */
	struct listed_size *items; /* of each index, with `sizes` */
};

static enum status
index_load_size(struct couch_req *r, struct kv_tx *tx, const struct query_index *index,
		struct listed_size *ret)
{
	const struct index_set *set = index_set_of(r->db);

	for (size_t i = 0; index->ddoc.ptr && set && i < set->count; i++) {
		const struct index_def *def = &set->defs[i];

		if (def->state == INDEX_DROPPED || !str_eq(def->owner, index->ddoc) ||
		    !str_eq(def->name, index->name))
			continue;
		ret->state = index_state_name(def->state);
		return index_measure(tx, r->db, def, &ret->entries, &ret->bytes);
	}
	return STATUS_OK;
}

static enum status
index_load(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct list_call *c = arg;

	TRY(couch_partition_check_db(r));
	TRY(query_indexes_load(r, tx, &c->list));
	if (!c->sizes)
		return STATUS_OK;
	c->items = arena_zalloc(r->arena, (c->list.count + 1) * sizeof(*c->items));
	if (!c->items)
		return STATUS_LIMIT;
	for (size_t i = 0; i < c->list.count; i++)
		TRY(index_load_size(r, tx, &c->list.items[i], &c->items[i]));
	return STATUS_OK;
}

/* Reads a parameter of the list; `*ret` keeps its value where there is none. */
static enum status
index_list_param(struct couch_req *r, const char *name, int64_t least, int64_t *ret)
{
	struct str text;

	if (!couch_param(r, name, &text))
		return STATUS_OK;
	if (str_to_i64(text, ret) && *ret >= least)
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_LIST_INDEX_PARAMS,
			      "Index parameter ranges: limit > 1, skip > 0");
}

/* Puts the size in front of the brace that ends the row. */
static void
index_write_size(const struct listed_size *size, struct buf *out)
{
	out->len -= out->len > 0;
	buf_printf(out, ",\"state\":\"%s\",\"entries\":%llu,\"bytes\":%llu}", size->state,
		   (unsigned long long)size->entries, (unsigned long long)size->bytes);
}

enum status
couch_index_list(struct couch_req *r)
{
	AUTO(buf_release) struct buf out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct list_call c = { .sizes = false };
	int64_t limit = INT64_MAX;
	int64_t skip = 0;
	struct str text;

	TRY(index_list_param(r, "limit", 1, &limit));
	TRY(index_list_param(r, "skip", 0, &skip));
	if (couch_param(r, "sizes", &text))
		TRY(couch_flag_parse(r, text, &c.sizes));
	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, index_load, &c));
	buf_append_cstr(&out, "{\"total_rows\":");
	buf_append_u64(&out, c.list.count);
	buf_append_cstr(&out, ",\"indexes\":[");
	for (size_t i = (size_t)skip; i < c.list.count && limit; i++, limit--) {
		buf_append_cstr(&out, i > (size_t)skip ? "," : "");
		query_index_write(&c.list.items[i], &out);
		if (c.sizes && c.items[i].state)
			index_write_size(&c.items[i], &out);
	}
	buf_append_cstr(&out, "]}");
	return couch_reply(r, 200, &out);
}

/* ---- POST: a new one ---- */

struct put_call {
	struct index_request request;
	bool exists;
};

static enum status
index_put(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct put_call *c = arg;

	TRY(couch_partition_check_db(r));
	return query_design_put(r, tx, &c->request, &c->exists);
}

/* What has kept a design document from being written. */
static enum status
index_refuse_saving(struct couch_req *r, enum status status)
{
	if (status != STATUS_DOC_CONFLICT)
		return status;
	return couch_fail_set(&r->fail, COUCH_ERROR_ERROR_SAVING_DDOC,
			      "Encountered a conflict while saving the design document.");
}

enum status
couch_index_create(struct couch_req *r)
{
	AUTO(buf_release) struct buf out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct put_call c = { 0 };
	enum status status;

	TRY(couch_db_precheck(r));
	TRY(index_request_read(r, &c.request));
	status = couch_db_write(r, COUCH_ACCESS_MEMBER, index_put, &c);
	if (status != STATUS_OK)
		return index_refuse_saving(r, status);
	query_build_help(r, &c.request.index, INDEX_CREATE_STEPS, UINT64_MAX);
	buf_append_cstr(&out, c.exists ? "{\"result\":\"exists\",\"id\":"
				       : "{\"result\":\"created\",\"id\":");
	json_write_str(&out, c.request.index.ddoc);
	buf_append_cstr(&out, ",\"name\":");
	json_write_str(&out, c.request.index.name);
	buf_append_byte(&out, '}');
	return couch_reply(r, 200, &out);
}

/* ---- DELETE ---- */

struct remove_call {
	struct str ddoc;
	struct str name; /* ptr NULL: all of the document's */
};

static enum status
index_remove(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	const struct remove_call *c = arg;

	TRY(couch_partition_check_db(r));
	return query_design_remove(r, tx, c->ddoc, c->name, 0);
}

/* The parts of the path are ddoc, type, name, with "_design" as a part of its own or not. */
enum status
couch_index_delete(struct couch_req *r)
{
	size_t at = 2;
	struct remove_call c;

	if (r->parts_count == 6 && str_eq(r->parts[2], STR("_design")))
		at = 3;
	if (r->parts_count != at + 3)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing");
	c.ddoc = query_design_id(r->parts[at], r->arena);
	if (!c.ddoc.ptr)
		return STATUS_LIMIT;
	c.name = r->parts[at + 2];
	TRY(couch_db_precheck(r));
	if (!str_eq(r->parts[at + 1], STR("json")))
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing");
	TRY(index_refuse_saving(r, couch_db_write(r, COUCH_ACCESS_MEMBER, index_remove, &c)));
	return couch_reply_ok(r, 200);
}

/* ---- POST _index/_bulk_delete ---- */

struct bulk {
	struct str *ids;
	size_t count;
	uint64_t w;
};

static enum status
bulk_refuse(struct couch_req *r, const struct json_value *v)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_BULK_DOCS,
			      "Bulk Delete requires an array of non-null docids. Docids: %s",
			      QUOTE_SHOW(v->text));
}

static enum status
bulk_take_ids(struct couch_req *r, const struct json_value *v, void *into)
{
	struct bulk *b = into;
	struct json_value *items;

	if (v->kind != JSON_ARRAY_BEGIN)
		return bulk_refuse(r, v);
	TRY(json_value_items(v, r->arena, &items, &b->count, &r->fail.err));
	if (b->count > INDEX_BULK_NAMES)
		return couch_fail_set(&r->fail, COUCH_ERROR_TOO_LARGE,
				      "`docids` has more than %d names.", INDEX_BULK_NAMES);
	b->ids = arena_alloc(r->arena, (b->count + 1) * sizeof(*b->ids));
	if (!b->ids)
		return STATUS_LIMIT;
	for (size_t i = 0; i < b->count; i++) {
		struct str *parts;
		size_t parts_count;

		if (items[i].kind == JSON_NULL || items[i].kind == JSON_ARRAY_BEGIN)
			return bulk_refuse(r, v);
		TRY(find_args_index_name(r, &items[i], &parts, &parts_count));
		b->ids[i] = query_design_id(items[i].string, r->arena);
		if (!b->ids[i].ptr)
			return STATUS_LIMIT;
	}
	return STATUS_OK;
}

static const struct query_member bulk_members[] = {
	{ "docids", true, bulk_take_ids, 0 },
	{ "w", false, query_take_positive, offsetof(struct bulk, w) },
};

/* A part of the list, whose design documents are looked for, and change, in one transaction. */
struct bulk_group {
	const struct str *ids;
	size_t count;
	size_t changes_most; /* design documents that may change */
	/* What the last attempt has done. */
	size_t done;                   /* of the ids, the first ones */
	bool missing[INDEX_BULK_LOOK]; /* of each: it has no indexes */
};

/* True if one of the first `count` of the group's ids, whose indexes were removed, is this one. */
static bool
bulk_is_removed(const struct bulk_group *g, size_t count, struct str id)
{
	for (size_t i = 0; i < count; i++) {
		if (!g->missing[i] && str_eq(g->ids[i], id))
			return true;
	}
	return false;
}

/*
 * Looks for all of the group's documents at once, and removes the indexes of those that are there.
 * It stops in front of the document that would be one too many for the transaction, and in front of
 * one that it has changed already: a transaction cannot write a document twice.
 */
static enum status
bulk_remove(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct bulk_group *g = arg;
	struct rev_id *winners = arena_alloc(r->arena, g->count * sizeof(*winners));
	size_t removed = 0;

	if (!winners)
		return STATUS_LIMIT;
	TRY(couch_partition_check_db(r));
	/* For all of them, also if none is there: they are all design documents. */
	TRY(couch_design_check(r, tx, g->ids[0]));
	TRY(rev_winners_read(tx, r->db, g->ids, g->count, r->arena, winners));
	for (g->done = 0; g->done < g->count; g->done++) {
		size_t i = g->done;
		enum status status;

		g->missing[i] = !winners[i].hash.ptr;
		if (g->missing[i])
			continue;
		if (removed == g->changes_most || bulk_is_removed(g, i, g->ids[i]))
			return STATUS_OK;
		status = query_design_remove(r, tx, g->ids[i], (struct str){ 0 }, removed);
		g->missing[i] = status == STATUS_NOT_FOUND && r->fail.error == COUCH_ERROR_NONE;
		if (g->missing[i])
			continue;
		TRY(status);
		removed++;
	}
	return STATUS_OK;
}

static enum status
bulk_remove_group(struct couch_req *r, struct bulk_group *g)
{
	struct arena_mark mark = arena_mark(r->arena);

	TRY(couch_db_write(r, COUCH_ACCESS_MEMBER, bulk_remove, g));
	arena_reset(r->arena, mark);
	return STATUS_OK;
}

/* Notes what came of the group: the lists begin with a comma where they go on. */
static enum status
bulk_note(const struct bulk_group *g, struct buf *success, struct buf *fail)
{
	for (size_t i = 0; i < g->done; i++) {
		struct buf *list = g->missing[i] ? fail : success;

		buf_append_cstr(list, list->len ? ",{\"id\":" : "{\"id\":");
		json_write_str(list, g->ids[i]);
		buf_append_cstr(list,
				g->missing[i] ? ",\"error\":\"not_found\"}" : ",\"ok\":true}");
		TRY(buf_status(list));
	}
	return STATUS_OK;
}

/*
 * Removes the indexes of these design documents. Where they cannot change together, each does in a
 * transaction of its own, so that those before the one that fails are done.
 */
static enum status
bulk_remove_all(struct couch_req *r, const struct bulk *b, struct buf *success, struct buf *fail)
{
	size_t at = 0;
	size_t alone_end = 0; /* documents in front of it change in transactions of their own */

	while (at < b->count) {
		bool alone = at < alone_end;
		size_t count = (alone ? alone_end : b->count) - at;
		size_t most = alone ? INDEX_BULK_DOCS : INDEX_BULK_LOOK;
		struct bulk_group g = { .ids = b->ids + at,
					.count = count < most ? count : most,
					.changes_most = alone ? 1 : INDEX_BULK_DOCS };
		enum status status;

		TRY(step_count((uint32_t)g.count));
		status = bulk_remove_group(r, &g);
		if (status != STATUS_OK && !alone && status != STATUS_CANCELLED) {
			r->fail = (struct couch_fail){ .error = COUCH_ERROR_NONE };
			alone_end = at + (g.done < g.count ? g.done + 1 : g.count);
			continue;
		}
		if (status != STATUS_OK)
			return index_refuse_saving(r, status);
		assert(g.done > 0);
		TRY(bulk_note(&g, success, fail));
		at += g.done;
	}
	return STATUS_OK;
}

enum status
couch_index_bulk_delete(struct couch_req *r)
{
	AUTO(buf_release) struct buf success = couch_buf(r, COUCH_ANSWER_BYTES);
	AUTO(buf_release) struct buf fail = couch_buf(r, COUCH_ANSWER_BYTES);
	AUTO(buf_release) struct buf out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct bulk b = { 0 };

	TRY(couch_db_precheck(r));
	TRY(query_members_read(r, (size_t)r->settings->body_bytes, bulk_members,
			       sizeof(bulk_members) / sizeof(bulk_members[0]), &b));
	TRY(bulk_remove_all(r, &b, &success, &fail));
	buf_append_cstr(&out, "{\"success\":[");
	buf_append_buf(&out, &success);
	buf_append_cstr(&out, "],\"fail\":[");
	buf_append_buf(&out, &fail);
	buf_append_cstr(&out, "]}");
	return couch_reply(r, 200, &out);
}
