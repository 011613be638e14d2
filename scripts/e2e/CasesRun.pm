# Cases of one worker: the prompt that reaches the model, how iterations end, and what users do to the worker meanwhile.
package CasesRun;
use strict;
use warnings;
use utf8;
use Time::HiRes qw(sleep);
use Cell ();

my $one_shot_reads_once = 'a one-shot command reads nothing after its prompt';

sub only_tui { my ($reason) = @_; return sub { $_[1] eq 'oneshot' ? $reason : undef } }

# 40 lines with everything that a shell, tmux or an input box might change.
sub tricky_prompt {
    my @lines = ('Übersetze dies: naïve café, 日本語, Ω≈ç√, 🚀 and e' . "\x{301}" . '.');
    push @lines, "\tA tab, then `backticks` and \$(touch never) and \${HOME} and #{pane_id} %7 in line $_."
        for 2 .. 20;
    push @lines, q{  "double" 'single' \\ backslash \n ~ * ? [x] {a,b} ! & | < > line } . $_ for 21 .. 39;
    push @lines, 'The last line ends in a semicolon;';
    return join("\n", @lines) . "\n";
}

sub long_prompt {
    my $lines = '';
    my $at    = 0;
    $lines .= sprintf "Line %04d of a long prompt: nothing here is an order, it only takes room.\n", ++$at
        while length $lines < 61 * 1024;
    return $lines . "Now reply.\n";
}

