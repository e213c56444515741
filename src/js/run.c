#include "js/run.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/quote.h"

struct js_run *
js_run_new(const struct js_call *call, const struct answer_shape *shape)
{
	struct js_run *run = mem_zalloc(sizeof(*run));
	size_t len;

	if (!run)
		return NULL;
	run->design = call->design;
	run->lane = call->lane;
	run->owner = call->design->owner;
	run->shape = *shape;
	len = call->design->name.len < JS_NAME_BYTES ? call->design->name.len : JS_NAME_BYTES - 1;
	memcpy(run->name, call->design->name.ptr, len);
	buf_init(&run->request, WIRE_HEAD_BYTES + (size_t)WIRE_PAYLOAD_BYTES);
	buf_init(&run->answer, WIRE_PAYLOAD_BYTES);
	event_init(&run->done);
	return run;
}

void
js_run_free(struct js_run *run)
{
	if (!run)
		return;
	buf_release(&run->request);
	buf_release(&run->answer);
	mem_free(run);
}

struct js_run *
js_run_stand_in(const struct js_run *run)
{
	struct js_run *ret = mem_zalloc(sizeof(*ret));

	if (!ret)
		return NULL;
	ret->lane = run->lane;
	ret->owner = run->owner;
	memcpy(ret->name, run->name, sizeof(ret->name));
	ret->shape = run->shape;
	ret->number = run->number;
	ret->ends_at = run->ends_at;
	ret->followed = ret->stands_in = true;
	ret->abandoned = true;
	ret->abandoned_ns = clock_mono_ns();
	buf_init(&ret->answer, WIRE_PAYLOAD_BYTES);
	event_init(&ret->done);
	return ret;
}

void
js_run_fail(struct js_run *run, struct str name, struct str reason_json)
{
	run->status = STATUS_FUNCTION;
	run->error_name = name;
	run->error_reason = reason_json;
}
