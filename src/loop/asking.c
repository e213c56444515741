#include "loop/asking.h"

#include "base/clock.h"
#include "loop/step.h"

enum status
wait_asking(struct event *const *events, size_t n, uint64_t deadline_ns, size_t *ret_which)
{
	for (;;) {
		uint64_t look_ns = clock_after_ms(WAIT_ASK_MS);

		if (look_ns > deadline_ns)
			look_ns = deadline_ns;
		*ret_which = event_wait_any(events, n, look_ns);
		if (*ret_which < n || clock_mono_ns() >= deadline_ns)
			return STATUS_OK;
		TRY(step_ask_waiting());
	}
}
