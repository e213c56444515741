/* Copies what the target lacks of a batch, by _revs_diff, _bulk_get and _bulk_docs. */
#include <stdlib.h>

#include "replicator/run_int.h"

/* ---- What is missing ---- */

static enum status
copy_read_texts(const struct json_value *array, struct arena *arena, struct str **ret,
		size_t *ret_count, struct err *err)
{
	struct json_value *items;
	size_t count;

	*ret_count = 0;
	if (!array)
		return STATUS_OK;
	TRY(json_value_items(array, arena, &items, &count, err));
	*ret = arena_alloc(arena, (count + 1) * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		if (items[i].kind == JSON_STRING)
			(*ret)[(*ret_count)++] = items[i].string;
	return STATUS_OK;
}

static int
copy_compare_changes(const void *a, const void *b)
{
	return str_cmp((*(const struct change *const *)a)->id,
		       (*(const struct change *const *)b)->id);
}

/* The changes of a batch in the order of their ids, in the arena. */
static enum status
copy_sort_changes(struct copy_batch *b, const struct change ***ret)
{
	*ret = arena_alloc(b->arena, (b->count + 1) * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	for (size_t i = 0; i < b->count; i++)
		(*ret)[i] = &b->changes[i];
	qsort(*ret, b->count, sizeof(**ret), copy_compare_changes);
	return STATUS_OK;
}

static bool
copy_was_offered(const struct change *change, struct str rev)
{
	for (size_t i = 0; i < change->revs_count; i++) {
		if (str_eq(change->revs[i], rev))
			return true;
	}
	return false;
}

/*
 * A target may ask only for what it was offered: otherwise it could read documents of the source
 * that a filter keeps from it.
 */
static enum status
copy_check_offered(const struct change **sorted, size_t count, const struct missing *m,
		   struct err *err)
{
	const struct change wanted = { .id = m->id };
	const struct change *key = &wanted;
	const struct change **found = bsearch(&key, sorted, count, sizeof(*sorted),
					      copy_compare_changes);

	/* A document may be on a page twice; any of its changes will do. */
	for (size_t i = found ? (size_t)(found - sorted) : count; i > 0; i--) {
		if (!str_eq(sorted[i - 1]->id, m->id))
			break;
		found = &sorted[i - 1];
	}
	for (size_t k = 0; found && k < m->revs_count; k++) {
		const struct change **at = found;

		while (at < sorted + count && str_eq((*at)->id, m->id) &&
		       !copy_was_offered(*at, m->revs[k]))
			at++;
		if (at == sorted + count || !str_eq((*at)->id, m->id))
			found = NULL;
	}
	return found ? STATUS_OK
		     : err_set(err, STATUS_INVALID,
			       "the target asks for a revision that it was not offered, of %.*s",
			       STR_ARG(m->id));
}

static enum status
copy_read_revs_diff(struct copy_batch *b, struct str text, struct missing **ret, size_t *ret_count,
		    uint64_t *ret_revs, struct err *err)
{
	const struct change **sorted;
	struct json_value object;
	struct json_member *docs;
	struct missing *missing;
	size_t count;

	text = arena_dup(b->arena, text);
	if (!text.ptr)
		return STATUS_LIMIT;
	TRY(json_value_read(text, b->arena, &object, err));
	TRY(json_value_members(&object, b->arena, &docs, &count, err));
	missing = arena_zalloc(b->arena, (count + 1) * sizeof(*missing));
	if (!missing)
		return STATUS_LIMIT;
	TRY(copy_sort_changes(b, &sorted));
	for (size_t i = 0; i < count; i++) {
		struct missing *m = &missing[i];
		struct json_member *members;
		size_t n;

		m->id = docs[i].name;
		TRY(json_value_members(&docs[i].value, b->arena, &members, &n, err));
		TRY(copy_read_texts(json_value_find(members, n, "missing"), b->arena, &m->revs,
				    &m->revs_count, err));
		TRY(copy_read_texts(json_value_find(members, n, "possible_ancestors"), b->arena,
				    &m->ancestors, &m->ancestors_count, err));
		TRY(copy_check_offered(sorted, b->count, m, err));
		m->brought = arena_zalloc(b->arena, m->revs_count + 1);
		if (!m->brought)
			return STATUS_LIMIT;
		*ret_revs += m->revs_count;
	}
	*ret = missing;
	*ret_count = count;
	return STATUS_OK;
}

static enum status
copy_batch_find_missing(struct copier *c, struct copy_batch *b, struct missing **ret,
			size_t *ret_count, struct err *err)
{
	struct buf AUTO(buf_release) body = BUF_INIT_OF(RUN_BATCH_BYTES, &c->run->part);
	struct peer_request request = { .method = "POST", .path = STR("_revs_diff") };
	uint64_t revs = 0;
	enum status status;
	int code;

	buf_append_byte(&body, '{');
	for (size_t i = 0; i < b->count; i++) {
		const struct change *change = &b->changes[i];

		if (i)
			buf_append_byte(&body, ',');
		json_write_str(&body, change->id);
		buf_append_cstr(&body, ":[");
		for (size_t k = 0; k < change->revs_count; k++) {
			if (k)
				buf_append_byte(&body, ',');
			json_write_str(&body, change->revs[k]);
		}
		buf_append_byte(&body, ']');
	}
	buf_append_byte(&body, '}');
	TRY(buf_status(&body));
	request.body = buf_str(&body);
	TRY(peer_ask(&c->run->target, &request, &code, &c->answer, err));
	if (code != 200)
		return peer_refused(&c->run->target, &request, code, err);
	status = copy_read_revs_diff(b, buf_str(&c->answer), ret, ret_count, &revs, err);
	run_add_counts(c->run, (struct checkpoint_counts){ .revisions_checked = b->revs,
							   .missing_found = revs });
	return status;
}

/* ---- From the source, many documents at once ---- */

/*
 * The document that a row of _bulk_get's answer is about; NULL if the request has not named it.
 * Rows come in the order of the request, so the search begins where the last one ended.
 */
static struct missing *
bulk_find_requested(struct missing *missing, size_t count, size_t *at, struct str id)
{
	for (size_t i = 0; i < count; i++) {
		struct missing *m = &missing[(*at + i) % count];

		if (str_eq(m->id, id)) {
			*at = (*at + i) % count;
			return m;
		}
	}
	return NULL;
}

struct bulk_request {
	struct copier *copier;
	struct missing *missing;
	size_t count;
	size_t at;     /* the document that the last row was about */
	uint64_t revs; /* that were asked for: as many rows are to come */
	uint64_t rows;
	uint64_t brought; /* revisions without attachments, now on their way to the target */
};

/*
 * Takes a revision that one row is about; `row` is the number of the revision that the row answers,
 * since rows come in the order of the request. A revision that was asked for counts by its name.
 * Another one has come in the place of the row's, which is no leaf any more. What has attachments,
 * or is not there, is left to be fetched by itself.
 */
static enum status
bulk_take_result(struct bulk_request *asked, struct missing *m, size_t row,
		 const struct json_value *result, struct err *err)
{
	struct copier *c = asked->copier;
	struct json_member *members;
	const struct json_value *doc, *rev;
	bool has_atts = false;
	size_t count, number = 0;

	TRY(json_value_members(result, c->arena, &members, &count, err));
	doc = json_value_find(members, count, "ok");
	if (!doc || doc->kind != JSON_OBJECT_BEGIN)
		return STATUS_OK;
	TRY(doc_has_attachments(doc->text, c->arena, &has_atts, err));
	if (has_atts)
		return STATUS_OK;
	TRY(json_value_members(doc, c->arena, &members, &count, err));
	rev = json_value_find(members, count, "_rev");
	while (number < m->revs_count && !(rev && str_eq(m->revs[number], rev->string)))
		number++;
	m->brought[number < m->revs_count ? number : row] = true;
	asked->brought++;
	return copier_add(c, m->id, doc->text, err);
}

/* {"id":…,"docs":[{"ok":{…}},…]} */
static enum status
bulk_take_row(void *arg, struct str row, struct err *err)
{
	struct bulk_request *asked = arg;
	struct copier *c = asked->copier;
	struct arena_mark mark = arena_mark(c->arena);
	struct json_value value;
	struct json_member *members;
	const struct json_value *id;
	const struct json_value *docs;
	struct json_value *items;
	struct missing *m;
	size_t n, number;

	TRY(json_value_read(row, c->arena, &value, err));
	TRY(json_value_members(&value, c->arena, &members, &n, err));
	id = json_value_find(members, n, "id");
	docs = json_value_find(members, n, "docs");
	m = id && id->kind == JSON_STRING
		    ? bulk_find_requested(asked->missing, asked->count, &asked->at, id->string)
		    : NULL;
	if (!m || ++asked->rows > asked->revs)
		return err_set(err, STATUS_INVALID,
			       "the source sends documents that it was not asked for");
	if (!docs || docs->kind != JSON_ARRAY_BEGIN) {
		arena_reset(c->arena, mark);
		return STATUS_OK;
	}
	TRY(json_value_items(docs, c->arena, &items, &n, err));
	number = m->rows < m->revs_count ? m->rows : m->revs_count - 1;
	m->rows++;
	for (size_t i = 0; i < n; i++)
		TRY(bulk_take_result(asked, m, number, &items[i], err));
	arena_reset(c->arena, mark);
	return STATUS_OK;
}

static enum status
bulk_read_answer(struct copier *c, struct net_call *call, struct missing *missing, size_t count,
		 struct err *err)
{
	struct bulk_request asked = { .copier = c, .missing = missing, .count = count };
	struct rows rows;
	struct str rest;
	enum status status;

	for (size_t i = 0; i < count; i++)
		asked.revs += missing[i].revs_count;
	rows_init(&rows, RUN_ROW_BYTES, &c->run->part);
	status = peer_read_rows(&rows, call, bulk_take_row, &asked, &rest, err);
	if (status == STATUS_JSON_SYNTAX)
		status = err_set(err, STATUS_IO, "an answer of the source is cut off");
	rows_release(&rows);
	if (status == STATUS_OK)
		run_add_counts(c->run, (struct checkpoint_counts){
					       .docs_read = asked.brought,
					       .bulk_get_docs = asked.brought,
				       });
	return status;
}

static void
bulk_write_request(const struct missing *missing, size_t count, struct buf *body)
{
	bool any = false;

	buf_append_cstr(body, "{\"docs\":[");
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < missing[i].revs_count; k++) {
			buf_append_cstr(body, any ? ",{\"id\":" : "{\"id\":");
			any = true;
			json_write_str(body, missing[i].id);
			buf_append_cstr(body, ",\"rev\":");
			json_write_str(body, missing[i].revs[k]);
			buf_append_byte(body, '}');
		}
	}
	buf_append_cstr(body, "]}");
}

