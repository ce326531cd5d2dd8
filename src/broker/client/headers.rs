//! What the broker reads in a message's headers and properties, refused in RabbitMQ's words: the keys a sender chose (`CC`, `BCC`)
//! and how long the message lives.

use crate::broker::refused::Refused;
use crate::kernel::limit::LIFETIME_MS_MAX;
use crate::model::table::{Field, Table};
use crate::wire::amqp::{RawField, RawTable, table};
use std::time::Duration;

/// Sender-selected distribution.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::broker) struct Chosen {
    /// Further routing keys.
    pub keys: Vec<String>,
    /// The headers without `BCC`, which nobody is told; `None` if there was none.
    pub without_bcc: Option<Vec<u8>>,
}

const CC: &str = "CC";
const BCC: &str = "BCC";

pub(in crate::broker) fn chosen(headers: RawTable<'_>) -> Result<Chosen, Refused> {
    let mut chosen = Chosen::default();
    let (mut has_cc, mut has_bcc) = (None, None);
    for (name, field) in headers.iter() {
        match name {
            CC => _ = has_cc.get_or_insert(field),
            BCC => _ = has_bcc.get_or_insert(field),
            _ => {}
        }
    }
    for (name, field) in [(CC, has_cc), (BCC, has_bcc)] {
        match field {
            None => {}
            // Anything but texts in the list is passed over.
            Some(RawField::Array(keys)) => chosen.keys.extend(keys.iter().filter_map(|key| key.as_str().map(str::to_owned))),
            Some(other) => {
                let (_, kind) = other.to_field().spelled();
                return Err(Refused::Precondition(format!("invalid message: {{unacceptable_type_in_header,\"{name}\",{kind}}}")));
            }
        }
    }
    if has_bcc.is_some() {
        let kept: Vec<(String, Field)> =
            headers.iter().filter(|(name, _)| *name != BCC).map(|(name, field)| (name.to_owned(), field.to_field())).collect();
        chosen.without_bcc = Some(table::encoded(&Table(kept)));
    }
    // A short string holds no longer key, and none would match.
    chosen.keys.retain(|key| key.len() <= crate::kernel::limit::SHORT_STRING_BYTES_MAX);
    Ok(chosen)
}

/// Milliseconds, as text.
pub(super) fn parse_expiration(text: &str) -> Result<Duration, Refused> {
    let refuse = |why: String| Err(Refused::Precondition(format!("invalid expiration '{text}': {why}")));
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let rest = &digits[end..];
    if end == 0 {
        return refuse("no_integer".into());
    }
    if !rest.is_empty() {
        return refuse(format!("{{leftover_string,{rest:?}}}"));
    }
    match text.parse::<i128>() {
        Ok(millis) if millis < 0 => refuse(format!("{{value_negative,{millis}}}")),
        Ok(millis) if millis <= i128::from(LIFETIME_MS_MAX) => Ok(Duration::from_millis(millis as u64)),
        Ok(_) | Err(_) => refuse(format!("{{value_too_large,{}}}", text.trim_start_matches('+'))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(table: Table) -> Result<Chosen, String> {
        let bytes = table::encoded(&table);
        chosen(RawTable::check(&bytes).expect("good")).map_err(|refused| refused.text().to_owned())
    }

    fn keys(keys: &[&str]) -> Field {
        Field::Array(keys.iter().map(|key| Field::text(*key)).collect())
    }

    #[test]
    fn cc_and_bcc_are_lists_of_keys_and_bcc_is_told_to_nobody() {
        let plain = Table::new().with("cc", keys(&["no"])).with("other", Field::I32(1));
        assert_eq!(read(plain), Ok(Chosen::default()));
        let both = Table::new().with(CC, keys(&["a", "b"])).with("x", Field::Void).with(BCC, keys(&["c"]));
        let chosen = read(both).expect("good");
        assert_eq!(chosen.keys, ["a", "b", "c"]);
        let left = Table::new().with(CC, keys(&["a", "b"])).with("x", Field::Void);
        assert_eq!(chosen.without_bcc, Some(table::encoded(&left)));
        let mixed = Table::new().with(CC, Field::Array(vec![Field::I32(1), Field::text("k")]));
        assert_eq!(read(mixed).expect("good").keys, ["k"]);
    }

    #[test]
    fn other_types_are_refused_in_rabbitmqs_words() {
        let refused = |name: &str, field: Field| read(Table::new().with(name, field)).unwrap_err();
        let text = "invalid message: {unacceptable_type_in_header,\"CC\",longstr}";
        assert_eq!(refused(CC, Field::text("a")), text);
        assert_eq!(refused(BCC, Field::I64(1)), "invalid message: {unacceptable_type_in_header,\"BCC\",long}");
    }

    #[test]
    fn an_expiration_is_a_whole_number_of_milliseconds() {
        assert_eq!(parse_expiration("0"), Ok(Duration::ZERO));
        assert_eq!(parse_expiration("60000"), Ok(Duration::from_secs(60)));
        for (text, why) in [
            ("", "no_integer"),
            ("abc", "no_integer"),
            ("-", "no_integer"),
            ("10x", "{leftover_string,\"x\"}"),
            ("1.5", "{leftover_string,\".5\"}"),
            ("-1", "{value_negative,-1}"),
            ("315360000001", "{value_too_large,315360000001}"),
        ] {
            assert_eq!(parse_expiration(text).unwrap_err().text(), format!("invalid expiration '{text}': {why}"));
        }
    }
}
