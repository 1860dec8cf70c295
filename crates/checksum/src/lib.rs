//! CRC-32C (Castagnoli), the checksum of all metadata on disks: the polynomial of iSCSI, ext4
//! and Btrfs. `docs/decisions/0002-checksums.md` says why, and whose code it is.
//!
//! A crate of its own for its compiler's sake: tests have it optimised, and fuzzing has it
//! without the counters of coverage, which would take most of a pool's time and find nothing.
#![no_std]

use crc::{CRC_32_ISCSI, Crc, Table};
use units::Bytes;

static CRC32C: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// The checksum of bytes.
#[inline(never)] // or it would be compiled as a part of its caller's crate
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    CRC32C.checksum(bytes)
}

/// The checksum of two stretches of bytes, one behind the other, from those of both and the
/// length of the second: the first is moved on by so many bytes, which multiplies it by
/// x to the power of eight times as many, modulo the polynomial; the second is added.
#[must_use]
pub fn joined(first: u32, second: u32, len: Bytes) -> u32 {
    const ONE: u32 = 1 << 31; // bits are reflected: the highest is x to the power of 0
    let (mut power, mut square, mut left) = (ONE, ONE >> 8, len.get());
    while left > 0 {
        if left % 2 == 1 {
            power = product(power, square);
        }
        square = product(square, square);
        left /= 2;
    }
    product(power, first) ^ second
}

/// The product of two polynomials, modulo that of CRC-32C, in reflected bits.
fn product(a: u32, b: u32) -> u32 {
    const POLYNOMIAL: u32 = 0x1edc_6f41_u32.reverse_bits();
    let (mut sum, mut shifted) = (0, b);
    for bit in (0..u32::BITS).rev() {
        if a >> bit & 1 == 1 {
            sum ^= shifted;
        }
        shifted = shifted >> 1 ^ if shifted & 1 == 1 { POLYNOMIAL } else { 0 };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720, appendix B.4, and the check value of the catalogue of CRCs.
    #[test]
    fn the_checksums_are_those_of_iscsi() {
        let ascending: [u8; 32] = core::array::from_fn(|i| i as u8);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(&ascending), 0x46dd_794e);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn the_checksum_of_two_parts_is_that_of_the_whole() {
        let bytes: [u8; 20_000] = core::array::from_fn(|i| ((i * i) >> 3) as u8);
        for cut in [0, 1, 2, 95, 4000, 4096, 12_288, 19_999, 20_000] {
            let (first, second) = bytes.split_at(cut);
            let len = Bytes::new(second.len() as u64);
            let together = joined(crc32c(first), crc32c(second), len);
            assert_eq!(together, crc32c(&bytes), "cut at {cut}");
        }
    }
}
