/* frond metrics: which metrics a server exports, one by one. */
#include <stdio.h>
#include <string.h>

#include "base/metric.h"
#include "cli/cli.h"

enum {
	OPTION_LIST = 'l',
	OPTION_MARKDOWN = 'm',
	OPTION_GRAFANA = 'g',

	PANEL_WIDTH = 12, /* of 24 columns */
	PANEL_HEIGHT = 8,
	ROW_HEIGHT = 1,
	SELECTOR_BYTES = 256,
};

struct metrics_args {
	bool list;
	bool markdown;
	bool grafana;
};

static const struct argp_option argp_options[] = {
	{ "list", OPTION_LIST, NULL, 0, "List every metric with its kind", 0 },
	{ "markdown", OPTION_MARKDOWN, NULL, 0, "List them as docs/METRICS.md does", 0 },
	{ "grafana", OPTION_GRAFANA, NULL, 0,
	  "Print a dashboard for Grafana, with a panel for each of them", 0 },
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
	case OPTION_GRAFANA:
		args->grafana = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "what is \"%s\"?", text);
		return 0;
	case ARGP_KEY_END:
		if (args->list + args->markdown + args->grafana != 1)
			argp_error(state, "one of --list, --markdown and --grafana is needed");
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

/* ---- A dashboard ---- */

/* The word behind "frond_", by which panels are grouped. */
static struct str
metrics_group(const struct metric *m)
{
	struct str name = str_from_cstr(m->name), word = str_cut(&name, '_');

	return str_eq(word, STR("frond")) ? str_cut(&name, '_') : word;
}

/* As a string of JSON: there are no control characters in texts of metrics. */
static void
metrics_print_text(const char *text)
{
	putchar('"');
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else
			putchar(*text);
	putchar('"');
}

static const char *
metrics_grafana_unit(const struct metric *m)
{
	bool rate = m->kind == METRIC_KIND_COUNTER;

	if (m->unit == METRIC_SECONDS)
		return rate ? "percentunit" : "s";
	if (m->unit == METRIC_BYTES)
		return rate ? "Bps" : "bytes";
	return rate ? "ops" : "short";
}

/* "by (le, door, class)", with what is given before the labels. */
static const char *
metrics_by(const struct metric *m, const char *first, char ret[SELECTOR_BYTES])
{
	size_t len = (size_t)snprintf(ret, SELECTOR_BYTES, "by (%s", first);

	for (size_t at = 0; at < 2 && m->labels[at].name; at++)
		len += (size_t)snprintf(ret + len, SELECTOR_BYTES - len, ", %s",
					m->labels[at].name);
	(void)snprintf(ret + len, SELECTOR_BYTES - len, ")");
	return ret;
}

/* One line of a panel; `before` and `after` are around the sum of the metric's series. */
static void
metrics_print_target(const struct metric *m, char ref, const char *before, const char *after,
		     const char *first, const char *legend)
{
	bool gauge = m->kind == METRIC_KIND_GAUGE;
	char by[SELECTOR_BYTES];

	printf("%s{\"refId\":\"%c\",\"expr\":\"%ssum %s "
	       "(%s%s%s{instance=~\\\"$instance\\\"}%s)%s\","
	       "\"legendFormat\":\"{{instance}}",
	       ref == 'A' ? "" : ",", ref, before, metrics_by(m, first, by), gauge ? "" : "rate(",
	       m->name, m->kind == METRIC_KIND_HISTOGRAM ? "_bucket" : "",
	       gauge ? "" : "[$__rate_interval])", after);
	for (size_t at = 0; at < 2 && m->labels[at].name; at++)
		printf(" {{%s}}", m->labels[at].name);
	printf("%s\"}", legend);
}

static void
metrics_print_panel(const struct metric *m, unsigned id, unsigned x, unsigned y)
{
	printf(",\n{\"type\":\"timeseries\",\"id\":%u,\"title\":\"%s\",\"description\":", id,
	       m->name);
	metrics_print_text(m->help);
	printf(",\"datasource\":{\"type\":\"prometheus\",\"uid\":\"${datasource}\"},"
	       "\"gridPos\":{\"x\":%u,\"y\":%u,\"w\":%d,\"h\":%d},"
	       "\"fieldConfig\":{\"defaults\":{\"unit\":\"%s\",\"min\":0},\"overrides\":[]},"
	       "\"targets\":[",
	       x, y, PANEL_WIDTH, PANEL_HEIGHT, metrics_grafana_unit(m));
	if (m->kind == METRIC_KIND_HISTOGRAM) {
		metrics_print_target(m, 'A', "histogram_quantile(0.5, ", ")", "le, instance",
				     " median");
		metrics_print_target(m, 'B', "histogram_quantile(0.99, ", ")", "le, instance",
				     " 99th");
	} else {
		metrics_print_target(m, 'A', "", "", "instance", "");
	}
	printf("]}");
}

/* Where the next panel comes: two side by side, and a row of its own for the name of a group. */
struct grid {
	unsigned id;
	unsigned x;
	unsigned y;
};

static void
metrics_print_row(struct grid *g, struct str group)
{
	if (g->x)
		g->y += PANEL_HEIGHT;
	g->x = 0;
	printf("%s\n{\"type\":\"row\",\"id\":%u,\"title\":\"%.*s\",\"collapsed\":false,\"panels\":["
	       "],"
	       "\"gridPos\":{\"x\":0,\"y\":%u,\"w\":%d,\"h\":%d}}",
	       g->id ? "," : "", g->id, STR_ARG(group), g->y, 2 * PANEL_WIDTH, ROW_HEIGHT);
	g->id++;
	g->y += ROW_HEIGHT;
}

static void
metrics_print_grafana(void)
{
	struct str group = { 0 };
	struct grid g = { 0 };

	printf("{\"title\":\"frond\",\"uid\":\"frond\",\"schemaVersion\":38,\"refresh\":\"30s\","
	       "\"time\":{\"from\":\"now-1h\",\"to\":\"now\"},\"templating\":{\"list\":["
	       "{\"name\":\"datasource\",\"type\":\"datasource\",\"query\":\"prometheus\"},"
	       "{\"name\":\"instance\",\"type\":\"query\",\"multi\":true,\"includeAll\":true,"
	       "\"refresh\":2,"
	       "\"datasource\":{\"type\":\"prometheus\",\"uid\":\"${datasource}\"},"
	       "\"query\":\"label_values(frond_build_info, instance)\"}]},\"panels\":[");
	for (size_t i = 0; i < metric_count(); i++) {
		const struct metric *m = metric_at(i);

		if (!metrics_is_first(i))
			continue;
		if (!group.ptr || !str_eq(group, metrics_group(m)))
			metrics_print_row(&g, metrics_group(m));
		group = metrics_group(m);
		metrics_print_panel(m, g.id++, g.x, g.y);
		g.x = g.x ? 0 : PANEL_WIDTH;
		g.y += g.x ? 0 : PANEL_HEIGHT;
	}
	printf("\n]}\n");
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
	else if (args.grafana)
		metrics_print_grafana();
	else
		metrics_print_list();
	return cli_finish_output();
}

const struct cli_command cli_metrics = { "metrics", "list the metrics that a server exports",
					 run_metrics };
