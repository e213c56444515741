/*
 * Filters of _changes: documents by id, design documents, documents that match a selector.
 * Functions are in filter_function.c.
 */

#include "base/quote.h"
#include "doc/json.h"
#include "doc/json_list.h"
#include "doc/json_value.h"
#include "door/couch/admin/tx.h"
#include "door/couch/doc/doc_opts.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/doc/seen.h"
#include "door/couch/list/changes_filter.h"
#include "door/couch/list/feed.h"
#include "door/couch/list/filter_function.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "kv/kv.h"
#include "loop/sort.h"
#include "loop/step.h"
#include "model/revisioned/read.h"

/* ---- Reading the filter ---- */

static enum status
filter_refuse_ids(struct couch_req *r)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
			      "`doc_ids` filter parameter is not a list of doc ids.");
}

/*
 * Adds the ids of one page of the list to the set. Their text stays in the arena behind what the
 * list has there; the page itself is in `page`.
 */
static enum status
filter_take_ids_page(struct couch_req *r, const struct json_list *list, size_t at,
		     struct json_value *page, struct couch_id_set *set)
{
	size_t count;

	TRY(step_count(JSON_LIST_PAGE));
	TRY(json_list_page(list, at, r->arena, page, &count));
	for (size_t i = 0; i < count; i++) {
		if (page[i].kind != JSON_STRING)
			return filter_refuse_ids(r);
		couch_id_set_add(set, page[i].string);
	}
	return STATUS_OK;
}

/* Puts the ids of a small set in order: a few documents are looked up one by one. */
static enum status
filter_sort_ids(struct couch_req *r, struct couch_id_set *set)
{
	struct couch_id_set sorted;

	TRY(couch_id_set_init(&sorted, set->count, r->arena));
	TRY(sort_strs(set->ids, set->count, r->arena));
	for (size_t i = 0; i < set->count; i++)
		couch_id_set_add(&sorted, set->ids[i]);
	*set = sorted;
	return STATUS_OK;
}

static enum status
filter_take_ids(struct couch_req *r, const struct json_value *value, struct couch_changes_args *ret)
{
	struct json_value *page;
	struct json_list list;

	if (!value || value->kind != JSON_ARRAY_BEGIN)
		return filter_refuse_ids(r);
	TRY(json_list_init(&list, value, r->arena, &r->fail.err));
	TRY(couch_id_set_init(&ret->ids, list.count, r->arena));
	page = arena_alloc(r->arena, JSON_LIST_PAGE * sizeof(*page));
	if (!page)
		return STATUS_LIMIT;
	for (size_t i = 0; i < list.pages; i++)
		TRY(filter_take_ids_page(r, &list, i, page, &ret->ids));
	return ret->ids.count <= COUCH_DIRECT_IDS ? filter_sort_ids(r, &ret->ids) : STATUS_OK;
}

static enum status
filter_read_ids(struct couch_req *r, const struct json_member *members, size_t count,
		struct couch_changes_args *ret)
{
	struct json_value list;
	struct str text;

	ret->filter = COUCH_FILTER_DOC_IDS;
	if (r->method == COUCH_POST)
		return filter_take_ids(r, json_value_find(members, count, "doc_ids"), ret);
	if (!couch_param(r, "doc_ids", &text))
		return filter_take_ids(r, NULL, ret);
	TRY(json_value_read(text, r->arena, &list, &r->fail.err));
	return filter_take_ids(r, &list, ret);
}

/* A selector that passes a limit is the client's mistake: 400, not 503. */
static enum status
filter_refuse_selector(struct couch_req *r, enum status status)
{
	struct err err = r->fail.err;

	if (status == STATUS_LIMIT && err.status == STATUS_LIMIT)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "%s", err.text);
	return status;
}

static enum status
filter_read_selector(struct couch_req *r, const struct json_member *members, size_t count,
		     struct couch_changes_args *ret)
{
	const struct json_value *selector = json_value_find(members, count, "selector");
	const struct json_value *fields = json_value_find(members, count, "fields");
	struct index_work work = { .arena = r->arena };
	enum status status;

