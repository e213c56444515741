#include "door/mongo/index/index.h"

#include "base/words.h"
#include "bson/json.h"
#include "door/mongo/index/clustered.h"
#include "door/mongo/index/expire.h"
#include "door/mongo/txn/data.h"
#include "index/bson/form.h"
#include "mql/collation.h"

enum {
	TEXT_BYTES = 1000, /* of a document or a value in an error's text */
	INDEX_CLUSTERED_FALSE = 6492800,
	TOLD_BYTES = 2 + 4 * INDEX_COMPONENTS_BYTES, /* of a text's key; a longer text is told */
};

/* ---- What clients write ---- */

static enum status
check_field(struct call *c, const struct bson_element *e)
{
	double direction = bson_to_double(&e->value);

	if (!e->name.len)
		return call_fail(c, MONGO_CANNOT_CREATE_INDEX,
				 "Index keys cannot be an empty field.");
	if (str_eq(e->name, STR("$**")) ||
	    (e->name.len > 4 && str_eq(str_skip(e->name, e->name.len - 4), STR(".$**"))))
		return call_fail(c, MONGO_NOT_IMPLEMENTED, "wildcard indexes are not there");
	if (e->name.ptr[0] == '$')
		return call_fail(c, MONGO_CANNOT_CREATE_INDEX,
				 "Index key contains an illegal field name: field name starts with "
				 "'$'.");
	if (e->value.type == BSON_STRING) {
		if (str_eq(bson_text(&e->value), STR("hashed")))
			return STATUS_OK;
		return call_fail(
			c, MONGO_NOT_IMPLEMENTED, "indexes of the kind '%.*s' are not there",
			(int)(bson_text(&e->value).len < 100 ? bson_text(&e->value).len : 100),
			bson_text(&e->value).ptr);
	}
	if (!bson_is_number(&e->value))
		return call_fail(
			c, MONGO_CANNOT_CREATE_INDEX,
			"Values in v:2 index key pattern cannot be of type %s. Only numbers "
			"> 0, numbers < 0, and strings are allowed.",
			bson_type_name(e->value.type));
	if (!(direction < 0) && !(direction > 0))
		return call_fail(c, MONGO_CANNOT_CREATE_INDEX,
				 "Values in the index key pattern cannot be 0.");
	return STATUS_OK;
}

static enum status
check_key(struct call *c, const struct bson_value *key)
{
	struct bson_element e;
	struct bson_iter i;
	unsigned hashed = 0;

	if (key->type != BSON_DOCUMENT)
		return call_fail(c, MONGO_TYPE_MISMATCH,
				 "The field 'key' must be an object, but got %s",
				 bson_type_name(key->type));
	if (bson_is_empty(bson_text(key)))
		return call_fail(c, MONGO_CANNOT_CREATE_INDEX, "Index keys cannot be empty.");
	if (bson_count(bson_text(key)) > INDEX_COLUMNS)
		return call_fail(c, MONGO_CANNOT_CREATE_INDEX,
				 "an index has at most %d fields (INDEX_COLUMNS)", INDEX_COLUMNS);
	for (bson_iter_begin(&i, bson_text(key)); bson_iter_read(&i, &e);) {
		TRY(check_field(c, &e));
		hashed += e.value.type == BSON_STRING;
	}
	if (hashed > 1)
		return call_fail(c, MONGO_HASHED_FIELDS,
				 "A maximum of one index field is allowed to be hashed but found "
				 "%u",
				 hashed);
	return STATUS_OK;
}

/* There is one index by `_id` alone, and it ascends; others may be hashed. */
static enum status
check_id_key(struct call *c, struct str key)
{
	struct bson_value direction;

	if (index_key_is_id(key) || bson_count(key) != 1 ||
	    !bson_find(key, STR("_id"), &direction) || !bson_is_number(&direction))
		return STATUS_OK;
	return call_fail(
		c, MONGO_BAD_VALUE,
		"The field 'key' for an _id index must be {_id: 1}, but got another order");
}

/* Operators that a partial index's filter may have, in front of whose names stands a field. */
static bool
filter_operators_are_known(struct str operators)
{
	static const char *const known[] = { "$eq",  "$gt", "$gte",    "$lt",
					     "$lte", "$in", "$exists", "$type" };
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, operators); bson_iter_read(&i, &e);) {
		bool found = !e.name.len || e.name.ptr[0] != '$' || WORDS_HAVE(known, e.name);

		if (!found || (str_eq(e.name, STR("$exists")) && !bson_is_true(&e.value)))
			return false;
	}
	return true;
}

