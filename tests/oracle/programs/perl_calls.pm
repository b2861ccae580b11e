# SPDX-License-Identifier: Apache-2.0
# In a program that is checked (perl -Mperl_calls): SIGUSR2 writes what each statement of each sub can call, by B's view of the ops, to
# $YRT_PERL_CALLS.PID:
#
#	S name file line	a sub and its first statement
#	L file line words	a statement of it: names of subs, and *any, *method NAME, *eval, *block, *file, *sort
package perl_calls;
use strict;
use warnings;
no warnings 'recursion';
use B ();

my %special = (entereval => '*eval', entertry => '*block', entertrycatch => '*block', require => '*file', dofile => '*file', sort => '*sort');
my (%seen, $out);
our $cv; # whose pad is meant

# One that was optimised away: the only one of a block, the condition of an elsif. Its ops are those of the statement around it.
sub is_lost { $_[0]->name eq 'null' && $_[0]->isa('B::COP') }
sub is_statement { $_[0]->name =~ /^(?:next|db)state$/ }

sub cv_name {
	my $cv = shift;
	if ($cv->can('NAME_HEK') && defined(my $name = $cv->NAME_HEK)) {
		return $cv->CvFLAGS & 0x10000 ? $name : $cv->STASH->NAME . "::$name";
	}
	my $gv = $cv->GV;
	return $gv->isa('B::GV') ? $gv->STASH->NAME . '::' . $gv->NAME : '';
}

sub pad { ($cv->PADLIST->ARRAY)[1]->ARRAYelt($_[0]) }

# What is known of what a GV, or a reference to a CV in its place, leads to. Any sub may be there that goes on as another one.
sub of_gv {
	my $gv = shift;
	my $to = $gv->isa('B::GV') ? $gv->CV : $gv->can('RV') && $gv->ROK ? $gv->RV : return '*any';
	return '*any' if !$to->isa('B::CV') || !$$to;
	my @names = (cv_name($to), $gv->isa('B::GV') ? $gv->STASH->NAME . '::' . $gv->NAME : ());
	return @names if $to->XSUB;
	return ${ $to->ROOT } && !jumps($to->ROOT) ? @names : (@names, '*any');
}

sub kids {
	my $op = shift;
	my @kids;
	if ($op->flags & B::OPf_KIDS) {
		for (my $kid = $op->first; $$kid; $kid = $kid->sibling) { push @kids, $kid }
	}
	if ($op->isa('B::PMOP') && $op->name eq 'subst') {
		my $root = $op->pmreplroot;
		push @kids, $root if ref $root && $root->isa('B::OP') && $$root;
	}
	return @kids;
}

my %jumps;
sub jumps {
	my $op = shift;
	return $jumps{$$op} //= ($op->name eq 'goto' || scalar grep { jumps($_) } kids($op)) ? 1 : 0;
}

sub called {
	my $op = shift;
	my ($last) = reverse kids($op);
	($last) = reverse kids($last) if $last && $last->name eq 'null' && !is_gv($last);
	return '*any' if !$last;
	if ($last->name =~ /^method_(?:named|super|redir)/) {
		my $sv = $last->can('meth_sv') ? $last->meth_sv : $last->sv;
		$sv = pad($last->targ) if !$$sv || !$sv->can('PV');
		return $sv->can('PV') ? '*method ' . $sv->PV : '*any';
	}
	my $gv = is_gv($last) or return '*any';
	return of_gv($gv->isa('B::PADOP') ? pad($gv->padix) : $gv->gv);
}

# The op that names the sub, below one that was optimised away.
sub is_gv {
	my $op = shift;
	return $op if $op->name eq 'gv';
	my ($kid) = kids($op);
	return $op->name eq 'null' && $kid && $kid->name eq 'gv' ? $kid : undef;
}

sub words {
	my $op = shift;
	return called($op) if $op->name eq 'entersub';
	return $special{ $op->name } || ();
}

