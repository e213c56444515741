#include "door/redis/cmd/list.h"

enum status
list_push(struct call *c, struct timed_item *item, struct str key, bool left,
	  const struct str *values, size_t count)
{
	TRY(timed_list_push(item, left, values, count));
	return txn_changed(c, key, EVENT_LIST, left ? "lpush" : "rpush");
}

enum status
list_pop(struct call *c, struct timed_item *item, struct str key, bool left, uint64_t most,
	 struct timed_elements *ret)
{
	TRY(timed_list_pop(item, left, most, ret));
	return data_changed(c, item, key, EVENT_LIST, left ? "lpop" : "rpop");
}
