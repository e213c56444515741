/* frond follow URL: keeps a standby of a server's store (cli/following.h). */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/metric.h"
#include "cli/cli.h"
#include "cli/following.h"
#include "kv/log.h"

enum {
	OPTION_STORE = 's',
	OPTION_NAME = 'n',
	OPTION_ONCE = 'o',
	OPTION_METRICS = 'm',

	PATH_BYTES = 4096,
	METRICS_EVERY_MS = 1000,
	METRICS_BYTES = 4 << 20,
};

struct follow {
	const char *url;
	const char *store_url;
	const char *name;
	const char *metrics;
	bool once;
	uint64_t metrics_due_ns;
};

static volatile sig_atomic_t stop_asked;

static void
ask_to_stop(int number)
{
	(void)number;
	stop_asked = 1;
}

static bool
is_stopped(void *arg)
{
	(void)arg;
	return stop_asked;
}

static const struct argp_option argp_options[] = {
	{ "store", OPTION_STORE, "URL", 0, "The standby's store (default " CLI_STORE ")", 0 },
	{ "name", OPTION_NAME, "NAME", 0,
	  "What the server calls this standby (default: this machine's name)", 0 },
	{ "once", OPTION_ONCE, NULL, 0,
	  "End when the standby has all that the server had committed by then", 0 },
	{ "metrics", OPTION_METRICS, "FILE", 0, "Write metrics for Prometheus to FILE every second",
	  0 },
	{ 0 },
};

static const char argp_doc[] =
	"Keep a standby: a second store that has what the server at URL has, moments later.\v"
	"URL is http://NAME:PASSWORD@HOST:PORT or https://…, of a person who is an administrator "
	"or "
	"has the role that the server's [frond] follower_role names. The server keeps its log with "
	"[frond] keep_log_bytes. Without a standby at the store's place, or if it is further "
	"behind "
	"than the server's log reaches, all is copied first. It ends at SIGTERM and SIGINT, and "
	"goes "
	"on where it was, after a crash of either side, too. While it runs, \"frond dump\", "
	"\"inspect\" and \"verify\" read the standby. \"frond promote\" makes a first of it.\n"
	"\n" CLI_EXIT_TEXT;

static error_t
follow_parse_option(int key, char *text, struct argp_state *state)
{
	struct follow *f = state->input;

	switch (key) {
	case OPTION_STORE:
		f->store_url = cli_parse_store("store", text, state);
		return 0;
	case OPTION_NAME:
		if (!following_name_check(text))
			argp_error(state, "--name takes 1 to %d letters, digits, '-', '_' and '.'",
				   KV_LOG_NAME_BYTES);
		f->name = text;
		return 0;
	case OPTION_ONCE:
		f->once = true;
		return 0;
	case OPTION_METRICS:
		f->metrics = text;
		return 0;
	case ARGP_KEY_ARG:
		if (f->url)
			argp_error(state, "one server at a time; what is \"%s\"?", text);
		f->url = text;
		return 0;
	case ARGP_KEY_END:
		if (!f->url)
			argp_error(state, "which server?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void
write_metrics(void *arg)
{
	AUTO(buf_release) struct buf text = BUF_INIT(METRICS_BYTES);
	AUTO(buf_release) struct buf half = BUF_INIT(PATH_BYTES);
	struct follow *f = arg;
	FILE *file;

	if (!f->metrics || clock_mono_ns() < f->metrics_due_ns)
		return;
	f->metrics_due_ns = clock_after_ms(METRICS_EVERY_MS);
	metric_hold();
	metric_write(&text);
	metric_release();
	buf_printf(&half, "%s.half", f->metrics);
	buf_append_byte(&half, '\0');
	if (buf_status(&half) != STATUS_OK || buf_status(&text) != STATUS_OK)
		return;
	file = fopen(half.ptr, "we");
	if (!file)
		return;
	(void)fwrite(text.ptr, 1, text.len, file);
	if (fclose(file) == 0)
		(void)rename(half.ptr, f->metrics);
}

static int
run_follow(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = follow_parse_option,
					  .args_doc = "URL",
					  .doc = argp_doc };
	const struct sigaction action = { .sa_handler = ask_to_stop };
	char host[KV_LOG_NAME_BYTES + 1] = "standby";
	struct follow f = { .store_url = CLI_STORE };
	struct following_options options;
	struct following *following = NULL;
	struct err err = { 0 };
	enum status status;

	(void)gethostname(host, sizeof(host) - 1);
	f.name = host;
	cli_parse(&argp, argc, argv, &f);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	options = (struct following_options){ .url = f.url,
					      .store_url = f.store_url,
					      .name = f.name,
					      .stopped = is_stopped,
					      .turn = write_metrics,
					      .arg = &f };
	status = following_new(&options, &following, &err);
	if (status == STATUS_OK)
		status = following_run(following, f.once, &err);
	if (status == STATUS_OK && f.once)
		printf("%s has version %llu of %s\n", f.store_url,
		       (unsigned long long)following_version(following),
		       following_first(following));
	following_free(following);
	if (status == STATUS_OK)
		return cli_finish_output();
	cli_complain("%s", err.text[0] ? err.text : status_name(status));
	return CLI_FAILED;
}

const struct cli_command cli_follow = { "follow", "keep a standby of a server's store",
					run_follow };
