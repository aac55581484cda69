package dev

import "errors"

var (
	// ErrPlan is a cluster that cannot be run as asked: a wrong number, a directory of another shape.
	ErrPlan = errors.New("dev: impossible cluster")
	// ErrLocked is a directory whose cluster is running already.
	ErrLocked = errors.New("dev: already running")
	// ErrPortTaken is a port that another process listens on.
	ErrPortTaken = errors.New("dev: port taken")
	// ErrAllDown is a cluster whose members all died too often to be started again.
	ErrAllDown = errors.New("dev: all members are down")
)

// refusal is an error whose text is meant for a person as it is; kind is one of the errors above.
type refusal struct {
	kind error
	text string
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }
