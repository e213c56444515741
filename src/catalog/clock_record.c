/*
 * The stored record of a process's clocks:
 *
 *     format 1: (1, boot_us, steady_us, date_us, wall_us)
 */
#include "catalog/clock.h"
#include "catalog/format.h"

enum {
	CLOCK_FORMAT = 1, /* the newest */
};

void
catalog_clock_record_put(const struct steady_state *state, struct buf *value)
{
	tuple_put_u64(value, CLOCK_FORMAT);
	tuple_put_u64(value, state->boot_us);
	tuple_put_u64(value, state->steady_us);
	tuple_put_u64(value, state->date_us);
	tuple_put_u64(value, state->wall_us);
}

enum status
catalog_clock_record_parse(struct str value, struct steady_state *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t *const members[] = { &ret->boot_us, &ret->steady_us, &ret->date_us,
				      &ret->wall_us };
	uint64_t format;

	TRY(catalog_format_next(&r, "record of a clock", CLOCK_FORMAT, &format, err));
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (tuple_next_u64(&r, members[i]) != STATUS_OK)
			return STATUS_CORRUPT;
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}
