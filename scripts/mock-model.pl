#!/usr/bin/perl
# A model that says what it is told to: for the e2e scripts, which let real agent CLIs talk to it. Loopback only.
#
#   mock-model.pl DIR        writes the port that it took to DIR/port
#
# DIR/replies holds one JSON object a line, one for each request that offers tools: "text" is said, "sh" is a
# shell command that is called, by the tool that the request offers for that ("background": true asks Claude Code to
# let it run on its own). When they are used up it says "Nothing more to do.". Other requests (a title, say) get "title". As long as DIR/outage is there each
# request gets the HTTP status that stands in its first line and the message that stands in its second.
# DIR/requests gets a byte for each request that was for a reply.
#
# Spoken: Anthropic messages, OpenAI responses and chat completions; streamed, or in one piece where a request
# asks for that. Left out: everything that the three CLIs of the drill do not ask for.
use strict;
use warnings;
use Fcntl qw(:flock SEEK_SET);
use IO::Socket::INET;
use JSON::PP;

my $dir  = shift // die "usage: mock-model.pl DIR\n";
my $json = JSON::PP->new->utf8->canonical;
my $door = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 64, ReuseAddr => 1)
    or die "cannot listen: $!\n";
$SIG{CHLD} = 'IGNORE';
$SIG{PIPE} = 'IGNORE';
put("$dir/port.new", $door->sockport . "\n");
rename "$dir/port.new", "$dir/port" or die "cannot rename: $!\n";
my $serial = 0;
while (1) {
    my $client = $door->accept or next;
    $serial++;
    my $pid = fork // die "cannot fork: $!\n";
    if ($pid == 0) { serve($client); exit 0 }
    close $client;
}

sub put {
    my ($path, $text) = @_;
    open my $file, '>>', $path or die "cannot write $path: $!\n";
    print {$file} $text;
    close $file or die "cannot write $path: $!\n";
}

