//! TLS for what comes over TCP: the certificate, the handshake, and the bytes after it.
//!
//! Only TLS 1.3 is spoken: every program that speaks NBD over TLS or HTTPS today has it, and what
//! older versions can get wrong does not exist in it. Sessions are not resumed and nothing is
//! taken before the handshake has ended.
//!
//! Invariants: what strangers make the daemon compute, the handshakes, runs on one thread of its
//! own with ordinary priority, beside those that serve; a handshake has an end
//! ([`TLS_WITHIN`]); what is encrypted afterwards is in the turn of whoever reads or
//! writes, and so in its user's part of the threads under contract.

use crate::certificate::{Kept, Unread};
use crate::limits::TLS_WITHIN;
use crate::tokens::replace;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::server::NoServerSessionStorage;
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
pub use tokio_rustls::server::TlsStream;

/// The thread on which handshakes run.
const NAME: &str = "slackline-hello";
/// So often it is looked whether there is a new certificate.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_secs(60);
/// The certificate that the daemon makes where it is given none, and its key;
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
/// and the one above it, for those who are to trust it. A certificate that is its own above is
/// refused by some programs (qemu), and one that may sign others, as a server's, by others.
const TRUSTED: &str = "ca.crt";
/// A certificate of the daemon's own is good for so many years.
const YEARS: i32 = 20;

/// Why there is no TLS.
#[derive(Debug)]
pub struct TlsError {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub next_step: &'static str,
    /// The settings themselves are wrong: to try again as they are is in vain.
    pub of_settings: bool,
}

/// Where a certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// From these files (PEM): the certificate with those above it, and its key.
    Given(PathBuf, PathBuf),
    /// The daemon's own, in the directory of its state; made where there is none.
    Own,
}

/// What serves TLS.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    /// Of the certificate that is to be trusted, as SHA-256.
    pub fingerprint: String,
    /// The file that it is in.
    pub trusted: PathBuf,
    /// What is served with.
    pub kept: Arc<Kept>,
    hello: Arc<Hello>,
}

/// The thread for handshakes. It ends with the last use of this.
struct Hello {
    handle: Handle,
    _until: oneshot::Sender<()>,
}

impl Hello {
    fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (until, ends) = oneshot::channel::<()>();
        std::thread::Builder::new().name(NAME.into()).spawn(move || {
            let _ = runtime.block_on(ends);
        })?;
        Ok(Self { handle, _until: until })
    }
}

impl Tls {
    /// With a certificate; one of the daemon's own is for `names`.
    ///
    /// # Errors
    /// The files cannot be read or made, or do not belong together.
    pub fn new(
        certificate: &Certificate,
        state: Option<&Path>,
        names: Vec<String>,
    ) -> Result<Self, TlsError> {
        let [certificate, key, trusted] = match certificate {
            Certificate::Given(certificate, key) => {
                [certificate.clone(), key.clone(), certificate.clone()]
            }
            Certificate::Own => own(state, names)?,
        };
        let bad = |path: &Path, error: &dyn std::fmt::Display| TlsError {
            what: format!("{}: {error}", path.display()),
            next_step: "give a certificate and its key as PEM files, with --tls-cert and --tls-key",
            of_settings: true,
        };
        // A file that is not there may come, as of a file system that is not mounted yet.
        let unread = |path: &Path, error: pem::Error| TlsError {
            of_settings: !matches!(error, pem::Error::Io(_)),
            ..bad(path, &error)
        };
        let kept = Kept::read(certificate.clone(), key).map_err(|error| match error {
            Unread::File(path, error) => unread(&path, error),
            Unread::Pair(error) => bad(&certificate, &error),
        })?;
        let kept = Arc::new(kept);
        let first =
            CertificateDer::from_pem_file(&trusted).map_err(|error| unread(&trusted, error))?;
        let fingerprint = fingerprint(&first);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13]);
        let config = config.map_err(|error| bad(&certificate, &error))?;
        let resolver = Arc::clone(&kept);
        let mut config = config.with_no_client_auth().with_cert_resolver(resolver);
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        let hello = Hello::start().map_err(|error| TlsError {
            what: format!("no thread for TLS: {error}"),
            next_step: "permit more threads",
            of_settings: false,
        })?;
        hello.handle.spawn(look(Arc::clone(&kept)));
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Self { acceptor, fingerprint, trusted, kept, hello: Arc::new(hello) })
    }

    /// The handshake with who has connected; none where it does not end well in time.
    pub async fn accept<S>(&self, connection: S) -> Option<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shaken = timeout(TLS_WITHIN, self.acceptor.accept(connection));
        // Dropped with its task where nobody waits for it any more.
        let task = Aborted(self.hello.handle.spawn(shaken));
        task.await.ok()?.ok()?.ok()
    }
}