static enum status
check_filter(struct call *c, struct str filter, unsigned depth)
{
	struct bson_element e, inner;
	struct bson_iter i, k;
	bool good = depth < 4;

	for (bson_iter_begin(&i, filter); good && bson_iter_read(&i, &e);) {
		if (!e.name.len || e.name.ptr[0] != '$') {
			good = e.value.type != BSON_DOCUMENT ||
			       filter_operators_are_known(bson_text(&e.value));
			continue;
		}
		good = str_eq(e.name, STR("$and")) || str_eq(e.name, STR("$or"));
		if (!good)
			break;
		if (e.value.type != BSON_ARRAY)
			return call_fail(c, MONGO_BAD_VALUE, "%.*s must be an array",
					 STR_ARG(e.name));
		for (bson_iter_begin(&k, bson_text(&e.value));
		     good && bson_iter_read(&k, &inner);) {
			good = inner.value.type == BSON_DOCUMENT;
			if (good)
				TRY(check_filter(c, bson_text(&inner.value), depth + 1));
		}
	}
	return good ? STATUS_OK
		    : call_fail(c, MONGO_CANNOT_CREATE_INDEX,
				"Expression not supported in partial index: only a field's value, "
				"$eq, $gt, $gte, $lt, $lte, $in, $exists: true, $type, $and and "
				"$or");
}

static enum status
check_flag(struct call *c, const struct bson_element *e)
{
	if (e->value.type == BSON_BOOL || bson_is_number(&e->value))
		return STATUS_OK;
	return call_fail(c, MONGO_TYPE_MISMATCH,
			 "The field '%.*s' has value of type %s, which is not convertible to bool",
			 STR_ARG(e->name), bson_type_name(e->value.type));
}

/* A flag as it is kept: true, or left out. */
static enum status
put_flag(struct call *c, struct bson_builder *b, const struct bson_element *e)
{
	TRY(check_flag(c, e));
	if (bson_is_true(&e->value))
		bson_put_bool(b, e->name, true);
	return STATUS_OK;
}

static enum status
put_seconds(struct call *c, struct bson_builder *b, struct str key, const struct bson_element *e)
{
	struct bson_iter i;
	struct bson_element column;
	double seconds = bson_to_double(&e->value);

	bson_iter_begin(&i, key);
	if (!bson_is_number(&e->value))
		return call_fail(c, MONGO_CANNOT_CREATE_INDEX,
				 "TTL index 'expireAfterSeconds' option must be numeric, but "
				 "received a type of '%s'",
				 bson_type_name(e->value.type));
	if (!(seconds >= 0) || seconds > EXPIRE_SECONDS)
		return call_fail(c, MONGO_CANNOT_CREATE_INDEX,
				 "TTL index 'expireAfterSeconds' option must be within an "
				 "acceptable range, from 0 to %d",
				 EXPIRE_SECONDS);
	if (bson_count(key) != 1 || !bson_iter_read(&i, &column) ||
	    column.value.type == BSON_STRING)
		return call_fail(c, MONGO_CANNOT_CREATE_INDEX,
				 "TTL indexes are single-field indexes, compound indexes do not "
				 "support TTL");
	bson_put_int32(b, e->name, (int32_t)seconds);
	return STATUS_OK;
}

/* Whether the collection is clustered like that is seen when it is open (cmd_index.c). */
static enum status
check_clustered(struct call *c, const struct bson_element *e)
{
	TRY(check_flag(c, e));
	if (!bson_is_true(&e->value))
		return call_fail(c, INDEX_CLUSTERED_FALSE,
				 "The index option 'clustered' cannot be false");
	return STATUS_OK;
}

/* The collation with all of its members; that of the locale "simple" is none. */
static enum status
put_collation(struct call *c, struct bson_builder *b, const struct bson_element *e)
{
	struct mql_collation *collation = NULL;
	struct mql q;

	if (e->value.type != BSON_DOCUMENT)
		return call_type_mismatch(c, &e->value, "type 'object'",
					  "createIndexes.indexes.collation");
	data_mql(c, c->arena, NULL, &q);
	TRY(data_mql_status(c, &q, mql_collation_new(&q, bson_text(&e->value), &collation)));
	if (collation)
		bson_put_document(b, e->name, mql_collation_document(collation));
	mql_collation_free(collation);
	return STATUS_OK;
}

