//! The certificate that TLS is served with, read again when its files have changed.
//!
//! Certificates of today are good for some weeks, and something renews them in their place. A
//! daemon keeps contracts and is not started again for that.
//!
//! Invariant: files that cannot be read, or do not belong together, change nothing; there is always
//! a certificate, and a handshake never waits for a file.

use crate::lock::Mutex;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The end of a certificate is told so many days ahead.
const DAYS_AHEAD: u64 = 14;
const DAY: u64 = 86_400;

/// A certificate and its files.
pub struct Kept {
    certificate: PathBuf,
    key: PathBuf,
    state: Mutex<State>,
}

struct State {
    used: Used,
    /// Which files were read last, whether they were of any use or not.
    read: Option<[Stamp; 2]>,
}

/// A certificate that is used.
#[derive(Clone)]
struct Used {
    certified: Arc<CertifiedKey>,
    /// It is good until then, in seconds since 1970, where that can be told.
    until: Option<u64>,
}

/// By what a file that has changed is told from the one before: when it was written, which one it
/// is, and its length.
type Stamp = (i64, i64, u64, u64);

/// Why a certificate cannot be used.
pub enum Unread {
    /// This file cannot be read.
    File(PathBuf, pem::Error),
    /// The certificate and the key cannot be used together.
    Pair(rustls::Error),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Pair(error) => write!(f, "{error}"),
        }
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the certificate in {}", self.certificate.display())
    }
}

impl ResolvesServerCert for Kept {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.state.lock().used.certified))
    }
}

impl Kept {
    /// Reads it from these files.
    ///
    /// # Errors
    /// They cannot be read, or do not belong together.
    pub fn read(certificate: PathBuf, key: PathBuf) -> Result<Self, Unread> {
        // Looked at before: what changes meanwhile is read again.
        let read = stamps(&certificate, &key).ok();
        let used = used(&certificate, &key)?;
        Ok(Self { certificate, key, state: Mutex::new(State { used, read }) })
    }

    /// Reads it again where its files have changed.
    pub fn look(&self) {
        // A file that is not there is about to come, or the one before it serves.
        let Ok(there) = stamps(&self.certificate, &self.key) else { return };
        if self.state.lock().read == Some(there) {
            return;
        }
        let file = self.certificate.display();
        let used = used(&self.certificate, &self.key);
        let mut state = self.state.lock();
        state.read = Some(there);
        match used {
            Ok(used) => {
                state.used = used;
                drop(state);
                tracing::info!(%file, "the certificate {file} has changed, and is used from now on");
            }
            Err(error) => {
                drop(state);
                tracing::warn!(
                    %file, %error,
                    "the certificate {file} has changed and cannot be used: {error}; the one before is \
                     used on"
                );
            }
        }
    }

    /// What is to be told of its end at a time, in seconds since 1970.
    pub fn warning(&self, now: u64) -> Option<String> {
        let (until, file) = (self.state.lock().used.until?, self.certificate.display());
        let next = "put a new one there, with its key: they are read within a minute";
        match until.checked_sub(now) {
            None => Some(format!(
                "the certificate {file} has expired: programs refuse to connect over TCP; {next}"
            )),
            Some(left) if left < DAYS_AHEAD * DAY => {
                let days = left / DAY;
                Some(format!("the certificate {file} expires in {days} days; {next}"))
            }
            Some(_) => None,
        }
    }
}

fn stamps(certificate: &Path, key: &Path) -> io::Result<[Stamp; 2]> {
    let stamp = |path: &Path| {
        let one = fs::metadata(path)?;
        Ok::<_, io::Error>((one.mtime(), one.mtime_nsec(), one.ino(), one.len()))
    };
    Ok([stamp(certificate)?, stamp(key)?])
}

fn used(certificate: &Path, key: &Path) -> Result<Used, Unread> {
    let unread = |path: &Path, error| Unread::File(path.into(), error);
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|error| unread(certificate, error))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unread(key, error))?;
    // The end of a chain is the first of its certificates to end.
    let until = chain.iter().filter_map(|one| until(one)).min();
    let provider = rustls::crypto::ring::default_provider();
    let certified = CertifiedKey::from_der(chain, secret, &provider).map_err(Unread::Pair)?;
    Ok(Used { certified: Arc::new(certified), until })
}

/// Until when a certificate is good, in seconds since 1970 (RFC 5280, section 4.1); none where it is
/// not written so.
fn until(certificate: &[u8]) -> Option<u64> {
    const SEQUENCE: u8 = 0x30;
    let (of, _) = value(certificate, SEQUENCE)?;
    let (mut of, _) = value(of, SEQUENCE)?;
    // The version, which may be left out; the number, the algorithm, and who has signed it.
    if let Some((_, rest)) = value(of, 0xa0) {
        of = rest;
    }
    for tag in [0x02, SEQUENCE, SEQUENCE] {
        of = value(of, tag)?.1;
    }
    let (validity, _) = value(of, SEQUENCE)?;
    let time = |of| {
        let long = || value(of, 0x18).map(|(time, rest)| (time, true, rest));
        value(of, 0x17).map(|(time, rest)| (time, false, rest)).or_else(long)
    };
    let (_, _, rest) = time(validity)?;
    let (until, is_long, _) = time(rest)?;
    seconds(until, is_long)
}

