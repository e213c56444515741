/*
 * libbson, which is MongoDB's own library, for comparing what it says with what frond says. Its
 * header has the name of frond's, so this one knows nothing of frond.
 */
#ifndef FROND_TESTS_BSON_PEER_H
#define FROND_TESTS_BSON_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PEER_DECIMAL_BYTES = 43,
};

/* Whether libbson takes the bytes for a document, with UTF-8 in its texts. */
bool peer_accepts(const char *document, size_t len);
/* libbson's canonical Extended JSON of a document, for free(); NULL if it refuses it. */
char *peer_write_json(const char *document, size_t len);
/* The document that libbson reads from Extended JSON, likewise. */
char *peer_read_json(const char *text, size_t len, size_t *ret_len);
/* libbson's text of a Decimal128. */
void peer_print_decimal(uint64_t low, uint64_t high, char ret[PEER_DECIMAL_BYTES]);

#endif
