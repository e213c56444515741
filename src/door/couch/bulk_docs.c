/*
 * POST /{db}/_bulk_docs: each document for itself, in transactions of some hundred that commit in
 * the order of the request. While one is being committed the next is prepared, so that the
 * connection's loop and the store work at the same time.
 *
 * Where commits that overlap might change places, in a store that is shared, there is one at a
 * time, with as many documents as fit. So it is where a document refers to attachments that may be
 * missing, which refuses the request and should leave little of it behind.
 *
 * A transaction cannot hold two edits of one document, so a request that has them is cut between
 * them, and the later one sees the earlier one committed.
 *
 * With "atomic": true, which CouchDB does not have, it is one transaction: all of them or none.
 */
#include "base/wait.h"
#include "door/couch/att.h"

struct entry {
	struct couch_doc doc;
	struct str id;
	struct couch_fail *fail; /* why it is not written; NULL so far */
	bool refused;            /* before anything was tried */
	enum status status;
	struct rev_id rev;
	bool idle; /* it was there already: its uploads are not needed */
};

enum {
	/*
	 * Of one transaction among several: what the store then waits for at the beginning, and
	 * the client at the end, is little, and a sync is still shared by many.
	 */
	CHUNK_DOCS = 256,
	CHUNK_BYTES = 1000000,
	CHUNKS_UNDER_WAY = 4,
	ATTEMPT_BYTES = 256 << 20, /* that one attempt may allocate */
	ENTRY_BYTES = 1000,
	PAIR_BYTES = 64,
};

/* A stretch of the entries that one transaction writes. */
struct chunk {
	struct bulk *b;
	size_t begin;
	size_t end;
	struct arena *arena; /* of an attempt, until its results are written */
	struct kv_running *running;
	struct couch_fail fail; /* the request's, as the attempts so far have left it */
};

struct bulk {
	struct couch_req *r;
	bool new_edits;
	bool atomic;
	bool all_or_nothing; /* CouchDB 1's, to write conflicts rather than to refuse */
	bool any_atts;
	struct entry *entries;
	size_t count;
	struct buf out;
	bool any_row;
	struct couch_uploads uploads;
	bool any_refused;

	/* Being written. */
	struct chunk chunks[CHUNKS_UNDER_WAY]; /* a ring */
	size_t oldest;
	size_t under_way;
	uint32_t *ids; /* entries by their ids: see take_id() */
	size_t ids_mask;

	const struct entry *culprit; /* atomic: the first that could not be written */
};

/* ---- Reading the request ---- */

static enum status
entry_refuse(struct couch_req *r, struct entry *e, enum couch_error error, const char *reason)
{
	e->fail = arena_zalloc(r->arena, sizeof(*e->fail));
	if (!e->fail)
		return STATUS_LIMIT;
	e->status = couch_fail_set(e->fail, error, "%s", reason);
	return STATUS_OK;
}

/* CouchDB refuses the request; one that is all or nothing tells which document it was. */
static enum status
entry_missing_stub(struct bulk *b, struct entry *e, struct str name)
{
	if (!b->atomic)
		return couch_missing_stub(e->id, name, &b->r->fail);
	e->fail = arena_zalloc(b->r->arena, sizeof(*e->fail));
	if (!e->fail)
		return STATUS_LIMIT;
	e->status = couch_missing_stub(e->id, name, e->fail);
	return STATUS_OK;
}

