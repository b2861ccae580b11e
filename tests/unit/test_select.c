/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "probes/select.h"
#include "probes/select_find.h"
#include "unwind/process/cgroup.h"

#define ID_A       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID_B       "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID        "1b2c3d4e-5f60-7182-93a4-b5c6d7e8f901"
#define OTHER_UID  "2c3d4e5f-6071-8293-a4b5-c6d7e8f90123"
#define DRIVER_UID "1b2c3d4e_5f60_7182_93a4_b5c6d7e8f901" /* as systemd's driver writes it */

static char root[] = "/tmp/test_select.XXXXXX";

static void put(pid_t pid, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%d/%s", root, pid, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void put_process(pid_t pid, const char *comm, const char *exe, const char *cgroup)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%d", root, pid);
	mkdir(path, 0700);
	put(pid, "comm", comm);
	put(pid, "cgroup", cgroup);
	put(pid, "cmdline", comm);
	snprintf(path, sizeof(path), "%s/%d/exe", root, pid);
	if (*exe)
		assert_int_equal(symlink(exe, path), 0);
}

static int make_proc(void **state)
{
	if (!mkdtemp(root))
		return -1;
	put_process(10, "envoy\n", "/usr/local/bin/envoy",
	        "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" DRIVER_UID
	        ".slice/cri-containerd-" ID_A ".scope\n");
	put_process(11, "wrk:worker_0\n", "/usr/local/bin/envoy (deleted)",
	        "12:cpu:/x\n0::/kubepods/besteffort/pod" UID "/" ID_B "\n");
	put_process(12, "nginx\n", "/usr/sbin/nginx", "0::/system.slice/nginx.service\n");
	put_process(13, "nginx\n", "/usr/sbin/nginx", "0::/system.slice/nginx.service\n");
	put_process(14, "kworker/0:1\n", "", "0::/\n");
	put_process(17, "hidden\n", "", "0::/hidden.slice/hidden.service\n");
	put(17, "exe", "not a link");
	put_process(18, "hidden\n", "", "0::/\n"); /* a zombie and a kernel thread that may not be looked at */
	put(18, "exe", "not a link");
	put(18, "stat", "18 (hid) den) Z 1 1 1 0 -1 4194560 0 0\n");
	put_process(19, "kthread-pattern\n", "", "0::/\n");
	put(19, "exe", "not a link");
	put(19, "stat", "19 (kthread-pattern) S 2 0 0 0 -1 2129984 0 0\n");
	put_process(9, "a-name-of-15-by\n", "/usr/bin/perl", "0::/\n");
	put_process(15, "sh\n", "/bin/dash", "0::/../docker-" ID_B ".scope\n");
	put_process(16, "x\n", "/bin/x", "garbage\n1:\n::\n0::\n:::/::\n0::/podxyz/pod/.scope/-pod.slice\n");
	return 0;
}

