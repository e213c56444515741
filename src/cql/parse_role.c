#include "cql/parse_int.h"

/* A role's name: a name, or a text. */
static enum status
take_role_name(struct cql_parser *p, struct str *ret)
{
	return p->token.kind == CQL_TOKEN_STRING ? cql_take_string(p, ret) : cql_take_name(p, ret);
}

static enum status
take_truth(struct cql_parser *p, enum cql_truth *ret)
{
	TRY(cql_take_sign(p, "="));
	if (!cql_at_word(p, "true") && !cql_at_word(p, "false"))
		return cql_unexpected(p);
	*ret = cql_at_word(p, "true") ? CQL_TRUE : CQL_FALSE;
	cql_next(p);
	return STATUS_OK;
}

/* { … } with whatever is in it. */
static enum status
skip_braces(struct cql_parser *p)
{
	TRY(cql_take_sign(p, "{"));
	while (!cql_at_sign(p, "}")) {
		if (p->token.kind == CQL_TOKEN_END || p->token.kind == CQL_TOKEN_BAD)
			return cql_unexpected(p);
		cql_next(p);
	}
	cql_next(p);
	return STATUS_OK;
}

static enum status
take_role_option(struct cql_parser *p, struct cql_role *r)
{
	r->password_is_hashed = r->password_is_hashed || cql_at_word(p, "hashed");
	(void)cql_skip_word(p, "hashed");
	if (cql_skip_word(p, "password")) {
		(void)cql_skip_sign(p, "="); /* USER has none */
		r->has_password = true;
		return cql_take_string(p, &r->password);
	}
	if (cql_skip_word(p, "login"))
		return take_truth(p, &r->login);
	if (cql_skip_word(p, "superuser"))
		return take_truth(p, &r->superuser);
	if (cql_skip_word(p, "options")) {
		r->has_options = true;
		TRY(cql_take_sign(p, "="));
		return skip_braces(p);
	}
	TRY(cql_take_word(p, "access"));
	TRY(cql_take_word(p, "to"));
	r->has_datacenters = true;
	if (cql_skip_word(p, "all"))
		return cql_take_word(p, "datacenters");
	TRY(cql_take_word(p, "datacenters"));
	return skip_braces(p);
}

enum status
cql_take_role(struct cql_parser *p, bool is_user, bool is_new, struct cql_statement *ret)
{
	struct cql_role *r = &ret->role;

	ret->kind = is_new ? CQL_CREATE_ROLE : CQL_ALTER_ROLE;
	*r = (struct cql_role){ .is_user = is_user, .login = CQL_UNSAID, .superuser = CQL_UNSAID };
	if (cql_skip_word(p, "if")) {
		r->if_not_exists = is_new;
		r->if_exists = !is_new;
		if (is_new)
			TRY(cql_take_word(p, "not"));
		TRY(cql_take_word(p, "exists"));
	}
	TRY(take_role_name(p, &r->name));
	if (cql_skip_word(p, "with")) {
		do
			TRY(take_role_option(p, r));
		while (cql_skip_word(p, "and"));
	}
	if (is_user && cql_skip_word(p, "superuser"))
		r->superuser = CQL_TRUE;
	else if (is_user && cql_skip_word(p, "nosuperuser"))
		r->superuser = CQL_FALSE;
	if (is_user && is_new)
		r->login = CQL_TRUE;
	return STATUS_OK;
}

/* ---- Rights ---- */

static enum status
take_permission(struct cql_parser *p, unsigned *ret)
{
	static const struct {
		const char *word;
		unsigned bit;
	} words[] = {
		{ "create", CQL_MAY_CREATE },     { "alter", CQL_MAY_ALTER },
		{ "drop", CQL_MAY_DROP },         { "select", CQL_MAY_SELECT },
		{ "modify", CQL_MAY_MODIFY },     { "authorize", CQL_MAY_AUTHORIZE },
		{ "describe", CQL_MAY_DESCRIBE }, { "execute", CQL_MAY_EXECUTE },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (cql_skip_word(p, words[i].word)) {
			*ret |= words[i].bit;
			return STATUS_OK;
		}
	}
	return cql_unexpected(p);
}

/* True at the list of permissions; else a role's name is granted. */
static bool
at_permission(const struct cql_parser *p)
{
	struct cql_parser ahead = *p;
	unsigned bits = 0;
	struct err unused;
	struct cql q = { .arena = p->q->arena, .err = &unused };

	ahead.q = &q;
	if (cql_at_word(p, "all"))
		return cql_is_word(p, cql_peek(p), "permissions") ||
		       cql_is_word(p, cql_peek(p), "on");
	if (take_permission(&ahead, &bits) != STATUS_OK)
		return false;
	return cql_at_word(&ahead, "on") || cql_at_word(&ahead, "permission") ||
	       cql_at_word(&ahead, "of") || cql_at_word(&ahead, "norecursive") ||
	       cql_at_sign(&ahead, ",") || ahead.token.kind == CQL_TOKEN_END ||
	       cql_at_sign(&ahead, ";");
}

