/*
 * What the files of the parser share: tokens, and the parser that takes them one by one.
 *
 * Tokens are found as they are wanted. Going back is setting the parser's token to one that was
 * kept. A text that is no token is one of the kind BAD, at which every rule fails.
 */
#ifndef FROND_CQL_PARSE_INT_H
#define FROND_CQL_PARSE_INT_H

#include "cql/statement.h"

enum cql_token_kind {
	CQL_TOKEN_END,
	CQL_TOKEN_WORD,   /* a name or keyword without quotes */
	CQL_TOKEN_QUOTED, /* a name in double quotes */
	CQL_TOKEN_STRING, /* in single quotes, or between $$ */
	CQL_TOKEN_INTEGER,
	CQL_TOKEN_FLOAT,
	CQL_TOKEN_UUID,
	CQL_TOKEN_BLOB,
	CQL_TOKEN_DURATION,
	CQL_TOKEN_SIGN, /* an operator, a bracket, ?, : */
	CQL_TOKEN_BAD,
};

struct cql_token {
	enum cql_token_kind kind;
	size_t at, length; /* in the text */
	size_t before;     /* the end of the token in front of it */
};

struct cql_parser {
	struct cql *q;
	struct str text;
	struct cql_token token; /* the one to be taken next */
	unsigned depth;         /* of rules inside each other */
	bool has_columns;       /* terms may be columns: selectors, not values */
	struct str *markers;
	size_t marker_count, marker_cap;
};

/* The token at or behind `from`, which is where the one in front of it ends. */
struct cql_token cql_token_at(struct str text, size_t from);

static inline void
cql_next(struct cql_parser *p)
{
	p->token = cql_token_at(p->text, p->token.at + p->token.length);
}

static inline struct cql_token
cql_peek(const struct cql_parser *p)
{
	return cql_token_at(p->text, p->token.at + p->token.length);
}

static inline struct str
cql_token_text(const struct cql_parser *p, struct cql_token t)
{
	return str_of(p->text.ptr + t.at, t.length);
}

/* ---- parser.c: one token ---- */

void cql_parser_init(struct cql_parser *p, struct cql *q, struct str text);

bool cql_is_word(const struct cql_parser *p, struct cql_token t, const char *word);
bool cql_is_sign(const struct cql_parser *p, struct cql_token t, const char *sign);
bool cql_at_word(const struct cql_parser *p, const char *word);
bool cql_at_sign(const struct cql_parser *p, const char *sign);
/* Takes the token if it is that one. */
bool cql_skip_word(struct cql_parser *p, const char *word);
bool cql_skip_sign(struct cql_parser *p, const char *sign);
/* Takes two words if both are there: "ALLOW", "FILTERING". */
bool cql_skip_words(struct cql_parser *p, const char *first, const char *second);
/* The same, or a syntax error. */
MUST_USE enum status cql_take_word(struct cql_parser *p, const char *word);
MUST_USE enum status cql_take_sign(struct cql_parser *p, const char *sign);

/* The syntax error at the token. */
MUST_USE enum status cql_unexpected(struct cql_parser *p);
/* Another error of the table that begins with line and column. */
MUST_USE enum status cql_fail_at(struct cql_parser *p, enum cql_error e, struct str what);

/* A name: a word that is not reserved, in lower case, or one in quotes. */
bool cql_token_is_name(const struct cql_parser *p, struct cql_token t);
MUST_USE enum status cql_take_name(struct cql_parser *p, struct str *ret);
/* A name, or any word: names of functions and properties, where keywords are fine. */
MUST_USE enum status cql_take_word_name(struct cql_parser *p, struct str *ret);
/* A table's, type's or index's name with or without a keyspace; lengths are checked. */
MUST_USE enum status cql_take_qualified(struct cql_parser *p, const char *what,
					struct cql_name *ret);
/* A keyspace's name alone, of a length that is right. */
MUST_USE enum status cql_take_keyspace(struct cql_parser *p, struct str *ret);
/* A text constant's content. */
MUST_USE enum status cql_take_string(struct cql_parser *p, struct str *ret);
/* The content of a token that is a text constant or a quoted name. */
MUST_USE enum status cql_unquote(struct cql_parser *p, struct cql_token t, struct str *ret);
/* A new marker's number: for `?` with a name whose ptr is NULL. */
MUST_USE enum status cql_add_marker(struct cql_parser *p, struct str name, unsigned *ret);

/* A rule that may contain itself begins and ends; CQL_E_TOO_DEEP. */
MUST_USE enum status cql_enter(struct cql_parser *p);
void cql_leave(struct cql_parser *p);

/* ---- parse_type.c ---- */

MUST_USE enum status cql_take_type(struct cql_parser *p, const struct cql_type **ret);

/* ---- parse_term.c ---- */

/* A value: no columns in it. */
MUST_USE enum status cql_take_term(struct cql_parser *p, struct cql_term **ret);
/* What a SELECT asks for. */
MUST_USE enum status cql_take_selector(struct cql_parser *p, struct cql_term **ret);
/* -> 'a' -> 0 ->> 'b', behind a column. */
MUST_USE enum status cql_take_path(struct cql_parser *p, const struct cql_term *const **ret,
				   size_t *ret_count, bool *ret_as_text);

/* ---- parse_relation.c ---- */

/* The conditions behind WHERE, with AND between them. */
MUST_USE enum status cql_take_where(struct cql_parser *p, struct cql_relations *ret);
/* The conditions of IF, behind the word, without [NOT] EXISTS. */
MUST_USE enum status cql_take_conditions(struct cql_parser *p, struct cql_relations *ret);

/* ---- parse_select.c, parse_modify.c, parse_schema.c, parse_role.c, parse_describe.c ---- */

MUST_USE enum status cql_take_select(struct cql_parser *p, struct cql_select *ret);
MUST_USE enum status cql_take_insert(struct cql_parser *p, struct cql_insert *ret);
MUST_USE enum status cql_take_update(struct cql_parser *p, struct cql_update *ret);
MUST_USE enum status cql_take_delete(struct cql_parser *p, struct cql_delete *ret);
/* USING TIMESTAMP t AND TTL n, if it is there. */
MUST_USE enum status cql_take_using(struct cql_parser *p, bool has_ttl, struct cql_using *ret);

/* Statements whose first word was taken; *ret has its text and nothing else yet. */
MUST_USE enum status cql_take_create(struct cql_parser *p, struct cql_statement *ret);
MUST_USE enum status cql_take_alter(struct cql_parser *p, struct cql_statement *ret);
MUST_USE enum status cql_take_drop(struct cql_parser *p, struct cql_statement *ret);
MUST_USE enum status cql_take_role(struct cql_parser *p, bool is_user, bool is_new,
				   struct cql_statement *ret);
MUST_USE enum status cql_take_grant(struct cql_parser *p, bool revokes, struct cql_statement *ret);
MUST_USE enum status cql_take_list(struct cql_parser *p, struct cql_statement *ret);
MUST_USE enum status cql_take_describe(struct cql_parser *p, struct cql_statement *ret);

#endif
