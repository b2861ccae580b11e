// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import net.sourceforge.plantuml.FileFormat;
import net.sourceforge.plantuml.FileFormatOption;
import net.sourceforge.plantuml.SourceStringReader;

/** PlantUML: draws sequence diagrams as SVG, PNG and text, until it is killed. */
public class Diagrams {
	static String diagram(int round) {
		StringBuilder text = new StringBuilder("@startuml\ntitle round ").append(round).append('\n');

		for (int i = 0; i < 40; i++)
			text.append(String.format("p%d -> p%d : call **%d** with //text//%nnote right: line %d\\nof <b>%d</b>%n", i % 7, i * 3 % 5, i, i, round));
		return text.append("@enduml\n").toString();
	}

	public static void main(String[] args) throws Exception {
		FileFormat[] formats = { FileFormat.SVG, FileFormat.PNG, FileFormat.UTXT };

		for (int round = 0;; round++)
			new SourceStringReader(diagram(round)).outputImage(new ByteArrayOutputStream(), new FileFormatOption(formats[round % formats.length]));
	}
}
