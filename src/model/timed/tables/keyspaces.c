/* Keyspaces and types: their records, below (ROOT, 20), and the stamp of all schemas there. */
#include "catalog/format.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "model/timed/tables/tables_int.h"

#define TABLE_FINDING_KEYSPACE                                                                     \
	"keyspace" /* a record of a keyspace or a type that cannot be right */

enum {
	KEYSPACE_FORMAT = 1,
	TYPE_FORMAT = 1,
};

/* (ROOT, 20), (ROOT, 20, keyspace), (ROOT, 20, keyspace, type) */
static enum status
root_key(struct str keyspace, struct str type, struct buf *key)
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_KEYSPACES);
	if (keyspace.len)
		tuple_put_str(key, keyspace);
	if (type.len)
		tuple_put_str(key, type);
	return catalog_key_status(key);
}

/* ---- The stamp ---- */

enum status
table_schemas_touch(struct kv_tx *tx)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];

	TRY(root_key(STR(""), STR(""), &key));
	catalog_stamp(0, stamp);
	return kv_set_versionstamped_value(tx, buf_str(&key), str_of(stamp, sizeof(stamp)), 0);
}

enum status
table_schemas_stamp(struct kv_tx *tx, uint8_t ret[static TABLE_STAMP_BYTES])
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value;

	TRY(root_key(STR(""), STR(""), &key));
	f = kv_get(tx, buf_str(&key), KV_SNAPSHOT);
	TRY(kv_future_wait(f));
	memset(ret, 0, TABLE_STAMP_BYTES);
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	if (value.len != TABLE_STAMP_BYTES)
		return STATUS_CORRUPT;
	memcpy(ret, value.ptr, value.len);
	return STATUS_OK;
}

/* ---- Records ---- */

static void
keyspace_put(const struct table_keyspace *keyspace, struct buf *value)
{
	tuple_put_u64(value, KEYSPACE_FORMAT);
	table_properties_put(keyspace->properties, keyspace->property_count, value);
}

/* All but the name. */
static enum status
keyspace_parse(struct str value, struct arena *arena, struct table_keyspace *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	TRY(catalog_format_next(&r, "keyspace", KEYSPACE_FORMAT, &format, err));
	TRY(table_properties_next(&r, arena, &ret->properties, &ret->property_count));
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}

static void
type_put(const struct table_type *type, struct buf *value)
{
	tuple_put_u64(value, TYPE_FORMAT);
	tuple_open(value);
	for (size_t i = 0; i < type->field_count; i++) {
		tuple_open(value);
		tuple_put_str(value, type->fields[i].name);
		tuple_put_str(value, type->fields[i].type);
		tuple_close(value);
	}
	tuple_close(value);
}

/* All but the names. */
static enum status
type_parse(struct str value, struct arena *arena, struct table_type *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	const struct table_property *fields;
	struct table_field *to;
	uint64_t format;
	size_t count;

	TRY(catalog_format_next(&r, "type of a keyspace", TYPE_FORMAT, &format, err));
	/* Pairs of texts, as properties are. */
	TRY(table_properties_next(&r, arena, &fields, &count));
	if (r.rest.len)
		return STATUS_CORRUPT;
	to = arena_alloc(arena, count * sizeof(*to) + 1);
	if (!to)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		to[i] = (struct table_field){ fields[i].name, fields[i].value };
	ret->fields = to;
	ret->field_count = count;
	return STATUS_OK;
}

/* The value at a key of the root; `ptr` NULL if there is none. It is the future's. */
static enum status
root_get(struct kv_tx *tx, struct str keyspace, struct str type, struct str *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;

	TRY(root_key(keyspace, type, &key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, ret))
		*ret = (struct str){ NULL, 0 };
	return STATUS_OK;
}

static enum status
root_set(struct kv_tx *tx, struct str keyspace, struct str type, const struct buf *value,
	 struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	if (buf_status(value) == STATUS_LIMIT)
		return err_set(err, STATUS_INVALID,
			       "what a keyspace or a type has may take %d bytes "
			       "(KV_LIMIT_VALUE_BYTES)",
			       KV_LIMIT_VALUE_BYTES);
	TRY(buf_status(value));
	TRY(root_key(keyspace, type, &key));
	TRY(kv_set(tx, buf_str(&key), buf_str(value)));
	return table_schemas_touch(tx);
}

