//! Screens by meaning: `fixtures/screens/MEANING/CLI_WHAT.txt`. The files state the markers, no more.
//!
//! MEANING is `ready`, `working`, `startup`, `permission`, `unknown` (none of these), `echo` (the done pattern
//! stands in the prompt's echo only) or `done`.

macro_rules! screens {
    ($($path:literal),* $(,)?) => {
        /// Each screen's path and text.
        pub(super) const SCREENS: &[(&str, &str)] =
            &[$(($path, include_str!(concat!("../../fixtures/screens/", $path, ".txt")))),*];
    };
}

screens![
    "done/claude_answer",
    "done/generic_answer",
    "done/generic_coloured",
    "done/generic_one_shot",
    "done/opencode_answer",
    "echo/claude_in_box",
    "echo/claude_sent",
    "echo/claude_wrapped",
    "echo/gemini_sent",
    "echo/generic_typed",
    "echo/opencode_framed",
    "echo/opencode_side_panel",
    "permission/aider_question",
    "permission/claude_command",
    "permission/claude_context_limit",
    "permission/claude_new_dialog",
    "permission/claude_third_option",
    "permission/codex_approval",
    "permission/codex_new_dialog",
    "permission/gemini_approval",
    "permission/generic_list",
    "permission/generic_question",
    "permission/generic_yes_or_no",
    "permission/opencode_required",
    "ready/aider_mark",
    "ready/claude_fresh",
    "ready/claude_placeholder",
    "ready/claude_quotes_a_dialog",
    "ready/claude_quotes_the_footer",
    "ready/claude_text_in_box",
    "ready/codex_fresh",
    "ready/codex_text_in_box",
    "ready/gemini_fresh",
    "ready/gemini_text_in_box",
    "ready/generic_mark",
    "ready/generic_python",
    "ready/generic_shell",
    "ready/opencode_after_a_turn",
    "ready/opencode_fresh",
    "startup/claude_api_key",
    "startup/claude_bypass",
    "startup/claude_login",
    "startup/claude_login_needed",
    "startup/claude_no_credit",
    "startup/claude_theme",
    "startup/claude_trust",
    "startup/codex_hooks",
    "startup/codex_trust",
    "startup/gemini_trust",
    "startup/generic_theme",
    "startup/generic_trust",
    "startup/generic_trust_moved",
    "unknown/claude_starting",
    "unknown/gemini_starting",
    "unknown/generic_spinner",
    "unknown/generic_talk",
    "unknown/generic_user_shell",
    "working/claude_cut_footer",
    "working/claude_retrying",
    "working/claude_spinner",
    "working/codex_timer",
    "working/gemini_thinking",
    "working/opencode_spinner",
];
