/* CREATE, ALTER and DROP of user types. */
#include "door/cql/run/ddl.h"

#define FAIL(run, ...) request_fail((run)->r, CQL_CODE_INVALID, __VA_ARGS__)

static enum status
find_type(void *arg, struct cql *q, struct str keyspace, struct str name,
	  const struct cql_type **ret)
{
	return schema_type_find(arg, q, keyspace, name, ret);
}

/* The type of a field as it is stored. */
static enum status
field_make(struct run *run, struct str keyspace, struct str name, const struct cql_column *c,
	   struct table_field *ret)
{
	const struct cql_type *type;

	TRY(cql_type_resolve(run->q, keyspace, c->type, find_type, &run->types, &type));
	TRY(cql_type_check(run->q, type));
	if (cql_type_has(type, CQL_TYPE_COUNTER))
		return FAIL(run, "A user type cannot contain counters");
	if (type->kind == CQL_TYPE_UDT && cql_type_is_multicell(type))
		return FAIL(run, "A user type cannot contain non-frozen UDTs");
	if (cql_type_uses(type, keyspace, name))
		return FAIL(run,
			    "Cannot add new field %.*s of type %.*s to user type %.*s.%.*s as it "
			    "would create a circular reference",
			    STR_ARG(c->name), STR_ARG(cql_type_text(run->q, type)),
			    STR_ARG(keyspace), STR_ARG(name));
	*ret = (struct table_field){ c->name, cql_type_text(run->q, type) };
	return STATUS_OK;
}

static enum status
fail_no_type(struct run *run, struct str keyspace, struct str name)
{
	return FAIL(run, "Type '%.*s.%.*s' doesn't exist", STR_ARG(keyspace), STR_ARG(name));
}

static size_t
field_find(const struct table_type *type, struct str name)
{
	size_t i = 0;

	while (i < type->field_count && !str_eq(type->fields[i].name, name))
		i++;
	return i;
}

static enum status
add_fields(struct run *run, const struct cql_alter_type *s, struct table_type *type,
	   struct table_field *fields)
{
	for (size_t i = 0; i < s->field_count; i++) {
		if (field_find(type, s->fields[i].name) < type->field_count) {
			if (s->if_field_exists || s->if_not_exists)
				continue;
			return FAIL(run,
				    "Cannot add field %.*s to type %.*s.%.*s: a field with name "
				    "%.*s already exists",
				    STR_ARG(s->fields[i].name), STR_ARG(type->keyspace),
				    STR_ARG(type->name), STR_ARG(s->fields[i].name));
		}
		TRY(field_make(run, type->keyspace, type->name, &s->fields[i],
			       &fields[type->field_count]));
		type->field_count++;
	}
	return STATUS_OK;
}

static enum status
rename_fields(struct run *run, const struct cql_alter_type *s, const struct table_type *type,
	      struct table_field *fields)
{
	for (size_t i = 0; i < s->rename_count; i++) {
		size_t at = field_find(type, s->renames[i].from);

		if (at == type->field_count) {
			if (s->if_field_exists)
				continue;
			return FAIL(run, "Unkown field %.*s in user type %.*s",
				    STR_ARG(s->renames[i].from), STR_ARG(type->name));
		}
		fields[at].name = s->renames[i].to;
		for (size_t j = 0; j < type->field_count; j++)
			if (j != at && str_eq(fields[j].name, fields[at].name))
				return FAIL(run, "Duplicate field name %.*s in type '%.*s'",
					    STR_ARG(fields[at].name), STR_ARG(type->name));
	}
	return STATUS_OK;
}

/* ---- What a change of a type means to those that use it ---- */