/* ---- Keyspaces ---- */

static enum status
fail_no_keyspace(struct str name, struct err *err)
{
	return err_set(err, STATUS_NOT_FOUND, "there is no keyspace \"%.*s\"", STR_ARG(name));
}

enum status
table_keyspace_check(struct kv_tx *tx, struct str name, struct err *err)
{
	struct str value;

	TRY(table_check_name("a keyspace", name, err));
	TRY(root_get(tx, name, STR(""), &value));
	return value.ptr ? STATUS_OK : fail_no_keyspace(name, err);
}

static enum status
keyspace_write(struct kv_tx *tx, const struct table_keyspace *keyspace, struct err *err)
{
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	TRY(table_check_properties(keyspace->properties, keyspace->property_count, err));
	keyspace_put(keyspace, &value);
	return root_set(tx, keyspace->name, STR(""), &value, err);
}

enum status
table_keyspace_ensure(struct kv_tx *tx, struct str name)
{
	const struct table_keyspace keyspace = { .name = name };
	struct str value;

	TRY(root_get(tx, name, STR(""), &value));
	return value.ptr ? STATUS_OK : keyspace_write(tx, &keyspace, NULL);
}

/* With the properties by name, whatever was there before. */
static enum status
keyspace_merge(struct kv_tx *tx, const struct table_keyspace *old,
	       const struct table_keyspace *given, struct err *err)
{
	struct table_keyspace keyspace = { .name = given->name };
	struct arena *arena;
	enum status status;

	TRY(table_check_properties(given->properties, given->property_count, err));
	arena = arena_new(TABLE_RECORD_ARENA_BYTES);
	if (!arena)
		return STATUS_NOMEM;
	status = table_properties_merge(old->properties, old->property_count, given->properties,
					given->property_count, arena, &keyspace.properties,
					&keyspace.property_count);
	if (status == STATUS_OK)
		status = keyspace_write(tx, &keyspace, err);
	arena_free(arena);
	return status;
}

enum status
table_keyspace_create(struct kv_tx *tx, const struct table_keyspace *keyspace, struct err *err)
{
	static const struct table_keyspace none;
	struct str value;

	TRY(table_check_name("a keyspace", keyspace->name, err));
	TRY(root_get(tx, keyspace->name, STR(""), &value));
	if (value.ptr)
		return err_set(err, STATUS_EXISTS, "there is a keyspace \"%.*s\" already",
			       STR_ARG(keyspace->name));
	return keyspace_merge(tx, &none, keyspace, err);
}

enum status
table_keyspace_alter(struct kv_tx *tx, const struct table_keyspace *keyspace, struct err *err)
{
	struct arena *arena = arena_new(TABLE_RECORD_ARENA_BYTES);
	struct table_keyspace old;
	enum status status;

	if (!arena)
		return STATUS_NOMEM;
	status = table_keyspace_read(tx, keyspace->name, arena, &old, err);
	if (status == STATUS_OK)
		status = keyspace_merge(tx, &old, keyspace, err);
	arena_free(arena);
	return status;
}

/* What was made of a type, such as a compiled statement, holds while the metadata version does. */
static enum status
types_touch(struct kv_tx *tx)
{
	TRY(table_schemas_touch(tx));
	return kv_touch_metadata_version(tx);
}

enum status
table_keyspace_clear(struct kv_tx *tx, struct str name)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	TRY(root_key(name, STR(""), &begin));
	TRY(root_key(name, STR(""), &end));
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	TRY(kv_clear_range(tx, buf_str(&begin), buf_str(&end)));
	return types_touch(tx);
}

static enum status
fail_unreadable(enum status status, const char *what, struct str name, struct err *err)
{
	if (status != STATUS_CORRUPT)
		return status;
	return err_set(err, status, "the %s \"%.*s\" cannot be read", what, STR_ARG(name));
}

enum status
table_keyspace_read(struct kv_tx *tx, struct str name, struct arena *arena,
		    struct table_keyspace *ret, struct err *err)
{
	struct str value;

	TRY(table_check_name("a keyspace", name, err));
	TRY(root_get(tx, name, STR(""), &value));
	if (!value.ptr)
		return fail_no_keyspace(name, err);
	*ret = (struct table_keyspace){ .name = arena_dup(arena, name) };
	if (!ret->name.ptr)
		return STATUS_LIMIT;
	return fail_unreadable(keyspace_parse(value, arena, ret, err), "keyspace", name, err);
}

