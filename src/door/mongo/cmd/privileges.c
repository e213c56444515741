#include "door/mongo/cmd/privileges.h"

enum {
	MAKING = RIGHT_WRITE | RIGHT_ADMIN | RIGHT_RESTORE,
};

/* What is allowed by any of these rights; on the cluster, or on databases. */
static const struct action {
	unsigned rights;
	const char *name;
	bool cluster;
} actions[] = {
	{ RIGHT_READ, "find", false },
	{ RIGHT_READ | RIGHT_ADMIN | RIGHT_RESTORE, "listCollections", false },
	{ RIGHT_READ | RIGHT_ADMIN, "listIndexes", false },
	{ RIGHT_READ | RIGHT_ADMIN | RIGHT_MONITOR, "collStats", false },
	{ RIGHT_READ | RIGHT_ADMIN | RIGHT_MONITOR, "dbStats", false },
	{ RIGHT_READ, "dbHash", false },
	{ RIGHT_WRITE | RIGHT_RESTORE, "insert", false },
	{ RIGHT_WRITE, "update", false },
	{ RIGHT_WRITE, "remove", false },
	{ MAKING, "createCollection", false },
	{ MAKING, "dropCollection", false },
	{ MAKING, "createIndex", false },
	{ RIGHT_WRITE | RIGHT_ADMIN, "dropIndex", false },
	{ RIGHT_ADMIN | RIGHT_RESTORE, "collMod", false },
	{ RIGHT_ADMIN | RIGHT_RESTORE, "bypassDocumentValidation", false },
	{ RIGHT_ADMIN | RIGHT_DROP, "dropDatabase", false },
	{ RIGHT_ADMIN, "validate", false },
	{ RIGHT_ADMIN, "enableProfiler", false },
	{ RIGHT_USERS, "createUser", false },
	{ RIGHT_USERS, "dropUser", false },
	{ RIGHT_USERS, "viewUser", false },
	{ RIGHT_USERS, "grantRole", false },
	{ RIGHT_USERS, "revokeRole", false },
	{ RIGHT_MONITOR, "serverStatus", true },
	{ RIGHT_MONITOR, "inprog", true },
	{ RIGHT_MONITOR, "top", true },
	{ RIGHT_MONITOR, "hostInfo", true },
	{ RIGHT_MONITOR | RIGHT_MANAGE, "replSetGetStatus", true },
	{ RIGHT_MANAGE, "replSetConfigure", true },
	{ RIGHT_HOST, "killop", true },
	{ RIGHT_HOST, "fsync", true },
	{ RIGHT_HOST, "setParameter", true },
};

static bool
has_actions(unsigned rights, bool cluster)
{
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (rights & actions[i].rights && actions[i].cluster == cluster)
			return true;
	return false;
}

static void
put_actions(struct bson_builder *b, unsigned rights, bool cluster)
{
	bson_begin_array(b, STR("actions"));
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (rights & actions[i].rights && actions[i].cluster == cluster)
			bson_put_string(b, STR(""), str_from_cstr(actions[i].name));
	bson_end(b);
}

/* `db` empty: all databases. Rights about the server are given on all only. */
static void
put_privilege(struct bson_builder *b, struct str db, unsigned rights)
{
	if (has_actions(rights, false)) {
		bson_begin_document(b, STR(""));
		bson_begin_document(b, STR("resource"));
		bson_put_string(b, STR("db"), db);
		bson_put_string(b, STR("collection"), STR(""));
		bson_end(b);
		put_actions(b, rights, false);
		bson_end(b);
	}
	if (!db.len && has_actions(rights, true)) {
		bson_begin_document(b, STR(""));
		bson_begin_document(b, STR("resource"));
		bson_put_bool(b, STR("cluster"), true);
		bson_end(b);
		put_actions(b, rights, true);
		bson_end(b);
	}
}

void
privileges_put(struct bson_builder *b, struct str name, const struct rights *r)
{
	bson_begin_array(b, name);
	if (r->any)
		put_privilege(b, STR(""), r->any);
	for (size_t i = 0; i < r->count; i++)
		put_privilege(b, r->of[i].db, r->of[i].rights);
	bson_end(b);
}
