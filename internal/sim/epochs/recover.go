package epochs

import (
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/recovery"
)

// Recover makes the member with this data the only voter of its cluster, in the next epoch. others are the directories that the
// operator compares with it. None of the members may run.
func Recover(options datadir.Options, others []datadir.Options) (*recovery.Plan, error) {
	survivor, err := recovery.Inspect(options)
	if err != nil {
		return nil, err
	}
	var compared []*recovery.Survivor
	for _, other := range others {
		s, err := recovery.Inspect(other)
		if err != nil {
			return nil, err
		}
		compared = append(compared, s)
	}
	plan, err := survivor.Plan(nil, compared...)
	if err != nil {
		return nil, err
	}
	return plan, plan.Write(options)
}