enum status
index_fail_id_option(struct call *c, struct str name)
{
	return call_fail(c, MONGO_INVALID_INDEX_OPTION,
			 "The field '%.*s' is not valid for an _id index specification.",
			 (int)(name.len < 100 ? name.len : 100), name.ptr);
}

static enum status
put_option(struct call *c, struct bson_builder *b, struct str key, const struct bson_element *e)
{
	if (str_eq(e->name, STR("v")) || str_eq(e->name, STR("key")) ||
	    str_eq(e->name, STR("name")) || str_eq(e->name, STR("ns")) ||
	    str_eq(e->name, STR("background")))
		return STATUS_OK;
	if (index_key_is_id(key) && !str_eq(e->name, STR("collation")) &&
	    !str_eq(e->name, STR("clustered")) && !str_eq(e->name, STR("unique")))
		return index_fail_id_option(c, e->name);
	if (str_eq(e->name, STR("hidden")) && e->value.type != BSON_BOOL)
		return call_type_mismatch(c, &e->value, "type 'bool'",
					  "createIndexes.indexes.hidden");
	if (str_eq(e->name, STR("unique")) || str_eq(e->name, STR("sparse")) ||
	    str_eq(e->name, STR("hidden")))
		return put_flag(c, b, e);
	if (str_eq(e->name, STR("partialFilterExpression"))) {
		if (e->value.type != BSON_DOCUMENT)
			return call_fail(
				c, MONGO_TYPE_MISMATCH,
				"The field 'partialFilterExpression' must be an object, but "
				"got %s",
				bson_type_name(e->value.type));
		bson_put(b, e->name, &e->value);
		return check_filter(c, bson_text(&e->value), 0);
	}
	if (str_eq(e->name, STR("clustered")))
		return check_clustered(c, e);
	if (str_eq(e->name, STR("collation")))
		return put_collation(c, b, e);
	if (str_eq(e->name, STR("expireAfterSeconds")))
		return put_seconds(c, b, key, e);
	return call_fail(c, MONGO_INVALID_INDEX_OPTION,
			 "The field '%.*s' is not valid for an index specification.",
			 (int)(e->name.len < 100 ? e->name.len : 100), e->name.ptr);
}

enum status
index_read_spec(struct call *c, struct str given, struct str *ret)
{
	AUTO(buf_release) struct buf out = BUF_SHORT(INDEX_SPEC_BYTES);
	struct bson_value key, name;
	struct bson_element e;
	struct bson_builder b;
	struct bson_iter i;

	if (!bson_find(given, STR("key"), &key))
		return call_fail(c, MONGO_FAILED_TO_PARSE,
				 "The 'key' field is a required property of an index "
				 "specification");
	if (bson_find(given, STR("name"), &name) && name.type != BSON_STRING)
		return call_type_mismatch(c, &name, "type 'string'", "createIndexes.indexes.name");
	if (!bson_find(given, STR("name"), NULL) || !bson_text(&name).len)
		return call_fail(c, MONGO_FAILED_TO_PARSE,
				 "The 'name' field is a required property of an index "
				 "specification");
	if (str_eq(bson_text(&name), STR("*")))
		return call_fail(c, MONGO_BAD_VALUE, "The index name '*' is not valid.");
	TRY(check_key(c, &key));
	TRY(check_id_key(c, bson_text(&key)));
	if (bson_find_true(given, STR("sparse")) &&
	    bson_find(given, STR("partialFilterExpression"), NULL))
		return call_fail(c, MONGO_CANNOT_CREATE_INDEX,
				 "cannot mix \"partialFilterExpression\" and \"sparse\" options");
	if (str_eq(bson_text(&name), STR("_id_")) && !index_key_is_id(bson_text(&key)))
		return call_fail(c, MONGO_BAD_VALUE,
				 "The index name '_id_' is reserved for the _id index, which must "
				 "have key pattern {_id: 1}");
	bson_open(&b, &out);
	bson_put_int32(&b, STR("v"), 2);
	bson_put(&b, STR("key"), &key);
	bson_put(&b, STR("name"), &name);
	for (bson_iter_begin(&i, given); bson_iter_read(&i, &e);)
		TRY(put_option(c, &b, bson_text(&key), &e));
	bson_end(&b);
	if (buf_status(&out) == STATUS_LIMIT)
		return call_fail(c, MONGO_CANNOT_CREATE_INDEX,
				 "an index is described by at most %d bytes (INDEX_SPEC_BYTES)",
				 INDEX_SPEC_BYTES);
	return buf_copy(&out, c->arena, ret);
}

