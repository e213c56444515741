#include "serve/explain.h"

#include <string.h>

#include "kv/kv.h"
#include "loop/step.h"
#include "net/memory.h"

/* The retry loop puts the status's name where nobody has explained: that explains nothing. */
static bool
is_explained(const struct err *err, enum status status)
{
	return err->text[0] && strcmp(err->text, status_name(status)) != 0;
}

void
explain_failure(const struct net_session *session, const struct budget_part *part,
		enum status status, struct err *err)
{
	if (is_explained(err, status))
		return;
	if ((status == STATUS_LIMIT || status == STATUS_NOMEM) && budget_has_failed(part))
		(void)net_memory_refuse(session, err);
	else if (status == STATUS_LIMIT)
		err_set(err, status, "the request needs more memory than one may take");
	else if (status == STATUS_CANCELLED)
		err_set(err, status, "the request was interrupted");
	else if (status == STATUS_STEPS)
		err_set(err, status,
			"the request needs more computing than one may take: the limit, "
			"request_steps, is %llu steps",
			(unsigned long long)step_limit());
	else if (status == STATUS_TX_UNKNOWN)
		err_set(err, status, "it is not known whether the transaction has committed");
	else if (status == STATUS_TX_TOO_LARGE)
		err_set(err, status, "the transaction is larger than %d bytes (KV_LIMIT_TX_BYTES)",
			KV_LIMIT_TX_BYTES);
	else
		err_set(err, status, "%s", status_name(status));
}
