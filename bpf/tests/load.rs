//! The running kernel's verifier accepts every program. Needs root.
#![allow(clippy::expect_used)]

use std::mem::MaybeUninit;

use bpf::cpudist::CpudistSkelBuilder;
use bpf::offcputime::OffcputimeSkelBuilder;
use bpf::oncputime::OncputimeSkelBuilder;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};

#[test]
fn cpudist_loads() {
    let mut object = MaybeUninit::uninit();
    let open = CpudistSkelBuilder::default()
        .open(&mut object)
        .expect("open");
    open.load().expect("load, as root");
}

#[test]
fn offcputime_loads() {
    let mut object = MaybeUninit::uninit();
    let open = OffcputimeSkelBuilder::default()
        .open(&mut object)
        .expect("open");
    open.load().expect("load, as root");
}

#[test]
fn oncputime_loads() {
    let mut object = MaybeUninit::uninit();
    let open = OncputimeSkelBuilder::default()
        .open(&mut object)
        .expect("open");
    open.load().expect("load, as root");
}
