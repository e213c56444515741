#include "door/cql/schema/snapshot.h"

#include "base/hash.h"
#include "base/mem.h"
#include "model/timed/tables/index.h"

/* ---- Hashes ---- */

static uint64_t
hash_properties(uint64_t hash, const struct table_property *properties, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		hash = hash_keyed(hash, properties[i].name);
		hash = hash_keyed(hash, properties[i].value);
	}
	return hash;
}

static uint64_t
hash_table(const struct schema_table *t)
{
	const struct table_schema *s = t->schema;
	uint64_t hash = schema_table_hash(t);
	const struct table_index *indexes;
	size_t index_count;

	hash = hash_keyed(hash, str_of((const char *)s->id, sizeof(s->id)));
	hash = hash_keyed(hash, str_of((const char *)t->db->options, sizeof(t->db->options)));
	hash = hash_properties(hash, s->properties, s->property_count);
	for (size_t i = 0; i < s->dropped_count; i++)
		hash = hash_keyed(hash + s->dropped[i].dropped_us, s->dropped[i].column.name);
	indexes = table_indexes_of(t->db, &index_count);
	for (size_t i = 0; i < index_count; i++) {
		hash = hash_keyed(hash + indexes[i].number, indexes[i].name);
		hash = hash_keyed(hash, indexes[i].spec);
	}
	return hash;
}

static uint64_t
hash_type(const struct table_type *type)
{
	uint64_t hash = type->field_count;

	for (size_t i = 0; i < type->field_count; i++) {
		hash = hash_keyed(hash, type->fields[i].name);
		hash = hash_keyed(hash, type->fields[i].type);
	}
	return hash;
}

/* ---- Reading ---- */

struct making {
	struct schema_snapshot *snapshot;
	struct arena *scratch; /* the schema itself */
	struct schema_entry *entries;
	size_t count, cap;
	struct err *err;
};

static enum status
add(struct making *m, enum schema_target target, struct str keyspace, struct str object,
    uint64_t hash)
{
	struct arena *arena = m->snapshot->arena;
	struct schema_entry *e;

	TRY(arena_room(arena, &m->entries, m->count, &m->cap, sizeof(*m->entries)));
	e = &m->entries[m->count];
	*e = (struct schema_entry){ .target = target, .hash = hash };
	TRY(arena_copy(arena, keyspace, &e->keyspace));
	TRY(arena_copy(arena, object, &e->object));
	m->count++;
	return STATUS_OK;
}

static enum status
add_keyspace(struct making *m, const struct schema_keyspace *k)
{
	const struct table_keyspace *stored = k->stored;

	TRY(add(m, SCHEMA_KEYSPACE, k->name, STR(""),
		hash_properties(0, stored->properties, stored->property_count)));
	for (size_t i = 0; i < k->type_count; i++)
		TRY(add(m, SCHEMA_TYPE, k->name, k->types[i].name, hash_type(&k->types[i])));
	for (size_t i = 0; i < k->table_count; i++)
		TRY(add(m, SCHEMA_TABLE, k->name, k->tables[i]->name, hash_table(k->tables[i])));
	return STATUS_OK;
}

static enum status
read_body(struct kv_tx *tx, void *arg)
{
	struct making *m = arg;
	struct cql q = { .arena = m->scratch, .err = m->err };
	struct schema_types types = { .tx = tx, .arena = m->scratch };
	struct schema_all all;
	enum status status = STATUS_OK;

	arena_clear(m->scratch);
	arena_clear(m->snapshot->arena);
	m->entries = NULL;
	m->count = m->cap = 0;
	TRY(schema_read(&q, &types, STR(""), &all));
	memcpy(m->snapshot->stamp, all.stamp, sizeof(all.stamp));
	for (size_t i = 0; i < all.count && status == STATUS_OK; i++)
		status = add_keyspace(m, &all.keyspaces[i]);
	schema_close(&all);
	return status;
}

static enum status
snapshot_fill(struct schema_snapshot *s, struct kv_store *store, struct err *err)
{
	struct making m = { .snapshot = s,
			    .scratch = arena_new(SCHEMA_SNAPSHOT_BYTES),
			    .err = err };
	enum status status = STATUS_NOMEM;

	s->arena = arena_new(SCHEMA_SNAPSHOT_BYTES);
	if (m.scratch && s->arena)
		status = kv_run_read(store, read_body, &m, err);
	arena_free(m.scratch);
	s->entries = m.entries;
	s->count = m.count;
	return status;
}

enum status
schema_snapshot_read(struct kv_store *store, struct schema_snapshot **ret, struct err *err)
{
	struct schema_snapshot *s = mem_zalloc(sizeof(*s));
	enum status status;

	if (!s)
		return STATUS_NOMEM;
	status = snapshot_fill(s, store, err);
	if (status != STATUS_OK) {
		schema_snapshot_free(s);
		return status;
	}
	*ret = s;
	return STATUS_OK;
}

void
schema_snapshot_free(struct schema_snapshot *s)
{
	if (!s)
		return;
	arena_free(s->arena);
	mem_free(s);
}

/* ---- Comparing ---- */

static int
entry_compare(const struct schema_entry *a, const struct schema_entry *b)
{
	int order = str_cmp(a->keyspace, b->keyspace);

	if (order)
		return order;
	if (a->target != b->target)
		return a->target < b->target ? -1 : 1;
	return str_cmp(a->object, b->object);
}

void
schema_snapshot_compare(const struct schema_snapshot *before, const struct schema_snapshot *after,
			schema_differs *differs, void *arg)
{
	struct str dropped = { 0 }; /* the latest keyspace that is gone */
	size_t i = 0, j = 0;

	while (i < before->count || j < after->count) {
		const struct schema_entry *was = i < before->count ? &before->entries[i] : NULL;
		const struct schema_entry *is = j < after->count ? &after->entries[j] : NULL;
		int order = !was ? 1 : !is ? -1 : entry_compare(was, is);

		if (order < 0) {
			if (!dropped.ptr || !str_eq(dropped, was->keyspace))
				differs(arg, SCHEMA_DROPPED, was);
			if (was->target == SCHEMA_KEYSPACE)
				dropped = was->keyspace;
			i++;
		} else if (order > 0) {
			differs(arg, SCHEMA_CREATED, is);
			j++;
		} else {
			if (was->hash != is->hash)
				differs(arg, SCHEMA_UPDATED, is);
			i++;
			j++;
		}
	}
}
