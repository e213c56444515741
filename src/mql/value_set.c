#include "mql/value_set.h"

#include "mql/mql_int.h"
#include "mql/sort_values.h"

static int
compare_values(const void *a, const void *b, const void *texts)
{
	return bson_compare_values(a, b, texts);
}

enum status
mql_value_set_of(struct mql *q, struct str array, const struct bson_texts *texts,
		 struct mql_value_set *ret)
{
	size_t count = bson_count(array), kept = 0;
	struct bson_value *all = arena_alloc(q->arena, (count + 1) * sizeof(*all));
	const struct bson_value **values = arena_alloc(q->arena, (count + 1) * sizeof(*values));
	struct bson_iter i;
	struct bson_element e;

	if (!all || !values)
		return mql_full(q);
	count = 0;
	for (bson_iter_begin(&i, array); bson_iter_read(&i, &e); count++) {
		TRY(mql_count(e.bytes.len));
		all[count] = e.value;
		values[count] = &all[count];
	}
	TRY(mql_sort(q, (const void **)values, count, compare_values, texts));
	for (size_t n = 0; n < count; n++) {
		TRY(step_count(1));
		if (!kept || bson_compare_values(values[kept - 1], values[n], texts) != 0)
			values[kept++] = values[n];
	}
	*ret = (struct mql_value_set){ all, count, values, kept };
	return STATUS_OK;
}

bool
mql_value_set_find(const struct mql_value_set *s, const struct mql *q, const struct bson_value *v,
		   size_t *ret)
{
	size_t from = 0, to = s->count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		int order = bson_compare_values(v, s->values[middle], q->texts);

		if (!order) {
			*ret = middle;
			return true;
		}
		if (order < 0)
			to = middle;
		else
			from = middle + 1;
	}
	return false;
}
