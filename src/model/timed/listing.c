/*
 * What a database held at a moment of the past, and what had been overwritten or deleted by then,
 * for people: the listings of the text that rows/README.md follows.
 *
 * Records of the past are about single keys, so a deletion is found by what it left. If all that
 * was below a row or a path is gone right after a moment, and something of it was there before, the
 * deletion was of that row or path.
 */
#include "model/timed/timed_int.h"
#include "model/timed/versions.h"

/* A key held something, or nothing, from one moment to another. */
struct interval {
	uint64_t from_us;  /* 0: since before the history begins */
	uint64_t until_us; /* HISTORY_PRESENT: until now */
	bool there;
	struct str value;
};

struct key_versions {
	struct str key;
	struct interval *intervals; /* the oldest first */
	size_t count, cap;
	bool added; /* a number that was added to */
};

/* A deletion of all that is below the prefix. */
struct deletion {
	struct str prefix;
	uint64_t us;
	bool listed;
};

struct listing {
	struct timed *t;
	struct arena *arena; /* what belongs to one group of keys */
	timed_lister *list;
	void *arg;

	/* The group: the keys of one row; outside of ROWS one key. */
	struct key_versions *keys;
	size_t count, cap;
	size_t prefix_len; /* what all keys of the group begin with */
	struct deletion *deletions;
	size_t deletion_count, deletion_cap;
	bool hidden; /* the row's own cell had expired, and its leaves with it */
};

/* ---- Gathering a group ---- */

static enum status
listing_out_of_room(struct listing *l)
{
	return err_set(l->t->err, STATUS_LIMIT,
		       "all that one row has held takes more than %d bytes (TIMED_LISTING_BYTES)",
		       TIMED_LISTING_BYTES);
}

static enum status
group_add(struct listing *l, const struct history_version *v)
{
	struct key_versions *k = l->count ? &l->keys[l->count - 1] : NULL;
	struct interval *i;

	if (!k || !str_eq(k->key, v->key)) {
		l->keys = arena_grow(l->arena, l->keys, l->count, &l->cap, sizeof(*l->keys));
		if (!l->keys)
			return listing_out_of_room(l);
		k = &l->keys[l->count++];
		*k = (struct key_versions){ .key = arena_dup(l->arena, v->key) };
		if (!k->key.ptr)
			return listing_out_of_room(l);
	}
	k->added = k->added || v->added;
	k->intervals = arena_grow(l->arena, k->intervals, k->count, &k->cap, sizeof(*k->intervals));
	if (!k->intervals)
		return listing_out_of_room(l);
	i = &k->intervals[k->count++];
	*i = (struct interval){ .until_us = v->until_us, .there = v->there };
	if (k->count > 1)
		i->from_us = i[-1].until_us;
	if (v->there)
		i->value = arena_dup(l->arena, v->value);
	return v->there && !i->value.ptr ? listing_out_of_room(l) : STATUS_OK;
}

/* A key that is not there now ends with an interval of nothing. */
static enum status
group_end_keys(struct listing *l)
{
	for (size_t n = 0; n < l->count; n++) {
		struct key_versions *k = &l->keys[n];
		uint64_t until_us = k->intervals[k->count - 1].until_us;

		if (until_us == HISTORY_PRESENT)
			continue;
		k->intervals = arena_grow(l->arena, k->intervals, k->count, &k->cap,
					  sizeof(*k->intervals));
		if (!k->intervals)
			return listing_out_of_room(l);
		k->intervals[k->count++] = (struct interval){ .from_us = until_us,
							      .until_us = HISTORY_PRESENT };
	}
	return STATUS_OK;
}

/* What the key held at the moment. */
static const struct interval *
interval_at(const struct key_versions *k, uint64_t us)
{
	size_t i = 0;

	while (k->intervals[i].until_us <= us)
		i++;
	return &k->intervals[i];
}

/* ---- Deletions ---- */

/*
 * What lay below a prefix right after a moment: nothing; something; or a value that was written at
 * the prefix itself then, and has replaced what was below it.
 */
enum below {
	BELOW_NOTHING,
	BELOW_SOMETHING,
	BELOW_REPLACED,
};

