/*
 * The description of a database as it is stored, and the names in its key:
 *
 *     format 1: (1, P, Incarnation, uuid, created, options… [, fence])          a revisioned one
 *     format 2: (2, kind, P, Incarnation, uuid, created, options… [, fence])    any other
 *     format 3: (3, kind, P, Incarnation, uuid, created, (options…) [, fence])
 *
 * Formats 1 and 2 have the first two options. Format 3 is written where any other option is set.
 * An older frond, which does not know what that option means, then refuses the database.
 */
#include <assert.h>

#include "catalog/catalog_int.h"
#include "catalog/format.h"
#include "catalog/records.h"
#include "kv/keyspace.h"

enum {
	DESCRIPTION_FORMAT_KIND = 2,
	DESCRIPTION_FORMAT_OPTIONS = 3,
	DESCRIPTION_FORMAT = 3,        /* the newest */
	DESCRIPTION_PLAIN_OPTIONS = 2, /* that formats 1 and 2 have */
};

void
catalog_key_names(struct buf *key, uint64_t part, enum catalog_space space)
{
	assert(space >= 1 && space <= CATALOG_SPACES_MAX);
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, part);
	if (space != CATALOG_SPACE_COUCH)
		tuple_put_u64(key, space);
}

void
catalog_key_name(struct buf *key, uint64_t part, enum catalog_space space, struct str name)
{
	catalog_key_names(key, part, space);
	tuple_put_str(key, name);
}

enum status
catalog_prefix_put(uint64_t number, struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf prefix = BUF_INIT(16);

	tuple_put_u64(&prefix, number);
	TRY(buf_status(&prefix));
	*ret = buf_dup(&prefix, arena);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
catalog_key_name_next(struct tuple_reader key, struct arena *arena, enum catalog_space *ret_space,
		      struct str *ret)
{
	struct tuple_reader peek = key;
	uint64_t space = CATALOG_SPACE_COUCH;

	if (tuple_next_u64(&peek, &space) == STATUS_OK)
		key = peek;
	TRY(catalog_next_text(&key, TUPLE_STRING, arena, true, ret));
	if (key.rest.len || space < 1 || space > CATALOG_SPACES_MAX)
		return STATUS_CORRUPT;
	*ret_space = (enum catalog_space)space;
	return STATUS_OK;
}

enum status
catalog_names_scan(struct kv_tx *tx, uint64_t part, enum catalog_space space,
		   catalog_take_root *take, void *arg)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	size_t prefix_len;

	catalog_key_names(&lo, part, space);
	catalog_key_names(&hi, part, space);
	prefix_len = lo.len;
	buf_append_byte(&lo, CATALOG_KEY_STRINGS);
	buf_append_byte(&hi, CATALOG_KEY_STRINGS_END);
	TRY(catalog_key_status(&lo));
	TRY(catalog_key_status(&hi));
	return catalog_scan(tx, buf_str(&lo), buf_str(&hi), prefix_len, take, arg);
}

/* ---- The record ---- */

/* The oldest format that can say all of it. */
static uint64_t
description_format(const struct catalog_db *db)
{
	for (size_t i = DESCRIPTION_PLAIN_OPTIONS; i < CATALOG_OPTIONS; i++)
		if (db->options[i])
			return DESCRIPTION_FORMAT_OPTIONS;
	/* A database always has a kind: parsing refuses a description without one that is known. */
	return db->kind->number == CATALOG_KIND_REVISIONED ? 1 : DESCRIPTION_FORMAT_KIND;
}

void
catalog_description_put(const struct catalog_db *db, struct buf *value)
{
	uint64_t format = description_format(db);
	bool plain = format < DESCRIPTION_FORMAT_OPTIONS;

	tuple_put_u64(value, format);
	if (format >= DESCRIPTION_FORMAT_KIND)
		tuple_put_u64(value, db->kind->number);
	tuple_put_u64(value, db->number);
	tuple_put_u64(value, db->incarnation);
	tuple_put_uuid(value, db->uuid);
	tuple_put_u64(value, db->created_ms);
	if (!plain)
		tuple_open(value);
	for (size_t i = 0; i < (plain ? DESCRIPTION_PLAIN_OPTIONS : CATALOG_OPTIONS); i++)
		tuple_put_u64(value, db->options[i]);
	if (!plain)
		tuple_close(value);
	if (db->fence != CATALOG_FENCE_NONE)
		tuple_put_u64(value, db->fence);
}

