#include "door/mongo/index/clustered.h"

#include "base/steady.h"
#include "model/plain/plain.h"

enum {
	CLUSTERED_VERSION = 2,
	/* MongoDB's codes, which have no names. */
	CLUSTERED_NOT_UNIQUE = 5979700,
	CLUSTERED_LEGACY = 5979703,
	CLUSTERED_WRONG_VERSION = 5979704,
	CLUSTERED_VIEW = 6026500,
	CLUSTERED_CAPPED = 6049200,
	CLUSTERED_MAX = 6049204,
};

/* ---- Reading ---- */

static enum status
index_member_type(struct call *c, const struct bson_element *e, const char *wanted)
{
	return call_type_mismatch(c, &e->value, wanted, "create.clusteredIndex.%.*s",
				  STR_ARG(e->name));
}

struct index_members {
	bool has_key;
	bool has_unique;
	bool unique;
	int64_t version;
	struct str key;
	struct str name;
};

static enum status
read_index_member(struct call *c, const struct bson_element *e, struct index_members *m)
{
	const struct bson_value *v = &e->value;
	bool is_key = str_eq(e->name, STR("key")), is_name = str_eq(e->name, STR("name"));
	bool is_unique = str_eq(e->name, STR("unique")), is_version = str_eq(e->name, STR("v"));

	if (!is_key && !is_name && !is_unique && !is_version)
		return call_fail(c, MONGO_FIELD_UNKNOWN,
				 "BSON field 'create.clusteredIndex.%.*s' is an unknown field.",
				 (int)(e->name.len < 100 ? e->name.len : 100), e->name.ptr);
	if (v->type == BSON_NULL || v->type == BSON_UNDEFINED)
		return STATUS_OK;
	if (is_key && v->type != BSON_DOCUMENT)
		return index_member_type(c, e, "type 'object'");
	if (is_name && v->type != BSON_STRING)
		return index_member_type(c, e, "type 'string'");
	if (is_version && !bson_is_number(v))
		return index_member_type(c, e, "types '[long, int, decimal, double']");
	if (is_unique && !bson_is_number(v) && v->type != BSON_BOOL)
		return index_member_type(c, e, "types '[bool, long, int, decimal, double']");
	if (is_key)
		m->key = bson_text(v);
	if (is_name)
		m->name = bson_text(v);
	if (is_version)
		m->version = call_whole_number(v);
	if (is_unique)
		m->unique = bson_is_true(v);
	m->has_key = m->has_key || is_key;
	m->has_unique = m->has_unique || is_unique;
	return STATUS_OK;
}

static enum status
check_index(struct call *c, const struct index_members *m)
{
	struct bson_value v;
	int64_t n;

	if (!m->has_key || !m->has_unique)
		return call_fail(c, MONGO_FIELD_MISSING,
				 "BSON field 'create.clusteredIndex.%s' is missing but a required "
				 "field",
				 m->has_key ? "unique" : "key");
	if (m->version != CLUSTERED_VERSION)
		return call_fail(c, CLUSTERED_WRONG_VERSION,
				 "The field 'v' of a clusteredIndex has to be %d",
				 CLUSTERED_VERSION);
	if (bson_count(m->key) != 1 || !bson_find(m->key, STR("_id"), &v) ||
	    !bson_to_int64(&v, &n) || n != 1)
		return call_fail(c, MONGO_INVALID_INDEX_OPTION,
				 "The clusteredIndex option is only supported with key: {_id: 1}");
	if (!m->unique)
		return call_fail(c, CLUSTERED_NOT_UNIQUE,
				 "The clusteredIndex option requires unique: true to be specified");
	return STATUS_OK;
}

static enum status
read_index(struct call *c, const struct bson_value *v, struct clustered_ask *ask)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(c->arena));
	struct index_members m = { .version = CLUSTERED_VERSION, .name = STR("_id_") };
	struct bson_builder b;
	struct bson_element e;
	struct bson_iter i;

	if (bson_is_number(v) || v->type == BSON_BOOL) {
		if (!bson_is_true(v))
			return STATUS_OK;
		return call_fail(c, CLUSTERED_LEGACY,
				 "The 'clusteredIndex' option has to be a document, {key: {_id: "
				 "1}, unique: true}, for a collection like this one");
	}
	if (v->type != BSON_DOCUMENT)
		return call_type_mismatch(c, v, "types '[bool, object']", "create.clusteredIndex");
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		TRY(read_index_member(c, &e, &m));
	TRY(check_index(c, &m));
	bson_open(&b, &made);
	bson_put_int32(&b, STR("v"), CLUSTERED_VERSION);
	bson_begin_document(&b, STR("key"));
	bson_put_int32(&b, STR("_id"), 1);
	bson_end(&b);
	bson_put_string(&b, STR("name"), m.name);
	bson_put_bool(&b, STR("unique"), true);
	bson_end(&b);
	return buf_copy(&made, c->arena, &ask->index);
}

