#include "mql/sort_values.h"

#include "loop/sort.h"
#include "mql/mql_int.h"

struct order {
	int (*compare)(const void *a, const void *b, const void *arg);
	const void *arg;
};

static enum status
compare_items(const void *arg, const void *a, const void *b, int *ret)
{
	const struct order *order = arg;

	*ret = order->compare(*(const void *const *)a, *(const void *const *)b, order->arg);
	return STATUS_OK;
}

enum status
mql_sort(struct mql *q, const void **items, size_t count,
	 int (*compare)(const void *a, const void *b, const void *arg), const void *arg)
{
	const struct order order = { compare, arg };
	enum status status = sort_items(items, count, sizeof(*items), compare_items, &order,
					q->arena);

	return status == STATUS_LIMIT ? mql_full(q) : status;
}
