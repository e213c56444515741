/* LIST ROLES, LIST USERS, LIST PERMISSIONS. */
#include "door/cql/run/metadata.h"
#include "door/cql/run/role.h"

struct listing {
	struct cql_request *r;
	const struct cql_statement *statement;
	struct arena_mark mark;
	bool one; /* OF a role: it, and the roles that it has */
	bool recursive;
	struct grants of;         /* of that role */
	unsigned grants;          /* LIST PERMISSIONS: these */
	bool has_on;              /* on this */
	struct grant_resource on; /* and, if recursive, on what contains it */
	int32_t count;
	struct buf rows;
};

/* ---- Who may ---- */

static bool
may_describe(const struct cql_request *r)
{
	return grants_allow_on(&r->client->grants, GRANT_DESCRIBE,
			       &(struct grant_resource){ .of_roles = true });
}

/* The names that somebody is listed by who may not see others: oneself, and one's roles. */
static enum status
check_of(struct cql_request *r, const struct cql_grant *g, bool permissions)
{
	bool has = false;

	if (may_describe(r))
		return STATUS_OK;
	if (g->grantee.ptr)
		TRY(role_has(r, r->client->entry.who.user.name, g->grantee, &has));
	if (has || (!permissions && !g->grantee.ptr))
		return STATUS_OK;
	if (!permissions)
		return request_fail(r, CQL_CODE_UNAUTHORIZED,
				    "You are not authorized to view roles granted to %.*s ",
				    STR_ARG(g->grantee));
	if (!g->grantee.ptr)
		return request_fail(r, CQL_CODE_UNAUTHORIZED,
				    "You are not authorized to view everyone's permissions");
	return request_fail(r, CQL_CODE_UNAUTHORIZED,
			    "You are not authorized to view %.*s's permissions",
			    STR_ARG(g->grantee));
}

/* ---- Which ---- */

static bool
is_listed(const struct listing *l, const struct role *role)
{
	const struct cql_grant *g = &l->statement->grant;
	size_t roles = l->of.role_count;

	if (!l->one)
		return true;
	if (str_eq(role->name, g->grantee))
		return true;
	for (size_t i = 0; i < roles; i++)
		if (str_eq(role->name, l->of.roles[i]))
			return true;
	return false;
}

/* ---- Rows ---- */

static void
put_text(struct listing *l, struct str text)
{
	cql_element_put(&l->rows, CQL_VALUE(text));
}

static void
put_bool(struct listing *l, bool truth)
{
	put_text(l, truth ? STR("\1") : STR("\0"));
}

static void
put_role(struct listing *l, const struct role *role)
{
	put_text(l, role->name);
	put_bool(l, role->superuser);
	if (!l->statement->grant.users) {
		put_bool(l, role->login);
		put_text(l, STR("\0\0\0\0")); /* options: an empty map */
	}
	put_text(l, STR("ALL"));
	l->count++;
}

static enum status
put_permission(struct listing *l, struct str role, enum grant grant,
	       const struct grant_resource *on)
{
	AUTO(buf_release) struct buf text = BUF_SHORT(GRANTS_TEXT_BYTES);

	grant_resource_describe(on, &text);
	TRY(buf_status(&text));
	put_text(l, role);
	put_text(l, role);
	put_text(l, buf_str(&text));
	put_text(l, str_from_cstr(grant_name(grant)));
	l->count++;
	return STATUS_OK;
}

/* True for what a permission is on, if it is asked for. */
static bool
is_asked_on(const struct listing *l, const struct grant_resource *on)
{
	struct grant_resource at = l->on;

	if (!l->has_on || grant_resource_is(on, &at))
		return true;
	if (!l->recursive)
		return false;
	for (; at.tables.table.len || at.tables.keyspace.len || at.role.len;) {
		if (at.tables.table.len)
			at.tables.table = STR("");
		else
			at.tables.keyspace = at.role = STR("");
		if (grant_resource_is(on, &at))
			return true;
	}
	return false;
}

static enum status
put_permissions(struct listing *l, const struct role *role)
{
	for (size_t i = 0; i < role->text_count; i++) {
		const struct grants_text t = grants_text_read(role->texts[i]);

		if (t.kind != GRANTS_GRANT || !is_asked_on(l, &t.on))
			continue;
		for (unsigned bit = 1; bit < GRANT_ALL; bit <<= 1)
			if (t.grants & l->grants & bit)
				TRY(put_permission(l, role->name, (enum grant)bit, &t.on));
	}
	return STATUS_OK;
}

