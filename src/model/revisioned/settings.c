/* Settings that all servers of a store share; see revisioned.h. */
#include "kv/keyspace.h"
#include "model/revisioned/revisioned_int.h"

struct reading {
	struct arena *arena;
	struct rev_settings found;
	size_t cap;
};

static enum status
take_setting(void *arg, struct tuple_reader key, struct str value)
{
	struct reading *r = arg;
	struct tuple_reader v = tuple_reader(value);
	struct rev_setting setting = { 0 };
	struct tuple_reader peek;
	struct tuple_elem e;

	TRY(rev_next_text(&key, TUPLE_STRING, r->arena, true, &setting.section));
	TRY(rev_next_text(&key, TUPLE_STRING, r->arena, true, &setting.name));
	TRY(rev_next_format(&v));
	peek = v;
	TRY(tuple_next(&peek, &e));
	if (e.kind != TUPLE_NULL)
		TRY(rev_next_text(&v, TUPLE_STRING, r->arena, true, &setting.text));
	TRY(rev_array_grow(r->arena, (void **)&r->found.items, sizeof(*r->found.items),
			   r->found.count, &r->cap));
	r->found.items[r->found.count++] = setting;
	return STATUS_OK;
}

enum status
rev_settings_read(struct kv_tx *tx, struct arena *arena, struct rev_settings *ret)
{
	struct reading r = { .arena = arena };

	TRY(kv_get_metadata_version(tx, r.found.version));
	TRY(rev_root_scan(tx, KV_ROOT_SETTINGS, take_setting, &r));
	*ret = r.found;
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
	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_SETTINGS);
	tuple_put_str(&key, setting->section);
	tuple_put_str(&key, setting->name);
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
