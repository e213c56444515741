#include "cql/parse_int.h"

static enum status
take_if_not_exists(struct cql_parser *p, bool *ret)
{
	*ret = cql_skip_word(p, "if");
	if (!*ret)
		return STATUS_OK;
	TRY(cql_take_word(p, "not"));
	return cql_take_word(p, "exists");
}

static enum status
take_if_exists(struct cql_parser *p, bool *ret)
{
	*ret = cql_skip_word(p, "if");
	return *ret ? cql_take_word(p, "exists") : STATUS_OK;
}

/*
 * True if another definition follows. In parentheses there may be none between commas, and none
 * behind the last one.
 */
static bool
skip_commas(struct cql_parser *p, bool enclosed)
{
	bool any = cql_skip_sign(p, ",");

	while (any && enclosed && cql_skip_sign(p, ","))
		;
	return any && !(enclosed && cql_at_sign(p, ")"));
}

/* Names with commas between them, up to a parenthesis, which is taken. */
static enum status
take_names(struct cql_parser *p, const struct str **ret, size_t *ret_count)
{
	struct str *names = NULL;
	size_t count = 0, cap = 0;

	do {
		TRY(arena_room(p->q->arena, &names, count, &cap, sizeof(*names)));
		TRY(cql_take_name(p, &names[count]));
		count++;
	} while (cql_skip_sign(p, ","));
	*ret = names;
	*ret_count = count;
	return cql_take_sign(p, ")");
}

/* ---- Properties ---- */

static bool
is_word_of_constants(const struct cql_parser *p)
{
	return cql_at_word(p, "true") || cql_at_word(p, "false") || cql_at_word(p, "nan") ||
	       cql_at_word(p, "infinity");
}

/* A constant as text: a string, a number, a boolean. */
static enum status
take_constant(struct cql_parser *p, struct str *ret, bool *ret_is_text)
{
	struct cql_token begin = p->token;

	*ret_is_text = p->token.kind == CQL_TOKEN_STRING;
	if (*ret_is_text)
		return cql_take_string(p, ret);
	if (cql_at_sign(p, "-"))
		cql_next(p);
	if (p->token.kind == CQL_TOKEN_WORD && is_word_of_constants(p)) {
		TRY(cql_take_word_name(p, ret));
		return STATUS_OK;
	}
	if (p->token.kind != CQL_TOKEN_INTEGER && p->token.kind != CQL_TOKEN_FLOAT &&
	    p->token.kind != CQL_TOKEN_UUID && p->token.kind != CQL_TOKEN_DURATION &&
	    p->token.kind != CQL_TOKEN_BLOB)
		return cql_unexpected(p);
	cql_next(p);
	*ret = str_of(p->text.ptr + begin.at, p->token.before - begin.at);
	return STATUS_OK;
}

static enum status
take_map(struct cql_parser *p, struct cql_property *to)
{
	struct cql_property *list = NULL;
	size_t cap = 0;
	bool text;

	to->is_map = true;
	TRY(cql_take_sign(p, "{"));
	if (cql_skip_sign(p, "}"))
		return STATUS_OK;
	do {
		TRY(arena_room(p->q->arena, &list, to->count, &cap, sizeof(*list)));
		list[to->count] = (struct cql_property){ 0 };
		TRY(take_constant(p, &list[to->count].name, &text));
		TRY(cql_take_sign(p, ":"));
		TRY(take_constant(p, &list[to->count].value, &list[to->count].is_text));
		to->count++;
	} while (cql_skip_sign(p, ","));
	to->entries = list;
	return cql_take_sign(p, "}");
}

static enum status
take_property(struct cql_parser *p, struct cql_property *to)
{
	*to = (struct cql_property){ 0 };
	if (cql_at_word(p, "with"))
		return cql_unexpected(p);
	TRY(cql_take_word_name(p, &to->name));
	TRY(cql_take_sign(p, "="));
	if (cql_at_sign(p, "{"))
		return take_map(p, to);
	return take_constant(p, &to->value, &to->is_text);
}

