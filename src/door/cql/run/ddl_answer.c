/* What all statements that change the schema share. */
#include "door/cql/run/ddl.h"
#include "door/cql/run/metadata.h"
#include "door/cql/schema/system.h"

enum status
ddl_nothing(struct run *run)
{
	frame_put_i32(run->r->out, RESULT_VOID);
	return STATUS_OK;
}

enum status
ddl_done(struct run *run, struct ddl_outcome *ret, const char *change, const char *target,
	 struct str keyspace, struct str object)
{
	*ret = (struct ddl_outcome){ .changed = true,
				     .change = { .change = change,
						 .target = target,
						 .keyspace = keyspace,
						 .object = object } };
	frame_put_i32(run->r->out, RESULT_SCHEMA_CHANGE);
	cql_schema_change_put(run->r->out, &ret->change);
	return STATUS_OK;
}

enum status
ddl_keyspace(struct run *run, enum grant wanted, const struct cql_name *name, struct str *ret)
{
	struct table_keyspace stored;
	enum status status;

	TRY(run_keyspace_of(run, name->keyspace, ret));
	run->r->keyspace = *ret;
	run->r->table = name->name;
	if (schema_keyspace_is_system(*ret))
		return request_fail(run->r, CQL_CODE_UNAUTHORIZED,
				    "%.*s keyspace is not user-modifiable.", STR_ARG(*ret));
	TRY(request_allow(run->r, wanted, *ret, wanted == GRANT_CREATE ? STR("") : name->name));
	status = table_keyspace_read(run->tx, *ret, run->r->arena, &stored, NULL);
	if (status == STATUS_NOT_FOUND || status == STATUS_INVALID)
		return request_fail(run->r, CQL_CODE_INVALID, "Keyspace '%.*s' doesn't exist",
				    STR_ARG(*ret));
	return status;
}

enum status
ddl_table_name(struct run *run, struct str keyspace, struct str table, struct str *ret)
{
	AUTO(buf_release) struct buf full = BUF_SHORT(CATALOG_NAME_BYTES);

	TRY(table_name(keyspace, table, &full, &run->r->err));
	return buf_copy(&full, run->r->arena, ret);
}
