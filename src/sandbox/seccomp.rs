//! The filter for system calls in a sandbox, which [`super::bwrap`] loads.
//!
//! It refuses what no namespace separates: the kernel's keyrings, which a process inherits from its user's session,
//! and typing into a terminal (TIOCSTI, TIOCLINUX). Programs of another architecture cannot run.

use nix::libc;

/// One instruction: code, jumps if true and if false, operand.
type Instruction = (u16, u8, u8, u32);

const LOAD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER_EQUAL: u16 = 0x35;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;

/// Offsets in the data about a call.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const SECOND_ARGUMENT: u32 = 24;

const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;
/// The bit of calls in the x32 ABI, which are numbered apart.
const X32_BIT: u32 = 0x4000_0000;

/// The architecture's number in the kernel's audit; `None` if it is not supported.
const AUDIT_ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

/// The program as the kernel reads it; `None` on an architecture without one.
pub(super) fn program() -> Option<Vec<u8>> {
    let architecture = AUDIT_ARCHITECTURE?;
    let number = |call: libc::c_long| u32::try_from(call).unwrap_or(u32::MAX);
    let (missing, denied) = (ERRNO | libc::ENOSYS as u32, ERRNO | libc::EPERM as u32);
    let program: [Instruction; 14] = [
        (LOAD, 0, 0, ARCHITECTURE),
        (JUMP_EQUAL, 0, 10, architecture),
        (LOAD, 0, 0, NUMBER),
        (JUMP_GREATER_EQUAL, 8, 0, X32_BIT),
        (JUMP_EQUAL, 7, 0, number(libc::SYS_add_key)),
        (JUMP_EQUAL, 6, 0, number(libc::SYS_request_key)),
        (JUMP_EQUAL, 5, 0, number(libc::SYS_keyctl)),
        (JUMP_EQUAL, 0, 3, number(libc::SYS_ioctl)),
        (LOAD, 0, 0, SECOND_ARGUMENT),
        (JUMP_EQUAL, 3, 0, TIOCSTI),
        (JUMP_EQUAL, 2, 0, TIOCLINUX),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, missing),
        (RETURN, 0, 0, denied),
    ];
    let bytes = |(code, yes, no, operand): Instruction| {
        let [code_low, code_high] = code.to_ne_bytes();
        let [a, b, c, d] = operand.to_ne_bytes();
        [code_low, code_high, yes, no, a, b, c, d]
    };
    Some(program.into_iter().flat_map(bytes).collect())
}
