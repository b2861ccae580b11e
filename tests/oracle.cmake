# SPDX-License-Identifier: Apache-2.0
# Stacks against code: a few programs with the measurements; all of the catalogue, some minutes a language: ctest -C Oracle -L oracle.
set(ORACLE ${CMAKE_CURRENT_SOURCE_DIR}/oracle)
add_test(NAME measured.oracle COMMAND Python3::Interpreter ${ORACLE}/test_oracle.py CONFIGURATIONS Measured)
set_tests_properties(measured.oracle PROPERTIES LABELS measured ENVIRONMENT "${TEST_ENVIRONMENT}" RUN_SERIAL ON TIMEOUT 900
	SKIP_RETURN_CODE 77)
# Some of each language, others each day, of the programs that need nothing but what fixtures/setup.sh installs.
add_test(NAME oracle.some COMMAND Python3::Interpreter ${ORACLE}/run_programs.py --small --pick 8 --seconds 1 --attempts 2 CONFIGURATIONS Oracle)
set_tests_properties(oracle.some PROPERTIES LABELS oracle-some ENVIRONMENT "${TEST_ENVIRONMENT}" RUN_SERIAL ON TIMEOUT 1200)
# All of them, twelve or more of each language, a second each: too long for every run.
add_test(NAME oracle.small COMMAND Python3::Interpreter ${ORACLE}/run_programs.py --small --seconds 1 --attempts 2 CONFIGURATIONS Oracle)
set_tests_properties(oracle.small PROPERTIES LABELS oracle-small ENVIRONMENT "${TEST_ENVIRONMENT}" RUN_SERIAL ON TIMEOUT 1800)
foreach(language native lua puc python java perl)
	add_test(NAME oracle.${language} COMMAND Python3::Interpreter ${ORACLE}/run_programs.py --shares --twice --views ${language} CONFIGURATIONS Oracle)
	set_tests_properties(oracle.${language} PROPERTIES LABELS oracle ENVIRONMENT "${TEST_ENVIRONMENT}" RUN_SERIAL ON TIMEOUT 3600)
endforeach()
