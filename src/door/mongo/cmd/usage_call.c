/* What a command counts for. */
#include <string.h>

#include "door/mongo/cmd/commands.h"
#include "door/mongo/txn/data.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/usage.h"

static enum usage_kind
kind_of(const struct command *command)
{
	if (command->run == mongo_run_find)
		return USAGE_QUERY;
	if (command->run == mongo_run_get_more)
		return USAGE_GET_MORE;
	if (command->run == mongo_run_insert)
		return USAGE_INSERT;
	if (command->run == mongo_run_update)
		return USAGE_UPDATE;
	if (command->run == mongo_run_delete)
		return USAGE_DELETE;
	return command->flags & COMMAND_WRITES ? USAGE_CHANGE : USAGE_COMMAND;
}

/* The collection that a command works on; empty: none. */
static struct str
collection_of(const struct call *c)
{
	struct bson_value name;

	if (c->command->run == mongo_run_aggregate && c->first.type == BSON_STRING)
		return bson_text(&c->first);
	if (c->command->run == mongo_run_get_more && bson_find(c->body, STR("collection"), &name) &&
	    name.type == BSON_STRING)
		return bson_text(&name);
	/* Of a pipeline without a collection it is a name of no collection. */
	return str_starts_with(c->collection, STR("$cmd")) ? STR("") : c->collection;
}

/* The statements of `ops`, by what each begins with. */
static void
count_bulk(struct usages *u, const struct arg_value *ops)
{
	static const char *const names[USAGE_KINDS] = {
		[USAGE_INSERT] = "insert", [USAGE_UPDATE] = "update", [USAGE_DELETE] = "delete"
	};
	uint64_t counts[USAGE_KINDS] = { 0 };
	struct data_list list;
	struct bson_element e;
	struct bson_iter i;
	struct str op;

	for (data_list_begin(&list, ops); data_list_next(&list, &op);) {
		bson_iter_begin(&i, op);
		if (!op.len || !bson_iter_read(&i, &e))
			continue;
		for (size_t kind = 0; kind < USAGE_KINDS; kind++)
			if (names[kind] && str_eq(e.name, str_from_cstr(names[kind])))
				counts[kind]++;
	}
	for (size_t kind = 0; kind < USAGE_KINDS; kind++)
		if (counts[kind])
			atomic_fetch_add(&u->statements[kind], counts[kind]);
}

/* The member with the documents, or the statements, of a command; NULL: it has none. */
static const struct arg_value *
documents_of(const struct call *c)
{
	for (size_t i = 0; c->command->args && c->command->args[i].name; i++)
		if (c->command->args[i].types & ARG_DOCUMENTS)
			return c->args[i].given ? &c->args[i] : NULL;
	return NULL;
}

static void
count_statements(struct usages *u, const struct call *c, enum usage_kind kind)
{
	const struct arg_value *documents = documents_of(c);
	struct data_list list;
	uint64_t count = 0;
	struct str doc;

	if (documents && c->command->run == mongo_run_bulk_write)
		count_bulk(u, documents);
	if (documents && kind != USAGE_CHANGE && kind != USAGE_COMMAND)
		for (data_list_begin(&list, documents); data_list_next(&list, &doc);)
			count++;
	else
		count = 1;
	atomic_fetch_add_explicit(&u->statements[kind], count, memory_order_relaxed);
}

void
usage_count(struct usages *u, const struct call *c, uint64_t us, bool succeeded)
{
	bool drops_all = c->command->run == mongo_run_drop_database;
	char name[DATA_NS_BYTES + 1];
	struct str collection = collection_of(c);
	enum usage_kind kind = kind_of(c->command);
	size_t len = c->db.len + 1 + collection.len;

	count_statements(u, c, kind);
	ops_count(&mongo_ops, kind, us * 1000);
	if (!succeeded || (!collection.len && !drops_all) || len > DATA_NS_BYTES)
		return;
	memcpy(name, c->db.ptr, c->db.len);
	name[c->db.len] = '.';
	if (collection.len)
		memcpy(name + c->db.len + 1, collection.ptr, collection.len);
	if (drops_all || c->command->run == mongo_run_drop)
		counts_forget(&u->collections, str_of(name, len), drops_all);
	else
		usage_add(u, str_of(name, len), kind, us);
}