struct property_list {
	struct cql_property *list;
	size_t count, cap;
};

static enum status
append_property(struct cql_parser *p, struct property_list *to)
{
	TRY(arena_room(p->q->arena, &to->list, to->count, &to->cap, sizeof(*to->list)));
	TRY(take_property(p, &to->list[to->count]));
	to->count++;
	return STATUS_OK;
}

static enum status
take_properties(struct cql_parser *p, struct cql_properties *ret)
{
	struct property_list found = { 0 };

	do
		TRY(append_property(p, &found));
	while (cql_skip_word(p, "and"));
	*ret = (struct cql_properties){ found.count, found.list };
	return STATUS_OK;
}

static enum status
take_orders(struct cql_parser *p, const struct cql_order **ret, size_t *ret_count)
{
	struct cql_order *list = NULL;
	size_t count = 0, cap = 0;

	TRY(cql_take_word(p, "by"));
	TRY(cql_take_sign(p, "("));
	do {
		TRY(arena_room(p->q->arena, &list, count, &cap, sizeof(*list)));
		list[count] = (struct cql_order){ 0 };
		TRY(cql_take_name(p, &list[count].column));
		list[count].descending = cql_skip_word(p, "desc");
		if (!list[count].descending)
			TRY(cql_take_word(p, "asc"));
		count++;
	} while (cql_skip_sign(p, ","));
	*ret = list;
	*ret_count = count;
	return cql_take_sign(p, ")");
}

/* ---- Keyspaces ---- */

static enum status
take_keyspace(struct cql_parser *p, bool is_new, struct cql_keyspace *ret)
{
	if (is_new)
		TRY(take_if_not_exists(p, &ret->if_not_exists));
	else
		TRY(take_if_exists(p, &ret->if_exists));
	TRY(cql_take_keyspace(p, &ret->name));
	TRY(cql_take_word(p, "with"));
	return take_properties(p, &ret->with);
}

/* ---- Tables ---- */

struct table_lists {
	struct cql_column *columns;
	struct str *clustering;
	size_t column_cap, clustering_cap;
};

static enum status
take_primary_key(struct cql_parser *p, struct table_lists *lists, struct cql_create_table *t)
{
	struct str *alone;

	t->key_clauses++;
	TRY(cql_take_sign(p, "("));
	if (cql_skip_sign(p, "(")) {
		TRY(take_names(p, &t->partition, &t->partition_count));
	} else {
		alone = arena_alloc(p->q->arena, sizeof(*alone));
		if (!alone)
			return STATUS_LIMIT;
		TRY(cql_take_name(p, alone));
		t->partition = alone;
		t->partition_count = 1;
	}
	while (cql_skip_sign(p, ",")) {
		TRY(arena_room(p->q->arena, &lists->clustering, t->clustering_count,
			       &lists->clustering_cap, sizeof(*lists->clustering)));
		TRY(cql_take_name(p, &lists->clustering[t->clustering_count]));
		t->clustering_count++;
	}
	t->clustering = lists->clustering;
	return cql_take_sign(p, ")");
}

static enum status
take_column(struct cql_parser *p, struct table_lists *lists, struct cql_create_table *t)
{
	struct cql_column *c;
	struct str *alone;

	TRY(arena_room(p->q->arena, &lists->columns, t->column_count, &lists->column_cap,
		       sizeof(*lists->columns)));
	c = &lists->columns[t->column_count];
	*c = (struct cql_column){ 0 };
	TRY(cql_take_name(p, &c->name));
	TRY(cql_take_type(p, &c->type));
	c->is_static = cql_skip_word(p, "static");
	t->column_count++;
	if (!cql_skip_word(p, "primary"))
		return STATUS_OK;
	TRY(cql_take_word(p, "key"));
	t->key_clauses++;
	alone = arena_alloc(p->q->arena, sizeof(*alone));
	if (!alone)
		return STATUS_LIMIT;
	*alone = c->name;
	t->partition = alone;
	t->partition_count = 1;
	return STATUS_OK;
}

