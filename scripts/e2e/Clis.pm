# The agent CLIs of the matrix: the commands a user types, and the settings that make them talk to the mock model.
package Clis;
use strict;
use warnings;
use Exporter 'import';
use JSON::PP ();

our @EXPORT_OK = qw(clis preset trust);

my $key  = 'sk-ant-fake-000000000000000000000000000000';
my $json = JSON::PP->new->utf8->canonical->pretty;

# One row a CLI. tui, oneshot: the commands. asks: the interactive command with permission prompts. via: the flags of
# `swarm spawn` that the interactive command needs. slow: the factor for all limits. hooks: swarm gets reports from its
# hooks. arrives: how the prompt arrives at the model, for each mode. retries: it tries again for minutes by itself.
# first_run: the dialogs of a first start, by the settings that are left out, as: the command, the words of `status`,
# the words of the screen, flags of `swarm spawn`. warm: a command to run before two agents start at once in a new HOME.
my @clis = (
    {
        name    => 'claude',
        program => 'claude',
        hooks   => 1,
        tui     => [qw(claude --dangerously-skip-permissions)],
        oneshot => [qw(claude -p --dangerously-skip-permissions)],
        asks    => [qw(claude --permission-mode manual)],
        arrives => { tui => 'wrapped, tabs as spaces', oneshot => 'exact' },
        first_run => {
            trust  => [ [qw(claude)], qr/trust/, qr/trust/ ],
            key    => [ [qw(claude)], qr/API key/i, qr/custom API key/ ],
            bypass => [ [qw(claude --dangerously-skip-permissions)], qr/bypass/i, qr/Bypass Permissions/ ],
        },
    },
    {
        name    => 'codex',
        program => 'codex',
        hooks   => 1,
        tui     => [qw(codex --dangerously-bypass-approvals-and-sandbox)],
        oneshot => [qw(codex exec --dangerously-bypass-approvals-and-sandbox)],
        asks    => [qw(codex --ask-for-approval on-request --sandbox read-only)],
        arrives => { tui => 'exact', oneshot => 'exact' },
        first_run => {
            trust => [ [qw(codex)], qr/trust/, qr/Trust and continue/ ],
            login => [ [qw(codex)], qr/log ?in|sign ?in/i, qr/Sign in with ChatGPT/i ],
        },
    },
    {
        name    => 'opencode',
        program => 'opencode',
        slow    => 3,
        tui     => [qw(opencode)],
        oneshot => [qw(opencode run)],
        json    => [qw(opencode run --format json)],
        asks    => [qw(opencode)],
        # Its first start creates the database, and of two first starts at once one fails.
        warm    => [qw(opencode session list)],
        arrives => { tui => 'exact, then white space', oneshot => 'exact' },
    },
    {
        name    => 'gemini',
        program => 'gemini',
        retries => 1,
        tui     => [qw(gemini -y -m gemini-2.5-flash)],
        oneshot => [qw(gemini -y -m gemini-2.5-flash -p)],
        asks    => [qw(gemini -m gemini-2.5-flash)],
        arrives => { tui => 'exact', oneshot => 'exact' },
        first_run => {
            auth  => [ [qw(gemini -m gemini-2.5-flash)], qr/auth|log ?in/i, qr/authenticate/i ],
            trust => [ [qw(gemini -m gemini-2.5-flash)], qr/trust/i, qr/trust/i ],
        },
    },
    {
        name    => 'qwen',
        program => 'qwen',
        retries => 1,
        tui     => [qw(qwen -y)],
        oneshot => [qw(qwen -y -p)],
        asks    => [qw(qwen)],
        arrives => { tui => 'exact', oneshot => 'exact, then white space' },
        # With a key in its environment it shows no dialog at its first start.
    },
    {
        name    => 'aider',
        slow    => 3,
        program => 'aider',
        retries => 1,
        toolless => 1,
        tui     => [qw(aider)],
        via     => [qw(--prompt-via paste)],
        oneshot => [qw(aider)],
        arrives => { tui => 'whole, then To suggest changes to a', oneshot => 'whole, then To suggest changes to a' },
    },
);

sub clis { return @clis }