static enum status
check_entry(struct bulk *b, struct entry *e)
{
	struct couch_fail fail = { .error = COUCH_ERROR_NONE };
	struct couch_req *r = b->r;
	enum status status = STATUS_OK;

	if (!b->new_edits && e->doc.rev.pos == 0 && !couch_is_local(e->id)) {
		e->refused = true;
		return entry_refuse(r, e, COUCH_ERROR_BAD_REQUEST, "Invalid rev format");
	}
	if (b->new_edits)
		status = couch_replication_doc(r, e->id, &e->doc, &fail);
	if (status == STATUS_OK && !e->doc.deleted)
		status = couch_design_validate(r, e->id, &e->doc.doc, &fail);
	if (status != STATUS_OK && fail.error == COUCH_ERROR_NONE)
		return status;
	if (status != STATUS_OK) {
		e->refused = true;
		return entry_refuse(r, e, fail.error, fail.err.text);
	}
	b->any_atts = b->any_atts || e->doc.atts_count;
	return couch_atts_load(&b->uploads, &e->doc, NULL);
}

/* The id and the revision of a document that cannot be taken, as far as they can be read. */
static enum status
name_entry(struct bulk *b, struct entry *e, struct str text)
{
	struct couch_req *r = b->r;
	struct couch_fail unread = { .error = COUCH_ERROR_NONE };
	struct json_value object;
	struct json_member *members;
	const struct json_value *value;
	size_t count;

	TRY(json_value_read(text, r->arena, &object, &unread.err));
	TRY(json_value_members(&object, r->arena, &members, &count, &unread.err));
	value = json_value_find(members, count, "_id");
	e->id = value && value->kind == JSON_STRING ? value->string : STR("");
	value = json_value_find(members, count, "_rev");
	if (value && value->kind == JSON_STRING &&
	    couch_rev_parse(value->string, r->arena, &e->doc.rev, &unread) != STATUS_OK)
		e->doc.rev = (struct rev_id){ 0 };
	return STATUS_OK;
}

/*
 * Reads one document. What is wrong with it is remembered with the entry, and read over, unless it
 * is no JSON: whether it is the whole request's failure depends on new_edits, which may come later.
 */
static enum status
read_doc(struct bulk *b, struct json_reader *reader, struct entry *e)
{
	const struct json_reader begin = *reader;
	struct couch_req *r = b->r;
	struct couch_fail fail = { .error = COUCH_ERROR_NONE };
	enum status status;
	struct str text;

	status = couch_doc_parse(r, reader, (struct str){ NULL, 0 }, &e->doc, &fail);
	if (status == STATUS_OK) {
		e->id = e->doc.id;
		return STATUS_OK;
	}
	if (status == STATUS_NOMEM || status == STATUS_LIMIT) {
		r->fail = fail;
		return status;
	}
	json_rewind(reader, &begin);
	TRY(json_skip(reader, JSON_OBJECT_BEGIN, &text));
	e->fail = arena_alloc(r->arena, sizeof(*e->fail));
	if (!e->fail)
		return STATUS_LIMIT;
	*e->fail = fail;
	e->status = status;
	e->refused = true;
	e->doc = (struct couch_doc){ .id = { NULL, 0 } };
	return name_entry(b, e, text);
}

static enum status
read_docs(struct bulk *b, struct json_reader *reader)
{
	struct couch_req *r = b->r;
	const char *pause = reader->at;
	enum json_token token;
	size_t cap = 0;

	TRY(json_next(reader, &token));
	if (token != JSON_ARRAY_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`docs` parameter must be an array.");
	b->entries = NULL;
	b->count = 0;
	for (;;) {
		struct entry *grown;
		struct entry *e;

		TRY(json_next(reader, &token));
		if (token == JSON_ARRAY_END)
			return STATUS_OK;
		if (token != JSON_OBJECT_BEGIN)
			return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
					      "Document must be a JSON object");
		/* A large request takes a while: others on this loop go on meanwhile. */
		if ((size_t)(reader->at - pause) > COUCH_CHUNK_BYTES) {
			pause = reader->at;
			wait_yield();
		}
		grown = arena_grow(r->arena, b->entries, b->count, &cap, sizeof(*b->entries));
		if (!grown)
			return STATUS_LIMIT;
		b->entries = grown;
		e = &grown[b->count++];
		*e = (struct entry){ .status = STATUS_OK };
		TRY(read_doc(b, reader, e));
	}
}

static enum status
read_bool(struct bulk *b, const struct json_value *value, const char *name, bool *ret)
{
	if (value->kind != JSON_TRUE && value->kind != JSON_FALSE)
		return couch_fail_set(&b->r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`%s` parameter must be a boolean.", name);
	*ret = value->kind == JSON_TRUE;
	return STATUS_OK;
}

static enum status
read_members(struct bulk *b, struct json_reader *reader, bool *ret_has_docs)
{
	struct couch_req *r = b->r;
	struct json_value value;
	enum json_token token;

	for (;;) {
		bool is_docs;
		bool is_new_edits;
		bool is_atomic;
		bool is_all_or_nothing;

		TRY(json_next(reader, &token));
		if (token == JSON_OBJECT_END)
			return json_next(reader, &token);
		is_docs = str_eq(reader->text, STR("docs"));
		is_new_edits = str_eq(reader->text, STR("new_edits"));
		is_atomic = str_eq(reader->text, STR("atomic"));
		is_all_or_nothing = str_eq(reader->text, STR("all_or_nothing"));
		if (is_docs) {
			TRY(read_docs(b, reader));
			*ret_has_docs = true;
			continue;
		}
		TRY(json_next(reader, &token));
		TRY(json_value_take(reader, token, r->arena, &value));
		if (is_new_edits)
			TRY(read_bool(b, &value, "new_edits", &b->new_edits));
		if (is_atomic)
			TRY(read_bool(b, &value, "atomic", &b->atomic));
		if (is_all_or_nothing)
			TRY(read_bool(b, &value, "all_or_nothing", &b->all_or_nothing));
	}
}

static enum status
read_request(struct bulk *b, struct str body)
{
	struct json_reader AUTO(json_reader_release) reader;
	struct couch_req *r = b->r;
	enum json_token token;
	bool has_docs = false;

	json_reader_init(&reader, body, &r->fail.err);
	reader.wrapped = 2; /* {"docs": [document]} */
	TRY(json_next(&reader, &token));
	if (token != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Request body must be a JSON object");
	TRY(read_members(b, &reader, &has_docs));
	if (!has_docs)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "POST body must include `docs` parameter.");
	return STATUS_OK;
}

static enum status
check_entries(struct bulk *b)
{
	struct couch_req *r = b->r;

	for (size_t i = 0; i < b->count; i++) {
		struct entry *e = &b->entries[i];

		/*
		 * An edit that cannot be read is its client's mistake. What is replicated has been
		 * taken elsewhere: one document that has no place here must not keep out the rest.
		 */
		if (e->refused && b->new_edits) {
			r->fail = *e->fail;
			return e->status;
		}
		if (e->refused) {
			e->rev = e->doc.rev;
			continue;
		}
		if (!b->new_edits && e->doc.history_count == 0)
			return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
					      "When `new_edits: false`, the document needs `_rev` "
					      "or `_revisions` specified");
		if (!e->id.ptr) {
			e->id = couch_uuid_new(r->arena);
			if (!e->id.ptr)
				return STATUS_LIMIT;
		}
		e->rev = e->doc.rev;
		TRY(check_entry(b, e));
	}
	return STATUS_OK;
}

/* ---- Writing ---- */

static enum status
write_local(struct bulk *b, struct kv_tx *tx, struct entry *e)
{
	enum status status = couch_local_write(b->r, tx, e->id, &e->doc, &e->rev);

	if (status == STATUS_DOC_CONFLICT || status == STATUS_NOT_FOUND) {
		e->status = status;
		return STATUS_OK;
	}
	return status;
}

static enum status
check_design(struct bulk *b, struct kv_tx *tx, struct entry *e)
{
	bool admin;

	if (!couch_is_design(e->id))
		return STATUS_OK;
	TRY(couch_db_is_admin(b->r, tx, &admin));
	if (admin)
		return STATUS_OK;
	return entry_refuse(b->r, e, COUCH_ERROR_UNAUTHORIZED, "You are not a db or server admin.");
}

static enum status
write_edits(struct bulk *b, struct kv_tx *tx, const struct rev_edit *edits, struct entry **of_edit,
	    size_t count)
{
	struct couch_req *r = b->r;
	struct rev_result *results = arena_alloc(r->arena, count * sizeof(*results));

	if (!results)
		return STATUS_LIMIT;
	TRY(rev_write(tx, r->db, edits, count, 0, r->arena, results, &r->fail.err));
	for (size_t i = 0; i < count; i++) {
		of_edit[i]->status = results[i].status;
		if (results[i].status == STATUS_OK)
			of_edit[i]->rev = results[i].rev;
		of_edit[i]->idle = results[i].unchanged;
		if (results[i].status == STATUS_ATT_MISSING)
			TRY(entry_missing_stub(b, of_edit[i], results[i].att));
	}
	return STATUS_OK;
}

static enum status
write_entries(struct bulk *b, struct kv_tx *tx, size_t begin, size_t end)
{
	struct couch_req *r = b->r;
	size_t n = end - begin;
	struct rev_edit *edits = arena_alloc(r->arena, n * sizeof(*edits));
	struct entry **of_edit = arena_alloc(r->arena, n * sizeof(struct entry *));
	size_t count = 0;

	if (!edits || !of_edit)
		return STATUS_LIMIT;
	TRY(couch_db_open(r, tx, COUCH_ACCESS_MEMBER));
	for (size_t i = begin; i < end; i++) {
		struct entry *e = &b->entries[i];

		if (e->refused)
			continue;
		e->status = STATUS_OK;
		e->fail = NULL;
		e->rev = e->doc.rev;
		if (couch_is_local(e->id)) {
			TRY(write_local(b, tx, e));
			continue;
		}
		TRY(check_design(b, tx, e));
		if (e->fail)
			continue;
		edits[count] = couch_doc_edit(&e->doc, e->id, b->new_edits);
		if (couch_edit_of_nothing(&edits[count])) {
			e->status = STATUS_DOC_CONFLICT;
			continue;
		}
		of_edit[count++] = e;
	}
	return count ? write_edits(b, tx, edits, of_edit, count) : STATUS_OK;
}

/* One attempt at a chunk, in its arena. */
static enum status
chunk_body(struct kv_tx *tx, void *arg)
{
	struct chunk *c = arg;
	struct couch_req *r = c->b->r;
	struct arena *arena = r->arena;
	enum status status;

	arena_clear(c->arena);
	r->arena = c->arena;
	status = write_entries(c->b, tx, c->begin, c->end);
	r->arena = arena;
	return status;
}

static enum status
chunk_init(struct chunk *c, struct bulk *b, size_t begin, size_t end)
{
	c->b = b;
	c->begin = begin;
	c->end = end;
	c->fail = (struct couch_fail){ .error = COUCH_ERROR_NONE };
	if (c->arena)
		return STATUS_OK;
	c->arena = arena_new(ATTEMPT_BYTES);
	if (!c->arena)
		return STATUS_NOMEM;
	arena_set_part(c->arena, http_memory(b->r->x));
	return STATUS_OK;
}

static void
write_result(struct bulk *b, const struct entry *e)
{
	static const struct couch_fail unexplained;
	struct buf *out = &b->out;

	if (e->status == STATUS_OK && !b->new_edits)
		return;
	if (b->any_row)
		buf_append_byte(out, ',');
	b->any_row = true;
	buf_append_cstr(out, e->status == STATUS_OK ? "{\"ok\":true,\"id\":" : "{\"id\":");
	json_write_str(out, e->id);
	if (e->status == STATUS_OK || !b->new_edits) {
		buf_append_cstr(out, ",\"rev\":");
		couch_rev_write(e->rev, out);
	}
	if (e->status != STATUS_OK) {
		buf_append_byte(out, ',');
		couch_fail_write(e->status, e->fail ? e->fail : &unexplained, out);
	}
	buf_append_byte(out, '}');
}

