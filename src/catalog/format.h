/*
 * Format numbers of stored records. Each record that is stored is put and parsed in one file and
 * begins with a format number of its own. A number that is higher than the newest that this frond
 * knows is STATUS_NEWER, with both numbers in the text, and never STATUS_CORRUPT: the bytes are all
 * right, and a newer frond reads them.
 *
 * Threading: none of its own.
 */
#ifndef FROND_CATALOG_FORMAT_H
#define FROND_CATALOG_FORMAT_H

#include "base/status.h"
#include "kv/tuple.h"

/*
 * Takes the format number at the beginning of a record, from 1 to `newest`. `record` is what people
 * call it, for the explanation: "description of a database". STATUS_NEWER, explained;
 * STATUS_CORRUPT for what is no format number.
 */
MUST_USE static inline enum status catalog_format_next(struct tuple_reader *r, const char *record,
						       uint64_t newest, uint64_t *ret,
						       struct err *err);

/* ---- Inline: every record that is read comes through here ---- */

/* Explains STATUS_NEWER. */
void catalog_format_explain(const char *record, uint64_t format, uint64_t newest, struct err *err);

static inline enum status
catalog_format_next(struct tuple_reader *r, const char *record, uint64_t newest, uint64_t *ret,
		    struct err *err)
{
	uint64_t format;

	if (tuple_next_u64(r, &format) != STATUS_OK || format == 0)
		return STATUS_CORRUPT;
	if (__builtin_expect(format > newest, 0)) {
		catalog_format_explain(record, format, newest, err);
		return STATUS_NEWER;
	}
	*ret = format;
	return STATUS_OK;
}

#endif
