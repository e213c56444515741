/* Endpoints of a database itself, and of what is set for it. */
#include "access/person.h"
#include "base/quote.h"
#include "base/words.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/db.h"
#include "door/couch/admin/endpoints.h"
#include "door/couch/admin/purges.h"
#include "door/couch/admin/tx.h"
#include "door/couch/admin/user_doc.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/params.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "index/engine/scan.h"
#include "kv/kv.h"

struct db_call {
	struct couch_req *r;
	struct buf *out;
	uint32_t limit;
	enum rev_scheme scheme;
	bool partitioned;
};

static enum status
db_create_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	const struct db_call *c = arg;

	if (c->partitioned)
		return rev_db_create_partitioned(tx, r->parts[0], c->scheme, &r->fail.err);
	return rev_db_create(tx, r->parts[0], c->scheme, &r->fail.err);
}

static enum status
db_parse_scheme(struct couch_req *r, struct str text, enum rev_scheme *ret)
{
	if (rev_scheme_parse(text, ret) == STATUS_OK)
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
			      "`scheme` must be \"packed\" or \"exploded\".");
}

static enum status
db_check_positive(struct couch_req *r, const char *name)
{
	struct str value;
	int64_t n;

	if (!couch_param(r, name, &value) || (couch_integer_parse(value, &n) && n > 0))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
			      "The `%s` value should be a positive integer.", name);
}

static enum status
db_parse_partitioned(struct couch_req *r, bool *ret)
{
	struct str value;

	*ret = couch_param(r, "partitioned", &value) && str_eq(value, STR("true"));
	if (*ret || !couch_param(r, "partitioned", &value) || str_eq(value, STR("false")))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "Invalid `partitioned` parameter");
}

/* Databases whose documents CouchDB itself reads, by the last part of their names. */
static enum status
db_check_not_system(struct couch_req *r, struct str name)
{
	static const char *const system[] = { "_users", "_replicator", "_global_changes", "_nodes",
					      "_dbs" };
	const char *slash = name.len ? memrchr(name.ptr, '/', name.len) : NULL;
	struct str last = slash ? str_skip(name, (size_t)(slash - name.ptr) + 1) : name;

	if (WORDS_HAVE(system, last))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Cannot partition a system database");
	return STATUS_OK;
}

/* A rule such as "zone:2" says how many copies there are in a zone of a cluster. */
static bool
db_is_placement(struct str rules)
{
	bool any = false;

	while (rules.len) {
		struct str count = str_cut(&rules, ',');
		struct str zone = str_cut(&count, ':');
		int64_t n;

		if (!zone.len && !count.len)
			continue;
		if (!zone.len || !couch_integer_parse(count, &n) || n <= 0)
			return false;
		any = true;
	}
	return any;
}

/* Checks the parameters that mean something to a cluster, and nothing here. */
static enum status
db_check_cluster_params(struct couch_req *r)
{
	struct str value;

	TRY(db_check_positive(r, "q"));
	TRY(db_check_positive(r, "n"));
	if (couch_param(r, "placement", &value) && !db_is_placement(value))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The `placement` value should be in a format `zone:n`.");
	/* CouchDB has one engine, which is named "couch". */
	if (couch_param(r, "engine", &value) && !str_eq(value, STR("couch")))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "invalid_engine_extension");
	return STATUS_OK;
}

