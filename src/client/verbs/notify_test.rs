//! `swarm notify test`: send a test message through each channel, and show what happened.

use swarm_state::notify::Notification;
use tokio::task::JoinSet;

use crate::client::context::ClientContext;
use crate::notify::Channel;
use crate::out::{Color, CommandResult};
use crate::settings::Settings;

const EXAMPLE: &str = "\
add a channel to your settings (swarm config edit), for example:
  [notify]
  desktop = true
  ntfy = \"https://ntfy.sh/TOPIC\"";

pub(super) async fn run(ctx: &ClientContext) -> CommandResult {
    let user = ctx.place()?.user_config();
    let settings = Settings::load(&user, None, None)?.notify;
    let channels = Channel::of(&settings);
    if channels.is_empty() {
        ctx.out.line(&format!("no channel in [notify] in {}", user.display()))?;
        ctx.out.hint(EXAMPLE);
        return Ok(1);
    }
    let message = Notification::test(chrono::Local::now().fixed_offset());
    let mut sending = JoinSet::new();
    for channel in channels {
        let message = message.clone();
        sending.spawn(async move { (channel.key(), channel.send(&message).await) });
    }
    let mut status = 0;
    while let Some(sent) = sending.join_next().await {
        let Ok((key, outcome)) = sent else { continue };
        let (color, word, text) = match &outcome {
            Ok(answer) => (Color::Green, "ok", answer),
            Err(error) => (Color::Red, "fail", &error.message),
        };
        let word = ctx.out.paint(color, &format!("{word:<4}")).into_owned();
        ctx.out.line(&format!("{word}  {key}: {}", swarm_state::screen::printable(text)))?;
        if let Err(error) = outcome {
            status = 1;
            if let Some(hint) = error.hint {
                ctx.out.line(&format!("      hint: {}", swarm_state::screen::printable(&hint)))?;
            }
        }
    }
    Ok(status)
}
