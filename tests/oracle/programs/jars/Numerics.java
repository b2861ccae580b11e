// SPDX-License-Identifier: Apache-2.0
import org.apache.commons.math3.complex.Complex;
import org.apache.commons.math3.linear.Array2DRowRealMatrix;
import org.apache.commons.math3.linear.EigenDecomposition;
import org.apache.commons.math3.linear.RealMatrix;
import org.apache.commons.math3.linear.SingularValueDecomposition;
import org.apache.commons.math3.ode.FirstOrderDifferentialEquations;
import org.apache.commons.math3.ode.nonstiff.DormandPrince853Integrator;
import org.apache.commons.math3.optim.InitialGuess;
import org.apache.commons.math3.optim.MaxEval;
import org.apache.commons.math3.optim.nonlinear.scalar.GoalType;
import org.apache.commons.math3.optim.nonlinear.scalar.ObjectiveFunction;
import org.apache.commons.math3.optim.nonlinear.scalar.noderiv.NelderMeadSimplex;
import org.apache.commons.math3.optim.nonlinear.scalar.noderiv.SimplexOptimizer;
import org.apache.commons.math3.special.Gamma;
import org.apache.commons.math3.transform.DftNormalization;
import org.apache.commons.math3.transform.FastFourierTransformer;
import org.apache.commons.math3.transform.TransformType;

/** Commons Math: matrices, differential equations, transforms, optimisation, until it is killed. */
public class Numerics {
	static class Lorenz implements FirstOrderDifferentialEquations {
		@Override
		public int getDimension() { return 3; }

		@Override
		public void computeDerivatives(double t, double[] y, double[] ret) {
			ret[0] = 10 * (y[1] - y[0]);
			ret[1] = y[0] * (28 - y[2]) - y[1];
			ret[2] = y[0] * y[1] - 8.0 / 3 * y[2];
		}
	}

	static double matrices(int n) {
		RealMatrix m = new Array2DRowRealMatrix(n, n);

		for (int i = 0; i < n; i++)
			for (int k = 0; k < n; k++)
				m.setEntry(i, k, Math.sin(i * n + k) + (i == k ? n : 0));
		return new SingularValueDecomposition(m).getNorm() + new EigenDecomposition(m).getRealEigenvalue(0) + m.multiply(m).getTrace();
	}

	static double transform(int n) {
		double[] signal = new double[n];

		for (int i = 0; i < n; i++)
			signal[i] = Gamma.logGamma(1 + i % 100) * Math.cos(i);
		Complex[] made = new FastFourierTransformer(DftNormalization.STANDARD).transform(signal, TransformType.FORWARD);
		return made[n / 3].abs();
	}

	static double optimise() {
		return new SimplexOptimizer(1e-9, 1e-9).optimize(new MaxEval(2000), GoalType.MINIMIZE, new InitialGuess(new double[] { -1.2, 1 }),
			new NelderMeadSimplex(2), new ObjectiveFunction(p -> Math.pow(1 - p[0], 2) + 100 * Math.pow(p[1] - p[0] * p[0], 2))).getValue();
	}

	public static void main(String[] args) {
		double sum = 0;

		while (!Double.isNaN(sum)) {
			double[] state = { 1, 1, 1 };

			sum += matrices(60) + transform(1 << 14) + optimise();
			new DormandPrince853Integrator(1e-8, 1, 1e-10, 1e-10).integrate(new Lorenz(), 0, state, 20, state);
			sum += state[0];
		}
	}
}
