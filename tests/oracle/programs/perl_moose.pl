# SPDX-License-Identifier: Apache-2.0
package Point; use Moose; use Moose::Util::TypeConstraints;
subtype 'Small' => as 'Int' => where { $_ < 1000 };
has x => (is => 'rw', isa => 'Small', trigger => sub { my ($s,$v)=@_; $s->seen($s->seen+1) });
has y => (is => 'rw', isa => 'Int', lazy => 1, builder => '_build_y');
has seen => (is => 'rw', default => sub { 0 });
sub _build_y { my $self = shift; my $n = 0; $n += $_ for 1..50; $n }
around x => sub { my ($orig, $self, @a) = @_; return $self->$orig(@a) };
before y => sub { my $s = 1; $s++ for 1..20 };
after y => sub { my $s = 1; $s++ for 1..20 };
package Role1; use Moose::Role; requires 'x'; sub r1 { $_[0]->x + 1 }
package Point3; use Moose; extends 'Point'; with 'Role1'; has z => (is=>'ro', isa=>'ArrayRef[Int]', default=>sub{[1..10]});
override _build_y => sub { super() + 1 };
sub BUILD { my $s = shift; $s->x(4) } sub DEMOLISH { my $s = shift; my $n=0; $n++ for 1..10 }
package main;
while (1) { my $p = Point3->new(x => 3); $p->x($_ % 1000), $p->y for 1..20; $p->r1; eval { $p->x(5000) }; Point3->meta->make_immutable if 0; }
