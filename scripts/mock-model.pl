#!/usr/bin/perl
# A scripted model server on loopback for the e2e scripts, which let real agent CLIs talk to it.
#
#   mock-model.pl DIR [--without-tools]     writes its port to DIR/port
#
# DIR/replies holds one JSON object a line. Each request that offers tools gets the first unused one. Its fields:
#   text        the model's text
#   sh          a shell command, called through the tool that the request offers for that
#   question    a question for the user with the options "keep" and "drop", asked through Claude Code's tool for that
#   background  true lets Claude Code run that command in the background
#   asks        true asks the user for the permission to run that command, where the tool has a parameter for it (Codex)
#   input       how many input tokens the usage reports (default 1000)
#   until       a file name: the reply is sent once DIR/NAME exists, or after five minutes
#   for         a word: the reply is only for requests whose user text contains it
# Once they are used up, the text is "Nothing more to do.". Other requests (for a title, say) get the text "title".
# With --without-tools, requests without tools count too: aider offers none.
#
# While DIR/outage exists, each request gets an error: its first line is the HTTP status, its second the message (or the
# whole body, where it is a JSON object), and each further line is a header.
#
# The server writes: DIR/requests, a byte for each request that got a reply; DIR/prompts/N.json for the Nth of them, with
# its path, its model (Gemini: in the path), all texts of its user messages, and as `notes` those of the system and developer
# messages between them, where Claude Code and Codex put what a hook adds.
#
# It speaks Anthropic messages, OpenAI responses and chat completions, and Gemini generateContent; streamed, or in one
# piece where a request asks for that. It lacks everything that the CLIs of the matrix do not use.
use strict;
use warnings;
use Fcntl qw(:flock SEEK_SET);
use IO::Socket::INET;
use JSON::PP;

my $dir = shift // die "usage: mock-model.pl DIR [--without-tools]\n";
my $without_tools = grep { $_ eq '--without-tools' } @ARGV;
my $json = JSON::PP->new->utf8->canonical;
my $door = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 64, ReuseAddr => 1)
    or die "cannot listen: $!\n";
$SIG{CHLD} = 'IGNORE';
$SIG{PIPE} = 'IGNORE';
mkdir "$dir/prompts";
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
    alarm 330;
    my ($method, $path) = split / /, <$client> // return;
    my %head;
    while (defined(my $line = <$client>)) {
        last if $line =~ /^\r?\n/;
        $head{lc $1} = $2 if $line =~ /^([^:]+):\s*(.*?)\r?\n/;
    }
    $path =~ s/\?.*//;
    return answer($client, 404, { error => { message => 'not found' } }) if $method ne 'POST';
    my $request = eval { $json->decode(body($client, \%head)) };
    return answer($client, 400, { error => { message => 'not JSON' } }) if ref $request ne 'HASH';
    return answer($client, 200, { input_tokens => 10, totalTokens => 10 }) if $path =~ /count_?tokens$/i;
    my %speak = (
        messages => \&anthropic, responses => \&responses, completions => \&chat,
        generateContent => \&gemini, streamGenerateContent => \&gemini,
    );
    my $speak = $speak{ (split m{[/:]}, $path)[-1] // '' };
    return answer($client, 404, { error => { message => 'not found' } }) if !$speak;
    $request->{stream} = 1 if $path =~ /streamGenerateContent$/;
    return if refuse($client, $speak);
    my $tools = tools($request);
    my $texts = texts($request, qr/\Auser\z/);
    my $notes = texts($request, qr/\A(?:system|developer)\z/);
    my $reply = is_main($request, $tools, $texts) ? next_reply($path, $request->{model}, $texts, $notes) : side_reply($request);
    if (defined $reply->{until}) {
        for (1 .. 3000) {
            last if -e "$dir/$reply->{until}";
            select undef, undef, undef, 0.1;
        }
        # The outage may have begun while the reply was held back.
        return if refuse($client, $speak);
    }
    my @calls = defined $reply->{sh} ? call($tools, $reply) : ();
    push @calls, question($reply->{question}) if defined $reply->{question};
    $speak->($client, $request, $reply, @calls);
}

