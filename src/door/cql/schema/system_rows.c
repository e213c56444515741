/* The rows of tables that are made up. */
#include "base/big_endian.h"
#include "door/cql/people/role.h"
#include "door/cql/schema/indexes.h"
#include "door/cql/schema/options.h"
#include "door/cql/schema/system_int.h"
#include "loop/sort.h"
#include "loop/step.h"

#define PARTITIONER "org.apache.cassandra.dht.Murmur3Partitioner"

/* The one token that a server tells: all keys are its own. */
#define TOKEN "-9223372036854775808"

/* ---- A row ---- */

enum status
system_row_begin(struct system_making *m, struct cql_value **ret)
{
	size_t count = m->table->count;

	TRY(arena_room(m->q->arena, &m->rows->values, m->rows->count, &m->rows->cap,
		       count * sizeof(struct cql_value)));
	*ret = m->rows->values + m->rows->count++ * count;
	for (size_t i = 0; i < count; i++)
		(*ret)[i] = CQL_VALUE_NULL;
	return STATUS_OK;
}

void
system_row_put(struct system_making *m, struct cql_value *row, const char *column, struct str bytes)
{
	const struct schema_column *c = schema_column_find(m->table, str_from_cstr(column));

	if (c)
		row[schema_column_at(m->table, c)] = CQL_VALUE(bytes);
}

enum status
system_row_put_int(struct system_making *m, struct cql_value *row, const char *column, int64_t n,
		   size_t width)
{
	struct str bytes;

	TRY(cql_int_put(m->q, n, width, &bytes));
	system_row_put(m, row, column, bytes);
	return STATUS_OK;
}

static void
row_put_bool(struct system_making *m, struct cql_value *row, const char *column, bool truth)
{
	system_row_put(m, row, column, truth ? STR("\1") : STR("\0"));
}

static enum status
row_put_double(struct system_making *m, struct cql_value *row, const char *column, double d)
{
	struct str bytes;

	TRY(cql_double_put(m->q, d, &bytes));
	system_row_put(m, row, column, bytes);
	return STATUS_OK;
}

enum status
system_row_put_texts(struct system_making *m, struct cql_value *row, const char *column,
		     const struct str *texts, size_t count, bool is_map)
{
	AUTO(buf_release) struct buf out = cql_buf(m->q, CQL_STATEMENT_BYTES);
	struct str bytes;

	cql_count_put(&out, is_map ? count / 2 : count);
	for (size_t i = 0; i < count; i++)
		cql_element_put(&out, CQL_VALUE(texts[i]));
	TRY(buf_copy(&out, m->q->arena, &bytes));
	system_row_put(m, row, column, bytes);
	return STATUS_OK;
}

static enum status
row_put_map(struct system_making *m, struct cql_value *row, const char *column,
	    const struct schema_pair *pairs, size_t count)
{
	struct str *texts = arena_alloc(m->q->arena, (2 * count + 1) * sizeof(*texts));

	if (!texts)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		texts[2 * i] = pairs[i].name;
		texts[2 * i + 1] = pairs[i].value;
	}
	return system_row_put_texts(m, row, column, texts, 2 * count, true);
}

/* ---- system.local ---- */

