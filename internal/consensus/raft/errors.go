package raft

import "errors"

var (
	// ErrOptions is returned by New for options that cannot work.
	ErrOptions = errors.New("raft: invalid options")
	// ErrRestored is returned by New for a restored state that no run of a replica leaves behind.
	ErrRestored = errors.New("raft: inconsistent restored state")
)
