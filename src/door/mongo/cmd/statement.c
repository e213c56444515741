/* What statements that change documents say: the members of update's, delete's and bulkWrite's. */
#include "door/mongo/cmd/update.h"

/*
 * Members, and what the kinds of statements call them; NULL: they do not have it. From FILTER on
 * they may be null, and are then as if they were not there.
 */
#define STATEMENT_MEMBERS(MEMBER)                                                                  \
	MEMBER(HINT, "hint", "hint", "hint", "hint")                                               \
	MEMBER(UPDATE, "u", NULL, "updateMods", NULL)                                              \
	MEMBER(FILTER, "q", "q", "filter", "filter")                                               \
	MEMBER(COLLATION, "collation", "collation", "collation", "collation")                      \
	MEMBER(MULTI, "multi", NULL, "multi", "multi")                                             \
	MEMBER(UPSERT, "upsert", NULL, "upsert", NULL)                                             \
	MEMBER(SORT, "sort", NULL, "sort", NULL)                                                   \
	MEMBER(ARRAY_FILTERS, "arrayFilters", NULL, "arrayFilters", NULL)                          \
	MEMBER(CONSTANTS, "c", NULL, "constants", NULL)

enum member_kind {
#define MEMBER_CONSTANT(member, ...) MEMBER_##member,
	STATEMENT_MEMBERS(MEMBER_CONSTANT) MEMBERS,
};

static const char *const names[MEMBERS][STATEMENT_KINDS] = {
#define MEMBER_NAMES(member, ...) { __VA_ARGS__ },
	STATEMENT_MEMBERS(MEMBER_NAMES)
};

static const char *
statements_name(const struct call *c)
{
	return c->command->args[WRITE_STATEMENTS].name;
}

enum status
statement_wrong_type(struct call *c, const struct bson_element *e, const char *wanted)
{
	return call_type_mismatch(c, &e->value, wanted, "%s.%s.%.*s", c->command->name,
				  statements_name(c), STR_ARG(e->name));
}

enum status
statement_missing(struct call *c, const char *name)
{
	return call_fail(c, MONGO_FIELD_MISSING,
			 "BSON field '%s.%s.%s' is missing but a required field", c->command->name,
			 statements_name(c), name);
}

enum status
statement_read_document(struct call *c, const struct bson_element *e, struct str *ret)
{
	if (e->value.type != BSON_DOCUMENT)
		return statement_wrong_type(c, e, "type 'object'");
	*ret = bson_text(&e->value);
	return STATUS_OK;
}

static enum status
read_bool(struct call *c, const struct bson_element *e, bool *ret)
{
	if (e->value.type != BSON_BOOL && !bson_is_number(&e->value))
		return statement_wrong_type(c, e, "types '[bool, long, int, decimal, double]'");
	*ret = bson_is_true(&e->value);
	return STATUS_OK;
}

/* Keeps a value of either type, which `*ret` then refers to. */
static const struct bson_value *
keep(const struct bson_element *e, enum bson_type type, enum bson_type other,
     struct bson_value *kept)
{
	if (e->value.type != type && e->value.type != other)
		return NULL;
	*kept = e->value;
	return kept;
}

static enum status
read_member(struct call *c, enum member_kind kind, const struct bson_element *e,
	    struct statement *s)
{
	switch (kind) {
	case MEMBER_HINT:
		s->ask.hint = keep(e, BSON_STRING, BSON_DOCUMENT, &s->hint);
		return s->ask.hint ? STATUS_OK
				   : call_fail(c, MONGO_FAILED_TO_PARSE,
					       "Hint must be a string or an object");
	case MEMBER_UPDATE:
		s->ask.update = keep(e, BSON_DOCUMENT, BSON_ARRAY, &s->update);
		return s->ask.update
			       ? STATUS_OK
			       : call_fail(c, MONGO_FAILED_TO_PARSE,
					   "Update argument must be either an object or an array");
	case MEMBER_FILTER:
		return statement_read_document(c, e, &s->ask.filter);
	case MEMBER_COLLATION:
		return statement_read_document(c, e, &s->ask.collation);
	case MEMBER_MULTI:
		return read_bool(c, e, &s->many);
	case MEMBER_UPSERT:
		return read_bool(c, e, &s->ask.upsert);
	case MEMBER_SORT:
		return statement_read_document(c, e, &s->sort);
	case MEMBER_ARRAY_FILTERS:
		s->ask.array_filters = keep(e, BSON_ARRAY, BSON_ARRAY, &s->array_filters);
		return s->ask.array_filters ? STATUS_OK
					    : statement_wrong_type(c, e, "type 'array'");
	case MEMBER_CONSTANTS:
	case MEMBERS:
		break;
	}
	s->ask.constants = keep(e, BSON_DOCUMENT, BSON_DOCUMENT, &s->constants);
	return s->ask.constants ? STATUS_OK : statement_wrong_type(c, e, "type 'object'");
}

enum status
statement_read_member(struct call *c, enum statement_kind kind, const struct bson_element *e,
		      struct statement *s, bool *ret_known)
{
	int member = 0;

	while (member < MEMBERS &&
	       (!names[member][kind] || !str_eq(e->name, str_from_cstr(names[member][kind]))))
		member++;
	*ret_known = member < MEMBERS;
	if (!*ret_known || (member >= MEMBER_FILTER && update_is_left_out(&e->value)))
		return STATUS_OK;
	return read_member(c, (enum member_kind)member, e, s);
}