static int remove_proc(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

/* The pids that a rule, or two, select: "10 11 ". */
static void check(const char *rule, const char *other, const char *wanted)
{
	struct selection s = {0};
	char text[128] = "";
	pid_t *pids;
	u32 n;

	assert_null(selection_add(&s, rule));
	if (other)
		assert_null(selection_add(&s, other));
	assert_null(selection_find(&s, root, &pids, &n));
	for (pid_t pid = 1; pid < 20; pid++)
		for (u32 i = 0; i < n; i++)
			if (pids[i] == pid)
				snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d ", pid);
	assert_string_equal(text, wanted);
	free(pids);
	selection_free(&s);
}

static void test_rules(void **state)
{
	check("exe=envoy", NULL, "10 11 ");
	check("exe=/usr/local/bin/envoy", NULL, "10 11 ");
	check("exe=/bin/envoy", NULL, "");
	check("exe=*", NULL, "9 10 11 12 13 15 16 ");
	check("comm=kworker*", NULL, ""); /* nothing to look into */
	check("comm=kworker", NULL, "");
	check("comm=a-name-of-15-bytes-and-more", NULL, "9 ");
	check("comm=a-name-of-15-b", NULL, "");
	check("comm=wrk:worker_0-and-more", NULL, "");
	check("comm=kthread-*", NULL, "");
	check("exe=envoy,comm=wrk:*", NULL, "11 ");
	check("exe=envoy", "unit=nginx", "10 11 12 13 ");
	check("unit=nginx.service", NULL, "12 13 ");
	check("unit=ngin", NULL, "");
	check("cgroup=/system.slice", NULL, "12 13 ");
	check("cgroup=/system.sl", NULL, "");
	check("cgroup=system.slice/*", NULL, "12 13 ");
	check("cgroup=/x", NULL, "11 "); /* any hierarchy */
}

static void test_kubernetes(void **state)
{
	check("pod=" UID, NULL, "10 11 "); /* both of kubelet's drivers */
	check("pod=" DRIVER_UID, NULL, "10 11 ");
	check("container=" ID_A, NULL, "10 ");
	check("container=containerd://" ID_A, NULL, "10 ");
	check("container=fedcba987654", NULL, "11 15 ");
	check("container=" ID_B ",pod=" UID, NULL, "11 ");
}

/* What else runtimes write, of any version of cgroups. */
static void test_layouts(void **state)
{
	static const char *const text[] = {"4:memory:/kubepods/pod" UID "/" ID_A "\n1:name=systemd:/\n0::/\n",
	        "0::/kubepods.slice/kubepods-pod" DRIVER_UID ".slice/crio-" ID_A ".scope/container\n",
	        "0::/system.slice/containerd.service/kubepods-burstable-pod" DRIVER_UID ".slice:cri-containerd:" ID_A
	        "\n",
	        "0::/docker/" ID_B "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
	        "kubelet-kubepods-burstable-pod" DRIVER_UID ".slice/cri-containerd-" ID_A ".scope\n",
	        "0::/../../kubepods-besteffort-pod" DRIVER_UID ".slice/cri-containerd-" ID_A ".scope\n"};
	static const char *const outside[] = {"0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID_A
	                                      ".scope\n",
	        "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID_A ".scope/container\n",
	        "0::/machine.slice/machine-libpod_pod_" ID_B ".slice/libpod-" ID_A ".scope/container\n",
	        "0::/libpod_parent/" ID_B "/libpod-" ID_A "\n", "0::/default/" ID_A "\n",
	        "0::/ecstasks.slice/ecstasks-0123456789abcdef0123456789abcdef.slice/docker-" ID_A ".scope\n",
	        "4:cpu:/ecs/0123456789abcdef0123456789abcdef/" ID_A "\n0::/\n"};
	static const char *const monitors[] = {"0::/machine.slice/libpod-conmon-" ID_A ".scope\n",
	        "0::/kubepods.slice/kubepods-pod" DRIVER_UID ".slice/crio-conmon-" ID_A ".scope\n"};
	char id[SELECT_ID];

	for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++) {
		assert_true(cgroup_pod(text[i], id));
		assert_string_equal(id, UID);
		assert_true(cgroup_container(text[i], id));
		assert_string_equal(id, ID_A);
	}
	for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++) {
		assert_true(cgroup_container(outside[i], id));
		assert_string_equal(id, ID_A);
		assert_false(cgroup_pod(outside[i], id));
	}
	for (size_t i = 0; i < sizeof(monitors) / sizeof(*monitors); i++)
		assert_false(cgroup_container(monitors[i], id));
}

static void test_facts(void **state)
{
	struct process_facts f;
	char id[SELECT_ID];

	assert_true(facts_read(root, 10, &f));
	assert_string_equal(facts_name(&f), "envoy");
	assert_true(facts_pod(&f, id));
	assert_string_equal(id, UID);
	assert_true(facts_container(&f, id));
	assert_string_equal(id, ID_A);
	assert_false(facts_unit(&f, id));
	assert_true(facts_read(root, 16, &f));
	assert_false(facts_pod(&f, id) || facts_container(&f, id) || facts_unit(&f, id));
	assert_false(facts_read(root, 99, &f));
}

static void refused(const char *rule, const char *why)
{
	struct selection s = {0};
	struct error *err = selection_add(&s, rule);

	assert_non_null(err);
	assert_int_equal(err->kind, ERROR_USAGE);
	assert_non_null(strstr(err->message, why));
	error_free(err);
	selection_free(&s);
}

static void test_usage(void **state)
{
	char many[256] = "comm=a";

	refused("envoy", "no '='");
	refused("", "no '='");
	refused("name=envoy", "unknown");
	refused("exe=", "nothing behind");
	refused("exe=a,", "no '='");
	refused("comm=a-name-of-15-byt*", "no comm has more than 15 bytes");
	check("comm=[a-zA-Z0-9_.:@+-]*", NULL, "9 10 11 12 13 15 16 17 ");
	refused("container=0123", "12 to 64 digits");
	refused("container=ABCDEF0123456789", "12 to 64 digits");
	for (int i = 0; i < SELECT_TERMS; i++)
		strcat(many, ",comm=a");
	refused(many, "too many");
}