# How a prompt arrived at the model, compared with all user texts of the first request.
sub arrival {
    my ($cell, $prompt, $number) = @_;
    (my $whole = $prompt) =~ s/\s+\z//;
    my @texts = $cell->texts($number // 1) or return 'nothing arrived';
    for my $text (@texts) {
        return 'exact' if $text eq $prompt || $text eq $whole;
    }
    # A file of the repository may be part of the same text; the first line of the prompt tells its place.
    for my $text (@texts) {
        my $at = index $text, $whole;
        next if $at < 0;
        my ($before, $after) = (substr($text, 0, $at), substr $text, $at + length $whole);
        return 'exact' . ($after eq $prompt =~ s/.*\S//sr ? '' : ', then white space') if "$before$after" =~ /\A\s*\z/;
        return 'wrapped' if $before =~ /<pasted_content[^>]*>\s*\z/ && $after =~ m{\A\s*</pasted_content};
        return 'in quotes' if "$before$after" =~ /\A"\s*"\s*\z/;
        return 'whole, then ' . words($after) if $before =~ /\A\s*\z/;
        return 'whole, after ' . words($before) if $after =~ /\A\s*\z/;
        return 'whole, between other text';
    }
    my $flat = sub { return $_[0] =~ s/[ \t]+/ /gr };
    return 'wrapped, tabs as spaces' if grep { index($flat->($_), $flat->($whole)) >= 0 && /<pasted_content/ } @texts;
    return 'tabs as spaces' if grep { index($flat->($_), $flat->($whole)) >= 0 } @texts;
    my ($first) = split /\n/, $whole;
    return (grep { index($_, $first) >= 0 } @texts) ? 'damaged' : 'not in the request';
}

sub words { my ($text) = @_; return substr $text =~ s/\s+/ /gr =~ s/^ //r, 0, 24 }

sub prompt {
    my ($cell, $text) = @_;
    utf8::encode(my $bytes = $text);
    Cell::put("$cell->{dir}/repo/PROMPT.md", $bytes);
    $cell->replies('That is all.');
    $cell->loop('w', '-n', 1);
    my $code = $cell->followed('w');
    return "$code, " . $cell->iterations('w') . ', ' . arrival($cell, $text);
}

sub arrives { my ($cli, $mode) = @_; return "exit 0, 1 iteration, $cli->{arrives}{$mode}" }

# "exit 0 done_pattern, 2 iterations"
sub ended {
    my ($cell, $name) = @_;
    my $code = $cell->followed($name);
    my $end  = $cell->json_of('report', $name)->{end} // 'no end';
    return "$code $end, " . $cell->iterations($name);
}

sub pattern {
    my ($cell) = @_;
    $cell->replies('Not yet.', "All of it is done.\n\nALL TASKS DONE\n\nThat was all.");
    $cell->loop('w', '-n', 4, '--done-pattern', 'ALL TASKS DONE');
    return ended($cell, 'w');
}

sub pattern_and_check {
    my ($cell) = @_;
    $cell->replies('ALL TASKS DONE', { text => 'I fix it.', sh => 'touch fixed' }, 'ALL TASKS DONE');
    $cell->loop('w', '-n', 4, '--done-pattern', 'ALL TASKS DONE', '--check', $cell->{cli}{toolless} ? 'sleep 0' : 'test -f fixed');
    return ended($cell, 'w');
}

sub pattern_in_prompt {
    my ($cell) = @_;
    # An agent may show it as rendered Markdown.
    Cell::put("$cell->{dir}/repo/PROMPT.md", "# Fix it\n\n- read the **code**\n- run `make test`\n  Once you are done, print ALL TASKS DONE\n");
    $cell->replies('Not yet, first.', 'Not yet, second.');
    $cell->loop('w', '-n', 2, '--done-pattern', 'ALL TASKS DONE');
    return ended($cell, 'w') . ', ' . $cell->requests . ' requests';
}

# The first example of the README, word by word but for the agent's command.
sub readme {
    my ($cell) = @_;
    unlink "$cell->{dir}/repo/PROMPT.md";
    $cell->swarm(qw(ralph init))->{code} == 0 or return 'ralph init failed';
    $cell->replies('One task is left.', "The last one is done.\n\nAll tasks complete");
    $cell->start_loop('agent', qw(--prompt-file PROMPT.md --max-iterations 10 --done-pattern), 'All tasks complete', '--', $cell->command);
    my $ended = ended($cell, 'agent');
    my $why   = $cell->swarm(qw(why agent))->{out} =~ /done pattern/ ? 'why names the pattern' : 'why does not name the pattern';
    my @logs  = map { $cell->swarm('logs', 'agent', '--iteration', $_)->{out} } 1, 2;
    my $logs  = $logs[0] =~ /One task is left/ && $logs[1] =~ /The last one is done/ ? 'logs have both answers' : 'logs lack an answer';
    return "$ended, " . $cell->requests . " requests, $why, $logs";
}

# The turn's end ends the iteration, and nothing names the signal by which swarm then ended the agent.
sub turn_end {
    my ($cell) = @_;
    $cell->replies('The first turn.', 'The second turn.');
    $cell->loop('w', '-n', 2);
    my $ended  = ended($cell, 'w');
    my $told   = join '', $cell->story('w'), $cell->log_of('w'), map { $cell->swarm($_, 'w')->{out} } qw(why report);
    my $signal = $told =~ /\b(?:signal 15|143|SIGTERM)\b/ ? "names $&" : 'names no signal';
    return "$ended, $signal, " . $cell->requests . ' requests';
}

sub held_loop {
    my ($cell, @args) = @_;
    $cell->replies({ text => 'I worked on it.', until => 'go' }, 'The second turn.');
    $cell->loop('w', @args);
    return $cell->until_requests(1);
}

sub pause {
    my ($cell) = @_;
    held_loop($cell, '-n', 2) or return 'the model got no request';
    my $paused = $cell->swarm(qw(ralph pause w))->{code};
    $cell->release('go');
    # A pause suspends the inactivity timeout, which alone ends the iteration of a screen without hooks.
    my $ends  = $cell->mode eq 'oneshot' || $cell->{cli}{hooks};
    my $ended = !$ends || $cell->until(60, sub { $cell->log_of('w') =~ /\[(?:END|FAIL)\]/ }) ? '' : ', iteration 1 did not end';
    my $state = $cell->json_of(qw(ralph status w))->{status} // 'unknown';
    my $seen  = "pause $paused, $state after " . $cell->requests . ' request' . $ended;
    my $resumed = $cell->swarm(qw(ralph resume w))->{code};
    return "$seen; resume $resumed, " . $cell->followed('w') . ', ' . $cell->iterations('w') . ', ' . $cell->requests . ' requests';
}

sub kill_daemon {
    my ($cell) = @_;
    held_loop($cell, '-n', 1) or return 'the model got no request';
    my $before = $cell->daemon_pid // return 'no daemon';
    Cell::signal_to('KILL', $before);
    $cell->until(20, sub { !-e "/proc/$before" || Cell::slurp("/proc/$before/stat") =~ /\) Z/ });
    my $ls  = $cell->swarm('ls')->{code};
    my $new = ($cell->daemon_pid // $before) == $before ? 'the same daemon' : 'another daemon';
    $cell->release('go');
    return "ls $ls, $new, " . $cell->followed('w') . ', ' . $cell->iterations('w') . ', ' . $cell->requests . ' request';
}

sub send_busy {
    my ($cell) = @_;
    $cell->replies({ text => 'I worked on it.', until => 'go' }, 'The second turn.');
    $cell->swarm('spawn', '--name', 'w', '--prompt', 'Begin with the work.', $cell->via, '--', $cell->command);
    $cell->until_requests(1) or return 'the model got no request';
    my $pid = $cell->start('send', $cell->{swarm}, 'send', 'w', '--', "And then ` \$(this) thing;");
    # An agent may take the text only after its turn.
    my $sent = $cell->until(10, sub { waitpid($pid, 1) == $pid }) ? $? >> 8 : undef;
    $cell->release('go');
    $sent //= $cell->join_pid($pid, 60);
    my $got = $cell->until_requests(2, 30) && grep { /And then ` \$\(this\) thing;/ } $cell->texts(2);
    $cell->swarm(qw(kill w));
    return "send $sent, " . ($got ? 'arrives' : 'does not arrive');
}

# Texts at once after the prompt and after one another: each arrives as a text of its own.
sub send_early {
    my ($cell) = @_;
    $cell->replies(map { "Answer $_." } 1 .. 6);
    $cell->swarm('spawn', '--name', 'w', '--prompt', 'Begin with the work.', $cell->via, '--', $cell->command);
    my @texts = map { "Message $_ of three." } qw(one two three);
    my @codes = map { $cell->swarm('send', 'w', '--', $_)->{code} } @texts;
    my $all   = sub { return join "\n", map { $cell->texts($_) } 1 .. $cell->requests };
    my $is_alone = sub { my ($text) = @_; return $all->() =~ /^[ \t]*\Q$text\E[ \t]*$/m };
    $cell->until(40, sub { @texts == grep { $is_alone->($_) } @texts });
    my $alone = grep { $is_alone->($_) } @texts;
    $cell->swarm(qw(kill w));
    return "send @codes, $alone of 3 arrive alone";
}

# A text in the second in which a turn ends: it arrives in this iteration, or is refused.
sub send_late {
    my ($cell) = @_;
    held_loop($cell, '-n', 1) or return 'the model got no request';
    $cell->release('go');
    $cell->until(30, sub { $cell->swarm(qw(peek w))->{out} =~ /I worked on it/ });
    my $sent = $cell->swarm('send', 'w', '--', 'One more thing.')->{code};
    my $arrives = $cell->until($sent == 0 ? 30 : 3, sub { grep { /One more thing/ } map { $cell->texts($_) } 1 .. $cell->requests });
    my $lost = $sent == 0 && !$arrives ? 'the text is lost' : 'no text is lost';
    return "$lost, " . $cell->followed('w') . ', ' . $cell->iterations('w');
}

sub attach {
    my ($cell) = @_;
    held_loop($cell, '-n', 1) or return 'the model got no request';
    # Another tmux is the terminal that a person would sit at.
    my @tmux  = ('tmux', '-f', '/dev/null', '-S', "$cell->{dir}/outer.sock");
    my $outer = sub { return $cell->run(10, @tmux, @_) };
    $outer->(qw(new-session -d -x 110 -y 35), "$cell->{swarm} attach w; echo \"left with \$?\"; sleep 100");
    my $shows = sub { my ($what) = @_; return $cell->until(20, sub { $outer->(qw(capture-pane -p))->{out} =~ $what }) };
    # The inner client is there once tmux lists it.
    my $inner = $cell->until(20, sub { $cell->run(10, 'tmux', '-S', "$cell->{dir}/swarm/tmux.sock", 'list-clients', '-F', '#{client_tty}')->{out} =~ m{/dev/pts} });
    $outer->(qw(send-keys C-b d));
    my $left = $shows->(qr/left with 0/) ? 'detached 0' : 'not detached';
    $outer->('kill-server');
    $cell->release('go');
    return ($inner ? 'attached' : 'not attached') . ", $left, " . $cell->followed('w') . ', ' . $cell->iterations('w') . ', ' . $cell->requests . ' request';
}

sub kill_worker {
    my ($cell) = @_;
    held_loop($cell, '-n', 3) or return 'the model got no request';
    my $killed = $cell->swarm(qw(kill w))->{code};
    my $code   = $cell->followed('w', 30);
    my $status = $cell->status('w')->{status} // 'unknown';
    # The app server of Codex belongs to no worker: it serves later sessions of the same home. `cat -` is tmux's.
    my @left = grep { Cell::slurp("/proc/$_/cmdline") !~ /app-server|mock-model|\btmux\b|swarm\0daemon|\Acat\0-/ } Cell::processes($cell->{dir});
    $cell->note('left: ' . join ' ', map { Cell::slurp("/proc/$_/cmdline") =~ tr/\0/ /r } @left);
    return "kill $killed, $code, $status, " . @left . ' processes left, ' . $cell->iterations('w');
}

sub logs {
    my ($cell) = @_;
    $cell->replies("The first answer has\n\nmany words of its own.", 'The second answer is another one.');
    $cell->loop('w', '-n', 2);
    my $code  = $cell->followed('w');
    my $has   = sub {
        my ($iteration) = @_;
        my $out = $cell->swarm('logs', 'w', '--iteration', $iteration)->{out};
        my @found = map { $out =~ /The $_ answer/ ? $_ : () } qw(first second);
        return @found ? join '+', @found : 'neither';
    };
    return "$code, 1: " . $has->(1) . ', 2: ' . $has->(2);
}

sub worktrees {
    my ($cell) = @_;
    my @names = qw(alpha beta);
    my $toolless = $cell->{cli}{toolless};
    my $warm = $cell->{cli}{warm};
    $cell->run(60, @$warm) if $warm;
    $cell->replies(map { ({ for => "Task $_", text => 'I make it.', $toolless ? () : (sh => "touch made-$_") }, { for => "Task $_", text => 'Made.' }) } @names);
    for my $name (@names) {
        Cell::put("$cell->{dir}/repo/PROMPT.md", "Task $name\n");
        Cell::put("$cell->{dir}/$name.md", "Task $name\n");
        $cell->loop($name, '-n', 1, '--worktree', '--prompt-file', "$cell->{dir}/$name.md");
    }
    my @seen;
    for my $name (@names) {
        my $code = $cell->followed($name);
        my @made = map { s{.*/made-}{}r } glob "$cell->{dir}/repo-worktrees/$name/made-*";
        push @seen, "$name: $code" . ($toolless ? '' : ', made ' . (join('+', @made) || 'nothing'));
    }
    push @seen, -e "$cell->{dir}/repo/made-alpha" ? 'the repository changed' : 'the repository untouched';
    return join '; ', @seen;
}

sub rows {
    return (
        {
            key => 'prompt', title => 'a tricky 40-line prompt', expect => \&arrives,
            run => sub { prompt($_[0], tricky_prompt()) },
        },
        {
            key => 'prompt-61k', title => 'a prompt of 61 KB', expect => sub { arrives(@_) =~ s/, tabs as spaces//r },
            run => sub { prompt($_[0], long_prompt()) },
        },
        {
            key => 'pattern', title => 'a done pattern alone', run => \&pattern,
            expect => 'exit 0 done_pattern, 2 iterations',
        },
        {
            key => 'pattern-check', title => 'a done pattern and a check', run => \&pattern_and_check,
            expect => sub { 'exit 0 all_checks_passed, ' . ($_[0]{toolless} ? '1 iteration' : '2 iterations') },
        },
        {
            key => 'pattern-prompt', title => 'a done pattern in the prompt only', run => \&pattern_in_prompt,
            expect => 'exit 0 max_iterations, 2 iterations, 2 requests',
        },
        {
            key => 'readme', title => "the README's first example", run => \&readme,
            expect => 'exit 0 done_pattern, 2 iterations, 2 requests, why names the pattern, logs have both answers',
            cannot => sub {
                return 'the example is for the screen of an agent' if $_[1] eq 'oneshot';
                return $_[0]{via} ? 'its command needs --prompt-via' : undef;
            },
        },
        {
            key => 'turn-end', title => 'the end of a turn', run => \&turn_end,
            expect => 'exit 0 max_iterations, 2 iterations, names no signal, 2 requests',
        },
        {
            key => 'pause', title => 'pause and resume in mid-iteration', run => \&pause,
            expect => 'pause 0, paused after 1 request; resume 0, exit 0, 2 iterations, 2 requests',
        },
        {
            key => 'kill9', title => 'kill -9 of the daemon', run => \&kill_daemon,
            expect => 'ls 0, another daemon, exit 0, 1 iteration, 1 request',
        },
        {
            key => 'send-busy', title => 'send while busy', run => \&send_busy, expect => 'send 0, arrives',
            cannot => only_tui($one_shot_reads_once),
        },
        {
            key => 'send-early', title => 'three texts at once after the prompt', run => \&send_early,
            expect => 'send 0 0 0, 3 of 3 arrive alone', cannot => only_tui($one_shot_reads_once),
        },
        {
            key => 'send-late', title => 'a text as the turn ends', run => \&send_late,
            expect => 'no text is lost, exit 0, 1 iteration', cannot => only_tui($one_shot_reads_once),
        },
        {
            key => 'attach', title => 'attach and detach', run => \&attach,
            expect => 'attached, detached 0, exit 0, 1 iteration, 1 request',
        },
        {
            key => 'kill', title => 'kill', run => \&kill_worker,
            expect => 'kill 0, exit 1, killed, 0 processes left, 1 iteration',
        },
        {
            key => 'logs', title => 'logs --iteration', run => \&logs, expect => 'exit 0, 1: first, 2: second',
        },
        {
            key => 'worktrees', title => 'two worktrees at once', run => \&worktrees,
            expect => sub {
                my $made = sub { "$_[0]: exit 0" . ($_[1]{toolless} ? '' : ", made $_[0]") };
                join '; ', $made->('alpha', $_[0]), $made->('beta', $_[0]), 'the repository untouched';
            },
        },
    );
}

1;
