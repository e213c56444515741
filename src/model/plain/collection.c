/* Collections: creating and renaming them, their options, what is kept with an opened one. */
#include <assert.h>

#include "base/steady.h"
#include "base/mem.h"
#include "model/plain/plain_int.h"

enum {
	/* (format) and behind it the document. */
	OPTIONS_FORMAT = 1,
};

struct plain_extension {
	char *bytes; /* owned */
	struct str options;
	void *indexes; /* index_set_load() */
};

enum plain_scheme
plain_scheme_of(const struct catalog_db *db)
{
	return (enum plain_scheme)db->options[PLAIN_OPTION_SCHEME];
}

struct str
plain_options_of(const struct catalog_db *db)
{
	const struct plain_extension *extension = db->extension;

	return extension && extension->bytes ? extension->options : BSON_EMPTY;
}

bool
plain_options_are_view(struct str options)
{
	struct bson_value on;

	return !bson_is_empty(options) && bson_find(options, STR("viewOn"), &on) &&
	       on.type == BSON_STRING;
}

/* ---- What is kept with an opened collection ---- */

void
plain_extension_free(void *extension)
{
	struct plain_extension *e = extension;

	if (!e)
		return;
	index_set_free(e->indexes);
	mem_free(e->bytes);
	mem_free(e);
}

const void *
plain_extension_indexes(const void *extension)
{
	const struct plain_extension *e = extension;

	return e ? e->indexes : NULL;
}

static enum status
options_parse(struct str value, struct str *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	if (tuple_next_u64(&r, &format) == STATUS_OK && format > OPTIONS_FORMAT)
		return err_set(err, STATUS_NEWER,
			       "the options of the collection were written by a newer frond");
	if (bson_check(r.rest, NULL) != STATUS_OK)
		return err_set(err, STATUS_CORRUPT, "the options of the collection cannot be read");
	*ret = r.rest;
	return STATUS_OK;
}

static enum status
options_load(struct kv_tx *tx, const struct catalog_db *db, struct plain_extension *e,
	     struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value, options;

	TRY(plain_key_single(db, PLAIN_SPACE_OPTIONS, &key));
	f = kv_get(tx, buf_str(&key), KV_SNAPSHOT);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	TRY(options_parse(value, &options, err));
	e->bytes = mem_strdup(options);
	e->options = str_of(e->bytes, options.len);
	return e->bytes ? STATUS_OK : STATUS_NOMEM;
}

enum status
plain_extend(struct kv_tx *tx, const struct catalog_db *db, void **ret, struct err *err)
{
	struct plain_extension *e = mem_zalloc(sizeof(*e));
	enum status status = e ? STATUS_OK : STATUS_NOMEM;

	*ret = NULL;
	if (status == STATUS_OK)
		status = options_load(tx, db, e, err);
	if (status == STATUS_OK)
		status = index_set_load(tx, db, &e->indexes, err);
	if (status != STATUS_OK || (!e->bytes && !e->indexes)) {
		plain_extension_free(e);
		return status;
	}
	*ret = e;
	return STATUS_OK;
}

/* ---- Creating and changing ---- */

static enum status
options_write(struct kv_tx *tx, const struct catalog_db *db, struct str options, struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	if (options.len > PLAIN_OPTIONS_BYTES)
		return err_set(err, STATUS_INVALID,
			       "the options of a collection may have %d bytes "
			       "(PLAIN_OPTIONS_BYTES)",
			       PLAIN_OPTIONS_BYTES);
	TRY(bson_check(options, err));
	TRY(plain_key_single(db, PLAIN_SPACE_OPTIONS, &key));
	if (bson_is_empty(options))
		return kv_clear(tx, buf_str(&key));
	tuple_put_u64(&value, OPTIONS_FORMAT);
	buf_append_str(&value, options);
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

enum status
plain_create(struct kv_tx *tx, struct str name, enum plain_scheme scheme, struct str options,
	     struct err *err)
{
	const uint64_t numbers[CATALOG_OPTIONS] = { [PLAIN_OPTION_SCHEME] = scheme };
	struct catalog_db *db;
	enum status status;

	TRY(catalog_create(tx, &plain_kind, name, numbers, err));
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, name, &db, err));
	status = options_write(tx, db, options, err);
	catalog_db_unref(db);
	return status;
}

enum status
plain_rename(struct kv_tx *tx, struct str from, struct str to, struct err *err)
{
	return catalog_rename(tx, &plain_kind, from, to, err);
}

enum status
plain_options_set(struct kv_tx *tx, const struct catalog_db *db, struct str options,
		  struct err *err)
{
	TRY(catalog_db_check_now(tx, db, err));
	TRY(options_write(tx, db, options, err));
	return kv_touch_metadata_version(tx);
}

/* ---- A collection in a transaction ---- */

void
plain_init(struct plain *p, struct kv_tx *tx, const struct catalog_db *db, uint64_t now_ms,
	   struct err *err)
{
	*p = (struct plain){
		.tx = tx,
		.db = db,
		.now_ms = now_ms ? now_ms : steady_ms(),
		.err = err,
	};
}

enum status
plain_count(struct plain *p, uint64_t *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	TRY(plain_key_single(p->db, PLAIN_SPACE_COUNT, &key));
	return catalog_counter_wait(kv_get(p->tx, buf_str(&key), KV_SNAPSHOT), ret);
}

enum status
plain_changed_key(struct str prefix, struct buf *key)
{
	buf_clear(key);
	buf_append_str(key, prefix);
	tuple_put_u64(key, PLAIN_SPACE_CHANGED);
	return catalog_key_status(key);
}

enum status
plain_changed_write(struct kv_tx *tx, struct str prefix)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];

	TRY(plain_changed_key(prefix, &key));
	catalog_stamp(0, stamp);
	return kv_set_versionstamped_value(tx, buf_str(&key), str_of(stamp, sizeof(stamp)), 0);
}

enum status
plain_write_begin(struct plain *p, struct str key)
{
	TRY(catalog_db_check_writable(p->db, p->err));
	if (p->claim)
		TRY(p->claim(p->claim_arg, p->tx, key));
	/* Once is enough for each collection, whatever the transaction has logged in others. */
	if (p->marked)
		return STATUS_OK;
	p->marked = true;
	return plain_changed_write(p->tx, p->db->prefix);
}
