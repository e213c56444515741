#include "door/redis/acl/docs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "door/redis/acl/subcommand.h"

enum {
	DOCS_DEPTH = 8, /* of groups inside each other */
};

static int
docs_compare(const void *name, const void *docs)
{
	return strcmp(name, ((const struct command_docs *)docs)->name);
}

const struct command_docs *
docs_find(const char *name, const char *subcommand)
{
	char whole[SUBCOMMAND_NAME_BYTES];

	(void)snprintf(whole, sizeof(whole), "%s%s%s", name, subcommand ? "|" : "",
		       subcommand ? subcommand : "");
	return bsearch(whole, docs_table, docs_count, sizeof(docs_table[0]), docs_compare);
}

/* ---- The syntax ---- */

/* An argument without what is in its group. */
struct argument {
	struct str name;
	struct str spec;  /* ptr NULL: it is no key of a specification */
	struct str token; /* ptr NULL: it has none */
	struct str since; /* ptr NULL: as the command */
	struct str until; /* ptr NULL: it still holds */
	char type;        /* 0: none is said */
	char times;       /* '*', '+' or 0: once */
	char group;       /* '(', '<' or 0: it has none */
	bool optional;
};

static bool
take_char(struct str *rest, char c)
{
	if (!rest->len || rest->ptr[0] != c)
		return false;
	*rest = str_skip(*rest, 1);
	return true;
}

/* What comes in front of the first of these characters. */
static struct str
take_until(struct str *rest, const char *ends)
{
	size_t len = 0;
	struct str taken;

	while (len < rest->len && !strchr(ends, rest->ptr[len]))
		len++;
	taken = str_of(rest->ptr, len);
	*rest = str_skip(*rest, len);
	return taken;
}

/* A name or a token. */
static bool
take_word(struct str *rest, struct str *ret)
{
	if (!take_char(rest, '\'')) {
		*ret = take_until(rest, "#=:*+@!(<|>)] ");
		return ret->len > 0;
	}
	*ret = take_until(rest, "'");
	return take_char(rest, '\'');
}

static bool
take_argument(struct str *rest, struct argument *ret)
{
	*ret = (struct argument){ .optional = take_char(rest, '[') };
	if (!take_word(rest, &ret->name))
		return false;
	if (take_char(rest, '#'))
		ret->spec = take_until(rest, "=:*+@!(<|>)] ");
	if (take_char(rest, '=') && !take_word(rest, &ret->token))
		return false;
	if (take_char(rest, ':') && rest->len) {
		ret->type = rest->ptr[0];
		*rest = str_skip(*rest, 1);
	}
	if (rest->len && (rest->ptr[0] == '*' || rest->ptr[0] == '+')) {
		ret->times = rest->ptr[0];
		*rest = str_skip(*rest, 1);
	}
	if (take_char(rest, '@'))
		ret->since = take_until(rest, "!(<|>)] ");
	if (take_char(rest, '!'))
		ret->until = take_until(rest, "(<|>)] ");
	if (take_char(rest, '('))
		ret->group = '(';
	else if (take_char(rest, '<'))
		ret->group = '<';
	return true;
}

static const char *
type_name(const struct argument *a)
{
	if (a->group)
		return a->group == '<' ? "oneof" : "block";
	switch (a->type) {
	case 'i':
		return "integer";
	case 'd':
		return "double";
	case 'k':
		return "key";
	case 'p':
		return "pattern";
	case 's':
		return "string";
	case 'u':
		return "unix-time";
	case 0:
		return a->spec.ptr ? "key" : a->token.ptr ? "pure-token" : "string";
	default:
		return NULL;
	}
}

static void
answer_member(struct reply *r, const char *name, struct str value, size_t *count)
{
	if (!value.ptr)
		return;
	reply_bulk_cstr(r, name);
	reply_bulk(r, value);
	++*count;
}

static void
answer_flags(struct reply *r, const struct argument *a, size_t *count)
{
	if (!a->optional && !a->times)
		return;
	reply_bulk_cstr(r, "flags");
	reply_set(r, (size_t)a->optional + (a->times != 0) + (a->times == '+'));
	if (a->optional)
		reply_simple(r, "optional");
	if (a->times)
		reply_simple(r, "multiple");
	if (a->times == '+')
		reply_simple(r, "multiple_token");
	++*count;
}

static bool answer_arguments(struct reply *r, struct str *rest, char end, unsigned depth);

/* The argument in front of `rest`, with its group. */
static bool
answer_argument(struct reply *r, struct str *rest, unsigned depth)
{
	size_t place = reply_later(r);
	size_t count = 2;
	struct argument a;
	uint64_t spec = 0;

	if (!take_argument(rest, &a) || !type_name(&a))
		return false;
	reply_bulk_cstr(r, "name");
	reply_bulk(r, a.name);
	reply_bulk_cstr(r, "type");
	reply_bulk_cstr(r, type_name(&a));
	if (a.spec.ptr) {
		if (!str_to_u64(a.spec, &spec))
			return false;
		reply_bulk_cstr(r, "key_spec_index");
		reply_int(r, (int64_t)spec);
		count++;
	}
	answer_member(r, "token", a.token, &count);
	answer_member(r, "since", a.since, &count);
	answer_member(r, "deprecated_since", a.until, &count);
	answer_flags(r, &a, &count);
	if (a.group) {
		reply_bulk_cstr(r, "arguments");
		if (!answer_arguments(r, rest, a.group == '(' ? ')' : '>', depth + 1))
			return false;
		count++;
	}
	reply_later_end(r, place, '%', count);
	return !a.optional || take_char(rest, ']');
}

/* All up to `end`, which is taken too; 0: to the end of the text. */
static bool
answer_arguments(struct reply *r, struct str *rest, char end, unsigned depth)
{
	size_t place = reply_later(r);
	size_t count = 0;
	bool ended;

	if (depth > DOCS_DEPTH)
		return false;
	do {
		if (!answer_argument(r, rest, depth))
			return false;
		count++;
		ended = end ? take_char(rest, end) : rest->len == 0;
	} while (!ended && take_char(rest, end == '>' ? '|' : ' '));
	reply_later_end(r, place, '*', count);
	return ended;
}

bool
docs_answer_syntax(struct reply *r, const char *syntax)
{
	struct str rest = str_from_cstr(syntax);

	return answer_arguments(r, &rest, 0, 0);
}