static bool
is_too_large(enum status status)
{
	return status == STATUS_TX_TOO_LARGE || status == STATUS_VALUE_TOO_LARGE ||
	       status == STATUS_KEY_TOO_LARGE;
}

static enum status chunk_settle(struct bulk *b, struct chunk *c, enum status status);

static enum status
chunk_write(struct bulk *b, struct chunk *c, size_t begin, size_t end)
{
	c->begin = begin;
	c->end = end;
	return chunk_settle(
		b, c, kv_run(b->r->couch->config.store, chunk_body, c, NULL, &b->r->fail.err));
}

/*
 * Writes the results of a chunk that ended with `status`. Where the estimate was wrong and it was
 * too much for one transaction, the halves are tried; one entry that is too large fails alone.
 */
static enum status
chunk_settle(struct bulk *b, struct chunk *c, enum status status)
{
	size_t begin = c->begin, end = c->end;

	if (is_too_large(status) && end - begin > 1) {
		size_t middle = begin + (end - begin) / 2;

		TRY(chunk_write(b, c, begin, middle));
		return chunk_write(b, c, middle, end);
	}
	if (is_too_large(status))
		b->entries[begin].status = status;
	else if (status != STATUS_OK)
		return status;
	for (size_t i = begin; i < end; i++) {
		const struct entry *e = &b->entries[i];

		b->any_refused = b->any_refused || e->status != STATUS_OK || e->idle;
		write_result(b, e);
	}
	return buf_status(&b->out);
}

/* The next chunk's commit is under way with STATUS_OK. */
static enum status
begin_chunk(struct bulk *b, size_t begin, size_t end)
{
	struct couch_req *r = b->r;
	struct chunk *c = &b->chunks[(b->oldest + b->under_way) % CHUNKS_UNDER_WAY];

	TRY(chunk_init(c, b, begin, end));
	TRY(kv_run_begin(r->couch->config.store, chunk_body, c, &c->running, &r->fail.err));
	c->fail = r->fail;
	r->fail = (struct couch_fail){ .error = COUCH_ERROR_NONE };
	b->under_way++;
	return STATUS_OK;
}

static enum status
end_oldest(struct bulk *b)
{
	struct couch_req *r = b->r;
	struct chunk *c = &b->chunks[b->oldest];

	b->oldest = (b->oldest + 1) % CHUNKS_UNDER_WAY;
	b->under_way--;
	r->fail = c->fail;
	return chunk_settle(b, c, kv_run_end(c->running, &r->fail.err));
}

/* After a failure, `status`, which stands: what is under way is not interrupted. */
static enum status
end_rest(struct bulk *b, enum status status)
{
	for (; b->under_way; b->under_way--) {
		enum status rest = kv_run_end(b->chunks[b->oldest].running, NULL);

		if (status == STATUS_OK)
			status = rest;
		b->oldest = (b->oldest + 1) % CHUNKS_UNDER_WAY;
	}
	return status;
}

/* About what an entry will take of a transaction: pairs, and each key again as conflict ranges. */
static size_t
estimate_bytes(const struct entry *e)
{
	size_t bytes = ENTRY_BYTES + 8 * e->id.len + 40 * e->doc.history_count;

	for (size_t i = 0; e->doc.att_edits && i < e->doc.atts_count; i++)
		bytes += ENTRY_BYTES + e->doc.att_edits[i].data.len;
	bytes += 3 * (PAIR_BYTES + e->id.len) + e->doc.doc.packed.len;
	for (size_t i = 0; i < e->doc.doc.count; i++)
		bytes += 3 * (PAIR_BYTES + e->id.len + e->doc.doc.leaves[i].key.len) +
			 e->doc.doc.leaves[i].value.len;
	return bytes;
}

