#!/usr/bin/perl
# A fake interactive agent for tests: it draws an input box, takes pastes, and writes down what was submitted.
# It needs nothing but perl-base. Knobs, all in the environment:
#
#   REC=FILE    each submitted prompt is appended as {"prompt":"…"}; each answered dialog as {"trust":0|1}
#   BOOT=SECS   takes so long to come up; keys pressed meanwhile are thrown away
#   SETTLE=SECS an Enter so soon after a paste only adds a line break
#   GATE=FILE   comes up when FILE is there; keys pressed until then are thrown away
#   BANNER=TEXT prints this when it has come up
#   TRUST=1|2   asks first whether the folder is trusted; the default is the first option, "No, exit" (2: "Yes")
#   ASK=N       asks N times, with the same rows, whether to run a command; the default is "Yes". A digit chooses its row.
#               Each key is appended to REC as {"key":"…"}, each chosen row as {"ask":1|2|3}
#   DIGITS=move a digit only moves the highlight of that list; DIGITS=ignore: it has no effect
#   THEME=1     asks first for a theme, reads one key, and ends with 1 unless that is "1"
#   MENU=1      asks first for a flavour as nobody else does, and ends with 1 on any key
#   WORK=SECS   works so long on each prompt, with a spinner
#   REPLY=TEXT  says this after the work
#   ECHO=1      repeats the whole prompt when it is submitted
#   ALT=1       draws on the alternate screen, with the input box between two rules
#   EXIT=CODE   ends with this after the first reply
#   DIE=paste   ends with 3 as soon as a paste has come
#   DEAF=1      never takes an Enter
#   LATE=SECS   shows a paste only after SECS, and ignores Enter until then
#   SWAP=SECS   asks whether the folder is trusted SECS after it first drew its input box (the default is "Yes"); the text in
#               the box is lost. SWAP=paste: asks when a paste begins to arrive, and puts the paste into the box
use strict;
use warnings;
use POSIX ();

