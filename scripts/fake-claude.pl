#!/usr/bin/perl
# A fake Claude Code for tests of hooks: it draws the input box, runs the hooks of the settings that it is given, and
# does what it is told through a FIFO. It is run under the name `claude` and needs nothing but perl-base.
#
#   FAKE=DIR claude [--settings FILE] [--session-id ID] [-p] [ARG…]
#
# DIR/ctl is the FIFO (the test keeps it open). Run N appends "start N PID" to DIR/runs, "ready N" when its box is there
# and "prompted N" when it has a prompt, which it keeps in DIR/prompt.N; then it works, and its UserPromptSubmit hooks run.
# DIR/args.N has its arguments, DIR/keys.N a line for each Enter. With -p it reads its prompt from standard input.
# It obeys, a line each:
#
#   work TEXT          says that it is at work
#   calm TEXT          shows its empty box below the text
#   bare TEXT          shows the text and nothing else
#   ask {JSON}         runs the hooks of PermissionRequest in the background. A second later it shows a dialog; it discards
#                      keys until 0.3 s after that, and notes the first Enter then in DIR/keys.N as "allowed"
#   hook EVENT {JSON}  runs the hooks of the event; the object's fields are added to what every hook is told. Each
#                      answer goes to DIR/answers as "N EVENT STATUS WHAT-IT-PRINTED", the last one of an event as "N EVENT."
#   status {JSON}      runs the status line of the settings, with the fields; "N status STATUS WHAT-IT-PRINTED" goes to
#                      DIR/answers, then "N status."
#   line {JSON}        appends to the session's transcript
#   env NAME=VALUE     is from now on in the environment of its hooks
#   run COMMAND        runs it, with SESSION set to its session; "N ran STATUS" goes to DIR/answers
#   exit CODE
#
# DEAF=1: it submits on Enter, but its screen does not show that. QUIET=1: no hook runs of itself.
use strict;
use warnings;
use POSIX ();

my $dir   = $ENV{FAKE} // die "FAKE is not set\n";
my @given = @ARGV;
my ($settings, $session, $once) = ('{}', undef, 0);
while (defined(my $arg = shift @ARGV)) {
    if    ($arg eq '--settings')   { $settings = slurp(shift @ARGV) }
    elsif ($arg eq '--session-id') { $session = shift @ARGV }
    elsif ($arg eq '-p')           { $once = 1 }
}
my $parsed = value(\$settings);
my %hooks = %{ $parsed->{hooks} // {} };
my $n = 1 + grep { /^start/ } split /\n/, -e "$dir/runs" ? slurp("$dir/runs") : '';
$session //= "fake-$n";
my $config = $ENV{CLAUDE_CONFIG_DIR} || "$ENV{HOME}/.claude";
my $projects   = "$config/projects/p";
my $transcript = "$projects/$session.jsonl";
mkdir $_ for $config, "$config/projects", $projects;
my $base = join ',', map { my $text = $_->[1]; "\"$_->[0]\":" . quoted($text) }
    [ session_id => $session ], [ transcript_path => $transcript ], [ cwd => POSIX::getcwd() ], [ prompt_id => "turn-$n" ];
my ($box, $said, $footer, $bare) = ('', 'Welcome.', '  ? for shortcuts', 0);
my ($waiting, $orders, $asks) = ('', '', 0);
$| = 1;
$SIG{HUP} = $SIG{TERM} = sub { POSIX::_exit(143) };

note('runs', "start $n $$");
note("args.$n", $_) for @given;
open my $ctl, '+<', "$dir/ctl" or die "no FIFO: $!\n";
if ($once) {
    local $/;
    my $prompt = <STDIN>;
    taken($prompt);
    while (1) { obey(order(undef)) }
}
raw();
print "\e[?2004h\e[?1049h";
draw();
note('runs', "ready $n");
while (1) {
    my $byte = key();
    if ($byte eq "\r" && $asks) {
        note("keys.$n", 'allowed');
        $asks = 0;
        show('Running it.', '  esc to interrupt');
    }
    elsif ($byte eq "\r") {
        note("keys.$n", 'Enter');
        submit();
        next if $ENV{DEAF};
    }
    elsif ($byte eq "\e") { escape() }
    else                  { $box .= $byte }
    draw() if $waiting eq '';
}

sub slurp {
    my ($path) = @_;
    open my $file, '<', $path or die "cannot read $path: $!\n";
    local $/;
    return scalar <$file>;
}

sub note {
    my ($name, $line) = @_;
    open my $file, '>>', "$dir/$name" or die "cannot write $name: $!\n";
    syswrite $file, "$line\n";
    close $file;
    return;
}

sub quoted {
    my ($text) = @_;
    $text =~ s/(["\\])/\\$1/g;
    $text =~ s/([\x00-\x1f])/sprintf '\\u%04x', ord $1/ge;
    return "\"$text\"";
}

# A JSON value at the head of a text, which is taken off it. Enough for settings.
sub value {
    my ($text) = @_;
    $$text =~ s/\A\s+//;
    if ($$text =~ s/\A\{\s*//) {
        my %fields;
        until ($$text =~ s/\A\s*\}//) {
            $$text =~ s/\A\s*,//;
            my $name = value($text);
            $$text =~ s/\A\s*://;
            $fields{$name} = value($text);
        }
        return \%fields;
    }
    if ($$text =~ s/\A\[\s*//) {
        my @list;
        until ($$text =~ s/\A\s*\]//) {
            $$text =~ s/\A\s*,//;
            push @list, value($text);
        }
        return \@list;
    }
    if ($$text =~ s/\A"((?:[^"\\]|\\.)*)"//s) {
        my $string = $1;
        my %plain = (n => "\n", t => "\t", r => "\r", b => "\b", f => "\f");
        $string =~ s/\\(?:u([0-9a-fA-F]{4})|(.))/defined $1 ? chr hex $1 : $plain{$2} \/\/ $2/gse;
        return $string;
    }
    $$text =~ s/\A([^\s,\]}]+)// or die "no JSON: $$text\n";
    return $1;
}

