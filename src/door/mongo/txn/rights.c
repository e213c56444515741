#include "door/mongo/txn/rights.h"

static const struct {
	const char *name;
	unsigned rights;
	bool any; /* of all databases, if it is given on admin */
} known[] = {
	{ "read", RIGHT_READ, false },
	{ "readWrite", RIGHT_READ | RIGHT_WRITE, false },
	{ "dbAdmin", RIGHT_ADMIN, false },
	{ "dbOwner", RIGHT_READ | RIGHT_WRITE | RIGHT_ADMIN | RIGHT_USERS, false },
	{ "userAdmin", RIGHT_USERS, false },
	{ "readAnyDatabase", RIGHT_READ, true },
	{ "readWriteAnyDatabase", RIGHT_READ | RIGHT_WRITE, true },
	{ "dbAdminAnyDatabase", RIGHT_ADMIN, true },
	{ "userAdminAnyDatabase", RIGHT_USERS, true },
	{ "clusterMonitor", RIGHT_MONITOR, true },
	{ "hostManager", RIGHT_HOST, true },
	{ "clusterManager", RIGHT_MANAGE, true },
	{ "clusterAdmin", RIGHT_MONITOR | RIGHT_MANAGE | RIGHT_HOST | RIGHT_DROP, true },
	{ "backup", RIGHT_READ | RIGHT_MONITOR, true },
	{ "restore", RIGHT_RESTORE, true },
	{ "root", RIGHT_ALL, true },
};

void
rights_of_everybody(struct rights *r)
{
	*r = (struct rights){ .any = RIGHT_ALL };
}

static void
rights_add_on(struct rights *r, struct str db, unsigned rights, struct arena *arena)
{
	for (size_t i = 0; i < r->count; i++) {
		if (str_eq(r->of[i].db, db)) {
			r->of[i].rights |= rights;
			return;
		}
	}
	if (!r->of)
		r->of = arena_alloc(arena, RIGHTS_DATABASES * sizeof(*r->of));
	if (!r->of || r->count == RIGHTS_DATABASES)
		return; /* who has less rights may do less */
	r->of[r->count].db = db;
	r->of[r->count++].rights = rights;
}

static void
rights_tell(struct rights *r, struct rights_role role, struct arena *arena)
{
	if (!r->roles)
		r->roles = arena_alloc(arena, RIGHTS_DATABASES * sizeof(*r->roles));
	if (r->roles && r->role_count < RIGHTS_DATABASES)
		r->roles[r->role_count++] = role;
}

/* "readWrite@shop" */
static void
rights_add(struct rights *r, struct str text, struct arena *arena)
{
	const char *at = text.len ? memchr(text.ptr, '@', text.len) : NULL;
	size_t len = at ? (size_t)(at - text.ptr) : text.len;
	struct rights_role role = { str_of(text.ptr, len), STR("admin") };

	if (at)
		role.db = str_skip(text, len + 1);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!str_eq(role.name, str_from_cstr(known[i].name)))
			continue;
		if (!known[i].any)
			rights_add_on(r, role.db, known[i].rights, arena);
		else if (str_eq(role.db, STR("admin")))
			r->any |= known[i].rights;
		else
			return; /* as MongoDB, which has these on admin only */
		rights_tell(r, role, arena);
		return;
	}
}

void
rights_of_roles(struct rights *r, const struct str *roles, size_t count, bool admin,
		struct arena *arena)
{
	*r = (struct rights){ 0 };
	if (admin)
		rights_add(r, STR("root"), arena);
	for (size_t i = 0; i < count; i++)
		if (str_starts_with(roles[i], STR(RIGHTS_ROLE)))
			rights_add(r, str_skip(roles[i], sizeof(RIGHTS_ROLE) - 1), arena);
}

bool
rights_role_exists(const struct rights_role *role)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (str_eq(role->name, str_from_cstr(known[i].name)))
			return role->db.len && (!known[i].any || str_eq(role->db, STR("admin")));
	return false;
}

bool
rights_role_at(size_t at, struct str *ret)
{
	if (at >= sizeof(known) / sizeof(known[0]))
		return false;
	*ret = str_from_cstr(known[at].name);
	return true;
}

unsigned
rights_on(const struct rights *r, struct str db)
{
	unsigned rights = r->any;

	for (size_t i = 0; i < r->count; i++)
		if (str_eq(r->of[i].db, db))
			rights |= r->of[i].rights;
	return rights;
}
