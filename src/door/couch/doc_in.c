/* From a client's JSON to an edit: the members whose names start with an underscore. */
#include "base/clock.h"
#include "base/rand.h"
#include "door/couch/att.h"

enum {
	LONGEST_PREFIX_BYTES = 9, /* of a database: a type code and eight bytes */
};

/* The time in microseconds, and each time a later one, whoever asks. */
static uint64_t
next_moment_us(void)
{
	static _Atomic uint64_t last_us;
	uint64_t now_us = clock_wall_ms() * 1000;
	uint64_t seen = atomic_load(&last_us);
	uint64_t next;

	do {
		next = now_us > seen ? now_us : seen + 1;
	} while (!atomic_compare_exchange_weak(&last_us, &seen, next));
	return next;
}

struct str
couch_uuid_new(struct arena *arena)
{
	uint8_t noise[9];
	struct buf AUTO(buf_release) text = BUF_INIT(64);

	/* Time first: documents made one after another are neighbours in the keyspace. */
	rand_bytes(noise, sizeof(noise));
	buf_printf(&text, "%014llx", (unsigned long long)next_moment_us());
	buf_append_hex(&text, str_of(noise, sizeof(noise)));
	if (buf_status(&text) != STATUS_OK)
		return (struct str){ NULL, 0 };
	return arena_dup(arena, buf_str(&text));
}

enum status
couch_rev_parse(struct str text, struct arena *arena, struct rev_id *ret, struct couch_fail *fail)
{
	enum status status = rev_id_parse(text, arena, ret, &fail->err);

	if (status == STATUS_INVALID)
		return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST, "Invalid rev format");
	return status;
}

/* One of _revisions.ids: 32 characters are hexadecimal, anything else is taken as it is. */
static enum status
parse_hash(const struct json_value *id, struct arena *arena, struct str *ret,
	   struct couch_fail *fail)
{
	char *bytes;

	if (id->kind != JSON_STRING)
		return couch_fail_set(fail, COUCH_ERROR_DOC_VALIDATION, "RevId isn't a string");
	if (id->string.len > REV_HASH_LIMIT_BYTES)
		return couch_fail_set(fail, COUCH_ERROR_DOC_VALIDATION,
				      "RevId is longer than %d bytes", REV_HASH_LIMIT_BYTES);
	*ret = id->string;
	if (id->string.len != 2 * (size_t)REV_HASH_BYTES)
		return STATUS_OK;
	bytes = arena_bytes(arena, REV_HASH_BYTES);
	if (!bytes)
		return STATUS_LIMIT;
	if (!str_from_hex(id->string, bytes))
		return couch_fail_set(fail, COUCH_ERROR_DOC_VALIDATION,
				      "RevId isn't a valid hexadecimal");
	*ret = str_of(bytes, REV_HASH_BYTES);
	return STATUS_OK;
}

/* `local`: the document's revisions have no tree, and the first of these is the one it had. */
static enum status
read_revisions(struct couch_req *r, const struct json_value *value, bool local,
	       struct couch_doc *ret, struct couch_fail *fail)
{
	struct json_member *members;
	const struct json_value *start;
	const struct json_value *ids;
	struct json_value *items;
	size_t count;

	TRY(json_value_members(value, r->arena, &members, &count, &fail->err));
	start = json_value_find(members, count, "start");
	ids = json_value_find(members, count, "ids");
	if (!start || !start->is_integer || !str_to_u64(start->text, &ret->start))
		return couch_fail_set(fail, COUCH_ERROR_DOC_VALIDATION,
				      "_revisions.start isn't an integer.");
	if (!ids || ids->kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(fail, COUCH_ERROR_DOC_VALIDATION,
				      "_revisions.ids isn't a array.");
	TRY(json_value_items(ids, r->arena, &items, &count, &fail->err));
	if (local && count > 1)
		count = 1;
	/* CouchDB keeps whatever it gets, and hands it on. Nothing comes before the first edit. */
	if (count > ret->start && ret->start && !local)
		count = (size_t)ret->start;
	ret->history = arena_alloc(r->arena, (count ? count : 1) * sizeof(*ret->history));
	if (!ret->history)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		TRY(parse_hash(&items[i], r->arena, &ret->history[i], fail));
	ret->history_count = count;
	if (count)
		ret->rev = (struct rev_id){ ret->start, ret->history[0] };
	return STATUS_OK;
}

static enum status
read_rev(struct couch_req *r, const struct json_value *value, struct couch_doc *ret,
	 struct couch_fail *fail)
{
	if (value->kind != JSON_STRING)
		return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST, "Invalid rev format");
	TRY(couch_rev_parse(value->string, r->arena, &ret->rev, fail));
	ret->history = arena_alloc(r->arena, sizeof(*ret->history));
	if (!ret->history)
		return STATUS_LIMIT;
	ret->start = ret->rev.pos;
	ret->history[0] = ret->rev.hash;
	ret->history_count = 1;
	return STATUS_OK;
}