static enum status
take_table_options(struct cql_parser *p, struct cql_create_table *t)
{
	struct property_list found = { 0 };

	do {
		if (cql_skip_words(p, "compact", "storage"))
			t->compact_storage = true;
		else if (cql_skip_words(p, "clustering", "order"))
			TRY(take_orders(p, &t->clustering_order, &t->order_count));
		else
			TRY(append_property(p, &found));
	} while (cql_skip_word(p, "and"));
	t->with = (struct cql_properties){ found.count, found.list };
	return STATUS_OK;
}

static enum status
take_create_table(struct cql_parser *p, struct cql_create_table *t)
{
	struct table_lists lists = { 0 };

	TRY(take_if_not_exists(p, &t->if_not_exists));
	TRY(cql_take_qualified(p, "Table", &t->table));
	TRY(cql_take_sign(p, "("));
	do {
		if (cql_at_word(p, "primary")) {
			cql_next(p);
			TRY(cql_take_word(p, "key"));
			TRY(take_primary_key(p, &lists, t));
		} else {
			TRY(take_column(p, &lists, t));
		}
	} while (skip_commas(p, true));
	TRY(cql_take_sign(p, ")"));
	t->columns = lists.columns;
	return cql_skip_word(p, "with") ? take_table_options(p, t) : STATUS_OK;
}

/* ---- Columns and fields that are added, renamed ---- */

/* `name type [STATIC]`, one or several in parentheses or with commas between them. */
static enum status
take_typed_names(struct cql_parser *p, bool is_table, const struct cql_column **ret,
		 size_t *ret_count)
{
	struct cql_column *list = NULL;
	size_t count = 0, cap = 0;
	bool enclosed = cql_skip_sign(p, "(");

	do {
		TRY(arena_room(p->q->arena, &list, count, &cap, sizeof(*list)));
		list[count] = (struct cql_column){ 0 };
		TRY(cql_take_name(p, &list[count].name));
		TRY(cql_take_type(p, &list[count].type));
		list[count].is_static = is_table && cql_skip_word(p, "static");
		count++;
	} while (skip_commas(p, enclosed));
	*ret = list;
	*ret_count = count;
	return enclosed ? cql_take_sign(p, ")") : STATUS_OK;
}

static enum status
take_dropped(struct cql_parser *p, struct cql_alter_table *t)
{
	struct cql_column *list = NULL;
	size_t cap = 0;
	bool enclosed = cql_skip_sign(p, "(");
	struct cql_using using;

	do {
		TRY(arena_room(p->q->arena, &list, t->column_count, &cap, sizeof(*list)));
		list[t->column_count] = (struct cql_column){ 0 };
		TRY(cql_take_name(p, &list[t->column_count].name));
		t->column_count++;
	} while (cql_skip_sign(p, ","));
	t->columns = list;
	if (enclosed)
		TRY(cql_take_sign(p, ")"));
	TRY(cql_take_using(p, false, &using));
	t->timestamp = using.timestamp;
	return STATUS_OK;
}

static enum status
take_renames(struct cql_parser *p, const struct cql_rename **ret, size_t *ret_count)
{
	struct cql_rename *list = NULL;
	size_t count = 0, cap = 0;

	do {
		TRY(arena_room(p->q->arena, &list, count, &cap, sizeof(*list)));
		TRY(cql_take_name(p, &list[count].from));
		TRY(cql_take_word(p, "to"));
		TRY(cql_take_name(p, &list[count].to));
		count++;
	} while (cql_skip_word(p, "and"));
	*ret = list;
	*ret_count = count;
	return STATUS_OK;
}