sub serve {
    my ($client) = @_;
    alarm 60;
    my ($method, $path) = split / /, <$client> // return;
    my %head;
    while (defined(my $line = <$client>)) {
        last if $line =~ /^\r?\n/;
        $head{lc $1} = $2 if $line =~ /^([^:]+):\s*(.*?)\r?\n/;
    }
    $path =~ s/\?.*//;
    return answer($client, 404, { error => { message => 'no such thing' } }) if $method ne 'POST';
    my $request = eval { $json->decode(body($client, \%head)) };
    return answer($client, 400, { error => { message => 'no JSON' } }) if ref $request ne 'HASH';
    my %speak = (messages => \&anthropic, responses => \&responses, completions => \&chat);
    my $speak = $speak{ (split m{/}, $path)[-1] // '' };
    return answer($client, 200, { input_tokens => 10 }) if $path =~ /count_tokens$/;
    return answer($client, 404, { error => { message => 'no such thing' } }) if !$speak;
    my ($status, $message) = outage();
    return answer($client, $status, { type => 'error', error => { type => kind($status), message => $message } })
        if $status;
    my $tools = $request->{tools} // [];
    my $reply = @$tools ? next_reply() : { text => 'title' };
    my @calls = defined $reply->{sh} ? call($tools, $reply->{sh}, $reply->{background}) : ();
    $speak->($client, $request, $reply->{text} // '', @calls);
}

sub body {
    my ($client, $head) = @_;
    my $body = '';
    if (($head->{'transfer-encoding'} // '') !~ /chunked/) {
        read $client, $body, $head->{'content-length'} // 0;
        return $body;
    }
    while (my $size = hex((<$client> // '') =~ s/[;\s].*//sr)) {
        read $client, $body, $size, length $body;
        <$client>;
    }
    return $body;
}

sub outage {
    open my $file, '<', "$dir/outage" or return;
    chomp(my @lines = <$file>);
    return @lines;
}

sub kind {
    my %kind = (401 => 'authentication_error', 429 => 'rate_limit_error', 529 => 'overloaded_error');
    return $kind{ $_[0] } // 'api_error';
}

# The next line of the replies. The cursor is the length of the count of requests.
sub next_reply {
    open my $count, '>>', "$dir/requests" or die "cannot count: $!\n";
    flock $count, LOCK_EX or die "cannot lock: $!\n";
    my $at = -s $count;
    syswrite $count, '.';
    close $count;
    open my $file, '<', "$dir/replies" or return { text => 'Nothing more to do.' };
    my @lines = <$file>;
    return $at < @lines ? $json->decode($lines[$at]) : { text => 'Nothing more to do.' };
}

sub call {
    my ($tools, $command, $background) = @_;
    my %named = map { ($_->{name} // $_->{function}{name} // '') => 1 } @$tools;
    my $name  = (grep { $named{$_} } qw(Bash bash exec_command shell_command))[0] // 'Bash';
    my $input = $name eq 'exec_command' ? { cmd => $command } : { command => $command };
    $input->{description} = 'run it' if lc $name eq 'bash';
    $input->{run_in_background} = JSON::PP::true if $background;
    return { name => $name, input => $input };
}

sub id { return sprintf '%s_%08x%04x%06x', $_[0], time, $serial, $$ }

sub answer {
    my ($client, $status, $value) = @_;
    my $text = $json->encode($value);
    print {$client} "HTTP/1.1 $status X\r\ncontent-type: application/json\r\nconnection: close\r\n",
        'content-length: ', length $text, "\r\n\r\n", $text;
}

sub stream {
    my ($client, @events) = @_;
    print {$client} "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    for my $event (@events) {
        print {$client} "event: $event->{type}\n" if defined $event->{type};
        print {$client} 'data: ', $json->encode($event), "\n\n";
    }
}

sub anthropic {
    my ($client, $request, $text, @calls) = @_;
    my %message = (
        id => id('msg'), type => 'message', role => 'assistant', model => $request->{model},
        stop_reason => undef, stop_sequence => undef,
    );
    my @blocks = length $text ? { type => 'text', text => $text } : ();
    push @blocks, map { { type => 'tool_use', id => id('toolu'), name => $_->{name}, input => $_->{input} } } @calls;
    my $stop  = @calls ? 'tool_use' : 'end_turn';
    my $usage = { input_tokens => 1000, output_tokens => 50 };
    if (!$request->{stream}) {
        return answer($client, 200, { %message, content => \@blocks, stop_reason => $stop, usage => $usage });
    }
    my @events = { type => 'message_start', message => { %message, content => [], usage => { %$usage, output_tokens => 1 } } };
    for my $at (0 .. $#blocks) {
        my %block = %{ $blocks[$at] };
        my $delta =
            $block{type} eq 'text'
            ? { type => 'text_delta', text => $block{text} }
            : { type => 'input_json_delta', partial_json => $json->encode($block{input}) };
        my %empty = (%block, $block{type} eq 'text' ? (text => '') : (input => {}));
        push @events, { type => 'content_block_start', index => $at, content_block => \%empty },
            { type => 'content_block_delta', index => $at, delta => $delta },
            { type => 'content_block_stop',  index => $at };
    }
    push @events,
        { type => 'message_delta', delta => { stop_reason => $stop, stop_sequence => undef }, usage => { output_tokens => 50 } },
        { type => 'message_stop' };
    stream($client, @events);
}

sub responses {
    my ($client, $request, $text, @calls) = @_;
    my $usage    = { input_tokens => 1000, output_tokens => 50, total_tokens => 1050 };
    my $response = { id => id('resp'), object => 'response', model => $request->{model}, output => [] };
    my @items;
    push @items,
        {
        type => 'message', id => id('msg'), role => 'assistant', status => 'completed',
        content => [ { type => 'output_text', text => $text, annotations => [] } ],
        }
        if length $text;
    push @items, map {
        {
            type => 'function_call', id => id('fc'), call_id => id('call'), status => 'completed',
            name => $_->{name}, arguments => $json->encode($_->{input}),
        }
    } @calls;
    my $whole = { %$response, status => 'completed', output => \@items, usage => $usage };
    return answer($client, 200, $whole) if !$request->{stream};
    my @events = { type => 'response.created', response => { %$response, status => 'in_progress' } };
    push @events, { type => 'response.output_item.done', output_index => $_, item => $items[$_] } for 0 .. $#items;
    stream($client, @events, { type => 'response.completed', response => $whole });
}

sub chat {
    my ($client, $request, $text, @calls) = @_;
    my $usage = { prompt_tokens => 1000, completion_tokens => 50, total_tokens => 1050 };
    my $stop  = @calls ? 'tool_calls' : 'stop';
    my @tools = map {
        {
            index => 0, id => id('call'), type => 'function',
            function => { name => $_->{name}, arguments => $json->encode($_->{input}) },
        }
    } @calls;
    my %said = (role => 'assistant', content => $text, @tools ? (tool_calls => \@tools) : ());
    my %head = (id => id('chat'), created => time, model => $request->{model});
    if (!$request->{stream}) {
        my $choice = { index => 0, message => \%said, finish_reason => $stop };
        return answer($client, 200, { %head, object => 'chat.completion', choices => [$choice], usage => $usage });
    }
    my $chunk = sub { return { %head, object => 'chat.completion.chunk', choices => [ { index => 0, @_ } ] } };
    stream(
        $client,
        $chunk->(delta => \%said, finish_reason => undef),
        { %{ $chunk->(delta => {}, finish_reason => $stop) }, usage => $usage },
    );
    print {$client} "data: [DONE]\n\n";
}