/// The value that stands first in DER, which has this tag, and what follows.
fn value(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = der.split_first()?;
    let (&len, mut rest) = rest.split_first()?;
    let mut many = usize::from(len);
    if len >= 0x80 {
        let bytes = rest.get(..usize::from(len & 0x7f)).filter(|bytes| bytes.len() <= 4)?;
        rest = &rest[bytes.len()..];
        many = bytes.iter().fold(0, |many, &byte| many << 8 | usize::from(byte));
    }
    (first == tag).then(|| rest.split_at_checked(many))?
}

/// `YYMMDDhhmmssZ`, or with four digits of the year, as seconds since 1970.
fn seconds(text: &[u8], is_long: bool) -> Option<u64> {
    let (year, rest) = text.split_at_checked(if is_long { 4 } else { 2 })?;
    let number = |digits: &[u8]| -> Option<u64> {
        let is_number = digits.iter().all(u8::is_ascii_digit);
        is_number.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
    };
    let year = match (number(year)?, is_long) {
        (year, true) => year,
        (year @ 50.., false) => 1900 + year,
        (year, false) => 2000 + year,
    };
    let part = |at: usize| number(rest.get(2 * at..2 * at + 2)?);
    let (month, day) = (part(0).filter(|month| (1..=12).contains(month))?, part(1)?);
    let (year, days_before) = (year.checked_sub(1970)?, year.checked_sub(1)?);
    let leap = |year: u64| year / 4 - year / 100 + year / 400;
    let is_leap = leap(year + 1970) > leap(days_before);
    let month_begins = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let of_months = month_begins.get(usize::try_from(month - 1).ok()?)?;
    let days = year * 365 + leap(days_before) - leap(1969) + of_months;
    let days = days + u64::from(is_leap && month > 2) + day.checked_sub(1)?;
    Some(((days * 24 + part(2)?) * 60 + part(3)?) * 60 + part(4)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};

    /// A certificate that ends on the first of a month, and its key, as PEM.
    fn pair(year: i32, month: u8) -> [String; 2] {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(year, month, 1);
        let key = KeyPair::generate().unwrap();
        [params.self_signed(&key).unwrap().pem(), key.serialize_pem()]
    }

    fn until_of(kept: &Kept) -> Option<u64> {
        kept.state.lock().used.until
    }

    #[test]
    fn a_certificate_that_is_renewed_is_used_and_one_that_is_bad_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.path().join(name));
        let put = |path: &Path, text: &str| {
            // As what renews certificates does it; and so it is another file at once.
            let new = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
            fs::write(new.path(), text).unwrap();
            new.persist(path).unwrap();
        };
        let [first, second, third] = [(2030, 1), (2031, 1), (2032, 1)].map(|(y, m)| pair(y, m));
        put(&certificate, &first[0]);
        put(&key, &first[1]);
        let kept = Kept::read(certificate.clone(), key.clone()).unwrap_or_else(|e| panic!("{e}"));
        let is = |pair: &[String; 2]| {
            kept.look();
            let certified = Arc::clone(&kept.state.lock().used.certified);
            certified.cert[0] == CertificateDer::from_pem_slice(pair[0].as_bytes()).unwrap()
        };
        assert!(is(&first));
        // The certificate comes before its key.
        put(&certificate, &second[0]);
        assert!(is(&first), "it has another key");
        put(&key, &second[1]);
        assert!(is(&second));
        for bad in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &third[1]]
        {
            put(&certificate, bad);
            assert!(is(&second), "{bad}");
        }
        fs::remove_file(&certificate).unwrap();
        assert!(is(&second), "it may be about to come");
        put(&certificate, &third[0]);
        put(&key, &third[1]);
        assert!(is(&third));
    }

    #[test]
    fn the_end_of_a_certificate_is_told_two_weeks_ahead() {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.path().join(name));
        // Of the last one the year has four digits.
        for (year, month, ends) in
            [(2027, 3, 1_803_859_200), (2028, 3, 1_835_481_600), (2051, 12, 2_585_001_600)]
        {
            let [own, secret] = pair(year, month);
            fs::write(&certificate, own).unwrap();
            fs::write(&key, secret).unwrap();
            let kept =
                Kept::read(certificate.clone(), key.clone()).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(until_of(&kept), Some(ends));
            assert_eq!(kept.warning(ends - 14 * DAY), None);
            let soon = kept.warning(ends - 13 * DAY - 1).unwrap();
            assert!(soon.contains("expires in 13 days"), "{soon}");
            let over = kept.warning(ends + 1).unwrap();
            assert!(over.contains("has expired"), "{over}");
        }
    }

    #[test]
    fn nothing_of_a_certificate_is_believed() {
        let [own, _] = pair(2030, 1);
        let der = CertificateDer::from_pem_slice(own.as_bytes()).unwrap();
        for len in 0..der.len() {
            let _ = until(&der[..len]);
            let mut other = der.to_vec();
            for byte in [0, 0x7f, 0x80, 0x84, 0xff] {
                other[len] = byte;
                let _ = until(&other);
            }
        }
        for bad in
            [&b""[..], b"9", b"991301000000Z", b"990100000000Z", b"99010100000", b"9901+1000000Z"]
        {
            assert_eq!(seconds(bad, false), None, "{bad:?}");
        }
        assert_eq!(seconds(b"700101000000Z", false), Some(0));
        assert_eq!(seconds(b"00000101000000Z", true), None);
        assert_eq!(seconds(b"99991231235959Z", true), Some(253_402_300_799));
    }
}