enum status
couch_db_put(struct couch_req *r)
{
	struct db_call c = { .r = r, .scheme = couch_scheme(r) };
	struct str name = r->parts[0];
	struct str value;
	enum status status;

	TRY(couch_require_admin(r));
	TRY(db_check_cluster_params(r));
	TRY(db_parse_partitioned(r, &c.partitioned));
	if (couch_param(r, "scheme", &value))
		TRY(db_parse_scheme(r, value, &c.scheme));
	if (!rev_db_name_valid(name)) {
		if (name.len > CATALOG_NAME_BYTES)
			return couch_fail_set(&r->fail, COUCH_ERROR_DB_NAME_TOO_LONG,
					      "At least one path segment of `%.*s` is too long: "
					      "the limit is %d bytes.",
					      COUCH_SHOWN_BYTES < name.len ? COUCH_SHOWN_BYTES
									   : (int)name.len,
					      name.ptr, CATALOG_NAME_BYTES);
		return couch_fail_set(&r->fail, COUCH_ERROR_ILLEGAL_DB_NAME,
				      "Name: '%s'. Only lowercase characters (a-z), digits "
				      "(0-9), and any of the characters _, $, (, ), +, -, and / "
				      "are allowed. Must begin with a letter.",
				      QUOTE_SHOW(name));
	}
	if (c.partitioned)
		TRY(db_check_not_system(r, name));
	status = couch_store_write(r, db_create_attempt, &c);
	if (status == STATUS_EXISTS)
		return couch_fail_set(
			&r->fail, COUCH_ERROR_FILE_EXISTS,
			"The database could not be created, the file already exists.");
	if (status != STATUS_OK)
		return status;
	couch_set_location(r, name, (struct str){ NULL, 0 }, (struct str){ NULL, 0 });
	return couch_reply_ok(r, 201);
}

static enum status
db_delete_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	(void)arg;
	if (couch_in_users_db(r))
		TRY(person_clear_all(tx));
	return catalog_delete(tx, CATALOG_SPACE_COUCH, r->parts[0], &r->fail.err);
}

enum status
couch_db_delete(struct couch_req *r)
{
	struct str value;
	enum status status;

	/*
	 * A client that deletes a document with an empty id by mistake must not lose the database.
	 */
	if (couch_param(r, "rev", &value))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "You tried to DELETE a database with a ?=rev parameter. Did "
				      "you mean to DELETE a document instead?");
	TRY(couch_require_admin(r));
	status = couch_store_write(r, db_delete_attempt, NULL);
	if (status == STATUS_NOT_FOUND)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "Database does not exist.");
	if (status != STATUS_OK)
		return status;
	if (couch_in_users_db(r))
		couch_audit_changed(r, "people_removed", "database", r->parts[0]);
	return couch_reply_ok(r, 200);
}

enum status
couch_db_info_write(struct kv_tx *tx, const struct catalog_db *db, struct buf *out)
{
	const struct index_set *indexes = index_set_of(db);
	struct rev_db_info info;
	struct rev_sizes sizes;
	uint64_t bytes, entries = 0;

	TRY(rev_db_info(tx, db, &info));
	TRY(catalog_db_bytes(tx, db, &bytes));
	sizes = (struct rev_sizes){ bytes, bytes };
	if (rev_db_is_partitioned(db))
		TRY(rev_partitions_sizes(tx, db, &sizes));
	if (indexes)
		TRY(index_total_count(tx, db, &entries));
	buf_append_cstr(out, "{\"db_name\":");
	json_write_str(out, db->name);
	if (indexes)
		buf_printf(out, ",\"indexes\":{\"count\":%zu,\"entries\":%llu}",
			   indexes->kept_count, (unsigned long long)entries);
	buf_append_cstr(out, ",\"purge_seq\":\"");
	if (catalog_seq_cmp(&info.purge_seq, &(struct catalog_seq){ { 0 } }) == 0)
		buf_append_byte(out, '0');
	else
		catalog_seq_write(&info.purge_seq, out);
	buf_append_cstr(out, "\",\"update_seq\":\"");
	catalog_seq_write(&info.update_seq, out);
	buf_printf(out,
		   "\",\"sizes\":{\"file\":%llu,\"external\":%llu,\"active\":%llu},\"props\":{"
		   "%s\"scheme\":\"%s\"},"
		   "\"doc_del_count\":%llu,\"doc_count\":%llu,\"disk_format_version\":8,"
		   "\"compact_running\":false,\"cluster\":{\"q\":1,\"n\":1,\"w\":1,\"r\":1},"
		   "\"instance_start_time\":\"0\"}",
		   (unsigned long long)bytes, (unsigned long long)sizes.external,
		   (unsigned long long)sizes.active,
		   rev_db_is_partitioned(db) ? "\"partitioned\":true," : "",
		   rev_scheme_name(rev_db_scheme(db)), (unsigned long long)info.doc_del_count,
		   (unsigned long long)info.doc_count);
	return buf_status(out);
}

