#!/usr/bin/perl
# A fake agent for loops with a task list: does what .ralph-active says, as a careful agent would.
#
# Usage: fake-story-agent.pl DIR
#
# It reads its prompt from standard input into DIR/prompt-N. DIR/reviews has a line for each review, used in order:
# "approve" or "changes TEXT"; without a line the review approves. DIR/cheat-N is Perl code for call number N: it gets
# $list, $story, $mode and $marker after the usual edits and before the file is written. It may return "keep" to leave
# tasks.json alone. With a file DIR/silent-N, call N prints nothing and changes nothing.
#
# Agents that run at the same time share DIR: DIR/log gets a line "start MODE ID" and "end MODE ID" from each call.
# DIR/wait-MODE-ID is a FIFO from which such a call reads before it works. DIR/break-ID: each call for this story exits
# with 1. DIR/code-ID is Perl code for the implementation of this story. A fix whose feedback names a branch to merge
# merges it, and keeps both sides of each conflict.
use strict;
use warnings;
use utf8;
use Fcntl qw(:flock);
use JSON::PP;

my ($dir) = @ARGV;
my $json = JSON::PP->new->utf8->pretty->canonical;
my $prompt = do { local $/; <STDIN> };

sub slurp { my ($file) = @_; open my $in, '<', $file or return undef; local $/; return scalar <$in>; }
sub spew { my ($file, $text) = @_; open my $out, '>', $file or die "$file: $!"; print $out $text; close $out or die $!; }

open my $lock, '>>', "$dir/lock" or die $!;
flock $lock, LOCK_EX or die $!;
my $call = (slurp("$dir/calls") // 0) + 1;
spew("$dir/calls", $call);
close $lock;
sub note { my ($line) = @_; open my $log, '>>', "$dir/log" or die $!; syswrite $log, "$line\n"; close $log; }
spew("$dir/prompt-$call", $prompt);
exit 0 if -e "$dir/silent-$call";
my $marker = $json->decode(slurp('.ralph-active'));
my $mode = $marker->{iterationMode};
note("start $mode $marker->{story}");
slurp("$dir/wait-$mode-$marker->{story}");
exit 1 if -e "$dir/break-$marker->{story}";
my $file = "$marker->{ralphDir}/tasks.json";
my $list = $json->decode(slurp($file));
my ($story) = grep { $_->{id} eq $marker->{story} } @{ $list->{userStories} };
my $subject;
if ($mode eq 'implement') {
    spew("$story->{id}.txt", "$story->{title}\n") unless -e "$story->{id}.txt";
    $story->{notes} = "wrote $story->{id}.txt";
    if (defined(my $code = slurp("$dir/code-$story->{id}"))) { eval $code; die $@ if $@ }
    if ($marker->{skipReview}) { $story->{passes} = JSON::PP::true }
    else { $story->{reviewStatus} = 'needs_review' }
    $subject = "feat: [$story->{id}] - $story->{title}";
} elsif ($mode eq 'review') {
    my @reviews = split /\n/, slurp("$dir/reviews") // '';
    my $verdict = shift(@reviews) // 'approve';
    spew("$dir/reviews", join("\n", @reviews));
    $story->{reviewCount} += 1;
    if ($verdict =~ /^changes (.*)/) {
        $story->{reviewStatus} = 'changes_requested';
        $story->{reviewFeedback} = $1;
        $subject = "review: [$story->{id}] - changes requested";
    } else {
        $story->{reviewStatus} = 'approved';
        $story->{passes} = JSON::PP::true;
        $subject = "review: [$story->{id}] - approved";
    }
} else {
    if ($story->{reviewFeedback} =~ /`git merge --no-commit (\S+)`/) {
        $ENV{BRANCH} = $1;
        system('git merge -q --no-commit "$BRANCH" >/dev/null 2>&1');
        system("git checkout -q HEAD -- '$marker->{ralphDir}'");
        for my $both (split /\n/, `git diff --name-only --diff-filter=U`) {
            my $text = slurp($both);
            $text =~ s/^(<{7}|={7}|>{7}).*\n//mg;
            spew($both, $text);
        }
    }
    spew("$story->{id}.txt", "$story->{title}, fixed: $story->{reviewFeedback}\n");
    $story->{reviewFeedback} = '';
    $story->{reviewStatus} = 'needs_review';
    $subject = "fix: [$story->{id}] - address review feedback";
}
my $how = '';
if (defined(my $cheat = slurp("$dir/cheat-$call"))) {
    no strict;
    $how = eval($cheat) // '';
    die $@ if $@;
}
spew($file, $json->encode($list)) unless $how eq 'keep';
open my $progress, '>>', "$marker->{ralphDir}/progress.txt" or die $!;
print $progress "## iteration $marker->{iteration} ($mode) $story->{id}\n";
close $progress or die $!;
system('git add -A && git commit -qm "$SUBJECT"') if $ENV{SUBJECT} = $subject;
print "$subject\n";
note("end $mode $story->{id}");
my $open = grep { !$_->{passes} } @{ $list->{userStories} };
print "<promise>COMPLETE</promise>\n" unless $open;
