/* Loading into a store: batches of edits, a transaction each. */
#include "cli/load.h"

#include "base/mem.h"
#include "cli/cli.h"
#include "doc/json.h"
#include "door/couch/couch.h"
#include "model/revisioned/att_json.h"

enum {
	/* Keys and values of a transaction: well below KV_LIMIT_TX_BYTES. */
	BATCH_BYTES = 3 * 1000 * 1000,
	EDIT_BYTES = 600, /* what an edit costs besides its leaves, about */
	HISTORY_LIMIT = 65536,
	ATTS_MEMORY_BYTES = 2 * 1000 * 1000, /* of a document's attachments, in its transaction */
};

struct store_sink {
	struct load_sink sink;
	struct load_options options;
	struct kv_store *store;
	struct rev_tallies *tallies;
	struct rev_cache *cache;
	struct rev_db *db; /* as it was when the sink was made: for the lengths of keys */
	struct arena *arena;
	struct rev_edit *edits;
	struct load_origin *origins;
	struct rev_result *results;
	uint32_t *ids; /* a hash table of the batch's ids: index + 1, 0 is free */
	size_t ids_mask;
	size_t count;
	size_t bytes;
	struct rev_upload **uploads; /* of the batch, in the arena */
	size_t uploads_count;
	size_t uploads_cap;
};

/* ---- One document to one edit ---- */

static bool
is_true(struct str text)
{
	return str_eq(text, STR("true"));
}

/* The one token of a special member. */
static enum status
read_scalar(const struct doc_special *special, enum json_token wanted, struct arena *arena,
	    struct str *ret, struct err *err)
{
	enum json_token token = JSON_END;
	struct json_reader r;
	enum status status;

	json_reader_init(&r, special->text, err);
	status = json_next(&r, &token);
	if (status == STATUS_OK && token != wanted)
		status = err_set(err, STATUS_INVALID, "%.*s must be a %s", STR_ARG(special->name),
				 wanted == JSON_STRING ? "string" : "number");
	if (status == STATUS_OK) {
		*ret = arena_dup(arena, r.text);
		status = ret->ptr ? STATUS_OK : err_set(err, STATUS_LIMIT, "out of memory");
	}
	json_reader_release(&r);
	return status;
}

/* The hash that a revision's suffix stands for. */
static enum status
read_suffix(uint64_t pos, struct str suffix, struct arena *arena, struct str *ret, struct err *err)
{
	struct str text = arena_printf(arena, "%llu-%.*s", (unsigned long long)pos,
				       STR_ARG(suffix));
	struct rev_id rev;

	if (!text.ptr)
		return err_set(err, STATUS_LIMIT, "out of memory");
	TRY(rev_id_parse(text, arena, &rev, err));
	*ret = rev.hash;
	return STATUS_OK;
}

/* The array of _revisions.ids, whose opening bracket has been read. */
static enum status
read_history_ids(struct json_reader *r, struct arena *arena, struct rev_edit *edit, struct err *err)
{
	size_t cap = 16;

	edit->history = arena_alloc(arena, cap * sizeof(*edit->history));
	for (;;) {
		enum json_token token = JSON_END;
		struct str id;

		if (!edit->history)
			return err_set(err, STATUS_LIMIT, "out of memory");
		TRY(json_next(r, &token));
		if (token == JSON_ARRAY_END)
			return STATUS_OK;
		if (token != JSON_STRING || edit->history_count == HISTORY_LIMIT)
			return err_set(err, STATUS_INVALID,
				       "_revisions.ids must be an array of at most %d strings",
				       HISTORY_LIMIT);
		id = arena_dup(arena, r->text);
		if (!id.ptr)
			return err_set(err, STATUS_LIMIT, "out of memory");
		if (edit->history_count == cap) {
			struct str *more = arena_alloc(arena, 2 * cap * sizeof(*more));

			if (more)
				memcpy(more, edit->history, cap * sizeof(*more));
			edit->history = more;
			cap *= 2;
			if (!more)
				continue;
		}
		edit->history[edit->history_count++] = id;
	}
}

