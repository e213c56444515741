#include "catalog/format.h"

void
catalog_format_explain(const char *record, uint64_t format, uint64_t newest, struct err *err)
{
	err_set(err, STATUS_NEWER,
		"the %s was written by a newer frond: format %llu, this one reads up to %llu",
		record, (unsigned long long)format, (unsigned long long)newest);
}
