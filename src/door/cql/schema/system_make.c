/* Tables out of the definitions of those that are made up. */
#include "door/cql/schema/system_int.h"

/* Appends the columns of one list. */
static enum status
columns_add(struct cql *q, struct schema_column *columns, size_t *count, const char *text,
	    enum schema_kind kind)
{
	struct str rest = str_from_cstr(text);

	for (unsigned position = 0; rest.len; position++) {
		struct str type = str_cut(&rest, '|');
		struct schema_column *c = &columns[(*count)++];

		*c = (struct schema_column){ .kind = kind, .position = position };
		c->name = str_cut(&type, ' ');
		TRY(cql_type_parse(q, type, &c->type));
	}
	return STATUS_OK;
}

static size_t
columns_most(const char *text)
{
	size_t n = 1;

	for (; *text; text++)
		n += *text == '|';
	return n;
}

enum status
schema_system_make(struct cql *q, const struct schema_system *s, struct schema_table **ret)
{
	struct schema_table *t = arena_zalloc(q->arena, sizeof(*t));
	size_t most = columns_most(s->partition) + columns_most(s->clustering) +
		      columns_most(s->regular);
	struct schema_column *columns = arena_alloc(q->arena, most * sizeof(*columns));

	if (!t || !columns)
		return STATUS_LIMIT;
	*t = (struct schema_table){ .keyspace = str_from_cstr(s->keyspace),
				    .name = str_from_cstr(s->name),
				    .columns = columns,
				    .system = s };
	TRY(columns_add(q, columns, &t->count, s->partition, SCHEMA_PARTITION));
	t->partition_count = t->count;
	TRY(columns_add(q, columns, &t->count, s->clustering, SCHEMA_CLUSTERING));
	t->key_count = t->count;
	TRY(columns_add(q, columns, &t->count, s->regular, SCHEMA_REGULAR));
	*ret = t;
	return STATUS_OK;
}

void
schema_version_uuid(const uint8_t stamp[static TABLE_STAMP_BYTES], uint8_t ret[static 16])
{
	size_t n = TABLE_STAMP_BYTES < 16 ? TABLE_STAMP_BYTES : 16;

	memset(ret, 0, 16);
	memcpy(ret + 16 - n, stamp + TABLE_STAMP_BYTES - n, n);
	/* Version 8, whose bits mean what its maker says; the variant of all UUIDs. */
	ret[6] = (uint8_t)((ret[6] & 0x0f) | 0x80);
	ret[8] = (uint8_t)((ret[8] & 0x3f) | 0x80);
	ret[0] ^= stamp[0];
}