/* ---- Listing ---- */

/* What is listed: keyspaces, or types. */
struct root_list {
	struct arena *arena;
	struct err *err;
	struct table_keyspace *keyspaces; /* or NULL */
	struct table_type *types;
	size_t count, cap;
	bool of_types;
};

/* The names at the end of a key, copied: `ret_type` is empty for a keyspace. */
static enum status
names_next(struct tuple_reader *key, struct arena *arena, struct str *ret_keyspace,
	   struct str *ret_type)
{
	*ret_type = STR("");
	TRY(catalog_next_text(key, TUPLE_STRING, arena, true, ret_keyspace));
	if (key->rest.len)
		TRY(catalog_next_text(key, TUPLE_STRING, arena, true, ret_type));
	return key->rest.len ? STATUS_CORRUPT : STATUS_OK;
}

static enum status
list_take(void *arg, struct tuple_reader key, struct str value)
{
	struct root_list *l = arg;
	struct str keyspace, type;

	TRY(names_next(&key, l->arena, &keyspace, &type));
	if (l->of_types != (type.len > 0))
		return STATUS_OK;
	if (l->of_types) {
		l->types = arena_grow(l->arena, l->types, l->count, &l->cap, sizeof(*l->types));
		if (!l->types)
			return STATUS_LIMIT;
		l->types[l->count] = (struct table_type){ .keyspace = keyspace, .name = type };
		return fail_unreadable(type_parse(value, l->arena, &l->types[l->count++], l->err),
				       "type", type, l->err);
	}
	l->keyspaces = arena_grow(l->arena, l->keyspaces, l->count, &l->cap, sizeof(*l->keyspaces));
	if (!l->keyspaces)
		return STATUS_LIMIT;
	l->keyspaces[l->count] = (struct table_keyspace){ .name = keyspace };
	return fail_unreadable(keyspace_parse(value, l->arena, &l->keyspaces[l->count++], l->err),
			       "keyspace", keyspace, l->err);
}

/* All that is below (ROOT, 20), or only what is of one keyspace. */
static enum status
list_all(struct kv_tx *tx, struct str keyspace, struct root_list *l)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	size_t prefix_len;

	TRY(root_key(STR(""), STR(""), &begin));
	prefix_len = begin.len;
	TRY(root_key(keyspace, STR(""), &begin));
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	/* Behind the stamp, which a transaction that has changed something cannot read. */
	if (!keyspace.len)
		buf_append_byte(&begin, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	return catalog_scan(tx, buf_str(&begin), buf_str(&end), prefix_len, list_take, l);
}

enum status
table_keyspace_list(struct kv_tx *tx, struct arena *arena, struct table_keyspaces *ret,
		    struct err *err)
{
	struct root_list l = { .arena = arena, .err = err };

	TRY(list_all(tx, STR(""), &l));
	*ret = (struct table_keyspaces){ l.keyspaces, l.count };
	return STATUS_OK;
}

enum status
table_type_list(struct kv_tx *tx, struct str keyspace, struct arena *arena, struct table_types *ret,
		struct err *err)
{
	struct root_list l = { .arena = arena, .err = err, .of_types = true };

	TRY(list_all(tx, keyspace, &l));
	*ret = (struct table_types){ l.types, l.count };
	return STATUS_OK;
}

/* ---- Types ---- */

static enum status
type_check(const struct table_type *type, struct err *err)
{
	TRY(table_check_name("a type", type->name, err));
	if (!type->field_count || type->field_count > TABLE_TYPE_FIELDS)
		return err_set(err, STATUS_INVALID, "a type has 1 to %d fields (TABLE_TYPE_FIELDS)",
			       TABLE_TYPE_FIELDS);
	for (size_t i = 0; i < type->field_count; i++) {
		const struct table_field *f = &type->fields[i];

		TRY(table_check_text("the name of a field", f->name, 1, TABLE_COLUMN_BYTES,
				     "TABLE_COLUMN_BYTES", err));
		TRY(table_check_text("the type of a field", f->type, 0, TABLE_TYPE_BYTES,
				     "TABLE_TYPE_BYTES", err));
		for (size_t j = 0; j < i; j++)
			if (str_eq(type->fields[j].name, f->name))
				return err_set(err, STATUS_INVALID,
					       "two fields are called \"%.*s\"", STR_ARG(f->name));
	}
	return STATUS_OK;
}

