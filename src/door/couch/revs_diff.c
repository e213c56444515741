/* POST /{db}/_revs_diff and _missing_revs: which of these revisions are not here? */
#include "door/couch/couch_int.h"

struct diff_call {
	struct couch_req *r;
	struct rev_diff_query *queries;
	struct rev_diff *diffs;
	size_t count;
	size_t known; /* the first so many have ids that a document here can have */
	struct arena_mark mark;
};

static enum status
diff_body(struct kv_tx *tx, void *arg)
{
	struct diff_call *c = arg;

	arena_reset(c->r->arena, c->mark);
	TRY(couch_db_open(c->r, tx, COUCH_ACCESS_MEMBER));
	return rev_diff(tx, c->r->db, c->queries, c->known, c->r->arena, c->diffs);
}

static enum status
parse_query(struct couch_req *r, const struct json_member *member, struct rev_diff_query *ret)
{
	struct json_value *items;
	size_t count;

	if (member->value.kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Invalid list of revisions");
	TRY(json_value_items(&member->value, r->arena, &items, &count, &r->fail.err));
	*ret = (struct rev_diff_query){ .id = member->name, .count = count };
	ret->revs = arena_alloc(r->arena, (count + 1) * sizeof(*ret->revs));
	if (!ret->revs)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		if (items[i].kind != JSON_STRING)
			return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
					      "Invalid rev format");
		TRY(couch_rev_parse(items[i].string, r->arena, &ret->revs[i], &r->fail));
	}
	return STATUS_OK;
}

/*
 * An id that no document here can have is one that lacks all revisions. To refuse the request would
 * keep a replicator from everything else that it asks for.
 */
static enum status
parse_queries(struct diff_call *c, const struct json_member *members)
{
	struct couch_fail unfit = { .error = COUCH_ERROR_NONE };
	size_t unknown = c->count;

	for (size_t i = 0; i < c->count; i++) {
		bool fits = couch_docid_check(members[i].name, &unfit) == STATUS_OK;
		size_t at = fits ? c->known++ : --unknown;

		TRY(parse_query(c->r, &members[i], &c->queries[at]));
	}
	return STATUS_OK;
}

static enum status
diff_run(struct diff_call *c)
{
	struct couch_req *r = c->r;
	struct json_member *members;

	TRY(couch_db_require_json(r));
	TRY(couch_db_precheck(r));
	TRY(couch_read_object(r, r->settings->door.body_bytes, &members, &c->count));
	c->queries = arena_alloc(r->arena, (c->count + 1) * sizeof(*c->queries));
	c->diffs = arena_zalloc(r->arena, (c->count + 1) * sizeof(*c->diffs));
	if (!c->queries || !c->diffs)
		return STATUS_LIMIT;
	TRY(parse_queries(c, members));
	c->mark = arena_mark(r->arena);
	TRY(kv_run_read(r->couch->config.store, diff_body, c, &r->fail.err));
	for (size_t i = c->known; i < c->count; i++) {
		c->diffs[i].missing = c->queries[i].revs;
		c->diffs[i].missing_count = c->queries[i].count;
	}
	return STATUS_OK;
}

static void
write_revs(const struct rev_id *revs, size_t count, struct buf *out)
{
	buf_append_byte(out, '[');
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_append_byte(out, ',');
		couch_rev_write(revs[i], out);
	}
	buf_append_byte(out, ']');
}

/* `"id":` in front of the next document that lacks something. */
static void
write_id(struct str id, bool *any, struct buf *out)
{
	if (*any)
		buf_append_byte(out, ',');
	*any = true;
	json_write_str(out, id);
	buf_append_byte(out, ':');
}

enum status
couch_revs_diff(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct diff_call c = { .r = r };
	bool any = false;

	TRY(diff_run(&c));
	buf_append_byte(&out, '{');
	for (size_t i = 0; i < c.count; i++) {
		const struct rev_diff *d = &c.diffs[i];

		if (d->missing_count == 0)
			continue;
		write_id(c.queries[i].id, &any, &out);
		buf_append_cstr(&out, "{\"missing\":");
		write_revs(d->missing, d->missing_count, &out);
		if (d->possible_ancestors_count) {
			buf_append_cstr(&out, ",\"possible_ancestors\":");
			write_revs(d->possible_ancestors, d->possible_ancestors_count, &out);
		}
		buf_append_byte(&out, '}');
	}
	buf_append_byte(&out, '}');
	return couch_reply(r, 200, &out);
}

enum status
couch_missing_revs(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct diff_call c = { .r = r };
	bool any = false;

	TRY(diff_run(&c));
	buf_append_cstr(&out, "{\"missing_revs\":{");
	for (size_t i = 0; i < c.count; i++) {
		if (c.diffs[i].missing_count == 0)
			continue;
		write_id(c.queries[i].id, &any, &out);
		write_revs(c.diffs[i].missing, c.diffs[i].missing_count, &out);
	}
	buf_append_cstr(&out, "}}");
	return couch_reply(r, 200, &out);
}