/* Another field would change the bytes of partition keys, and with these where their rows are. */
static enum status
check_no_partition_key(struct run *run, const struct schema_keyspace *k, struct str name)
{
	for (size_t j = 0; j < k->table_count; j++) {
		const struct schema_table *t = k->tables[j];

		for (size_t c = 0; c < t->partition_count; c++)
			if (cql_type_uses(t->columns[c].type, k->name, name))
				return FAIL(run,
					    "Cannot add new field to user type '%.*s.%.*s' as it "
					    "is used in the partition key column %.*s of the table "
					    "'%.*s.%.*s'",
					    STR_ARG(k->name), STR_ARG(name),
					    STR_ARG(t->columns[c].name), STR_ARG(t->keyspace),
					    STR_ARG(t->name));
	}
	return STATUS_OK;
}

/* Whether the type, which the transaction has written, is not too large. */
static enum status
check_written(struct run *run, struct schema_types *types, struct str keyspace, struct str name)
{
	const struct cql_type *type;

	TRY(schema_type_find(types, run->q, keyspace, name, &type));
	return type ? cql_type_check_size(run->q, type) : STATUS_OK;
}

/* The same of all that may use it. `k` was read before the type was written. */
static enum status
check_users(struct run *run, struct schema_types *types, const struct schema_keyspace *k)
{
	for (size_t i = 0; i < k->type_count; i++)
		TRY(check_written(run, types, k->name, k->types[i].name));
	for (size_t i = 0; i < k->table_count; i++) {
		for (size_t c = 0; c < k->tables[i]->count; c++) {
			const struct cql_type *type;

			TRY(cql_type_parse(run->q, k->tables[i]->columns[c].stored->type, &type));
			TRY(cql_type_resolve(run->q, k->name, type, find_type, types, &type));
			TRY(cql_type_check_size(run->q, type));
		}
	}
	return STATUS_OK;
}

static enum status
put_checked(struct run *run, const struct table_type *type, bool replaces,
	    const struct schema_all *all)
{
	/* Types as they are now, without those that were found before. */
	struct schema_types types = { .tx = run->tx, .arena = run->r->arena };

	TRY(table_type_put(run->tx, type, replaces, &run->r->err));
	TRY(check_written(run, &types, type->keyspace, type->name));
	return all && all->count ? check_users(run, &types, &all->keyspaces[0]) : STATUS_OK;
}

enum status
ddl_create_type(struct run *run, struct ddl_outcome *ret)
{
	const struct cql_create_type *s = &run->statement->create_type;
	struct table_type type = { .name = s->type.name, .field_count = s->count };
	struct table_field *fields = arena_alloc(run->r->arena, (s->count + 1) * sizeof(*fields));
	enum status status;

	if (!fields)
		return STATUS_LIMIT;
	TRY(ddl_keyspace(run, GRANT_CREATE, &s->type, &type.keyspace));
	for (size_t i = 0; i < s->count; i++) {
		for (size_t j = 0; j < i; j++)
			if (str_eq(fields[j].name, s->fields[i].name))
				return FAIL(run, "Duplicate field name '%.*s' in type '%.*s'",
					    STR_ARG(fields[j].name), STR_ARG(type.name));
		TRY(field_make(run, type.keyspace, type.name, &s->fields[i], &fields[i]));
	}
	type.fields = fields;
	status = put_checked(run, &type, false, NULL);
	if (status == STATUS_EXISTS)
		return s->if_not_exists ? ddl_nothing(run)
					: FAIL(run, "A user type with name '%.*s' already exists",
					       STR_ARG(type.name));
	TRY(status);
	return ddl_done(run, ret, "CREATED", "TYPE", type.keyspace, type.name);
}

static enum status
alter_add(struct run *run, const struct cql_alter_type *s, struct table_type *type,
	  struct table_field *fields)
{
	struct schema_all all;
	enum status status = STATUS_OK;

	TRY(schema_read(run->q, &run->types, type->keyspace, &all));
	if (all.count)
		status = check_no_partition_key(run, &all.keyspaces[0], type->name);
	if (status == STATUS_OK)
		status = add_fields(run, s, type, fields);
	if (status == STATUS_OK)
		status = put_checked(run, type, true, &all);
	schema_close(&all);
	return status;
}