enum status
index_spec_collate(struct call *c, struct str spec, struct str collation, struct str *ret)
{
	AUTO(buf_release) struct buf out = BUF_SHORT(INDEX_SPEC_BYTES + INDEX_COLLATION_BYTES);
	struct bson_builder b;

	bson_open(&b, &out);
	bson_put_elements(&b, spec);
	bson_put_document(&b, STR("collation"), collation);
	bson_end(&b);
	return buf_copy(&out, c->arena, ret);
}

/* ---- Those that are there ---- */

bool
index_key_is_id(struct str key)
{
	struct bson_element e;
	struct bson_iter i;
	int64_t n;

	bson_iter_begin(&i, key);
	return bson_count(key) == 1 && bson_iter_read(&i, &e) && str_eq(e.name, STR("_id")) &&
	       bson_to_int64(&e.value, &n) && n == 1;
}

const struct index_def *
index_at(const struct catalog_db *db, size_t at)
{
	const struct index_def *def;

	if (!index_of_id(db))
		return index_live_at(db, at);
	for (size_t i = 0; (def = index_live_at(db, i)) != NULL; i++)
		if (!index_def_is_of_id(def) && at-- == 0)
			return def;
	return NULL;
}

size_t
index_count_all(const struct catalog_db *db)
{
	size_t count = 0;

	while (index_at(db, count))
		count++;
	return 1 + count;
}

size_t
index_count_told(const struct catalog_db *db)
{
	return index_count_all(db) - (clustered_of(db).len ? 1 : 0);
}

struct str
index_key_of(const struct index_def *def)
{
	struct bson_value key;

	return bson_find(def->spec, STR("key"), &key) ? bson_text(&key) : BSON_EMPTY;
}

enum status
index_find_by_key(struct call *c, const struct catalog_db *db, struct str key,
		  const struct index_def **ret)
{
	const struct index_def *def, *first = NULL;

	for (size_t i = 0; (def = index_at(db, i)) != NULL; i++) {
		if (bson_compare_documents(index_key_of(def), key, NULL) != 0)
			continue;
		if (first)
			return call_fail(c, MONGO_AMBIGUOUS_INDEX,
					 "several indexes found for that key, identify by name "
					 "instead. Conflicting indexes: %.*s, %.*s",
					 STR_ARG(first->name), STR_ARG(def->name));
		first = def;
	}
	if (!first)
		return call_fail(c, MONGO_INDEX_NOT_FOUND, "can't find index with that key");
	*ret = first;
	return STATUS_OK;
}

static void
put_id_members(struct bson_builder *b)
{
	bson_put_int32(b, STR("v"), 2);
	bson_begin_document(b, STR("key"));
	bson_put_int32(b, STR("_id"), 1);
	bson_end(b);
	bson_put_string(b, STR("name"), STR("_id_"));
}

void
index_put_id(struct bson_builder *b, struct str name)
{
	bson_begin_document(b, name);
	put_id_members(b);
	bson_end(b);
}

void
index_put_only_id(struct bson_builder *b, const struct catalog_db *db)
{
	const struct index_def *def = index_of_id(db);

	bson_begin(b);
	if (clustered_of(db).len)
		clustered_put_index(b, db);
	else
		put_id_members(b);
	if (def)
		bson_put_document(b, STR("collation"), def->collation);
	bson_end(b);
}

/* What tells two indexes of one key apart: else MongoDB holds them for the same one. */
static bool
tells_apart(struct str name)
{
	static const char *const names[] = { "unique", "sparse", "partialFilterExpression",
					     "collation" };

	return WORDS_HAVE(names, name);
}

/* Whether all members of one description that count here are those of the other. */
static bool
has_members(struct str a, struct str b, bool that_tell_apart)
{
	struct bson_value other;
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, a); bson_iter_read(&i, &e);) {
		if (str_eq(e.name, STR("v")) || str_eq(e.name, STR("key")) ||
		    str_eq(e.name, STR("name")) || tells_apart(e.name) != that_tell_apart)
			continue;
		if (!bson_find(b, e.name, &other) || !bson_equals(&e.value, &other))
			return false;
	}
	return true;
}

static bool
same_members(struct str a, struct str b, bool that_tell_apart)
{
	return has_members(a, b, that_tell_apart) && has_members(b, a, that_tell_apart);
}

