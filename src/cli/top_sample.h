/*
 * What a server says of itself at one moment: its metrics as Prometheus reads them, and between two
 * such moments what has happened. One thread's.
 */
#ifndef FROND_CLI_TOP_SAMPLE_H
#define FROND_CLI_TOP_SAMPLE_H

#include "base/buf.h"
#include "base/status.h"

enum {
	TOP_SERIES = 20000,  /* of a server; more are no metrics of frond */
	TOP_NAME_BYTES = 64, /* of a value of a label */
	TOP_PERCENT = 99,    /* per cent of what was observed is below a quantile */
};

/* A line of the text: name and labels as they stand there. */
struct top_series {
	struct str key;
	double value;
};

struct top_sample {
	struct buf text;
	struct top_series *series; /* by their keys */
	size_t count;
	uint64_t at_ns;
};

/* Takes the text, which the sample owns from now on. STATUS_INVALID, STATUS_NOMEM. */
MUST_USE enum status top_sample_read(struct top_sample *s, struct buf *text, uint64_t at_ns,
				     struct err *err);
void top_sample_free(struct top_sample *s);

/* The value of a series; 0 if there is none. */
double top_value(const struct top_sample *s, const char *key);

/* By how much a counter has grown since `before`, which may be NULL: since the server started. */
double top_growth(const struct top_sample *before, const struct top_sample *now, const char *key);

/* The series whose keys begin so: the first one's place, and how many there are behind it. */
size_t top_find(const struct top_sample *s, const char *prefix, size_t *ret_count);

/* Copies the value of a label, and returns false if the key has none of that name. */
bool top_label(struct str key, const char *label, char ret[TOP_NAME_BYTES]);

/*
 * The number below which TOP_PERCENT of what a histogram has observed since `before` are, rounded
 * up to the end of a bucket; 0 if it has observed nothing. `prefix` is the buckets' key up to
 * `le="`.
 */
double top_quantile(const struct top_sample *before, const struct top_sample *now,
		    const char *prefix);

#endif