# The environment that every agent gets, with the mock model at BASE.
sub env {
    my ($dir, $base) = @_;
    return (
        ANTHROPIC_BASE_URL => $base, ANTHROPIC_API_KEY => $key, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC => 1,
        DISABLE_AUTOUPDATER => 1, CLAUDE_CODE_MAX_RETRIES => 1, CLAUDE_CODE_TMPDIR => "$dir/tmp", IS_SANDBOX => 1,
        MOCK_KEY => 'x',
        OPENCODE_DISABLE_AUTOUPDATE => 1, OPENCODE_DISABLE_MODELS_FETCH => 1, OPENCODE_DISABLE_LSP_DOWNLOAD => 1,
        # It installs a package from the npm registry below its settings, and takes a refusal.
        npm_config_registry => 'http://127.0.0.1:1/', npm_config_fetch_retries => 0,
        GEMINI_API_KEY => 'x', GOOGLE_GEMINI_BASE_URL => $base,
        OPENAI_API_KEY => 'x', OPENAI_BASE_URL => "$base/v1", OPENAI_API_BASE => "$base/v1", OPENAI_MODEL => 'mock-model',
        AIDER_MODEL => 'openai/mock-model', AIDER_SHOW_MODEL_WARNINGS => 'false', AIDER_YES_ALWAYS => 'true',
        AIDER_CHECK_UPDATE => 'false', AIDER_ANALYTICS_DISABLE => 'true', AIDER_EDIT_FORMAT => 'whole',
        AIDER_GITIGNORE => 'false', AIDER_SHOW_RELEASE_NOTES => 'false',
    );
}

sub put {
    my ($path, $text) = @_;
    my ($parent) = $path =~ m{\A(.*)/};
    system('mkdir', '-p', $parent) == 0 or die "cannot create $parent\n";
    open my $file, '>', $path or die "cannot write $path: $!\n";
    print {$file} $text;
    close $file or die "cannot write $path: $!\n";
    return;
}

# Writes the settings of all CLIs below HOME, so that none shows a first-run dialog; WITHOUT names one to leave out, as
# "CLI DIALOG". PROJECTS are the directories to trust.
sub preset {
    my ($home, $base, $without, @projects) = @_;
    my $has = sub { return $_[0] ne $without };
    my %claude = (
        hasCompletedOnboarding => JSON::PP::true, theme => 'dark', hasSeenAutoDefaultNotice => JSON::PP::true,
        officialMarketplaceAutoInstallAttempted => JSON::PP::true, projects => {},
        customApiKeyResponses => { approved => [ $has->('claude key') ? substr $key, -20 : () ], rejected => [] },
    );
    if ($has->('claude trust')) { $claude{projects}{$_}{hasTrustDialogAccepted} = JSON::PP::true for @projects }
    put("$home/.claude.json", $json->encode(\%claude));
    put("$home/.claude/settings.json", $json->encode({
        spinnerTipsEnabled => JSON::PP::false, promptSuggestionEnabled => JSON::PP::false,
        $has->('claude bypass') ? (skipDangerousModePermissionPrompt => JSON::PP::true) : (),
    }));
    put("$home/.codex/config.toml", join "\n", 'model = "mock-model"', 'model_provider = "mock"',
        '[model_providers.mock]', 'name = "mock"', "base_url = \"$base/v1\"", 'env_key = "MOCK_KEY"',
        'wire_api = "responses"', 'request_max_retries = 1', 'stream_max_retries = 1',
        ($has->('codex trust') ? map { ("[projects.\"$_\"]", 'trust_level = "trusted"') } @projects : ()), '')
        if $has->('codex login');
    put("$home/.config/opencode/opencode.json", $json->encode({
        model => 'mock/mock-model', permission => { bash => $without eq 'opencode permission' ? 'ask' : 'allow' },
        provider => { mock => {
            npm => '@ai-sdk/openai-compatible', name => 'mock', options => { baseURL => "$base/v1", apiKey => 'x' },
            models => { 'mock-model' => { name => 'mock-model', limit => { context => 100000, output => 8000 },
                cost => { input => 1, output => 2 } } },
        } },
    }));
    put("$home/.gemini/settings.json", $json->encode({
        general => { disableAutoUpdate => JSON::PP::true, disableUpdateNag => JSON::PP::true },
        security => {
            $has->('gemini auth') ? (auth => { selectedType => 'gemini-api-key' }) : (),
            folderTrust => { enabled => $has->('gemini trust') ? JSON::PP::false : JSON::PP::true },
        },
    }));
    put("$home/.qwen/settings.json", $json->encode({
        general => { disableAutoUpdate => JSON::PP::true, disableUpdateNag => JSON::PP::true },
        security => { $has->('qwen auth') ? (auth => { selectedType => 'openai' }) : () },
    }));
    return;
}

1;
