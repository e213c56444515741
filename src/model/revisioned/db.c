#include <stdatomic.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "kv/keyspace.h"
#include "model/revisioned/revisioned_int.h"

/* ---- Descriptions in memory ---- */

struct counted_db {
	struct rev_db db; /* first: what callers hold */
	atomic_uint refs;
	char bytes[]; /* the name, then the prefix */
};

struct rev_db *
rev_db_new(const struct rev_db *from)
{
	AUTO(buf_release) struct buf prefix = BUF_INIT(16);
	struct counted_db *c;

	tuple_put_u64(&prefix, from->number);
	if (buf_status(&prefix) != STATUS_OK)
		return NULL;
	c = mem_alloc(sizeof(*c) + from->name.len + prefix.len);
	if (!c)
		return NULL;
	c->db = *from;
	c->db.tally = NULL;
	atomic_init(&c->refs, 1);
	memcpy(c->bytes, from->name.ptr, from->name.len);
	memcpy(c->bytes + from->name.len, prefix.ptr, prefix.len);
	c->db.name = str_of(c->bytes, from->name.len);
	c->db.prefix = str_of(c->bytes + from->name.len, prefix.len);
	return &c->db;
}

struct rev_db *
rev_db_ref(struct rev_db *db)
{
	atomic_fetch_add_explicit(&((struct counted_db *)db)->refs, 1, memory_order_relaxed);
	return db;
}

void
rev_db_unref(struct rev_db *db)
{
	struct counted_db *c = (struct counted_db *)db;

	if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
		return;
	rev_tally_unref(c->db.tally);
	mem_free(c);
}

/* ---- Descriptions in the store ---- */

static void
name_space(struct buf *key)
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_DATABASES);
}

static void
name_key(struct buf *key, struct str name)
{
	name_space(key);
	tuple_put_str(key, name);
}

enum status
rev_description_set(struct kv_tx *tx, const struct rev_db *db)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	name_key(&key, db->name);
	tuple_put_u64(&value, REV_FORMAT);
	tuple_put_u64(&value, db->number);
	tuple_put_u64(&value, db->incarnation);
	tuple_put_uuid(&value, db->uuid);
	tuple_put_u64(&value, db->created_ms);
	tuple_put_u64(&value, db->scheme);
	tuple_put_u64(&value, db->revs_limit);
	if (db->fence != REV_FENCE_NONE)
		tuple_put_u64(&value, db->fence);
	TRY(rev_key_status(&key));
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

enum status
rev_description_parse(struct str value, struct rev_db *ret)
{
	struct tuple_reader r = tuple_reader(value);
	struct tuple_elem uuid;
	uint64_t incarnation, scheme, revs_limit, fence = REV_FENCE_NONE;

	TRY(rev_next_format(&r));
	TRY(tuple_next_u64(&r, &ret->number));
	TRY(tuple_next_u64(&r, &incarnation));
	if (tuple_next(&r, &uuid) != STATUS_OK || uuid.kind != TUPLE_UUID)
		return STATUS_CORRUPT;
	memcpy(ret->uuid, uuid.raw.ptr, sizeof(ret->uuid));
	TRY(tuple_next_u64(&r, &ret->created_ms));
	TRY(tuple_next_u64(&r, &scheme));
	TRY(tuple_next_u64(&r, &revs_limit));
	if (r.rest.len)
		TRY(tuple_next_u64(&r, &fence));
	if (incarnation > UINT8_MAX || revs_limit < 1 || revs_limit > REV_LIMIT_MAX ||
	    (scheme != REV_SCHEME_EXPLODED && scheme != REV_SCHEME_PACKED) ||
	    fence > REV_FENCE_KEPT)
		return STATUS_CORRUPT;
	ret->scheme = (enum rev_scheme)scheme;
	ret->incarnation = (uint8_t)incarnation;
	ret->revs_limit = (uint32_t)revs_limit;
	ret->fence = (enum rev_fence)fence;
	return STATUS_OK;
}

enum status
rev_description_get(struct kv_tx *tx, struct str name, struct rev_db *ret, struct err *err)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	struct kv_future *f;
	struct str value;

	*ret = (struct rev_db){ .name = name };
	if (name.len > REV_DB_NAME_BYTES)
		return err_set(err, STATUS_NOT_FOUND, "Database does not exist.");
	name_key(&key, name);
	TRY(rev_key_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return err_set(err, STATUS_NOT_FOUND, "Database does not exist.");
	if (rev_description_parse(value, ret) != STATUS_OK)
		return err_set(err, STATUS_CORRUPT,
			       "The description of the database \"%.*s\" cannot be read.",
			       STR_ARG(name));
	return STATUS_OK;
}

enum status
rev_description_clear(struct kv_tx *tx, struct str name)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;

	name_key(&key, name);
	TRY(rev_key_status(&key));
	return kv_clear(tx, buf_str(&key));
}

