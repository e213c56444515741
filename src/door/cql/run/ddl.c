/* Keyspaces, and which statement is for which file. */
#include "door/cql/run/ddl.h"

#include "door/cql/schema/options.h"
#include "door/cql/schema/system.h"

bool
ddl_is(const struct cql_statement *s)
{
	return (s->kind >= CQL_TRUNCATE && s->kind <= CQL_DROP_TYPE) ||
	       s->kind == CQL_CREATE_INDEX || s->kind == CQL_DROP_INDEX;
}

static enum status
check_keyspace(struct run *run, enum grant wanted, struct str name)
{
	run->r->keyspace = name;
	if (schema_keyspace_is_system(name))
		return request_fail(run->r, CQL_CODE_UNAUTHORIZED,
				    "%.*s keyspace is not user-modifiable.", STR_ARG(name));
	return request_allow(run->r, wanted, wanted == GRANT_CREATE ? STR("") : name, STR(""));
}

static enum status
fail_no_keyspace(struct run *run, struct str name)
{
	return request_fail(run->r, CQL_CODE_INVALID, "Keyspace '%.*s' doesn't exist",
			    STR_ARG(name));
}

static enum status
create_keyspace(struct run *run, struct ddl_outcome *ret)
{
	const struct cql_keyspace *s = &run->statement->keyspace;
	struct table_keyspace keyspace = { .name = s->name };
	struct table_property *properties;
	enum status status;

	TRY(check_keyspace(run, GRANT_CREATE, s->name));
	TRY(options_check_keyspace(run->q, &s->with, true, &properties, &keyspace.property_count));
	keyspace.properties = properties;
	status = table_keyspace_create(run->tx, &keyspace, &run->r->err);
	if (status == STATUS_EXISTS && s->if_not_exists)
		return ddl_nothing(run);
	if (status == STATUS_EXISTS) {
		run->r->more.keyspace = s->name;
		return request_fail(run->r, CQL_CODE_EXISTS,
				    "Cannot add existing keyspace \"%.*s\"", STR_ARG(s->name));
	}
	TRY(status);
	return ddl_done(run, ret, "CREATED", "KEYSPACE", s->name, STR(""));
}

static enum status
alter_keyspace(struct run *run, struct ddl_outcome *ret)
{
	const struct cql_keyspace *s = &run->statement->keyspace;
	struct table_keyspace keyspace = { .name = s->name };
	struct table_property *properties;
	enum status status;

	TRY(check_keyspace(run, GRANT_ALTER, s->name));
	TRY(options_check_keyspace(run->q, &s->with, false, &properties, &keyspace.property_count));
	keyspace.properties = properties;
	status = table_keyspace_alter(run->tx, &keyspace, &run->r->err);
	if (status == STATUS_NOT_FOUND)
		return s->if_exists ? ddl_nothing(run) : fail_no_keyspace(run, s->name);
	TRY(status);
	return ddl_done(run, ret, "UPDATED", "KEYSPACE", s->name, STR(""));
}

static enum status
drop_keyspace(struct run *run, struct ddl_outcome *ret)
{
	const struct cql_drop *s = &run->statement->drop;
	enum status status;

	TRY(check_keyspace(run, GRANT_DROP, s->name.name));
	status = table_keyspace_drop(run->tx, s->name.name, &run->r->err);
	if (status == STATUS_NOT_FOUND)
		return s->if_exists ? ddl_nothing(run) : fail_no_keyspace(run, s->name.name);
	TRY(status);
	return ddl_done(run, ret, "DROPPED", "KEYSPACE", s->name.name, STR(""));
}

enum status
ddl_run(struct run *run, struct ddl_outcome *ret)
{
	*ret = (struct ddl_outcome){ 0 };
	run->r->writes = true;
	switch ((int)run->statement->kind) {
	case CQL_CREATE_KEYSPACE:
		return create_keyspace(run, ret);
	case CQL_ALTER_KEYSPACE:
		return alter_keyspace(run, ret);
	case CQL_DROP_KEYSPACE:
		return drop_keyspace(run, ret);
	case CQL_CREATE_TABLE:
		return ddl_create_table(run, ret);
	case CQL_ALTER_TABLE:
		return ddl_alter_table(run, ret);
	case CQL_DROP_TABLE:
		return ddl_drop_table(run, ret);
	case CQL_CREATE_INDEX:
		return ddl_create_index(run, ret);
	case CQL_DROP_INDEX:
		return ddl_drop_index(run, ret);
	case CQL_CREATE_TYPE:
		return ddl_create_type(run, ret);
	case CQL_ALTER_TYPE:
		return ddl_alter_type(run, ret);
	case CQL_DROP_TYPE:
		return ddl_drop_type(run, ret);
	default:
		return ddl_truncate(run, ret);
	}
}
