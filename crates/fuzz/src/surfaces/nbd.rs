//! A client of block devices: its options, and then its requests.

use wire::nbd::handshake::{Chosen, Export, Exports, Handshake, Next, OPTION_HEAD_LEN, OptionHead};
use wire::nbd::transmission::{Command, REQUEST_LEN, Request};

const SIZE: u64 = 1 << 30;

struct Two;
impl Exports for Two {
    fn names(&self) -> Result<Vec<String>, String> {
        Ok(vec!["v".into(), "old".into()])
    }
    fn find(&self, name: &str) -> Result<Export, String> {
        let is_read_only = match name {
            "v" => false,
            "old" => true,
            _ => return Err("none".into()),
        };
        Ok(Export { called: name.into(), size: SIZE, is_read_only, description: "v".into() })
    }
}

/// The highest bit of the client's flags, which no client sets: TLS is required.
const OVER_TCP: u32 = 1 << 31;

/// The client's flags, options with their data, and requests behind the choice of an export.
pub fn ask(input: &[u8]) -> bool {
    let Some((flags, mut rest)) = input.split_first_chunk() else { return false };
    let flags = u32::from_be_bytes(*flags);
    let Ok(mut handshake) = Handshake::new(flags & !OVER_TCP) else { return false };
    let mut is_open = flags & OVER_TCP == 0;
    if !is_open {
        handshake = handshake.with_tls_required();
    }
    let mut out = Vec::new();
    while let Some((head, behind)) = rest.split_first_chunk::<OPTION_HEAD_LEN>() {
        let Ok(OptionHead { option, len }) = OptionHead::decode(head) else { return false };
        let Some((data, behind)) = behind.split_at_checked(len as usize) else { return false };
        rest = behind;
        out.clear();
        match handshake.option(option, data, &Two, &mut out) {
            Next::Option => assert!(!out.is_empty(), "each option is answered"),
            Next::StartTls => {
                assert!(!is_open, "TLS begins once, and only where it is required");
                is_open = true;
                handshake = handshake.is_behind_tls();
            }
            Next::Transmit(chosen) => {
                assert!(is_open, "nothing is served before TLS");
                return requests(rest, &chosen);
            }
            Next::End => return false,
        }
    }
    false
}

fn requests(mut rest: &[u8], chosen: &Chosen) -> bool {
    let mut served = 0;
    while let Some((head, behind)) = rest.split_first_chunk::<REQUEST_LEN>() {
        let Ok(request) = Request::decode(head) else { break };
        assert_eq!(request.encode(), *head, "a request is written as it was read");
        let Some((_, behind)) = behind.split_at_checked(request.payload() as usize) else { break };
        rest = behind;
        let Ok(command) = request.command(chosen) else { continue };
        served += 1;
        match command {
            Command::Disconnect => break,
            Command::Flush => {}
            Command::Read { offset, len, .. } | Command::BlockStatus { offset, len, .. } => {
                assert!(offset + u64::from(len) <= SIZE);
            }
            Command::Write { offset, len, .. }
            | Command::Trim { offset, len, .. }
            | Command::WriteZeroes { offset, len, .. } => {
                assert!(offset + u64::from(len) <= SIZE && !chosen.export.is_read_only);
            }
        }
    }
    served > 0
}

fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let len = (data.len() as u32).to_be_bytes();
    [&b"IHAVEOPT"[..], &option.to_be_bytes(), &len, data].concat()
}

/// Negotiations that end in some requests.
pub fn seeds() -> Vec<Vec<u8>> {
    let name = |name: &str| [&(name.len() as u32).to_be_bytes()[..], name.as_bytes()].concat();
    let context = [name("v"), 1u32.to_be_bytes().to_vec(), name("base:allocation")].concat();
    let request = |kind, flags, offset, len| {
        Request { flags, kind, cookie: 1, offset, len }.encode().to_vec()
    };
    let requests = [
        request(0, 0, 4096, 4096),
        [request(1, 1, 4096, 5), b"bytes".to_vec()].concat(),
        request(3, 0, 0, 0),
        request(4, 0, 0, 4096),
        request(6, 2, 4096, 1 << 20),
        request(7, 8, 0, 1 << 30),
        request(2, 0, 0, 0),
    ];
    let go = |export: &str| option(7, &[name(export), vec![0, 1, 0, 3]].concat());
    let before = [option(3, &[]), option(6, &[name("old"), vec![0, 0]].concat()), option(8, &[])];
    let both = [option(9, &context), option(10, &context)];
    let flags = 3u32.to_be_bytes().to_vec();
    let secret = (3 | OVER_TCP).to_be_bytes().to_vec();
    let secret = [&[secret, option(3, &[]), option(5, &[]), go("v")][..], &requests].concat();
    ["v", "old"]
        .into_iter()
        .flat_map(|export| {
            let whole = [&[flags.clone()][..], &before, &both, &[go(export)], &requests].concat();
            let old = [&[flags.clone(), option(1, export.as_bytes())][..], &requests].concat();
            [whole.concat(), old.concat()]
        })
        .chain([secret.concat()])
        .collect()
}
