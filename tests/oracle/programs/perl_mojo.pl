# SPDX-License-Identifier: Apache-2.0
use strict; use Mojo::Template; use Mojo::DOM; use Mojo::JSON; $ENV{MOJO_NO_JSON_XS} = 1;
my $t = "<ul>% for my \$i (1..50) {\n<li><%== \$i %></li>\n% }\n</ul>"; my $mt = Mojo::Template->new->parse("% my \$l = shift;\n<div>\n% for my \$i (\@\$l) {\n<p class=\"a<%= \$i %>\">x<b>y</b></p>\n% }\n</div>");
while (1) { my $html = $mt->process([1..30]); my $d = Mojo::DOM->new($html); $d->find('p.a7 b, div > p:nth-child(3n)')->map('text')->join(','); Mojo::JSON::decode_json(Mojo::JSON::encode_json({ map { $_ => [1..10] } 1..10 })) }
