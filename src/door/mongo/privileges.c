#include "door/mongo/privileges.h"

/* What a right is called; of the cluster, or of databases. */
static const struct action {
	unsigned right;
	const char *name;
	bool cluster;
} actions[] = {
	{ RIGHT_READ, "find", false },
	{ RIGHT_READ, "listCollections", false },
	{ RIGHT_READ, "listIndexes", false },
	{ RIGHT_READ, "collStats", false },
	{ RIGHT_READ, "dbStats", false },
	{ RIGHT_READ, "dbHash", false },
	{ RIGHT_WRITE, "insert", false },
	{ RIGHT_WRITE, "update", false },
	{ RIGHT_WRITE, "remove", false },
	{ RIGHT_WRITE, "createCollection", false },
	{ RIGHT_WRITE, "dropCollection", false },
	{ RIGHT_WRITE, "createIndex", false },
	{ RIGHT_WRITE, "dropIndex", false },
	{ RIGHT_ADMIN, "collMod", false },
	{ RIGHT_ADMIN, "dropDatabase", false },
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
	{ RIGHT_MONITOR, "replSetGetStatus", true },
	{ RIGHT_MANAGE, "killop", true },
	{ RIGHT_MANAGE, "fsync", true },
};

static void
put_actions(struct bson_builder *b, unsigned rights, bool cluster)
{
	bson_begin_array(b, STR("actions"));
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (rights & actions[i].right && actions[i].cluster == cluster)
			bson_put_string(b, STR(""), str_from_cstr(actions[i].name));
	bson_end(b);
}

/* `db` empty: all databases. Rights about the server are given on all only. */
static void
put_privilege(struct bson_builder *b, struct str db, unsigned rights)
{
	if (rights & ~(unsigned)(RIGHT_MONITOR | RIGHT_MANAGE)) {
		bson_begin_document(b, STR(""));
		bson_begin_document(b, STR("resource"));
		bson_put_string(b, STR("db"), db);
		bson_put_string(b, STR("collection"), STR(""));
		bson_end(b);
		put_actions(b, rights, false);
		bson_end(b);
	}
	if (rights & (RIGHT_MONITOR | RIGHT_MANAGE)) {
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