	ret->filter = COUCH_FILTER_SELECTOR;
	if (r->method != COUCH_POST)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Selector must be specified in POST payload");
	if (!selector || selector->kind != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Selector error: expected a JSON object");
	if (fields && fields->kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Selector error: fields must be JSON array");
	status = selector_compile(selector->text, &work, &ret->selector, NULL, &r->fail.err);
	if (status == STATUS_OK && fields)
		status = selector_fields_compile(fields->text, &work, &ret->fields, NULL,
						 &r->fail.err);
	return status == STATUS_OK ? STATUS_OK : filter_refuse_selector(r, status);
}

/* Filters that are functions of design documents, and names of none. */
static enum status
filter_read_function(struct couch_req *r, struct str name, struct str body,
		     struct couch_changes_args *ret)
{
	struct str view;

	ret->filter = COUCH_FILTER_FUNCTION;
	if (!str_starts_with(name, STR("_")))
		return couch_filter_function_find(r, name, false, body, &ret->function);
	if (!str_eq(name, STR("_view")))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "unknown builtin filter name");
	if (!couch_param(r, "view", &view) || view.len == 0)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`view` filter parameter is not provided.");
	return couch_filter_function_find(r, view, true, body, &ret->function);
}

enum status
couch_changes_filter_read(struct couch_req *r, struct str body, const struct json_member *members,
			  size_t count, struct couch_changes_args *ret)
{
	struct str name = ret->filter_name;

	if (name.len == 0)
		return STATUS_OK;
	if (str_eq(name, STR("_doc_ids")))
		return filter_read_ids(r, members, count, ret);
	if (str_eq(name, STR("_selector")))
		return filter_read_selector(r, members, count, ret);
	if (!str_eq(name, STR("_design")))
		return filter_read_function(r, name, body, ret);
	ret->filter = COUCH_FILTER_DESIGN;
	return STATUS_OK;
}

/* ---- Documents as selectors see them ---- */

/* The head's body, and the special members that CouchDB would show with it. */
static enum status
filter_read_head(struct couch_req *r, struct kv_tx *tx, struct str id,
		 const struct rev_branch *branch, struct couch_seen *seen, struct selector_doc *ret)
{
	struct rev_doc doc;
	struct couch_doc_out d = { .id = id, .doc = &doc, .branch = branch };

	TRY(couch_head_read(r, tx, id, branch, &doc));
	TRY(rev_body_explode(&doc, r->arena));
	TRY(couch_seen_read(r, &d, COUCH_SEEN_DEFAULT, seen));
	*ret = (struct selector_doc){ doc.leaves, doc.count, seen->specials, seen->count };
	return STATUS_OK;
}

static enum status
filter_matches_head(struct couch_req *r, struct kv_tx *tx, const struct selector *selector,
		    struct str id, const struct rev_branch *branch, bool *ret)
{
	struct couch_seen seen;
	struct index_work work = { .arena = r->arena };
	struct arena_mark mark = arena_mark(r->arena);
	struct selector_doc doc;

	TRY(filter_read_head(r, tx, id, branch, &seen, &doc));
	TRY(selector_match(selector, &doc, &work, ret));
	arena_reset(r->arena, mark);
	return STATUS_OK;
}

enum status
couch_change_fields(struct couch_req *r, struct kv_tx *tx, const struct couch_changes_args *args,
		    const struct rev_change *c, struct buf *out)
{
	const struct rev_branch winner = { .rev = c->rev, .deleted = c->deleted, .winner = true };
	struct couch_seen seen;
	struct index_work work = { .arena = r->arena };
	struct selector_doc doc;

	TRY(filter_read_head(r, tx, c->id, &winner, &seen, &doc));
	return selector_fields_write(args->fields, &doc, &work, out);
}

/* ---- Filtering ---- */

/* True if the filter lets the document's id pass. */
static bool
filter_id_passes(const struct couch_changes_args *args, struct str id)
{
	switch (args->filter) {
	case COUCH_FILTER_DOC_IDS:
		return couch_id_set_has(&args->ids, id);
	case COUCH_FILTER_DESIGN:
		return couch_is_design(id);
	case COUCH_FILTER_NONE:
	case COUCH_FILTER_SELECTOR:
	case COUCH_FILTER_FUNCTION:
		break;
	}
	return true;
}

enum status
couch_change_heads(struct couch_req *r, struct kv_tx *tx, const struct couch_changes_args *args,
		   const struct rev_change *c, struct couch_change_heads *ret)
{
	struct rev_branch winner = { .rev = c->rev, .deleted = c->deleted, .winner = true };
	const struct rev_branch *branches = &winner;
	size_t count = 1;

	*ret = (struct couch_change_heads){ 0 };
	step_unit();
	TRY(step_count(1));
	if (!filter_id_passes(args, c->id))
		return STATUS_OK;
	/* Nearly every document has one branch, and then there is nothing to look up. */
	if (args->all_heads && c->branch_count > 1) {
		TRY(rev_tree_read(tx, r->db, c->id, REV_TREE_HEADS, r->arena, &ret->tree));
		branches = ret->tree.branches;
		count = ret->tree.count;
	}
	ret->revs = count == 1 ? &ret->only : arena_alloc(r->arena, count * sizeof(*ret->revs));
	if (!ret->revs)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		bool passes = true;

		if (args->selector)
			TRY(filter_matches_head(r, tx, args->selector, c->id, &branches[i],
						&passes));
		if (passes)
			ret->revs[ret->count++] = branches[i].rev;
	}
	return STATUS_OK;
}
