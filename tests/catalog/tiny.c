#include "tiny.h"

#include "base/utf8.h"
#include "catalog/check.h"
#include "catalog/draw.h"
#include "catalog/keys.h"
#include "catalog/tally.h"

enum {
	SPACE_KEYS = 1,
	SPACE_COUNTERS = 2,
	SPACE_STATS = 3,
};

#define STAT_KEYS    "keys"
#define STAT_CHANGED "changed"

static void
tiny_key(struct buf *key, struct str prefix, uint64_t space, struct str name)
{
	buf_clear(key);
	buf_append_str(key, prefix);
	tuple_put_u64(key, space);
	if (name.ptr)
		tuple_put_str(key, name);
}

static enum status
tiny_check_name(struct str name, struct err *err)
{
	for (size_t i = 0; i < name.len; i++)
		if (name.ptr[i] < '0' || name.ptr[i] > '9')
			return err_set(err, STATUS_INVALID, "not a number");
	return name.len ? STATUS_OK : STATUS_INVALID;
}

static enum status
tiny_watch_key(struct str prefix, struct buf *key)
{
	tiny_key(key, prefix, SPACE_STATS, STR(STAT_CHANGED));
	return catalog_key_status(key);
}

static enum status
tiny_wake(struct kv_tx *tx, struct str prefix)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];

	TRY(tiny_watch_key(prefix, &key));
	catalog_stamp(0, stamp);
	return kv_set_versionstamped_value(tx, buf_str(&key), str_of(stamp, sizeof(stamp)), 0);
}

static enum status
tiny_check_pair(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *arg)
{
	(void)arg;
	v->sum.documents++;
	if (utf8_valid_prefix(c->pair.value) < c->pair.value.len)
		catalog_verify_found(v, CATALOG_FINDING_VALUE, c->pair.key,
				     "not a text, but %zu bytes", c->pair.value.len);
	return STATUS_OK;
}

static enum status
tiny_verify_range(struct catalog_verify *v, struct catalog_verify_range *range)
{
	static const struct catalog_verify_walk walk = { .space = SPACE_KEYS,
							 .what = "the key",
							 .check = tiny_check_pair };

	return catalog_verify_walk(v, &walk, range);
}

static enum status
tiny_verify(struct catalog_verify *v)
{
	if (catalog_verify_needs_ranges(v)) {
		TRY(catalog_verify_ranges(v, tiny_verify_range, NULL));
		return catalog_verify_tallies_in_ranges(v);
	}
	TRY(tiny_verify_range(v, NULL));
	return catalog_verify_tallies(v);
}

static bool
tiny_is_document(struct str key)
{
	struct tuple_reader r = tuple_reader(key);
	uint64_t space;

	return tuple_next_u64(&r, &space) == STATUS_OK && space == SPACE_KEYS;
}

static const char *
tiny_space_name(uint64_t space)
{
	static const char *const names[] = {
		[SPACE_KEYS] = "keys",
		[SPACE_COUNTERS] = "counters",
		[SPACE_STATS] = "stats",
	};

	return space < sizeof(names) / sizeof(names[0]) ? names[space] : NULL;
}

/* Values are texts, and no tuples. */
static bool
tiny_draw_value(uint64_t space, struct str key, struct str value, struct buf *ret)
{
	(void)key;
	if (space == SPACE_STATS)
		return catalog_draw_counter(value, ret) || catalog_draw_stamp(value, ret);
	if (space == SPACE_KEYS)
		buf_printf(ret, "\"%.*s\"", STR_ARG(value));
	return space == SPACE_KEYS;
}

static enum status
tiny_inspect(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct arena *arena,
	     catalog_draw_prefix *draw, void *arg)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	(void)tx;
	(void)arena;
	tiny_key(&key, db->prefix, SPACE_KEYS, id);
	TRY(catalog_key_status(&key));
	return draw(arg, buf_str(&key));
}

/* key=value, a line each. */
static enum status
tiny_dump(const struct catalog_dump *d)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	enum status status;

	tiny_key(&lo, d->db->prefix, SPACE_KEYS, (struct str){ NULL, 0 });
	buf_append_str(&hi, buf_str(&lo));
	buf_append_byte(&hi, CATALOG_KEY_LAST);
	TRY(kv_scan_init(&scan, d->tx, buf_str(&lo), buf_str(&hi), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct tuple_reader r = tuple_reader(str_skip(pair.key, lo.len));
		struct tuple_elem name;

		TRY(tuple_next(&r, &name));
		buf_printf(d->out, "%.*s=%.*s", STR_ARG(name.raw), STR_ARG(pair.value));
		TRY(d->end_line(d->arg, d->err));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static const struct catalog_tally_list lists[] = { {
	.space = SPACE_KEYS,
	.counters = SPACE_COUNTERS,
	.totals = SPACE_STATS,
	.total_names = { STAT_KEYS },
} };

static const struct catalog_kind kind = {
	.number = TINY_KIND,
	.name = "tiny",
	.space = (enum catalog_space)TINY_SPACE,
	.lists = lists,
	.lists_count = 1,
	.check_name = tiny_check_name,
	.watch_key = tiny_watch_key,
	.wake = tiny_wake,
	.space_name = tiny_space_name,
	.draw_value = tiny_draw_value,
	.inspect = tiny_inspect,
	.dump = tiny_dump,
	.verify = tiny_verify,
	.is_document = tiny_is_document,
};

const struct catalog_kind *
tiny_kind(void)
{
	return &kind;
}

void
tiny_register(void)
{
	catalog_kind_register(&kind);
}

enum status
tiny_create(struct kv_tx *tx, struct str name, struct err *err)
{
	return catalog_create(tx, &kind, name, (const uint64_t[CATALOG_OPTIONS]){ 0 }, err);
}

enum status
tiny_put(struct kv_tx *tx, const struct catalog_db *db, struct arena *arena, struct str name,
	 struct str value, struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(catalog_counts_release) struct catalog_counts counts;
	size_t list_bytes;

	catalog_counts_init(&counts, db, arena);
	TRY(catalog_db_check_writable(db, err));
	tiny_key(&key, db->prefix, SPACE_KEYS, (struct str){ NULL, 0 });
	list_bytes = key.len;
	tiny_key(&key, db->prefix, SPACE_KEYS, name);
	TRY(catalog_key_status(&key));
	TRY(kv_set(tx, buf_str(&key), value));
	TRY(catalog_counts_add(&counts, 0, str_skip(buf_str(&key), list_bytes), 1));
	TRY(catalog_counts_finish(&counts, tx, &key));
	tiny_key(&key, db->prefix, SPACE_STATS, STR(STAT_KEYS));
	TRY(catalog_counter_add(tx, &key, 1));
	return tiny_wake(tx, db->prefix);
}

enum status
tiny_get(struct kv_tx *tx, const struct catalog_db *db, struct str name, struct arena *arena,
	 struct str *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value;

	tiny_key(&key, db->prefix, SPACE_KEYS, name);
	TRY(catalog_key_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_NOT_FOUND;
	*ret = arena_dup(arena, value);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}
