(: SPDX-License-Identifier: Apache-2.0 :)
declare function local:fib($n as xs:integer) as xs:integer { if ($n lt 2) then $n else local:fib($n - 1) + local:fib($n - 2) };
let $doc := <words>{for $i in 1 to 20000 return <w n="{$i}">{concat('word', $i * 7919 mod 997)}</w>}</words>
for $round in 1 to 100000
return sum((local:fib(17), count(distinct-values($doc/w[@n mod 3 = $round mod 3]/text())),
	string-length(string-join(for $w in $doc/w[position() lt 2000] order by $w descending return replace($w, '(\d)(\d)', '$2$1'), ','))))
