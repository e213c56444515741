/* GRANT and REVOKE, of permissions and of roles; what permissions are on. */
#include "door/cql/run/context.h"
#include "door/cql/run/role.h"
#include "door/cql/schema/system.h"

/* ---- Permissions ---- */

unsigned
role_permissions(unsigned permissions)
{
	static const struct {
		enum cql_permission said;
		enum grant means;
	} table[] = {
		{ CQL_MAY_CREATE, GRANT_CREATE },     { CQL_MAY_ALTER, GRANT_ALTER },
		{ CQL_MAY_DROP, GRANT_DROP },         { CQL_MAY_SELECT, GRANT_SELECT },
		{ CQL_MAY_MODIFY, GRANT_MODIFY },     { CQL_MAY_AUTHORIZE, GRANT_AUTHORIZE },
		{ CQL_MAY_DESCRIBE, GRANT_DESCRIBE },
	};
	unsigned grants = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (permissions & table[i].said)
			grants |= table[i].means;
	return grants;
}

/* ---- Resources ---- */

struct resource {
	struct cql_request *r;
	const struct cql_statement *statement;
	struct str keyspace;
	const struct grant_resource *on;
	struct arena_mark mark;
};

static enum status
resource_exists_body(struct kv_tx *tx, void *arg)
{
	struct resource *res = arg;
	struct cql_request *r = res->r;
	const struct grant_resource *on = res->on;
	struct table_keyspace stored;
	struct role role;
	enum status status;
	struct run run;

	arena_reset(r->arena, res->mark);
	if (on->of_roles)
		return role_read(tx, r->door->config.live, on->role, r->arena, &role, &r->err);
	if (schema_keyspace_is_system(on->tables.keyspace) && !on->tables.table.len)
		return STATUS_OK;
	if (!on->tables.table.len)
		return table_keyspace_read(tx, on->tables.keyspace, r->arena, &stored, NULL);
	TRY(run_begin(&run, r, tx, res->statement, NULL, res->keyspace));
	status = run_open_table(&run, &res->statement->grant.on);
	run_close_table(&run);
	return status;
}

/* Fails unless it is there. */
static enum status
resource_check(struct cql_request *r, const struct cql_statement *s, struct str keyspace,
	       const struct grant_resource *on)
{
	struct resource res = { r, s, keyspace, on, arena_mark(r->arena) };
	AUTO(buf_release) struct buf text = BUF_SHORT(GRANTS_TEXT_BYTES);
	enum status status;

	if (!on->role.len && !on->tables.keyspace.len)
		return STATUS_OK;
	status = kv_run_read(r->door->config.store, resource_exists_body, &res, &r->err);
	if (status != STATUS_NOT_FOUND && status != STATUS_INVALID)
		return status;
	grant_resource_describe(on, &text);
	return request_fail(r, CQL_CODE_INVALID, "Resource %.*s doesn't exist",
			    STR_ARG(buf_str(&text)));
}

enum status
role_resource(struct cql_request *r, const struct cql_statement *s, struct str keyspace,
	      struct grant_resource *ret)
{
	const struct cql_grant *g = &s->grant;

	*ret = (struct grant_resource){ 0 };
	switch (g->resource) {
	case CQL_RESOURCE_ALL_KEYSPACES:
	case CQL_RESOURCE_NONE:
		break;
	case CQL_RESOURCE_KEYSPACE:
		ret->tables.keyspace = g->on.name;
		break;
	case CQL_RESOURCE_TABLE:
		ret->tables.keyspace = g->on.keyspace.ptr ? g->on.keyspace : keyspace;
		ret->tables.table = g->on.name;
		if (!ret->tables.keyspace.len)
			return request_fail(r, CQL_CODE_INVALID,
					    "No keyspace has been specified. USE a keyspace, or "
					    "explicitly specify keyspace.tablename");
		break;
	case CQL_RESOURCE_ROLE:
		ret->role = g->on.name;
		ret->of_roles = true;
		break;
	case CQL_RESOURCE_ALL_ROLES:
		ret->of_roles = true;
		break;
	case CQL_RESOURCE_ALL_TABLES:
		return request_fail(r, CQL_CODE_INVALID,
				    "ALL TABLES IN KEYSPACE is not supported: say KEYSPACE");
	case CQL_RESOURCE_ALL_FUNCTIONS:
	case CQL_RESOURCE_FUNCTION:
		return request_fail(r, CQL_CODE_INVALID,
				    "Permissions on functions is not supported");
	case CQL_RESOURCE_ALL_MBEANS:
	case CQL_RESOURCE_MBEAN:
		return request_fail(r, CQL_CODE_INVALID, "Permissions on MBeans is not supported");
	}
	/* What is gone leaves permissions behind, which are to be seen and taken away. */
	return s->kind == CQL_GRANT ? resource_check(r, s, keyspace, ret) : STATUS_OK;
}

/* ---- GRANT and REVOKE of permissions ---- */

struct granting {
	bool revokes;
	unsigned grants;
	struct grant_resource on;
	unsigned had; /* of an attempt */
};

/* Takes what the person has on the resource. */
static bool
is_on_resource(const struct grants_text *t, void *arg)
{
	struct granting *g = arg;

	if (t->kind != GRANTS_GRANT || !grant_resource_is(&t->on, &g->on))
		return false;
	g->had |= t->grants;
	return true;
}

