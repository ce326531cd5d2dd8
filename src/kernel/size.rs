//! Byte sizes and durations as people write them in configuration.

use std::time::Duration;

/// Parses `64KiB`, `16 MB`, `1GiB` or a plain count of bytes. Decimal units are powers of 1,000, binary ones of 1,024.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" | "k" => 1_000,
        "mb" | "m" => 1_000_000,
        "gb" | "g" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// Parses `500ms`, `2s`, `5m` or `1h`. A bare number is not a duration: its unit would be a guess.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(3_600).map(Duration::from_secs),
        _ => None,
    }
}

fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..digits].parse().ok()?;
    Some((number, text[digits..].trim()))
}

/// A length of time as people read it: `187 ms`, `2.2 s`, `1 min 04 s`, `3 h 12 min`.
pub fn spelled(length: Duration) -> String {
    let millis = length.as_millis();
    // Rounded to tenths first, so that 59.96 s is a minute and not 60.0 s.
    let tenths = (millis + 50) / 100;
    match tenths {
        _ if millis < 1_000 => format!("{millis} ms"),
        0..600 => format!("{}.{} s", tenths / 10, tenths % 10),
        600..36_000 => format!("{} min {:02} s", tenths / 600, tenths / 10 % 60),
        _ => format!("{} h {:02} min", tenths / 36_000, tenths / 600 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_parse_as_written() {
        assert_eq!(parse_bytes("64KiB"), Some(65_536));
        assert_eq!(parse_bytes("16 MB"), Some(16_000_000));
        assert_eq!(parse_bytes("12"), Some(12));
        assert_eq!(parse_bytes("12 parsecs"), None);
        assert_eq!(parse_bytes("99999999999 GiB"), None);
        assert_eq!(parse_duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(parse_duration("2h"), Some(Duration::from_secs(7_200)));
        assert_eq!(parse_duration("2"), None);
    }

    #[test]
    fn lengths_of_time_are_spelled_in_the_unit_people_think_in() {
        let spell = |millis| spelled(Duration::from_millis(millis));
        let spelled = [0, 187, 999, 1_000, 2_180, 30_249, 59_960, 64_000, 11_520_000].map(spell);
        let wanted = ["0 ms", "187 ms", "999 ms", "1.0 s", "2.2 s", "30.2 s", "1 min 00 s", "1 min 04 s", "3 h 12 min"];
        assert_eq!(spelled, wanted);
    }
}
