//! stub
use super::{Ctx, Ended};
pub(super) async fn run(_ctx: &Ctx) -> Ended {
    Ok(0)
}
