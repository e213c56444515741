/* Settings that all servers of a store share; see the header. */
#include "kv/keyspace.h"
#include "catalog/catalog_int.h"
#include "catalog/records.h"
#include "catalog/stored_settings.h"

struct settings_reading {
	struct arena *arena;
	struct catalog_settings found;
	size_t cap;
	struct err *err;
};

static enum status
settings_take(void *arg, struct tuple_reader key, struct str value)
{
	struct settings_reading *r = arg;
	struct catalog_setting setting = { 0 };

	TRY(catalog_next_text(&key, TUPLE_STRING, r->arena, true, &setting.section));
	TRY(catalog_next_text(&key, TUPLE_STRING, r->arena, true, &setting.name));
	TRY(catalog_setting_record_parse(value, r->arena, &setting.text, r->err));
	TRY(catalog_array_grow(r->arena, (void **)&r->found.items, sizeof(*r->found.items),
			       r->found.count, &r->cap));
	r->found.items[r->found.count++] = setting;
	return STATUS_OK;
}

enum status
catalog_settings_read(struct kv_tx *tx, struct arena *arena, struct catalog_settings *ret,
		      struct err *err)
{
	struct settings_reading r = { .arena = arena, .err = err };

	TRY(kv_get_metadata_version(tx, r.found.version));
	TRY(catalog_root_scan(tx, KV_ROOT_SETTINGS, settings_take, &r));
	*ret = r.found;
	return STATUS_OK;
}

static enum status
setting_check_name(struct str name, const char *what, struct err *err)
{
	if (name.len > 0 && name.len <= CATALOG_SETTING_NAME_BYTES)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID, "the name of a %s has 1 to %d bytes", what,
		       CATALOG_SETTING_NAME_BYTES);
}

enum status
catalog_setting_put(struct kv_tx *tx, const struct catalog_setting *setting, struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	TRY(setting_check_name(setting->section, "section", err));
	TRY(setting_check_name(setting->name, "setting", err));
	if (setting->text.len > CATALOG_SETTING_TEXT_BYTES)
		return err_set(err, STATUS_INVALID, "a setting has at most %d bytes",
			       CATALOG_SETTING_TEXT_BYTES);
	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_SETTINGS);
	tuple_put_str(&key, setting->section);
	tuple_put_str(&key, setting->name);
	catalog_setting_record_put(setting->text, &value);
	TRY(catalog_key_status(&key));
	TRY(buf_status(&value));
	TRY(kv_set(tx, buf_str(&key), buf_str(&value)));
	return kv_touch_metadata_version(tx);
}
