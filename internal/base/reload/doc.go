// Package reload keeps what files hold, and reads them again when they have changed: certificates, authorities, revocation
// lists, keys of tokens.
//
// It does not watch the file system: a caller that asks for the value looks at the files, at most once in an interval.
//
// Invariants:
//  1. A change that cannot be read (a certificate without its new key, a half-written file) is logged once, and what was read
//     before stays in force. It is tried again once a second, also if the files look the same: what is written within one tick
//     of the file system's clock does not show.
//  2. A change between a look and a read is found at the next look.
//
// All methods may be called concurrently.
package reload
