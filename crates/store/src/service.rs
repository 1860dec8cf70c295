//! A service of a volume as bytes of a change (on-disk-format.md, change 12).

use crate::api::{Service, ServiceKind, ServicePriority};
use crate::format::service::{AMOUNT, BLOCK, KIND, LEN, PERIOD, PRIORITY, UID};
use units::{Bytes, Duration, Rate};

/// Puts a service into its change, behind the volume's number.
pub(crate) fn encode(service: Option<Service>, change: &mut [u8]) {
    let Some(Service { given_by, kind }) = service else { return };
    UID.put(change, given_by.into());
    let (number, priority, len, amount, period) = match kind {
        ServiceKind::BestEffort { priority } => (1, priority as u64, 0, 0, 0),
        ServiceKind::Rate { rate, block, period } => {
            (2, 0, block.get(), rate.get(), period.as_nanos())
        }
        ServiceKind::Latency { len, within, every } => {
            (3, 0, len.get(), within.as_nanos(), every.as_nanos())
        }
    };
    KIND.put(change, number);
    PRIORITY.put(change, priority);
    BLOCK.put(change, len);
    AMOUNT.put(change, amount);
    PERIOD.put(change, period);
}

/// The service in a change. What is not of its kind has to be zero, so that each service has
/// one form.
pub(crate) fn decode(change: &[u8]) -> Result<Option<Service>, &'static str> {
    let (len, amount, period) = (BLOCK.get(change), AMOUNT.get(change), PERIOD.get(change));
    let (priority, given_by) = (PRIORITY.get(change), UID.get_u32(change));
    let kind = match KIND.get(change) {
        0 => None,
        1 => Some(ServiceKind::BestEffort {
            priority: match priority {
                0 => ServicePriority::Interactive,
                1 => ServicePriority::Normal,
                2 => ServicePriority::Background,
                _ => return Err("a service has a priority that there is not"),
            },
        }),
        2 => Some(ServiceKind::Rate {
            rate: Rate::per_second(amount),
            block: Bytes::new(len),
            period: Duration::from_nanos(period),
        }),
        3 => Some(ServiceKind::Latency {
            len: Bytes::new(len),
            within: Duration::from_nanos(amount),
            every: Duration::from_nanos(period),
        }),
        _ => return Err("a service of unknown kind"),
    };
    let service = kind.map(|kind| Service { given_by, kind });
    let mut again = [0; LEN];
    let before = UID.offset;
    again[..before].copy_from_slice(&change[..before]);
    encode(service, &mut again);
    if again == change { Ok(service) } else { Err("a service has fields of another kind") }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn given(given_by: u32, kind: ServiceKind) -> Option<Service> {
        Some(Service { given_by, kind })
    }

    pub(crate) fn priorities() -> [ServiceKind; 3] {
        [ServicePriority::Interactive, ServicePriority::Normal, ServicePriority::Background]
            .map(|priority| ServiceKind::BestEffort { priority })
    }
}
