/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli.h"
#include "colour.h"
#include "probes/capabilities.h"

static const char *const usage[] = {"", NULL};
static const struct manual_example examples[] = {
        {"yrt doctor", "each requirement of sampling, whether it is met, and how to meet it"},
        {"yrt doctor >/dev/null || echo no sampling here", "for scripts"},
        {NULL, NULL},
};

const struct manual doctor_manual = {
        .usage = usage,
        .text = "For each missing capability yrt doctor says what does not work without it. The exit code is 4 if "
                "sampling is not possible here.",
        .examples = examples,
};

int doctor_main(const struct command_line *self, int argc, char **argv)
{
	static const char *const words[] = {
	        [CAPABILITY_OK] = "ok", [CAPABILITY_LESS] = "less", [CAPABILITY_MISSING] = "MISSING"};
	static const enum colour colours[] = {
	        [CAPABILITY_OK] = COLOUR_GREEN, [CAPABILITY_LESS] = COLOUR_YELLOW, [CAPABILITY_MISSING] = COLOUR_RED};
	static const char cannot_sample[] =
	        "\nyrt can not sample here. Root can, and any user with these capabilities:\n"
	        "  sudo setcap "
	        "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_checkpoint_restore+ep $(which yrt)\n"
	        "In Kubernetes, as frontends/job/job.yaml has it:\n"
	        "  capabilities: {add: [BPF, PERFMON, SYS_PTRACE, CHECKPOINT_RESTORE, DAC_READ_SEARCH]}\n"
	        "  seccompProfile: {type: Unconfined}\n"
	        "What works without any: render, diff, symbolize, layout, runtimes, help, and inspect of your own "
	        "processes.";
	struct capability_check checks[CAPABILITIES_MAX];
	bool works = true;
	int code;
	u32 n;

	if (manual_only_help(self, argc, argv, &code))
		return code;
	n = capabilities_find(checks);
	for (u32 i = 0; i < n; i++) {
		printf("%-22s %s%-8s%s %s\n", checks[i].what, colour(stdout, colours[checks[i].state]),
		        words[checks[i].state], colour(stdout, COLOUR_NONE), checks[i].found);
		if (checks[i].state != CAPABILITY_OK && checks[i].remedy)
			printf("%-22s %-8s -> %s\n", "", "", checks[i].remedy);
		works = works && checks[i].state != CAPABILITY_MISSING;
	}
	puts(works ? "\nyrt samples by BPF, inside the kernel: samples neither pause nor change a target."
	           : cannot_sample);
	return works ? 0 : ERROR_PERMISSION;
}