/* `name TYPE type`, behind ALTER. */
static enum status
take_retyped(struct cql_parser *p, const struct cql_column **ret, size_t *ret_count)
{
	struct cql_column *c = arena_zalloc(p->q->arena, sizeof(*c));

	if (!c)
		return STATUS_LIMIT;
	TRY(cql_take_name(p, &c->name));
	TRY(cql_take_word(p, "type"));
	*ret = c;
	*ret_count = 1;
	return cql_take_type(p, &c->type);
}

static enum status
take_alter_table(struct cql_parser *p, struct cql_alter_table *t)
{
	TRY(take_if_exists(p, &t->if_exists));
	TRY(cql_take_qualified(p, "Table", &t->table));
	if (cql_skip_word(p, "add")) {
		t->kind = CQL_ALTER_ADD;
		TRY(take_if_not_exists(p, &t->if_not_exists));
		return take_typed_names(p, true, &t->columns, &t->column_count);
	}
	if (cql_skip_word(p, "drop")) {
		if (cql_skip_words(p, "compact", "storage")) {
			t->kind = CQL_ALTER_DROP_COMPACT;
			return STATUS_OK;
		}
		t->kind = CQL_ALTER_DROP;
		TRY(take_if_exists(p, &t->if_column_exists));
		return take_dropped(p, t);
	}
	if (cql_skip_word(p, "alter")) {
		t->kind = CQL_ALTER_COLUMN_TYPE;
		return take_retyped(p, &t->columns, &t->column_count);
	}
	if (cql_skip_word(p, "rename")) {
		t->kind = CQL_ALTER_RENAME;
		TRY(take_if_exists(p, &t->if_column_exists));
		return take_renames(p, &t->renames, &t->rename_count);
	}
	t->kind = CQL_ALTER_WITH;
	TRY(cql_take_word(p, "with"));
	return take_properties(p, &t->with);
}

/* ---- Types ---- */

static enum status
take_create_type(struct cql_parser *p, struct cql_create_type *t)
{
	TRY(take_if_not_exists(p, &t->if_not_exists));
	TRY(cql_take_qualified(p, "Type", &t->type));
	if (!cql_at_sign(p, "("))
		return cql_take_sign(p, "(");
	return take_typed_names(p, false, &t->fields, &t->count);
}

static enum status
take_alter_type(struct cql_parser *p, struct cql_alter_type *t)
{
	TRY(take_if_exists(p, &t->if_exists));
	TRY(cql_take_qualified(p, "Type", &t->type));
	if (cql_skip_word(p, "add")) {
		t->kind = CQL_ALTER_ADD;
		TRY(take_if_not_exists(p, &t->if_not_exists));
		return take_typed_names(p, false, &t->fields, &t->field_count);
	}
	if (cql_skip_word(p, "alter")) {
		t->kind = CQL_ALTER_COLUMN_TYPE;
		return take_retyped(p, &t->fields, &t->field_count);
	}
	t->kind = CQL_ALTER_RENAME;
	TRY(cql_take_word(p, "rename"));
	TRY(take_if_exists(p, &t->if_field_exists));
	return take_renames(p, &t->renames, &t->rename_count);
}

/* ---- Indexes ---- */

static enum cql_index_part
skip_index_part(struct cql_parser *p)
{
	static const struct {
		const char *word;
		enum cql_index_part part;
	} parts[] = {
		{ "values", CQL_INDEX_VALUES },
		{ "keys", CQL_INDEX_KEYS },
		{ "entries", CQL_INDEX_ENTRIES },
		{ "full", CQL_INDEX_FULL },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (cql_at_word(p, parts[i].word) && cql_is_sign(p, cql_peek(p), "(")) {
			cql_next(p);
			cql_next(p);
			return parts[i].part;
		}
	}
	return CQL_INDEX_PLAIN;
}