static enum status
read_revisions_members(struct json_reader *r, struct arena *arena, struct rev_edit *edit,
		       struct err *err)
{
	enum json_token token = JSON_END;
	struct str value;

	TRY(json_next(r, &token));
	if (token != JSON_OBJECT_BEGIN)
		return err_set(err, STATUS_INVALID, "_revisions must be an object");
	for (;;) {
		bool is_start;
		bool is_ids;

		TRY(json_next(r, &token));
		if (token == JSON_OBJECT_END)
			return STATUS_OK;
		is_start = str_eq(r->text, STR("start"));
		is_ids = str_eq(r->text, STR("ids"));
		TRY(json_next(r, &token));
		if (is_ids && token == JSON_ARRAY_BEGIN) {
			edit->history_count = 0;
			TRY(read_history_ids(r, arena, edit, err));
			continue;
		}
		if (is_start && (token != JSON_NUMBER || !str_to_u64(r->text, &edit->start)))
			return err_set(err, STATUS_INVALID, "_revisions.start must be a number");
		TRY(json_skip(r, token, &value));
	}
}

/* _revisions: {"start": 3, "ids": [newest, ...]}. */
static enum status
read_revisions(const struct doc_special *special, struct arena *arena, struct rev_edit *edit,
	       struct err *err)
{
	struct json_reader r;
	enum status status;

	json_reader_init(&r, special->text, err);
	status = read_revisions_members(&r, arena, edit, err);
	json_reader_release(&r);
	TRY(status);
	if (edit->history_count == 0 || edit->start < edit->history_count)
		return err_set(err, STATUS_INVALID,
			       "_revisions must have ids, and a start not below their number");
	for (size_t i = 0; i < edit->history_count; i++)
		TRY(read_suffix(edit->start - i, edit->history[i], arena, &edit->history[i], err));
	return STATUS_OK;
}

/* Which revision the edit makes, or extends. */
static enum status
read_revision(const struct load_options *options, const struct doc *doc, struct arena *arena,
	      struct rev_edit *edit, struct err *err)
{
	const struct doc_special *revisions = doc_find_special(doc, STR("_revisions"));
	const struct doc_special *rev = doc_find_special(doc, STR("_rev"));
	struct rev_id named = { 0 };
	struct str text;

	if (rev) {
		TRY(read_scalar(rev, JSON_STRING, arena, &text, err));
		TRY(rev_id_parse(text, arena, &named, err));
	}
	if (options->new_edits) {
		edit->kind = REV_EDIT_INTERACTIVE;
		edit->parent = named;
		return STATUS_OK;
	}
	edit->kind = REV_EDIT_REPLICATED;
	if (revisions)
		return read_revisions(revisions, arena, edit, err);
	if (!rev)
		return err_set(err, STATUS_INVALID,
			       "it has neither _rev nor _revisions, which --new-edits false needs");
	edit->start = named.pos;
	edit->history = arena_alloc(arena, sizeof(*edit->history));
	if (!edit->history)
		return err_set(err, STATUS_LIMIT, "out of memory");
	edit->history[0] = named.hash;
	edit->history_count = 1;
	return STATUS_OK;
}

