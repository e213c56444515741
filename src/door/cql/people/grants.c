#include "door/cql/people/grants.h"

enum {
	GRANTS_ON_TABLE = GRANT_ALL & ~GRANT_CREATE & ~GRANT_DESCRIBE,
	GRANTS_ON_KEYSPACE = GRANT_ALL & ~GRANT_DESCRIBE,
	GRANTS_ON_ROLE = GRANT_ALTER | GRANT_DROP | GRANT_AUTHORIZE,
	GRANTS_ON_ROLES = GRANTS_ON_ROLE | GRANT_CREATE | GRANT_DESCRIBE,
};

#define ON_ROLES "roles/"

/* ---- Resources ---- */

unsigned
grant_applicable(const struct grant_resource *on)
{
	if (on->of_roles)
		return on->role.len ? GRANTS_ON_ROLE : GRANTS_ON_ROLES;
	return on->tables.table.len ? GRANTS_ON_TABLE : GRANTS_ON_KEYSPACE;
}

bool
grant_resource_is(const struct grant_resource *a, const struct grant_resource *b)
{
	if (a->of_roles != b->of_roles)
		return false;
	if (a->of_roles)
		return str_eq(a->role, b->role);
	return str_eq(a->tables.keyspace, b->tables.keyspace) &&
	       str_eq(a->tables.table, b->tables.table);
}

/* True if whoever has a permission on `outer` has it on `on`, too. */
static bool
resource_contains(const struct grant_resource *outer, const struct grant_resource *on)
{
	if (outer->of_roles != on->of_roles)
		return false;
	if (outer->of_roles)
		return !outer->role.len || str_eq(outer->role, on->role);
	return grant_tables_contain(&outer->tables, &on->tables);
}

void
grant_resource_describe(const struct grant_resource *on, struct buf *out)
{
	if (on->of_roles && on->role.len)
		buf_printf(out, "<role %.*s>", STR_ARG(on->role));
	else if (on->of_roles)
		buf_append_cstr(out, "<all roles>");
	else if (on->tables.table.len)
		buf_printf(out, "<table %.*s.%.*s>", STR_ARG(on->tables.keyspace),
			   STR_ARG(on->tables.table));
	else if (on->tables.keyspace.len)
		buf_printf(out, "<keyspace %.*s>", STR_ARG(on->tables.keyspace));
	else
		buf_append_cstr(out, "<all keyspaces>");
}

void
grant_resource_path(const struct grant_resource *on, struct buf *out)
{
	buf_append_cstr(out, on->of_roles ? "roles" : "data");
	if (on->of_roles && on->role.len)
		buf_printf(out, "/%.*s", STR_ARG(on->role));
	if (!on->of_roles && on->tables.keyspace.len)
		buf_printf(out, "/%.*s", STR_ARG(on->tables.keyspace));
	if (!on->of_roles && on->tables.table.len)
		buf_printf(out, "/%.*s", STR_ARG(on->tables.table));
}

/* ---- Texts ---- */

static struct grant_resource
resource_read(struct str text)
{
	struct grant_resource on = { .of_roles = str_starts_with(text, STR(ON_ROLES)) };

	if (on.of_roles) {
		on.role = str_skip(text, sizeof(ON_ROLES) - 1);
		return on;
	}
	on.tables = grant_tables_read(text);
	return on;
}

struct grants_text
grants_text_read(struct str role)
{
	struct grants_text t = { .kind = GRANTS_OTHER };
	struct str rest, name;

	if (!str_starts_with(role, STR(GRANTS_ROLE)))
		return t;
	rest = str_skip(role, sizeof(GRANTS_ROLE) - 1);
	if (str_eq(rest, STR("superuser"))) {
		t.kind = GRANTS_SUPERUSER;
		return t;
	}
	if (str_eq(rest, STR("dropped"))) {
		t.kind = GRANTS_DROPPED;
		return t;
	}
	name = str_cut(&rest, '@');
	if (str_eq(name, STR("role"))) {
		t.member = rest;
		t.kind = rest.len ? GRANTS_MEMBER : GRANTS_OTHER;
		return t;
	}
	t.on = resource_read(rest);
	t.grants = grants_named(name) & grant_applicable(&t.on);
	t.kind = t.grants ? GRANTS_GRANT : GRANTS_OTHER;
	return t;
}