sub body {
    my ($client, $head) = @_;
    my $body = '';
    print {$client} "HTTP/1.1 100 Continue\r\n\r\n" if lc($head->{expect} // '') eq '100-continue';
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

# Sends the error of DIR/outage, where there is one.
sub refuse {
    my ($client, $speak) = @_;
    open my $file, '<', "$dir/outage" or return;
    chomp(my ($status, $message, @headers) = <$file>);
    my %kind  = (401 => 'authentication_error', 429 => 'rate_limit_error', 529 => 'overloaded_error');
    my %state = (401 => 'UNAUTHENTICATED', 429 => 'RESOURCE_EXHAUSTED', 529 => 'UNAVAILABLE');
    my $error =
        $speak == \&gemini
        ? { error => { code => $status + 0, message => $message, status => $state{$status} // 'INTERNAL' } }
        : { type => 'error', error => { type => $kind{$status} // 'api_error', message => $message } };
    $error = $json->decode($message) if $message =~ /^\{/;
    answer($client, $status, $error, @headers);
    return 1;
}

# The tools that a request offers, by name: Gemini groups them.
sub tools {
    my ($request) = @_;
    my @tools = map { $_->{functionDeclarations} ? @{ $_->{functionDeclarations} } : $_ } @{ $request->{tools} // [] };
    return { map { ($_->{name} // $_->{function}{name} // '') => $_ } @tools };
}

# All texts of the messages of a role, in order.
sub texts {
    my ($request, $role) = @_;
    my $messages = $request->{messages} // $request->{contents} // $request->{input} // [];
    $messages = [ { role => 'user', content => $messages } ] if !ref $messages;
    my @texts;
    for my $message (grep { ref eq 'HASH' && ($_->{role} // '') =~ $role } @$messages) {
        my $content = $message->{content} // $message->{parts} // '';
        push @texts, ref $content ? map { $_->{text} // () } grep { ref eq 'HASH' } @$content : $content;
    }
    return \@texts;
}

sub is_main {
    my ($request, $tools, $texts) = @_;
    # qwen-code lets an agent of its own look after its memory when a turn is over.
    return 0 if @$texts && $texts->[-1] =~ /\AManaged memory directory/;
    return 1 if %$tools;
    return $without_tools && !grep { /commit message/ } system_text($request), @$texts;
}

sub system_text {
    my ($request) = @_;
    return join "\n", map { ref $_->{content} ? '' : $_->{content} // '' }
        grep { ($_->{role} // '') eq 'system' } @{ $request->{messages} // [] };
}

# Gemini asks who speaks next, and wants JSON.
sub side_reply {
    my ($request) = @_;
    my $type = $request->{generationConfig}{responseMimeType} // '';
    return { text => $type =~ /json/ ? '{"next_speaker":"user","reasoning":"done","title":"title"}' : 'title' };
}

# The next reply that is for this request. The lock keeps two requests from getting the same one.
sub next_reply {
    my ($path, $model, $texts, $notes) = @_;
    open my $count, '>>', "$dir/requests" or die "cannot count: $!\n";
    flock $count, LOCK_EX or die "cannot lock: $!\n";
    my $number = 1 + -s $count;
    put("$dir/prompts/$number.json.new", $json->encode({ path => $path, model => $model, texts => $texts, notes => $notes }));
    rename "$dir/prompts/$number.json.new", "$dir/prompts/$number.json";
    my %used = map { $_ => 1 } lines("$dir/used-replies");
    # A case that starts anew removes the count.
    if ($number == 1) { %used = (); unlink "$dir/used-replies" }
    my ($reply, $at) = ({ text => 'Nothing more to do.' }, 0);
    for my $line (lines("$dir/replies")) {
        $at++;
        next if $used{$at};
        my $candidate = $json->decode($line);
        next if defined $candidate->{for} && !grep { index($_, $candidate->{for}) >= 0 } @$texts;
        put("$dir/used-replies", "$at\n");
        $reply = $candidate;
        last;
    }
    syswrite $count, '.';
    close $count;
    return $reply;
}

sub lines {
    my ($path) = @_;
    open my $file, '<', $path or return ();
    chomp(my @lines = <$file>);
    return @lines;
}

sub call {
    my ($tools, $reply) = @_;
    my $command = $reply->{sh};
    my @known = qw(Bash bash run_shell_command exec_command shell_command);
    my $name  = (grep { $tools->{$_} } @known)[0] // 'Bash';
    my $input = $name eq 'exec_command' ? { cmd => $command } : { command => $command };
    $input->{description} = 'run it' if $name =~ /^(?:bash|run_shell_command)$/i;
    # qwen-code requires it.
    $input->{is_background} = JSON::PP::false if $name eq 'run_shell_command' && $json->encode($tools->{$name}) =~ /is_background/;
    $input->{run_in_background} = JSON::PP::true if $reply->{background};
    if ($reply->{asks} && $json->encode($tools->{$name}) =~ /require_escalated/) {
        @$input{qw(sandbox_permissions justification)} = ('require_escalated', 'It writes a file.');
    }
    return { name => $name, input => $input };
}

sub question {
    my ($text) = @_;
    my @options = map { { label => $_, description => "to $_ it" } } qw(keep drop);
    my %question = (question => $text, header => 'Flag', multiSelect => JSON::PP::false, options => \@options);
    return { name => 'AskUserQuestion', input => { questions => [\%question] } };
}

sub id { return sprintf '%s_%08x%04x%06x', $_[0], time, $serial, $$ }

sub answer {
    my ($client, $status, $value, @headers) = @_;
    my $text = $json->encode($value);
    print {$client} "HTTP/1.1 $status X\r\ncontent-type: application/json\r\nconnection: close\r\n",
        (map { "$_\r\n" } @headers), 'content-length: ', length $text, "\r\n\r\n", $text;
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
    my ($client, $request, $reply, @calls) = @_;
    my $text = $reply->{text} // '';
    my %message = (
        id => id('msg'), type => 'message', role => 'assistant', model => $request->{model},
        stop_reason => undef, stop_sequence => undef,
    );
    my @blocks = length $text ? { type => 'text', text => $text } : ();
    push @blocks, map { { type => 'tool_use', id => id('toolu'), name => $_->{name}, input => $_->{input} } } @calls;
    my $stop  = @calls ? 'tool_use' : 'end_turn';
    my $usage = { input_tokens => $reply->{input} // 1000, output_tokens => 50 };
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
    my ($client, $request, $reply, @calls) = @_;
    my $text     = $reply->{text} // '';
    my $input    = $reply->{input} // 1000;
    my $usage    = { input_tokens => $input, output_tokens => 50, total_tokens => $input + 50 };
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
    my ($client, $request, $reply, @calls) = @_;
    my $text  = $reply->{text} // '';
    my $input = $reply->{input} // 1000;
    my $usage = { prompt_tokens => $input, completion_tokens => 50, total_tokens => $input + 50 };
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

sub gemini {
    my ($client, $request, $reply, @calls) = @_;
    my $text  = $reply->{text} // '';
    my $input = $reply->{input} // 1000;
    my @parts = length $text ? { text => $text } : ();
    push @parts, map { { functionCall => { name => $_->{name}, args => $_->{input} } } } @calls;
    my $whole = {
        candidates    => [ { index => 0, content => { role => 'model', parts => \@parts }, finishReason => 'STOP' } ],
        usageMetadata => { promptTokenCount => $input, candidatesTokenCount => 50, totalTokenCount => $input + 50 },
        responseId    => id('gem'),
    };
    return $request->{stream} ? stream($client, $whole) : answer($client, 200, $whole);
}