enum status
system_local_rows(struct system_making *m)
{
	const struct schema_server *server = m->server;
	struct str address = str_of(server->address, server->address_len);
	struct str host_id = str_of(server->host_id, 16);
	uint8_t stamp[TABLE_STAMP_BYTES], version[16];
	struct cql_value *row;
	struct str bytes;

	TRY(table_schemas_stamp(m->types->tx, stamp));
	schema_version_uuid(stamp, version);
	TRY(arena_copy(m->q->arena, str_of(version, sizeof(version)), &bytes));
	TRY(system_row_begin(m, &row));
	system_row_put(m, row, "key", STR("local"));
	system_row_put(m, row, "bootstrapped", STR("COMPLETED"));
	system_row_put(m, row, "broadcast_address", address);
	TRY(system_row_put_int(m, row, "broadcast_port", server->port, 4));
	system_row_put(m, row, "cluster_name", server->cluster);
	system_row_put(m, row, "cql_version", server->language_version);
	system_row_put(m, row, "data_center", server->data_center);
	TRY(system_row_put_int(m, row, "gossip_generation", 1, 4));
	system_row_put(m, row, "host_id", host_id);
	system_row_put(m, row, "listen_address", address);
	TRY(system_row_put_int(m, row, "listen_port", server->port, 4));
	system_row_put(m, row, "native_protocol_version", STR("5"));
	system_row_put(m, row, "partitioner", STR(PARTITIONER));
	system_row_put(m, row, "rack", server->rack);
	system_row_put(m, row, "release_version", server->release_version);
	system_row_put(m, row, "rpc_address", address);
	TRY(system_row_put_int(m, row, "rpc_port", server->port, 4));
	system_row_put(m, row, "schema_version", bytes);
	return system_row_put_texts(m, row, "tokens", &STR(TOKEN), 1, false);
}

/* ---- system_schema ---- */

/* Calls `make` with each keyspace of the store that is asked for, once for a table. */
static enum status
each_keyspace(struct system_making *m,
	      enum status (*make)(struct system_making *m, const struct schema_keyspace *k))
{
	struct schema_all *all = &m->rows->all;

	/* Rows borrow names and options from the descriptions of tables, which stay open. */
	TRY(schema_read(m->q, m->types, m->only, all));
	for (size_t i = 0; i < all->count; i++)
		TRY(make(m, &all->keyspaces[i]));
	return STATUS_OK;
}

static bool
is_virtual(const struct schema_system *s)
{
	return str_eq(str_from_cstr(s->keyspace), STR("system_virtual_schema"));
}

static bool
is_asked_for(const struct system_making *m, const char *keyspace)
{
	return !m->only.len || str_eq(m->only, str_from_cstr(keyspace));
}

/* Calls `make` with each table that is made up, those of system_virtual_schema or the others. */
static enum status
each_system(struct system_making *m, bool virtual,
	    enum status (*make)(struct system_making *m, const struct schema_table *t))
{
	for (size_t i = 0; i < m->system_count; i++) {
		struct schema_table *t;

		if (is_virtual(&m->systems[i]) != virtual ||
		    !is_asked_for(m, m->systems[i].keyspace))
			continue;
		TRY(schema_system_make(m->q, &m->systems[i], &t));
		TRY(make(m, t));
	}
	return STATUS_OK;
}

/* The keyspaces of these, each once: they stand one after the other. */
static enum status
each_system_keyspace(struct system_making *m, bool virtual,
		     enum status (*make)(struct system_making *m, struct str keyspace))
{
	struct str last = STR("");

	for (size_t i = 0; i < m->system_count; i++) {
		struct str keyspace = str_from_cstr(m->systems[i].keyspace);

		if (is_virtual(&m->systems[i]) != virtual ||
		    !is_asked_for(m, m->systems[i].keyspace) || str_eq(keyspace, last))
			continue;
		TRY(make(m, keyspace));
		last = keyspace;
	}
	return STATUS_OK;
}

static enum status
keyspace_row(struct system_making *m, struct str name, bool durable,
	     const struct schema_pair *replication, size_t count)
{
	struct cql_value *row;

	TRY(system_row_begin(m, &row));
	system_row_put(m, row, "keyspace_name", name);
	row_put_bool(m, row, "durable_writes", durable);
	return row_put_map(m, row, "replication", replication, count);
}

static enum status
stored_keyspace_row(struct system_making *m, const struct schema_keyspace *k)
{
	struct options_keyspace o;

	TRY(options_of_keyspace(m->q, k->stored, &o));
	return keyspace_row(m, k->name, o.durable_writes, o.replication, o.replication_count);
}