static enum status
read_special(struct couch_req *r, const struct doc_special *special, bool local,
	     bool *revisions_seen, struct couch_doc *ret, struct couch_fail *fail)
{
	static const char *const ignored[] = {
		"_revs_info",
		"_local_seq",
		"_conflicts",
		"_deleted_conflicts",
	};
	struct json_value value;

	TRY(json_value_read(special->text, r->arena, &value, &fail->err));
	if (str_eq(special->name, STR("_id"))) {
		if (value.kind != JSON_STRING)
			return couch_fail_set(fail, COUCH_ERROR_ILLEGAL_DOCID,
					      "Document id must be a string");
		ret->id = value.string;
		return couch_docid_check(ret->id, fail);
	}
	if (str_eq(special->name, STR("_rev")))
		return *revisions_seen ? STATUS_OK : read_rev(r, &value, ret, fail);
	if (str_eq(special->name, STR("_revisions")) && value.kind == JSON_OBJECT_BEGIN) {
		*revisions_seen = true;
		return read_revisions(r, &value, local, ret, fail);
	}
	if (str_eq(special->name, STR("_deleted")) &&
	    (value.kind == JSON_TRUE || value.kind == JSON_FALSE)) {
		ret->deleted = value.kind == JSON_TRUE;
		return STATUS_OK;
	}
	/* Local documents have none: CouchDB takes the document, and leaves them out. */
	if (str_eq(special->name, STR("_attachments")) && value.kind == JSON_OBJECT_BEGIN && local)
		return STATUS_OK;
	if (str_eq(special->name, STR("_attachments")) && value.kind == JSON_OBJECT_BEGIN)
		return rev_atts_parse(value.text, r->arena, &ret->atts, &ret->atts_count,
				      &fail->err);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
		if (str_eq(special->name, str_from_cstr(ignored[i])))
			return STATUS_OK;
	}
	return couch_fail_set(fail, COUCH_ERROR_DOC_VALIDATION, "Bad special document member: %.*s",
			      STR_ARG(special->name));
}

/* Whether the document, whose id may be inside, is a local one. */
static bool
is_local(const struct doc *doc, struct str id)
{
	const struct doc_special *inside = doc_find_special(doc, STR("_id"));

	if (id.ptr)
		return couch_is_local(id);
	return inside && str_starts_with(inside->text, STR("\"_local/"));
}

/* The most that a key's prefix takes for this document in any database. */
static size_t
prefix_bound(struct str id)
{
	static const char longest[LONGEST_PREFIX_BYTES];
	const struct rev_db db = { .prefix = { longest, sizeof(longest) } };

	return couch_is_local(id) ? rev_local_prefix_bytes(&db, id) : rev_doc_prefix_bytes(&db, id);
}

/* A document whose id came inside: were its paths short enough for that id? */
static enum status
check_paths(struct couch_req *r, struct str text, const struct doc_limits *limits,
	    struct couch_doc *ret, struct couch_fail *fail)
{
	size_t prefix = prefix_bound(ret->id);

	if (prefix + ret->doc.path_bytes <= limits->path_bytes)
		return STATUS_OK;
	return doc_explode_text(text, r->arena, limits, prefix, &ret->doc, &fail->err);
}

static enum status
has_password(const struct doc *doc, bool *ret)
{
	const struct str path = STR("\x02"
				    "password\0");
	struct str name = STR("password");
	const struct doc_pointer pointer = { &name, 1 };
	struct str value;
	enum status status;

	*ret = false;
	if (doc->packed.ptr) {
		status = doc_packed_find(doc->packed, &pointer, &value);
		*ret = status == STATUS_OK;
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	}
	for (size_t i = 0; i < doc->count; i++)
		*ret = *ret || str_starts_with(doc->leaves[i].key, path);
	return STATUS_OK;
}