static enum status
db_info_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct db_call *c = arg;

	buf_clear(c->out);
	return couch_db_info_write(tx, r->db, c->out);
}

enum status
couch_db_get(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct db_call c = { .r = r, .out = &out };

	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, db_info_attempt, &c));
	return couch_reply(r, 200, &out);
}

enum status
couch_ensure_full_commit(struct couch_req *r)
{
	TRY(couch_db_require_json(r));
	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, NULL, NULL));
	return couch_reply_str(r, 201, STR("{\"ok\":true,\"instance_start_time\":\"0\"}\n"));
}

/* Finds the design document whose indexes a client wants compacted. 404 if it is not there. */
static enum status
db_find_compacted(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct rev_id rev;
	struct str id;

	(void)arg;
	if (r->parts_count < 3)
		return STATUS_OK;
	id = arena_printf(r->arena, "_design/%.*s", STR_ARG(r->parts[2]));
	if (!id.ptr)
		return STATUS_NOMEM;
	TRY(couch_docid_check(id, &r->fail));
	return rev_winner_read(tx, r->db, id, r->arena, &rev);
}

/*
 * The store compacts itself. What is left to do is what CouchDB does by the way: it forgets purges
 * beyond the limit that everybody has seen.
 */
enum status
couch_compact(struct couch_req *r)
{
	if (str_eq(r->parts[1], STR("_compact")))
		TRY(couch_db_require_json(r));
	TRY(couch_db_read(r, COUCH_ACCESS_ADMIN, db_find_compacted, NULL));
	TRY(couch_purges_trim(r));
	return couch_reply_ok(r, 202);
}

enum status
couch_revs_limit_get(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_SHORT(64);

	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, NULL, NULL));
	buf_append_u64(&out, rev_db_revs_limit(r->db));
	return couch_reply(r, 200, &out);
}

static enum status
db_set_revs_limit(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct db_call *c = arg;

	return rev_limit_set(tx, r->db, c->limit, &r->fail.err);
}

enum status
couch_revs_limit_put(struct couch_req *r)
{
	struct db_call c = { .r = r };
	struct json_value value;
	struct str body;
	uint64_t limit;

	TRY(couch_read_body(r, COUCH_SMALL_BODY_BYTES, &body));
	TRY(json_value_read(body, r->arena, &value, &r->fail.err));
	if (value.kind != JSON_NUMBER || !value.is_integer || !str_to_u64(value.text, &limit) ||
	    limit < 1 || limit > REV_LIMIT_MAX)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`revs_limit` must be an integer from 1 to %d.",
				      REV_LIMIT_MAX);
	c.limit = (uint32_t)limit;
	TRY(couch_db_write(r, COUCH_ACCESS_ADMIN, db_set_revs_limit, &c));
	return couch_reply_ok(r, 200);
}

enum status
couch_scheme_get(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_SHORT(64);

	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, NULL, NULL));
	json_write_str(&out, str_from_cstr(rev_scheme_name(rev_db_scheme(r->db))));
	return couch_reply(r, 200, &out);
}

static enum status
db_set_scheme(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct db_call *c = arg;

	return rev_scheme_set(tx, r->db, c->scheme, &r->fail.err);
}

enum status
couch_scheme_put(struct couch_req *r)
{
	struct db_call c = { .r = r };
	struct json_value value;
	struct str body;

	TRY(couch_read_body(r, COUCH_SMALL_BODY_BYTES, &body));
	TRY(json_value_read(body, r->arena, &value, &r->fail.err));
	TRY(db_parse_scheme(r, value.kind == JSON_STRING ? value.string : STR(""), &c.scheme));
	TRY(couch_db_write(r, COUCH_ACCESS_ADMIN, db_set_scheme, &c));
	return couch_reply_ok(r, 200);
}
