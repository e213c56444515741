#include "door/redis/cmd/stream.h"

#include <stdio.h>

#include "door/redis/wire/number.h"

enum {
	ID_BYTES = 48, /* of an id as text */
};

bool
stream_id_read(struct str text, uint64_t seq, struct timed_stream_id *ret)
{
	bool has_seq = text.len && memchr(text.ptr, '-', text.len);
	struct str ms = str_cut(&text, '-');

	ret->seq = seq;
	return number_read_unsigned(ms, &ret->ms) &&
	       (!has_seq || number_read_unsigned(text, &ret->seq));
}

enum status
stream_id_arg(struct call *c, size_t i, uint64_t seq, struct timed_stream_id *ret)
{
	if (stream_id_read(c->argv[i], seq, ret))
		return STATUS_OK;
	return call_error(c, STR("ERR Invalid stream ID specified as stream command argument"));
}

bool
stream_id_read_end(struct str text, struct timed_stream_id *ret)
{
	if (str_eq(text, STR("-")))
		*ret = STREAM_ID_FIRST;
	else if (str_eq(text, STR("+")))
		*ret = STREAM_ID_LAST;
	else
		return false;
	return true;
}

enum status
stream_range_arg(struct call *c, size_t i, bool lower, struct timed_stream_id *ret)
{
	struct str text = c->argv[i];
	bool without = text.len > 1 && text.ptr[0] == '(';

	if (stream_id_read_end(text, ret))
		return STATUS_OK;
	if (!stream_id_read(str_skip(text, without), lower ? 0 : UINT64_MAX, ret))
		return call_error(
			c, STR("ERR Invalid stream ID specified as stream command argument"));
	if (!without || (lower ? timed_stream_id_next(ret) : timed_stream_id_before(ret)))
		return STATUS_OK;
	return call_errorf(c, "ERR invalid %s ID for the interval", lower ? "start" : "end");
}

void
stream_answer_id(struct reply *r, struct timed_stream_id id)
{
	char text[ID_BYTES];
	int len = snprintf(text, sizeof(text), "%llu-%llu", (unsigned long long)id.ms,
			   (unsigned long long)id.seq);

	reply_bulk(r, str_of(text, (size_t)len));
}

void
stream_answer_entry(struct reply *r, const struct timed_entry *entry)
{
	reply_array(r, 2);
	stream_answer_id(r, entry->id);
	reply_array(r, entry->count);
	for (size_t i = 0; i < entry->count; i++)
		reply_bulk(r, entry->fields[i]);
}

void
stream_answer_entries(struct reply *r, const struct timed_entries *entries)
{
	reply_array(r, entries->count);
	for (size_t i = 0; i < entries->count; i++)
		stream_answer_entry(r, &entries->entries[i]);
}
