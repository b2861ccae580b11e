// SPDX-License-Identifier: Apache-2.0
import java.math.BigInteger;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.security.Security;
import java.security.Signature;
import java.security.spec.ECGenParameterSpec;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.bouncycastle.jce.provider.BouncyCastleProvider;

/** Bouncy Castle: ciphers, digests, signatures of RSA and of elliptic curves, until it is killed. */
public class Crypto {
	static final SecureRandom RANDOM = new SecureRandom();

	static KeyPair keys(String algorithm, Object how) throws Exception {
		KeyPairGenerator generator = KeyPairGenerator.getInstance(algorithm, "BC");

		if (how instanceof String)
			generator.initialize(new ECGenParameterSpec((String)how), RANDOM);
		else
			generator.initialize((Integer)how, RANDOM);
		return generator.generateKeyPair();
	}

	static void sign(KeyPair keys, String algorithm, byte[] text) throws Exception {
		Signature signature = Signature.getInstance(algorithm, "BC");

		signature.initSign(keys.getPrivate());
		signature.update(text);
		byte[] made = signature.sign();
		signature.initVerify(keys.getPublic());
		signature.update(text);
		if (!signature.verify(made))
			throw new IllegalStateException(algorithm);
	}

	static void encrypt(String name, int bytes, int block, byte[] text) throws Exception {
		Cipher cipher = Cipher.getInstance(name + "/CBC/PKCS5Padding", "BC");

		cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(new byte[bytes], name), new IvParameterSpec(new byte[block]));
		cipher.doFinal(text);
	}

	public static void main(String[] args) throws Exception {
		Security.addProvider(new BouncyCastleProvider());
		KeyPair rsa = keys("RSA", 1024), curve = keys("EC", "P-256");
		byte[] text = new byte[100000];

		while (true) {
			RANDOM.nextBytes(text);
			for (String digest : new String[] { "SHA-256", "SHA3-512", "Whirlpool", "BLAKE2B-512", "MD5" })
				MessageDigest.getInstance(digest, "BC").digest(text);
			encrypt("AES", 16, 16, text);
			encrypt("Twofish", 32, 16, text);
			encrypt("DESede", 24, 8, text);
			sign(rsa, "SHA256withRSA", text);
			sign(curve, "SHA256withECDSA", text);
			if (new BigInteger(256, RANDOM).isProbablePrime(20))
				keys("RSA", 512);
		}
	}
}
