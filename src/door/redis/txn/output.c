#include "door/redis/txn/output.h"

#include <stdio.h>

#include "door/redis/txn/client.h"
#include "door/redis/wire/number.h"

static const char *const class_names[OUTPUT_CLASSES] = { "normal", "slave", "pubsub" };

/* OUTPUT_CLASSES: there is no such class. */
static size_t
class_find(struct str name)
{
	size_t i = 0;

	if (str_eq_nocase(name, STR("replica")))
		return OUTPUT_REPLICA;
	while (i < OUTPUT_CLASSES && !str_eq_nocase(name, str_from_cstr(class_names[i])))
		i++;
	return i;
}

/* The next word behind one space, so two of them have an empty word between them. */
static bool
limit_read(struct str *rest, struct output_limit *ret)
{
	struct str hard = str_cut(rest, ' ');
	struct str soft = str_cut(rest, ' ');
	struct str seconds = str_cut(rest, ' ');
	int64_t bytes[2], s;

	if (!number_read_memory(hard, &bytes[0]) || !number_read_memory(soft, &bytes[1]) ||
	    !number_read_i64(seconds, &s) || s < 0 || s > INT32_MAX)
		return false;
	*ret = (struct output_limit){ (uint64_t)bytes[0], (uint64_t)bytes[1], (uint64_t)s };
	return true;
}

const char *
output_limits_read(struct str text, struct output_limits *limits)
{
	size_t words = text.len > 0;

	for (size_t i = 0; i < text.len; i++)
		words += text.ptr[i] == ' ';
	if (words % 4)
		return "Wrong number of arguments in buffer limit configuration.";
	while (text.len) {
		size_t class = class_find(str_cut(&text, ' '));
		struct output_limit limit;

		if (class == OUTPUT_CLASSES)
			return "Invalid client class specified in buffer limit configuration.";
		if (!limit_read(&text, &limit))
			return "Error in hard, soft or soft_seconds setting in buffer limit "
			       "configuration.";
		if (class == OUTPUT_PUBSUB &&
		    (!limit.hard_bytes || limit.hard_bytes > CLIENT_PUSH_BYTES))
			return "the hard limit of pubsub must be between 1 and 33554432 "
			       "(CLIENT_PUSH_BYTES)";
		limits->of[class] = limit;
	}
	return NULL;
}

void
output_limits_write(const struct output_limits *limits, char ret[static OUTPUT_TEXT_BYTES])
{
	int len = 0;

	for (size_t i = 0; i < OUTPUT_CLASSES; i++) {
		const struct output_limit *l = &limits->of[i];

		len += snprintf(ret + len, OUTPUT_TEXT_BYTES - (size_t)len, "%s%s %llu %llu %llu",
				i ? " " : "", class_names[i], (unsigned long long)l->hard_bytes,
				(unsigned long long)l->soft_bytes, (unsigned long long)l->soft_s);
	}
}

void
output_limit_set(struct net_unread_limit *now, const struct output_limit *limit)
{
	atomic_store(&now->hard_bytes, limit->hard_bytes);
	atomic_store(&now->soft_bytes, limit->soft_bytes);
	atomic_store(&now->soft_s, limit->soft_s);
}
