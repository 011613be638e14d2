//! Shortens a diff for a prompt, with a line for each file that was cut.

/// Maximum length of the diff in a contract, characters.
pub const MAX_DIFF_CHARS: usize = 5_000;

/// The first [`MAX_DIFF_CHARS`] characters of a diff; then, if that is not all, a count of the rest, file by file.
pub fn shortened(diff: &str) -> String {
    shortened_to(diff, MAX_DIFF_CHARS)
}

pub(super) fn shortened_to(diff: &str, limit: usize) -> String {
    let Some((cut, _)) = diff.char_indices().nth(limit) else { return diff.to_owned() };
    let (shown, _) = diff.split_at(cut);
    let mut text = format!(
        "{shown}\n… cut here; the diff goes on in these files (lines added and removed in the whole file):\n"
    );
    for (start, file) in files(diff) {
        if start + file.len() > cut {
            let (name, added, removed) = stat(file);
            text += &format!("  {name}: +{added} -{removed}\n");
        }
    }
    text
}

/// A diff without the files in a directory.
pub fn without_dir(diff: &str, dir: &str) -> String {
    let is_in = |file: &str| stat(file).0.starts_with(&format!("{dir}/"));
    let shown = files(diff).into_iter().map(|(_, file)| file).filter(|file| !is_in(file));
    shown.map(|file| if file.contains('\0') { binary(file) } else { file.to_owned() }).collect()
}

/// The part of a file that is binary, without its content.
fn binary(file: &str) -> String {
    let head = file.lines().next().unwrap_or_default();
    format!("{head}\nThe file is binary.\n")
}

/// The names of the files in a diff.
pub fn files_in(diff: &str) -> Vec<String> {
    files(diff).into_iter().map(|(_, file)| stat(file).0.to_owned()).collect()
}

/// The part of each file and where it starts.
fn files(diff: &str) -> Vec<(usize, &str)> {
    let mut starts: Vec<usize> = diff.match_indices("\ndiff --git ").map(|(at, _)| at + 1).collect();
    if diff.starts_with("diff --git ") {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([diff.len()]);
    starts.iter().zip(ends).filter_map(|(&start, end)| Some((start, diff.get(start..end)?))).collect()
}

fn stat(file: &str) -> (&str, usize, usize) {
    let head = file.lines().next().unwrap_or_default();
    let name = head.rsplit_once(" b/").map_or(head, |(_, name)| name);
    let body = || file.lines().skip_while(|line| !line.starts_with("@@"));
    let count = |sign| body().filter(|line| line.starts_with(sign)).count();
    (name, count('+'), count('-'))
}
