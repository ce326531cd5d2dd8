//! Counts in sentences.

/// `1 queue`, `2 queues`: the number and its noun, which takes an `s`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_none_is_plural() {
        assert_eq!(
            [counted(0u64, "queue"), counted(1usize, "queue"), counted(2i64, "queue")],
            ["0 queues", "1 queue", "2 queues"]
        );
    }
}