static enum status
system_keyspace_row(struct system_making *m, struct str name)
{
	static const struct schema_pair local[] = {
		{ { "class", 5 }, { "org.apache.cassandra.locator.LocalStrategy", 42 } }
	};

	return keyspace_row(m, name, true, local, 1);
}

enum status
system_keyspaces_rows(struct system_making *m)
{
	TRY(each_keyspace(m, stored_keyspace_row));
	return each_system_keyspace(m, false, system_keyspace_row);
}

/* An id of a table that is made up: the same everywhere. */
static void
system_table_id(const struct schema_table *t, uint8_t ret[static 16])
{
	uint64_t high = str_hash(t->keyspace), low = str_hash(t->name);

	big_endian_put_64(ret, high);
	big_endian_put_64(ret + 8, low);
	ret[6] = (uint8_t)((ret[6] & 0x0f) | 0x80);
	ret[8] = (uint8_t)((ret[8] & 0x3f) | 0x80);
}

static enum status
table_row(struct system_making *m, const struct schema_table *t)
{
	struct str flags[3] = { STR("compound") };
	size_t flag_count = 1;
	uint8_t id[16];
	struct options_table o;
	struct cql_value *row;
	struct str bytes;

	TRY(options_of_table(m->q, t, &o));
	if (t->schema)
		memcpy(id, t->schema->id, sizeof(id));
	else
		system_table_id(t, id);
	TRY(arena_copy(m->q->arena, str_of(id, sizeof(id)), &bytes));
	TRY(system_row_begin(m, &row));
	system_row_put(m, row, "keyspace_name", t->keyspace);
	system_row_put(m, row, "table_name", t->name);
	system_row_put(m, row, "id", bytes);
	if (t->counters)
		flags[flag_count++] = STR("counter");
	/* Without clustering columns it would be told with columns that it does not have. */
	if (t->compact && t->key_count > t->partition_count)
		flags[flag_count++] = STR("dense");
	TRY(system_row_put_texts(m, row, "flags", flags, flag_count, false));
	for (size_t i = 0; i < OPTIONS_TABLE_COUNT; i++) {
		const struct options_value *v = &o.values[i];
		const char *name = options_table_name(i);

		switch (v->kind) {
		case OPTIONS_TEXT:
			system_row_put(m, row, name, v->text);
			break;
		case OPTIONS_INT:
			TRY(system_row_put_int(m, row, name, v->n, 4));
			break;
		case OPTIONS_DOUBLE:
			TRY(row_put_double(m, row, name, v->d));
			break;
		case OPTIONS_BOOL:
			row_put_bool(m, row, name, v->n != 0);
			break;
		case OPTIONS_MAP:
			TRY(row_put_map(m, row, name, v->pairs, v->count));
			break;
		}
	}
	return STATUS_OK;
}

/* Calls `make` with the tables of a keyspace. */
static enum status
stored_tables(struct system_making *m, const struct schema_keyspace *k,
	      enum status (*make)(struct system_making *m, const struct schema_table *t))
{
	for (size_t i = 0; i < k->table_count; i++)
		TRY(make(m, k->tables[i]));
	return STATUS_OK;
}

static enum status
stored_table_rows(struct system_making *m, const struct schema_keyspace *k)
{
	return stored_tables(m, k, table_row);
}

enum status
system_tables_rows(struct system_making *m)
{
	TRY(each_keyspace(m, stored_table_rows));
	return each_system(m, false, table_row);
}

static struct str
kind_text(enum schema_kind kind)
{
	switch (kind) {
	case SCHEMA_PARTITION:
		return STR("partition_key");
	case SCHEMA_CLUSTERING:
		return STR("clustering");
	case SCHEMA_STATIC:
		return STR("static");
	case SCHEMA_REGULAR:
		break;
	}
	return STR("regular");
}

static struct str
order_text(const struct schema_column *c)
{
	if (c->kind != SCHEMA_CLUSTERING)
		return STR("none");
	return c->descending ? STR("desc") : STR("asc");
}

