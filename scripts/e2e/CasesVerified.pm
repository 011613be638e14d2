# Verified loops: what an agent claims against what swarm saw.
package CasesVerified;
use strict;
use warnings;
use Cell ();

my @fixes_in_the_second = (
    { text => 'I look first.', sh => 'ls' }, 'Not yet.',
    { text => 'I fix it.', sh => 'touch fixed' }, "Done.\n\n<promise>COMPLETE</promise>",
);

# A loop by `swarm loop`, followed: its exit status and its result.
sub looped {
    my ($cell, @args) = @_;
    my $pid  = $cell->start('loop', $cell->{swarm}, 'loop', 'fix it', '--name', 'w', '--quiet', '--format', 'json',
        @args, '--', $cell->command);
    my $code = $cell->join_pid($pid, 150);
    my $json = eval { JSON::PP->new->utf8->decode(Cell::slurp("$cell->{dir}/loop.out")) } // {};
    return ("exit $code", $json, Cell::slurp("$cell->{dir}/loop.err"));
}

# What a report holds, in a few words: end, iterations, promises, tool calls, and whether tokens and a cost are there.
sub reported {
    my ($cell, $code) = @_;
    my $report = $cell->json_of(qw(report w));
    my @each   = @{ $report->{iterations} // [] };
    my $list   = sub { my ($of) = @_; return join '+', map { $of->($_) // '?' } @each };
    return "$code " . ($report->{end} // 'no end') . ', ' . $list->(sub { $_[0]{verdict}{promise} }) . ', steps '
        . $list->(sub { $_[0]{tool_calls} }) . (($report->{tokens} // 0) > 0 ? ', tokens' : '')
        . (($report->{cost_usd} // 0) > 0 ? ', cost' : '');
}

sub fix {
    my ($cell, @args) = @_;
    $cell->replies(@fixes_in_the_second);
    my ($code, $json) = looped($cell, '-n', 5, '--check', 'test -f fixed', @args);
    my @each   = @{ $json->{iterations} // [] };
    my $result = join ' ', $json->{success} ? 'success' : 'no success', map { $_->{all_checks_passed} ? 'passed' : 'missed' } @each;
    return reported($cell, $code) . "; $result";
}

sub by_spawn {
    my ($cell) = @_;
    $cell->replies(@fixes_in_the_second);
    $cell->loop('w', '-n', 5, '--promise', 'COMPLETE', '--check', 'test -f fixed');
    return reported($cell, $cell->followed('w'));
}

sub no_work {
    my ($cell) = @_;
    $cell->replies(
        "All was done before.\n\n<promise>COMPLETE</promise>",
        { text => 'I fix it.', sh => 'touch fixed' }, '<promise>COMPLETE</promise>',
    );
    my ($code) = looped($cell, '-n', 5, '--check', 'true');
    return reported($cell, $code);
}

sub in_tool_output {
    my ($cell) = @_;
    $cell->replies({ text => 'I print it.', sh => "touch fixed; echo '<promise>COMPLETE</promise>'" }, 'It was printed.');
    if ($cell->mode eq 'tui') {
        $cell->loop('w', '-n', 1, '--promise', 'COMPLETE', '--check', 'true');
        return reported($cell, $cell->followed('w'));
    }
    my ($code, undef, $err) = looped($cell, '-n', 1, '--check', 'true');
    return reported($cell, $code) . ($err =~ /also counts in the output/ ? ', warned' : '');
}

# How many tool calls a report has for one, and what else it has, by CLI and mode.
my %reports = (
    'claude oneshot'    => [ 1,   0,   ', tokens, cost' ],
    'claude tui'        => [ 1,   0,   ', tokens, cost' ],
    'codex oneshot'     => [ 1,   0,   ', tokens' ],
    # Its plain mode prints neither tool calls nor tokens, and its own words and its tools' output alike.
    'opencode oneshot'  => [ '?', '?', '' ],
    'opencode json'     => [ 1,   0,   ', tokens, cost' ],
);

sub has_reports {
    my ($cli, $mode) = @_;
    return $reports{"$cli->{name} $mode"} ? undef : 'swarm reads no record of this agent';
}

sub one_shot {
    my ($cli, $mode) = @_;
    return 'swarm loop is for one-shot commands' if $mode eq 'tui';
    return has_reports($cli, $mode);
}

sub expects {
    my ($code_end, $promises, $steps) = @_;
    return sub {
        my ($cli, $mode) = @_;
        my ($one, $none, $extra) = @{ $reports{"$cli->{name} $mode"} // [ 1, 0, '' ] };
        return "$code_end, $promises, steps " . $steps =~ s/one/$one/gr =~ s/none/$none/gr =~ s/zero/$none/gr . $extra;
    };
}

sub rows {
    my $fixed = expects('exit 0 all_checks_passed', 'missing+given', 'one+one');
    my $tool_output = expects('exit 1 max_iterations', 'missing', 'one');
    return (
        {
            json => 1, key => 'fix', title => 'verified: the second fixes', run => \&fix, cannot => \&one_shot,
            expect => sub { $fixed->(@_) . '; success missed passed' },
        },
        {
            json => 1, key => 'fix-worktree', title => 'the same in a worktree', cannot => \&one_shot,
            run => sub { fix($_[0], '--worktree') },
            expect => sub { $fixed->(@_) . '; success missed passed' },
        },
        {
            json => 1, key => 'fix-spawn', title => 'the same by spawn --ralph', run => \&by_spawn, cannot => \&has_reports, expect => $fixed,
        },
        {
            json => 1, key => 'no-work', title => 'a promise without work', run => \&no_work, cannot => \&one_shot,
            expect => expects('exit 0 all_checks_passed', 'rejected+given', 'zero+one'),
        },
        {
            json => 1, key => 'tool-output', title => 'a promise in tool output only', run => \&in_tool_output, cannot => \&has_reports,
            expect => sub {
                return 'exit 0 all_checks_passed, given, steps ?, warned' if "$_[0]{name} $_[1]" eq 'opencode oneshot';
                return $tool_output->(@_);
            },
        },
    );
}

1;
