# Cases in which an agent cannot go on by itself: API errors, dialogs, a full context, a task in the background.
package CasesTrouble;
use strict;
use warnings;
use POSIX ();
use Time::HiRes qw(sleep);
use CasesRun ();
use Cell ();

sub outage {
    my ($cell, $status, $message, @headers) = @_;
    Cell::put("$cell->{dir}/mock/outage", join '', map { "$_\n" } $status, $message, @headers);
    return;
}

# A loop of one iteration under an API error: what it waits for, and that no iteration is used up.
sub waits {
    my ($cell) = @_;
    $cell->replies('That is all.');
    # An agent whose API has failed it may report nothing and stay: then only its screen shows it. A one-shot command may
    # print nothing while it tries again.
    $cell->loop('w', '-n', 1, '--inactivity-timeout', $cell->mode eq 'tui' ? 20 : 600);
    my $status = $cell->until_status('w', 150, sub { ($_[0]{status} // '') =~ /^(?:waiting|failed|done|killed)$/ });
    my $loop   = $cell->json_of(qw(ralph status w));
    my $state  = "$status->{status}, iteration $loop->{iteration}";
    $state = 'running or waiting' if $cell->{cli}{retries} && $state =~ /^(?:running, iteration 1|waiting, iteration 0)$/;
    return ("$state, failures $loop->{consecutive_failures}", $status);
}

sub passing {
    my ($cell, $code, $message) = @_;
    outage($cell, $code, $message);
    my ($seen) = waits($cell);
    unlink "$cell->{dir}/mock/outage";
    # What `why` proposes, so as not to wait for the next try.
    my $resumed = $cell->swarm(qw(ralph resume w))->{code};
    return "$seen; resume $resumed, " . $cell->followed('w', 150);
}

# While the agent tries again by itself, it is at work for swarm too; when it gives up depends on the machine.
sub state_of {
    my ($cli) = @_;
    return ($cli->{retries} ? 'running or waiting' : 'waiting, iteration 0') . ', failures 0';
}

sub passes { my ($cli) = @_; return state_of($cli) . '; resume 0, exit 0' }

# A usage limit that names its end: swarm waits until then, and asks the model nothing before.
sub limit {
    my ($cell) = @_;
    my $reset = time + 2 * 3600;
    my $at    = POSIX::strftime('%H:%M', gmtime $reset);
    my $message = "You have hit your usage limit, resets $at (UTC)";
    $message = "{\"error\":{\"type\":\"usage_limit_reached\",\"message\":\"$message\",\"plan_type\":\"plus\",\"resets_at\":$reset}}"
        if $cell->{cli}{name} eq 'codex';
    outage($cell, 429, $message);
    my ($seen, $status) = waits($cell);
    my $why = $cell->swarm(qw(why w))->{out} . ($status->{reason} // '');
    # A CLI may print the time in its own form.
    my $twelve = POSIX::strftime('%I:%M', gmtime $reset) =~ s/^0//r;
    return $seen if $cell->{cli}{retries};
    return "$seen, " . ($why =~ /\Q$at\E|\b\Q$twelve\E/ ? 'names its end' : 'names no end');
}

# A refused key needs a person, who gives another one with the command that is proposed.
sub refused {
    my ($cell) = @_;
    outage($cell, 401, 'Incorrect API key provided');
    my ($seen) = waits($cell);
    my $why  = $cell->swarm(qw(why w))->{out};
    my ($next) = $why =~ /^\s*next:\s*(.*)/m;
    $seen .= ($next // 'nothing') =~ /nothing|by itself/ ? ', needs nobody' : ', needs a person';
    unlink "$cell->{dir}/mock/outage";
    my $resumed = $cell->swarm(qw(ralph resume w --env MOCK_KEY))->{code};
    return "$seen; resume $resumed, " . $cell->followed('w', 150);
}

# A first start with one setting left out: the dialog stands, swarm names it, and types nothing.
sub first_run {
    my ($cell) = @_;
    my ($command, $words, $screen, @via) = @{ $cell->{cli}{first_run}{ $cell->{variant} } };
    $cell->replies('That is all.');
    $cell->run(60, $cell->{swarm}, 'spawn', '--name', 'w', '--prompt', 'Begin with the work.', @via, '--', @$command);
    $cell->until_status('w', 60, sub { ($_[0]{status} // '') =~ /^(?:waiting|failed|done)$/ });
    # Nobody answers: whatever changes now is swarm's doing.
    sleep 5;
    my $status = $cell->status('w');
    my $reason = $status->{reason} // '';
    my $stands = $cell->swarm(qw(peek w))->{out} =~ $screen ? 'the dialog stands' : 'the dialog is gone';
    my $typed  = $cell->swarm(qw(events w))->{out} =~ /prompt (?:was )?sent/ ? ', prompt sent' : '';
    return join ', ', $status->{status} // 'unknown', ($reason =~ $words ? 'right words' : "\"$reason\""), "$stands$typed",
        ($cell->requests ? 'the model was asked' : 'no request'), $cell->{variant} eq 'trust' ? trusted($cell) : ();
}

sub trusted {
    my ($cell) = @_;
    my %file = (
        claude => [ '.claude.json', qr/"hasTrustDialogAccepted"\s*:\s*true/ ], codex => [ '.codex/config.toml', qr/trust_level/ ],
        gemini => [ '.gemini/trustedFolders.json', qr/TRUST/ ],
    );
    my ($path, $words) = @{ $file{ $cell->{cli}{name} } };
    return Cell::slurp("$cell->{dir}/home/$path") =~ $words ? 'trusted' : 'not trusted';
}

# A permission dialog in mid-work waits for a person; an Enter takes its first choice, and the turn goes on.
sub permission {
    my ($cell) = @_;
    $cell->replies({ text => 'I fix it.', sh => 'touch fixed', asks => 1 }, 'Fixed.');
    $cell->loop('w', '-n', 1, [ @{ $cell->{cli}{asks} } ]);
    my $status = $cell->until_status('w', 90, sub { ($_[0]{status} // '') =~ /^(?:waiting|failed|done)$/ });
    my $words  = ($status->{reason} // '') =~ /permission|approval/ ? 'right words' : '"' . ($status->{reason} // '') . '"';
    my $before = -e "$cell->{dir}/repo/fixed" ? 'fixed before' : 'not fixed before';
    my $sent   = $cell->swarm('send', 'w', '--', '')->{code};
    my $code   = $cell->followed('w');
    return "$status->{status}, $words, $before; answer $sent, $code, " . (-e "$cell->{dir}/repo/fixed" ? 'fixed' : 'not fixed');
}

# A question that nobody answers fails the iteration, with the question as its reason.
sub unanswered {
    my ($cell) = @_;
    $cell->replies({ text => 'I fix it.', sh => 'touch fixed', asks => 1 }, 'Fixed.');
    $cell->loop('w', '-n', 1, '--question-timeout', 5, [ @{ $cell->{cli}{asks} } ]);
    my $code  = $cell->followed('w');
    my $why   = $cell->swarm(qw(why w))->{out};
    my $named = $why =~ /permission|approval|question|proceed|allow/i ? 'why names it' : 'why does not name it';
    return "$code, $named, " . (-e "$cell->{dir}/repo/fixed" ? 'fixed' : 'not fixed');
}

# The turn is over and a task of the agent's own still runs; the agent has its result in the same iteration.
sub background {
    my ($cell) = @_;
    $cell->replies({ text => 'I start it.', sh => 'sleep 20', background => 1 }, 'It runs.', 'It has ended.');
    $cell->loop('w', '-n', 1);
    return $cell->followed('w') . ', ' . $cell->iterations('w') . ', ' . $cell->requests . ' requests';
}

# A context that is full ends the iteration; the next one starts with the prompt.
sub compaction {
    my ($cell) = @_;
    $cell->replies({ text => 'I look.', sh => 'ls', input => 95_000 }, 'The summary.', 'Done.', 'Done.', 'Done.');
    $cell->loop('w', '-n', 2, [ $cell->command, qw(--autocompact 100000) ]);
    my $code = $cell->followed('w');
    my $told = $cell->story('w') . $cell->log_of('w') . $cell->swarm(qw(why w))->{out};
    return "$code, " . $cell->iterations('w') . ($told =~ /context|compact/i ? ', told' : ', not told');
}

sub only {
    my ($reason, @pairs) = @_;
    return sub { my $pair = "$_[0]{name} $_[1]"; return (grep { $_ eq $pair } @pairs) ? undef : $reason };
}

sub asks_in_its_screen {
    my ($cli, $mode) = @_;
    return 'a one-shot command asks nothing' if $mode eq 'oneshot';
    return $cli->{asks} ? undef : 'it runs no commands of the model';
}

sub first_run_dialogs {
    my ($cli, $mode) = @_;
    return 'a one-shot command shows no dialog' if $mode eq 'oneshot';
    return $cli->{first_run} ? undef : 'no dialog of its first start is known';
}

sub rows {
    my @known = ('claude tui', 'claude oneshot', 'codex tui', 'codex oneshot');
    return (
        {
            key => '429', title => 'status 429', run => sub { passing($_[0], 429, 'Too many requests') },
            expect => \&passes,
        },
        {
            key => '529', title => 'status 529', run => sub { passing($_[0], 529, 'Overloaded') },
            expect => \&passes,
        },
        {
            key => 'limit', title => 'a usage limit with its reset time', run => \&limit,
            expect => sub { state_of($_[0]) . ($_[0]{retries} ? '' : ', names its end') },
        },
        {
            key => '401', title => 'status 401', run => \&refused,
            expect => sub { state_of($_[0]) . ', needs a person; resume 0, exit 0' },
        },
        {
            key => 'first-run', title => 'a first-run dialog', run => \&first_run, cannot => \&first_run_dialogs,
            variants => sub { sort keys %{ $_[0]{first_run} // {} } },
            without => sub { "$_[0]{name} $_[1]" },
            expect => sub { 'waiting, right words, the dialog stands, no request' . ($_[2] eq 'trust' ? ', not trusted' : '') },
        },
        {
            key => 'permission', title => 'a permission dialog', run => \&permission, cannot => \&asks_in_its_screen,
            without => sub { "$_[0]{name} permission" },
            expect => 'waiting, right words, not fixed before; answer 0, exit 0, fixed',
        },
        {
            key => 'unanswered', title => 'a question that nobody answers', run => \&unanswered, cannot => \&asks_in_its_screen,
            without => sub { "$_[0]{name} permission" },
            expect => 'exit 1, why names it, not fixed',
        },
        {
            key => 'background', title => 'a background task', run => \&background, expect => 'exit 0, 1 iteration, 3 requests',
            cannot => only('its shell tool has no background tasks that report their end', 'claude tui'),
        },
        {
            key => 'compaction', title => 'a full context', run => \&compaction, expect => 'exit 0, 2 iterations, told',
            cannot => only('it reports no full context to swarm', 'claude tui'),
        },
    );
}

1;
