// SPDX-License-Identifier: Apache-2.0
#include <jni.h>

static int work(int x)
{
	volatile int sum = x;

	for (int i = 0; i < 20; i++)
		sum += i;
	return sum;
}

JNIEXPORT jint JNICALL Java_Natives_sync(JNIEnv *env, jclass class, jint x)
{
	return work(x);
}

JNIEXPORT jint JNICALL Java_Natives_plain(JNIEnv *env, jclass class, jint x)
{
	return work(x);
}

JNIEXPORT jint JNICALL Java_Natives_guarded(JNIEnv *env, jobject self, jint x)
{
	return work(x);
}

JNIEXPORT jint JNICALL Java_Natives_member(JNIEnv *env, jobject self, jint x)
{
	static jmethodID callee;

	if (!callee)
		callee = (*env)->GetMethodID(env, (*env)->GetObjectClass(env, self), "callee", "(I)I");
	return (*env)->CallIntMethod(env, self, callee, work(x));
}