enum status
index_check_conflict(struct call *c, struct str existing, struct str spec, bool *ret)
{
	struct bson_value key, name, old_key, old_name;
	bool same_name, same_index, same_options;

	(void)bson_find(spec, STR("key"), &key);
	(void)bson_find(spec, STR("name"), &name);
	(void)bson_find(existing, STR("key"), &old_key);
	(void)bson_find(existing, STR("name"), &old_name);
	same_name = str_eq(bson_text(&old_name), bson_text(&name));
	same_index = bson_compare_documents(bson_text(&old_key), bson_text(&key), NULL) == 0 &&
		     same_members(existing, spec, true);
	same_options = same_index && same_members(existing, spec, false);
	*ret = same_name && same_options;
	if (*ret || (!same_name && !same_index))
		return STATUS_OK;
	if (!same_index)
		return call_fail(c, MONGO_INDEX_KEY_SPECS_CONFLICT,
				 "An existing index has the same name as the requested index. When "
				 "index names are not specified, they are auto generated and can "
				 "cause conflicts. Please refer to our documentation. The index is "
				 "called: %.*s",
				 STR_ARG(bson_text(&name)));
	if (same_name)
		return call_fail(c, MONGO_INDEX_OPTIONS_CONFLICT,
				 "An equivalent index already exists with the same name but "
				 "different options: %.*s",
				 STR_ARG(bson_text(&name)));
	return call_fail(c, MONGO_INDEX_OPTIONS_CONFLICT,
			 same_options ? "Index already exists with a different name: %.*s"
				      : "An equivalent index already exists with a different name "
					"and options: %.*s",
			 STR_ARG(bson_text(&old_name)));
}

enum status
index_find_same(struct call *c, const struct catalog_db *db, struct str spec,
		const struct index_def **ret)
{
	const struct index_def *def;
	struct bson_value name;
	bool same;

	*ret = NULL;
	(void)bson_find(spec, STR("name"), &name);
	/* One of its name says more about what is wrong than one of its key. */
	for (int by_name = 1; by_name >= 0; by_name--) {
		for (size_t i = 0; (def = index_at(db, i)) != NULL; i++) {
			if (str_eq(def->name, bson_text(&name)) != (by_name == 1))
				continue;
			TRY(index_check_conflict(c, def->spec, spec, &same));
			if (same)
				*ret = def;
		}
		if (*ret)
			return STATUS_OK;
	}
	return STATUS_OK;
}

/* ---- Failures ---- */

/* The value as failures tell it: of a text that has a collation, its key in hexadecimal digits. */
static struct bson_value
told_value(const struct index_def *def, const struct bson_value *v, struct buf *text)
{
	const struct bson_texts *texts = index_bson_texts(def);
	AUTO(buf_release) struct buf key = BUF_SHORT(TOLD_BYTES);

	buf_clear(text);
	if (!texts || v->type != BSON_STRING)
		return *v;
	if (texts->put_key(texts->of, bson_text(v), &key) != STATUS_OK)
		return *v;
	buf_append_cstr(text, "0x");
	buf_append_hex(text, buf_str(&key));
	return buf_status(text) == STATUS_OK ? BSON_OF_STRING(buf_str(text)) : *v;
}

/* { locale: "en", caseLevel: false, … } */
static void
draw_collation(struct str collation, struct buf *out)
{
	const char *before = " collation: { ";
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, collation); bson_iter_read(&i, &e); before = ", ") {
		buf_append_cstr(out, before);
		buf_append_str(out, e.name);
		buf_append_cstr(out, ": ");
		bson_json_write_value(out, &e.value, BSON_JSON_RELAXED);
	}
	buf_append_cstr(out, " }");
}

/* { a: 1, b: "x" }, as MongoDB's texts have it. */
static void
draw_values(const struct plain_refused *refused, struct buf *out)
{
	AUTO(buf_release) struct buf text = BUF_SHORT(TOLD_BYTES);
	struct bson_element key, value;
	struct bson_iter keys, values;
	bool any = false;

	bson_iter_begin(&keys, index_key_of(refused->def));
	bson_iter_begin(&values, refused->values);
	buf_append_byte(out, '{');
	while (bson_iter_read(&keys, &key) && bson_iter_read(&values, &value)) {
		struct bson_value told = told_value(refused->def, &value.value, &text);

		buf_append_cstr(out, any ? ", " : " ");
		buf_append_str(out, key.name);
		buf_append_cstr(out, ": ");
		bson_json_write_value(out, &told, BSON_JSON_RELAXED);
		any = true;
	}
	buf_append_cstr(out, " }");
}

