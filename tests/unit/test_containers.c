/* SPDX-License-Identifier: Apache-2.0 */
/* Where a process runs, by the names of cgroups and mounts as the kernel, systemd, kubelet and container runtimes write
 * them. */
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/profile/containers.h"

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UID "3f2a1b4c-0d5e-4f60-8a7b-9c8d7e6f5a4b"

static void expect(const char *cgroup, const char *mounts, const char *wanted)
{
	struct container c, again;
	char text[CONTAINER_TEXT], twice[CONTAINER_TEXT];

	container_of_cgroup(cgroup, &c);
	container_of_mounts(mounts, &c);
	container_text(&c, text);
	assert_string_equal(text, wanted);
	container_parse(text, &again);
	container_text(&again, twice);
	assert_string_equal(twice, *wanted ? wanted : "");
}

static void test_cgroups(void **state)
{
	char longest[CGROUP_TEXT], wanted[CONTAINER_TEXT] = "container=";

	expect("0::/system.slice/docker-" ID ".scope\n", "", "container=0123456789ab");
	expect("4:memory:/docker/" ID "\n", "", "container=0123456789ab");
	expect("0::/machine.slice/libpod-" ID ".scope/container\n", "", "container=0123456789ab");
	expect("0::/kubepods.slice/pod" UID "/cri-containerd-" ID ".scope/inner\n", "",
	        "pod=" UID ",container=0123456789ab");
	expect("0::/kubepods/besteffort/pod" UID "/" ID "\n", "", "pod=" UID ",container=0123456789ab");
	expect("0::/../crio-" ID ".scope\n", "", "container=0123456789ab");
	expect("0::/lxc.payload.web-1/init.scope\n", "", "container=web-1");
	expect("0::/system.slice/nginx.service\n", "", "unit=nginx.service");
	expect("1:name=systemd:/system.slice/nginx.service\n0::/\n", "", "unit=nginx.service");
	expect("0::/user.slice/user-1000.slice/session-3.scope\n", "", "unit=session-3.scope");
	expect("0::/init.scope\n", "", "cgroup=/init.scope");
	expect("4:memory:/\n0::/\n", "", "cgroup=/");
	expect("4:memory:/jobs/7\n0::/\n", "", "cgroup=/jobs/7");
	expect("0::/" ID "0\n", "", "cgroup=/" ID "0"); /* too long to be one */
	expect("0::/a,pod=x\n", "", "cgroup=/a_pod_x"); /* hostile */
	expect("", "", "");
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "0::/lxc.payload.", 16);
	longest[sizeof(longest) - 1] = '\0';
	memset(wanted + strlen(wanted), 'x', CGROUP_ID - 1);
	expect(longest, "", wanted);
}

static void test_mounts(void **state)
{
	static const char pod[] = "0::/kubepods.slice/kubepods-pod3f2a1b4c_0d5e_4f60_8a7b_9c8d7e6f5a4b.slice"
	                          "/crio-" ID ".scope\n",
	                  mount[] = "700 690 8:1 /var/lib/kubelet/pods/" UID
	                            "/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n"
	                            "701 690 8:1 /var/lib/kubelet/pods/" UID
	                            "/containers/envoy/01ab /dev/termination-log rw - ext4 /dev/sda1 rw\n";

	expect(pod, mount, "pod=" UID ",container=0123456789ab,name=envoy");
	expect("0::/../cri-containerd-" ID ".scope\n", mount, "pod=" UID ",container=0123456789ab,name=envoy");
	expect(pod, "", "pod=" UID ",container=0123456789ab");
	expect(pod, "/pods/" UID "/containers/", "pod=" UID ",container=0123456789ab");
	expect(pod, "/pods/", "pod=" UID ",container=0123456789ab");
	expect(pod, "/pods/short/containers/x/", "pod=" UID ",container=0123456789ab");
}

/* As recordings of older versions have it. */
static void test_old(void **state)
{
	struct container c;

	container_parse("0123456789ab", &c);
	assert_string_equal(c.term[CONTAINER_ID], "0123456789ab");
	container_parse("=,,pod=,=x,pod", &c);
	for (u32 i = 0; i < CONTAINER_TERMS; i++)
		assert_string_equal(c.term[i], "");
}

/* Of a process that has ended the kernel says the first cgroup. */
static void test_ended(void **state)
{
	struct container c;
	char text[CONTAINER_TEXT];
	siginfo_t info;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
	container_look(pid, &c);
	container_text(&c, text);
	assert_string_not_equal(text, "cgroup=/");
	waitpid(pid, NULL, 0);
	container_look(getpid(), &c);
	container_text(&c, text);
	assert_string_not_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_cgroups),
	        cmocka_unit_test(test_mounts),
	        cmocka_unit_test(test_old),
	        cmocka_unit_test(test_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