/* CouchDB's rules for members and ids that begin with an underscore. */
static enum status
check_specials(const struct doc *doc, struct str id, struct err *err)
{
	static const char *const known[] = { "_id",        "_rev",         "_deleted",
					     "_revisions", "_attachments", "_conflicts",
					     "_revs_info", "_local_seq",   "_deleted_conflicts" };

	for (size_t i = 0; i < doc->specials_count; i++) {
		bool is_known = false;

		for (size_t j = 0; j < sizeof(known) / sizeof(known[0]); j++)
			is_known |= str_eq(doc->specials[i].name, str_from_cstr(known[j]));
		if (!is_known)
			return err_set(err, STATUS_INVALID, "Bad special document member: %.*s",
				       STR_ARG(doc->specials[i].name));
	}
	if (id.len == 0)
		return err_set(err, STATUS_INVALID, "its id is empty");
	if (id.len > REV_DOC_ID_BYTES)
		return err_set(err, STATUS_INVALID, "its id has %zu bytes; the limit is %d", id.len,
			       REV_DOC_ID_BYTES);
	if (str_starts_with(id, STR("_local/")))
		return err_set(err, STATUS_UNSUPPORTED, "local documents are not loaded");
	if (id.ptr[0] == '_' && !str_starts_with(id, STR("_design/")))
		return err_set(err, STATUS_INVALID,
			       "Only reserved document ids may start with underscore.");
	return STATUS_OK;
}

static enum status
make_edit(struct store_sink *s, const struct load_doc *doc, struct rev_edit *ret, size_t *ret_bytes,
	  struct err *err)
{
	const struct doc_limits limits = {
		.doc_bytes = s->options.doc_bytes,
		.path_bytes = KV_LIMIT_KEY_BYTES,
		.packed_bytes = rev_scheme_packed_bytes(s->db->scheme),
	};
	size_t prefix_bytes = rev_doc_prefix_bytes(s->db, doc->id);
	const struct doc_special *deleted;

	*ret = (struct rev_edit){ .id = arena_dup(s->arena, doc->id) };
	if (!ret->id.ptr)
		return err_set(err, STATUS_LIMIT, "out of memory");
	TRY(doc_explode_text(doc->text, s->arena, &limits, prefix_bytes, &ret->doc, err));
	TRY(check_specials(&ret->doc, doc->id, err));
	deleted = doc_find_special(&ret->doc, STR("_deleted"));
	ret->deleted = deleted && is_true(deleted->text);
	TRY(read_revision(&s->options, &ret->doc, s->arena, ret, err));

	*ret_bytes = EDIT_BYTES + 4 * prefix_bytes + ret->doc.packed.len;
	for (size_t i = 0; i < ret->doc.count; i++)
		*ret_bytes += prefix_bytes + ret->doc.leaves[i].key.len +
			      ret->doc.leaves[i].value.len;
	for (size_t i = 0; i < ret->history_count; i++)
		*ret_bytes += ret->history[i].len + 2;
	return STATUS_OK;
}

/* ---- Attachments ---- */

static enum status
load_att(struct store_sink *s, struct rev_att_json *att, size_t *memory, struct err *err)
{
	const struct str types = STR(COUCH_GZIP_TYPES);
	const struct rev_upload_options options = {
		.store = s->store,
		.db = s->db,
		.gzip_level = rev_att_type_in(att->edit.att.type, types) ? COUCH_GZIP_LEVEL : 0,
		.memory_bytes = ATTS_MEMORY_BYTES - *memory,
	};
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct rev_upload *upload;

	if (att->kind == REV_ATT_KIND_STUB)
		return STATUS_OK;
	if (att->kind == REV_ATT_KIND_FOLLOWS)
		return err_set(err, STATUS_INVALID, "its attachment \"%.*s\" is not in it",
			       STR_ARG(att->edit.att.name));
	if (s->uploads_count == s->uploads_cap) {
		size_t cap = s->uploads_cap ? 2 * s->uploads_cap : 16;
		struct rev_upload **more = arena_alloc(s->arena, cap * sizeof(*more));

		if (!more)
			return err_set(err, STATUS_LIMIT, "out of memory");
		if (s->uploads_count)
			memcpy(more, s->uploads, s->uploads_count * sizeof(*more));
		s->uploads = more;
		s->uploads_cap = cap;
	}
	TRY(rev_upload_new(&options, &upload));
	s->uploads[s->uploads_count++] = upload;
	TRY(rev_att_inline(att, upload, err));
	TRY(rev_upload_finish(upload, &att->edit, md5, err));
	*memory += att->edit.data.len;
	return STATUS_OK;
}