static enum status
bulk_get_once(struct copier *c, struct missing *missing, size_t count, struct err *err)
{
	struct buf AUTO(buf_release) body = BUF_INIT_OF(RUN_BATCH_BYTES, &c->run->part);
	struct peer *source = &c->run->source;
	struct peer_request request = {
		.method = "POST",
		.path = STR("_bulk_get?revs=true&latest=true&attachments=false"),
	};
	struct net_call *call;
	enum status status;
	int code;

	bulk_write_request(missing, count, &body);
	TRY(buf_status(&body));
	request.body = buf_str(&body);
	TRY(peer_open(source, &request, &call, err));
	status = net_answer(call, &code, err);
	if (status == STATUS_OK &&
	    (code == 400 || code == 404 || code == 405 || code == 500 || code == 501))
		source->no_bulk = true;
	else if (status == STATUS_OK && code != 200)
		status = peer_refused(source, &request, code, err);
	else if (status == STATUS_OK)
		status = bulk_read_answer(c, call, missing, count, err);
	net_close(call);
	return status;
}

/*
 * A try that breaks off may already have sent some of the documents to the target. The next try
 * sends them again, which changes nothing there: the target knows these revisions.
 */
static enum status
bulk_get(struct copier *c, struct missing *missing, size_t count, struct err *err)
{
	struct peer_tries tries = peer_tries(&c->run->source);
	struct checkpoint_counts counts = { 0 };

	for (size_t i = 0; i < count; i++)
		counts.bulk_get_attempts += missing[i].revs_count;
	run_add_counts(c->run, counts);
	for (;;) {
		enum status status = bulk_get_once(c, missing, count, err);

		if (status == STATUS_OK)
			return STATUS_OK;
		for (size_t i = 0; i < count; i++) {
			memset(missing[i].brought, 0, missing[i].revs_count);
			missing[i].rows = 0;
		}
		buf_clear(&c->docs);
		c->count = 0;
		TRY(peer_try_again(&c->run->source, &tries, status, err));
	}
}

