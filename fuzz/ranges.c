/* Any bytes as a Range header: the ranges that come of it lie within what there is. */
#include <stdlib.h>

#include "door/couch/doc/att_range.h"

enum {
	LENGTH = 1000,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct couch_range ranges[COUCH_RANGES];
	struct str text = str_of(data, size);
	size_t count;

	if (couch_ranges_parse(text, 0, ranges, &count) && count)
		abort();
	if (!couch_ranges_parse(text, LENGTH, ranges, &count))
		return 0;
	if (count >= COUCH_RANGES)
		abort();
	for (size_t i = 0; i < count; i++)
		if (ranges[i].begin >= ranges[i].end || ranges[i].end > LENGTH)
			abort();
	return 0;
}
