//! Benchmarks of the libraries, in `benches/`. They are a package of their own, so that `make test`
//! does not compile criterion.
