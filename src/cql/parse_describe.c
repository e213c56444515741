#include "cql/parse_int.h"

static bool
at_end(const struct cql_parser *p)
{
	return p->token.kind == CQL_TOKEN_END || cql_at_sign(p, ";") || cql_at_word(p, "with");
}

/* Words that stand for what has no name of its own. */
static bool
skip_whole(struct cql_parser *p, struct cql_describe *d)
{
	static const struct {
		const char *word;
		enum cql_describe_kind kind;
	} words[] = {
		{ "cluster", CQL_DESCRIBE_CLUSTER },
		{ "schema", CQL_DESCRIBE_SCHEMA },
		{ "keyspaces", CQL_DESCRIBE_KEYSPACES },
		{ "tables", CQL_DESCRIBE_TABLES },
		{ "columnfamilies", CQL_DESCRIBE_TABLES },
		{ "types", CQL_DESCRIBE_TYPES },
		{ "functions", CQL_DESCRIBE_FUNCTIONS },
		{ "aggregates", CQL_DESCRIBE_AGGREGATES },
	};

	d->full = cql_skip_words(p, "full", "schema");
	if (d->full) {
		d->kind = CQL_DESCRIBE_SCHEMA;
		return true;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (cql_skip_word(p, words[i].word)) {
			d->kind = words[i].kind;
			return true;
		}
	}
	return false;
}

static enum status
take_keyspace(struct cql_parser *p, struct cql_describe *d)
{
	d->kind = CQL_DESCRIBE_KEYSPACE;
	return at_end(p) ? STATUS_OK : cql_take_name(p, &d->name.name);
}

/* A kind and a name: TABLE t. */
static enum status
take_named(struct cql_parser *p, struct cql_describe *d)
{
	static const struct {
		const char *word;
		enum cql_describe_kind kind;
		const char *what;
	} words[] = {
		{ "table", CQL_DESCRIBE_TABLE, "Table" },
		{ "columnfamily", CQL_DESCRIBE_TABLE, "Table" },
		{ "index", CQL_DESCRIBE_INDEX, "Index" },
		{ "type", CQL_DESCRIBE_TYPE, "Type" },
		{ "function", CQL_DESCRIBE_FUNCTION, "Function" },
		{ "aggregate", CQL_DESCRIBE_AGGREGATE, "Aggregate" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (cql_skip_word(p, words[i].word)) {
			d->kind = words[i].kind;
			return cql_take_qualified(p, words[i].what, &d->name);
		}
	}
	if (cql_skip_words(p, "materialized", "view")) {
		d->kind = CQL_DESCRIBE_VIEW;
		return cql_take_qualified(p, "View", &d->name);
	}
	d->kind = CQL_DESCRIBE_ANY;
	return cql_take_qualified(p, "Table", &d->name);
}

enum status
cql_take_describe(struct cql_parser *p, struct cql_statement *ret)
{
	struct cql_describe *d = &ret->describe;

	ret->kind = CQL_DESCRIBE;
	*d = (struct cql_describe){ 0 };
	d->only = cql_skip_word(p, "only");
	if (cql_skip_word(p, "keyspace"))
		TRY(take_keyspace(p, d));
	else if (d->only)
		return cql_unexpected(p);
	else if (!skip_whole(p, d))
		TRY(take_named(p, d));
	d->internals = cql_skip_word(p, "with");
	return d->internals ? cql_take_word(p, "internals") : STATUS_OK;
}
