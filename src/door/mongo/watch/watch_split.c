/*
 * $changeStreamSplitLargeEvent: an event that is larger than a document may be becomes several
 * documents, each with some of its fields. Small fields come first, so that the same event is
 * always split alike, and a stream can go on behind any of the fragments.
 */

#include "door/mongo/txn/client.h"
#include "door/mongo/watch/watch_int.h"
#include "loop/sort.h"

enum {
	/* As in MongoDB; beyond it an event is split. */
	SPLIT_BYTES = BSON_MOST_BYTES - 8 * 1024,
	HEAD_BYTES = 256, /* of a fragment's own fields, and more */
};

bool
watch_split_is_needed(struct str event)
{
	return event.len + HEAD_BYTES > SPLIT_BYTES;
}

static enum status
field_cmp(const void *arg, const void *a, const void *b, int *ret)
{
	const struct watch_field *one = a, *other = b;

	(void)arg;
	if (one->bytes == other->bytes)
		return sort_compare_strs(one->e.name, other->e.name, ret);
	*ret = one->bytes < other->bytes ? -1 : 1;
	return STATUS_OK;
}

static enum status
fields_take(struct str event, struct arena *arena, struct watch_field *ret, size_t *ret_count)
{
	struct bson_element e;
	struct bson_iter i;
	size_t count = 0;

	bson_iter_begin(&i, event);
	for (const char *at = i.at; bson_iter_read(&i, &e); at = i.at) {
		if (str_eq(e.name, STR("_id")))
			continue;
		ret[count].e = e;
		ret[count++].bytes = (size_t)(i.at - at);
	}
	*ret_count = count;
	return sort_items(ret, count, sizeof(*ret), field_cmp, NULL, arena);
}

enum status
watch_split(struct call *c, struct str event, struct watch_split *ret)
{
	size_t most = bson_count(event);
	size_t bytes = HEAD_BYTES;

	*ret = (struct watch_split){
		.fields = arena_zalloc(c->arena, (most + 1) * sizeof(*ret->fields)),
		.ends = arena_zalloc(c->arena, (most + 1) * sizeof(*ret->ends)),
	};
	if (!ret->fields || !ret->ends)
		return STATUS_LIMIT;
	TRY(fields_take(event, c->arena, ret->fields, &most));
	for (size_t i = 0; i < most; i++) {
		size_t more = ret->fields[i].bytes;

		if (more + HEAD_BYTES > SPLIT_BYTES)
			return call_fail(c, MONGO_BSON_TOO_LARGE,
					 "Splitting change event failed: fragment size %zu is "
					 "greater than maximum allowed fragment size %d",
					 more, SPLIT_BYTES - HEAD_BYTES);
		if (i && bytes + more > SPLIT_BYTES) {
			ret->ends[ret->count++] = i;
			bytes = HEAD_BYTES;
		}
		bytes += more;
	}
	ret->ends[ret->count++] = most;
	if (ret->count <= WATCH_FRAGMENTS)
		return STATUS_OK;
	return call_fail(c, MONGO_BSON_TOO_LARGE,
			 "Splitting change event failed: it has more than %d fragments "
			 "(WATCH_FRAGMENTS)",
			 WATCH_FRAGMENTS);
}

void
watch_split_put(struct bson_builder *b, const struct watch_split *s, size_t n)
{
	bson_begin_document(b, STR("splitEvent"));
	bson_put_int32(b, STR("fragment"), (int32_t)n + 1);
	bson_put_int32(b, STR("of"), (int32_t)s->count);
	bson_end(b);
	for (size_t i = n ? s->ends[n - 1] : 0; i < s->ends[n]; i++)
		bson_put_element(b, &s->fields[i].e);
}
