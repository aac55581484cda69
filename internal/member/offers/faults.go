package offers

// Faults break a rule each, as negative controls of the simulator's checkers. Tests only.
type Faults struct {
	BelieveStamps bool // a message waits for its stamp, however far ahead that is
	StayPaused    bool // a policy that paused never offers again
}