# Runs the hooks of an event as Claude Code does: all of them, each with the input.
sub hook {
    my ($event, $more) = @_;
    my ($fields) = ($more // '') =~ /\A\s*\{(.*)\}\s*\z/s;
    my $input = "{$base,\"hook_event_name\":\"$event\"" . (defined $fields && $fields =~ /\S/ ? ",$fields" : '') . '}';
    called($event, $input, map { $_->{command} } map { @{ $_->{hooks} } } @{ $hooks{$event} // [] });
    return;
}

sub status {
    my ($fields) = $_[0] =~ /\A\s*\{(.*)\}\s*\z/s;
    called('status', "{$base,$fields}", grep { defined } $parsed->{statusLine}{command});
    return;
}

# Runs commands with an input, one after the other.
sub called {
    my ($event, $input, @commands) = @_;
    for my $command (@commands) {
        open my $file, '>', "$dir/input.$n" or die "cannot write: $!\n";
        print {$file} $input;
        close $file;
        local $ENV{CLAUDECODE} = 1;
        local $ENV{INPUT} = "$dir/input.$n";
        my $answer = qx{{ $command\n} <"\$INPUT"};
        my $status = $? >> 8;
        $answer =~ s/\n+\z//;
        note('answers', "$n $event $status $answer");
    }
    note('answers', "$n $event.");
    return;
}

sub taken {
    my ($prompt) = @_;
    open my $file, '>', "$dir/prompt.$n" or die "cannot write: $!\n";
    print {$file} $prompt;
    close $file;
    hook('UserPromptSubmit', '{"prompt":' . quoted($prompt) . '}') unless $ENV{QUIET};
    note('runs', "prompted $n");
    return;
}

sub ask {
    my ($fields) = @_;
    my $pid = fork // die "no fork: $!\n";
    if (!$pid) {
        hook('PermissionRequest', $fields);
        POSIX::_exit(0);
    }
    select undef, undef, undef, 1;
    show('Do you want to proceed?', '', 1);
    select undef, undef, undef, 0.3;
    POSIX::tcflush(0, POSIX::TCIFLUSH());
    $asks = 1;
    return;
}

sub submit {
    return if $box eq '';
    my $prompt = $box;
    if (!$ENV{DEAF}) {
        $box = '';
        show('Working on it.', '  esc to interrupt');
    }
    taken($prompt);
    return;
}

sub show {
    ($said, $footer, $bare) = @_;
    draw();
    return;
}

sub draw {
    return if $once;
    my $rule  = "\xe2\x94\x80" x 60;
    my $shown = length $box > 800 ? '[Pasted text #1]' : $box =~ s/\n/\r\n  /gr;
    my @rows  = $bare ? $said : ($said, '', $rule, "\xe2\x9d\xaf $shown", $rule, $footer);
    print "\e[H\e[2J", join "\r\n", @rows;
    return;
}

sub obey {
    my ($verb, $rest) = split / /, $_[0], 2;
    $rest //= '';
    if    ($verb eq 'work') { show($rest, '  esc to interrupt') }
    elsif ($verb eq 'calm') { $box = ''; show($rest, '  ? for shortcuts') }
    elsif ($verb eq 'bare') { show($rest, '', 1) }
    elsif ($verb eq 'ask')  { ask($rest) }
    elsif ($verb eq 'hook') { hook(split / /, $rest, 2) }
    elsif ($verb eq 'status') { status($rest) }
    elsif ($verb eq 'env')  { my ($name, $value) = split /=/, $rest, 2; $ENV{$name} = $value }
    elsif ($verb eq 'exit') { POSIX::_exit($rest) }
    elsif ($verb eq 'run') {
        local $ENV{SESSION} = $session;
        system 'sh', '-c', $rest;
        note('answers', "$n ran " . ($? >> 8));
    }
    elsif ($verb eq 'line') {
        open my $file, '>>', $transcript or die "cannot write: $!\n";
        syswrite $file, "$rest\n";
        close $file;
    }
    else { note('answers', "what is '$verb'?") }
    return;
}

# The next order, or undef when there is none yet. Another run may read the rest: a byte at a time.
sub order {
    my ($timeout) = @_;
    while (1) {
        my $set = '';
        vec($set, fileno $ctl, 1) = 1;
        return undef unless select $set, undef, undef, $timeout;
        sysread $ctl, my $byte, 1;
        if ($byte eq "\n") {
            my $line = $orders;
            $orders = '';
            return $line;
        }
        $orders .= $byte;
    }
}

# The next byte from the terminal; orders are obeyed meanwhile.
sub key {
    while ($waiting eq '') {
        my $set = '';
        vec($set, $_, 1) = 1 for 0, fileno $ctl;
        select $set, undef, undef, undef;
        if (vec $set, 0, 1) {
            sysread STDIN, $waiting, 65536 or POSIX::_exit(0);
        }
        elsif (defined(my $line = order(0))) { obey($line) }
    }
    return substr $waiting, 0, 1, '';
}

sub escape {
    my $sequence = '';
    while ($sequence !~ /\A(?:\[[0-9;]*[A-Za-z~]|[^\[])\z/) { $sequence .= key() }
    return if $sequence ne '[200~';
    my $text = '';
    $text .= key() until $text =~ s/\e\[201~\z//;
    $box .= $text =~ s/\r/\n/gr;
    return;
}

# Raw, without echo and signals, as interactive agents have it.
sub raw {
    my $term = POSIX::Termios->new;
    $term->getattr(0);
    $term->setlflag($term->getlflag & ~(&POSIX::ICANON | &POSIX::ECHO | &POSIX::ISIG | &POSIX::IEXTEN));
    $term->setiflag($term->getiflag & ~(&POSIX::ICRNL | &POSIX::IXON));
    $term->setcc(&POSIX::VMIN, 1);
    $term->setcc(&POSIX::VTIME, 0);
    $term->setattr(0, &POSIX::TCSANOW);
    return;
}