static enum status
take_target(struct cql_parser *p, struct cql_index_target *t)
{
	struct cql_term *term;

	*t = (struct cql_index_target){ .part = skip_index_part(p) };
	if (t->part != CQL_INDEX_PLAIN) {
		TRY(cql_take_name(p, &t->column));
		return cql_take_sign(p, ")");
	}
	TRY(cql_take_selector(p, &term));
	if (term->kind == CQL_TERM_COLUMN)
		t->column = term->text;
	else if (term->kind == CQL_TERM_JSON || term->kind == CQL_TERM_JSON_TEXT)
		t->term = term;
	else
		return cql_unexpected(p);
	return STATUS_OK;
}

static enum status
take_targets(struct cql_parser *p, struct cql_create_index *x)
{
	struct cql_index_target *list = NULL;
	size_t cap = 0;
	bool hashed;

	TRY(cql_take_sign(p, "("));
	if (cql_skip_sign(p, ")"))
		return STATUS_OK;
	hashed = cql_skip_sign(p, "(");
	do {
		TRY(arena_room(p->q->arena, &list, x->target_count, &cap, sizeof(*list)));
		TRY(take_target(p, &list[x->target_count]));
		x->target_count++;
		if (hashed && cql_skip_sign(p, ")")) {
			hashed = false;
			x->hash_count = x->target_count;
		}
	} while (cql_skip_sign(p, ","));
	x->targets = list;
	return cql_take_sign(p, ")");
}

static enum status
take_index_options(struct cql_parser *p, struct cql_create_index *x)
{
	struct property_list found = { 0 };

	do {
		if (cql_skip_words(p, "clustering", "order")) {
			TRY(take_orders(p, &x->clustering_order, &x->order_count));
			continue;
		}
		/* WITH OPTIONS = { … } */
		TRY(append_property(p, &found));
	} while (cql_skip_word(p, "and"));
	x->with = (struct cql_properties){ found.count, found.list };
	return STATUS_OK;
}

static enum status
take_create_index(struct cql_parser *p, struct cql_create_index *x)
{
	struct cql_name name;

	TRY(take_if_not_exists(p, &x->if_not_exists));
	if (!cql_at_word(p, "on")) {
		TRY(cql_take_qualified(p, "Index", &name));
		x->name = name.name;
	}
	TRY(cql_take_word(p, "on"));
	TRY(cql_take_qualified(p, "Table", &x->table));
	TRY(take_targets(p, x));
	for (;;) {
		if (cql_skip_word(p, "using")) {
			TRY(cql_take_string(p, &x->using_class));
		} else if (cql_skip_word(p, "include") || cql_skip_word(p, "covering")) {
			TRY(cql_take_sign(p, "("));
			TRY(take_names(p, &x->include, &x->include_count));
		} else if (cql_skip_word(p, "with")) {
			TRY(take_index_options(p, x));
		} else if (cql_skip_word(p, "where")) {
			TRY(cql_take_where(p, &x->where));
		} else {
			return STATUS_OK;
		}
	}
}

/* ---- CREATE, ALTER, DROP ---- */

/*
 * What frond has not is refused by its name, and the rest of the statement is not read. *ret_found:
 * the token is such a name.
 */
static enum status
skip_refused(struct cql_parser *p, const char *verb, struct cql_statement *ret, bool *ret_found)
{
	static const char *const words[] = { "FUNCTION", "AGGREGATE", "TRIGGER" };
	const char *found = NULL;

	(void)cql_skip_words(p, "or", "replace");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (cql_skip_word(p, words[i]))
			found = words[i];
	if (!found && cql_skip_words(p, "materialized", "view"))
		found = "MATERIALIZED VIEW";
	*ret_found = found != NULL;
	if (!found)
		return STATUS_OK;
	ret->kind = CQL_REFUSED;
	ret->refused = arena_printf(p->q->arena, "%s %s", verb, found);
	if (!ret->refused.ptr)
		return STATUS_LIMIT;
	while (p->token.kind != CQL_TOKEN_END)
		cql_next(p);
	return STATUS_OK;
}