enum status
rev_db_check_writable(const struct rev_db *db, struct err *err)
{
	if (db->fence == REV_FENCE_MOVING)
		return err_set(err, STATUS_UNAVAILABLE,
			       "The database is being moved to another store: until that is done "
			       "it can only be read.");
	if (db->fence == REV_FENCE_KEPT)
		return err_set(err, STATUS_FORBIDDEN,
			       "The database has been moved to another store: what is left here "
			       "can only be read.");
	return STATUS_OK;
}

/* ---- Creating and deleting ---- */

bool
rev_db_name_valid(struct str name)
{
	if (str_eq(name, STR("_users")) || str_eq(name, STR("_replicator")) ||
	    str_eq(name, STR("_global_changes")))
		return true;
	if (name.len == 0 || name.len > REV_DB_NAME_BYTES || *name.ptr < 'a' || *name.ptr > 'z')
		return false;
	for (size_t i = 1; i < name.len; i++) {
		char c = name.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') &&
		    (c == '\0' || !strchr("_$()+-/", c)))
			return false;
	}
	return true;
}

enum status
rev_number_allocate(struct kv_tx *tx, uint64_t *ret)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	AUTO(buf_release) struct buf next = BUF_INIT(16);
	uint64_t number = KV_FIRST_PREFIX;
	struct kv_future *f;
	struct str value;

	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_NEXT_PREFIX);
	TRY(rev_key_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value)) {
		struct tuple_reader r = tuple_reader(value);

		TRY(tuple_next_u64(&r, &number));
	}
	tuple_put_u64(&next, number + 1);
	TRY(buf_status(&next));
	TRY(kv_set(tx, buf_str(&key), buf_str(&next)));
	*ret = number;
	return STATUS_OK;
}

enum status
rev_db_create(struct kv_tx *tx, struct str name, enum rev_scheme scheme, struct err *err)
{
	struct rev_db db;
	enum status status;

	if (!rev_db_name_valid(name))
		return err_set(err, STATUS_INVALID,
			       "Name: '%.*s'. Only lowercase characters (a-z), digits (0-9), and "
			       "any of the characters _, $, (, ), +, -, and / are allowed. Must "
			       "begin with a letter.",
			       STR_ARG(name));
	status = rev_description_get(tx, name, &db, err);
	if (status == STATUS_OK)
		return err_set(err, STATUS_EXISTS,
			       "The database could not be created, the file already exists.");
	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(rev_move_check_absent(tx, name, err));
	db = (struct rev_db){
		.name = name,
		.created_ms = clock_wall_ms(),
		.revs_limit = REV_LIMIT_DEFAULT,
		.scheme = scheme,
	};
	rand_bytes(db.uuid, sizeof(db.uuid));
	TRY(rev_store_incarnation(tx, &db.incarnation));
	TRY(rev_number_allocate(tx, &db.number));
	TRY(rev_description_set(tx, &db));
	TRY(rev_event_put(tx, name, REV_EVENT_CREATED, db.incarnation));
	return kv_touch_metadata_version(tx);
}

enum status
rev_db_delete(struct kv_tx *tx, struct str name, struct err *err)
{
	struct rev_db db;

	TRY(rev_description_get(tx, name, &db, err));
	if (db.fence == REV_FENCE_MOVING)
		return rev_db_check_writable(&db, err);
	return rev_db_remove(tx, &db);
}

enum status
rev_db_remove(struct kv_tx *tx, const struct rev_db *db)
{
	uint8_t incarnation;

	TRY(rev_description_clear(tx, db->name));
	TRY(rev_drop_begin(tx, db->number));
	TRY(rev_store_incarnation(tx, &incarnation));
	TRY(rev_event_put(tx, db->name, REV_EVENT_DELETED, incarnation));
	return kv_touch_metadata_version(tx);
}

/* ---- Opening and listing ---- */

enum status
rev_db_open(struct kv_tx *tx, struct rev_cache *cache, struct str name, struct rev_db **ret,
	    struct err *err)
{
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct rev_db description;
	struct rev_db *db;

	if (cache) {
		enum status status = kv_get_metadata_version(tx, version);

		/* This transaction has touched it: what it reads is not yet true for others. */
		if (status == STATUS_TX_UNREADABLE)
			cache = NULL;
		else
			TRY(status);
	}
	db = cache ? rev_cache_find(cache, version, name) : NULL;
	if (!db) {
		enum status status;

		TRY(rev_description_get(tx, name, &description, err));
		db = rev_db_new(&description);
		if (!db)
			return STATUS_NOMEM;
		status = rev_tally_open(tx, cache ? rev_cache_tallies(cache) : NULL, db);
		if (status != STATUS_OK) {
			rev_db_unref(db);
			return status;
		}
		if (cache)
			rev_cache_add(cache, version, db);
	}
	*ret = db;
	return STATUS_OK;
}