/* Takes the inline data; large attachments are in the store before their document is. */
static enum status
load_atts(struct store_sink *s, struct rev_edit *edit, struct err *err)
{
	const struct doc_special *special = doc_find_special(&edit->doc, STR("_attachments"));
	struct rev_att_edit *edits;
	struct rev_att_json *atts;
	size_t memory = 0;
	size_t count;

	if (!special)
		return STATUS_OK;
	TRY(rev_atts_parse(special->text, s->arena, &atts, &count, err));
	edits = arena_alloc(s->arena, (count + 1) * sizeof(*edits));
	if (!edits)
		return err_set(err, STATUS_LIMIT, "out of memory");
	for (size_t i = 0; i < count; i++) {
		TRY(load_att(s, &atts[i], &memory, err));
		edits[i] = atts[i].edit;
	}
	edit->atts = edits;
	edit->atts_count = count;
	s->bytes += memory;
	return STATUS_OK;
}

static void
free_uploads(struct store_sink *s)
{
	for (size_t i = 0; i < s->uploads_count; i++)
		rev_upload_free(s->uploads[i], false);
	s->uploads = NULL;
	s->uploads_count = s->uploads_cap = 0;
}

/* ---- Batches ---- */

/* True if the batch has an edit of that id already; otherwise it is noted for the next edit. */
static bool
note_id(struct store_sink *s, struct str id)
{
	for (size_t slot = str_hash(id) & s->ids_mask;; slot = (slot + 1) & s->ids_mask) {
		if (s->ids[slot] == 0) {
			s->ids[slot] = (uint32_t)s->count + 1;
			return false;
		}
		if (str_eq(s->edits[s->ids[slot] - 1].id, id))
			return true;
	}
}

struct write {
	struct store_sink *sink;
	struct rev_edit *edits;
	struct rev_result *results;
	size_t count;
	struct arena_mark mark;
	struct err err;
};

/* --update: whatever is there now is what the edits extend. */
static enum status
name_winners(struct kv_tx *tx, const struct rev_db *db, struct write *w)
{
	for (size_t i = 0; i < w->count; i++) {
		struct rev_edit *edit = &w->edits[i];
		enum status status = rev_winner_read(tx, db, edit->id, w->sink->arena,
						     &edit->parent);

		if (status == STATUS_NOT_FOUND || status == STATUS_DELETED)
			edit->parent = (struct rev_id){ 0 };
		else
			TRY(status);
	}
	return STATUS_OK;
}

static enum status
write_body(struct kv_tx *tx, void *arg)
{
	struct write *w = arg;
	struct store_sink *s = w->sink;
	struct rev_db *db = NULL;
	enum status status;

	arena_reset(s->arena, w->mark);
	TRY(rev_db_open(tx, s->cache, str_from_cstr(s->options.db), &db, &w->err));
	status = s->options.update ? name_winners(tx, db, w) : STATUS_OK;
	if (status == STATUS_OK)
		status = rev_write(tx, db, w->edits, w->count, 0, s->arena, w->results, &w->err);
	rev_db_unref(db);
	return status;
}

static void
tell_results(struct store_sink *s, size_t from, size_t count)
{
	for (size_t i = from; i < from + count; i++) {
		enum status status = s->results[i].status;

		if (status == STATUS_OK)
			s->options.report->loaded++;
		else if (status == STATUS_DOC_CONFLICT)
			load_refuse(s->options.report, &s->origins[i],
				    "document \"%.*s\": conflict: it is there already, and this "
				    "does not extend its current revision",
				    STR_ARG(s->edits[i].id));
		else if (status == STATUS_ATT_MISSING)
			load_refuse(
				s->options.report, &s->origins[i],
				"document \"%.*s\": its attachment \"%.*s\" is only a stub, and "
				"there is none to keep",
				STR_ARG(s->edits[i].id), STR_ARG(s->results[i].att));
		else
			load_refuse(s->options.report, &s->origins[i], "document \"%.*s\": %s",
				    STR_ARG(s->edits[i].id), status_name(status));
	}
}

