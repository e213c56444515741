/* Indexes of a collection: creating them, and keeping them when a document changes. */
#include "model/plain/index.h"

#include "bson/order.h"
#include "index/bson/entry.h"
#include "index/bson/form.h"
#include "model/plain/plain_int.h"

/* ---- Creating ---- */

bool
plain_wants_id_index(const struct catalog_db *db)
{
	struct str options = plain_options_of(db);

	return !plain_options_are_view(options) &&
	       !bson_is_empty(bson_find_document(options, STR("collation")));
}

static enum status
column_read(const struct bson_element *e, struct arena *arena, struct index_column *ret,
	    bool *ret_hashed, struct err *err)
{
	struct str rest = e->name;
	size_t count = 1, at = 0;
	struct str *path;

	*ret_hashed = e->value.type == BSON_STRING && str_eq(bson_text(&e->value), STR("hashed"));
	if (!*ret_hashed && !bson_is_number(&e->value))
		return err_set(err, STATUS_INVALID,
			       "a field of an index is followed by a number or \"hashed\"");
	for (size_t i = 0; i < e->name.len; i++)
		count += e->name.ptr[i] == '.';
	path = arena_alloc(arena, count * sizeof(*path));
	if (!path)
		return STATUS_LIMIT;
	while (at < count)
		path[at++] = str_cut(&rest, '.');
	for (size_t i = 0; i < count; i++)
		if (!path[i].len)
			return err_set(err, STATUS_INVALID,
				       "a field of an index has an empty name in its path");
	*ret = (struct index_column){ .path = path,
				      .path_count = count,
				      .descending = bson_to_double(&e->value) < 0 };
	return STATUS_OK;
}

static enum status
columns_read(struct str key, struct arena *arena, struct index_def *ret, struct err *err)
{
	size_t count = bson_count(key), at = 0;
	struct index_column *columns = arena_alloc(arena, count * sizeof(*columns));
	struct bson_element e;
	struct bson_iter i;
	bool hashed;

	if (!columns)
		return STATUS_LIMIT;
	for (bson_iter_begin(&i, key); bson_iter_read(&i, &e); at++) {
		TRY(column_read(&e, arena, &columns[at], &hashed, err));
		if (hashed && ret->hashed)
			return err_set(err, STATUS_INVALID, "an index has one hashed field");
		if (hashed)
			ret->hashed = (uint32_t)at + 1;
	}
	ret->columns = columns;
	ret->column_count = at;
	return STATUS_OK;
}

static enum status
terms_read(struct str spec, struct arena *arena, struct index_def *ret, struct err *err)
{
	struct bson_value key, name, filter, collation;

	*ret = (struct index_def){ .flags = INDEX_COVERING, .spec = spec };
	if (!bson_find(spec, STR("key"), &key) || key.type != BSON_DOCUMENT ||
	    !bson_find(spec, STR("name"), &name) || name.type != BSON_STRING)
		return err_set(err, STATUS_INVALID, "an index has a key and a name");
	ret->name = bson_text(&name);
	TRY(columns_read(bson_text(&key), arena, ret, err));
	if (bson_find_true(spec, STR("unique")))
		ret->flags |= INDEX_UNIQUE;
	if (bson_find_true(spec, STR("sparse")))
		ret->flags |= INDEX_SPARSE;
	if (ret->hashed)
		ret->flags &= ~(uint32_t)INDEX_COVERING;
	if (bson_find(spec, STR("partialFilterExpression"), &filter) &&
	    filter.type == BSON_DOCUMENT)
		ret->filter = bson_text(&filter);
	if (bson_find(spec, STR("collation"), &collation)) {
		if (collation.type != BSON_DOCUMENT)
			return err_set(err, STATUS_INVALID,
				       "the collation of an index is a document");
		ret->collation = bson_text(&collation);
	}
	return STATUS_OK;
}

