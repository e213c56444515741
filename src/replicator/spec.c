/* Reading what a replication is to do, and its id. */
#include "replicator/spec.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "doc/json_value.h"
#include "http/escape.h"

/* ---- Ends ---- */

static enum status
spec_refuse_end(const char *what, struct err *err)
{
	return err_set(err, STATUS_INVALID, "%s has an invalid url", what);
}

static const char *
spec_text_or_null(struct str s)
{
	return s.ptr;
}

static bool
spec_is_url(struct str s)
{
	return memmem(s.ptr, s.len, "://", 3) != NULL;
}

static enum status
spec_read_headers(const struct json_value *value, struct arena *arena, struct repl_end *end,
		  struct err *err)
{
	struct json_member *members;
	size_t count;

	TRY(json_value_members(value, arena, &members, &count, err));
	if (count > SPEC_HEADERS)
		return err_set(err, STATUS_INVALID, "more than %d headers", SPEC_HEADERS);
	for (size_t i = 0; i < count; i++) {
		const struct json_member *m = &members[i];

		if (m->value.kind != JSON_STRING ||
		    memchr(m->value.string.ptr, '\n', m->value.string.len) ||
		    memchr(m->value.string.ptr, '\r', m->value.string.len) || m->name.len == 0 ||
		    memchr(m->name.ptr, '\n', m->name.len) ||
		    memchr(m->name.ptr, '\r', m->name.len))
			return err_set(err, STATUS_INVALID, "the value of a header must be a line");
		end->headers[i] = (struct net_header){ m->name, m->value.string };
	}
	end->headers_count = count;
	return STATUS_OK;
}

/* {"basic":{"username":…,"password":…}} */
static enum status
spec_read_auth(const struct json_value *value, struct arena *arena, struct repl_end *end,
	       struct err *err)
{
	struct json_member *members;
	const struct json_value *basic;
	const struct json_value *user;
	const struct json_value *password;
	size_t count;

	TRY(json_value_members(value, arena, &members, &count, err));
	basic = json_value_find(members, count, "basic");
	if (!basic || basic->kind != JSON_OBJECT_BEGIN)
		return STATUS_OK;
	TRY(json_value_members(basic, arena, &members, &count, err));
	user = json_value_find(members, count, "username");
	password = json_value_find(members, count, "password");
	if (!user || user->kind != JSON_STRING || !password || password->kind != JSON_STRING)
		return STATUS_OK;
	end->user = user->string.ptr;
	end->password = password->string.ptr;
	return STATUS_OK;
}

