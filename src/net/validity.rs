//! When a certificate ends: the one thing of X.509 (RFC 5280 §4.1) that a health check asks.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// The end of the first certificate in `pem`, in Unix seconds; `None` if none can be read.
pub fn ends_s(pem: &[u8]) -> Option<u64> {
    let certificate = CertificateDer::pem_slice_iter(pem).next()?.ok()?;
    not_after(&certificate)
}

/// ```text
/// Certificate ::= SEQUENCE { tbsCertificate SEQUENCE { [0] version?, serialNumber, signature, issuer,
///                            validity SEQUENCE { notBefore Time, notAfter Time }, … }, … }
/// ```
fn not_after(der: &[u8]) -> Option<u64> {
    const VERSION: u8 = 0xa0;
    let (_, certificate, _) = element(der)?;
    let (_, mut to_be_signed, _) = element(certificate)?;
    if to_be_signed.first() == Some(&VERSION) {
        to_be_signed = element(to_be_signed)?.2;
    }
    for _ in ["serial number", "signature", "issuer"] {
        to_be_signed = element(to_be_signed)?.2;
    }
    let (_, validity, _) = element(to_be_signed)?;
    let (_, _, rest) = element(validity)?;
    let (kind, text, _) = element(rest)?;
    time(kind, std::str::from_utf8(text).ok()?)
}

/// Tag, content and what follows of one DER element.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, length, rest) = match bytes {
        [tag, length, rest @ ..] if *length < 0x80 => (*tag, usize::from(*length), rest),
        [tag, 0x81, a, rest @ ..] => (*tag, usize::from(*a), rest),
        [tag, 0x82, a, b, rest @ ..] => (*tag, usize::from(*a) << 8 | usize::from(*b), rest),
        [tag, 0x83, a, b, c, rest @ ..] => (*tag, usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c), rest),
        _ => return None,
    };
    let (content, after) = rest.split_at_checked(length)?;
    Some((tag, content, after))
}

/// `UTCTime` (two digits of the year, 1950 to 2049) or `GeneralizedTime`, both in Zulu.
fn time(kind: u8, text: &str) -> Option<u64> {
    const UTC_TIME: u8 = 0x17;
    let number = |part: std::ops::Range<usize>| text.get(part)?.parse::<u64>().ok();
    let (year, at) = match kind {
        UTC_TIME => (number(0..2).map(|year| if year < 50 { 2000 + year } else { 1900 + year })?, 2),
        _ => (number(0..4)?, 4),
    };
    let [month, day, hour, minute, second] = [0, 2, 4, 6, 8].map(|offset| number(at + offset..at + offset + 2));
    let days = days_since_1970(year, month?, day?)?;
    Some(((days * 24 + hour?) * 60 + minute?) * 60 + second?)
}

/// Years that begin in March make the leap day the last one.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    (year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day).checked_sub(719_469)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_time_are_read() {
        assert_eq!(time(0x17, "700101000000Z"), Some(0));
        assert_eq!(time(0x17, "261130193501Z"), Some(1_796_067_301));
        assert_eq!(time(0x18, "20500229000000Z"), time(0x18, "20500301000000Z"), "no such day, but no panic");
        assert_eq!(time(0x17, "26"), None);
    }

    #[test]
    fn the_end_of_a_certificate_just_made_is_found() {
        let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
        parameters.not_after = rcgen::date_time_ymd(2040, 2, 29);
        let key = rcgen::KeyPair::generate().expect("a key");
        let pem = parameters.self_signed(&key).expect("a certificate").pem();
        assert_eq!(ends_s(pem.as_bytes()), time(0x18, "20400229000000Z"));
        assert_eq!(ends_s(b"nothing"), None);
        assert_eq!(not_after(&[0x30, 0x82, 0xff, 0xff, 0]), None, "a length that lies");
    }
}
