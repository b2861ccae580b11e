// SPDX-License-Identifier: Apache-2.0
object Words extends App {
  def words(n: Int) = (1 to n).map(i => s"w${i * 7919 % 97}").groupBy(identity).mapValues(_.size).toSeq.sortBy(p => (-p._2, p._1))
  while (true) words(500).map { case (w, n) if n > 3 => w.reverse; case (w, _) => w }.mkString(",")
}