static enum status
text_put(const char *name, const struct grant_resource *on, struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf text = BUF_SHORT(GRANTS_TEXT_BYTES);

	buf_printf(&text, GRANTS_ROLE "%s", name);
	if (on->of_roles)
		buf_printf(&text, "@" ON_ROLES "%.*s", STR_ARG(on->role));
	else if (on->tables.table.len)
		buf_printf(&text, "@%.*s.%.*s", STR_ARG(on->tables.keyspace),
			   STR_ARG(on->tables.table));
	else if (on->tables.keyspace.len)
		buf_printf(&text, "@%.*s", STR_ARG(on->tables.keyspace));
	return buf_copy(&text, arena, ret);
}

enum status
grants_text_put(unsigned grants, const struct grant_resource *on, struct arena *arena,
		struct str *texts, size_t *count)
{
	if (grants == grant_applicable(on))
		return text_put(grant_word(GRANT_ALL), on, arena, &texts[(*count)++]);
	for (unsigned bit = 1; bit < GRANT_ALL; bit <<= 1)
		if (bit & grants)
			TRY(text_put(grant_word((enum grant)bit), on, arena, &texts[(*count)++]));
	return STATUS_OK;
}

/* ---- What somebody may ---- */

static void
add_member(struct grants *g, struct str name, struct arena *arena)
{
	void *room;

	for (size_t i = 0; i < g->role_count; i++)
		if (str_eq(g->roles[i], name))
			return;
	if (g->role_count == GRANTS_ROLES)
		return;
	room = arena_grow(arena, g->roles, g->role_count, &g->role_cap, sizeof(*g->roles));
	if (!room)
		return;
	g->roles = room;
	g->roles[g->role_count++] = name;
}

static void
add_grant(struct grants *g, const struct grants_text *t, struct arena *arena)
{
	void *room;

	if (g->count == GRANTS_MOST)
		return;
	room = arena_grow(arena, g->of, g->count, &g->cap, sizeof(*g->of));
	if (!room)
		return;
	g->of = room;
	g->of[g->count].grants = t->grants;
	g->of[g->count].on = t->on;
	g->count++;
}

bool
grants_are_dropped(const struct str *roles, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (grants_text_read(roles[i]).kind == GRANTS_DROPPED)
			return true;
	return false;
}

void
grants_add(struct grants *g, const struct str *roles, size_t count, struct arena *arena)
{
	if (grants_are_dropped(roles, count))
		return;
	for (size_t i = 0; i < count; i++) {
		const struct grants_text t = grants_text_read(roles[i]);

		switch (t.kind) {
		case GRANTS_GRANT:
			add_grant(g, &t, arena);
			break;
		case GRANTS_MEMBER:
			add_member(g, t.member, arena);
			break;
		case GRANTS_SUPERUSER:
			g->everything = true;
			break;
		case GRANTS_DROPPED:
		case GRANTS_OTHER:
			break;
		}
	}
}

void
grants_of_roles(struct grants *g, const struct str *roles, size_t count, bool admin,
		struct arena *arena)
{
	*g = (struct grants){ .everything = admin };
	if (!admin)
		grants_add(g, roles, count, arena);
}

bool
grants_allow_on(const struct grants *g, unsigned wanted, const struct grant_resource *on)
{
	if (g->everything)
		return true;
	for (size_t i = 0; i < g->count; i++)
		if (resource_contains(&g->of[i].on, on))
			wanted &= ~g->of[i].grants;
	return !wanted;
}

bool
grants_allow(const struct grants *g, enum grant wanted, struct str keyspace, struct str on)
{
	return grants_allow_on(g, wanted, &(struct grant_resource){ .tables = { keyspace, on } });
}
