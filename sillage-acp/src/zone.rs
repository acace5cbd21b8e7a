//! The machine's time zone, in which agents tell the times whose zone they do not say.

use jiff::tz::TimeZone;
use sillage_core::time::Zone;

/// The zone that `TZ` names, else the one of `/etc/localtime`; universal time, as for the C library, where neither is
/// readable.
#[must_use]
pub fn machine_zone() -> Zone {
    TimeZone::try_system().map_or_else(|_| Zone::utc(), Zone::from)
}
