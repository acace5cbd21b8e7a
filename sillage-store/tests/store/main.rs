//! The stores against their contract, and the one on disk against everything that happens to disks and processes.

mod child;
mod conformance;
mod damage;
mod faults;
mod holding;
mod kills;
mod visible;