/* One transaction; as many as it takes when it is too large after all. */
static enum status
write_edits(struct store_sink *s, size_t from, size_t count, struct err *err)
{
	struct write w = {
		.sink = s,
		.edits = s->edits + from,
		.results = s->results + from,
		.count = count,
		.mark = arena_mark(s->arena),
	};
	enum status status = kv_run(s->store, write_body, &w, NULL, err);

	if (status == STATUS_TX_TOO_LARGE && count > 1) {
		TRY(write_edits(s, from, count / 2, err));
		return write_edits(s, from + count / 2, count - count / 2, err);
	}
	if (status == STATUS_TX_TOO_LARGE) {
		load_refuse(s->options.report, &s->origins[from],
			    "document \"%.*s\": it has too many values for one transaction of %d "
			    "bytes",
			    STR_ARG(s->edits[from].id), KV_LIMIT_TX_BYTES);
		return STATUS_OK;
	}
	if (status != STATUS_OK) {
		if (w.err.text[0])
			*err = w.err;
		return status;
	}
	tell_results(s, from, count);
	return STATUS_OK;
}

/*
 * Nobody else has the store open who would split ranges that grow. What cannot be done now is left
 * to a server: documents are as well there.
 */
static void
tend_ranges(struct store_sink *s, bool now)
{
	enum status status = STATUS_OK;
	struct err err = { 0 };
	bool more = true;

	while (more && status == STATUS_OK) {
		status = rev_tallies_tend(s->tallies, s->store, now, &more, &err);
		now = true;
	}
	if (status != STATUS_OK)
		cli_complain("the ranges of \"%s\" are not tended: %s", s->options.db, err.text);
}

static enum status
store_flush(struct load_sink *sink, struct err *err)
{
	struct store_sink *s = (struct store_sink *)sink;
	enum status status = s->count ? write_edits(s, 0, s->count, err) : STATUS_OK;

	if (status == STATUS_OK)
		tend_ranges(s, false);
	free_uploads(s);
	s->count = 0;
	s->bytes = 0;
	memset(s->ids, 0, (s->ids_mask + 1) * sizeof(*s->ids));
	arena_clear(s->arena);
	return status;
}

static enum status
store_put(struct load_sink *sink, const struct load_doc *doc, struct err *err)
{
	struct store_sink *s = (struct store_sink *)sink;
	struct arena_mark mark = arena_mark(s->arena);
	struct rev_edit edit = { 0 };
	struct err reason = { 0 };
	enum status status;
	size_t bytes = 0;

	status = make_edit(s, doc, &edit, &bytes, &reason);
	if (status == STATUS_OK && s->count > 0 &&
	    (s->bytes + bytes > BATCH_BYTES || note_id(s, edit.id))) {
		/* It begins the next batch; what was made of it goes with this one's memory. */
		TRY(store_flush(sink, err));
		mark = arena_mark(s->arena);
		status = make_edit(s, doc, &edit, &bytes, &reason);
		if (status == STATUS_OK)
			note_id(s, edit.id);
	} else if (status == STATUS_OK && s->count == 0) {
		note_id(s, edit.id);
	}
	if (status == STATUS_OK)
		status = load_atts(s, &edit, &reason);
	if (status == STATUS_NOMEM)
		return err_set(err, status, "out of memory");
	if (status != STATUS_OK) {
		/* Uploads may be remembered behind the mark. */
		if (s->uploads_count == 0) {
			s->uploads_cap = 0;
			arena_reset(s->arena, mark);
		}
		load_refuse(s->options.report, &doc->origin, "%s",
			    reason.text[0] ? reason.text : status_name(status));
		return STATUS_OK;
	}
	s->edits[s->count] = edit;
	s->origins[s->count] = doc->origin;
	s->count++;
	s->bytes += bytes;
	if (s->count == s->options.batch_docs || s->bytes > BATCH_BYTES)
		return store_flush(sink, err);
	return STATUS_OK;
}

