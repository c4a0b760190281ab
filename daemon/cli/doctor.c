// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor.h"

#include <ctype.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/session.h"
#include "service/statusfile.h"

static const char help[] =
	"usage: stacktap doctor [--json]\n\n"
	"Checks what stacktap needs from this host: kernel, headers, DKMS, the module\n"
	"and its limits, Secure Boot, signatures, lockdown, PMU, sessions that fell back\n"
	"to cpu-clock, privilege, files whose unwind tables are too large, and a receiver\n"
	"that does not take the daemon's profiles. Prints what is wrong and the remedy.\n"
	"Needs neither the module nor privilege; ? marks what it cannot see without them.\n"
	"Exit status 1 if something keeps stacktap from working.\n\n"
	"      --json  everything as JSON\n"
	"  -h, --help\n";

static void add_fallback(struct doctor_input *input, const struct control_session *session,
			 const struct control_source *source)
{
	struct doctor_fallback *fallback = &input->fallback;

	if (!source->fallback_cpus || input->fallbacks++)
		return;
	fallback->session_id = session->id;
	snprintf(fallback->owner, sizeof(fallback->owner), "%s", session->owner_comm);
	snprintf(fallback->source, sizeof(fallback->source), "%s", source->name);
	fallback->cpus = source->fallback_cpus;
	fallback->error = source->fallback_errno;
}

static int add_session(void *ctx, const struct control_session *session)
{
	struct doctor_input *input = ctx;

	input->ring_bytes += session->ring_bytes + session->stash_bytes;
	/* one that is stopped tells of counters that it had */
	for (size_t i = 0; session->state == STACKTAP_STATE_RUNNING && i < session->source_count; i++)
		add_fallback(input, session, &session->sources[i]);
	return 0;
}

static int ask_module(struct control_module *module, struct doctor_input *input)
{
	_cleanup_(session_closep) struct control *control = NULL;
	int ret;

	ret = control_open(&control);
	if (!ret)
		ret = control_get_module(control, module);
	if (ret < 0)
		return ret;
	input->module = module;
	/* another major's sessions may mean something else */
	if (module->abi_major == STACKTAP_ABI_MAJOR)
		control_each_session(control, add_session, input);
	return 0;
}

static void print_finding(const struct doctor_finding *finding)
{
	static const char *const marks[] = {
		[DOCTOR_OK] = "ok",
		[DOCTOR_UNKNOWN] = "?",
		[DOCTOR_WARNING] = "warning",
		[DOCTOR_PROBLEM] = "PROBLEM",
	};
	const char *line = finding->log;

	printf("%-8s %-15s %s\n", marks[finding->state], finding->name, finding->text);
	while (line && *line) {
		int length = (int)strcspn(line, "\n");

		printf("%25s| ", "");
		/* a log may hold what a terminal would obey */
		for (int i = 0; i < length; i++)
			putchar(isprint((unsigned char)line[i]) ? line[i] : '?');
		putchar('\n');
		line += length + (line[length] == '\n');
	}
	if (finding->remedy[0])
		printf("%25s-> %s\n", "", finding->remedy);
}

static void print_text(const struct doctor_report *report)
{
	for (size_t i = 0; i < DOCTOR_CHECKS; i++)
		print_finding(&report->findings[i]);
	printf("%zu problem%s, %zu warning%s, %zu unknown: %s\n", report->problems,
	       report->problems == 1 ? "" : "s", report->warnings,
	       report->warnings == 1 ? "" : "s", report->unknown,
	       report->problems ? "stacktap cannot work here as it is" :
	       report->unknown ? "nothing that could be checked keeps stacktap from working" :
				"nothing keeps stacktap from working");
}

static void print_json(const struct doctor_report *report)
{
	struct json json;

	json_init(&json, stdout);
	json_object(&json, NULL);
	json_array(&json, "checks");
	for (size_t i = 0; i < DOCTOR_CHECKS; i++) {
		const struct doctor_finding *finding = &report->findings[i];

		json_object(&json, NULL);
		json_string(&json, "name", finding->name);
		json_string(&json, "state", doctor_state_name(finding->state));
		json_string(&json, "text", finding->text);
		json_string(&json, "remedy", finding->remedy[0] ? finding->remedy : NULL);
		json_string(&json, "log", finding->log);
		json_end(&json);
	}
	json_end(&json);
	json_u64(&json, "problems", report->problems);
	json_u64(&json, "warnings", report->warnings);
	json_u64(&json, "unknown", report->unknown);
	json_end(&json);
}

int doctor_run(int argc, char **argv)
{
	struct doctor_input input = { .root = "" };
	struct control_module module;
	_cleanup_free_ char *status = NULL, *json = NULL;
	struct doctor_report report;
	size_t json_size;
	bool use_json;
	int ret;

	ret = cli_parse_json(argc, argv, help, &use_json);
	if (ret != CLI_GO_ON)
		return ret;
	if (optind != argc)
		return cli_usage_error("doctor takes no argument `%s'", argv[optind]);
	input.module_error = ask_module(&module, &input);
	input.status_error = statusfile_read(STATUSFILE_DIRECTORY, &status, &json, &json_size);
	input.status = status;
	doctor_look(&input, &report);
	if (use_json)
		print_json(&report);
	else
		print_text(&report);
	ret = cli_finish();
	if (!ret && report.problems)
		ret = CLI_FAILED;
	doctor_report_done(&report);
	return ret;
}
