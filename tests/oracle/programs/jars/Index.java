// SPDX-License-Identifier: Apache-2.0
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.queryparser.classic.QueryParser;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.store.RAMDirectory;
import org.apache.lucene.util.Version;

/** Lucene: indexes texts and searches them, until it is killed. */
public class Index {
	static final String[] QUERIES = { "w1 AND w2", "\"w3 w4\"~4", "w5* OR w6?", "+w7 -w8 w9~1", "w11 OR (w12 AND w13)", "[w20 TO w25]" };

	public static void main(String[] args) throws Exception {
		StandardAnalyzer analyzer = new StandardAnalyzer();

		for (int round = 0;; round++) {
			RAMDirectory directory = new RAMDirectory();
			try (IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig(Version.LATEST, analyzer))) {
				for (int i = 0; i < 3000; i++) {
					Document document = new Document();
					StringBuilder text = new StringBuilder();
					for (int k = 0; k < 40; k++)
						text.append('w').append((i * 31 + k * k * 7 + round) % 997).append(' ');
					document.add(new TextField("text", text.toString(), Field.Store.YES));
					writer.addDocument(document);
				}
			}
			try (DirectoryReader reader = DirectoryReader.open(directory)) {
				IndexSearcher searcher = new IndexSearcher(reader);
				for (int i = 0; i < 300; i++)
					for (String query : QUERIES)
						if (searcher.search(new QueryParser("text", analyzer).parse(query), 20).totalHits < 0)
							throw new IllegalStateException(query);
			}
		}
	}
}
