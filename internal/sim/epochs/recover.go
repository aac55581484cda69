package epochs

import (
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/member"
)

// Recover makes the member whose data options name the only voter of its cluster, in the next epoch. The others are
// directories that the operator can compare it with. None of them may run.
func Recover(options datadir.Options, others []datadir.Options) (*member.Recovery, error) {
	survivor, err := member.Inspect(options)
	if err != nil {
		return nil, err
	}
	var compared []*member.Survivor
	for _, other := range others {
		s, err := member.Inspect(other)
		if err != nil {
			return nil, err
		}
		compared = append(compared, s)
	}
	recovery, err := survivor.Recover(nil, compared...)
	if err != nil {
		return nil, err
	}
	return recovery, recovery.Write(options)
}
