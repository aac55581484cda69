// Package seal encrypts what a continuous backup puts at a place, to recipients in the form of age
// (https://age-encryption.org): who holds the identity of one of them reads it, and the members that write it do not.
//
// A recipient is the public half of a key pair, a text that begins with "age1"; an identity is the secret half, a line of a
// file that nobody but its owner may read. No error repeats either.
//
// The main functions are ParseRecipients, NewLock and ReadIdentities. Package backup has the forms of the objects.
package seal
