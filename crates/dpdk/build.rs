//! Compiles the shim and links libdpdk, with the feature only.

#[cfg(not(feature = "dpdk"))]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}

#[cfg(feature = "dpdk")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=shim.c");
    // A later one has another layout of what the shim compiles in; an earlier one lacks calls.
    let found =
        pkg_config::Config::new().range_version("22.11".."22.12").cargo_metadata(false).probe("libdpdk");
    let dpdk = found.unwrap_or_else(|error| {
        panic!("the feature dpdk needs libdpdk 22.11: install libdpdk-dev and pkg-config\n{error}")
    });
    let mut build = cc::Build::new();
    build.file("shim.c").includes(&dpdk.include_paths).flag("-include").flag("rte_config.h").warnings(true);
    // DPDK's headers use SSE 4.2 without asking.
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("x86_64") {
        build.flag("-march=corei7");
    }
    build.compile("taut_dpdk_shim");
    for path in &dpdk.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    // Drivers are not linked: DPDK loads them from its own directory.
    for library in ["rte_ethdev", "rte_mbuf", "rte_mempool", "rte_eal"] {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
}
