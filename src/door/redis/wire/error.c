#include "door/redis/wire/error.h"

#include "base/metric.h"

METRIC_COUNTER(failures, "frond_redis_failures_total", METRIC_NUMBER,
	       "Commands of Redis's door that the store or a limit has failed.");

/* What clients of Redis know as a class of errors, by the first word. */
static const char *
status_code(enum status status)
{
	switch ((int)status) {
	case STATUS_FULL:
	case STATUS_IO:
	case STATUS_CORRUPT:
		return "MISCONF";
	case STATUS_NOMEM:
		return "OOM";
	case STATUS_UNAVAILABLE:
	case STATUS_LOCKED:
		return "LOADING";
	case STATUS_BUSY:
	case STATUS_TX_CONFLICT:
	case STATUS_TX_TOO_OLD:
		return "TRYAGAIN";
	case STATUS_FORBIDDEN:
	case STATUS_STANDBY:
		return "READONLY";
	default:
		return "ERR";
	}
}

void
error_reply_status(struct reply *r, enum status status, const struct err *err)
{
	metric_add(&failures, 1);
	if (err && err->text[0])
		reply_errorf(r, "%s %s", status_code(status), err->text);
	else
		reply_errorf(r, "%s %s", status_code(status), status_name(status));
}
