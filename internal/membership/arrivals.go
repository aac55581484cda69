package membership

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// arrival is a newcomer, and who it is.
type arrival struct {
	Newcomer                    // its ID as drawn or, if adopted, that of the member; in a plan it may be made up
	present  bool               // it is in the configuration
	adopted  bool               // another job, or another client, added it
	owner    consensus.MemberID // has one of its URLs and keeps it: the newcomer can never join
}

// arrivals are the newcomers of a Spec, in its order.
type arrivals []arrival

// missing returns the newcomers that are not in the configuration.
func (l arrivals) missing() arrivals {
	return slices.DeleteFunc(slices.Clone(l), func(a arrival) bool { return a.present })
}

func (l arrivals) ids() []consensus.MemberID {
	var ids []consensus.MemberID
	for _, a := range l {
		ids = append(ids, a.ID)
	}
	return ids
}
