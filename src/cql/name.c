#include "base/words.h"
#include "cql/type.h"

bool
cql_word_is_reserved(struct str word)
{
	static const char *const reserved[] = {
		"add",         "allow",        "alter",   "and",      "apply",        "asc",
		"authorize",   "batch",        "begin",   "by",       "columnfamily", "create",
		"default",     "delete",       "desc",    "describe", "drop",         "entries",
		"execute",     "from",         "full",    "grant",    "if",           "in",
		"index",       "infinity",     "insert",  "into",     "is",           "keyspace",
		"limit",       "materialized", "mbean",   "mbeans",   "modify",       "nan",
		"norecursive", "not",          "null",    "on",       "or",           "order",
		"primary",     "rename",       "replace", "revoke",   "schema",       "select",
		"set",         "table",        "to",      "token",    "truncate",     "unlogged",
		"unset",       "update",       "use",     "using",    "view",         "where",
		"with",
	};

	return WORDS_HAVE(reserved, word);
}

static bool
is_plain(struct str name)
{
	if (!name.len || (name.ptr[0] >= '0' && name.ptr[0] <= '9'))
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_')
			return false;
	}
	return name.ptr[0] != '_' && !cql_word_is_reserved(name);
}

static void
print_quoted(struct buf *out, struct str text, char quote)
{
	buf_append_byte(out, (uint8_t)quote);
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] == quote)
			buf_append_byte(out, (uint8_t)quote);
		buf_append_byte(out, (uint8_t)text.ptr[i]);
	}
	buf_append_byte(out, (uint8_t)quote);
}

void
cql_name_print(struct buf *out, struct str name)
{
	if (is_plain(name))
		buf_append_str(out, name);
	else
		print_quoted(out, name, '"');
}

void
cql_text_print(struct buf *out, struct str text)
{
	print_quoted(out, text, '\'');
}
