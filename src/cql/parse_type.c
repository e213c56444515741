#include "cql/parse_int.h"
#include "cql/type_int.h"

/* The native type of a name; NULL: there is none. */
static const struct cql_type *
native_of(struct str name)
{
	if (str_eq_nocase(name, STR("varchar")))
		return CQL_NATIVE(TEXT);
	for (size_t i = 0; i < CQL_NATIVE_COUNT; i++)
		if (str_eq_nocase(name, str_from_cstr(cql_natives[i].name)))
			return &cql_native_types[i];
	return NULL;
}

/* The type of a class in quotes: a native one, or a custom one. */
static enum status
take_class(struct cql_parser *p, const struct cql_type **ret)
{
	struct cql_type *custom;
	struct str class, name;

	TRY(cql_take_string(p, &class));
	name = class;
	if (str_starts_with(name, STR(CQL_MARSHAL)))
		name = str_skip(name, sizeof(CQL_MARSHAL) - 1);
	for (size_t i = 0; i < CQL_NATIVE_COUNT; i++) {
		if (str_eq(name, str_from_cstr(cql_natives[i].marshal))) {
			*ret = &cql_native_types[i];
			return STATUS_OK;
		}
	}
	custom = arena_zalloc(p->q->arena, sizeof(*custom));
	if (!custom)
		return STATUS_LIMIT;
	*custom = (struct cql_type){ .kind = CQL_TYPE_CUSTOM, .resolved = true, .name = class };
	*ret = custom;
	return STATUS_OK;
}

static enum status
take_args(struct cql_parser *p, enum cql_type_kind kind, const struct cql_type **ret)
{
	const struct cql_type **args = NULL;
	size_t count = 0, cap = 0;
	size_t wanted = kind == CQL_TYPE_TUPLE ? 0 : kind == CQL_TYPE_MAP ? 2 : 1;

	TRY(cql_take_sign(p, "<"));
	do {
		TRY(arena_room(p->q->arena, &args, count, &cap, sizeof(*args)));
		TRY(cql_take_type(p, &args[count]));
		/* What is in a tuple is frozen, since it cannot be changed by itself. */
		if (kind == CQL_TYPE_TUPLE)
			TRY(cql_type_freeze(p->q, args[count], &args[count]));
		count++;
	} while (cql_skip_sign(p, ","));
	if (wanted && count != wanted)
		return cql_unexpected(p);
	TRY(cql_take_sign(p, ">"));
	*ret = cql_type_of(p->q, kind, false, args, count);
	return *ret ? STATUS_OK : STATUS_LIMIT;
}

static enum status
take_named(struct cql_parser *p, const struct cql_type **ret)
{
	struct str keyspace = { NULL, 0 }, name;

	TRY(cql_take_name(p, &name));
	if (cql_skip_sign(p, ".")) {
		keyspace = name;
		TRY(cql_take_name(p, &name));
	}
	*ret = cql_type_udt(p->q, keyspace, name, false, NULL, NULL, 0);
	return *ret ? STATUS_OK : STATUS_LIMIT;
}

static enum status
take_inner(struct cql_parser *p, const struct cql_type **ret)
{
	static const struct {
		const char *name;
		enum cql_type_kind kind;
	} containers[] = {
		{ "list", CQL_TYPE_LIST },
		{ "set", CQL_TYPE_SET },
		{ "map", CQL_TYPE_MAP },
		{ "tuple", CQL_TYPE_TUPLE },
	};
	bool has_args = cql_is_sign(p, cql_peek(p), "<");

	if (p->token.kind == CQL_TOKEN_STRING)
		return take_class(p, ret);
	if (p->token.kind == CQL_TOKEN_WORD && has_args) {
		for (size_t i = 0; i < sizeof(containers) / sizeof(containers[0]); i++)
			if (cql_skip_word(p, containers[i].name))
				return take_args(p, containers[i].kind, ret);
	}
	if (p->token.kind == CQL_TOKEN_WORD && !cql_is_sign(p, cql_peek(p), ".")) {
		*ret = native_of(cql_token_text(p, p->token));
		if (*ret) {
			cql_next(p);
			return STATUS_OK;
		}
	}
	return take_named(p, ret);
}

/* Takes `frozen<` as often as it stands there. */
static size_t
skip_frozen(struct cql_parser *p)
{
	size_t count = 0;

	while (p->token.kind == CQL_TOKEN_WORD && cql_at_word(p, "frozen") &&
	       cql_is_sign(p, cql_peek(p), "<")) {
		cql_next(p);
		cql_next(p);
		count++;
	}
	return count;
}

/*
 * `frozen` counts in no depth: a type's own text has one more of it for each tuple than the text
 * that the type was made from, and has to be read again.
 */
enum status
cql_take_type(struct cql_parser *p, const struct cql_type **ret)
{
	size_t frozen = skip_frozen(p);

	TRY(cql_enter(p));
	TRY(take_inner(p, ret));
	cql_leave(p);
	if (frozen && (*ret)->kind < CQL_NATIVE_COUNT)
		return cql_fail(p->q, CQL_E_FROZEN_NATIVE, cql_type_text(p->q, *ret));
	for (size_t i = 0; i < frozen; i++)
		TRY(cql_take_sign(p, ">"));
	return frozen ? cql_type_freeze(p->q, *ret, ret) : STATUS_OK;
}

enum status
cql_type_parse(struct cql *q, struct str text, const struct cql_type **ret)
{
	struct cql_parser p;
	const struct cql_type *type;

	if (text.len > CQL_STATEMENT_BYTES)
		return cql_fail(q, CQL_E_TYPE_SYNTAX, STR("(too long)"));
	cql_parser_init(&p, q, text);
	TRY(cql_take_type(&p, &type));
	if (p.token.kind != CQL_TOKEN_END)
		return cql_unexpected(&p);
	*ret = type;
	return STATUS_OK;
}