enum status
rev_db_list(struct kv_tx *tx, const struct rev_name_range *range, struct arena *arena,
	    struct rev_name_page *ret)
{
	AUTO(buf_release) struct buf lo = REV_KEY_INIT;
	AUTO(buf_release) struct buf hi = REV_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_range_options options = { .reverse = range->descending, .mode = KV_SNAPSHOT };
	struct rev_name_page page = { 0 };
	uint64_t skip = range->skip;
	size_t cap = 0, bytes = 0, prefix_len;
	struct kv_pair pair;
	enum status status;

	name_space(&lo);
	prefix_len = lo.len;
	TRY(rev_range_bounds(range, REV_KEY_NEXT, &lo, &hi));
	options.limit = rev_scan_limit(skip, range->limit);
	options.limit_bytes = REV_PAGE_BYTES;
	TRY(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct tuple_reader r = tuple_reader(str_skip(pair.key, prefix_len));

		if (skip) {
			skip--;
			continue;
		}
		if (page.count >= range->limit || bytes >= REV_PAGE_BYTES) {
			page.more = true;
			break;
		}
		TRY(rev_array_grow(arena, (void **)&page.names, sizeof(*page.names), page.count,
				   &cap));
		TRY(rev_next_text(&r, TUPLE_STRING, arena, true, &page.names[page.count]));
		page.count++;
		bytes += pair.key.len + pair.value.len;
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	*ret = page;
	return STATUS_OK;
}

/* ---- Settings ---- */

enum status
rev_config_get(struct kv_tx *tx, const struct rev_db *db, struct str name, struct arena *arena,
	       struct str *ret)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	struct kv_future *f;
	struct str value;

	rev_key_named(&key, db, REV_SUBSPACE_CONFIG, name);
	TRY(rev_key_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_NOT_FOUND;
	value = arena_dup(arena, value);
	if (!value.ptr)
		return STATUS_LIMIT;
	*ret = value;
	return STATUS_OK;
}

enum status
rev_config_set(struct kv_tx *tx, const struct rev_db *db, struct str name, struct str value,
	       struct err *err)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;

	TRY(rev_db_check_writable(db, err));
	rev_key_named(&key, db, REV_SUBSPACE_CONFIG, name);
	TRY(rev_key_status(&key));
	return kv_set(tx, buf_str(&key), value);
}

/* As it is now, to be changed. */
static enum status
description_again(struct kv_tx *tx, const struct rev_db *db, struct rev_db *ret, struct err *err)
{
	TRY(rev_description_get(tx, db->name, ret, err));
	if (ret->number != db->number) /* deleted, and made again under its name */
		return err_set(err, STATUS_NOT_FOUND, "Database does not exist.");
	return rev_db_check_writable(ret, err);
}

enum status
rev_scheme_set(struct kv_tx *tx, const struct rev_db *db, enum rev_scheme scheme, struct err *err)
{
	struct rev_db description;

	TRY(description_again(tx, db, &description, err));
	description.scheme = scheme;
	TRY(rev_description_set(tx, &description));
	return kv_touch_metadata_version(tx);
}

enum status
rev_scheme_parse(struct str name, enum rev_scheme *ret)
{
	if (str_eq(name, STR("exploded")))
		*ret = REV_SCHEME_EXPLODED;
	else if (str_eq(name, STR("packed")))
		*ret = REV_SCHEME_PACKED;
	else
		return STATUS_INVALID;
	return STATUS_OK;
}

const char *
rev_scheme_name(enum rev_scheme scheme)
{
	return scheme == REV_SCHEME_PACKED ? "packed" : "exploded";
}

size_t
rev_scheme_packed_bytes(enum rev_scheme scheme)
{
	return scheme == REV_SCHEME_PACKED ? DOC_PACKED_BYTES : 0;
}

enum status
rev_limit_set(struct kv_tx *tx, const struct rev_db *db, uint32_t limit, struct err *err)
{
	struct rev_db description;

	if (limit < 1 || limit > REV_LIMIT_MAX)
		return err_set(err, STATUS_INVALID, "_revs_limit must be between 1 and %d",
			       (int)REV_LIMIT_MAX);
	TRY(description_again(tx, db, &description, err));
	description.revs_limit = limit;
	TRY(rev_description_set(tx, &description));
	return kv_touch_metadata_version(tx);
}

enum status
rev_incarnation_raise(struct kv_tx *tx, struct str name, struct err *err)
{
	struct rev_db description;
	uint8_t of_store;

	TRY(rev_description_get(tx, name, &description, err));
	TRY(rev_store_incarnation(tx, &of_store));
	if (description.incarnation == UINT8_MAX)
		return STATUS_OK;
	description.incarnation++;
	if (description.incarnation < of_store)
		description.incarnation = of_store;
	TRY(rev_description_set(tx, &description));
	return kv_touch_metadata_version(tx);
}