static enum status
fail_no_type(struct str keyspace, struct str name, struct err *err)
{
	return err_set(err, STATUS_NOT_FOUND, "there is no type \"%.*s.%.*s\"", STR_ARG(keyspace),
		       STR_ARG(name));
}

enum status
table_type_put(struct kv_tx *tx, const struct table_type *type, bool replaces, struct err *err)
{
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct str old;

	TRY(type_check(type, err));
	TRY(table_keyspace_check(tx, type->keyspace, err));
	TRY(root_get(tx, type->keyspace, type->name, &old));
	if (replaces && !old.ptr)
		return fail_no_type(type->keyspace, type->name, err);
	if (!replaces && old.ptr)
		return err_set(err, STATUS_EXISTS, "there is a type \"%.*s.%.*s\" already",
			       STR_ARG(type->keyspace), STR_ARG(type->name));
	type_put(type, &value);
	TRY(root_set(tx, type->keyspace, type->name, &value, err));
	return replaces ? kv_touch_metadata_version(tx) : STATUS_OK;
}

enum status
table_type_drop(struct kv_tx *tx, struct str keyspace, struct str name, struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct str value;

	TRY(table_keyspace_check(tx, keyspace, err));
	TRY(table_check_name("a type", name, err));
	TRY(root_get(tx, keyspace, name, &value));
	if (!value.ptr)
		return fail_no_type(keyspace, name, err);
	TRY(root_key(keyspace, name, &key));
	TRY(kv_clear(tx, buf_str(&key)));
	return types_touch(tx);
}

enum status
table_type_read(struct kv_tx *tx, struct str keyspace, struct str name, struct arena *arena,
		struct table_type *ret, struct err *err)
{
	struct str value;

	TRY(table_check_name("a keyspace", keyspace, err));
	TRY(table_check_name("a type", name, err));
	TRY(root_get(tx, keyspace, name, &value));
	if (!value.ptr)
		return fail_no_type(keyspace, name, err);
	*ret = (struct table_type){ .keyspace = arena_dup(arena, keyspace),
				    .name = arena_dup(arena, name) };
	if (!ret->keyspace.ptr || !ret->name.ptr)
		return STATUS_LIMIT;
	return fail_unreadable(type_parse(value, arena, ret, err), "type", name, err);
}

/* ---- The check ---- */

/* The keyspace of a type is there. */
static enum status
verify_keyspace_of(struct catalog_verify *v, struct str keyspace, const struct kv_pair *pair)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str ignored;

	TRY(root_key(keyspace, STR(""), &key));
	TRY(catalog_verify_get(v, buf_str(&key), &f));
	if (!kv_future_value(f, &ignored))
		catalog_verify_found(v, TABLE_FINDING_KEYSPACE, pair->key,
				     "the type is in a keyspace that is not there");
	kv_future_free(f);
	return STATUS_OK;
}

void
table_keyspace_verify(struct catalog_verify *v, struct tuple_reader key, const struct kv_pair *pair)
{
	struct table_keyspace keyspace = { 0 };
	struct table_type type = { 0 };
	struct str of, name;
	struct err err = { 0 };
	enum status status;

	arena_clear(v->scratch);
	if (!key.rest.len) {
		if (pair->value.len != TABLE_STAMP_BYTES)
			catalog_verify_found(v, CATALOG_FINDING_VALUE, pair->key,
					     "not the stamp of the schemas");
		return;
	}
	if (names_next(&key, v->scratch, &of, &name) != STATUS_OK) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, pair->key,
				     "not the name of a keyspace or a type");
		return;
	}
	status = name.len ? type_parse(pair->value, v->scratch, &type, &err)
			  : keyspace_parse(pair->value, v->scratch, &keyspace, &err);
	if (status != STATUS_OK) {
		catalog_verify_unreadable(v, status, &err, pair->key,
					  name.len ? "not a type" : "not a keyspace");
		return;
	}
	if (name.len)
		v->failed = verify_keyspace_of(v, of, pair);
}