enum status
couch_doc_check_password(struct couch_req *r, const struct doc *doc, struct couch_fail *fail)
{
	bool found;

	if (!str_eq(r->parts[0], STR("_users")))
		return STATUS_OK;
	TRY(has_password(doc, &found));
	if (found)
		return couch_fail_set(fail, COUCH_ERROR_NOT_IMPLEMENTED,
				      "Users are not kept as documents by this server: the "
				      "password would be stored as it is.");
	return STATUS_OK;
}

static struct doc_limits
limits_of(struct couch_req *r)
{
	return (struct doc_limits){
		.doc_bytes = r->settings->door.doc_bytes,
		.path_bytes = KV_LIMIT_KEY_BYTES,
		.packed_bytes = rev_scheme_packed_bytes(
			rev_cache_scheme(r->loop->cache, r->parts[0], r->settings->door.scheme)),
	};
}

enum status
couch_doc_again(struct couch_req *r, struct str text, struct str id, struct couch_doc *doc,
		struct couch_fail *fail)
{
	const struct doc_limits limits = limits_of(r);

	doc->text = text;
	return doc_explode_text(text, r->arena, &limits, prefix_bound(id), &doc->doc, &fail->err);
}

enum status
couch_doc_parse(struct couch_req *r, struct json_reader *reader, struct str id,
		struct couch_doc *ret, struct couch_fail *fail)
{
	const struct doc_limits limits = limits_of(r);
	const char *begin = reader->token_begin;
	bool revisions_seen = false;
	bool local;

	*ret = (struct couch_doc){ .id = { NULL, 0 } };
	TRY(doc_explode(reader, r->loop->room, r->arena, &limits, id.ptr ? prefix_bound(id) : 0,
			&ret->doc, &fail->err));
	ret->text = str_of(begin, (size_t)(reader->at - begin));
	local = is_local(&ret->doc, id);
	for (size_t i = 0; i < ret->doc.specials_count; i++)
		TRY(read_special(r, &ret->doc.specials[i], local, &revisions_seen, ret, fail));
	if (!id.ptr && ret->id.ptr)
		TRY(check_paths(r, ret->text, &limits, ret, fail));
	return couch_doc_check_password(r, &ret->doc, fail);
}

enum status
couch_doc_parse_text(struct couch_req *r, struct str text, struct str id, struct couch_doc *ret)
{
	struct json_reader AUTO(json_reader_release) reader;
	enum json_token token;

	json_reader_init(&reader, text, &r->fail.err);
	TRY(json_next(&reader, &token));
	if (token != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Document must be a JSON object");
	TRY(couch_doc_parse(r, &reader, id, ret, &r->fail));
	return json_next(&reader, &token);
}

struct rev_edit
couch_doc_edit(const struct couch_doc *doc, struct str id, bool new_edits)
{
	return (struct rev_edit){
		.kind = new_edits ? REV_EDIT_INTERACTIVE : REV_EDIT_REPLICATED,
		.id = id,
		.deleted = doc->deleted,
		.doc = doc->doc,
		.parent = doc->rev,
		.start = doc->start,
		.history = doc->history,
		.history_count = doc->history_count,
		.atts = doc->att_edits,
		.atts_count = doc->att_edits ? doc->atts_count : 0,
	};
}

enum status
couch_doc_reparse(struct couch_req *r, const struct rev_doc *doc, struct str id, struct buf *text,
		  struct couch_doc *ret)
{
	buf_clear(text);
	buf_append_byte(text, '{');
	TRY(rev_body_write(doc, false, text));
	return couch_doc_parse_text(r, buf_str(text), id, ret);
}

enum status
couch_revs_read(struct couch_req *r, struct str text, struct rev_id **ret, size_t *ret_count,
		struct couch_fail *fail)
{
	struct json_value value;
	struct json_value *items;

	TRY(json_value_read(text, r->arena, &value, &fail->err));
	if (value.kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST, "Invalid list of revisions");
	TRY(json_value_items(&value, r->arena, &items, ret_count, &fail->err));
	*ret = arena_alloc(r->arena, (*ret_count + 1) * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	for (size_t i = 0; i < *ret_count; i++) {
		if (items[i].kind != JSON_STRING)
			return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST, "Invalid rev format");
		TRY(couch_rev_parse(items[i].string, r->arena, &(*ret)[i], fail));
	}
	return STATUS_OK;
}
