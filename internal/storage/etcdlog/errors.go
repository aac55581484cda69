package etcdlog

import "errors"

// Errors of a log.
var (
	// ErrNoLog means that the directory holds no file of a log.
	ErrNoLog = errors.New("there is no log of etcd")
	// ErrDamaged means that the log contradicts itself.
	ErrDamaged = errors.New("the log of etcd is damaged")
)
