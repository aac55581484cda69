package histogram

import (
	"sync/atomic"
	"time"
)

// Exemplar is an observation whose trace is known.
type Exemplar struct {
	Value float64
	Trace string // its id
	At    time.Time
}

// Exemplars are the last exemplar of each bucket. The zero value has none, and takes no memory.
type Exemplars struct {
	of atomic.Pointer[[]atomic.Pointer[Exemplar]]
}

// Note keeps an exemplar of one of so many buckets.
func (e *Exemplars) Note(bucket, buckets int, exemplar Exemplar) {
	if e.of.Load() == nil {
		made := make([]atomic.Pointer[Exemplar], buckets)
		e.of.CompareAndSwap(nil, &made)
	}
	(*e.of.Load())[bucket].Store(&exemplar)
}

// All returns the exemplars that there are, by their buckets.
func (e *Exemplars) All() (all []Exemplar) {
	of := e.of.Load()
	if of == nil {
		return nil
	}
	for i := range *of {
		if one := (*of)[i].Load(); one != nil {
			all = append(all, *one)
		}
	}
	return all
}