/// Looks after the files of a certificate, for ever: apart, since a file system may not answer.
async fn look(kept: Arc<Kept>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let kept = Arc::clone(&kept);
        let _ = tokio::task::spawn_blocking(move || kept.look()).await;
    }
}

/// A task that ends where nobody waits for it.
struct Aborted<T>(tokio::task::JoinHandle<T>);

impl<T> Future for Aborted<T> {
    type Output = Result<T, tokio::task::JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for Aborted<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A certificate's number, as people compare it.
fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let bytes = Sha256::digest(certificate.as_ref());
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(":")
}

/// The daemon's own certificate and key, made where there is none.
fn own(state: Option<&Path>, names: Vec<String>) -> Result<[PathBuf; 3], TlsError> {
    let next_step = "correct it with --state-dir, or give a certificate with --tls-cert and \
                     --tls-key";
    let Some(state) = state else {
        let what = "there is no directory to keep a certificate in".into();
        return Err(TlsError { what, next_step, of_settings: false });
    };
    let files = [CERTIFICATE, KEY, TRUSTED].map(|name| state.join(name));
    // The certificate is written last: where it is, the others are.
    if !files[0].exists() {
        make(state, names).map_err(|what| {
            let what = format!("no certificate can be made in {}: {what}", state.display());
            TlsError { what, next_step, of_settings: false }
        })?;
    }
    Ok(files)
}

/// A certificate for these names, and one above it whose key is forgotten: nobody can sign another
/// by it.
fn make(state: &Path, names: Vec<String>) -> Result<(), String> {
    let [certificate, key, trusted] = signed(names).map_err(|error| error.to_string())?;
    let kept = || {
        let mut directory = fs::DirBuilder::new();
        directory.recursive(true).mode(0o700).create(state)?;
        replace(state, TRUSTED, trusted.as_bytes())?;
        replace(state, KEY, key.as_bytes())?;
        replace(state, CERTIFICATE, certificate.as_bytes())
    };
    kept().map_err(|error: io::Error| error.to_string())
}

/// A certificate, its key, and the certificate above it, as PEM.
fn signed(names: Vec<String>) -> Result<[String; 3], rcgen::Error> {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
    use rcgen::{ExtendedKeyUsagePurpose, KeyUsagePurpose};
    let year = 1970 + (crate::tokens::now() / 31_556_952) as i32;
    let params = |names, called| {
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, called);
        // Since last year: clocks differ.
        params.not_before = rcgen::date_time_ymd(year - 1, 1, 1);
        params.not_after = rcgen::date_time_ymd(year + YEARS, 1, 1);
        Ok::<_, rcgen::Error>(params)
    };
    let mut above = params(Vec::<String>::new(), "slackline, trusted for one server")?;
    above.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    above.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let above = CertifiedIssuer::self_signed(above, KeyPair::generate()?)?;
    let mut own = params(names, "slackline")?;
    own.use_authority_key_identifier_extension = true;
    own.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    own.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = own.signed_by(&key, &above)?;
    Ok([certificate.pem(), key.serialize_pem(), above.pem()])
}