static enum status
spec_read_local(struct str name, struct repl_spec *spec, struct repl_end *end)
{
	struct buf AUTO(buf_release) shown = BUF_INIT(SPEC_ARENA_BYTES);

	buf_append_cstr(&shown, spec->options.self);
	http_escape(&shown, name);
	buf_append_byte(&shown, '/');
	TRY(buf_status(&shown));
	end->local = true;
	end->url = name;
	end->name = buf_dup(&shown, spec->arena);
	return end->name.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
spec_read_url(struct str text, const char *what, struct repl_spec *spec, struct repl_end *end,
	      struct err *err)
{
	struct arena *arena = spec->arena;
	struct net_url url;
	enum status status;

	if (!spec_is_url(text)) {
		if (text.len == 0)
			return spec_refuse_end(what, err);
		return spec_read_local(text, spec, end);
	}
	status = net_url_parse(text, arena, &url, NULL);
	if (status == STATUS_INVALID ||
	    (status == STATUS_OK && memchr(url.bare.ptr, '?', url.bare.len)))
		return spec_refuse_end(what, err);
	TRY(status);
	end->url = url.bare;
	if (url.bare.ptr[url.bare.len - 1] != '/')
		end->url = arena_printf(arena, "%.*s/", STR_ARG(url.bare));
	if (!end->url.ptr)
		return STATUS_LIMIT;
	end->name = end->url;
	if (!end->user && url.user.ptr) {
		end->user = url.user.ptr;
		end->password = spec_text_or_null(url.password);
	}
	return STATUS_OK;
}

static enum status
spec_read_end(const struct json_member *members, size_t count, const char *what,
	      struct repl_spec *spec, struct repl_end *end, struct err *err)
{
	struct arena *arena = spec->arena;
	const struct json_value *value = json_value_find(members, count, what);
	struct json_member *inner;
	const struct json_value *found;
	size_t inner_count;

	if (!value || value->kind == JSON_NULL)
		return err_set(err, STATUS_INVALID, "Missing replicator database");
	if (value->kind == JSON_STRING)
		return spec_read_url(value->string, what, spec, end, err);
	if (value->kind != JSON_OBJECT_BEGIN)
		return spec_refuse_end(what, err);
	TRY(json_value_members(value, arena, &inner, &inner_count, err));
	found = json_value_find(inner, inner_count, "auth");
	if (found && found->kind == JSON_OBJECT_BEGIN)
		TRY(spec_read_auth(found, arena, end, err));
	found = json_value_find(inner, inner_count, "headers");
	if (found && found->kind == JSON_OBJECT_BEGIN)
		TRY(spec_read_headers(found, arena, end, err));
	found = json_value_find(inner, inner_count, "url");
	if (!found || found->kind != JSON_STRING)
		return spec_refuse_end(what, err);
	return spec_read_url(found->string, what, spec, end, err);
}

/* ---- Options ---- */

struct spec_reader {
	const struct json_member *members;
	size_t count;
	struct repl_spec *spec;
	struct err *err;
};

static const struct json_value *
spec_find(const struct spec_reader *r, const char *name)
{
	const struct json_value *value = json_value_find(r->members, r->count, name);

	return value && value->kind != JSON_NULL ? value : NULL;
}

static enum status
spec_read_bool(const struct spec_reader *r, const char *name, bool *ret)
{
	const struct json_value *value = spec_find(r, name);

	if (!value)
		return STATUS_OK;
	if (value->kind != JSON_TRUE && value->kind != JSON_FALSE)
		return err_set(r->err, STATUS_INVALID, "parameter `%s` must be a boolean", name);
	*ret = value->kind == JSON_TRUE;
	return STATUS_OK;
}

/* Reads a number or, as CouchDB does, a string with a number in it. Clamps it to the range. */
static enum status
spec_read_number(const struct spec_reader *r, const char *name, uint64_t least, uint64_t most,
		 uint64_t *ret)
{
	const struct json_value *value = spec_find(r, name);
	uint64_t n;

	if (!value)
		return STATUS_OK;
	if (!str_to_u64(value->kind == JSON_STRING ? value->string : value->text, &n))
		return err_set(r->err, STATUS_INVALID, "parameter `%s` must be an integer", name);
	if (n < least)
		n = least;
	*ret = n > most ? most : n;
	return STATUS_OK;
}

static enum status
spec_read_object(const struct spec_reader *r, const char *name, const char *kind, struct str *ret)
{
	const struct json_value *value = spec_find(r, name);

	if (!value)
		return STATUS_OK;
	if (value->kind != JSON_OBJECT_BEGIN)
		return err_set(r->err, STATUS_INVALID, "parameter `%s` must be %s", name, kind);
	*ret = value->text;
	return STATUS_OK;
}

static enum status
spec_read_text(const struct spec_reader *r, const char *name, struct str *ret)
{
	const struct json_value *value = spec_find(r, name);

	if (!value)
		return STATUS_OK;
	if (value->kind != JSON_STRING)
		return err_set(r->err, STATUS_INVALID, "parameter `%s` must be a string", name);
	*ret = value->string;
	return STATUS_OK;
}

static int
spec_compare_ids(const void *a, const void *b)
{
	return str_cmp(((const struct json_value *)a)->string,
		       ((const struct json_value *)b)->string);
}

/*
 * Undoes percent-escapes, which CouchDB takes in ids. An id stays as it is if one of its escapes is
 * broken, or if the result would not be UTF-8. A plus sign is always part of the id.
 */
static enum status
spec_unescape_id(const struct spec_reader *r, struct str *id)
{
	struct str plain;
	enum status status = http_unescape(*id, false, r->spec->arena, &plain);

	if (status == STATUS_NOMEM)
		return STATUS_LIMIT;
	if (status == STATUS_OK && utf8_valid_prefix(plain) == plain.len)
		*id = plain;
	return STATUS_OK;
}

/* Sorts the ids and drops duplicates, so that their order does not change the replication's id. */
static enum status
spec_read_ids(const struct spec_reader *r)
{
	const struct json_value *value = spec_find(r, "doc_ids");
	struct buf AUTO(buf_release) text = BUF_INIT(SPEC_ARENA_BYTES);
	struct json_value *ids;
	size_t count;

	if (!value)
		return STATUS_OK;
	if (value->kind != JSON_ARRAY_BEGIN)
		return err_set(r->err, STATUS_INVALID, "parameter `doc_ids` must be an array");
	TRY(json_value_items(value, r->spec->arena, &ids, &count, r->err));
	for (size_t i = 0; i < count; i++) {
		if (ids[i].kind != JSON_STRING)
			return err_set(r->err, STATUS_INVALID, "`doc_ids` must be strings");
		TRY(spec_unescape_id(r, &ids[i].string));
	}
	if (count)
		qsort(ids, count, sizeof(*ids), spec_compare_ids);
	buf_append_byte(&text, '[');
	for (size_t i = 0; i < count; i++) {
		if (i && str_eq(ids[i].string, ids[i - 1].string))
			continue;
		if (i)
			buf_append_byte(&text, ',');
		json_write_str(&text, ids[i].string);
	}
	buf_append_byte(&text, ']');
	TRY(buf_status(&text));
	r->spec->ids = buf_dup(&text, r->spec->arena);
	r->spec->by_ids = true;
	return r->spec->ids.ptr ? STATUS_OK : STATUS_LIMIT;
}

/* {"q":8,"partitioned":false} as "q=8&partitioned=false". */
static enum status
spec_read_create_params(const struct spec_reader *r)
{
	const struct json_value *value = spec_find(r, "create_target_params");
	struct buf AUTO(buf_release) query = BUF_INIT(SPEC_ARENA_BYTES);
	struct json_member *members;
	size_t count;

	if (!value)
		return STATUS_OK;
	if (value->kind != JSON_OBJECT_BEGIN)
		return err_set(r->err, STATUS_INVALID,
			       "parameter `create_target_params` must be a JSON object");
	TRY(json_value_members(value, r->spec->arena, &members, &count, r->err));
	for (size_t i = 0; i < count; i++) {
		const struct json_value *v = &members[i].value;

		if (i)
			buf_append_byte(&query, '&');
		http_escape(&query, members[i].name);
		buf_append_byte(&query, '=');
		http_escape(&query, v->kind == JSON_STRING ? v->string : v->text);
	}
	TRY(buf_status(&query));
	r->spec->create_params = buf_dup(&query, r->spec->arena);
	return r->spec->create_params.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
spec_read_filters(const struct spec_reader *r)
{
	struct repl_spec *s = r->spec;

	TRY(spec_read_ids(r));
	TRY(spec_read_object(r, "selector", "a JSON object", &s->selector));
	TRY(spec_read_text(r, "filter", &s->filter));
	TRY(spec_read_object(r, "query_params", "an object", &s->query_params));
	if ((int)s->by_ids + (s->selector.ptr != NULL) + (s->filter.ptr != NULL) > 1)
		return err_set(r->err, STATUS_INVALID,
			       "`doc_ids`,`filter`,`selector` are mutually exclusive");
	return STATUS_OK;
}

static enum status
spec_read_tuning(const struct spec_reader *r)
{
	struct repl_defaults *o = &r->spec->options;
	uint64_t workers = o->workers;
	uint64_t batch = o->batch;
	uint64_t connections = o->connections;
	uint64_t retries = o->retries;

	TRY(spec_read_number(r, "worker_processes", 1, SPEC_WORKERS_MAX, &workers));
	TRY(spec_read_number(r, "worker_batch_size", 1, SPEC_BATCH_MAX, &batch));
	TRY(spec_read_number(r, "http_connections", 1, 1000, &connections));
	TRY(spec_read_number(r, "connection_timeout", 100, 24 * 3600 * 1000, &o->timeout_ms));
	TRY(spec_read_number(r, "retries_per_request", 0, 100, &retries));
	TRY(spec_read_number(r, "checkpoint_interval", 100, 24 * 3600 * 1000, &o->checkpoint_ms));
	TRY(spec_read_bool(r, "use_checkpoints", &o->use_checkpoints));
	TRY(spec_read_bool(r, "use_bulk_get", &o->use_bulk_get));
	o->workers = (unsigned)workers;
	o->batch = (unsigned)batch;
	o->connections = (unsigned)connections;
	o->retries = (unsigned)retries;
	return STATUS_OK;
}

static enum status
spec_read_proxies(const struct spec_reader *r)
{
	struct str both = { NULL, 0 };
	struct str source = { NULL, 0 };
	struct str target = { NULL, 0 };

	TRY(spec_read_text(r, "proxy", &both));
	TRY(spec_read_text(r, "source_proxy", &source));
	TRY(spec_read_text(r, "target_proxy", &target));
	if (both.len && (source.len || target.len))
		return err_set(r->err, STATUS_INVALID,
			       "`proxy` is mutually exclusive with `%s_proxy`",
			       source.len ? "source" : "target");
	if (both.len)
		source = target = both;
	if (source.len)
		r->spec->source.proxy = source.ptr;
	if (target.len)
		r->spec->target.proxy = target.ptr;
	return STATUS_OK;
}

static enum status
spec_read_given_id(const struct spec_reader *r)
{
	static const char *const names[] = { "_local_id", "replication_id", "id" };

	for (size_t i = 0; i < 3; i++) {
		struct str *id = &r->spec->given_id;
		char *text;

		TRY(spec_read_text(r, names[i], id));
		if (!id->ptr)
			continue;
		/* Where an id went through a query, its '+' has become a space. */
		*id = arena_dup(r->spec->arena, *id);
		if (!id->ptr)
			return STATUS_LIMIT;
		text = (char *)(uintptr_t)id->ptr;
		for (size_t c = 0; c < id->len; c++)
			if (text[c] == ' ')
				text[c] = '+';
		return STATUS_OK;
	}
	return STATUS_OK;
}

static enum status
spec_read_members(const struct spec_reader *r)
{
	struct repl_spec *s = r->spec;
	const struct json_value *since = spec_find(r, "since_seq");

	TRY(spec_read_bool(r, "cancel", &s->cancel));
	TRY(spec_read_given_id(r));
	if (s->cancel && s->given_id.ptr)
		return STATUS_OK;
	TRY(spec_read_end(r->members, r->count, "source", s, &s->source, r->err));
	TRY(spec_read_end(r->members, r->count, "target", s, &s->target, r->err));
	TRY(spec_read_bool(r, "continuous", &s->continuous));
	TRY(spec_read_bool(r, "create_target", &s->create_target));
	TRY(spec_read_bool(r, "winning_revs_only", &s->winners_only));
	TRY(spec_read_create_params(r));
	TRY(spec_read_filters(r));
	TRY(spec_read_tuning(r));
	TRY(spec_read_proxies(r));
	if (since)
		s->since = since->text;
	return STATUS_OK;
}

enum status
repl_spec_new(struct str text, struct str owner, struct str doc_id,
	      const struct repl_defaults *defaults, struct repl_spec **ret, struct err *err)
{
	struct arena *arena = arena_new(SPEC_ARENA_BYTES);
	struct repl_spec *spec = arena ? arena_zalloc(arena, sizeof(*spec)) : NULL;
	struct spec_reader r = { .spec = spec, .err = err };
	struct json_value object;
	struct json_member *members;
	enum status status;

	if (!spec) {
		arena_free(arena);
		return err_set(err, STATUS_NOMEM, "out of memory for a replication");
	}
	spec->arena = arena;
	spec->options = *defaults;
	spec->owner = arena_dup(arena, owner);
	if (doc_id.ptr)
		spec->doc_id = arena_dup(arena, doc_id);
	text = arena_dup(arena, text);
	status = text.ptr && spec->owner.ptr ? json_value_read(text, arena, &object, err)
					     : STATUS_LIMIT;
	if (status == STATUS_OK && object.kind != JSON_OBJECT_BEGIN)
		status = err_set(err, STATUS_INVALID, "Request body must be a JSON object");
	if (status == STATUS_OK)
		status = json_value_members(&object, arena, &members, &r.count, err);
	if (status == STATUS_OK) {
		r.members = members;
		status = spec_read_members(&r);
	}
	if (status != STATUS_OK) {
		arena_free(arena);
		return status;
	}
	*ret = spec;
	return STATUS_OK;
}

void
repl_spec_free(struct repl_spec *spec)
{
	if (spec)
		arena_free(spec->arena);
}

/* ---- The id ---- */

static void
spec_hash_text(EVP_MD_CTX *md5, struct str s)
{
	char length[32];
	int n = snprintf(length, sizeof(length), "%zu:", s.len);

	EVP_DigestUpdate(md5, length, (size_t)n);
	if (s.len)
		EVP_DigestUpdate(md5, s.ptr, s.len);
}

/* Hashes the host, a port that is not a usual one, the path, the user and the headers. */
static void
spec_hash_end(EVP_MD_CTX *md5, const struct repl_end *end, struct arena *arena)
{
	struct arena_mark mark = arena_mark(arena);
	struct net_url url;
	char port[8] = "default";

	spec_hash_text(md5, end->local ? STR("local") : STR("remote"));
	if (end->local || net_url_parse(end->url, arena, &url, NULL) != STATUS_OK) {
		spec_hash_text(md5, end->url);
	} else {
		bool https = str_eq(url.scheme, STR("https"));

		if (!(https && url.port == 443) &&
		    !(!https && (url.port == 80 || url.port == 5984)))
			snprintf(port, sizeof(port), "%u", url.port);
		spec_hash_text(md5, url.host);
		spec_hash_text(md5, str_from_cstr(port));
		spec_hash_text(md5, url.path);
	}
	spec_hash_text(md5, end->user ? str_from_cstr(end->user) : STR(""));
	for (size_t i = 0; i < end->headers_count; i++) {
		spec_hash_text(md5, end->headers[i].name);
		spec_hash_text(md5, end->headers[i].value);
	}
	arena_reset(arena, mark);
}

void
repl_spec_id(const struct repl_spec *spec, struct str store, char ret[SPEC_ID_BYTES + 1],
	     char ret_full[SPEC_FULL_ID_BYTES])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *md5 = EVP_MD_CTX_new();

	memset(digest, 0, sizeof(digest));
	if (md5 && EVP_DigestInit_ex(md5, EVP_md5(), NULL) == 1) {
		spec_hash_text(md5, store);
		spec_hash_end(md5, &spec->source, spec->arena);
		spec_hash_end(md5, &spec->target, spec->arena);
		spec_hash_text(md5, spec->ids);
		spec_hash_text(md5, spec->selector);
		spec_hash_text(md5, spec->filter);
		spec_hash_text(md5, spec->query_params);
		spec_hash_text(md5, spec->since);
		spec_hash_text(md5, spec->winners_only ? STR("winning_revs_only") : STR(""));
		EVP_DigestFinal_ex(md5, digest, NULL);
	}
	EVP_MD_CTX_free(md5);
	for (size_t i = 0; i < SPEC_ID_BYTES / 2; i++)
		snprintf(ret + 2 * i, 3, "%02x", digest[i]);
	snprintf(ret_full, SPEC_FULL_ID_BYTES, "%s%s%s", ret, spec->continuous ? "+continuous" : "",
		 spec->create_target ? "+create_target" : "");
}

bool
repl_spec_filters_by_function(const struct repl_spec *spec, size_t *ret_slash)
{
	struct str filter = spec->filter;
	const char *slash = filter.len ? memchr(filter.ptr, '/', filter.len) : NULL;

	if (!slash || filter.ptr[0] == '_')
		return false;
	*ret_slash = (size_t)(slash - filter.ptr);
	return true;
}

struct str
repl_spec_filtered_id(const char *id, struct str function, struct arena *arena)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *md5 = EVP_MD_CTX_new();
	char text[SPEC_ID_BYTES + 1];

	memset(digest, 0, sizeof(digest));
	if (md5 && EVP_DigestInit_ex(md5, EVP_md5(), NULL) == 1) {
		spec_hash_text(md5, str_from_cstr(id));
		spec_hash_text(md5, str_trim(function));
		EVP_DigestFinal_ex(md5, digest, NULL);
	}
	EVP_MD_CTX_free(md5);
	for (size_t i = 0; i < SPEC_ID_BYTES / 2; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	return arena_dup(arena, str_from_cstr(text));
}
