# SPDX-License-Identifier: Apache-2.0
# frontends/job in a Kubernetes of one node, whose programs cluster/build.sh makes: ctest -C Cluster -L Cluster
add_test(NAME cluster COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/cluster.py ${CMAKE_BINARY_DIR}/cluster
	${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cluster/test_cluster.py CONFIGURATIONS Cluster)
set_tests_properties(cluster PROPERTIES LABELS Cluster ENVIRONMENT "${TEST_ENVIRONMENT}" TIMEOUT 1800 SKIP_RETURN_CODE 77
	RUN_SERIAL ON)