static bool
skip_table_word(struct cql_parser *p)
{
	return cql_skip_word(p, "table") || cql_skip_word(p, "columnfamily");
}

static bool
skip_keyspace_word(struct cql_parser *p)
{
	return cql_skip_word(p, "keyspace") || cql_skip_word(p, "schema");
}

enum status
cql_take_create(struct cql_parser *p, struct cql_statement *ret)
{
	bool refused;

	TRY(skip_refused(p, "CREATE", ret, &refused));
	if (refused)
		return STATUS_OK;
	if (skip_keyspace_word(p)) {
		ret->kind = CQL_CREATE_KEYSPACE;
		return take_keyspace(p, true, &ret->keyspace);
	}
	if (skip_table_word(p)) {
		ret->kind = CQL_CREATE_TABLE;
		return take_create_table(p, &ret->create_table);
	}
	if (cql_skip_word(p, "type")) {
		ret->kind = CQL_CREATE_TYPE;
		return take_create_type(p, &ret->create_type);
	}
	if (cql_at_word(p, "role") || cql_at_word(p, "user")) {
		bool user = cql_at_word(p, "user");

		cql_next(p);
		return cql_take_role(p, user, true, ret);
	}
	ret->kind = CQL_CREATE_INDEX;
	ret->create_index.unique = cql_skip_word(p, "unique");
	ret->create_index.custom = cql_skip_word(p, "custom");
	TRY(cql_take_word(p, "index"));
	return take_create_index(p, &ret->create_index);
}

enum status
cql_take_alter(struct cql_parser *p, struct cql_statement *ret)
{
	bool refused;

	TRY(skip_refused(p, "ALTER", ret, &refused));
	if (refused)
		return STATUS_OK;
	if (skip_keyspace_word(p)) {
		ret->kind = CQL_ALTER_KEYSPACE;
		return take_keyspace(p, false, &ret->keyspace);
	}
	if (skip_table_word(p)) {
		ret->kind = CQL_ALTER_TABLE;
		return take_alter_table(p, &ret->alter_table);
	}
	if (cql_skip_word(p, "type")) {
		ret->kind = CQL_ALTER_TYPE;
		return take_alter_type(p, &ret->alter_type);
	}
	if (cql_at_word(p, "role") || cql_at_word(p, "user")) {
		bool user = cql_at_word(p, "user");

		cql_next(p);
		return cql_take_role(p, user, false, ret);
	}
	return cql_unexpected(p);
}

enum status
cql_take_drop(struct cql_parser *p, struct cql_statement *ret)
{
	const char *what = NULL;
	bool refused;

	TRY(skip_refused(p, "DROP", ret, &refused));
	if (refused)
		return STATUS_OK;
	if (skip_keyspace_word(p)) {
		ret->kind = CQL_DROP_KEYSPACE;
		TRY(take_if_exists(p, &ret->drop.if_exists));
		return cql_take_keyspace(p, &ret->drop.name.name);
	}
	if (cql_skip_word(p, "role") || cql_skip_word(p, "user")) {
		ret->kind = CQL_DROP_ROLE;
		TRY(take_if_exists(p, &ret->drop.if_exists));
		if (p->token.kind == CQL_TOKEN_STRING)
			return cql_take_string(p, &ret->drop.name.name);
		return cql_take_name(p, &ret->drop.name.name);
	}
	if (skip_table_word(p)) {
		ret->kind = CQL_DROP_TABLE;
		what = "Table";
	} else if (cql_skip_word(p, "type")) {
		ret->kind = CQL_DROP_TYPE;
		what = "Type";
	} else if (cql_skip_word(p, "index")) {
		ret->kind = CQL_DROP_INDEX;
		what = "Index";
	} else {
		return cql_unexpected(p);
	}
	TRY(take_if_exists(p, &ret->drop.if_exists));
	return cql_take_qualified(p, what, &ret->drop.name);
}
