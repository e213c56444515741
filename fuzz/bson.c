/*
 * Any bytes as a document: a reader stays inside of them, and of what is a valid document the
 * elements written again are the same bytes, its key is one component, and its Extended JSON reads
 * back as a document with the same text. Any bytes as Extended JSON: what is read is valid, and
 * comes back bit for bit from its own text.
 */
#include <stdlib.h>

#include "bson/json.h"
#include "bson/order.h"
#include "doc/key.h"
#include "look.h"

enum {
	MAX_BYTES = 1 << 24,
	KEY_BYTES = 1000,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Goes through the containers of a document, valid or not, to a small depth. */
static void
read_elements(struct str container, struct str bytes, int depth)
{
	struct bson_iter i;
	struct bson_element e;

	for (bson_iter_begin(&i, container); bson_iter_read(&i, &e);) {
		must(e.bytes.ptr >= bytes.ptr &&
		     e.bytes.ptr + e.bytes.len <= bytes.ptr + bytes.len);
		if (bson_is_container(&e.value) && depth)
			read_elements(bson_text(&e.value), bytes, depth - 1);
	}
}

static void
check_copy(struct str document)
{
	struct buf copy = BUF_INIT(MAX_BYTES);
	struct bson_builder b;
	struct bson_iter i;
	struct bson_element e;

	bson_builder_init(&b, &copy);
	bson_begin(&b);
	for (bson_iter_begin(&i, document); bson_iter_read(&i, &e);)
		bson_put_element(&b, &e);
	bson_end(&b);
	must(!i.damaged && buf_status(&copy) == STATUS_OK && str_eq(buf_str(&copy), document));
	buf_release(&copy);
}

static void
check_key(struct str document)
{
	struct buf key = BUF_INIT(MAX_BYTES);
	const struct bson_value v = BSON_OF_DOCUMENT(document);
	bool cut = false;
	size_t len;

	must(bson_key_put(&key, &v, KEY_BYTES, NULL, &cut) == STATUS_OK);
	must(cut ? key.len == KEY_BYTES
		 : doc_key_skip(buf_str(&key), false, &len) == STATUS_OK && len == key.len);
	must(bson_compare_values(&v, &v, NULL) == 0);
	buf_release(&key);
}

/* The text of what was read from a text is a text of the same bytes. */
static void
check_text_of(struct str document)
{
	struct buf text = BUF_INIT(MAX_BYTES), again = BUF_INIT(MAX_BYTES);

	bson_json_write(&text, document, BSON_JSON_CANONICAL);
	must(buf_status(&text) == STATUS_OK);
	must(bson_json_read(buf_str(&text), &again, NULL) == STATUS_OK);
	must(str_eq(document, buf_str(&again)));
	buf_release(&text);
	buf_release(&again);
}

/*
 * A document may have a member called "$oid", whose text means something else or nothing. What its
 * text is read as, if it is read, has none.
 */
static void
check_json(struct str document)
{
	struct buf text = BUF_INIT(MAX_BYTES), read = BUF_INIT(MAX_BYTES);

	bson_json_write(&text, document, BSON_JSON_CANONICAL);
	must(buf_status(&text) == STATUS_OK);
	if (bson_json_read(buf_str(&text), &read, NULL) == STATUS_OK) {
		must(bson_check(buf_str(&read), NULL) == STATUS_OK);
		check_text_of(buf_str(&read));
	}
	buf_release(&text);
	buf_release(&read);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf read = BUF_INIT(MAX_BYTES);
	struct str bytes = str_of(data, size);

	read_elements(bytes, bytes, 3);
	if (bson_check(bytes, NULL) == STATUS_OK) {
		check_copy(bytes);
		check_key(bytes);
		check_json(bytes);
	}
	if (bson_json_read(bytes, &read, NULL) == STATUS_OK)
		check_text_of(buf_str(&read));
	buf_release(&read);
	return 0;
}
