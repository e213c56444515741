/*
 * /_node/{name}: the settings, as CouchDB shows and changes those of one of its nodes; and which
 * function answers what else is asked of a node.
 */
#include "base/quote.h"
#include "base/words.h"
#include "catalog/stored_settings.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/endpoints.h"
#include "door/couch/admin/node.h"
#include "door/couch/admin/tx.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "kv/kv.h"

enum {
	PART_NODE = COUCH_NODE_PART,
	PART_WHAT = COUCH_NODE_PART_WHAT,
	PART_SECTION = COUCH_NODE_PART_MORE,
	PART_SETTING,
};

/* What there is below /_node/{name}. NULL: CouchDB has it, and this server does not. */
static const struct node_row {
	const char *name;
	couch_handler *get;
	bool deep;     /* the path may have further parts */
	bool measures; /* users with the role _metrics may read it */
} rows[] = {
	{ "_stats", couch_node_stats, true, true },
	{ "_system", couch_node_system, false, true },
	{ "_prometheus", couch_node_prometheus, false, true },
	{ "_versions", couch_node_versions, false, false },
	{ "_restart", NULL, false, false },
	{ "_smoosh", NULL, true, false },
};

static enum status
node_check_user(struct couch_req *r)
{
	if (r->parts_count > PART_WHAT)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			if (rows[i].measures && r->method == COUCH_GET &&
			    str_eq(r->parts[PART_WHAT], str_from_cstr(rows[i].name))) {
				if (r->user.admin || couch_has_role(&r->user, STR("_metrics")))
					return STATUS_OK;
				return couch_fail_set(&r->fail, COUCH_ERROR_UNAUTHORIZED,
						      "You are not a server admin or read-only "
						      "metrics user");
			}
	return couch_require_admin(r);
}

/*
 * Checks the user and the node's name. `*ret` is the row of what is asked of the node, or NULL for
 * the settings and the node itself.
 */
static enum status
node_find_row(struct couch_req *r, const struct node_row **ret)
{
	struct str what = r->parts_count > PART_WHAT ? r->parts[PART_WHAT] : (struct str){ 0 };

	*ret = NULL;
	TRY(node_check_user(r));
	if (r->parts_count <= PART_NODE)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing");
	if (!str_eq(r->parts[PART_NODE], STR("_local")) &&
	    !str_eq(r->parts[PART_NODE], str_from_cstr(r->settings->node_name)))
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "no such node: %s",
				      QUOTE_SHOW(r->parts[PART_NODE]));
	if (!what.ptr || (str_eq(what, STR("_config")) && r->parts_count <= PART_SETTING + 1))
		return STATUS_OK;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!str_eq(what, str_from_cstr(rows[i].name)))
			continue;
		if (!rows[i].get)
			return couch_fail_set(&r->fail, COUCH_ERROR_NOT_IMPLEMENTED,
					      "%s is not supported by this server.", rows[i].name);
		if (r->parts_count > PART_WHAT + 1 && !rows[i].deep)
			break;
		*ret = &rows[i];
		return STATUS_OK;
	}
	return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing");
}

struct settings_call {
	struct couch_req *r;
	struct catalog_setting change;
	struct catalog_setting *items;
	size_t count;
	struct str old; /* of the setting that changes; ptr NULL: it was not set */
};

static enum status
node_unknown_value(struct couch_req *r)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "unknown_config_value");
}

/* ---- Reading ---- */

static enum status
node_list_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct settings_call *c = arg;

	return settings_live_list(r->couch->config.live, tx, r->arena, &c->items, &c->count,
				  &r->fail.err);
}

static void
node_write_section(struct buf *out, const struct catalog_setting *items, size_t count)
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
node_section_count(const struct catalog_setting *items, size_t count)
{
	size_t n = 0;

	while (n < count && str_eq(items[n].section, items[0].section))
		n++;
	return n;
}

static void
node_write_all(struct buf *out, const struct catalog_setting *items, size_t count)
{
	buf_append_byte(out, '{');
	for (size_t i = 0, n; i < count; i += n) {
		n = node_section_count(items + i, count - i);
		if (i)
			buf_append_byte(out, ',');
		json_write_str(out, items[i].section);
		buf_append_byte(out, ':');
		node_write_section(out, items + i, n);
	}
	buf_append_byte(out, '}');
}

static const struct catalog_setting *
node_find_setting(const struct settings_call *c, struct str section, struct str name)
{
	for (size_t i = 0; i < c->count; i++)
		if (str_eq(c->items[i].section, section) && str_eq(c->items[i].name, name))
			return &c->items[i];
	return NULL;
}

enum status
couch_node_get(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct settings_call c = { .r = r };
	const struct catalog_setting *found;
	const struct node_row *row;
	struct str section = { 0 };

	TRY(node_find_row(r, &row));
	if (row)
		return row->get(r);
	if (r->parts_count <= PART_WHAT) {
		buf_append_cstr(&out, "{\"name\":");
		json_write_str(&out, str_from_cstr(r->settings->node_name));
		buf_append_byte(&out, '}');
		return couch_reply(r, 200, &out);
	}
	TRY(couch_store_read(r, node_list_attempt, &c));
	if (r->parts_count > PART_SECTION)
		section = settings_section(r->parts[PART_SECTION]);
	if (r->parts_count <= PART_SECTION) {
		node_write_all(&out, c.items, c.count);
	} else if (r->parts_count <= PART_SETTING) {
		size_t i = 0;

		while (i < c.count && !str_eq(c.items[i].section, section))
			i++;
		node_write_section(&out, c.items + i, node_section_count(c.items + i, c.count - i));
	} else {
		found = node_find_setting(&c, section, r->parts[PART_SETTING]);
		if (!found)
			return node_unknown_value(r);
		json_write_str(&out, found->text);
	}
	return couch_reply(r, 200, &out);
}

