/*
 * Any bytes as what a worker answers: whatever is taken for an answer to a map can be read to its
 * end, and gives as many documents and functions as it says.
 */
#include <stdlib.h>

#include "js/answer.h"
#include "js/js.h"

enum {
	FORM_BYTES = 3, /* in front of the answer: what it answers */
	ELEMENTS = 8,
	FUNCTIONS = 4,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
read_rows(struct str answer, size_t functions)
{
	struct js_mapped m = { .bytes = BUF_INIT(answer.len + 1), .at = sizeof(uint32_t) };
	struct wire_reader r = { .rest = answer };
	uint32_t done = wire_u32(&r);
	struct str key;
	struct str value;

	buf_append_str(&m.bytes, answer);
	for (size_t i = 0; i < done * functions; i++) {
		(void)js_mapped_next(&m, &value);
		while (js_mapped_row(&m, &key, &value))
			if (key.ptr[key.len] != '\0' || value.ptr[value.len] != '\0')
				abort();
	}
	/* With no functions there is nothing of documents in the answer. */
	if (m.at != m.bytes.len)
		abort();
	js_mapped_release(&m);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct answer_shape shape;
	struct str name;
	struct str reason;
	struct str answer;

	if (size < FORM_BYTES)
		return 0;
	shape.kind = (enum wire_kind)(WIRE_MAP + data[0] % 5);
	shape.elements = data[1] % ELEMENTS;
	shape.functions = 1 + data[2] % FUNCTIONS;
	answer = str_of(data + FORM_BYTES, size - FORM_BYTES);
	(void)answer_read_error(answer, &name, &reason);
	if (answer_is_good(&shape, answer) && shape.kind == WIRE_MAP)
		read_rows(answer, shape.functions);
	return 0;
}
