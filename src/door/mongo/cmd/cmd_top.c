/* top: how often and how long commands have worked on each collection. */

#include "door/mongo/cmd/commands.h"
#include "door/mongo/txn/mongo_int.h"
#include "loop/sort.h"

/* A collection, with its name in the call's arena. */
struct row {
	struct str name;
	struct usage usage;
};

/* A copy of what is counted. */
struct rows {
	struct call *call;
	struct row *all;
	size_t count;
	size_t cap;
	bool failed; /* memory was short */
};

static void
take_row(void *arg, struct str name, const uint64_t *figures)
{
	struct rows *r = arg;
	struct row *grown = arena_grow(r->call->arena, r->all, r->count, &r->cap, sizeof(*grown));

	name = arena_dup(r->call->arena, name);
	r->failed = r->failed || !grown || !name.ptr;
	if (r->failed)
		return;
	r->all = grown;
	r->all[r->count++] = (struct row){ name, usage_of(figures) };
}

static enum status
compare_rows(const void *arg, const void *a, const void *b, int *ret)
{
	(void)arg;
	return sort_compare_strs(((const struct row *)a)->name, ((const struct row *)b)->name, ret);
}

static void
put_figure(struct bson_builder *b, const char *name, struct usage_figure figure)
{
	bson_begin_document(b, str_from_cstr(name));
	bson_put_int64(b, STR("time"), (int64_t)figure.us);
	bson_put_int64(b, STR("count"), (int64_t)figure.count);
	bson_end(b);
}

static void
put_row(struct bson_builder *b, const struct row *row)
{
	const struct usage *usage = &row->usage;

	bson_begin_document(b, row->name);
	put_figure(b, "total", usage_sum(usage, USAGE_READS | USAGE_WRITES));
	put_figure(b, "readLock", usage_sum(usage, USAGE_READS));
	put_figure(b, "writeLock", usage_sum(usage, USAGE_WRITES));
	put_figure(b, "queries", usage->of[USAGE_QUERY]);
	put_figure(b, "getmore", usage->of[USAGE_GET_MORE]);
	put_figure(b, "insert", usage->of[USAGE_INSERT]);
	put_figure(b, "update", usage->of[USAGE_UPDATE]);
	put_figure(b, "remove", usage->of[USAGE_DELETE]);
	put_figure(b, "commands", usage_sum(usage, 1 << USAGE_COMMAND | 1 << USAGE_CHANGE));
	bson_end(b);
}

enum status
mongo_run_top(struct call *c)
{
	struct rows r = { .call = c };

	counts_each(&c->mongo->usages.collections, take_row, &r);
	if (r.failed)
		return STATUS_LIMIT;
	TRY(sort_items(r.all, r.count, sizeof(*r.all), compare_rows, NULL, c->arena));
	bson_begin_document(c->reply, STR("totals"));
	bson_put_string(c->reply, STR("note"), STR("all times in microseconds"));
	for (size_t i = 0; i < r.count; i++)
		put_row(c->reply, &r.all[i]);
	bson_end(c->reply);
	return STATUS_OK;
}
