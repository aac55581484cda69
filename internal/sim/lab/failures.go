package lab

import (
	"fmt"
	"math/bits"
)

// StageNames say in a word where a change stands at each stage at which faults strike.
var StageNames = [stageCount]string{"logged", "on one disk more", "decided", "in force elsewhere"}

// fewest returns, for each stage of a change, the least number of members whose crash there stops all writes for as long as
// they stay down. It plays every set of members, the smallest first.
func fewest(o *Options) (least [stageCount]int, err error) {
	p, err := o.plan()
	if err != nil {
		return least, err
	}
	total := o.total(p)
	for stage := range least {
		for size := 1; size <= total && least[stage] == 0; size++ {
			stops, err := o.anyStops(size, total, stage)
			if err != nil {
				return least, err
			}
			if stops {
				least[stage] = size
			}
		}
	}
	return least, nil
}

// anyStops reports whether the crash of some members, so many of all, stops all writes.
func (o *Options) anyStops(size, total, stage int) (bool, error) {
	for set := range uint(1) << total {
		if bits.OnesCount(set) != size {
			continue
		}
		one := *o
		one.Faults = nil
		for id := 1; id <= total; id++ {
			if set&(1<<(id-1)) == 0 {
				continue
			}
			fault, err := ParseFault(fmt.Sprintf("crash-member:%d@%d", id, stage))
			if err != nil {
				return false, err
			}
			one.Faults = append(one.Faults, fault)
		}
		r, err := Run(one)
		if err != nil || r.Stuck {
			return r != nil && r.Stuck, err
		}
	}
	return false, nil
}
