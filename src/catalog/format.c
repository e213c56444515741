#include "catalog/format.h"

enum status
catalog_format_next(struct tuple_reader *r, const char *record, uint64_t newest, uint64_t *ret,
		    struct err *err)
{
	uint64_t format;

	if (tuple_next_u64(r, &format) != STATUS_OK || format == 0)
		return STATUS_CORRUPT;
	if (format > newest)
		return err_set(err, STATUS_NEWER,
			       "the %s was written by a newer frond: format %llu, this one reads "
			       "up to %llu",
			       record, (unsigned long long)format, (unsigned long long)newest);
	*ret = format;
	return STATUS_OK;
}
