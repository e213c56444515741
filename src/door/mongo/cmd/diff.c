#include "door/mongo/cmd/diff.h"

#include <string.h>

#include "loop/step.h"
#include "mql/finder.h"

enum {
	REMOVAL_BYTES = 3, /* beside its path */
	CUT_BYTES = 20,
};

struct differ {
	struct arena *arena;
	struct mql_finder finder; /* of the document before */
	struct diff diff;
	size_t cap, cut_cap;
	size_t cost; /* about as many bytes as it takes to tell what has been found */
	size_t most; /* from here on the document itself is told */
};

static enum status diff_container(struct differ *d, struct str path,
				  const struct bson_value *before, const struct bson_value *after);

/* Counts one more difference, of which there are `count`. False: it is not worth telling them. */
static bool
diff_is_worth(struct differ *d, size_t bytes, size_t count)
{
	d->cost += bytes;
	if (d->cost < d->most && count < DIFF_PATHS)
		return true;
	d->diff.is_told = false;
	return false;
}

static enum status
diff_add(struct differ *d, struct str path, size_t bytes)
{
	struct diff *f = &d->diff;

	if (!diff_is_worth(d, path.len + bytes, f->count))
		return STATUS_OK;
	TRY(arena_room(d->arena, &f->paths, f->count, &d->cap, sizeof(*f->paths)));
	f->paths[f->count++] = path;
	return STATUS_OK;
}

static enum status
diff_add_cut(struct differ *d, struct str path, size_t size)
{
	struct diff *f = &d->diff;

	if (!diff_is_worth(d, path.len + CUT_BYTES, f->cut_count))
		return STATUS_OK;
	TRY(arena_room(d->arena, &f->cuts, f->cut_count, &d->cut_cap, sizeof(*f->cuts)));
	f->cuts[f->cut_count++] = (struct diff_cut){ path, (int32_t)size };
	return STATUS_OK;
}

/* The path of an element; empty in `*ret` if a path cannot name it. */
static enum status
diff_path(struct differ *d, struct str path, struct str name, struct str *ret)
{
	*ret = STR("");
	if (!name.len || memchr(name.ptr, '.', name.len)) {
		d->diff.is_told = false;
		return STATUS_OK;
	}
	*ret = path.len ? arena_printf(d->arena, "%.*s.%.*s", STR_ARG(path), STR_ARG(name)) : name;
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

/* An element that is new, or has another value. */
static enum status
diff_set(struct differ *d, struct str path, const struct bson_element *e)
{
	struct str own;

	TRY(diff_path(d, path, e->name, &own));
	return own.len ? diff_add(d, own, e->bytes.len - e->name.len) : STATUS_OK;
}

static enum status
diff_remove(struct differ *d, struct str path, const struct bson_element *e)
{
	struct str own;

	TRY(diff_path(d, path, e->name, &own));
	return own.len ? diff_add(d, own, REMOVAL_BYTES) : STATUS_OK;
}

/* An element that both have. */
static enum status
diff_element(struct differ *d, struct str path, const struct bson_element *before,
	     const struct bson_element *after)
{
	struct str own;

	if (str_eq(before->bytes, after->bytes))
		return STATUS_OK;
	if (before->value.type != after->value.type || !bson_is_container(&after->value) ||
	    bson_is_empty(bson_text(&before->value)) || bson_is_empty(bson_text(&after->value)))
		return diff_set(d, path, after);
	TRY(diff_path(d, path, after->name, &own));
	return own.len ? diff_container(d, own, &before->value, &after->value) : STATUS_OK;
}

static enum status
diff_arrays(struct differ *d, struct str path, struct str before, struct str after)
{
	struct bson_element old, now;
	struct bson_iter i, k;
	bool had, has;
	size_t n = 0;

	bson_iter_begin(&i, before);
	bson_iter_begin(&k, after);
	for (;; n++) {
		had = bson_iter_read(&i, &old);
		has = bson_iter_read(&k, &now);
		if (!has || !d->diff.is_told)
			break;
		TRY(step_count(1));
		TRY(had ? diff_element(d, path, &old, &now) : diff_set(d, path, &now));
	}
	return had && d->diff.is_told ? diff_add_cut(d, path, n) : STATUS_OK;
}

/* Fields that both have are in the same order, and new ones behind them; else nothing is told. */
static enum status
diff_fields(struct differ *d, struct str path, struct str before, struct str after)
{
	struct bson_element old, now;
	struct bson_iter i, k;
	struct bson_value v;
	bool has, had;

	bson_iter_begin(&k, after);
	has = bson_iter_read(&k, &now);
	for (bson_iter_begin(&i, before); d->diff.is_told && bson_iter_read(&i, &old);) {
		TRY(step_count(1));
		if (!has || !str_eq(old.name, now.name)) {
			TRY(diff_remove(d, path, &old));
			continue;
		}
		TRY(diff_element(d, path, &old, &now));
		has = bson_iter_read(&k, &now);
	}
	for (; has && d->diff.is_told; has = bson_iter_read(&k, &now)) {
		TRY(mql_finder_find(&d->finder, before, now.name, &v, &had));
		if (had)
			d->diff.is_told = false;
		else
			TRY(diff_set(d, path, &now));
	}
	return STATUS_OK;
}

static enum status
diff_container(struct differ *d, struct str path, const struct bson_value *before,
	       const struct bson_value *after)
{
	return after->type == BSON_ARRAY
		       ? diff_arrays(d, path, bson_text(before), bson_text(after))
		       : diff_fields(d, path, bson_text(before), bson_text(after));
}

enum status
diff_documents(struct arena *arena, struct str before, struct str after, struct diff *ret)
{
	struct differ d = { .arena = arena, .diff = { .is_told = true }, .most = after.len };

	enum status status;

	mql_finder_init(&d.finder, arena);
	status = diff_fields(&d, STR(""), before, after);
	mql_finder_fini(&d.finder);
	TRY(status);
	*ret = d.diff;
	return STATUS_OK;
}
