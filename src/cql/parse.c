#include "base/utf8.h"
#include "cql/parse_int.h"

static enum status
take_truncate(struct cql_parser *p, struct cql_statement *ret)
{
	ret->kind = CQL_TRUNCATE;
	(void)(cql_skip_word(p, "table") || cql_skip_word(p, "columnfamily"));
	return cql_take_qualified(p, "Table", &ret->truncate);
}

/* SELECT, INSERT, UPDATE or DELETE; *ret_found: the token begins one. */
static enum status
take_row_statement(struct cql_parser *p, struct cql_statement *ret, bool *ret_found)
{
	*ret_found = true;
	if (cql_skip_word(p, "select")) {
		ret->kind = CQL_SELECT;
		return cql_take_select(p, &ret->select);
	}
	if (cql_skip_word(p, "insert")) {
		ret->kind = CQL_INSERT;
		return cql_take_insert(p, &ret->insert);
	}
	if (cql_skip_word(p, "update")) {
		ret->kind = CQL_UPDATE;
		return cql_take_update(p, &ret->update);
	}
	if (cql_skip_word(p, "delete")) {
		ret->kind = CQL_DELETE;
		return cql_take_delete(p, &ret->remove);
	}
	*ret_found = false;
	return STATUS_OK;
}

/* Statements of a batch or transaction, up to the word behind them. */
static enum status
take_batched(struct cql_parser *p, struct cql_statement *outer)
{
	struct cql_statement **list = NULL, *s;
	size_t cap = 0, at;
	bool found;

	for (;;) {
		while (cql_skip_sign(p, ";"))
			;
		s = arena_zalloc(p->q->arena, sizeof(*s));
		if (!s)
			return STATUS_LIMIT;
		at = p->token.at;
		TRY(take_row_statement(p, s, &found));
		if (!found)
			break;
		if (s->kind == CQL_SELECT && outer->kind == CQL_BATCH)
			return cql_unexpected(p);
		s->text = str_of(p->text.ptr + at, p->token.before - at);
		if (outer->batch.count == CQL_ELEMENTS)
			return cql_fail_at(p, CQL_E_TOO_MANY_ELEMENTS, STR("1048576"));
		TRY(arena_room(p->q->arena, &list, outer->batch.count, &cap, sizeof(*list)));
		list[outer->batch.count++] = s;
	}
	outer->batch.statements = list;
	return STATUS_OK;
}

/*
 * Behind BEGIN TRANSACTION and START TRANSACTION: all of the block, or nothing where a client sends
 * its statements as a batch of the protocol.
 */
static enum status
take_transaction(struct cql_parser *p, bool starts, struct cql_statement *ret)
{
	ret->kind = CQL_TRANSACTION;
	ret->batch.kind = CQL_BATCH_TRANSACTION;
	TRY(take_batched(p, ret));
	if (!ret->batch.count && p->token.kind == CQL_TOKEN_END) {
		ret->kind = CQL_TRANSACTION_BEGIN;
		return STATUS_OK;
	}
	if (starts)
		return cql_take_word(p, "commit");
	TRY(cql_take_word(p, "end"));
	return cql_take_word(p, "transaction");
}

/* Behind BEGIN. */
static enum status
take_begin(struct cql_parser *p, struct cql_statement *ret)
{
	if (cql_skip_word(p, "transaction"))
		return take_transaction(p, false, ret);
	ret->kind = CQL_BATCH;
	ret->batch.kind = cql_skip_word(p, "unlogged")  ? CQL_BATCH_UNLOGGED
			  : cql_skip_word(p, "counter") ? CQL_BATCH_COUNTER
							: CQL_BATCH_LOGGED;
	TRY(cql_take_word(p, "batch"));
	TRY(cql_take_using(p, true, &ret->batch.using));
	TRY(take_batched(p, ret));
	TRY(cql_take_word(p, "apply"));
	return cql_take_word(p, "batch");
}

static enum status
take_statement(struct cql_parser *p, struct cql_statement *ret)
{
	bool found;

	TRY(take_row_statement(p, ret, &found));
	if (found)
		return STATUS_OK;
	if (cql_skip_word(p, "use")) {
		ret->kind = CQL_USE;
		if (cql_at_sign(p, "?") || cql_at_sign(p, ":"))
			return cql_fail_at(p, CQL_E_KEYSPACE_MARKER, STR(""));
		return cql_take_keyspace(p, &ret->use);
	}
	if (cql_skip_word(p, "begin"))
		return take_begin(p, ret);
	if (cql_skip_words(p, "start", "transaction"))
		return take_transaction(p, true, ret);
	if (cql_skip_words(p, "end", "transaction") || cql_skip_word(p, "commit")) {
		ret->kind = CQL_TRANSACTION_END;
		return STATUS_OK;
	}
	if (cql_skip_word(p, "truncate"))
		return take_truncate(p, ret);
	if (cql_skip_word(p, "create"))
		return cql_take_create(p, ret);
	if (cql_skip_word(p, "alter"))
		return cql_take_alter(p, ret);
	if (cql_skip_word(p, "drop"))
		return cql_take_drop(p, ret);
	if (cql_skip_word(p, "grant"))
		return cql_take_grant(p, false, ret);
	if (cql_skip_word(p, "revoke"))
		return cql_take_grant(p, true, ret);
	if (cql_skip_word(p, "list"))
		return cql_take_list(p, ret);
	if (cql_skip_word(p, "describe") || cql_skip_word(p, "desc"))
		return cql_take_describe(p, ret);
	return cql_unexpected(p);
}

enum status
cql_parse(struct cql *q, struct str text, struct cql_statement **ret)
{
	struct cql_parser p;
	struct cql_statement *s;

	if (text.len > CQL_STATEMENT_BYTES)
		return cql_fail(q, CQL_E_TOO_LONG, STR("16777216"));
	if (utf8_valid_prefix(text) != text.len)
		return cql_fail(q, CQL_E_UTF8);
	s = arena_zalloc(q->arena, sizeof(*s));
	if (!s)
		return STATUS_LIMIT;
	cql_parser_init(&p, q, text);
	s->text = text;
	TRY(take_statement(&p, s));
	while (cql_skip_sign(&p, ";"))
		;
	if (p.token.kind != CQL_TOKEN_END) {
		if (p.token.kind == CQL_TOKEN_BAD)
			return cql_unexpected(&p);
		return cql_fail_at(&p, CQL_E_EXTRANEOUS, cql_token_text(&p, p.token));
	}
	s->marker_names = p.markers;
	s->marker_count = p.marker_count;
	*ret = s;
	return STATUS_OK;
}
