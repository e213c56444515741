/* Opening and closing a faulty store, and reading its settings. */
#include <stdlib.h>

#include "base/mem.h"
#include "kv/faulty/faulty_int.h"

/* ---- Settings ---- */

static const struct faulty_settings defaults = {
	.seed = 1,
	.rate = 0.05,
	.delay = 0.2,
	.watch = 0.2,
	.exit_on = 1,
};

static const struct {
	const char *name;
	enum faulty_exit point;
} exit_points[] = {
	{ "read", FAULTY_EXIT_READ },
	{ "before-commit", FAULTY_EXIT_BEFORE_COMMIT },
	{ "after-commit", FAULTY_EXIT_AFTER_COMMIT },
};

static bool
settings_read_number(const char *text, uint64_t *ret)
{
	char *end;

	*ret = strtoull(text, &end, 0);
	return end != text && *end == '\0' && *text != '-';
}

static bool
settings_read_share(const char *text, double *ret)
{
	char *end;

	*ret = strtod(text, &end);
	return end != text && *end == '\0' && *ret >= 0 && *ret <= 1;
}

/* "POINT" or "POINT@N" */
static bool
settings_read_exit(char *text, struct faulty_settings *s)
{
	char *at = strchr(text, '@');

	if (at) {
		*at++ = '\0';
		if (!settings_read_number(at, &s->exit_on))
			return false;
	}
	for (size_t i = 0; i < sizeof(exit_points) / sizeof(exit_points[0]); i++)
		if (strcmp(text, exit_points[i].name) == 0) {
			s->exit = exit_points[i].point;
			return true;
		}
	return false;
}

/* Reads one setting, "name=value". The text is changed. */
static bool
settings_read_one(char *text, struct faulty_settings *s)
{
	char *value = strchr(text, '=');

	if (!value)
		return false;
	*value++ = '\0';
	if (strcmp(text, "seed") == 0)
		return settings_read_number(value, &s->seed);
	if (strcmp(text, "rate") == 0)
		return settings_read_share(value, &s->rate);
	if (strcmp(text, "delay") == 0)
		return settings_read_share(value, &s->delay);
	if (strcmp(text, "watch") == 0)
		return settings_read_share(value, &s->watch);
	if (strcmp(text, "shared") == 0)
		return settings_read_number(value, &s->shared);
	if (strcmp(text, "exit") == 0)
		return settings_read_exit(value, s);
	return false;
}

/* Reads settings between commas. The text is changed. */
static bool
settings_read(char *text, struct faulty_settings *s)
{
	char *next;

	for (; text && *text; text = next) {
		next = strchr(text, ',');
		if (next)
			*next++ = '\0';
		if (!settings_read_one(text, s))
			return false;
	}
	return true;
}

/* ---- Opening and closing ---- */

/* The engine of stores that claim to be shared; made when the engine is registered. */
static struct kv_engine faulty_shared;

static enum status
faulty_open_over(struct faulty_store *store, const char *url,
		 const struct faulty_settings *settings, const struct kv_options *options,
		 struct err *err)
{
	TRY(kv_open(url, options, &store->inner, err));
	store->base.engine = settings->shared ? &faulty_shared : &kv_engine_faulty;
	store->base.read_only = store->inner->read_only;
	store->base.prefix_bytes = store->inner->prefix_bytes;
	faulty_dice_init(&store->dice, settings);
	pthread_mutex_init(&store->interrupt_lock, NULL);
	store->delayer = faulty_delayer_start(&store->dice);
	if (store->delayer)
		return STATUS_OK;
	pthread_mutex_destroy(&store->interrupt_lock);
	faulty_dice_fini(&store->dice);
	kv_close(store->inner);
	return err_set(err, STATUS_NOMEM, "out of memory or threads");
}

enum status
faulty_open(struct str address, const struct kv_options *options, struct kv_store **ret,
	    struct err *err)
{
	struct faulty_settings settings = defaults;
	struct faulty_store *store;
	enum status status;
	char *text;
	char *url;

	store = mem_zalloc(sizeof(*store));
	text = mem_strdup(address);
	url = text ? strchr(text, ':') : NULL;
	if (url)
		*url++ = '\0';
	if (!store || !text)
		status = err_set(err, STATUS_NOMEM, "out of memory");
	else if (!url || !settings_read(text, &settings))
		status = err_set(err, STATUS_INVALID,
				 "'faulty:%.*s' is not faulty:SETTINGS:URL with settings among "
				 "seed, rate, delay, watch, exit",
				 STR_ARG(address));
	else
		status = faulty_open_over(store, url, &settings, options, err);
	mem_free(text);
	if (status != STATUS_OK) {
		mem_free(store);
		return status;
	}
	*ret = &store->base;
	return STATUS_OK;
}

void
faulty_close(struct kv_store *base)
{
	struct faulty_store *store = (struct faulty_store *)base;

	faulty_delayer_stop(store->delayer);
	kv_close(store->inner);
	pthread_mutex_destroy(&store->interrupt_lock);
	faulty_dice_fini(&store->dice);
	mem_free(store);
}

struct kv_store_stats
faulty_store_stats(struct kv_store *base)
{
	return kv_store_stats(((struct faulty_store *)base)->inner);
}

enum status
faulty_estimate_bytes(struct kv_store *base, struct str begin, struct str end, uint64_t *ret)
{
	return kv_estimate_bytes(((struct faulty_store *)base)->inner, begin, end, ret);
}

enum status
faulty_compact(struct kv_store *base, struct err *err)
{
	return kv_compact(((struct faulty_store *)base)->inner, err);
}

enum status
faulty_backup_create(struct kv_store *base, const char *dir, struct kv_backup *ret, struct err *err)
{
	return kv_backup_create(((struct faulty_store *)base)->inner, dir, ret, err);
}

enum status
faulty_backup_restore(const char *dir, uint32_t id, struct str address,
		      const struct kv_restore *how, struct kv_backup *ret, struct err *err)
{
	char *text = mem_strdup(address);
	char *url = text ? strchr(text, ':') : NULL;
	enum status status;

	if (url)
		status = kv_backup_restore(dir, id, url + 1, how, ret, err);
	else if (text)
		status = err_set(err, STATUS_INVALID, "'faulty:%.*s' is not faulty:SETTINGS:URL",
				 STR_ARG(address));
	else
		status = err_set(err, STATUS_NOMEM, "out of memory");
	mem_free(text);
	return status;
}

void
kv_faulty_register(void)
{
	faulty_shared = kv_engine_faulty;
	faulty_shared.shared = true;
	kv_engine_register(&kv_engine_faulty);
}

struct kv_store *
kv_faulty_inner(struct kv_store *store)
{
	bool faulty = store->engine == &kv_engine_faulty || store->engine == &faulty_shared;

	return faulty ? ((struct faulty_store *)store)->inner : store;
}
