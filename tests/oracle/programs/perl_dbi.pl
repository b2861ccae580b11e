# SPDX-License-Identifier: Apache-2.0
use strict; use DBI; my $d = DBI->connect("dbi:SQLite:dbname=:memory:","","",{RaiseError=>1,AutoCommit=>1});
$d->do("create table t(a integer primary key,b text)");
$d->sqlite_create_function('pl', 1, sub { my $v = shift; my $n = 0; $n += ord for split //, $v; return $n });
$d->sqlite_create_collation('rev', sub { my ($a,$b)=@_; my $r = $b cmp $a; $r });
my $i = $d->prepare("insert into t(b) values(?)"); $d->begin_work; $i->execute("text $_") for 1..5000; $d->commit;
sub q1 { my $r = $d->selectall_arrayref("select pl(b), b from t where a % 7 = ? order by b collate rev", {Slice=>{}}, shift); scalar @$r }
sub q2 { my $s = $d->prepare_cached("select * from t where b like ?"); $s->execute('%7%'); while (my $h = $s->fetchrow_hashref) { my $x = $h->{b} . "x" } }
while (1) { q1($_), q2() for 0..6 }
