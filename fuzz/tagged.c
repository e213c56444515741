/*
 * Any bytes as what a function in JavaScript has answered: what is read is a valid document, whose
 * value can be written, and read again as itself. Any bytes as a document: a valid one can be
 * written.
 */
#include <stdlib.h>

#include "bson/tagged.h"

enum {
	MAX_BYTES = 1 << 24,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool good)
{
	if (!good)
		abort();
}

static void
check_text(struct str text)
{
	struct buf document = BUF_INIT(MAX_BYTES);
	struct buf again = BUF_INIT(MAX_BYTES);
	struct err err = { 0 };
	struct bson_value v;

	if (bson_tagged_read(text, &document, &err) == STATUS_OK) {
		must(bson_check(buf_str(&document), &err) == STATUS_OK);
		must(bson_find(buf_str(&document), STR(""), &v));
		bson_tagged_write(&again, &v, true);
		must(buf_status(&again) == STATUS_OK && again.len > 0);
	} else {
		must(document.len == 0);
	}
	buf_release(&document);
	buf_release(&again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str bytes = { (const char *)data, size };
	struct buf out = BUF_INIT(MAX_BYTES);

	check_text(bytes);
	if (bson_check(bytes, NULL) == STATUS_OK) {
		bson_tagged_write(&out, &BSON_OF_DOCUMENT(bytes), size & 1);
		must(buf_status(&out) == STATUS_OK);
		check_text(buf_str(&out));
	}
	buf_release(&out);
	return 0;
}