static void
store_free(struct load_sink *sink)
{
	struct store_sink *s = (struct store_sink *)sink;

	if (s->tallies)
		tend_ranges(s, true);
	free_uploads(s);
	rev_db_unref(s->db);
	rev_cache_free(s->cache);
	rev_tallies_free(s->tallies);
	arena_free(s->arena);
	mem_free(s->edits);
	mem_free(s->origins);
	mem_free(s->results);
	mem_free(s->ids);
	kv_close(s->store);
	mem_free(s);
}

/* ---- Making the sink ---- */

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	struct store_sink *s = arg;
	struct str name = str_from_cstr(s->options.db);
	struct err err = { 0 };
	enum status status;

	rev_db_unref(s->db);
	s->db = NULL;
	status = rev_db_open(tx, NULL, name, &s->db, &err);
	if (status != STATUS_NOT_FOUND || !s->options.create)
		return status;
	return rev_db_create(tx, name, s->options.scheme ? s->options.scheme : REV_SCHEME_DEFAULT,
			     &err);
}

/* Opens the database, making it where that is wanted. */
static enum status
open_database(struct store_sink *s, struct err *err)
{
	enum status status;

	if (!rev_db_name_valid(str_from_cstr(s->options.db)))
		return err_set(err, STATUS_INVALID,
			       "\"%s\" is not a database's name: it begins with a letter and has "
			       "only a-z, 0-9 and _$()+-/",
			       s->options.db);
	/* The first run may create it, the second has its description. */
	for (int i = 0; i < 2 && !s->db; i++) {
		status = kv_run(s->store, create_body, s, NULL, err);
		if (status == STATUS_NOT_FOUND)
			return err_set(err, status, "there is no database \"%s\"", s->options.db);
		TRY(status);
	}
	return s->db ? STATUS_OK
		     : err_set(err, STATUS_UNAVAILABLE, "somebody deletes the database \"%s\"",
			       s->options.db);
}

enum status
load_sink_store(struct kv_store *store, const struct load_options *options, struct load_sink **ret,
		struct err *err)
{
	struct store_sink *s = mem_zalloc(sizeof(*s));
	size_t slots = 1024;
	enum status status;

	if (!s) {
		kv_close(store);
		return err_set(err, STATUS_NOMEM, "out of memory");
	}
	while (slots < 2 * options->batch_docs)
		slots *= 2;
	*s = (struct store_sink){
		.sink = { store_put, store_flush, store_free },
		.options = *options,
		.store = store,
		.cache = rev_cache_new(),
		.tallies = rev_tallies_new(),
		.arena = arena_new(LOAD_ARENA_BYTES),
		.edits = mem_alloc(options->batch_docs * sizeof(*s->edits)),
		.origins = mem_alloc(options->batch_docs * sizeof(*s->origins)),
		.results = mem_zalloc(options->batch_docs * sizeof(*s->results)),
		.ids = mem_zalloc(slots * sizeof(*s->ids)),
		.ids_mask = slots - 1,
	};
	if (s->cache)
		rev_cache_share(s->cache, s->tallies);
	if (!s->cache || !s->tallies || !s->arena || !s->edits || !s->origins || !s->results ||
	    !s->ids)
		status = err_set(err, STATUS_NOMEM, "out of memory");
	else
		status = open_database(s, err);
	if (status != STATUS_OK) {
		store_free(&s->sink);
		return status;
	}
	*ret = &s->sink;
	return STATUS_OK;
}
