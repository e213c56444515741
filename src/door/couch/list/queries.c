#include "door/couch/list/queries.h"

#include "door/couch/admin/tx.h"
#include "door/couch/wire/error.h"

enum status
couch_queries_read(struct couch_req *r, struct couch_queries *q)
{
	struct json_member *members;
	const struct json_value *queries;
	size_t count;

	TRY(couch_db_precheck(r));
	TRY(couch_read_object(r, r->settings->body_bytes, &members, &count));
	queries = json_value_find(members, count, "queries");
	if (!queries)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "POST body must include `queries` parameter.");
	if (queries->kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`queries` member must be an array.");
	TRY(couch_view_args_query(r, &q->common));
	return json_list_init(&q->list, queries, r->arena, &r->fail.err);
}

/* Reads the parameters of one query over those of the URL. */
static enum status
queries_parse(struct couch_req *r, const struct couch_queries *q, const struct json_value *query,
	      struct couch_view_args *args)
{
	struct json_member *members;
	size_t count;

	if (query->kind != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Each of `queries` must be an object.");
	*args = q->common;
	TRY(json_value_members(query, r->arena, &members, &count, &r->fail.err));
	return couch_view_args_members(r, members, count, args);
}

enum status
couch_queries_visit(struct couch_req *r, const struct couch_queries *q,
		    struct couch_view_args *args, couch_query_visitor *visit, void *arg)
{
	struct arena_mark before = arena_mark(r->arena);
	struct json_value *page = arena_alloc(r->arena, JSON_LIST_PAGE * sizeof(*page));
	struct arena_mark mark = arena_mark(r->arena);
	size_t count;

	if (!page)
		return STATUS_LIMIT;
	for (size_t p = 0; p < q->list.pages; p++) {
		arena_reset(r->arena, mark);
		TRY(json_list_page(&q->list, p, r->arena, page, &count));
		for (size_t i = 0; i < count; i++) {
			struct arena_mark one = arena_mark(r->arena);

			TRY(queries_parse(r, q, &page[i], args));
			TRY(visit(arg, p * JSON_LIST_PAGE + i));
			arena_reset(r->arena, one);
		}
	}
	arena_reset(r->arena, before);
	return STATUS_OK;
}

void
couch_key_page_init(struct couch_key_page *page, struct arena *arena)
{
	*page = (struct couch_key_page){ .mark = arena_mark(arena) };
}

enum status
couch_key_page_turn(struct couch_key_page *page, const struct json_list *keys, size_t at,
		    struct arena *arena, struct json_value **ret)
{
	size_t number = at / JSON_LIST_PAGE;
	size_t count;

	if (!page->keys || page->number != number) {
		arena_reset(arena, page->mark);
		page->number = number;
		page->keys = arena_alloc(arena, JSON_LIST_PAGE * sizeof(*page->keys));
		if (!page->keys)
			return STATUS_LIMIT;
		TRY(json_list_page(keys, number, arena, page->keys, &count));
	}
	*ret = &page->keys[at % JSON_LIST_PAGE];
	return STATUS_OK;
}
