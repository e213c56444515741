/* Loading into a store: batches of edits, a transaction each. */
#include "cli/load.h"

#include "access/settings.h"
#include "base/hash.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/settings.h"
#include "doc/json.h"
#include "doc/packed.h"
#include "door/couch/couch.h"
#include "catalog/tally.h"
#include "js/js.h"
#include "js/settings.h"
#include "model/revisioned/att_json.h"
#include "model/revisioned/body.h"
#include "settings/settings.h"

enum {
	/* Keys and values of a transaction stay well below KV_LIMIT_TX_BYTES. */
	BATCH_BYTES = 3 * 1000 * 1000,
	EDIT_BYTES = 600, /* about what an edit costs besides its leaves */
	HISTORY_LIMIT = 65536,
	/* Attachments of a document up to this size go into its own transaction. */
	ATTS_MEMORY_BYTES = 2 * 1000 * 1000,
};

struct store_sink {
	struct load_sink sink;
	struct load_options options;
	struct kv_store *store;
	struct catalog_tallies *tallies;
	struct catalog_cache *cache;
	/* As it was when the sink was made. It only serves to know how long keys are. */
	struct catalog_db *db;
	struct arena *arena;
	struct arena *user_arena; /* for one document of _users; NULL: another database */
	struct rev_edit *edits;
	struct load_origin *origins;
	struct rev_result *results;
	/* A hash table of the ids of the batch. An entry is an index + 1, or 0 where it is free. */
	uint32_t *ids;
	size_t ids_mask;
	struct settings *settings;   /* those of the store */
	struct js *js;               /* starts nothing before a database has validators */
	struct couch_loader *loader; /* has them see the documents */
	size_t count;
	size_t bytes;
	struct rev_upload **uploads; /* of the batch, in the arena */
	size_t uploads_count;
	size_t uploads_cap;
};

/* ---- Making one edit of one document ---- */

static bool
special_is_true(struct str text)
{
	return str_eq(text, STR("true"));
}

/* Reads a special member whose value is one token. */
static enum status
special_read_scalar(const struct doc_special *special, enum json_token wanted, struct arena *arena,
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

/* Reads the part of a revision behind the "-" as a hash. */
static enum status
revision_read_suffix(uint64_t pos, struct str suffix, struct arena *arena, struct str *ret,
		     struct err *err)
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

/* Reads the array _revisions.ids. Its opening bracket has been read already. */
static enum status
revisions_read_ids(struct json_reader *r, struct arena *arena, struct rev_edit *edit,
		   struct err *err)
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
revisions_read_members(struct json_reader *r, struct arena *arena, struct rev_edit *edit,
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
			TRY(revisions_read_ids(r, arena, edit, err));
			continue;
		}
		if (is_start && (token != JSON_NUMBER || !str_to_u64(r->text, &edit->start)))
			return err_set(err, STATUS_INVALID, "_revisions.start must be a number");
		TRY(json_skip(r, token, &value));
	}
}

/* Reads the member _revisions: {"start": 3, "ids": [newest, ...]}. */
static enum status
revisions_read(const struct doc_special *special, struct arena *arena, struct rev_edit *edit,
	       struct err *err)
{
	struct json_reader r;
	enum status status;

	json_reader_init(&r, special->text, err);
	status = revisions_read_members(&r, arena, edit, err);
	json_reader_release(&r);
	TRY(status);
	if (edit->history_count == 0 || edit->start < edit->history_count)
		return err_set(err, STATUS_INVALID,
			       "_revisions must have ids, and a start not below their number");
	for (size_t i = 0; i < edit->history_count; i++)
		TRY(revision_read_suffix(edit->start - i, edit->history[i], arena,
					 &edit->history[i], err));
	return STATUS_OK;
}

/* Reads which revision the edit makes or extends. */
static enum status
revision_read(const struct load_options *options, const struct doc *doc, struct arena *arena,
	      struct rev_edit *edit, struct err *err)
{
	const struct doc_special *revisions = doc_find_special(doc, STR("_revisions"));
	const struct doc_special *rev = doc_find_special(doc, STR("_rev"));
	struct rev_id named = { 0 };
	struct str text;

