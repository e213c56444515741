#include "js/answer.h"

enum {
	ROW_BYTES = 2 * WIRE_TEXT_OVERHEAD,
};

static void
skip_rows(struct wire_reader *r)
{
	struct wire_reader ahead = *r;
	uint32_t rows;

	if (wire_u32(&ahead) == (uint32_t)WIRE_FAILED) {
		*r = ahead;
		(void)wire_text(r);
		return;
	}
	rows = wire_count(r, ROW_BYTES);
	for (uint32_t i = 0; i < rows && !r->bad; i++) {
		(void)wire_text(r);
		(void)wire_text(r);
	}
}

static void
skip_mapped(struct wire_reader *r, size_t functions)
{
	for (size_t i = 0; i < functions && !r->bad; i++)
		skip_rows(r);
}

static void
skip_reduced(struct wire_reader *r, size_t functions)
{
	uint8_t outcome = wire_u8(r);

	if (outcome == WIRE_FAULTY)
		functions = 2; /* a name and a reason */
	else if (outcome != WIRE_ALLOWED)
		r->bad = true;
	for (size_t i = 0; i < functions && !r->bad; i++)
		(void)wire_text(r);
}

static void
skip_verdict(struct wire_reader *r)
{
	uint8_t verdict = wire_u8(r);

	if (verdict > WIRE_FAULTY)
		r->bad = true;
	if (verdict == WIRE_ALLOWED)
		return;
	(void)wire_text(r);
	(void)wire_text(r);
}

static void
skip_choice(struct wire_reader *r)
{
	if (wire_u8(r) > 1)
		r->bad = true;
}

static void
skip_element(struct wire_reader *r, const struct answer_shape *shape)
{
	switch (shape->kind) {
	case WIRE_MAP:
		skip_mapped(r, shape->functions);
		return;
	case WIRE_REDUCE:
		skip_reduced(r, shape->functions);
		return;
	case WIRE_VALIDATE:
		skip_verdict(r);
		return;
	case WIRE_FILTER:
		skip_choice(r);
		return;
	case WIRE_SCRIPT:
		skip_reduced(r, 1);
		return;
	case WIRE_HELLO:
	case WIRE_LOAD:
	case WIRE_UNLOAD:
	case WIRE_UPDATE:
	case WIRE_DONE:
	case WIRE_ERROR:
	case WIRE_LOG:
		break;
	}
	r->bad = true;
}

bool
answer_is_good(const struct answer_shape *shape, struct str payload)
{
	struct wire_reader r = { .rest = payload };
	uint32_t done;

	if (shape->kind == WIRE_UPDATE) {
		(void)wire_text(&r);
		(void)wire_text(&r);
		return wire_at_end(&r);
	}
	done = wire_u32(&r);
	if (done > shape->elements || (done == 0 && shape->elements > 0))
		return false;
	for (uint32_t i = 0; i < done && !r.bad; i++)
		skip_element(&r, shape);
	return wire_at_end(&r);
}

bool
answer_read_error(struct str payload, struct str *ret_name, struct str *ret_reason)
{
	struct wire_reader r = { .rest = payload };

	*ret_name = wire_text(&r);
	*ret_reason = wire_text(&r);
	return wire_at_end(&r) && ret_name->len > 0;
}
