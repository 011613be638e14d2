use super::*;

#[test]
fn worker_names_are_validated() {
    for good in ["a", "agent", "task-1", "A_b-9", &"n".repeat(64)] {
        assert_eq!(WorkerName::new(good).map(String::from), Ok(good.to_owned()));
    }
    let long = "n".repeat(65);
    for bad in ["", ".", "..", "-rf", "--all", "a/b", "../../x", "a b", "a\nb", "state.json", "é", &long] {
        assert!(WorkerName::new(bad).is_err(), "{bad:?} was taken");
    }
}

#[test]
fn only_exit_status_0_is_success() {
    assert!(Exit::Code(0).is_success());
    for exit in [Exit::Code(1), Exit::Signal(9), Exit::Lost, Exit::Unknown] {
        assert!(!exit.is_success());
    }
    assert_eq!(Exit::Signal(9).code(), Some(137));
    assert_eq!(Exit::Unknown.code(), None);
}
