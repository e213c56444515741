#include "door/cql/run/changes.h"

#include "door/cql/run/value.h"

#include "doc/key.h"
#include "loop/step.h"

/* True if the bytes of `a` are greater: of two values of one moment Cassandra keeps the greater. */
static bool
is_greater(struct cql *q, const struct doc_scalar *a, const struct doc_scalar *b)
{
	AUTO(buf_release) struct buf x = cql_buf(q, 2 * TIMED_VALUE_BYTES);
	AUTO(buf_release) struct buf y = cql_buf(q, 2 * TIMED_VALUE_BYTES);

	return doc_key_put(&x, DOC_KEY_TYPED, a) == STATUS_OK &&
	       doc_key_put(&y, DOC_KEY_TYPED, b) == STATUS_OK &&
	       str_cmp(buf_str(&x), buf_str(&y)) > 0;
}

static bool
same_element(struct cql *q, const struct table_change *a, const struct table_change *b)
{
	bool parts = (a->kind == TABLE_CHANGE_PUT_ELEMENT ||
		      a->kind == TABLE_CHANGE_CLEAR_ELEMENT) &&
		     (b->kind == TABLE_CHANGE_PUT_ELEMENT || b->kind == TABLE_CHANGE_CLEAR_ELEMENT);

	return parts && a->column == b->column && !is_greater(q, &a->element, &b->element) &&
	       !is_greater(q, &b->element, &a->element);
}

/*
 * Joins a change of an element with an earlier change of that element by the same statement: a
 * deletion wins, otherwise the greater value. False: there was no earlier one.
 */
static bool
merged(struct changes *all, const struct table_change *change)
{
	struct cql *q = all->q;

	for (size_t i = 0; i < all->earlier; i++) {
		struct table_change *before = &all->list[i];

		if (!same_element(q, before, change))
			continue;
		if (before->kind == TABLE_CHANGE_PUT_ELEMENT &&
		    (change->kind == TABLE_CHANGE_CLEAR_ELEMENT ||
		     is_greater(q, &change->value, &before->value)))
			*before = *change;
		return true;
	}
	return false;
}

enum status
changes_put(struct changes *all, const struct table_change *change)
{
	TRY(step_count(1 + (uint32_t)all->earlier));
	if (merged(all, change))
		return STATUS_OK;
	TRY(arena_room(all->q->arena, &all->list, all->count, &all->cap, sizeof(*all->list)));
	all->list[all->count++] = *change;
	return STATUS_OK;
}

struct table_change
changes_of(const struct changes *all, const struct schema_column *c, enum table_change_kind kind)
{
	return (struct table_change){ .kind = kind,
				      .column = c->stored->id,
				      .element = { .kind = DOC_NULL },
				      .value = { .kind = DOC_NULL },
				      .expiry = all->expiry };
}

/* `makes_way`: for what is assigned, and not since it is deleted. */
static enum status
add_clear(struct changes *all, const struct schema_column *c, bool makes_way)
{
	struct table_change change = changes_of(all, c, TABLE_CHANGE_CLEAR);

	change.makes_way = makes_way;
	return changes_put(all, &change);
}

enum status
changes_put_elements(struct changes *all, const struct schema_column *c, struct str bytes)
{
	struct cql *q = all->q;
	struct cql_elements e;
	struct cql_value key, value;

	cql_elements_init(&e, c->type, bytes);
	while (cql_elements_next(&e, &key)) {
		struct table_change change = changes_of(all, c, TABLE_CHANGE_PUT_ELEMENT);

		switch ((int)c->type->kind) {
		case CQL_TYPE_LIST:
			change.kind = TABLE_CHANGE_APPEND;
			TRY(cql_value_to_scalar(q, c->type->args[0], key.bytes, &change.value));
			break;
		case CQL_TYPE_MAP:
			if (!cql_elements_next(&e, &value))
				return STATUS_OK;
			TRY(value_to_key(q, c->type->args[0], key.bytes, &change.element));
			TRY(cql_value_to_scalar(q, c->type->args[1], value.bytes, &change.value));
			break;
		default:
			TRY(value_to_key(q, c->type->args[0], key.bytes, &change.element));
			break;
		}
		TRY(changes_put(all, &change));
	}
	return STATUS_OK;
}

enum status
changes_put_field(struct changes *all, const struct schema_column *c, size_t field,
		  struct cql_value v)
{
	struct table_change change = changes_of(all, c,
						v.presence == CQL_SET ? TABLE_CHANGE_PUT_ELEMENT
								      : TABLE_CHANGE_CLEAR_ELEMENT);

	change.element = (struct doc_scalar){ .kind = DOC_INT16, .n = (int64_t)field };
	if (v.presence == CQL_SET)
		TRY(cql_value_to_scalar(all->q, c->type->args[field], v.bytes, &change.value));
	return changes_put(all, &change);
}

enum status
changes_put_value(struct changes *all, const struct schema_column *c, struct cql_value v,
		  bool assigned)
{
	struct table_change change = changes_of(all, c, TABLE_CHANGE_PUT);
	struct cql_elements e;
	struct cql_value field;

	if (v.presence != CQL_SET)
		return add_clear(all, c, assigned);
	if (c->stored->storage == TABLE_SINGLE) {
		TRY(cql_value_to_scalar(all->q, c->type, v.bytes, &change.value));
		return changes_put(all, &change);
	}
	TRY(add_clear(all, c, true));
	if (c->type->kind != CQL_TYPE_UDT)
		return changes_put_elements(all, c, v.bytes);
	cql_elements_init(&e, c->type, v.bytes);
	for (size_t i = 0; cql_elements_next(&e, &field); i++)
		if (field.presence == CQL_SET)
			TRY(changes_put_field(all, c, i, field));
	return STATUS_OK;
}