enum status
ddl_alter_type(struct run *run, struct ddl_outcome *ret)
{
	const struct cql_alter_type *s = &run->statement->alter_type;
	struct table_field *fields;
	struct table_type type;
	enum status status;
	struct str keyspace;

	TRY(ddl_keyspace(run, GRANT_ALTER, &s->type, &keyspace));
	status = table_type_read(run->tx, keyspace, s->type.name, run->r->arena, &type,
				 &run->r->err);
	if (status == STATUS_NOT_FOUND)
		return s->if_exists ? ddl_nothing(run) : fail_no_type(run, keyspace, s->type.name);
	TRY(status);
	if (s->kind == CQL_ALTER_COLUMN_TYPE)
		return FAIL(run, "Alterations of a field's type are no longer supported");
	fields = arena_alloc(run->r->arena,
			     (type.field_count + s->field_count + 1) * sizeof(*fields));
	if (!fields)
		return STATUS_LIMIT;
	memcpy(fields, type.fields, type.field_count * sizeof(*fields));
	type.fields = fields;
	if (s->kind == CQL_ALTER_ADD) {
		TRY(alter_add(run, s, &type, fields));
	} else {
		TRY(rename_fields(run, s, &type, fields));
		TRY(table_type_put(run->tx, &type, true, &run->r->err));
	}
	return ddl_done(run, ret, "UPDATED", "TYPE", keyspace, type.name);
}

/* What uses a type keeps it. */
static enum status
check_unused(struct run *run, struct str keyspace, struct str name)
{
	enum status status = STATUS_OK;
	struct schema_all all;

	TRY(schema_read(run->q, &run->types, keyspace, &all));
	for (size_t i = 0; i < all.count && status == STATUS_OK; i++) {
		const struct schema_keyspace *k = &all.keyspaces[i];

		for (size_t j = 0; j < k->table_count && status == STATUS_OK; j++)
			for (size_t c = 0; c < k->tables[j]->count; c++)
				if (cql_type_uses(k->tables[j]->columns[c].type, keyspace, name))
					status = FAIL(run,
						      "Cannot drop user type '%.*s.%.*s' as it is "
						      "still used by tables %.*s",
						      STR_ARG(keyspace), STR_ARG(name),
						      STR_ARG(k->tables[j]->name));
		for (size_t j = 0; j < k->type_count && status == STATUS_OK; j++) {
			const struct cql_type *type;

			if (str_eq(k->types[j].name, name))
				continue;
			status = schema_type_find(&run->types, run->q, keyspace, k->types[j].name,
						  &type);
			if (status == STATUS_OK && type && cql_type_uses(type, keyspace, name))
				status = FAIL(run,
					      "Cannot drop user type '%.*s.%.*s' as it is still "
					      "used by user types %.*s",
					      STR_ARG(keyspace), STR_ARG(name),
					      STR_ARG(k->types[j].name));
		}
	}
	schema_close(&all);
	return status;
}

enum status
ddl_drop_type(struct run *run, struct ddl_outcome *ret)
{
	const struct cql_drop *s = &run->statement->drop;
	enum status status;
	struct str keyspace;

	status = ddl_keyspace(run, GRANT_DROP, &s->name, &keyspace);
	if (status == STATUS_INVALID && s->if_exists && keyspace.len &&
	    run->r->q.code == CQL_CODE_INVALID) {
		run->r->q.code = (enum cql_code)0;
		return ddl_nothing(run);
	}
	TRY(status);
	TRY(check_unused(run, keyspace, s->name.name));
	status = table_type_drop(run->tx, keyspace, s->name.name, &run->r->err);
	if (status == STATUS_NOT_FOUND)
		return s->if_exists ? ddl_nothing(run) : fail_no_type(run, keyspace, s->name.name);
	TRY(status);
	return ddl_done(run, ret, "DROPPED", "TYPE", keyspace, s->name.name);
}
