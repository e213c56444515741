/* What settings CONFIG knows. docs/REDIS.md says which have an effect here. */
#ifndef FROND_DOOR_REDIS_CMD_CONFIG_ROWS_H
#define FROND_DOOR_REDIS_CMD_CONFIG_ROWS_H

#include <stddef.h>
#include <stdint.h>

enum config_kind {
	CONFIG_NUMBER,
	CONFIG_MEMORY,
	CONFIG_FLAG,
	CONFIG_EVENTS,
	CONFIG_OUTPUT,
	CONFIG_CHANNELS, /* acl-pubsub-default */
	/* Of the user `default`, in the store: it has no text here, and is never shown. */
	CONFIG_PASSWORD,
	CONFIG_FIXED, /* it can be read; setting it to something else makes no sense here */
};

struct config_row {
	const char *name;
	const char *first; /* its value at the start */
	enum config_kind kind;
	int64_t least;
	int64_t most;
	const char *why;  /* CONFIG_FIXED: why it cannot be set */
	const char *also; /* another name of the same setting; NULL: it has none */
};

/* Sorted by name. */
extern const struct config_row config_rows[];
extern const size_t config_row_count;

#endif
