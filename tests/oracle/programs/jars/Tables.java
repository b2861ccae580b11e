// SPDX-License-Identifier: Apache-2.0
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;

/** A database in memory, by the URL that is the first argument: inserts, updates, joins, until it is killed. */
public class Tables {
	static final String[] QUERIES = {
		"select count(*), max(t.b), sum(u.a) from t, t u where t.a > u.a and u.b like '%7%' and t.a < 300",
		"select g, count(*), min(b) from t group by g having count(*) > 3 order by 2 desc, 1",
		"select t.a, u.b from t left join t u on u.a = t.g where t.b > 'text 4' order by u.b, t.a",
		"select a from t where exists (select 1 from t u where u.g = t.a) and upper(b) not in ('TEXT 12', 'TEXT 20')",
	};

	public static void main(String[] args) throws Exception {
		try (Connection db = DriverManager.getConnection(args[0]); Statement statement = db.createStatement()) {
			statement.execute("create table t(a int primary key, g int, b varchar(40))");
			db.setAutoCommit(false);
			try (PreparedStatement insert = db.prepareStatement("insert into t values(?, ?, ?)")) {
				for (int i = 0; i < 3000; i++) {
					insert.setInt(1, i);
					insert.setInt(2, i * 7919 % 211);
					insert.setString(3, "text " + i);
					insert.executeUpdate();
				}
			}
			while (true) {
				for (String query : QUERIES)
					try (ResultSet rows = statement.executeQuery(query)) {
						while (rows.next())
							rows.getString(1);
					}
				statement.executeUpdate("update t set g = mod(g + 1, 211) where mod(a, 3) = 1");
				db.commit();
			}
		}
	}
}
