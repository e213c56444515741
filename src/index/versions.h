/*
 * The versions of what orders strings: an index that is stored depends on them. Thread-safe.
 */
#ifndef FROND_INDEX_VERSIONS_H
#define FROND_INDEX_VERSIONS_H

struct index_versions {
	char library[32];   /* ICU */
	char algorithm[32]; /* Unicode's collation algorithm; empty: ICU's data cannot be read */
	char collator[32];  /* the collator and its data; likewise */
};

void index_versions_read(struct index_versions *ret);

#endif
