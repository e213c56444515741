/* A $group that only counts the documents of a collection: its counter tells their number. */
#include "base/mem.h"
#include "door/mongo/cmd/aggregate.h"
#include "door/mongo/txn/data.h"
#include "door/mongo/txn/run.h"

struct counted {
	struct mql_source source;
	struct call *const *call; /* the command that runs now */
	struct str ns;
	struct str spec;
	struct data data;
	uint64_t count;
	bool told;
	struct buf document;
};

/* ---- What may be counted so ---- */

/* The same for all documents, whatever is in them. */
static bool
is_constant(const struct bson_value *v)
{
	return v->type == BSON_NULL || v->type == BSON_BOOL || bson_is_number(v) ||
	       (v->type == BSON_STRING && !str_starts_with(bson_text(v), STR("$")));
}

/* {$sum: 1} or {$count: {}} */
static bool
counts_one(const struct bson_value *v)
{
	struct bson_element e;
	struct bson_iter i;

	if (v->type != BSON_DOCUMENT || bson_count(bson_text(v)) != 1)
		return false;
	bson_iter_begin(&i, bson_text(v));
	if (!bson_iter_read(&i, &e))
		return false;
	return str_eq(e.name, STR("$count")) ||
	       (str_eq(e.name, STR("$sum")) && e.value.type == BSON_INT32 &&
		bson_integer(&e.value) == 1);
}

bool
mongo_aggregate_only_counts(struct str name, const struct bson_value *spec)
{
	struct bson_element e;
	struct bson_iter i;

	if (!str_eq(name, STR("$group")) || spec->type != BSON_DOCUMENT)
		return false;
	for (bson_iter_begin(&i, bson_text(spec)); bson_iter_read(&i, &e);)
		if (str_eq(e.name, STR("_id")) ? !is_constant(&e.value) : !counts_one(&e.value))
			return false;
	return true;
}

/* ---- Counting ---- */

static enum status
counted_body(struct kv_tx *tx, void *arg)
{
	struct counted *s = arg;

	TRY(data_open(&s->data, tx));
	s->count = 0;
	return s->data.is_there ? plain_count(&s->data.plain, &s->count) : STATUS_OK;
}

static enum status
counted_write(struct counted *s)
{
	struct bson_builder b;
	struct bson_element e;
	struct bson_value id;
	struct bson_iter i;

	bson_builder_init(&b, &s->document);
	bson_begin(&b);
	if (bson_find(s->spec, STR("_id"), &id))
		bson_put(&b, STR("_id"), &id);
	for (bson_iter_begin(&i, s->spec); bson_iter_read(&i, &e);) {
		if (str_eq(e.name, STR("_id")))
			continue;
		if (s->count <= INT32_MAX)
			bson_put_int32(&b, e.name, (int32_t)s->count);
		else
			bson_put_int64(&b, e.name, (int64_t)s->count);
	}
	bson_end(&b);
	return buf_status(&s->document);
}

static enum status
counted_next(struct mql_source *source, struct str *ret)
{
	struct counted *s = (struct counted *)source;
	enum status status;

	if (s->told)
		return STATUS_NOT_FOUND;
	s->told = true;
	data_init(&s->data, *s->call, s->ns, false);
	status = call_read(*s->call, counted_body, s);
	data_fini(&s->data);
	TRY(status);
	if (!s->count)
		return STATUS_NOT_FOUND;
	TRY(counted_write(s));
	*ret = buf_str(&s->document);
	return STATUS_OK;
}

static void
counted_close(struct mql_source *source)
{
	struct counted *s = (struct counted *)source;

	buf_release(&s->document);
	mem_free(s);
}

enum status
mongo_aggregate_counted(struct call *const *call, struct str ns, struct str spec,
			struct mql_source **ret)
{
	struct counted *s = mem_zalloc(sizeof(*s));

	if (!s)
		return STATUS_NOMEM;
	s->source = (struct mql_source){ counted_next, counted_close };
	s->call = call;
	s->ns = ns;
	s->spec = spec;
	s->document = BUF_INIT(BSON_MOST_BYTES);
	*ret = &s->source;
	return STATUS_OK;
}
