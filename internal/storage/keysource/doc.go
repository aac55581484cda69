// Package keysource opens the key that a ring of data keys is wrapped with (package atrest), as the flags --encryption-key-file
// and --encryption-kms name it: a file, or a plug-in of version 2 of Kubernetes' interface to key services.
//
// It stores nothing, and it keeps no key longer than a call. A plug-in is another process, which may hang, fail or answer
// nonsense: every call has a deadline, and every answer a bound.
package keysource