static enum status
column_rows(struct system_making *m, const struct schema_table *t)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct schema_column *c = &t->columns[i];
		bool in_key = c->kind <= SCHEMA_CLUSTERING;
		struct cql_value *row;

		TRY(system_row_begin(m, &row));
		system_row_put(m, row, "keyspace_name", t->keyspace);
		system_row_put(m, row, "table_name", t->name);
		system_row_put(m, row, "column_name", c->name);
		system_row_put(m, row, "clustering_order", order_text(c));
		system_row_put(m, row, "column_name_bytes", c->name);
		system_row_put(m, row, "kind", kind_text(c->kind));
		TRY(system_row_put_int(m, row, "position", in_key ? (int64_t)c->position : -1, 4));
		system_row_put(m, row, "type", cql_type_text(m->q, c->type));
	}
	return STATUS_OK;
}

static enum status
stored_column_rows(struct system_making *m, const struct schema_keyspace *k)
{
	return stored_tables(m, k, column_rows);
}

enum status
system_columns_rows(struct system_making *m)
{
	TRY(each_keyspace(m, stored_column_rows));
	return each_system(m, false, column_rows);
}

static enum status
dropped_rows(struct system_making *m, const struct schema_table *t)
{
	for (size_t i = 0; i < t->schema->dropped_count; i++) {
		const struct table_dropped *d = &t->schema->dropped[i];
		struct cql_value *row;

		TRY(system_row_begin(m, &row));
		system_row_put(m, row, "keyspace_name", t->keyspace);
		system_row_put(m, row, "table_name", t->name);
		system_row_put(m, row, "column_name", d->column.name);
		TRY(system_row_put_int(m, row, "dropped_time", (int64_t)(d->dropped_us / 1000), 8));
		system_row_put(m, row, "kind",
			       d->column.kind == TABLE_STATIC ? STR("static") : STR("regular"));
		system_row_put(m, row, "type", d->column.type);
	}
	return STATUS_OK;
}

static enum status
stored_dropped_rows(struct system_making *m, const struct schema_keyspace *k)
{
	return stored_tables(m, k, dropped_rows);
}

enum status
system_dropped_rows(struct system_making *m)
{
	return each_keyspace(m, stored_dropped_rows);
}

/* ---- Indexes ---- */

static enum status
compare_indexes(const void *arg, const void *a, const void *b, int *ret)
{
	const struct table_index *const *x = a, *const *y = b;

	(void)arg;
	return sort_compare_strs((*x)->name, (*y)->name, ret);
}

