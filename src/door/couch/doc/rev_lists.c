#include "door/couch/doc/rev_lists.h"

#include <assert.h>

#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "loop/step.h"

/* A portion while it is read. */
struct portion {
	struct couch_rev_list *lists;
	size_t count;
	size_t cap;
	size_t revs;
	size_t bytes;
};

/* ---- Refusals ---- */

/*
 * Explains what is wrong with the body. If it is no JSON further on, that comes first, as it does
 * for a server that parses the body before it looks at it.
 */
static enum status
lists_refuse(struct couch_rev_lists *l, const char *reason)
{
	enum json_token token;

	do {
		TRY(json_next(&l->reader, &token));
		TRY(step_count(1));
	} while (token != JSON_END);
	return couch_fail_set(&l->r->fail, COUCH_ERROR_BAD_REQUEST, "%s", reason);
}

static enum status
lists_parse_rev(struct couch_rev_lists *l, enum json_token token, struct rev_id *ret)
{
	struct couch_fail *fail = &l->r->fail;
	enum status status;

	if (token != JSON_STRING)
		return lists_refuse(l, "Invalid rev format");
	TRY(step_count(2));
	status = couch_rev_parse(l->reader.text, l->r->arena, ret, fail);
	if (status == STATUS_INVALID) {
		const struct couch_fail refused = *fail;

		return lists_refuse(l, refused.err.text);
	}
	return status;
}

/* ---- The check of all that comes behind the first portion ---- */

static enum status
lists_check_list(struct couch_rev_lists *l)
{
	enum json_token token;

	for (;;) {
		struct arena_mark mark = arena_mark(l->r->arena);
		struct rev_id rev;

		TRY(json_next(&l->reader, &token));
		if (token == JSON_ARRAY_END)
			return STATUS_OK;
		TRY(lists_parse_rev(l, token, &rev));
		arena_reset(l->r->arena, mark);
	}
}

/* Reads to the end of the body, and goes back. */
static enum status
lists_check_rest(struct couch_rev_lists *l)
{
	const struct json_reader here = l->reader;
	enum json_token token;

	if (l->goes_on)
		TRY(lists_check_list(l));
	for (;;) {
		TRY(json_next(&l->reader, &token));
		if (token == JSON_OBJECT_END)
			break;
		TRY(json_next(&l->reader, &token));
		if (token != JSON_ARRAY_BEGIN)
			return lists_refuse(l, "Invalid list of revisions");
		TRY(lists_check_list(l));
	}
	TRY(json_next(&l->reader, &token));
	json_rewind(&l->reader, &here);
	return STATUS_OK;
}

/* ---- Portions ---- */

static bool
portion_is_full(const struct couch_rev_lists *l, const struct portion *s)
{
	return s->revs >= l->most_revs || s->bytes >= l->most_bytes;
}

/* Reads revisions up to the end of the list, or of the portion. */
static enum status
portion_read_revs(struct couch_rev_lists *l, struct portion *s, struct couch_rev_list *list)
{
	size_t cap = 0;

	for (;;) {
		const struct json_reader here = l->reader;
		enum json_token token;

		TRY(json_next(&l->reader, &token));
		l->goes_on = token != JSON_ARRAY_END;
		if (!l->goes_on)
			return STATUS_OK;
		if (l->cuts && portion_is_full(l, s)) {
			json_rewind(&l->reader, &here);
			list->goes_on = true;
			return STATUS_OK;
		}
		TRY(arena_room(l->r->arena, &list->revs, list->count, &cap, sizeof(*list->revs)));
		TRY(lists_parse_rev(l, token, &list->revs[list->count]));
		list->count++;
		s->revs++;
		s->bytes += list->id.len;
	}
}

static enum status
portion_add_list(struct couch_rev_lists *l, struct portion *s, struct str id,
		 struct couch_rev_list **ret)
{
	TRY(arena_room(l->r->arena, &s->lists, s->count, &s->cap, sizeof(*s->lists)));
	*ret = &s->lists[s->count];
	**ret = (struct couch_rev_list){ 0 };
	TRY(arena_copy(l->r->arena, id, &(*ret)->id));
	s->count++;
	s->bytes += id.len;
	return STATUS_OK;
}

