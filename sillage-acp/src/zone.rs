//! When and where an agent's words were said: the time, and the machine's zone, in which agents tell the times whose
//! zone they do not say.

use jiff::tz::TimeZone;
use sillage_core::time::{Timestamp, Zone};

/// When and where words were said, for dates that they give as delays or as local times.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    pub(crate) now: Timestamp,
    pub(crate) zone: Zone,
}

impl Moment {
    /// Here and now.
    pub(crate) fn present() -> Self {
        Self {
            now: crate::runtime::now(),
            zone: machine_zone(),
        }
    }
}

/// The zone that `TZ` names, else the one of `/etc/localtime`; universal time, as for the C library, where neither is
/// readable.
#[must_use]
pub fn machine_zone() -> Zone {
    TimeZone::try_system().map_or_else(|_| Zone::utc(), Zone::from)
}