static enum status
take_permissions(struct cql_parser *p, unsigned *ret)
{
	if (cql_skip_word(p, "all")) {
		(void)cql_skip_word(p, "permissions");
		*ret = CQL_MAY_ALL;
		return STATUS_OK;
	}
	do {
		TRY(take_permission(p, ret));
		(void)cql_skip_word(p, "permission");
	} while (cql_skip_sign(p, ","));
	return STATUS_OK;
}

static enum status
take_function(struct cql_parser *p, struct cql_grant *g)
{
	const struct cql_type *type;

	g->resource = CQL_RESOURCE_FUNCTION;
	TRY(cql_take_qualified(p, "Function", &g->on));
	TRY(cql_take_sign(p, "("));
	if (cql_skip_sign(p, ")"))
		return STATUS_OK;
	do
		TRY(cql_take_type(p, &type));
	while (cql_skip_sign(p, ","));
	return cql_take_sign(p, ")");
}

/* Behind ALL. */
static enum status
take_all(struct cql_parser *p, struct cql_grant *g)
{
	if (cql_skip_word(p, "keyspaces")) {
		g->resource = CQL_RESOURCE_ALL_KEYSPACES;
	} else if (cql_skip_word(p, "roles")) {
		g->resource = CQL_RESOURCE_ALL_ROLES;
	} else if (cql_skip_word(p, "mbeans")) {
		g->resource = CQL_RESOURCE_ALL_MBEANS;
	} else if (cql_skip_word(p, "tables")) {
		g->resource = CQL_RESOURCE_ALL_TABLES;
		TRY(cql_take_word(p, "in"));
		TRY(cql_take_word(p, "keyspace"));
		return cql_take_keyspace(p, &g->on.name);
	} else {
		g->resource = CQL_RESOURCE_ALL_FUNCTIONS;
		TRY(cql_take_word(p, "functions"));
		if (cql_skip_words(p, "in", "keyspace"))
			return cql_take_keyspace(p, &g->on.name);
	}
	return STATUS_OK;
}

static enum status
take_resource(struct cql_parser *p, struct cql_grant *g)
{
	if (cql_skip_word(p, "all"))
		return take_all(p, g);
	if (cql_skip_word(p, "keyspace")) {
		g->resource = CQL_RESOURCE_KEYSPACE;
		return cql_take_keyspace(p, &g->on.name);
	}
	if (cql_at_word(p, "role") && !cql_is_sign(p, cql_peek(p), ".")) {
		struct cql_token behind = cql_peek(p);

		if (behind.kind == CQL_TOKEN_STRING || cql_token_is_name(p, behind)) {
			cql_next(p);
			g->resource = CQL_RESOURCE_ROLE;
			return take_role_name(p, &g->on.name);
		}
	}
	if (cql_skip_word(p, "function"))
		return take_function(p, g);
	if (cql_skip_word(p, "mbean")) {
		g->resource = CQL_RESOURCE_MBEAN;
		return cql_take_string(p, &g->on.name);
	}
	(void)(cql_skip_word(p, "table") || cql_skip_word(p, "columnfamily"));
	g->resource = CQL_RESOURCE_TABLE;
	return cql_take_qualified(p, "Table", &g->on);
}

enum status
cql_take_grant(struct cql_parser *p, bool revokes, struct cql_statement *ret)
{
	struct cql_grant *g = &ret->grant;

	ret->kind = revokes ? CQL_REVOKE : CQL_GRANT;
	*g = (struct cql_grant){ .of_role = !at_permission(p) };
	if (g->of_role) {
		TRY(take_role_name(p, &g->role));
	} else {
		TRY(take_permissions(p, &g->permissions));
		TRY(cql_take_word(p, "on"));
		TRY(take_resource(p, g));
	}
	TRY(cql_take_word(p, revokes ? "from" : "to"));
	return take_role_name(p, &g->grantee);
}

enum status
cql_take_list(struct cql_parser *p, struct cql_statement *ret)
{
	struct cql_grant *g = &ret->grant;

	*g = (struct cql_grant){ 0 };
	ret->kind = CQL_LIST_ROLES;
	g->users = cql_skip_word(p, "users");
	if (!g->users && !cql_skip_word(p, "roles")) {
		ret->kind = CQL_LIST_PERMISSIONS;
		TRY(take_permissions(p, &g->permissions));
		if (cql_skip_word(p, "on"))
			TRY(take_resource(p, g));
	}
	if (cql_skip_word(p, "of"))
		TRY(take_role_name(p, &g->grantee));
	g->no_recursive = cql_skip_word(p, "norecursive");
	return STATUS_OK;
}