static void missed(const char *rule, const char *hint)
{
	struct selection s = {0};
	struct error *err;

	assert_null(selection_add(&s, rule));
	err = selection_missed(&s, root);
	assert_int_equal(err->kind, ERROR_NO_PROCESS);
	assert_non_null(strstr(err->message, rule));
	assert_non_null(strstr(err->hint, hint));
	error_free(err);
	selection_free(&s);
}

/* A process of which only comm and cgroup may be looked at: neither found nor to be waited for. */
static void test_hidden(void **state)
{
	static const char *const rules[] = {"exe=hidden", "exe=/usr/bin/hidd*,unit=hidden"};
	struct selection s = {0};

	for (int i = 0; i < 2; i++) {
		struct error *err;

		assert_null(selection_add(&s, rules[i]));
		err = selection_hidden(&s, root);
		assert_int_equal(err->kind, ERROR_PERMISSION);
		assert_non_null(strstr(err->hint, "CAP_SYS_PTRACE"));
		error_free(err);
		err = selection_missed(&s, root);
		assert_int_equal(err->kind, ERROR_PERMISSION);
		error_free(err);
		selection_free(&s);
		s = (struct selection){0};
	}
	for (int i = 0; i < 2; i++) {
		assert_null(selection_add(&s, i ? "exe=kthread-pattern" : "exe=hidden,unit=nginx"));
		assert_null(selection_hidden(&s, root));
		selection_free(&s);
		s = (struct selection){0};
	}
}

static void test_near(void **state)
{
	pid_t pid;
	struct error *err;

	missed("exe=envoi", "envoy (pid 1");
	missed("exe=/bin/envoy", "/usr/local/bin/envoy (pid 1"); /* which it is not */
	missed("exe=zzzzzz", "there is nothing similar");
	missed("pod=99999999-5f60-7182-93a4-b5c6d7e8f901", UID);
	/* of a node's pods those with the program, and all only if none has */
	put_process(5, "pause\n", "/pause", "0::/kubepods/pod" OTHER_UID "/" ID_B "\n");
	missed("pod=99999999-5f60-7182-93a4-b5c6d7e8f901,exe=pause", "similar: " OTHER_UID " (pid 5)");
	missed("pod=99999999-5f60-7182-93a4-b5c6d7e8f901,exe=envoy", "similar: " UID " (pid 1");
	put_process(6, "gunicorn\n", "/usr/bin/python3.11", "0::/\n");
	missed("exe=gunicorn", "similar: comm=gunicorn (pid 6)");
	missed("exe=python3", "similar: python3.11 (pid 6)");
	missed("pod=99999999-5f60-7182-93a4-b5c6d7e8f901,exe=none", OTHER_UID);
	missed("pod=" UID ",exe=none", "pod=" UID " has envoy (pid 1");
	missed("unit=apache2", "nginx.service");
	missed("container=000000000000", ID_A);
	assert_null(find_by_name("dash", root, false, &pid));
	assert_int_equal(pid, 15);
	assert_null(find_by_name("/bin/dash", root, false, &pid));
	assert_int_equal(pid, 15);
	err = find_by_name("/usr/bin/dash", root, false, &pid);
	assert_int_equal(err->kind, ERROR_NO_PROCESS);
	assert_non_null(strstr(err->hint, "similar: /bin/dash (pid 15)"));
	error_free(err);
	err = find_by_name("nginx", root, false, &pid);
	assert_int_equal(err->kind, ERROR_USAGE);
	assert_non_null(strstr(err->message, "12 (nginx"));
	assert_non_null(strstr(err->hint, "--select exe=nginx"));
	error_free(err);
	err = find_by_name("nginy", root, false, &pid);
	assert_int_equal(err->kind, ERROR_NO_PROCESS);
	assert_non_null(strstr(err->hint, "nginx (pid"));
	error_free(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_rules),
	        cmocka_unit_test(test_kubernetes),
	        cmocka_unit_test(test_layouts),
	        cmocka_unit_test(test_facts),
	        cmocka_unit_test(test_usage),
	        cmocka_unit_test(test_near),
	        cmocka_unit_test(test_hidden),
	};

	return cmocka_run_group_tests(tests, make_proc, remove_proc);
}