static enum status
make_ids(struct bulk *b)
{
	size_t slots = 4;

	while (slots < 2 * b->count)
		slots *= 2;
	b->ids = arena_zalloc(b->r->arena, slots * sizeof(*b->ids));
	b->ids_mask = slots - 1;
	return b->ids ? STATUS_OK : STATUS_LIMIT;
}

/*
 * Whether entry `i` may go into the chunk that follows those under way: not if its document is in
 * one of them, or in that chunk already, whose first entry is `begin`. The table holds the latest
 * entry of each id, as its number plus one.
 */
static bool
take_id(struct bulk *b, size_t begin, size_t i)
{
	size_t unsettled = b->under_way ? b->chunks[b->oldest].begin : begin;
	size_t at = str_hash(b->entries[i].id) & b->ids_mask;

	while (b->ids[at] && !str_eq(b->entries[b->ids[at] - 1].id, b->entries[i].id))
		at = (at + 1) & b->ids_mask;
	if (b->ids[at] > unsettled)
		return false;
	b->ids[at] = (uint32_t)i + 1;
	return true;
}

/* The end of the chunk that begins at `begin`; `begin` itself if that has to wait. */
static size_t
cut(struct bulk *b, size_t begin, size_t most_docs, size_t most_bytes)
{
	size_t bytes = 0;
	size_t end = begin;

	for (; end < b->count && end - begin < most_docs; end++) {
		if (b->entries[end].refused)
			continue;
		bytes += estimate_bytes(&b->entries[end]);
		if ((end > begin && bytes > most_bytes) || !take_id(b, begin, end))
			break;
	}
	return end;
}

static enum status
write_chunks(struct bulk *b)
{
	bool overlap = !b->any_atts && !kv_is_shared(b->r->couch->config.store);
	size_t most_docs = overlap ? CHUNK_DOCS : COUCH_BATCH_DOCS;
	size_t most_bytes = overlap ? CHUNK_BYTES : COUCH_BATCH_BYTES;
	size_t most_under_way = overlap ? CHUNKS_UNDER_WAY : 1;
	size_t begin = 0;

	while (begin < b->count) {
		size_t end = begin;

		if (b->under_way < most_under_way)
			end = cut(b, begin, most_docs, most_bytes);
		if (end == begin) {
			TRY(end_oldest(b));
			continue;
		}
		TRY(begin_chunk(b, begin, end));
		begin = end;
		if (begin < b->count)
			wait_yield();
	}
	while (b->under_way)
		TRY(end_oldest(b));
	return STATUS_OK;
}

static enum status
write_all(struct bulk *b)
{
	enum status status;

	TRY(make_ids(b));
	buf_append_byte(&b->out, '[');
	status = write_chunks(b);
	if (b->under_way) {
		const struct couch_fail fail = b->r->fail;

		status = end_rest(b, status);
		b->r->fail = fail;
	}
	TRY(status);
	buf_append_byte(&b->out, ']');
	return buf_status(&b->out);
}

/* ---- All or nothing ---- */

/* Why nothing is written: what is wrong with the first entry that cannot be. */
static enum status
take_failure(struct bulk *b)
{
	struct couch_fail *fail = &b->r->fail;

	b->culprit = NULL;
	for (size_t i = 0; i < b->count && !b->culprit; i++)
		if (b->entries[i].status != STATUS_OK)
			b->culprit = &b->entries[i];
	if (!b->culprit)
		return STATUS_OK;
	if (b->culprit->fail)
		*fail = *b->culprit->fail;
	else if (b->culprit->status == STATUS_DOC_CONFLICT)
		return couch_fail_set(fail, COUCH_ERROR_CONFLICT,
				      "Document update conflict: nothing was written.");
	return b->culprit->status;
}

static enum status
atomic_body(struct kv_tx *tx, void *arg)
{
	TRY(chunk_body(tx, arg));
	return take_failure(((struct chunk *)arg)->b);
}

