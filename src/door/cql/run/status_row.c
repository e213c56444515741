#include "door/cql/run/status_row.h"

bool
status_row_asked(const struct cql_statement *s)
{
	switch ((int)s->kind) {
	case CQL_INSERT:
		return s->insert.returns_status;
	case CQL_UPDATE:
		return s->update.returns_status;
	case CQL_DELETE:
		return s->remove.returns_status;
	default:
		return false;
	}
}

bool
status_row_tells(const struct cql_request *r, enum status status)
{
	return (status == STATUS_INVALID || status == STATUS_DUPLICATE) &&
	       (r->q.code == 0 || r->q.code == CQL_CODE_INVALID);
}

enum status
status_row_begin(struct cql_request *r, const struct schema_table *t, size_t count)
{
	struct result_column *columns = arena_alloc(r->arena, (t->count + 2) * sizeof(*columns));
	const struct result_columns result = { t->keyspace, t->name, columns, t->count + 2 };

	if (!columns)
		return STATUS_LIMIT;
	columns[0] = (struct result_column){ STR("[applied]"), CQL_NATIVE(BOOLEAN) };
	columns[1] = (struct result_column){ STR("[message]"), CQL_NATIVE(TEXT) };
	for (size_t i = 0; i < t->count; i++)
		columns[i + 2] = (struct result_column){ t->columns[i].name, t->columns[i].type };
	metadata_put_rows(r->out, r->header.version, &result, false, (struct str){ 0 });
	frame_put_i32(r->out, (int32_t)count);
	return STATUS_OK;
}

void
status_row_put(struct cql_request *r, const struct schema_table *t, bool applied,
	       struct str message, const struct row *row)
{
	cql_element_put(r->out, CQL_VALUE(applied ? STR("\1") : STR("\0")));
	cql_element_put(r->out, message.ptr ? CQL_VALUE(message) : CQL_VALUE_NULL);
	for (size_t i = 0; i < t->count; i++)
		cql_element_put(r->out, row ? row->values[i] : CQL_VALUE_NULL);
}
