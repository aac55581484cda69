package quorum

// Majority returns how many of n voters decide.
func Majority(n int) int { return n/2 + 1 }

// Recovery returns how many voters of one majority must have a record for a new leader to recover it.
func Recovery(n int) int { return Majority(n)/2 + 1 }

// Super returns how many of n voters must accept a proposal for the fast path. Of none, one must: nothing succeeds.
func Super(n int) int { return max(1, n-Majority(n)+Recovery(n)) }

// Reached returns the largest value that a majority of voters has reached, given the value of each. It sorts values in
// place: a handful of numbers, where insertion beats everything.
func Reached(values []uint64) uint64 {
	if len(values) == 0 {
		return 0
	}
	for i := 1; i < len(values); i++ {
		for j := i; j > 0 && values[j-1] < values[j]; j-- {
			values[j-1], values[j] = values[j], values[j-1]
		}
	}
	return values[Majority(len(values))-1]
}

// Outcome is the state of a vote.
type Outcome uint8

// The outcomes of a vote.
const (
	Pending Outcome = 0
	Won     Outcome = 1
	Lost    Outcome = 2 // even all missing answers could not win it
)

func (o Outcome) String() string {
	switch o {
	case Pending:
		return "pending"
	case Won:
		return "won"
	case Lost:
		return "lost"
	}
	return "unknown"
}

// Tally returns the outcome of a vote among n voters. Grants decide; refusals only end the wait early.
func Tally(n, granted, refused int) Outcome {
	switch {
	case n > 0 && granted >= Majority(n):
		return Won
	case n == 0 || n-refused < Majority(n):
		return Lost
	}
	return Pending
}

// Both combines the outcomes in the two sets of a joint configuration (Raft thesis, section 4.3).
func Both(a, b Outcome) Outcome {
	switch {
	case a == Lost || b == Lost:
		return Lost
	case a == Won && b == Won:
		return Won
	}
	return Pending
}