/* ---- A batch ---- */

/* Leaves the revisions that _bulk_get has not brought. */
static void
missing_drop_brought(struct missing *m)
{
	size_t left = 0;

	for (size_t i = 0; i < m->revs_count; i++)
		if (!m->brought[i])
			m->revs[left++] = m->revs[i];
	m->revs_count = left;
}

static enum status
copier_copy_missing(struct copier *c, struct missing *missing, size_t count, struct err *err)
{
	struct repl_run *r = c->run;

	if (r->spec->options.use_bulk_get && !r->source.no_bulk)
		TRY(bulk_get(c, missing, count, err));
	for (size_t i = 0; i < count; i++) {
		missing_drop_brought(&missing[i]);
		if (missing[i].revs_count)
			TRY(missing_copy_alone(c, &missing[i], err));
	}
	return copier_flush(c, err);
}

enum status
copy_batch_copy(struct repl_run *r, struct copy_batch *b, struct err *err)
{
	struct copier c = { .run = r, .arena = run_arena_new(r, RUN_DOC_ARENA_BYTES) };
	struct missing *missing = NULL;
	size_t count = 0;
	enum status status;

	if (!c.arena)
		return err_set(err, STATUS_NOMEM, "out of memory for documents");
	c.docs = BUF_INIT_OF((size_t)RUN_ROW_BYTES + RUN_FLUSH_BYTES, &r->part);
	c.answer = BUF_INIT_OF(PEER_ANSWER_BYTES, &r->part);
	status = copy_batch_find_missing(&c, b, &missing, &count, err);
	if (status == STATUS_OK && count)
		status = copier_copy_missing(&c, missing, count, err);
	buf_release(&c.docs);
	buf_release(&c.answer);
	arena_free(c.arena);
	return status;
}