my %knob = map { $_ => $ENV{$_} // 0 } qw(BOOT SETTLE TRUST ASK THEME MENU WORK ECHO ALT DEAF LATE);
my $swap  = $ENV{SWAP} // 0;
my $reply = $ENV{REPLY} // 'Done.';
my $die   = $ENV{DIE}   // '';
my $ticks = POSIX::sysconf(&POSIX::_SC_CLK_TCK);
my ($fancy, $spins) = ($knob{ALT}, 0);
my $box = '';           # what stands in the input box
my @said;               # what was printed so far (for the redraws of the alternate screen)
my $pasted_at = -1e9;   # when the last paste ended
my $swap_at;            # when the trust dialog takes the place of the box
my $terminal;           # as it was

$SIG{HUP} = $SIG{TERM} = sub { leave(143) };
$| = 1;

sub now { return (POSIX::times())[0] / $ticks }
sub out { print @_; return }

sub leave {
    my ($code) = @_;
    out("\e[?2004l", $fancy ? "\e[?1049l" : '');
    $terminal->setattr(0, &POSIX::TCSANOW) if $terminal;
    POSIX::_exit($code);
}

sub record {
    my ($key, $value) = @_;
    return unless $ENV{REC};
    open my $file, '>>', $ENV{REC} or leave(9);
    syswrite $file, "{\"$key\":$value}\n";
    close $file;
    return;
}

sub json {
    my ($text) = @_;
    $text =~ s/(["\\])/\\$1/g;
    $text =~ s/([\x00-\x1f])/sprintf '\\u%04x', ord $1/ge;
    return "\"$text\"";
}

# Raw, without echo and signals, as interactive agents have it.
sub raw {
    my $term = POSIX::Termios->new;
    $term->getattr(0) // return;
    $terminal = POSIX::Termios->new;
    $terminal->getattr(0);
    $term->setlflag($term->getlflag & ~(&POSIX::ICANON | &POSIX::ECHO | &POSIX::ISIG | &POSIX::IEXTEN));
    $term->setiflag($term->getiflag & ~(&POSIX::ICRNL | &POSIX::IXON));
    $term->setcc(&POSIX::VMIN, 1);
    $term->setcc(&POSIX::VTIME, 0);
    $term->setattr(0, &POSIX::TCSANOW);
    return;
}

# One byte, or undef when none came in time.
my $waiting = '';
sub key {
    my ($timeout) = @_;
    if ($waiting eq '') {
        my $set = '';
        vec($set, 0, 1) = 1;
        return undef unless select($set, undef, undef, $timeout);
        my $got = sysread STDIN, $waiting, 65536;
        leave(0) unless $got;
    }
    return substr $waiting, 0, 1, '';
}

# The box as it is shown: a long paste is named only.
sub shown {
    return sprintf '[Pasted text #1 +%d lines]', ($box =~ tr/\n//) if length $box > 800;
    return join "\n  ", split /\n/, $box, -1;
}

sub draw {
    my ($footer) = @_;
    if (!$fancy) {
        my $text = shown();
        $text =~ s/\n/\r\n/g;
        out("\r\e[2K\xe2\x9d\xaf $text");
        return;
    }
    my $rule = "\xe2\x94\x80" x 60;
    my @rows = (@said, '', $rule, split(/\n/, "\xe2\x9d\xaf " . shown(), -1), $rule, $footer // '  ? for shortcuts');
    splice @rows, 0, @rows - 40 if @rows > 40;
    out("\e[H\e[2J", join "\r\n", @rows);
    return;
}

sub say_lines {
    my ($text) = @_;
    push @said, split /\n/, $text, -1;
    if (!$fancy) {
        $text =~ s/\n/\r\n/g;
        out("$text\r\n");
    }
    return;
}

sub work {
    my $until = now() + $knob{WORK};
    while (now() < $until) {
        my $spinner = sprintf "\xe2\x9c\xbb Working\xe2\x80\xa6 (%ds \xc2\xb7 esc to interrupt)", $spins++;
        if   ($fancy) { draw("  esc to interrupt \xc2\xb7 $spins") }
        else          { out("\r\e[2K$spinner") }
        select undef, undef, undef, 0.2;
    }
    out("\r\e[2K") unless $fancy;
    return;
}

sub submit {
    $box =~ s/\n+\z//;
    my $prompt = $box;
    return if $prompt eq '';
    out("\r\n") unless $fancy;
    push @said, '> ' . (length $prompt > 800 ? 'a long text' : $prompt =~ s/\n/ /gr);
    $box = '';
    record(prompt => json($prompt));
    say_lines("You said: $prompt") if $knob{ECHO};
    work();
    say_lines($reply);
    draw();
    leave($ENV{EXIT}) if defined $ENV{EXIT};
    return;
}

# Reads until the end of a bracketed paste.
sub take_paste {
    my $text = '';
    while ($text !~ s/\e\[201~\z//) {
        my $byte = key(undef);
        $text .= $byte if defined $byte;
    }
    leave(3) if $die eq 'paste';
    $text =~ s/\r/\n/g;
    $box .= $text;
    $pasted_at = now();
    return;
}

# What follows an escape character.
sub escape {
    my $sequence = '';
    while (defined(my $byte = key(0.05))) {
        $sequence .= $byte;
        last if $sequence =~ /\A(?:\[[0-9;]*[A-Za-z~]|O.|[^\[O])\z/;
    }
    take_paste() if $sequence eq '[200~';
    return $sequence;
}

sub trust_dialog {
    my $choice = 0;
    my @options = ('No, exit', 'Yes, proceed');
    @options = reverse @options if $knob{TRUST} == 2 || $swap;
    while (1) {
        my @mark = map { $_ == $choice ? "\xe2\x9d\xaf " : '  ' } 0, 1;
        out("\e[H\e[2JDo you trust the files in this folder?\r\n\r\n");
        out("$mark[$_]", $_ + 1, ". $options[$_]\r\n") for 0, 1;
        my $byte = key(undef) // next;
        if ($byte eq "\e") {
            my $sequence = escape();
            $choice = 1 if $sequence eq '[B' || $sequence eq 'OB';
            $choice = 0 if $sequence eq '[A' || $sequence eq 'OA';
        }
        $choice = $byte - 1 if $byte =~ /[12]/;
        last if $byte =~ /[\r12]/;
    }
    my $trusts = $options[$choice] =~ /Yes/ ? 1 : 0;
    record(trust => $trusts);
    leave(1) unless $trusts;
    out("\e[H\e[2J");
    return;
}

sub permission_list {
    my ($command) = @_;
    my $digits  = $ENV{DIGITS} // '';
    my $choice  = 0;
    my @options = ('Yes', "Yes, and don't ask again", 'No');
    while (1) {
        out("\e[H\e[2J Bash command\r\n\r\n   $command\r\n\r\n Do you want to proceed?\r\n");
        out($_ == $choice ? " \xe2\x9d\xaf " : '   ', $_ + 1, ". $options[$_]\r\n") for 0 .. $#options;
        out("\r\n Esc to cancel\r\n");
        my $byte = key(undef) // next;
        record(key => json($byte));
        my $chooses = $byte =~ /[1-3]/ && $digits ne 'ignore';
        $choice = $byte - 1 if $chooses;
        last if $byte eq "\r" || ($chooses && $digits ne 'move');
    }
    record(ask => $choice + 1);
    out("\e[H\e[2J");
    return;
}

sub theme_dialog {
    out('Select theme: 1) dark 2) light ');
    my $byte = key(undef);
    record(theme => json($byte));
    leave(1) unless $byte eq '1';
    out("\r\n");
    return;
}

# A list whose chosen row is the last one on the screen, as an input box would be.
sub menu {
    out("Which flavour?\r\n  mint\r\n\xe2\x9d\xaf vanilla");
    record(menu => json(key(undef)));
    leave(1);
    return;
}

if ($knob{BOOT} || $ENV{GATE}) {
    out("starting\r\n");
    select undef, undef, undef, $knob{BOOT};
    select undef, undef, undef, 0.02 while $ENV{GATE} && !-e $ENV{GATE};
    POSIX::tcflush(0, &POSIX::TCIFLUSH);
}
raw();
out("\e[?2004h", $fancy ? "\e[?1049h" : '');
trust_dialog() if $knob{TRUST};
permission_list("touch file-$_") for 1 .. $knob{ASK};
theme_dialog() if $knob{THEME};
menu()         if $knob{MENU};
say_lines($ENV{BANNER}) if defined $ENV{BANNER};
say_lines('Welcome to the fake agent.');
draw();
$swap_at = now() + $swap if $swap && $swap ne 'paste';

# Until when keys are waited for: a paste is to be shown, or the box is to be replaced.
sub patience {
    my @ends = grep { defined } $swap_at, is_late() ? $pasted_at + $knob{LATE} : undef;
    my ($first) = sort { $a <=> $b } @ends;
    return defined $first ? ($first > now() ? $first - now() : 0) : undef;
}

sub is_late { return $knob{LATE} && now() < $pasted_at + $knob{LATE} }

my $behind = 0;
while (1) {
    my $byte = key(patience());
    if (defined $byte && $swap eq 'paste' || defined $swap_at && now() >= $swap_at) {
        ($swap, $swap_at, $box) = ('asked', undef, '');
        # The dialog gets the key that came with it.
        $waiting = $byte . $waiting if defined $byte;
        trust_dialog();
        draw();
        next;
    }
    if (!defined $byte) {
        draw() if $behind && !is_late();
        $behind = 0 if !is_late();
        next;
    }
    if    ($byte eq "\x03") { leave(130) }
    elsif ($byte eq "\e")   { escape() }
    elsif ($byte eq "\x7f") { chop $box }
    elsif ($byte eq "\x15") { $box = '' }
    elsif ($byte ne "\r")   { $box .= $byte }
    elsif (is_late()) { next }
    elsif ($knob{DEAF} || now() - $pasted_at < $knob{SETTLE}) { $box .= "\n" }
    else                    { submit() }
    if (is_late()) { $behind = 1 }
    elsif ($waiting eq '') { draw() }
}