static bool
portion_has_id(const struct portion *s, struct str id)
{
	for (size_t i = 0; i < s->count; i++)
		if (str_eq(s->lists[i].id, id))
			return true;
	return false;
}

/* Goes on with the list that the portion before has begun. */
static enum status
portion_continue_list(struct couch_rev_lists *l, struct portion *s)
{
	struct couch_rev_list *list;

	TRY(portion_add_list(l, s, buf_str(&l->id), &list));
	list->continues = true;
	return portion_read_revs(l, s, list);
}

static enum status
portion_read_list(struct couch_rev_lists *l, struct portion *s)
{
	const struct json_reader here = l->reader;
	struct couch_rev_list *list;
	enum json_token token;

	TRY(json_next(&l->reader, &token));
	if (token == JSON_OBJECT_END) {
		l->ended = true;
		return json_next(&l->reader, &token);
	}
	if (l->cuts && portion_has_id(s, l->reader.text)) {
		json_rewind(&l->reader, &here);
		s->revs = SIZE_MAX; /* full */
		return STATUS_OK;
	}
	TRY(portion_add_list(l, s, l->reader.text, &list));
	TRY(json_next(&l->reader, &token));
	if (token != JSON_ARRAY_BEGIN)
		return lists_refuse(l, "Invalid list of revisions");
	TRY(portion_read_revs(l, s, list));
	if (!list->goes_on)
		return STATUS_OK;
	buf_set(&l->id, list->id);
	return buf_status(&l->id);
}

enum status
couch_rev_lists_begin(struct couch_rev_lists *lists, struct couch_req *r)
{
	enum json_token token;
	struct str body;

	assert(lists->most_lists && lists->most_revs && lists->most_bytes);
	lists->r = r;
	lists->id = couch_buf(r, r->settings->body_bytes);
	json_reader_init(&lists->reader, (struct str){ NULL, 0 }, &r->fail.err);
	TRY(couch_read_body(r, r->settings->body_bytes, &body));
	json_reader_init(&lists->reader, body, &r->fail.err);
	lists->reader.scratch.part = http_memory(r->x);
	TRY(json_next(&lists->reader, &token));
	if (token == JSON_END)
		return err_set(&r->fail.err, STATUS_JSON_SYNTAX, "there is no value");
	if (token != JSON_OBJECT_BEGIN)
		return lists_refuse(lists, "Request body must be a JSON object");
	return STATUS_OK;
}

void
couch_rev_lists_release(struct couch_rev_lists *lists)
{
	json_reader_release(&lists->reader);
	buf_release(&lists->id);
}

/* The next portion, in the request's arena; *ret_count 0 at the end. */
static enum status
lists_next(struct couch_rev_lists *lists, struct couch_rev_list **ret, size_t *ret_count)
{
	struct portion s = { 0 };

	if (lists->goes_on)
		TRY(portion_continue_list(lists, &s));
	while (!lists->ended && !lists->goes_on && s.count < lists->most_lists &&
	       !portion_is_full(lists, &s))
		TRY(portion_read_list(lists, &s));
	if (!lists->checked && !lists->ended)
		TRY(lists_check_rest(lists));
	lists->checked = true;
	*ret = s.lists;
	*ret_count = s.count;
	return STATUS_OK;
}

enum status
couch_rev_lists_each(struct couch_rev_lists *lists, couch_rev_lists_take *take, void *arg)
{
	struct arena *arena = lists->r->arena;
	struct arena_mark mark = arena_mark(arena);
	struct couch_rev_list *portion;
	bool first = true;
	size_t count;

	do {
		TRY(lists_next(lists, &portion, &count));
		if (count || first)
			TRY(take(arg, portion, count));
		first = false;
		arena_reset(arena, mark);
	} while (count);
	return STATUS_OK;
}