static enum below
below_at(const struct listing *l, struct str prefix, uint64_t us)
{
	for (size_t n = 0; n < l->count; n++) {
		const struct interval *i;

		if (!str_starts_with(l->keys[n].key, prefix))
			continue;
		i = interval_at(&l->keys[n], us);
		if (!i->there)
			continue;
		return i->from_us == us && l->keys[n].key.len == prefix.len ? BELOW_REPLACED
									    : BELOW_SOMETHING;
	}
	return BELOW_NOTHING;
}

static bool
deletion_is_known(const struct listing *l, struct str key, uint64_t us)
{
	for (size_t n = l->deletion_count; n-- > 0;)
		if (l->deletions[n].us == us && str_starts_with(key, l->deletions[n].prefix))
			return true;
	return false;
}

/* The key was deleted at the moment: finds the row or path that was deleted. */
static enum status
deletion_add(struct listing *l, struct str key, uint64_t us)
{
	size_t len = l->prefix_len;

	if (deletion_is_known(l, key, us))
		return STATUS_OK;
	while (len < key.len) {
		enum below below = below_at(l, str_of(key.ptr, len), us);

		if (below == BELOW_REPLACED)
			return STATUS_OK;
		if (below == BELOW_NOTHING)
			break;
		len = tuple_skip(key, len, TUPLE_SKIP_ANY);
		if (!len)
			return STATUS_CORRUPT;
	}
	l->deletions = arena_grow(l->arena, l->deletions, l->deletion_count, &l->deletion_cap,
				  sizeof(*l->deletions));
	if (!l->deletions)
		return listing_out_of_room(l);
	l->deletions[l->deletion_count++] = (struct deletion){ .prefix = str_of(key.ptr, len),
							       .us = us };
	return STATUS_OK;
}

static enum status
deletions_find(struct listing *l)
{
	for (size_t n = 0; n < l->count; n++) {
		const struct key_versions *k = &l->keys[n];

		for (size_t i = 1; i < k->count && k->intervals[i].from_us <= l->t->now_us; i++)
			if (k->intervals[i - 1].there && !k->intervals[i].there)
				TRY(deletion_add(l, k->key, k->intervals[i].from_us));
	}
	return STATUS_OK;
}

/* ---- Listing ---- */

/* True if a row's cell or an item's header, or a leaf below, had expired. */
static enum status
value_has_expired(struct listing *l, enum timed_space space, struct str value, bool *ret)
{
	*ret = false;
	return space == TIMED_SPACE_ROWS ? timed_kind_of(l->t->db)->has_expired(l->t, value, ret)
					 : STATUS_OK;
}

static enum status
list_one(struct listing *l, enum timed_listed kind, struct str key, struct str value, uint64_t us)
{
	const struct timed_line line = { .kind = kind, .pair = { key, value }, .deleted_us = us };

	return l->list(l->arg, &line);
}

/* The latest deletion of exactly this prefix that is not listed yet and not before `since_us`. */
static enum status
list_deletions(struct listing *l, struct str prefix, uint64_t since_us)
{
	for (;;) {
		struct deletion *latest = NULL;

		for (size_t n = 0; n < l->deletion_count; n++) {
			struct deletion *d = &l->deletions[n];

			if (!d->listed && d->us >= since_us && str_eq(d->prefix, prefix) &&
			    (!latest || d->us > latest->us))
				latest = d;
		}
		if (!latest)
			return STATUS_OK;
		latest->listed = true;
		TRY(list_one(l, TIMED_LISTED_DELETION, latest->prefix, STR(""), latest->us));
	}
}

/* What the key held at the moment, or before it. */
static enum status
list_interval(struct listing *l, enum timed_space space, const struct key_versions *k,
	      const struct interval *i)
{
	bool own = k->key.len == l->prefix_len, struck = i->until_us <= l->t->now_us, expired;

	if (!struck) {
		TRY(value_has_expired(l, space, i->value, &expired));
		if (own && expired && timed_kind_of(l->t->db)->own_hides(l->t->db))
			l->hidden = true;
		struck = expired || l->hidden;
	}
	return list_one(l, struck ? TIMED_LISTED_STRUCK : TIMED_LISTED_LIVE, k->key, i->value, 0);
}