	if (rev) {
		TRY(special_read_scalar(rev, JSON_STRING, arena, &text, err));
		TRY(rev_id_parse(text, arena, &named, err));
	}
	if (options->new_edits) {
		edit->kind = REV_EDIT_INTERACTIVE;
		edit->parent = named;
		return STATUS_OK;
	}
	edit->kind = REV_EDIT_REPLICATED;
	if (revisions)
		return revisions_read(revisions, arena, edit, err);
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
special_check_names(const struct doc *doc, struct str id, struct err *err)
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
store_make_edit(struct store_sink *s, const struct load_doc *doc, struct rev_edit *ret,
		size_t *ret_bytes, struct err *err)
{
	const struct doc_limits limits = rev_doc_limits(s->db, s->options.doc_bytes);
	size_t prefix_bytes = rev_doc_prefix_bytes(s->db, doc->id);
	const struct doc_special *deleted;

	*ret = (struct rev_edit){ .id = arena_dup(s->arena, doc->id) };
	if (!ret->id.ptr)
		return err_set(err, STATUS_LIMIT, "out of memory");
	TRY(doc_explode_text(doc->text, s->arena, &limits, prefix_bytes, &ret->doc, err));
	TRY(special_check_names(&ret->doc, doc->id, err));
	deleted = doc_find_special(&ret->doc, STR("_deleted"));
	ret->deleted = deleted && special_is_true(deleted->text);
	TRY(revision_read(&s->options, &ret->doc, s->arena, ret, err));

	*ret_bytes = EDIT_BYTES + 4 * prefix_bytes + ret->doc.packed.len;
	for (size_t i = 0; i < ret->doc.count; i++)
		*ret_bytes += prefix_bytes + ret->doc.leaves[i].key.len +
			      ret->doc.leaves[i].value.len;
	for (size_t i = 0; i < ret->history_count; i++)
		*ret_bytes += ret->history[i].len + 2;
	return STATUS_OK;
}

/* ---- Attachments ---- */

/* Makes room for one more upload. */
static enum status
store_reserve_upload(struct store_sink *s, struct err *err)
{
	size_t cap = s->uploads_cap ? 2 * s->uploads_cap : 16;
	struct rev_upload **more;

	if (s->uploads_count < s->uploads_cap)
		return STATUS_OK;
	more = arena_alloc(s->arena, cap * sizeof(*more));
	if (!more)
		return err_set(err, STATUS_LIMIT, "out of memory");
	if (s->uploads_count)
		memcpy(more, s->uploads, s->uploads_count * sizeof(*more));
	s->uploads = more;
	s->uploads_cap = cap;
	return STATUS_OK;
}

static enum status
store_load_att(struct store_sink *s, struct rev_att_json *att, size_t *memory, struct err *err)
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
	TRY(store_reserve_upload(s, err));
	TRY(rev_upload_new(&options, &upload));
	s->uploads[s->uploads_count++] = upload;
	TRY(rev_att_inline(att, upload, err));
	TRY(rev_upload_finish(upload, &att->edit, md5, err));
	*memory += att->edit.data.len;
	return STATUS_OK;
}

/* Stores a long body ahead, so that its batch has room for other documents. */
static enum status
store_stage_body(struct store_sink *s, struct rev_edit *edit, size_t *bytes, struct err *err)
{
	struct rev_text *text = arena_alloc(s->arena, sizeof(*text));
	struct rev_upload *upload;

	if (!text)
		return err_set(err, STATUS_LIMIT, "out of memory");
	TRY(store_reserve_upload(s, err));
	TRY(rev_text_stage(s->store, s->db, edit->id, &edit->doc, s->arena, text, &upload, err));
	if (!upload)
		return STATUS_OK;
	s->uploads[s->uploads_count++] = upload;
	edit->text = text;
	*bytes -= edit->doc.packed.len;
	return STATUS_OK;
}

/* Takes the inline data. Large attachments are stored before their document. */
static enum status
store_load_atts(struct store_sink *s, struct rev_edit *edit, struct err *err)
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
		TRY(store_load_att(s, &atts[i], &memory, err));
		edits[i] = atts[i].edit;
	}
	edit->atts = edits;
	edit->atts_count = count;
	s->bytes += memory;
	return STATUS_OK;
}

static void
store_free_uploads(struct store_sink *s)
{
	for (size_t i = 0; i < s->uploads_count; i++)
		rev_upload_free(s->uploads[i], false);
	s->uploads = NULL;
	s->uploads_count = s->uploads_cap = 0;
}

/* ---- Batches ---- */

