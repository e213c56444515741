#include "door/mongo/usage.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "door/mongo/commands.h"
#include "door/mongo/data.h"

enum {
	STRIPE_FIRST = 8, /* slots */
	STRIPE_MOST = 2 * USAGE_COLLECTIONS / USAGE_STRIPES,
};

void
usages_init(struct usages *u)
{
	for (size_t i = 0; i < USAGE_STRIPES; i++)
		pthread_mutex_init(&u->stripes[i].lock, NULL);
}

static void
stripe_clear(struct usage_stripe *s)
{
	for (size_t i = 0; i < s->size; i++)
		mem_free(s->rows[i].name);
	mem_free(s->rows);
}

void
usages_fini(struct usages *u)
{
	for (size_t i = 0; i < USAGE_STRIPES; i++) {
		stripe_clear(&u->stripes[i]);
		pthread_mutex_destroy(&u->stripes[i].lock);
	}
}

/* ---- Collections ---- */

/* The slot of a name, or the empty one where it belongs. NULL: there are no slots. */
static struct usage_row *
stripe_find(const struct usage_stripe *s, uint64_t hash, struct str name)
{
	for (size_t at = hash / USAGE_STRIPES; s->size; at++) {
		struct usage_row *row = &s->rows[at & (s->size - 1)];

		if (!row->name || str_eq(str_of(row->name, row->name_len), name))
			return row;
	}
	return NULL;
}

/* False for an empty slot, and for a collection that has been dropped since it was counted. */
static bool
row_is_used(const struct usage_row *row)
{
	for (size_t kind = 0; row->name && kind < USAGE_KINDS; kind++)
		if (row->of[kind].count)
			return true;
	return false;
}

static size_t
stripe_count_used(const struct usage_stripe *s)
{
	size_t used = 0;

	for (size_t i = 0; i < s->size; i++)
		used += row_is_used(&s->rows[i]);
	return used;
}

/* Makes room for one more, without those that were dropped. False: there is none. */
static bool
stripe_grow(struct usage_stripe *s)
{
	struct usage_stripe larger = { .size = s->size ? s->size : STRIPE_FIRST };

	if (s->count < s->size / 2)
		return true;
	if (stripe_count_used(s) > larger.size / 4)
		larger.size *= 2;
	larger.rows = larger.size <= STRIPE_MOST ? mem_zalloc(larger.size * sizeof(*larger.rows))
						 : NULL;
	if (!larger.rows)
		return false;
	for (size_t i = 0; i < s->size; i++) {
		struct usage_row *row = &s->rows[i];
		struct str name = str_of(row->name, row->name_len);

		if (!row_is_used(row)) {
			mem_free(row->name);
			continue;
		}
		*stripe_find(&larger, hash_keyed(0, name), name) = *row;
		larger.count++;
	}
	mem_free(s->rows);
	s->rows = larger.rows;
	s->size = larger.size;
	s->count = larger.count;
	return true;
}

static struct usage_row *
stripe_add(struct usage_stripe *s, uint64_t hash, struct str name)
{
	struct usage_row *row = stripe_find(s, hash, name);
	char *copy;

	if (row && row->name)
		return row;
	copy = stripe_grow(s) ? mem_alloc(name.len) : NULL;
	if (!copy)
		return NULL;
	memcpy(copy, name.ptr, name.len);
	row = stripe_find(s, hash, name);
	row->name = copy;
	row->name_len = name.len;
	s->count++;
	return row;
}

static void
count_collection(struct usages *u, struct str name, enum usage_kind kind, uint64_t us)
{
	uint64_t hash = hash_keyed(0, name);
	struct usage_stripe *s = &u->stripes[hash % USAGE_STRIPES];
	struct usage_row *row;

	pthread_mutex_lock(&s->lock);
	row = stripe_add(s, hash, name);
	if (row) {
		row->of[kind].count++;
		row->of[kind].us += us;
	}
	pthread_mutex_unlock(&s->lock);
}

void
usage_each(struct usages *u, usage_take *take, void *arg)
{
	for (size_t i = 0; i < USAGE_STRIPES; i++) {
		struct usage_stripe *s = &u->stripes[i];

		pthread_mutex_lock(&s->lock);
		for (size_t k = 0; k < s->size; k++)
			if (row_is_used(&s->rows[k]))
				take(arg, &s->rows[k]);
		pthread_mutex_unlock(&s->lock);
	}
}

/* Those of that name, or of names that begin so. */
struct forgetting {
	struct str name;
	bool begins;
};

static void
forget_row(void *arg, struct usage_row *row)
{
	const struct forgetting *f = arg;
	struct str name = str_of(row->name, row->name_len);

	if (f->begins ? str_starts_with(name, f->name) : str_eq(name, f->name))
		memset(row->of, 0, sizeof(row->of));
}

/* ---- Commands ---- */

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
		return c->first.text;
	if (c->command->run == mongo_run_get_more && bson_find(c->body, STR("collection"), &name) &&
	    name.type == BSON_STRING)
		return name.text;
	return c->collection;
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
	struct forgetting f;

	count_statements(u, c, kind);
	if (!succeeded || (!collection.len && !drops_all) || len > DATA_NS_BYTES)
		return;
	memcpy(name, c->db.ptr, c->db.len);
	name[c->db.len] = '.';
	if (collection.len)
		memcpy(name + c->db.len + 1, collection.ptr, collection.len);
	f = (struct forgetting){ str_of(name, len), drops_all };
	if (drops_all || c->command->run == mongo_run_drop)
		usage_each(u, forget_row, &f);
	else
		count_collection(u, f.name, kind, us);
}
