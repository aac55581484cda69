package decide

import (
	"strconv"
	"strings"
)

// Epoch is one life of the cluster: each recovery without a majority begins another one.
type Epoch struct {
	Number uint64
	Name   string // the number and the id of the recovery, such as "1-0a1b2c3d"; empty: nobody told
}

// ParseEpoch reads the name of an epoch. A name without a number is one of number 0.
func ParseEpoch(name string) Epoch {
	digits, _, _ := strings.Cut(name, "-")
	number, _ := strconv.ParseUint(digits, 10, 64)
	return Epoch{Number: number, Name: name}
}

// Or returns the epoch, or that of the member's own claim where nobody told it, as members of 1.0 do not: a claim has the epoch
// in which a leader named its member last, and its data are of none that is older.
func (e Epoch) Or(claim Epoch) Epoch {
	if e.Name == "" {
		return claim
	}
	return e
}

// Former tells whether members of the epoch were left out by the recovery that began the newest one, or by one that was made
// apart: what they say of the cluster counts no more, also if they still are a majority among themselves.
func (e Epoch) Former(newest Epoch) bool {
	if e.Number != newest.Number {
		return e.Number < newest.Number
	}
	return e.Name != "" && newest.Name != "" && e.Name != newest.Name
}
