// Package encryption is the page of the console about encryption at rest: which members encrypt their data directories, how old
// the key is that new files have, and how much still has former keys; the keys of the member that shows the console, and a form
// that begins a new one.
//
// Members observe whether they encrypt; the keys of one member come from its service Encryption, for users with the role root.
// Nothing here is a key: there are ids of data keys, and the name that a key service gives its own.
//
// All functions may be called concurrently.
package encryption