# By the tree: what stands behind a statement up to the next, with what is inside; and where a block in it is left, behind which it is current again.
sub by_tree {
	my ($op, $statement, $found) = @_;
	for my $kid (kids($op)) {
		if (is_statement($kid)) {
			$statement = $kid;
			$found->{$$kid} ||= [$kid, {}, [], []];
			next;
		}
		push @{ $found->{$$statement}[3] }, $kid if $statement && is_lost($kid);
		$found->{$$statement}[1]{$_} = 1 for $statement ? words($kid) : ();
		push @{ $found->{$$statement}[2] }, $kid if $statement && $kid->name =~ /^leave/;
		by_tree($kid, $statement, $found);
	}
}

sub loops {
	my $op = shift;
	return ($op->isa('B::LOOP') ? $op : (), map { loops($_) } kids($op));
}

# In the order of execution, up to the next statement: the condition of a loop also runs after its last one. next and the like may mean any loop.
sub by_order {
	my ($statement, $words, $left, @loops) = @_;
	my (%been, @todo);
	push @todo, map { $_->next } $statement, @$left;
	while (my $op = pop @todo) {
		next if !$$op || $been{$$op}++ || is_statement($op);
		$words->{$_} = 1 for words($op);
		push @todo, $op->next;
		push @todo, $op->other if $op->isa('B::LOGOP');
		push @todo, map { ($_->nextop, $_->lastop, $_->redoop) } $op->name =~ /^(?:next|last|redo)$/ ? @loops : $op->isa('B::LOOP') ? $op : ();
		push @todo, $op->pmreplstart if $op->name eq 'subst' && ref $op->pmreplstart;
	}
}

sub write_sub {
	my ($name, $root, $start) = @_;
	my %found;
	by_tree($root, undef, \%found);
	for (my $n = 0; $$start && $n < 16 && !is_statement($start); $n++) { $start = $start->next }
	print $out join("\t", 'S', $name, is_statement($start) ? ($start->file, $start->line) : ('', 0)), "\n" if $$start;
	my @loops = loops($root);
	for my $statement (values %found) {
		my ($cop, $words, $left, $lost) = @$statement;
		by_order($cop, $words, $left, @loops);
		print $out join("\t", 'L', $_->file, $_->line, sort keys %$words), "\n" for $cop, @$lost;
	}
}

# A CV, and those in its pad: anonymous subs and the like.
sub add {
	local $cv = shift;
	return if !$cv->isa('B::CV') || !$$cv || $seen{$$cv}++;
	my $list = $cv->PADLIST;
	my @pads = $$list && $list->can('ARRAY') ? $list->ARRAY : ();
	shift @pads;
	my $name = cv_name($cv);
	write_sub($name, $cv->ROOT, $cv->START) if $name !~ /^perl_calls::/ && ${ $cv->ROOT };
	add($_) for grep { $_->isa('B::CV') } map { ref $_ && $_->can('ARRAY') ? $_->ARRAY : () } @pads;
	add($_->RV) for grep { $_->can('RV') && $_->can('ROK') && $_->ROK && $_->RV->isa('B::CV') } map { ref $_ && $_->can('ARRAY') ? $_->ARRAY : () } @pads;
}

sub add_package {
	my ($package) = @_;
	no strict 'refs';
	for my $name (keys %$package) {
		next if $package eq 'main::' && $name eq 'main::';
		my $ref = ref \$package->{$name} eq 'GLOB' ? B::svref_2object(\$package->{$name}) : next;
		add($ref->CV);
		add_package($package eq 'main::' ? $name : "$package$name") if $name =~ /::$/ && $ref->HV->isa('B::HV');
	}
}

sub dump {
	my $path = "$ENV{YRT_PERL_CALLS}.$$";
	open $out, '>', "$path.new" or return;
	%seen = %jumps = ();
	$cv = B::main_cv();
	write_sub('main program', B::main_root(), B::main_start());
	add($cv);
	add_package('main::');
	close $out;
	rename "$path.new", $path;
}

$SIG{USR2} = \&dump if $ENV{YRT_PERL_CALLS};
1;
