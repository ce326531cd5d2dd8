//! Dates as RabbitMQ writes them.

/// `2026-11-30T19:35:01.399+00:00` of Unix milliseconds.
pub fn date(millis: u64) -> String {
    let (days, in_day) = (millis / 86_400_000, millis % 86_400_000);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (in_day / 3_600_000, in_day / 60_000 % 60, in_day / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}+00:00", in_day % 1_000)
}

/// Year, month and day of a day since 1970, in the Gregorian calendar: eras of 400 years, years that begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_around_leap_days() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000+00:00"),
            (951_782_400_000, "2000-02-29T00:00:00.000+00:00"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999+00:00"),
            (1_796_067_301_399, "2026-11-30T19:35:01.399+00:00"),
        ] {
            assert_eq!(date(millis), text);
        }
    }
}
