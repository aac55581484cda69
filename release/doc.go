// Command release makes the files of a release of Quorate from a commit, signs them, and tells whether given files are what
// a commit makes.
//
// It is no part of the product and no daemon: it runs the go command and git, and needs no network but the module proxy,
// and none once modules are there. A tree (tree.go) is a clean clone of one commit, in which one tag stands, so that
// neither the place, nor other tags, nor the settings of the user enter a build. A release (release.go) is that tree and a
// version, and has a list of files: binaries (binary.go), archives, deb and rpm, an image, a bill of materials for each
// binary, a statement of provenance, and sums. A claim (claim.go) is what a file says of itself: the commit, the version,
// the toolchain, the time; trust.go says which one is believed. Verify makes the files again by the program and
// the toolchain of that commit, and compares bytes.
//
// Invariants:
//  1. A file is a function of the commit, the version, the toolchain and SOURCE_DATE_EPOCH: not of the clock, the user, the
//     directory, a cache, or the order of a map.
//  2. A file that is verified is read and never run.
//  3. No program of a commit runs because a file names the commit: the operator's repository says that it is a release, or
//     the operator that it is to be trusted.
//  4. A command that fails leaves nothing: files are made elsewhere and moved when all are there.
package main
