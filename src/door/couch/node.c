/* /_node/{name}: the settings, as CouchDB shows and changes those of one of its nodes. */
#include "door/couch/couch_int.h"

#define NODE_NAME "nonode@nohost"

enum {
	PART_NODE = 1,
	PART_WHAT,
	PART_SECTION,
	PART_SETTING,
};

/* The paths below /_node/{name} that CouchDB has and this server has not. */
static const char *const not_offered[] = {
	"_stats", "_system", "_prometheus", "_versions", "_restart", "_smoosh",
};

static enum status
check_path(struct couch_req *r)
{
	struct str what = r->parts_count > PART_WHAT ? r->parts[PART_WHAT] : (struct str){ 0 };

	TRY(couch_require_admin(r));
	if (r->parts_count <= PART_NODE)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing");
	if (!str_eq(r->parts[PART_NODE], STR("_local")) &&
	    !str_eq(r->parts[PART_NODE], STR(NODE_NAME)))
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "no such node: %.*s",
				      STR_ARG(r->parts[PART_NODE]));
	if (!what.ptr || str_eq(what, STR("_config")))
		return STATUS_OK;
	for (size_t i = 0; i < sizeof(not_offered) / sizeof(not_offered[0]); i++)
		if (str_eq(what, str_from_cstr(not_offered[i])))
			return couch_fail_set(&r->fail, COUCH_ERROR_NOT_IMPLEMENTED,
					      "%s is not supported by this server.",
					      not_offered[i]);
	return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing");
}

struct settings_call {
	struct couch_req *r;
	struct arena_mark mark;
	struct rev_setting change;
	struct rev_setting *items;
	size_t count;
	struct str old; /* of the setting that changes; ptr NULL: it was not set */
};

static enum status
unknown_value(struct couch_req *r)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "unknown_config_value");
}

/* ---- Reading ---- */

static enum status
list_body(struct kv_tx *tx, void *arg)
{
	struct settings_call *c = arg;

	arena_reset(c->r->arena, c->mark);
	return couch_settings_list(c->r, tx, &c->items, &c->count);
}

static void
write_section(struct buf *out, const struct rev_setting *items, size_t count)
{
	buf_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_append_byte(out, ',');
		json_write_str(out, items[i].name);
		buf_append_byte(out, ':');
		json_write_str(out, items[i].text);
	}
	buf_append_byte(out, '}');
}

static size_t
section_count(const struct rev_setting *items, size_t count)
{
	size_t n = 0;

	while (n < count && str_eq(items[n].section, items[0].section))
		n++;
	return n;
}

static void
write_all(struct buf *out, const struct rev_setting *items, size_t count)
{
	buf_append_byte(out, '{');
	for (size_t i = 0, n; i < count; i += n) {
		n = section_count(items + i, count - i);
		if (i)
			buf_append_byte(out, ',');
		json_write_str(out, items[i].section);
		buf_append_byte(out, ':');
		write_section(out, items + i, n);
	}
	buf_append_byte(out, '}');
}

static const struct rev_setting *
find(const struct settings_call *c, struct str section, struct str name)
{
	for (size_t i = 0; i < c->count; i++)
		if (str_eq(c->items[i].section, section) && str_eq(c->items[i].name, name))
			return &c->items[i];
	return NULL;
}

enum status
couch_node_get(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_INIT(COUCH_ANSWER_BYTES);
	struct settings_call c = { .r = r, .mark = arena_mark(r->arena) };
	const struct rev_setting *found;
	struct str section = { 0 };

	TRY(check_path(r));
	if (r->parts_count <= PART_WHAT)
		return couch_reply_str(r, 200, STR("{\"name\":\"" NODE_NAME "\"}\n"));
	TRY(kv_run_read(r->couch->config.store, list_body, &c, &r->fail.err));
	if (r->parts_count > PART_SECTION)
		section = config_section(r->parts[PART_SECTION]);
	if (r->parts_count <= PART_SECTION) {
		write_all(&out, c.items, c.count);
	} else if (r->parts_count <= PART_SETTING) {
		size_t i = 0;

		while (i < c.count && !str_eq(c.items[i].section, section))
			i++;
		write_section(&out, c.items + i, section_count(c.items + i, c.count - i));
	} else {
		found = find(&c, section, r->parts[PART_SETTING]);
		if (!found)
			return unknown_value(r);
		json_write_str(&out, found->text);
	}
	return couch_reply(r, 200, &out);
}

