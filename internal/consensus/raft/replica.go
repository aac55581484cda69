package raft

// Replica is the state of one member in the protocol.
type Replica struct{ opts Options }

// New returns a replica that goes on from what its disk holds.
func New(opts Options, restored Restored) (*Replica, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	return &Replica{opts: opts}, nil
}

// Step consumes all inputs and returns what must be done now.
func (r *Replica) Step(inputs ...Input) Output { return Output{} }

// Status returns a copy of what the replica knows.
func (r *Replica) Status() Status { return Status{ID: r.opts.ID} }