/* True if the batch has an edit of that id already. Otherwise the id is noted for the next edit. */
static bool
batch_note_id(struct store_sink *s, struct str id)
{
	for (size_t slot = hash_keyed(0, id) & s->ids_mask;; slot = (slot + 1) & s->ids_mask) {
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

/* With --update each edit extends the winner that the document has now. */
static enum status
batch_name_winners(struct kv_tx *tx, const struct catalog_db *db, struct write *w)
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

/* Writes the edits that no validator denies; the others are STATUS_FORBIDDEN. */
static enum status
batch_write_allowed(struct kv_tx *tx, struct catalog_db *db, struct write *w)
{
	struct store_sink *s = w->sink;
	struct rev_edit *edits = arena_alloc(s->arena, w->count * sizeof(*edits));
	struct rev_result *results = arena_zalloc(s->arena, w->count * sizeof(*results));
	size_t *places = arena_alloc(s->arena, w->count * sizeof(*places));
	size_t n = 0;

	if (!edits || !results || !places)
		return STATUS_LIMIT;
	for (size_t i = 0; i < w->count; i++) {
		w->results[i] = (struct rev_result){ .status = STATUS_FORBIDDEN };
		if (couch_loader_denial(s->loader, i, s->arena))
			continue;
		places[n] = i;
		edits[n++] = w->edits[i];
	}
	if (n)
		TRY(rev_write(tx, db, edits, n, 0, s->arena, results, &w->err));
	for (size_t i = 0; i < n; i++)
		w->results[places[i]] = results[i];
	return STATUS_OK;
}

static enum status
batch_write_in(struct kv_tx *tx, struct catalog_db *db, struct write *w)
{
	struct store_sink *s = w->sink;

	if (s->options.update)
		TRY(batch_name_winners(tx, db, w));
	if (s->options.as_stored)
		return rev_write(tx, db, w->edits, w->count, 0, s->arena, w->results, &w->err);
	TRY(couch_loader_vet(s->loader, tx, db, w->edits, w->count, s->arena, &w->err));
	return batch_write_allowed(tx, db, w);
}

static enum status
batch_write_body(struct kv_tx *tx, void *arg)
{
	struct write *w = arg;
	struct store_sink *s = w->sink;
	struct catalog_db *db = NULL;
	enum status status;

	arena_reset(s->arena, w->mark);
	TRY(rev_db_open(tx, s->cache, str_from_cstr(s->options.db), &db, &w->err));
	status = batch_write_in(tx, db, w);
	catalog_db_unref(db);
	return status;
}

/* Writes them in one transaction. Where validators have to see them first, tries again after it. */
static enum status
batch_write_vetted(struct write *w, struct err *err)
{
	struct store_sink *s = w->sink;

	couch_loader_begin(s->loader);
	for (;;) {
		enum status status = kv_run(s->store, batch_write_body, w, NULL, err);

		if (status != STATUS_UNVETTED)
			return status;
		status = couch_loader_run(s->loader, s->arena, &w->err);
		if (status != STATUS_OK)
			return status;
		/* What validators have seen, and said, stays below the next attempt. */
		w->mark = arena_mark(s->arena);
	}
}

/* Why a document was refused, if there is not more to say than that. */
static const char *
batch_refusal(const struct store_sink *s, struct str id, enum status status)
{
	const char *fault = rev_db_is_partitioned(s->db) ? rev_partition_id_fault(id) : NULL;

	return status == STATUS_INVALID && fault ? fault : status_name(status);
}

static void
batch_report_results(struct store_sink *s, size_t from, size_t count)
{
	for (size_t i = from; i < from + count; i++) {
		enum status status = s->results[i].status;

		const char *denial = couch_loader_denial(s->loader, i - from, s->arena);

		if (status == STATUS_OK)
			s->options.report->loaded++;
		else if (status == STATUS_FORBIDDEN && denial)
			load_refuse(s->options.report, &s->origins[i], "document \"%.*s\": %s",
				    STR_ARG(s->edits[i].id), denial);
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
				    STR_ARG(s->edits[i].id),
				    batch_refusal(s, s->edits[i].id, status));
	}
}

/* Writes the edits in one transaction, or in several when one turns out to be too small. */
static enum status
batch_write_edits(struct store_sink *s, size_t from, size_t count, struct err *err)
{
	struct write w = {
		.sink = s,
		.edits = s->edits + from,
		.results = s->results + from,
		.count = count,
		.mark = arena_mark(s->arena),
	};
	enum status status = batch_write_vetted(&w, err);

	if (status == STATUS_TX_TOO_LARGE && count > 1) {
		TRY(batch_write_edits(s, from, count / 2, err));
		return batch_write_edits(s, from + count / 2, count - count / 2, err);
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
	batch_report_results(s, from, count);
	return STATUS_OK;
}

/*
 * No server has the store open, so this splits the ranges of the tally that grow. If it fails, a
 * server does it later: the documents are stored all the same.
 */
static void
store_tend_ranges(struct store_sink *s, bool now)
{
	enum status status = STATUS_OK;
	struct err err = { 0 };
	bool more = true;

	while (more && status == STATUS_OK) {
		status = catalog_tallies_tend(s->tallies, s->store, now, &more, &err);
		now = true;
	}
	if (status != STATUS_OK)
		cli_complain("the ranges of \"%s\" are not tended: %s", s->options.db, err.text);
}

static enum status
store_flush(struct load_sink *sink, struct err *err)
{
	struct store_sink *s = (struct store_sink *)sink;
	enum status status = s->count ? batch_write_edits(s, 0, s->count, err) : STATUS_OK;

	if (status == STATUS_OK)
		store_tend_ranges(s, false);
	store_free_uploads(s);
	s->count = 0;
	s->bytes = 0;
	memset(s->ids, 0, (s->ids_mask + 1) * sizeof(*s->ids));
	arena_clear(s->arena);
	return status;
}

/* Checks a document of _users and hashes its password, as a server does. */
static enum status
store_prepare_user(struct store_sink *s, struct load_doc *doc, struct err *reason)
{
	if (!s->user_arena)
		return STATUS_OK;
	arena_clear(s->user_arena);
	return couch_prepare_user_doc(doc->id, doc->text,
				      settings_of(s->settings, &access_setting_group),
				      s->user_arena, &doc->text, reason);
}

static enum status
store_put_prepared(struct store_sink *s, const struct load_doc *doc, struct err *err)
{
	struct load_sink *sink = &s->sink;
	struct arena_mark mark = arena_mark(s->arena);
	struct rev_edit edit = { 0 };
	struct err reason = { 0 };
	enum status status;
	size_t bytes = 0;

	status = store_make_edit(s, doc, &edit, &bytes, &reason);
	if (status == STATUS_OK && s->count > 0 &&
	    (s->bytes + bytes > BATCH_BYTES || batch_note_id(s, edit.id))) {
		/* What was made of the document goes with this batch's memory: make it again. */
		TRY(store_flush(sink, err));
		mark = arena_mark(s->arena);
		status = store_make_edit(s, doc, &edit, &bytes, &reason);
		if (status == STATUS_OK)
			batch_note_id(s, edit.id);
	} else if (status == STATUS_OK && s->count == 0) {
		batch_note_id(s, edit.id);
	}
	if (status == STATUS_OK)
		status = store_load_atts(s, &edit, &reason);
	if (status == STATUS_OK && edit.doc.json_bytes > REV_TEXT_AHEAD_BYTES)
		status = store_stage_body(s, &edit, &bytes, &reason);
	if (status == STATUS_NOMEM)
		return err_set(err, status, "out of memory");
	if (status != STATUS_OK) {
		/* The list of uploads may lie behind the arena's mark. */
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
	/* What a design document says of documents holds for all behind it. */
	if (s->count == s->options.batch_docs || s->bytes > BATCH_BYTES ||
	    str_starts_with(doc->id, STR("_design/")))
		return store_flush(sink, err);
	return STATUS_OK;
}

static enum status
store_put(struct load_sink *sink, const struct load_doc *doc, struct err *err)
{
	struct store_sink *s = (struct store_sink *)sink;
	struct load_doc prepared = *doc;
	struct err reason = { 0 };
	enum status status = store_prepare_user(s, &prepared, &reason);

	if (status == STATUS_OK)
		return store_put_prepared(s, &prepared, err);
	if (status == STATUS_NOMEM)
		return err_set(err, status, "out of memory");
	load_refuse(s->options.report, &doc->origin, "document \"%.*s\": %s", STR_ARG(doc->id),
		    reason.text[0] ? reason.text : status_name(status));
	return STATUS_OK;
}

static void
store_free(struct load_sink *sink)
{
	struct store_sink *s = (struct store_sink *)sink;

	if (s->tallies)
		store_tend_ranges(s, true);
	store_free_uploads(s);
	/* What it has of the database refers to the tallies. */
	couch_loader_free(s->loader);
	js_free(s->js);
	settings_free(s->settings);
	catalog_db_unref(s->db);
	catalog_cache_free(s->cache);
	catalog_tallies_free(s->tallies);
	arena_free(s->arena);
	arena_free(s->user_arena);
	mem_free(s->edits);
	mem_free(s->origins);
	mem_free(s->results);
	mem_free(s->ids);
	kv_close(s->store);
	mem_free(s);
}

/* ---- Making the sink ---- */

static enum status
store_create_body(struct kv_tx *tx, void *arg)
{
	struct store_sink *s = arg;
	enum rev_scheme scheme = s->options.scheme ? s->options.scheme : REV_SCHEME_DEFAULT;
	struct str name = str_from_cstr(s->options.db);
	struct err err = { 0 };
	enum status status;

	catalog_db_unref(s->db);
	s->db = NULL;
	status = rev_db_open(tx, NULL, name, &s->db, &err);
	if (status != STATUS_NOT_FOUND || !s->options.create)
		return status;
	return s->options.partitioned ? rev_db_create_partitioned(tx, name, scheme, &err)
				      : rev_db_create(tx, name, scheme, &err);
}

/* Opens the database, and creates it if that is wanted. */
static enum status
store_open_database(struct store_sink *s, struct err *err)
{
	enum status status;

	if (!rev_db_name_valid(str_from_cstr(s->options.db)))
		return err_set(err, STATUS_INVALID,
			       "\"%s\" is not a database's name: it begins with a letter and has "
			       "only a-z, 0-9 and _$()+-/",
			       s->options.db);
	/* The first transaction may create the database. The second reads its description. */
	for (int i = 0; i < 2 && !s->db; i++) {
		status = kv_run(s->store, store_create_body, s, NULL, err);
		if (status == STATUS_NOT_FOUND)
			return err_set(err, status, "there is no database \"%s\"", s->options.db);
		TRY(status);
	}
	return s->db ? STATUS_OK
		     : err_set(err, STATUS_UNAVAILABLE, "somebody deletes the database \"%s\"",
			       s->options.db);
}

/* What calls functions. No worker is started before there is one to call. */
static enum status
store_make_functions(struct store_sink *s, struct err *err)
{
	struct js_config config;

	TRY(cli_settings_of_store(s->store, &s->settings, err));
	js_config_set(&config, settings_of(s->settings, &js_setting_group));
	TRY(js_new(&config, &s->js, err));
	s->loader = couch_loader_new(s->js);
	return s->loader ? STATUS_OK : err_set(err, STATUS_NOMEM, "out of memory");
}

enum status
load_sink_store(struct kv_store *store, const struct load_options *options, struct load_sink **ret,
		struct err *err)
{
	struct store_sink *s = mem_zalloc(sizeof(*s));
	bool users = !options->as_stored && str_eq(str_from_cstr(options->db), STR(COUCH_USERS_DB));
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
		.cache = catalog_cache_new(),
		.tallies = catalog_tallies_new(),
		.arena = arena_new(LOAD_ARENA_BYTES),
		.user_arena = users ? arena_new(LOAD_ARENA_BYTES) : NULL,
		.edits = mem_alloc(options->batch_docs * sizeof(*s->edits)),
		.origins = mem_alloc(options->batch_docs * sizeof(*s->origins)),
		.results = mem_zalloc(options->batch_docs * sizeof(*s->results)),
		.ids = mem_zalloc(slots * sizeof(*s->ids)),
		.ids_mask = slots - 1,
	};
	if (s->cache)
		catalog_cache_share(s->cache, s->tallies);
	if (!s->cache || !s->tallies || !s->arena || (users && !s->user_arena) || !s->edits ||
	    !s->origins || !s->results || !s->ids)
		status = err_set(err, STATUS_NOMEM, "out of memory");
	else
		status = store_make_functions(s, err);
	if (status == STATUS_OK)
		status = store_open_database(s, err);
	if (status != STATUS_OK) {
		store_free(&s->sink);
		return status;
	}
	*ret = &s->sink;
	return STATUS_OK;
}
