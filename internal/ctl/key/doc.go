// Package key has the commands of `quorate key`: which keys the files of a member with an encrypted data directory have, and
// how they are rotated.
//
// The commands know no key and no file: they ask the native service Encryption of one member, as each member has its own keys.
//
// Invariants:
//  1. One command asks one member: a rotation of another one than the operator meant is not possible.
//  2. No key is in any answer; ids of keys are no secret.
package key