static enum status
reply_failure(struct bulk *b, enum status status)
{
	struct couch_req *r = b->r;

	buf_clear(&b->out);
	buf_append_cstr(&b->out, "{\"id\":");
	json_write_str(&b->out, b->culprit->id);
	buf_append_byte(&b->out, ',');
	couch_fail_write(status, &r->fail, &b->out);
	buf_append_byte(&b->out, '}');
	return couch_reply(r, couch_fail_answer(status, &r->fail).code, &b->out);
}

static enum status
write_atomic(struct bulk *b)
{
	struct couch_req *r = b->r;
	enum status status = take_failure(b);

	if (status == STATUS_OK)
		status = chunk_init(&b->chunks[0], b, 0, b->count);
	if (status == STATUS_OK)
		status = kv_run(r->couch->config.store, atomic_body, &b->chunks[0], NULL,
				&r->fail.err);
	if (b->culprit)
		return reply_failure(b, status);
	if (is_too_large(status))
		return couch_fail_set(&r->fail, COUCH_ERROR_TOO_LARGE,
				      "An atomic request must fit a transaction: %d bytes of keys "
				      "and values, %d documents.",
				      KV_LIMIT_TX_BYTES, REV_BATCH_EDITS);
	TRY(status);
	buf_append_byte(&b->out, '[');
	for (size_t i = 0; i < b->count; i++) {
		b->any_refused = b->any_refused || b->entries[i].idle;
		write_result(b, &b->entries[i]);
	}
	buf_append_byte(&b->out, ']');
	b->uploads.taken = !b->any_refused;
	return couch_reply(r, 201, &b->out);
}

/* As CouchDB 3 answers, which does not have it either. */
static enum status
refuse_all(struct bulk *b)
{
	buf_append_byte(&b->out, '[');
	for (size_t i = 0; i < b->count; i++) {
		TRY(entry_refuse(b->r, &b->entries[i], COUCH_ERROR_ALL_OR_NOTHING,
				 "all_or_nothing is not supported"));
		write_result(b, &b->entries[i]);
	}
	buf_append_byte(&b->out, ']');
	return couch_reply(b->r, 417, &b->out);
}

static enum status
check_db(struct kv_tx *tx, void *arg)
{
	return couch_db_open(arg, tx, COUCH_ACCESS_MEMBER);
}

static enum status
serve(struct bulk *b)
{
	struct couch_req *r = b->r;
	struct str body;
	enum status status;

	TRY(couch_db_require_json(r));
	TRY(couch_db_precheck(r));
	TRY(couch_read_body(r, r->settings->door.body_bytes, &body));
	status = read_request(b, body);
	if (status == STATUS_OK)
		status = check_entries(b);
	if (status == STATUS_LIMIT && r->fail.err.status != STATUS_LIMIT &&
	    !http_memory(r->x)->refused)
		return couch_fail_set(&r->fail, COUCH_ERROR_TOO_LARGE,
				      "the request entity is too large");
	if (status != STATUS_OK)
		return status;
	/* An empty list still is about a database that has to be there. */
	if (b->count == 0)
		TRY(kv_run_read(r->couch->config.store, check_db, r, &r->fail.err));
	if (b->all_or_nothing)
		return refuse_all(b);
	if (b->atomic)
		return write_atomic(b);
	TRY(write_all(b));
	b->uploads.taken = !b->any_refused;
	return couch_reply(r, 201, &b->out);
}

enum status
couch_bulk_docs(struct couch_req *r)
{
	struct bulk b = { .r = r, .new_edits = true };
	enum status status;

	b.out = couch_buf(r, COUCH_ANSWER_BYTES);
	couch_uploads_init(&b.uploads, r);
	status = serve(&b);
	couch_uploads_release(&b.uploads);
	for (size_t i = 0; i < CHUNKS_UNDER_WAY; i++)
		arena_free(b.chunks[i].arena);
	buf_release(&b.out);
	return status;
}
