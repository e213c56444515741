/* frond metrics: which metrics a server exports, one by one. */
#include <stdio.h>
#include <string.h>

#include "base/metric.h"
#include "cli/cli.h"

enum {
	OPTION_LIST = 'l',
	OPTION_MARKDOWN = 'm',
};

struct metrics_args {
	bool list;
	bool markdown;
};

static const struct argp_option argp_options[] = {
	{ "list", OPTION_LIST, NULL, 0, "List every metric with its kind", 0 },
	{ "markdown", OPTION_MARKDOWN, NULL, 0, "List them as docs/METRICS.md does", 0 },
	{ 0 },
};

static const char argp_doc[] = "Tell of the metrics that `frond serve` exports at "
			       "/_node/_local/_prometheus.\v" CLI_EXIT_TEXT;

static error_t
metrics_parse_option(int key, char *text, struct argp_state *state)
{
	struct metrics_args *args = state->input;

	switch (key) {
	case OPTION_LIST:
		args->list = true;
		return 0;
	case OPTION_MARKDOWN:
		args->markdown = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "what is \"%s\"?", text);
		return 0;
	case ARGP_KEY_END:
		if (args->list + args->markdown != 1)
			argp_error(state, "one of --list and --markdown is needed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const char *
metrics_kind_name(const struct metric *m)
{
	switch (m->kind) {
	case METRIC_KIND_COUNTER:
		return "counter";
	case METRIC_KIND_GAUGE:
		return "gauge";
	case METRIC_KIND_HISTOGRAM:
		return "histogram";
	}
	return "";
}

/* True for the first of several declarations of one name, as those of METRIC_REFUSED are. */
static bool
metrics_is_first(size_t i)
{
	return i == 0 || strcmp(metric_at(i - 1)->name, metric_at(i)->name) != 0;
}

static void
metrics_print_values(const struct metric_label *label, const char **last)
{
	for (size_t i = 0; i < label->count; i++) {
		if (*last && strcmp(*last, label->values[i]) == 0)
			continue;
		printf("%s`%s`", *last ? ", " : "", label->values[i]);
		*last = label->values[i];
	}
}

/* The labels and their values, of all declarations of that name. */
static void
metrics_print_labels(size_t first)
{
	const struct metric *m = metric_at(first);

	for (size_t at = 0; at < 2 && m->labels[at].name; at++) {
		const char *last = NULL;

		printf("%s`%s`: ", at ? "; " : "", m->labels[at].name);
		for (size_t i = first; i < metric_count(); i++) {
			if (i > first && metrics_is_first(i))
				break;
			metrics_print_values(&metric_at(i)->labels[at], &last);
		}
	}
}

static void
metrics_print_markdown(void)
{
	printf("| name | kind | labels | |\n|---|---|---|---|\n");
	for (size_t i = 0; i < metric_count(); i++) {
		const struct metric *m = metric_at(i);

		if (!metrics_is_first(i))
			continue;
		printf("| `%s` | %s | ", m->name, metrics_kind_name(m));
		metrics_print_labels(i);
		printf(" | %s |\n", m->help);
	}
}

static void
metrics_print_list(void)
{
	for (size_t i = 0; i < metric_count(); i++) {
		const struct metric *m = metric_at(i);

		if (metrics_is_first(i))
			printf("%s %s\n", m->name, metrics_kind_name(m));
	}
}

static int
run_metrics(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = metrics_parse_option,
					  .doc = argp_doc };
	struct metrics_args args = { 0 };

	cli_parse(&argp, argc, argv, &args);
	if (args.markdown)
		metrics_print_markdown();
	else
		metrics_print_list();
	return cli_finish_output();
}

const struct cli_command cli_metrics = { "metrics", "list the metrics that a server exports",
					 run_metrics };