/* ---- Changing ---- */

/* Turns the refusal of a lower layer into an error that CouchDB's clients understand. */
static enum status
node_explain_refusal(struct couch_req *r, enum status status)
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
node_change_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct settings_call *c = arg;
	const struct catalog_setting *found;

	TRY(node_list_attempt(r, tx, c));
	found = node_find_setting(c, c->change.section, c->change.name);
	c->old = found ? found->text : (struct str){ 0 };
	if (!found && !c->change.text.ptr)
		return node_unknown_value(r);
	TRY(settings_live_check(r->couch->config.live, tx, &c->change, r->arena, &r->fail.err));
	return catalog_setting_put(tx, &c->change, &r->fail.err);
}

/* "section/name", in the arena. */
static struct str
node_setting_path(const struct settings_call *c)
{
	struct buf AUTO(buf_release) path = BUF_SHORT(COUCH_SMALL_BODY_BYTES);

	buf_append_str(&path, c->change.section);
	buf_append_byte(&path, '/');
	buf_append_str(&path, c->change.name);
	return buf_dup(&path, c->r->arena);
}

static enum status
node_change_and_answer(struct settings_call *c)
{
	struct buf AUTO(buf_release) out = BUF_SHORT(COUCH_SMALL_BODY_BYTES);
	struct couch_req *r = c->r;
	const struct access_settings *access = settings_of(r->held->settings,
							   &access_setting_group);
	const struct auth_client client = couch_auth_client(r);
	const struct auth_hashing how = { .rounds = access->iterations,
					  .client = &client,
					  .limits = people_hash_limits(r->held->settings) };

	c->change.section = settings_section(r->parts[PART_SECTION]);
	c->change.name = r->parts[PART_SETTING];
	if (c->change.text.ptr && str_eq(c->change.section, STR("admins")) &&
	    !auth_is_hashed(c->change.text))
		TRY(node_explain_refusal(r, auth_hash_password(c->change.name, c->change.text, &how,
							       r->arena, &c->change.text,
							       &r->fail.err)));
	TRY(node_explain_refusal(r, couch_store_write(r, node_change_attempt, c)));
	couch_audit_changed(r, c->change.text.ptr ? "setting_changed" : "setting_removed",
			    "setting", node_setting_path(c));
	TRY(settings_live_reload(r->couch->config.live, &r->fail.err));
	json_write_str(&out, c->old.ptr ? c->old : STR(""));
	return couch_reply(r, 200, &out);
}

/*
 * Sections that say what CouchDB runs. Nobody changes them over HTTP, there or here: whoever could
 * would run programs of his choice on the machine.
 */
static const char *const fixed_sections[] = {
	"daemons",
	"external",
	"httpd_design_handlers",
	"httpd_db_handlers",
	"httpd_global_handlers",
	"native_query_servers",
	"os_daemons",
	"query_servers",
	"feature_flags",
};

static enum status
node_check_setting_path(struct couch_req *r)
{
	const struct node_row *row;

	TRY(node_find_row(r, &row));
	if (row || r->parts_count != PART_SETTING + 1)
		return couch_method_refused(r, "GET");
	if (WORDS_HAVE(fixed_sections, r->parts[PART_SECTION]))
		return couch_fail_set(&r->fail, COUCH_ERROR_FORBIDDEN,
				      "Config section blacklisted for modification over "
				      "HTTP API.");
	return STATUS_OK;
}

enum status
couch_node_put(struct couch_req *r)
{
	struct settings_call c = { .r = r };
	struct json_value value;
	struct str body;

	TRY(node_check_setting_path(r));
	TRY(couch_read_body(r, COUCH_SMALL_BODY_BYTES, &body));
	if (json_value_read(body, r->arena, &value, &r->fail.err) != STATUS_OK)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "invalid UTF-8 JSON");
	if (value.kind != JSON_STRING)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The value of a setting is a JSON string.");
	c.change.text = value.string.ptr ? value.string : STR("");
	return node_change_and_answer(&c);
}

enum status
couch_node_delete(struct couch_req *r)
{
	struct settings_call c = { .r = r };

	TRY(node_check_setting_path(r));
	return node_change_and_answer(&c);
}

/*
 * Does nothing: servers notice each other's changes by themselves. CouchDB's clients send the
 * request nevertheless.
 */
enum status
couch_node_post(struct couch_req *r)
{
	const struct node_row *row;

	TRY(node_find_row(r, &row));
	if (row || r->parts_count != PART_SECTION + 1 ||
	    !str_eq(r->parts[PART_SECTION], STR("_reload")))
		return couch_method_refused(r, "GET");
	TRY(settings_live_reload(r->couch->config.live, &r->fail.err));
	return couch_reply_ok(r, 200);
}