static enum status
read_seconds(struct call *c, const struct bson_value *v, struct clustered_ask *ask)
{
	bool modifies = strcmp(c->command->name, "collMod") == 0;

	if (v->type == BSON_NULL || v->type == BSON_UNDEFINED)
		return STATUS_OK;
	ask->expires = true;
	ask->off = modifies && v->type == BSON_STRING && str_eq(bson_text(v), STR("off"));
	if (ask->off)
		return STATUS_OK;
	if (modifies && v->type == BSON_STRING)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "expireAfterSeconds has to be a number, or 'off'");
	if (!bson_is_number(v))
		return call_type_mismatch(c, v,
					  modifies ? "types '[string, long, int, decimal, double']"
						   : "types '[long, int, decimal, double']",
					  "%s.expireAfterSeconds", c->command->name);
	ask->seconds = call_whole_number(v);
	if (ask->seconds < 0)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "TTL index 'expireAfterSeconds' option must be within an "
				 "acceptable range, not less than 0");
	if ((uint64_t)ask->seconds > steady_date_ms() / 1000)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "TTL index 'expireAfterSeconds' option must be within an "
				 "acceptable range, not more than the seconds since 1970");
	return STATUS_OK;
}

enum status
clustered_read(struct call *c, const struct bson_element *e, struct clustered_ask *ask,
	       bool *ret_known)
{
	*ret_known = true;
	if (str_eq(e->name, STR("expireAfterSeconds")))
		return read_seconds(c, &e->value, ask);
	if (str_eq(e->name, STR("clusteredIndex")) && strcmp(c->command->name, "create") == 0)
		return read_index(c, &e->value, ask);
	*ret_known = false;
	return STATUS_OK;
}

/* ---- Checking ---- */

enum status
clustered_check_member(struct call *c, struct str name)
{
	struct bson_value v;

	if (!bson_find(c->body, STR("clusteredIndex"), &v))
		return STATUS_OK;
	if (str_eq(name, STR("capped")))
		return call_fail(c, CLUSTERED_CAPPED,
				 "the 'clusteredIndex' option is not supported with the 'capped' "
				 "option");
	if (v.type != BSON_DOCUMENT)
		return STATUS_OK;
	if (str_eq(name, STR("viewOn")))
		return call_fail(c, CLUSTERED_VIEW,
				 "the 'clusteredIndex' option is not supported with views");
	if (str_eq(name, STR("max")))
		return call_fail(c, CLUSTERED_MAX,
				 "the 'clusteredIndex' option is not supported with the 'max' "
				 "option");
	if (str_eq(name, STR("timeseries")) || str_eq(name, STR("idIndex")))
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "the 'clusteredIndex' option is not supported with the '%.*s' "
				 "option",
				 STR_ARG(name));
	return STATUS_OK;
}

enum status
clustered_check(struct call *c, const struct clustered_ask *ask, bool is_clustered)
{
	if (!ask->expires || is_clustered)
		return STATUS_OK;
	return call_fail(c, MONGO_INVALID_OPTIONS,
			 "'expireAfterSeconds' is only supported on collections with the "
			 "'clusteredIndex' option");
}

/* ---- Options ---- */

void
clustered_put(const struct clustered_ask *ask, struct bson_builder *b)
{
	if (ask->index.len)
		bson_put_document(b, STR("clusteredIndex"), ask->index);
	if (ask->expires && !ask->off)
		bson_put_int64(b, STR("expireAfterSeconds"), ask->seconds);
}

enum status
clustered_modify(struct call *c, const struct clustered_ask *ask, struct str options,
		 struct str *ret)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(c->arena));
	struct bson_builder b;
	struct bson_element e;
	struct bson_iter i;

	*ret = options;
	if (!ask->expires)
		return STATUS_OK;
	TRY(clustered_check(c, ask, bson_find(options, STR("clusteredIndex"), NULL)));
	bson_open(&b, &made);
	for (bson_iter_begin(&i, options); bson_iter_read(&i, &e);)
		if (!str_eq(e.name, STR("expireAfterSeconds")))
			bson_put_element(&b, &e);
	clustered_put(ask, &b);
	bson_end(&b);
	return buf_copy(&made, c->arena, ret);
}

/* ---- Telling ---- */

struct str
clustered_of(const struct catalog_db *db)
{
	struct str options = plain_options_of(db);
	struct bson_value v;

	if (bson_is_empty(options) || !bson_find(options, STR("clusteredIndex"), &v) ||
	    v.type != BSON_DOCUMENT)
		return STR("");
	return bson_text(&v);
}

bool
clustered_expires(const struct catalog_db *db, int64_t *ret_seconds)
{
	struct bson_value v;

	return clustered_of(db).len &&
	       bson_find(plain_options_of(db), STR("expireAfterSeconds"), &v) &&
	       bson_to_int64(&v, ret_seconds);
}

void
clustered_put_index(struct bson_builder *b, const struct catalog_db *db)
{
	struct bson_value v;

	bson_put_elements(b, clustered_of(db));
	if (bson_find(plain_options_of(db), STR("expireAfterSeconds"), &v))
		bson_put(b, STR("expireAfterSeconds"), &v);
	bson_put_bool(b, STR("clustered"), true);
}