/* Reads with a conflict: a document that comes at the same time is not overlooked. */
static enum status
collection_is_empty(struct kv_tx *tx, const struct catalog_db *db, bool *ret)
{
	const struct kv_range_options options = { .limit = 1, .mode = KV_READ };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_future *f;

	plain_key_space(&begin, db, PLAIN_SPACE_RECORDS);
	TRY(catalog_key_status(&begin));
	TRY(plain_key_end(buf_str(&begin), &end));
	f = kv_get_range(tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	*ret = kv_future_range(f).count == 0;
	kv_future_free(f);
	return STATUS_OK;
}

enum status
plain_index_create(struct kv_tx *tx, const struct catalog_db *db, struct str spec,
		   struct arena *arena, uint64_t *ret_number, struct err *err)
{
	struct index_def terms;
	bool empty;

	TRY(terms_read(spec, arena, &terms, err));
	TRY(collection_is_empty(tx, db, &empty));
	terms.state = empty ? INDEX_READY : INDEX_BUILDING;
	return index_create(tx, db, &terms, ret_number, err);
}

struct index_build_key
plain_index_build_key(const struct catalog_db *db, struct str name, uint64_t number)
{
	return (struct index_build_key){ .space = CATALOG_SPACE_MONGO,
					 .db_name = name,
					 .db_number = db->number,
					 .number = number };
}

/* ---- Which indexes look at what ---- */

bool
plain_has_indexes(const struct plain *p)
{
	return index_set_has_writers(index_set_of(p->db));
}

/* The members of a document that indexes look at, by the first names of their paths. */
struct members {
	struct arena *arena;
	struct str *names;
	size_t count;
	size_t cap;
	bool whole; /* all of them */
};

static enum status
members_add(struct members *m, struct str name)
{
	for (size_t i = 0; i < m->count; i++)
		if (str_eq(m->names[i], name))
			return STATUS_OK;
	TRY(catalog_array_grow(m->arena, (void **)&m->names, sizeof(*m->names), m->count, &m->cap));
	m->names[m->count++] = name;
	return STATUS_OK;
}

/* A path, or a list of filters under $and, $or or $nor; of any other operator nobody knows. */
static enum status
members_add_filter(struct members *m, struct str filter, unsigned depth)
{
	struct bson_element e, inner;
	struct bson_iter i, k;

	for (bson_iter_begin(&i, filter); bson_iter_read(&i, &e);) {
		if (!e.name.len || e.name.ptr[0] != '$') {
			struct str rest = e.name;

			TRY(members_add(m, str_cut(&rest, '.')));
			continue;
		}
		if (e.value.type != BSON_ARRAY || depth == BSON_DEPTH) {
			m->whole = true;
			continue;
		}
		for (bson_iter_begin(&k, bson_text(&e.value)); bson_iter_read(&k, &inner);) {
			m->whole = m->whole || inner.value.type != BSON_DOCUMENT;
			if (inner.value.type == BSON_DOCUMENT)
				TRY(members_add_filter(m, bson_text(&inner.value), depth + 1));
		}
	}
	return STATUS_OK;
}

static enum status
members_add_index(struct members *m, const struct index_def *def)
{
	for (size_t i = 0; i < def->column_count; i++)
		TRY(members_add(m, def->columns[i].path[0]));
	return def->filter.ptr ? members_add_filter(m, def->filter, 0) : STATUS_OK;
}

static bool
members_have(const struct members *m, struct str name)
{
	for (size_t i = 0; i < m->count; i++)
		if (str_eq(m->names[i], name))
			return true;
	return m->whole;
}

/* Steps that are numbers may count elements of arrays, through which paths of indexes go. */
static bool
step_is_number(struct str step)
{
	uint32_t position;

	return plain_step_is_position(step, &position);
}

/* True if one path, without its positions, is the beginning of the other. */
static bool
change_meets_column(struct str path, const struct index_column *column)
{
	size_t at = 0;

	while (path.len) {
		struct str step = str_cut(&path, '.');

		while (at < column->path_count && step_is_number(column->path[at]))
			at++;
		if (at == column->path_count)
			return true;
		if (step_is_number(step))
			continue;
		if (!str_eq(step, column->path[at++]))
			return false;
	}
	return true;
}

/* False if the index holds the same of a document before and after the change. */
static enum status
change_meets_index(const struct plain_change *change, const struct index_def *def,
		   struct arena *arena, bool *ret)
{
	struct members filter = { .arena = arena };
	struct str rest = change->path;

	*ret = true;
	for (size_t i = 0; i < def->column_count; i++)
		if (change_meets_column(change->path, &def->columns[i]))
			return STATUS_OK;
	if (def->filter.ptr)
		TRY(members_add_filter(&filter, def->filter, 0));
	*ret = members_have(&filter, str_cut(&rest, '.'));
	return STATUS_OK;
}

/* ---- Changing entries ---- */

struct entering {
	struct plain *p;
	struct index_change change;
	struct arena *arena;
};

static enum status
enter(struct index_writer *writer, void *arg)
{
	struct entering *x = arg;
	struct plain_refused *refused = &x->p->refused;
	const struct index_def *def = NULL;
	enum status status = index_update(writer, &x->change, &def);

	if (status == STATUS_UNSUPPORTED) {
		*refused = (struct plain_refused){ .def = writer->refusal.def,
						   .hashed = writer->refusal.hashed };
		memcpy(refused->columns, writer->refusal.columns, sizeof(refused->columns));
	} else if (status == STATUS_DUPLICATE) {
		struct str values;

		*refused = (struct plain_refused){ .def = def };
		/* The writer's memory ends with it. */
		if (index_bson_values(writer->duplicate, &values))
			refused->values = arena_dup(x->arena, values);
	}
	return status;
}

enum status
plain_index_id(const struct bson_value *id, struct buf *ret, struct err *err)
{
	return plain_id_key(id, ret, err);
}

struct index_source
plain_index_source(struct str id_key, struct str document)
{
	return (struct index_source){ .id = id_key, .body = document };
}

static enum status
change_entries(struct plain *p, const struct bson_value *id, struct str before, struct str after,
	       const bool *untouched, struct arena *arena)
{
	AUTO(buf_release) struct buf key = BUF_INIT(BSON_KEY_ROOM(PLAIN_ID_BYTES));
	struct entering x = { .p = p, .change = { .untouched = untouched }, .arena = arena };
	struct index_source a, b;

	TRY(plain_id_key(id, &key, p->err));
	a = plain_index_source(buf_str(&key), before);
	b = plain_index_source(buf_str(&key), after);
	x.change.before = before.ptr ? &a : NULL;
	x.change.after = after.ptr ? &b : NULL;
	return index_writer_run(p->tx, p->db, PLAIN_LIST_ENTRIES, arena, arena, enter, &x);
}

enum status
plain_index_change(struct plain *p, const struct bson_value *id, struct str before,
		   struct str after, struct arena *arena)
{
	return change_entries(p, id, before, after, NULL, arena);
}

/* ---- Documents in leaves ---- */

/* Reads members of a document in leaves, as a document. */
static enum status
members_read(struct plain *p, struct str key, const struct members *m, struct arena *arena,
	     struct str *ret)
{
	AUTO(buf_release) struct buf out = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(arena));
	AUTO(buf_release) struct buf member = CATALOG_KEY_INIT;
	struct bson_builder b;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	for (size_t i = 0; i < m->count; i++) {
		struct bson_value v;
		enum status status;

		buf_clear(&member);
		buf_append_str(&member, key);
		tuple_put_str(&member, m->names[i]);
		status = catalog_key_status(&member);
		if (status == STATUS_KEY_TOO_LARGE)
			continue; /* no document in leaves has such a name */
		TRY(status);
		status = plain_read_value(p, buf_str(&member), key.len, KV_READ, arena, &v);
		if (status == STATUS_NOT_FOUND)
			continue;
		TRY(status);
		bson_put(&b, m->names[i], &v);
	}
	bson_end(&b);
	TRY(buf_status(&out));
	*ret = buf_dup(&out, arena);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

/* The `_id` is in the root. */
static enum status
members_read_of(struct plain *p, struct str key, const struct plain_root *root,
		const struct members *m, struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf out = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(arena));
	struct bson_builder b;
	struct str members;

	if (root->form != PLAIN_FORM_LEAVES || m->whole)
		return plain_read_root(p, key, root, KV_READ, arena, ret);
	TRY(members_read(p, key, m, arena, &members));
	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put(&b, STR("_id"), &root->id);
	bson_put_elements(&b, members);
	bson_end(&b);
	TRY(buf_status(&out));
	*ret = buf_dup(&out, arena);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
plain_index_read(struct plain *p, struct str key, const struct plain_root *root,
		 struct arena *arena, struct str *ret)
{
	const struct index_set *set = index_set_of(p->db);
	struct members m = { .arena = arena };

	for (size_t i = 0; set && i < set->kept_count; i++)
		TRY(members_add_index(&m, set->kept[i]));
	return members_read_of(p, key, root, &m, arena, ret);
}

/* The changes of members that were read. */
static enum status
changes_choose(const struct members *m, const struct plain_change *changes, size_t count,
	       struct arena *arena, struct plain_change **ret, size_t *ret_count)
{
	*ret_count = 0;
	*ret = arena_alloc(arena, count * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		struct str rest = changes[i].path;

		if (members_have(m, str_cut(&rest, '.')))
			(*ret)[(*ret_count)++] = changes[i];
	}
	return STATUS_OK;
}

enum status
plain_index_update(struct plain *p, const struct bson_value *id, struct str key,
		   const struct plain_root *root, const struct plain_change *changes, size_t count,
		   struct arena *arena)
{
	const struct index_set *set = index_set_of(p->db);
	size_t indexes = set ? set->kept_count : 0;
	bool *untouched = arena_alloc(arena, indexes * sizeof(*untouched));
	struct members m = { .arena = arena };
	struct plain_change *chosen;
	struct str before, after;
	bool any = set && set->any_stale;

	if (!untouched)
		return STATUS_LIMIT;
	for (size_t i = 0; i < indexes; i++) {
		bool meets = false;

		for (size_t k = 0; k < count && !meets; k++)
			TRY(change_meets_index(&changes[k], set->kept[i], arena, &meets));
		untouched[i] = !meets;
		if (meets)
			TRY(members_add_index(&m, set->kept[i]));
		any = any || meets;
	}
	if (!any)
		return STATUS_OK;
	TRY(members_read_of(p, key, root, &m, arena, &before));
	TRY(changes_choose(&m, changes, count, arena, &chosen, &count));
	TRY(plain_apply(before, chosen, count, arena, &after, p->err));
	return change_entries(p, id, before, after, untouched, arena);
}

/* ---- Failures of builds ---- */

/* The bytes of an `_id`'s key, which a failure names in hexadecimal digits. STATUS_NOT_FOUND. */
static enum status
failure_read(struct str failure, struct buf *ret)
{
	struct str rest = failure, hex;

	(void)str_cut(&rest, '"');
	hex = str_cut(&rest, '"');
	if (!hex.len || hex.len % 2 || hex.len / 2 > KV_LIMIT_KEY_BYTES)
		return STATUS_NOT_FOUND;
	(void)buf_reserve(ret, hex.len / 2);
	TRY(buf_status(ret));
	if (!str_from_hex(hex, ret->ptr))
		return STATUS_NOT_FOUND;
	ret->len = hex.len / 2;
	return STATUS_OK;
}

/* Another document has the values of an entry. */
static enum status
entry_is_taken(struct plain *p, const struct index_def *def, const struct kv_pair *pair, bool *ret)
{
	const struct kv_range_options options = { .limit = 2, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf head = CATALOG_KEY_INIT;
	struct tuple_reader r;
	struct kv_range range;
	struct tuple_elem e;
	struct kv_future *f;
	struct str values;

	index_key_entries(&head, p->db, def->number);
	TRY(catalog_key_status(&head));
	r = tuple_reader(str_skip(pair->key, head.len));
	for (size_t i = 0; i < def->column_count; i++)
		TRY(tuple_next_elem(&r, &e));
	values = str_of(pair->key.ptr, pair->key.len - r.rest.len);
	TRY(plain_key_end(values, &end));
	f = kv_get_range(p->tx, values, buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	*ret = false;
	for (size_t i = 0; i < range.count; i++)
		*ret = *ret || !str_eq(range.pairs[i].key, pair->key);
	kv_future_free(f);
	return STATUS_OK;
}

enum status
plain_index_failure(struct plain *p, const struct index_def *def, struct arena *arena)
{
	AUTO(buf_release) struct buf id_key = BUF_INIT(KV_LIMIT_KEY_BYTES);
	struct index_work w = { .arena = arena };
	struct index_source source;
	struct index_pairs pairs;
	struct plain_got got;
	enum status status;
	struct str doc;

	if (!index_bson_is_current(def))
		return STATUS_NOT_FOUND;
	TRY(failure_read(def->failure, &id_key));
	TRY(plain_ask_key(p, buf_str(&id_key), KV_SNAPSHOT, arena, &got));
	TRY(plain_wait(p, &got, KV_SNAPSHOT, arena, &doc));
	source = plain_index_source(buf_str(&id_key), doc);
	status = index_entries_make(p->db, def, &source, &w, &pairs);
	if (status == STATUS_UNSUPPORTED) {
		p->refused = (struct plain_refused){ .def = def, .hashed = pairs.refusal.hashed };
		memcpy(p->refused.columns, pairs.refusal.columns, sizeof(p->refused.columns));
	}
	TRY(status);
	for (size_t i = 0; i < pairs.count; i++) {
		bool taken;

		TRY(entry_is_taken(p, def, &pairs.pairs[i], &taken));
		if (!taken)
			continue;
		p->refused = (struct plain_refused){ .def = def };
		(void)index_bson_values(pairs.pairs[i].value, &p->refused.values);
		return STATUS_DUPLICATE;
	}
	return STATUS_NOT_FOUND;
}
