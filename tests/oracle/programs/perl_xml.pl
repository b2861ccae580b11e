# SPDX-License-Identifier: Apache-2.0
use strict; use XML::LibXML; use XML::LibXML::XPathContext;
package H; sub new { bless {n=>0}, shift } sub start_element { my ($s,$e)=@_; $s->{n}++ for 1..5; } sub AUTOLOAD { our $AUTOLOAD; return } 
package main; use XML::LibXML::SAX;
my $xml = "<r>".join('', map "<a n='$_'><b>text $_</b></a>", 1..2000)."</r>";
while (1) { my $d = XML::LibXML->load_xml(string=>$xml); my $x = XML::LibXML::XPathContext->new($d); $x->registerFunction('twice', sub { my $v = shift; my $r = 0; $r += $_ for 1..10; "$v$v" });
 my @n = $x->findnodes('//a[@n mod 7 = 0]/b'); my $t = join ',', map { $_->textContent } @n; $x->findnodes('//a[twice(@n) > 100]');
 XML::LibXML::SAX->new(Handler=>H->new)->parse_string($xml); }
