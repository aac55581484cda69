package memory

import "fmt"

// Starts returns with how many bytes of leases a process starts, at most: the share of leases, or a unit of the limit where
// that is more. Leases that were there before they had a bound, or come from another cluster, may need the latter.
//
// Nothing else of the replicated state keeps a process from its start. Users have a bound of their own that no member passes,
// sessions end by themselves, and the keys of tables differ between members: a member that does not start would be worse than
// one that takes more than its share.
func (s Shares) Starts() int64 { return max(s.State.Leases, (s.Limit-program)/units) }

// Needed returns the least --memory, in bytes and whole MiB, with which a process starts that holds so many bytes of leases.
func Needed(leases int64) int64 {
	const mib, most = int64(1 << 20), int64(1 << 30) // MiB
	least, enough := int64(MinLimit>>20), most
	for least < enough { // a larger limit makes no share smaller
		if middle := (least + enough) / 2; leases <= Divide(middle*mib).Starts() {
			enough = middle
		} else {
			least = middle + 1
		}
	}
	return enough * mib
}

// LeasesError refuses more leases than a process has memory for.
type LeasesError struct {
	Count      int64
	Held, Most int64 // bytes that they take, and for which there is memory
}

// TooLittleError refuses a process that has less memory than the state of a cluster needs.
type TooLittleError struct{ Has, Needs int64 }

func (e *TooLittleError) Error() string {
	return fmt.Sprintf("too little memory for what the cluster holds: this process has %d MiB, and needs --memory=%dMiB or "+
		"more", e.Has>>20, e.Needs>>20)
}

// CheckLeases returns a LeasesError if so many leases take more bytes than most. Zero: any may be.
func CheckLeases(count, held, most int64) error {
	if most == 0 || held <= most {
		return nil
	}
	return &LeasesError{Count: count, Held: held, Most: most}
}

func (e *LeasesError) Error() string {
	return fmt.Sprintf("too little memory for what the cluster holds: this process needs --memory=%dMiB or more: the "+
		"leases (%d) take %d bytes, and it has memory for %d", Needed(e.Held)>>20, e.Count, e.Held, e.Most)
}