/* Those of a table, by name. */
static enum status
indexes_by_name(struct system_making *m, const struct schema_table *t,
		const struct table_index ***ret, size_t *ret_count)
{
	const struct table_index *indexes = table_indexes_of(t->db, ret_count);

	*ret = arena_alloc(m->q->arena, (*ret_count + 1) * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	for (size_t i = 0; i < *ret_count; i++)
		(*ret)[i] = &indexes[i];
	return sort_items(*ret, *ret_count, sizeof(**ret), compare_indexes, NULL, m->q->arena);
}

static enum status
index_row(struct system_making *m, const struct schema_table *t, const struct table_index *index)
{
	AUTO(buf_release) struct buf targets = cql_buf(m->q, CQL_STATEMENT_BYTES);
	AUTO(buf_release) struct buf includes = cql_buf(m->q, CQL_STATEMENT_BYTES);
	/* By their names; the first one only where columns are included. */
	struct schema_pair options[] = { { .name = STR("include") }, { .name = STR("target") } };
	size_t first = index->carried_count ? 0 : 1;
	struct cql_value *row;

	schema_index_includes(&includes, t, index);
	schema_index_targets(&targets, t, index);
	TRY(buf_copy(&includes, m->q->arena, &options[0].value));
	TRY(buf_copy(&targets, m->q->arena, &options[1].value));
	TRY(system_row_begin(m, &row));
	system_row_put(m, row, "keyspace_name", t->keyspace);
	system_row_put(m, row, "table_name", t->name);
	system_row_put(m, row, "index_name", index->name);
	system_row_put(m, row, "kind", STR("COMPOSITES"));
	return row_put_map(m, row, "options", options + first, 2 - first);
}

static enum status
index_rows(struct system_making *m, const struct schema_table *t)
{
	const struct table_index **indexes;
	size_t count;

	TRY(indexes_by_name(m, t, &indexes, &count));
	for (size_t i = 0; i < count; i++)
		TRY(index_row(m, t, indexes[i]));
	return STATUS_OK;
}

static enum status
stored_index_rows(struct system_making *m, const struct schema_keyspace *k)
{
	return stored_tables(m, k, index_rows);
}

enum status
system_indexes_rows(struct system_making *m)
{
	return each_keyspace(m, stored_index_rows);
}

/* Those that are built: clients wait for them here. */
static enum status
index_info_rows(struct system_making *m, const struct schema_table *t)
{
	const struct table_index **indexes;
	struct cql_value *row;
	size_t count;

	TRY(indexes_by_name(m, t, &indexes, &count));
	for (size_t i = 0; i < count; i++) {
		if (!indexes[i]->is_ready)
			continue;
		TRY(system_row_begin(m, &row));
		system_row_put(m, row, "table_name", t->keyspace);
		system_row_put(m, row, "index_name", indexes[i]->name);
	}
	return STATUS_OK;
}

static enum status
stored_index_info_rows(struct system_making *m, const struct schema_keyspace *k)
{
	return stored_tables(m, k, index_info_rows);
}

enum status
system_index_info_rows(struct system_making *m)
{
	return each_keyspace(m, stored_index_info_rows);
}

static enum status
stored_type_rows(struct system_making *m, const struct schema_keyspace *k)
{
	for (size_t i = 0; i < k->type_count; i++) {
		const struct table_type *type = &k->types[i];
		struct str *names = arena_alloc(m->q->arena,
						2 * (type->field_count + 1) * sizeof(*names));
		struct str *types = names + type->field_count;
		struct cql_value *row;

		if (!names)
			return STATUS_LIMIT;
		for (size_t j = 0; j < type->field_count; j++) {
			names[j] = type->fields[j].name;
			types[j] = type->fields[j].type;
		}
		TRY(system_row_begin(m, &row));
		system_row_put(m, row, "keyspace_name", k->name);
		system_row_put(m, row, "type_name", type->name);
		TRY(system_row_put_texts(m, row, "field_names", names, type->field_count, false));
		TRY(system_row_put_texts(m, row, "field_types", types, type->field_count, false));
	}
	return STATUS_OK;
}

enum status
system_types_rows(struct system_making *m)
{
	return each_keyspace(m, stored_type_rows);
}

/* ---- system_virtual_schema ---- */

static enum status
virtual_keyspace_row(struct system_making *m, struct str name)
{
	struct cql_value *row;

	TRY(system_row_begin(m, &row));
	system_row_put(m, row, "keyspace_name", name);
	return STATUS_OK;
}

enum status
system_virtual_keyspaces_rows(struct system_making *m)
{
	return each_system_keyspace(m, true, virtual_keyspace_row);
}

static enum status
virtual_table_row(struct system_making *m, const struct schema_table *t)
{
	struct cql_value *row;

	TRY(system_row_begin(m, &row));
	system_row_put(m, row, "keyspace_name", t->keyspace);
	system_row_put(m, row, "table_name", t->name);
	system_row_put(m, row, "comment", STR("virtual schema"));
	return STATUS_OK;
}

enum status
system_virtual_tables_rows(struct system_making *m)
{
	return each_system(m, true, virtual_table_row);
}

enum status
system_virtual_columns_rows(struct system_making *m)
{
	return each_system(m, true, column_rows);
}

/* ---- system_auth ---- */

/* Texts of a role are on the page of a listing: rows keep copies. */
static enum status
auth_copy(struct system_making *m, struct str text, struct str *ret)
{
	return arena_copy(m->q->arena, text, ret);
}

static enum status
each_role(struct system_making *m, role_take *take)
{
	return role_each(m->types->tx, m->server->live, m->server->part, take, m, m->q->err);
}

static enum status
roles_take(void *arg, const struct role *role)
{
	struct system_making *m = arg;
	struct cql_value *row;
	struct str *members;
	size_t count = 0;
	struct str name;

	members = arena_alloc(m->q->arena, (role->text_count + 1) * sizeof(*members));
	if (!members)
		return STATUS_LIMIT;
	for (size_t i = 0; i < role->text_count; i++) {
		const struct grants_text t = grants_text_read(role->texts[i]);

		if (t.kind == GRANTS_MEMBER)
			TRY(auth_copy(m, t.member, &members[count++]));
	}
	TRY(auth_copy(m, role->name, &name));
	TRY(system_row_begin(m, &row));
	system_row_put(m, row, "role", name);
	row_put_bool(m, row, "can_login", role->login);
	row_put_bool(m, row, "is_superuser", role->superuser);
	return count ? system_row_put_texts(m, row, "member_of", members, count, false) : STATUS_OK;
}

enum status
system_roles_rows(struct system_making *m)
{
	return each_role(m, roles_take);
}

static enum status
members_take(void *arg, const struct role *role)
{
	struct system_making *m = arg;

	for (size_t i = 0; i < role->text_count; i++) {
		const struct grants_text t = grants_text_read(role->texts[i]);
		struct str name, member;
		struct cql_value *row;

		if (t.kind != GRANTS_MEMBER)
			continue;
		TRY(auth_copy(m, t.member, &name));
		TRY(auth_copy(m, role->name, &member));
		TRY(system_row_begin(m, &row));
		system_row_put(m, row, "role", name);
		system_row_put(m, row, "member", member);
	}
	return STATUS_OK;
}

enum status
system_members_rows(struct system_making *m)
{
	return each_role(m, members_take);
}

/* The permissions on a resource, which several texts may have; 0 where an earlier one has it. */
static unsigned
grants_on(const struct role *role, size_t at, const struct grant_resource *on)
{
	unsigned grants = 0;

	for (size_t i = 0; i < role->text_count; i++) {
		const struct grants_text t = grants_text_read(role->texts[i]);

		if (t.kind != GRANTS_GRANT || !grant_resource_is(&t.on, on))
			continue;
		if (i < at)
			return 0;
		grants |= t.grants;
	}
	return grants;
}

static enum status
permissions_row(struct system_making *m, const struct role *role, const struct grant_resource *on,
		unsigned grants)
{
	AUTO(buf_release) struct buf path = BUF_SHORT(GRANTS_TEXT_BYTES);
	struct str names[8 * sizeof(grants)], name, resource;
	struct cql_value *row;
	size_t count = 0;

	for (unsigned bit = 1; bit < GRANT_ALL; bit <<= 1)
		if (grants & bit)
			names[count++] = str_from_cstr(grant_name((enum grant)bit));
	grant_resource_path(on, &path);
	TRY(buf_copy(&path, m->q->arena, &resource));
	TRY(auth_copy(m, role->name, &name));
	TRY(system_row_begin(m, &row));
	system_row_put(m, row, "role", name);
	system_row_put(m, row, "resource", resource);
	return system_row_put_texts(m, row, "permissions", names, count, false);
}

static enum status
permissions_take(void *arg, const struct role *role)
{
	struct system_making *m = arg;

	for (size_t i = 0; i < role->text_count; i++) {
		const struct grants_text t = grants_text_read(role->texts[i]);
		unsigned grants = t.kind == GRANTS_GRANT ? grants_on(role, i, &t.on) : 0;

		TRY(step_count((uint32_t)role->text_count));
		if (grants)
			TRY(permissions_row(m, role, &t.on, grants));
	}
	return STATUS_OK;
}

enum status
system_permissions_rows(struct system_making *m)
{
	return each_role(m, permissions_take);
}