static enum status
grant_attempt(struct role_change *ch, void *arg)
{
	struct granting *g = arg;
	struct str texts[32];
	size_t count = 0;
	unsigned grants;

	if (!ch->known)
		return request_fail(ch->r, CQL_CODE_INVALID, "Role %.*s doesn't exist",
				    STR_ARG(ch->name));
	g->had = 0;
	role_change_remove(ch, is_on_resource, g);
	grants = g->revokes ? g->had & ~g->grants : g->had | g->grants;
	if (grants == g->had)
		return STATUS_OK;
	_Static_assert(GRANT_ALL < 1 << 8, "there are fewer permissions than texts");
	if (grants)
		TRY(grants_text_put(grants, &g->on, ch->r->arena, texts, &count));
	for (size_t i = 0; i < count; i++)
		TRY(role_change_add(ch, texts[i]));
	return role_change_write(ch);
}

static enum status
grant_permissions(struct cql_request *r, const struct cql_statement *s, struct str keyspace)
{
	struct granting g = { .revokes = s->kind == CQL_REVOKE };

	TRY(role_resource(r, s, keyspace, &g.on));
	g.grants = role_permissions(s->grant.permissions) & grant_applicable(&g.on);
	if (!g.grants)
		return request_fail(r, CQL_CODE_INVALID,
				    "Resource type %s does not support any of the requested "
				    "permissions",
				    g.on.of_roles ? "RoleResource" : "DataResource");
	/* Nobody gives, or takes, what they do not have. */
	TRY(request_allow_on(r, GRANT_AUTHORIZE, &g.on));
	for (unsigned bit = 1; bit < GRANT_ALL; bit <<= 1)
		if (g.grants & bit)
			TRY(request_allow_on(r, bit, &g.on));
	return role_change_run(r, s->grant.grantee, grant_attempt, &g);
}

/* ---- Roles of roles ---- */

struct has {
	struct cql_request *r;
	struct arena_mark mark;
	struct str role;
	struct grants grants;
};

static enum status
has_body(struct kv_tx *tx, void *arg)
{
	struct has *h = arg;
	struct cql_request *r = h->r;
	struct role role;
	enum status status;

	arena_reset(r->arena, h->mark);
	h->grants = (struct grants){ 0 };
	status = role_read(tx, r->door->config.live, h->role, r->arena, &role, &r->err);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	grants_add(&h->grants, role.texts, role.text_count, r->arena);
	return role_follow(tx, r->door->config.live, &h->grants, r->arena);
}

/* What a role may, with those that it has. */
static enum status
grants_of_role(struct cql_request *r, struct str role, struct grants *ret)
{
	struct has h = { .r = r, .mark = arena_mark(r->arena), .role = role };

	TRY(kv_run_read(r->door->config.store, has_body, &h, &r->err));
	*ret = h.grants;
	return STATUS_OK;
}

enum status
role_has(struct cql_request *r, struct str role, struct str of, bool *ret)
{
	struct grants grants;

	*ret = str_eq(role, of);
	if (*ret)
		return STATUS_OK;
	TRY(grants_of_role(r, role, &grants));
	for (size_t i = 0; i < grants.role_count && !*ret; i++)
		*ret = str_eq(grants.roles[i], of);
	return STATUS_OK;
}

struct membership {
	struct str role;
	bool revokes;
	bool found; /* of an attempt */
};

static bool
is_membership(const struct grants_text *t, void *arg)
{
	struct membership *m = arg;
	bool is = t->kind == GRANTS_MEMBER && str_eq(t->member, m->role);

	m->found |= is;
	return is;
}

static enum status
membership_attempt(struct role_change *ch, void *arg)
{
	struct membership *m = arg;
	struct str text;

	if (!ch->known)
		return request_fail(ch->r, CQL_CODE_INVALID, "%.*s doesn't exist",
				    STR_ARG(ch->name));
	m->found = false;
	role_change_remove(ch, is_membership, m);
	if (m->revokes && !m->found)
		return request_fail(ch->r, CQL_CODE_INVALID, "%.*s is not a member of %.*s",
				    STR_ARG(ch->name), STR_ARG(m->role));
	if (!m->revokes) {
		text = arena_printf(ch->r->arena, GRANTS_ROLE "role@%.*s", STR_ARG(m->role));
		if (!text.ptr)
			return STATUS_LIMIT;
		TRY(role_change_add(ch, text));
	}
	return role_change_write(ch);
}

/* A role that is granted must be one, give no more than its giver may, and close no circle. */
static enum status
check_membership(struct cql_request *r, struct str role, struct str grantee)
{
	const struct grant_resource on = { .of_roles = true, .role = role };
	struct grants grants;
	bool has;

	TRY(role_refuse_admin(r, role));
	TRY(grants_of_role(r, role, &grants));
	if (grants.everything && !r->client->grants.everything)
		return request_fail(r, CQL_CODE_UNAUTHORIZED,
				    "Only superusers can grant a role with superuser status");
	TRY(role_has(r, grantee, role, &has));
	if (has)
		return request_fail(r, CQL_CODE_INVALID, "%.*s is a member of %.*s",
				    STR_ARG(grantee), STR_ARG(role));
	TRY(role_has(r, role, grantee, &has));
	if (has)
		return request_fail(r, CQL_CODE_INVALID, "%.*s is a member of %.*s", STR_ARG(role),
				    STR_ARG(grantee));
	return resource_check(r, NULL, STR(""), &on);
}

static enum status
grant_role(struct cql_request *r, const struct cql_statement *s)
{
	const struct cql_grant *g = &s->grant;
	struct membership m = { .role = g->role, .revokes = s->kind == CQL_REVOKE };

	TRY(request_allow_on(r, GRANT_AUTHORIZE,
			     &(struct grant_resource){ .of_roles = true, .role = g->role }));
	if (!m.revokes)
		TRY(check_membership(r, g->role, g->grantee));
	return role_change_run(r, g->grantee, membership_attempt, &m);
}

enum status
role_grant_run(struct cql_request *r, const struct cql_statement *s, struct str keyspace)
{
	return s->grant.of_role ? grant_role(r, s) : grant_permissions(r, s, keyspace);
}