static enum status
listing_take(void *arg, const struct role *role)
{
	struct listing *l = arg;

	if (!is_listed(l, role))
		return STATUS_OK;
	if (l->statement->kind == CQL_LIST_PERMISSIONS)
		TRY(put_permissions(l, role));
	else if (!l->statement->grant.users || role->login)
		put_role(l, role);
	return buf_status(&l->rows);
}

/* Finds the role whose roles are listed, and these. */
static enum status
listing_find(struct listing *l, struct kv_tx *tx)
{
	struct cql_request *r = l->r;
	struct settings_live *live = r->door->config.live;
	struct str name = l->statement->grant.grantee;
	struct role role;
	enum status status;

	status = role_read(tx, live, name, r->arena, &role, &r->err);
	if (status == STATUS_NOT_FOUND)
		return request_fail(r, CQL_CODE_INVALID, "%.*s doesn't exist", STR_ARG(name));
	TRY(status);
	l->of = (struct grants){ 0 };
	grants_add(&l->of, role.texts, role.text_count, r->arena);
	return l->recursive ? role_follow(tx, live, &l->of, r->arena) : STATUS_OK;
}

static enum status
listing_body(struct kv_tx *tx, void *arg)
{
	struct listing *l = arg;
	struct cql_request *r = l->r;

	arena_reset(r->arena, l->mark);
	buf_clear(&l->rows);
	l->count = 0;
	if (l->one)
		TRY(listing_find(l, tx));
	return role_each(tx, r->door->config.live, r->out->part, listing_take, l, &r->err);
}

static void
put_columns(struct listing *l)
{
	static const struct cql_type *const texts[] = { CQL_NATIVE(TEXT), CQL_NATIVE(TEXT) };
	static const struct cql_type map = {
		.kind = CQL_TYPE_MAP, .resolved = true, .count = 2, .args = texts
	};
	static const struct result_column roles[] = {
		{ { "role", 4 }, CQL_NATIVE(TEXT) },
		{ { "super", 5 }, CQL_NATIVE(BOOLEAN) },
		{ { "login", 5 }, CQL_NATIVE(BOOLEAN) },
		{ { "options", 7 }, &map },
		{ { "datacenters", 11 }, CQL_NATIVE(TEXT) },
	};
	static const struct result_column users[] = {
		{ { "name", 4 }, CQL_NATIVE(TEXT) },
		{ { "super", 5 }, CQL_NATIVE(BOOLEAN) },
		{ { "datacenters", 11 }, CQL_NATIVE(TEXT) },
	};
	static const struct result_column permissions[] = {
		{ { "role", 4 }, CQL_NATIVE(TEXT) },
		{ { "username", 8 }, CQL_NATIVE(TEXT) },
		{ { "resource", 8 }, CQL_NATIVE(TEXT) },
		{ { "permission", 10 }, CQL_NATIVE(TEXT) },
	};
	struct result_columns result = { STR("system_auth"), STR("roles"), roles, 5 };

	if (l->statement->kind == CQL_LIST_PERMISSIONS)
		result = (struct result_columns){ STR("system_auth"), STR("permissions"),
						  permissions, 4 };
	else if (l->statement->grant.users)
		result = (struct result_columns){ STR("system_auth"), STR("users"), users, 3 };
	metadata_put_rows(l->r->out, l->r->header.version, &result, false, (struct str){ 0 });
	frame_put_i32(l->r->out, l->count);
}

enum status
role_list_run(struct cql_request *r, const struct cql_statement *s, struct str keyspace)
{
	const struct cql_grant *g = &s->grant;
	bool permissions = s->kind == CQL_LIST_PERMISSIONS;
	struct cql_statement own = *s;
	struct listing l = { .r = r,
			     .statement = &own,
			     .one = g->grantee.ptr != NULL,
			     .recursive = !g->no_recursive,
			     .grants = role_permissions(g->permissions),
			     .has_on = g->resource != CQL_RESOURCE_NONE };
	enum status status;

	TRY(check_of(r, g, permissions));
	if (l.has_on)
		TRY(role_resource(r, s, keyspace, &l.on));
	/* Who may not see others sees their own roles. */
	if (!l.one && !may_describe(r)) {
		own.grant.grantee = r->client->entry.who.user.name;
		l.one = true;
	}
	l.mark = arena_mark(r->arena);
	l.rows = cql_buf(&r->q, CQL_REPLY_BYTES);
	status = kv_run_read(r->door->config.store, listing_body, &l, &r->err);
	if (status == STATUS_OK) {
		put_columns(&l);
		buf_append_buf(r->out, &l.rows);
	}
	buf_release(&l.rows);
	return status;
}
