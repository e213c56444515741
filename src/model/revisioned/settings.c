/* Settings that all servers of a store share; see revisioned.h. */
#include "kv/keyspace.h"
#include "model/revisioned/revisioned_int.h"

static void
setting_key(struct buf *key, struct str section, struct str name)
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_SETTINGS);
	tuple_put_str(key, section);
	tuple_put_str(key, name);
}

static enum status
parse(const struct kv_pair *pair, size_t prefix_len, struct arena *arena, struct rev_setting *ret)
{
	struct tuple_reader k = tuple_reader(str_skip(pair->key, prefix_len));
	struct tuple_reader v = tuple_reader(pair->value);
	struct tuple_reader peek;
	struct tuple_elem e;

	*ret = (struct rev_setting){ 0 };
	TRY(rev_next_text(&k, TUPLE_STRING, arena, true, &ret->section));
	TRY(rev_next_text(&k, TUPLE_STRING, arena, true, &ret->name));
	TRY(rev_next_format(&v));
	peek = v;
	TRY(tuple_next(&peek, &e));
	return e.kind == TUPLE_NULL ? STATUS_OK
				    : rev_next_text(&v, TUPLE_STRING, arena, true, &ret->text);
}

enum status
rev_settings_read(struct kv_tx *tx, struct arena *arena, struct rev_settings *ret)
{
	AUTO(buf_release) struct buf lo = REV_KEY_INIT;
	AUTO(buf_release) struct buf hi = REV_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	const struct kv_range_options options = { .mode = KV_SNAPSHOT,
						  .limit_bytes = REV_PAGE_BYTES };
	struct rev_settings found = { 0 };
	size_t cap = 0;
	struct kv_pair pair;
	enum status status;

	TRY(kv_get_metadata_version(tx, found.version));
	tuple_put_u64(&lo, KV_ROOT);
	tuple_put_u64(&lo, KV_ROOT_SETTINGS);
	buf_append_str(&hi, buf_str(&lo));
	buf_append_byte(&hi, REV_KEY_LAST);
	TRY(rev_key_status(&lo));
	TRY(rev_key_status(&hi));
	TRY(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		TRY(rev_array_grow(arena, (void **)&found.items, sizeof(*found.items), found.count,
				   &cap));
		TRY(parse(&pair, lo.len, arena, &found.items[found.count]));
		found.count++;
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	*ret = found;
	return STATUS_OK;
}

static enum status
check_name(struct str name, const char *what, struct err *err)
{
	if (name.len > 0 && name.len <= REV_SETTING_NAME_BYTES)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID, "the name of a %s has 1 to %d bytes", what,
		       REV_SETTING_NAME_BYTES);
}

enum status
rev_setting_put(struct kv_tx *tx, const struct rev_setting *setting, struct err *err)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	TRY(check_name(setting->section, "section", err));
	TRY(check_name(setting->name, "setting", err));
	if (setting->text.len > REV_SETTING_TEXT_BYTES)
		return err_set(err, STATUS_INVALID, "a setting has at most %d bytes",
			       REV_SETTING_TEXT_BYTES);
	setting_key(&key, setting->section, setting->name);
	tuple_put_u64(&value, REV_FORMAT);
	if (setting->text.ptr)
		tuple_put_str(&value, setting->text);
	else
		tuple_put_null(&value);
	TRY(rev_key_status(&key));
	TRY(buf_status(&value));
	TRY(kv_set(tx, buf_str(&key), buf_str(&value)));
	return kv_touch_metadata_version(tx);
}

enum status
rev_setting_clear(struct kv_tx *tx, struct str section, struct str name)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;

	setting_key(&key, section, name);
	TRY(rev_key_status(&key));
	TRY(kv_clear(tx, buf_str(&key)));
	return kv_touch_metadata_version(tx);
}
