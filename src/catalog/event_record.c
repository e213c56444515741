/*
 * An event as it is stored:
 *
 *     format 1: (1, event, Incarnation, versionstamp)            of a revisioned database
 *     format 2: (2, event, Incarnation, versionstamp, kind)      of any other
 */
#include "catalog/format.h"
#include "catalog/records.h"
#include "kv/tuple.h"

enum {
	EVENT_FORMAT_KIND = 2,
	EVENT_FORMAT = 2, /* the newest */
};

size_t
catalog_event_record_put(enum catalog_event_kind event, uint8_t incarnation,
			 const struct catalog_kind *kind, struct buf *value)
{
	bool plain = kind->number == CATALOG_KIND_REVISIONED;
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];
	size_t offset;

	catalog_stamp(0, stamp);
	tuple_put_u64(value, plain ? 1 : EVENT_FORMAT_KIND);
	tuple_put_u64(value, event);
	tuple_put_u64(value, incarnation);
	offset = tuple_put_versionstamp(value, stamp);
	if (!plain)
		tuple_put_u64(value, kind->number);
	return offset;
}

enum status
catalog_event_record_parse(struct str value, struct catalog_event *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct catalog_event event = { .name = ret->name };
	uint64_t format, what, incarnation, kind;
	const uint8_t *stamp;

	TRY(catalog_format_next(&r, "event of a database", EVENT_FORMAT, &format, err));
	TRY(tuple_next_u64(&r, &what));
	TRY(tuple_next_u64(&r, &incarnation));
	TRY(tuple_next_versionstamp(&r, &stamp));
	if (format >= EVENT_FORMAT_KIND)
		TRY(tuple_next_u64(&r, &kind));
	if ((what != CATALOG_EVENT_CREATED && what != CATALOG_EVENT_DELETED) ||
	    incarnation > UINT8_MAX || r.rest.len)
		return STATUS_CORRUPT;
	event.kind = (enum catalog_event_kind)what;
	event.seq.bytes[0] = (uint8_t)incarnation;
	memcpy(event.seq.bytes + 1, stamp, KV_VERSIONSTAMP_BYTES);
	*ret = event;
	return STATUS_OK;
}