/* ---- Changing ---- */

/* What a lower layer refuses, as CouchDB's clients understand it. */
static enum status
refused(struct couch_req *r, enum status status)
{
	struct err err = r->fail.err;

	if (r->fail.error != COUCH_ERROR_NONE)
		return status;
	if (status == STATUS_INVALID || status == STATUS_LIMIT)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "%s", err.text);
	if (status == STATUS_FORBIDDEN)
		return couch_fail_set(&r->fail, COUCH_ERROR_FORBIDDEN, "%s", err.text);
	return status;
}

static enum status
change_body(struct kv_tx *tx, void *arg)
{
	struct settings_call *c = arg;
	const struct rev_setting *found;

	TRY(list_body(tx, c));
	found = find(c, c->change.section, c->change.name);
	c->old = found ? found->text : (struct str){ 0 };
	if (!found && !c->change.text.ptr)
		return unknown_value(c->r);
	TRY(couch_settings_check(c->r, tx, &c->change));
	return rev_setting_put(tx, &c->change, &c->r->fail.err);
}

static enum status
change(struct settings_call *c)
{
	struct buf AUTO(buf_release) out = BUF_INIT(COUCH_SMALL_BODY_BYTES);
	struct couch_req *r = c->r;

	c->change.section = config_section(r->parts[PART_SECTION]);
	c->change.name = r->parts[PART_SETTING];
	if (c->change.text.ptr && str_eq(c->change.section, STR("admins")) &&
	    !auth_is_hashed(c->change.text))
		TRY(refused(r, auth_hash_password(c->change.name, c->change.text, r->arena,
						  &c->change.text, &r->fail.err)));
	c->mark = arena_mark(r->arena);
	TRY(refused(r, kv_run(r->couch->config.store, change_body, c, NULL, &r->fail.err)));
	TRY(couch_settings_reload(r->couch, &r->fail.err));
	json_write_str(&out, c->old.ptr ? c->old : STR(""));
	return couch_reply(r, 200, &out);
}

static enum status
check_setting_path(struct couch_req *r)
{
	TRY(check_path(r));
	if (r->parts_count != PART_SETTING + 1)
		return couch_method_refused(r, "GET");
	return STATUS_OK;
}

enum status
couch_node_put(struct couch_req *r)
{
	struct settings_call c = { .r = r };
	struct json_value value;
	struct str body;

	TRY(check_setting_path(r));
	TRY(couch_read_body(r, COUCH_SMALL_BODY_BYTES, &body));
	if (json_value_read(body, r->arena, &value, &r->fail.err) != STATUS_OK)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "invalid UTF-8 JSON");
	if (value.kind != JSON_STRING)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The value of a setting is a JSON string.");
	c.change.text = value.string.ptr ? value.string : STR("");
	return change(&c);
}

enum status
couch_node_delete(struct couch_req *r)
{
	struct settings_call c = { .r = r };

	TRY(check_setting_path(r));
	return change(&c);
}

/* Servers see each other's changes by themselves; CouchDB's clients ask for it nevertheless. */
enum status
couch_node_post(struct couch_req *r)
{
	TRY(check_path(r));
	if (r->parts_count != PART_SECTION + 1 || !str_eq(r->parts[PART_SECTION], STR("_reload")))
		return couch_method_refused(r, "GET");
	if (r->couch->config.started)
		TRY(couch_settings_reload(r->couch, &r->fail.err));
	return couch_reply_ok(r, 200);
}