/* The versions of one key and the deletions of exactly it, the newest first. */
static enum status
list_key(struct listing *l, enum timed_space space, const struct key_versions *k)
{
	struct str value;

	/* Deletions of what is above, which no key of the group stands for. */
	for (size_t n = 0; n < l->deletion_count; n++)
		if (!l->deletions[n].listed && l->deletions[n].prefix.len < k->key.len &&
		    str_starts_with(k->key, l->deletions[n].prefix))
			TRY(list_deletions(l, l->deletions[n].prefix, 0));
	if (k->added) {
		TRY(timed_data_get(l->t, k->key, KV_SNAPSHOT, l->arena, &value));
		return value.ptr ? list_one(l, TIMED_LISTED_LIVE, k->key, value, 0) : STATUS_OK;
	}
	for (size_t i = k->count; i-- > 0;) {
		if (k->intervals[i].from_us > l->t->now_us || !k->intervals[i].there)
			continue;
		TRY(list_deletions(l, k->key, k->intervals[i].from_us));
		TRY(list_interval(l, space, k, &k->intervals[i]));
	}
	return list_deletions(l, k->key, 0);
}

static enum status
group_list(struct listing *l, enum timed_space space)
{
	TRY(group_end_keys(l));
	TRY(deletions_find(l));
	for (size_t n = 0; n < l->count; n++)
		TRY(list_key(l, space, &l->keys[n]));
	return STATUS_OK;
}

/* ---- Groups ---- */

static void
group_begin(struct listing *l)
{
	arena_clear(l->arena);
	l->keys = NULL;
	l->deletions = NULL;
	l->count = l->cap = l->deletion_count = l->deletion_cap = 0;
	l->hidden = false;
}

static enum status
group_prefix_len(struct listing *l, enum timed_space space, struct str key)
{
	l->prefix_len = key.len;
	return space == TIMED_SPACE_ROWS ? timed_key_row_bytes(l->t->db, key, &l->prefix_len)
					 : STATUS_OK;
}

static enum status
groups_list(struct listing *l, enum timed_space space, struct history_versions *versions)
{
	struct history_version v;
	enum status status;

	group_begin(l);
	while ((status = history_versions_next(versions, &v)) == STATUS_OK) {
		struct str group = l->count ? str_of(l->keys[0].key.ptr, l->prefix_len) : STR("");

		/* Outside of ROWS a longer key may begin with the whole of another one. */
		if (l->count && (!str_starts_with(v.key, group) ||
				 (space != TIMED_SPACE_ROWS && v.key.len != l->prefix_len))) {
			TRY(group_list(l, space));
			group_begin(l);
		}
		if (!l->count)
			TRY(group_prefix_len(l, space, v.key));
		TRY(group_add(l, &v));
	}
	return status == STATUS_NOT_FOUND ? group_list(l, space) : status;
}

static enum status
space_list(struct listing *l, enum timed_space space)
{
	AUTO(history_versions_close) struct history_versions versions = { 0 };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct history h = timed_history_of(l->t);

	timed_key_space(&begin, l->t->db, space);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	TRY(history_versions_open(&versions, &h, buf_str(&begin), buf_str(&end)));
	return groups_list(l, space, &versions);
}

enum status
timed_list(struct timed *t, timed_lister *list, void *arg)
{
	static const enum timed_space spaces[] = { TIMED_SPACE_ROWS, TIMED_SPACE_BODY,
						   TIMED_SPACE_COUNT, TIMED_SPACE_COUNTER };
	struct listing l = { .t = t, .list = list, .arg = arg };
	enum status status = timed_now(t);

	if (status == STATUS_OK && t->at_us)
		status = timed_version_check_all(t);
	if (status != STATUS_OK)
		return status;
	l.arena = arena_new(TIMED_LISTING_BYTES);
	if (!l.arena)
		return STATUS_NOMEM;
	for (size_t i = 0; status == STATUS_OK && i < sizeof(spaces) / sizeof(*spaces); i++)
		status = space_list(&l, spaces[i]);
	arena_free(l.arena);
	if (status != STATUS_CORRUPT)
		return status;
	return err_set(t->err, status, "the history of the database \"%.*s\" cannot be read",
		       STR_ARG(t->db->name));
}