static struct str
column_name(const struct index_def *def, size_t column)
{
	struct bson_element e = { 0 };
	struct bson_iter i;

	bson_iter_begin(&i, index_key_of(def));
	for (size_t at = 0; bson_iter_read(&i, &e) && at < column; at++)
		;
	return e.name;
}

static void
keep_duplicate(struct call *c, const struct plain_refused *refused, const struct bson_value *id)
{
	struct buf made = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(c->arena));
	struct bson_builder b;

	bson_open(&b, &made);
	if (refused)
		index_put_duplicate(&b, refused);
	else
		index_put_duplicate_id(&b, id);
	bson_end(&b);
	if (buf_status(&made) == STATUS_OK)
		c->duplicate = buf_dup(&made, c->arena);
	buf_release(&made);
}

enum status
index_fail_id(struct call *c, struct str ns, const struct bson_value *id)
{
	struct buf text = BUF_SHORT(TEXT_BYTES);
	enum status status;

	keep_duplicate(c, NULL, id);
	bson_json_write_value(&text, id, BSON_JSON_RELAXED);
	status = call_fail(c, MONGO_DUPLICATE_KEY,
			   "E11000 duplicate key error collection: %.*s index: _id_ dup key: { "
			   "_id: %.*s }",
			   STR_ARG(ns), STR_ARG(buf_str(&text)));
	buf_release(&text);
	return status;
}

enum status
index_fail(struct call *c, struct str ns, const struct plain_refused *refused, enum status status)
{
	AUTO(buf_release) struct buf values = BUF_SHORT(TEXT_BYTES);
	AUTO(buf_release) struct buf collation = BUF_SHORT(TEXT_BYTES);

	if (status == STATUS_DUPLICATE) {
		draw_values(refused, &values);
		if (refused->def->collation.len)
			draw_collation(refused->def->collation, &collation);
		return call_fail(c, MONGO_DUPLICATE_KEY,
				 "E11000 duplicate key error collection: %.*s index: %.*s%.*s dup "
				 "key: %.*s",
				 STR_ARG(ns), STR_ARG(refused->def->name),
				 STR_ARG(buf_str(&collation)), STR_ARG(buf_str(&values)));
	}
	if (refused->hashed)
		return call_fail(
			c, MONGO_HASHED_ARRAY,
			"hashed indexes do not currently support array values. Found array "
			"at path: %.*s",
			STR_ARG(column_name(refused->def, refused->columns[0])));
	return call_fail(c, MONGO_PARALLEL_ARRAYS, "cannot index parallel arrays [%.*s] [%.*s]",
			 STR_ARG(column_name(refused->def, refused->columns[0])),
			 STR_ARG(column_name(refused->def, refused->columns[1])));
}

enum status
index_fail_command(struct call *c, struct str ns, const struct plain_refused *refused,
		   enum status status)
{
	if (status == STATUS_DUPLICATE)
		keep_duplicate(c, refused, NULL);
	return index_fail(c, ns, refused, status);
}

void
index_put_duplicate_id(struct bson_builder *b, const struct bson_value *id)
{
	bson_begin_document(b, STR("keyPattern"));
	bson_put_int32(b, STR("_id"), 1);
	bson_end(b);
	bson_begin_document(b, STR("keyValue"));
	bson_put(b, STR("_id"), id);
	bson_end(b);
}

void
index_put_duplicate(struct bson_builder *b, const struct plain_refused *refused)
{
	AUTO(buf_release) struct buf text = BUF_SHORT(TOLD_BYTES);
	struct bson_element key, value;
	struct bson_iter keys, values;

	bson_put_document(b, STR("keyPattern"), index_key_of(refused->def));
	bson_iter_begin(&keys, index_key_of(refused->def));
	bson_iter_begin(&values, refused->values);
	bson_begin_document(b, STR("keyValue"));
	while (bson_iter_read(&keys, &key) && bson_iter_read(&values, &value)) {
		struct bson_value told = told_value(refused->def, &value.value, &text);

		bson_put(b, key.name, &told);
	}
	bson_end(b);
	if (refused->def->collation.len)
		bson_put_document(b, STR("collation"), refused->def->collation);
}