static enum status
kind_parse(struct tuple_reader *r, uint64_t format, const struct catalog_kind **ret,
	   struct err *err)
{
	uint64_t number = CATALOG_KIND_REVISIONED;

	if (format >= DESCRIPTION_FORMAT_KIND)
		TRY(tuple_next_u64(r, &number));
	*ret = catalog_kind_find(number);
	if (!*ret)
		return err_set(err, STATUS_NEWER,
			       "the database was written by a newer frond: it is of kind %llu, "
			       "which this one does not have",
			       (unsigned long long)number);
	return STATUS_OK;
}

static enum status
options_parse(struct tuple_reader *r, uint64_t format, uint64_t ret[CATALOG_OPTIONS])
{
	struct tuple_reader nested;

	memset(ret, 0, CATALOG_OPTIONS * sizeof(*ret));
	if (format < DESCRIPTION_FORMAT_OPTIONS) {
		for (size_t i = 0; i < DESCRIPTION_PLAIN_OPTIONS; i++)
			TRY(tuple_next_u64(r, &ret[i]));
		return STATUS_OK;
	}
	TRY(tuple_next_nested(r, &nested));
	for (size_t i = 0; i < CATALOG_OPTIONS; i++)
		TRY(tuple_next_u64(&nested, &ret[i]));
	return nested.rest.len ? STATUS_CORRUPT : STATUS_OK;
}

enum status
catalog_description_parse(struct str value, struct catalog_db *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct tuple_elem uuid;
	uint64_t format, incarnation, fence = CATALOG_FENCE_NONE;

	TRY(catalog_format_next(&r, "description of the database", DESCRIPTION_FORMAT, &format,
				err));
	TRY(kind_parse(&r, format, &ret->kind, err));
	TRY(tuple_next_u64(&r, &ret->number));
	TRY(tuple_next_u64(&r, &incarnation));
	if (tuple_next(&r, &uuid) != STATUS_OK || uuid.kind != TUPLE_UUID)
		return STATUS_CORRUPT;
	memcpy(ret->uuid, uuid.raw.ptr, sizeof(ret->uuid));
	TRY(tuple_next_u64(&r, &ret->created_ms));
	TRY(options_parse(&r, format, ret->options));
	/* Descriptions are written in one way only: bytes of any other way are damage. */
	if (r.rest.len) {
		TRY(tuple_next_u64(&r, &fence));
		if (fence == CATALOG_FENCE_NONE || fence > CATALOG_FENCE_KEPT)
			return STATUS_CORRUPT;
	}
	if (r.rest.len || incarnation > UINT8_MAX || format != description_format(ret))
		return STATUS_CORRUPT;
	if (ret->kind->check_options)
		TRY(ret->kind->check_options(ret->options));
	ret->incarnation = (uint8_t)incarnation;
	ret->fence = (enum catalog_fence)fence;
	return STATUS_OK;
}

/* ---- In a transaction ---- */

enum status
catalog_description_set(struct kv_tx *tx, const struct catalog_db *db)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	catalog_key_name(&key, KV_ROOT_DATABASES, db->kind->space, db->name);
	catalog_description_put(db, &value);
	TRY(catalog_key_status(&key));
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

enum status
catalog_description_unreadable(struct str name, struct err *err)
{
	return err_set(err, STATUS_CORRUPT,
		       "The description of the database \"%.*s\" cannot be read.", STR_ARG(name));
}

enum status
catalog_description_get(struct kv_tx *tx, enum catalog_space space, struct str name,
			struct catalog_db *ret, struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value;
	enum status status;

	*ret = (struct catalog_db){ .name = name };
	if (name.len > CATALOG_NAME_BYTES)
		return err_set(err, STATUS_NOT_FOUND, "Database does not exist.");
	catalog_key_name(&key, KV_ROOT_DATABASES, space, name);
	TRY(catalog_key_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return err_set(err, STATUS_NOT_FOUND, "Database does not exist.");
	status = catalog_description_parse(value, ret, err);
	if (status == STATUS_OK && ret->kind->space != space)
		status = STATUS_CORRUPT;
	return status == STATUS_CORRUPT ? catalog_description_unreadable(name, err) : status;
}

enum status
catalog_description_clear(struct kv_tx *tx, const struct catalog_db *db)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	catalog_key_name(&key, KV_ROOT_DATABASES, db->kind->space, db->name);
	TRY(catalog_key_status(&key));
	return kv_clear(tx, buf_str(&key));
}
