/* Moments that people write: a time of day, or microseconds since 1970. */
#include "base/moment.h"

#include "cli/rows.h"

bool
cli_parse_moment(struct str text, uint64_t *ret_us)
{
	return str_to_u64(text, ret_us) || moment_parse(text, ret_us);
}
