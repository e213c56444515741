/* Databases of the revisioned kind; see catalog/ for what all kinds have in common. */
#include "model/revisioned/revisioned_int.h"

bool
rev_db_name_valid(struct str name)
{
	if (str_eq(name, STR("_users")) || str_eq(name, STR("_replicator")) ||
	    str_eq(name, STR("_global_changes")))
		return true;
	if (name.len == 0 || name.len > CATALOG_NAME_BYTES || *name.ptr < 'a' || *name.ptr > 'z')
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
rev_db_create(struct kv_tx *tx, struct str name, enum rev_scheme scheme, struct err *err)
{
	const uint64_t options[CATALOG_OPTIONS] = {
		[REV_OPTION_SCHEME] = scheme,
		[REV_OPTION_REVS_LIMIT] = REV_LIMIT_DEFAULT,
	};

	return catalog_create(tx, &rev_kind, name, options, err);
}

enum status
rev_db_create_partitioned(struct kv_tx *tx, struct str name, enum rev_scheme scheme,
			  struct err *err)
{
	const uint64_t options[CATALOG_OPTIONS] = {
		[REV_OPTION_SCHEME] = scheme,
		[REV_OPTION_REVS_LIMIT] = REV_LIMIT_DEFAULT,
		[REV_OPTION_PARTITIONED] = 1,
	};

	return catalog_create(tx, &rev_kind, name, options, err);
}

enum status
rev_db_open(struct kv_tx *tx, struct catalog_cache *cache, struct str name, struct catalog_db **ret,
	    struct err *err)
{
	return catalog_open(tx, cache, CATALOG_SPACE_COUCH, name, ret, err);
}

enum status
rev_db_open_bare(struct kv_tx *tx, struct catalog_cache *cache, struct str name,
		 struct catalog_db **ret, struct err *err)
{
	return catalog_open_bare(tx, cache, CATALOG_SPACE_COUCH, name, ret, err);
}

struct catalog_db *
rev_db_cached(struct kv_tx *tx, struct catalog_cache *cache, struct str name)
{
	return catalog_open_cached(tx, cache, CATALOG_SPACE_COUCH, name);
}

enum status
rev_config_ask(struct kv_tx *tx, const struct catalog_db *db, struct str name,
	       struct kv_future **ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	rev_key_named(&key, db, REV_SUBSPACE_CONFIG, name);
	TRY(catalog_key_status(&key));
	*ret = kv_get(tx, buf_str(&key), KV_READ);
	return STATUS_OK;
}

enum status
rev_config_wait(struct kv_future *f, struct arena *arena, struct str *ret)
{
	struct str value;

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
rev_config_get(struct kv_tx *tx, const struct catalog_db *db, struct str name, struct arena *arena,
	       struct str *ret)
{
	struct kv_future *f;

	TRY(rev_config_ask(tx, db, name, &f));
	return rev_config_wait(f, arena, ret);
}

enum status
rev_config_set(struct kv_tx *tx, const struct catalog_db *db, struct str name, struct str value,
	       struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	TRY(catalog_db_check_writable(db, err));
	rev_key_named(&key, db, REV_SUBSPACE_CONFIG, name);
	TRY(catalog_key_status(&key));
	return kv_set(tx, buf_str(&key), value);
}

enum status
rev_scheme_set(struct kv_tx *tx, const struct catalog_db *db, enum rev_scheme scheme,
	       struct err *err)
{
	return catalog_option_set(tx, db, REV_OPTION_SCHEME, scheme, err);
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
rev_limit_set(struct kv_tx *tx, const struct catalog_db *db, uint32_t limit, struct err *err)
{
	if (limit < 1 || limit > REV_LIMIT_MAX)
		return err_set(err, STATUS_INVALID, "_revs_limit must be between 1 and %d",
			       (int)REV_LIMIT_MAX);
	return catalog_option_set(tx, db, REV_OPTION_REVS_LIMIT, limit, err);
}

enum rev_scheme
rev_cache_scheme(const struct catalog_cache *cache, struct str name, enum rev_scheme unknown)
{
	const struct catalog_db *db = catalog_cache_peek(cache, CATALOG_SPACE_COUCH, name);

	return db ? rev_db_scheme(db) : unknown;
}
