package replay

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
)

// TwinsError says that two objects have different entries, that each of them applies, and that both lead to a state with one
// sum of the chain: somebody made one of them for that. Nothing at the place tells which one is the cluster's.
type TwinsError struct {
	Name, Other   string          // of objects
	Differ, Until consensus.Index // the first entry of which they differ, and the state to which both lead
}

func (e *TwinsError) Error() string {
	return fmt.Sprintf("entry %d is another one in object %s, and both lead to the sum of the cluster's after entry %d: "+
		"somebody made one of them, and nothing at the place tells which one is the cluster's. Find out who else writes "+
		"there, and remove what is not the cluster's, or ask for a state before: --at entry:%d", e.Differ, e.Other, e.Until,
		e.Differ-1)
}
