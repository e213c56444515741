/* Documents on their way to the target, many in one _bulk_docs. */
#include "replicator/run_int.h"

#include <assert.h>

static enum status
copier_count_failures(struct copier *c, uint64_t *ret, struct err *err)
{
	struct json_value value;
	struct json_value *items;
	size_t count;

	TRY(json_value_read(buf_str(&c->answer), c->arena, &value, err));
	TRY(json_value_items(&value, c->arena, &items, &count, err));
	for (size_t i = 0; i < count; i++) {
		struct json_member *members;
		size_t n;

		if (items[i].kind != JSON_OBJECT_BEGIN)
			continue;
		TRY(json_value_members(&items[i], c->arena, &members, &n, err));
		if (json_value_find(members, n, "error"))
			(*ret)++;
	}
	return STATUS_OK;
}

static enum status copier_send_docs(struct copier *c, struct str docs, size_t count,
				    struct err *err);

/*
 * Sends in two halves a list that the target finds too large. A single document that is too large
 * is counted as a failure and left out.
 */
static enum status
copier_send_halves(struct copier *c, struct str docs, size_t count, struct err *err)
{
	struct json_value *items;
	struct json_value list = { .kind = JSON_ARRAY_BEGIN };
	struct arena_mark mark = arena_mark(c->arena);
	const char *split;
	enum status status;

	if (count == 1) {
		run_add_counts(c->run, (struct checkpoint_counts){ .write_failures = 1 });
		return STATUS_OK;
	}
	list.text = arena_printf(c->arena, "[%.*s]", STR_ARG(docs));
	if (!list.text.ptr)
		return STATUS_LIMIT;
	TRY(json_value_items(&list, c->arena, &items, &count, err));
	split = items[count / 2].text.ptr;
	status = copier_send_docs(c, str_of(list.text.ptr + 1, (size_t)(split - list.text.ptr) - 2),
				  count / 2, err);
	if (status == STATUS_OK)
		status = copier_send_docs(
			c, str_of(split, list.text.len - 1 - (size_t)(split - list.text.ptr)),
			count - count / 2, err);
	arena_reset(c->arena, mark);
	return status;
}

static enum status
copier_send_docs(struct copier *c, struct str docs, size_t count, struct err *err)
{
	struct buf AUTO(buf_release)
		body = BUF_INIT_OF((size_t)RUN_ROW_BYTES + 2 * RUN_FLUSH_BYTES, &c->run->part);
	struct peer_request request = { .method = "POST", .path = STR("_bulk_docs") };
	struct arena_mark mark = arena_mark(c->arena);
	uint64_t failures = 0;
	int code;

	buf_append_cstr(&body, "{\"new_edits\":false,\"docs\":[");
	buf_append_str(&body, docs);
	buf_append_cstr(&body, "]}");
	TRY(buf_status(&body));
	request.body = buf_str(&body);
	TRY(peer_ask(&c->run->target, &request, &code, &c->answer, err));
	if (code == 413)
		return copier_send_halves(c, docs, count, err);
	if (code != 200 && code != 201 && code != 202)
		return peer_refused(&c->run->target, &request, code, err);
	TRY(copier_count_failures(c, &failures, err));
	arena_reset(c->arena, mark);
	run_add_counts(c->run, (struct checkpoint_counts){
				       .docs_written = failures < count ? count - failures : 0,
				       .write_failures = failures,
			       });
	return STATUS_OK;
}

enum status
copier_flush(struct copier *c, struct err *err)
{
	enum status status = STATUS_OK;

	if (c->count)
		status = copier_send_docs(c, buf_str(&c->docs), c->count, err);
	buf_clear(&c->docs);
	c->count = 0;
	return status;
}

/* A source must not bring another document in the place of the one that was asked for. */
static enum status
copier_check_id(struct copier *c, struct str id, struct str doc, struct err *err)
{
	struct arena_mark mark = arena_mark(c->arena);
	struct json_value value;
	struct json_member *members;
	const struct json_value *found;
	size_t count;
	bool same;

	TRY(json_value_read(doc, c->arena, &value, err));
	TRY(json_value_members(&value, c->arena, &members, &count, err));
	found = json_value_find(members, count, "_id");
	same = found && found->kind == JSON_STRING && str_eq(found->string, id);
	arena_reset(c->arena, mark);
	return same ? STATUS_OK
		    : err_set(err, STATUS_INVALID,
			      "the source sends another document in the place of %.*s",
			      STR_ARG(id));
}

enum status
copier_add(struct copier *c, struct str id, struct str doc, struct err *err)
{
	TRY(copier_check_id(c, id, doc, err));
	if (c->count && c->docs.len + doc.len > RUN_FLUSH_BYTES)
		TRY(copier_flush(c, err));
	assert((c->count > 0) == (c->docs.len > 0));
	if (c->count)
		buf_append_byte(&c->docs, ',');
	buf_append_str(&c->docs, doc);
	c->count++;
	return buf_status(&c->docs);
}
