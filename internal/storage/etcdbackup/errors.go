package etcdbackup

import "errors"

// Errors of a file.
var (
	errNoFile = errors.New("is not a file")
	// ErrNoDatabase means that the file is none of etcd's: neither of its first pages is valid.
	ErrNoDatabase = errors.New("this is no snapshot and no database of etcd: it does not begin as one, or was cut")
	// ErrDamaged means that a part of the file contradicts another.
	ErrDamaged = errors.New("the file is damaged")
	// ErrNoHash means that the file does not end with its checksum.
	ErrNoHash = errors.New("snapshot missing hash but --skip-hash-check=false")
	// ErrInUse means that an etcd runs on the database.
	ErrInUse = errors.New("an etcd runs on this database: stop it first")
	// ErrHash means that it ends with the checksum of something else.
	ErrHash = errors.New("the checksum at the end of the file does not match: it was cut or damaged; take another copy")
)
