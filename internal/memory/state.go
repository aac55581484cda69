package memory

import "fmt"

// Starts returns the replicated state that a process starts with: as much as its shares hold. Leases that were there before
// they had a bound, or come from elsewhere, have a unit of any limit.
func (s Shares) Starts() State {
	state := s.State
	state.Leases = max(state.Leases, (s.Limit-program)/units)
	return state
}

// Needed returns with how much memory at least a process starts that holds so much state, in whole MiB.
func Needed(held State) int64 {
	const mib, most = int64(1 << 20), int64(1 << 30) // MiB
	least, enough := int64(MinLimit>>20), most
	for least < enough { // a larger limit makes no share smaller
		if middle := (least + enough) / 2; Divide(middle * mib).Starts().holds(held) {
			enough = middle
		} else {
			least = middle + 1
		}
	}
	return enough * mib
}

// StateError refuses replicated state for which a process has too little memory.
type StateError struct {
	Held  State // what there is
	Most  State // for how much there is memory
	Count int64 // of leases
}

// TooLittleError refuses a process that has less memory than the state of a cluster needs.
type TooLittleError struct{ Has, Needs int64 }

func (e *TooLittleError) Error() string {
	return fmt.Sprintf("too little memory for what the cluster holds: this process has %d MiB, and needs --memory=%dMiB or "+
		"more", e.Has>>20, e.Needs>>20)
}

// Check returns a StateError if held is more than most.
func Check(held, most State, leases int64) error {
	if most == (State{}) || most.holds(held) {
		return nil
	}
	return &StateError{Held: held, Most: most, Count: leases}
}

func (e *StateError) Error() string {
	return fmt.Sprintf("too little memory for what the cluster holds: it needs --memory=%dMiB or more: %d leases take %d "+
		"bytes, and there is memory for %d", Needed(e.Held)>>20, e.Count, e.Held.Leases, e.Most.Leases)
}
